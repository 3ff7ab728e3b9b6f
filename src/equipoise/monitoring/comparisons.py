"""What a policy compares in every batch: groups with all other rows, or with other groups."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Group, format_value
from equipoise.measures.findings import fitting_rules, settle_label
from equipoise.measures.measurement import group_of
from equipoise.measures.rules import Rule
from equipoise.monitoring.evidence.factors import ratio_bounds
from equipoise.monitoring.evidence.samples import Floats, Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.counts import Counts
    from equipoise.monitoring.series import GroupSeries
    from equipoise.values import Value

REST = -1
"""Stands for all rows outside of a group."""
_MOST = 5_000_000
"""Number of comparisons of groups with several others that an ordinary machine has time and memory for."""


@dataclass(frozen=True)
class WatchedPair:
    """A group and a label that a rule limits; it is compared with all other rows, or with groups."""

    line: int
    label: int
    rule: int
    against: tuple[int, ...]
    """Lines of groups, or `REST`. Evidence against several is averaged."""


@dataclass(frozen=True, eq=False)
class Comparisons:
    """The comparisons of all pairs, as arrays with one entry each; a pair has one or more."""

    pairs: tuple[WatchedPair, ...]
    rules: tuple[Rule, ...]
    groups: GroupSeries
    pair: NDArray[np.int64]
    against: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.pair)

    def of(self, chosen: Sequence[int]) -> Comparisons:
        """The comparisons of some of the pairs."""
        return _comparisons([self.pairs[i] for i in chosen], self.rules, self.groups)

    def against_rest(self) -> Comparisons:
        """Each pair compared with all other rows, whatever its rule compares it with."""
        n = len(self.pairs)
        return Comparisons(self.pairs, self.rules, self.groups, np.arange(n), np.full(n, REST))

    @functools.cached_property
    def seen(self) -> NDArray[np.int64]:
        """The number of the batch with the first row of the label of each comparison."""
        unseen_so_far = np.cumsum(self.groups.labels, axis=0) == 0
        return np.asarray(unseen_so_far.sum(axis=0))[self._labels]

    @functools.cached_property
    def ready(self) -> NDArray[np.int64]:
        """The number of the batch with which each comparison may join.

        Then the label has had rows, and the groups have as many as the rule asks. Nothing that
        comes later changes this number, so that a check of every day is one of all days.
        """
        least = np.array([rule.min_count for rule in self.rules], np.int64)[self._rules]
        found = self.seen.copy()
        for lines in (self._lines, self.against):
            asked = np.flatnonzero((least > 1) & (lines != REST))
            for each in set(zip(lines[asked].tolist(), least[asked].tolist(), strict=True)):
                here = asked[(lines[asked] == each[0]) & (least[asked] == each[1])]
                number = np.searchsorted(np.cumsum(self.groups.rows[each[0]]), each[1])
                found[here] = np.maximum(found[here], number)
        return found

    @functools.cached_property
    def _lines(self) -> NDArray[np.intp]:
        return np.array([pair.line for pair in self.pairs], np.intp)[self.pair]

    @functools.cached_property
    def _labels(self) -> NDArray[np.intp]:
        return np.array([pair.label for pair in self.pairs], np.intp)[self.pair]

    @functools.cached_property
    def _rules(self) -> NDArray[np.intp]:
        return self.rule_numbers[self.pair]

    @functools.cached_property
    def rule_numbers(self) -> NDArray[np.intp]:
        """The number of the rule of each pair."""
        return np.array([pair.rule for pair in self.pairs], np.intp)

    def of_rules(self, value: Callable[[Rule], float]) -> Floats:
        """A value of the rule of each pair."""
        return np.array([value(rule) for rule in self.rules], np.float64)[self.rule_numbers]

    def are_on(self, measure: str) -> NDArray[np.bool_]:
        """Which pairs have a rule on a measure."""
        return np.array([rule.measure == measure for rule in self.rules], np.bool_)[
            self.rule_numbers
        ]

    def sums(self, cases: Floats) -> Samples:
        """The samples in sums of batches: a line for each group, the last for all rows."""
        lines, labels = self._lines, self._labels
        x, m = cases[lines, labels], cases[lines].sum(axis=1)
        z, r = cases[-1, labels] - x, cases[-1].sum() - m
        others = np.flatnonzero(self.against != REST)
        z[others] = cases[self.against[others], labels[others]]
        r[others] = cases[self.against[others]].sum(axis=1)
        # Differences of sums that forget are rounded.
        return Samples(x, m, np.maximum(z, 0.0), np.maximum(r, 0.0))

    def samples(self, batches: slice) -> Samples:
        """The rows that are compared in some batches."""
        lines, labels = self._lines, self._labels
        g = self.groups
        x = g.cases[lines, batches, labels].astype(np.float64)
        m = g.rows[lines, batches].astype(np.float64)
        z = g.labels[batches].T[labels] - x
        r = g.all_rows[batches] - m
        others = np.flatnonzero(self.against != REST)
        if len(others):
            at = self.against[others]
            z[others] = g.cases[at, batches, labels[others]]
            r[others] = g.rows[at, batches]
        return Samples(x, m, z, r)

    def bounds(self, samples: Samples) -> tuple[Floats, Floats]:
        """The bounds of p1/p0 in each batch: no evidence is against what is between them."""
        found = np.array([_bounds(rule) for rule in self.rules]).reshape(-1, 2)[self._rules]
        least, most = found[:, :1], found[:, 1:]
        on_ub = self.are_on("uniform_bias")[self.pair]
        low, high = ratio_bounds(samples.share, least, most)
        if on_ub.all():
            return low, high
        return np.where(on_ub[:, None], low, least), np.where(on_ub[:, None], high, most)


def _bounds(rule: Rule) -> tuple[float, float]:
    """The bounds of 1 − UB, or of the impact ratio."""
    low, high = rule.bounds
    if rule.measure == "uniform_bias":
        return max(rule.k * (1 - high), 0.0), rule.k * (1 - low)
    # No ratio to the best-off group is above 1, whatever those to other groups are.
    return max(low, 0.0), math.inf if rule.reference == "best" else high


def find_comparisons(
    groups: GroupSeries, rules: Sequence[Rule], favourable: str | None
) -> Comparisons:
    """Find what rules compare; the last rule on a measure that fits a group and label decides."""
    settled = (_settled(rule, groups.counts, favourable) for rule in rules)
    rules = tuple(rule for rule in settled if not unseen(rule, groups.counts))
    totals = groups.rows.sum(axis=1)
    pairs: list[WatchedPair] = []
    n = 0
    for key in dict.fromkeys(rule.key for rule in rules):
        fitting = fitting_rules(groups.counts, groups.codes, rules, key)
        least = np.array([rule.min_count for rule in rules])[fitting]
        fits = (fitting >= 0) & (totals[:, None] >= least)
        known: dict[tuple[int, int], tuple[int, ...]] = {}
        for (line, label), number in zip(
            np.argwhere(fits).tolist(), fitting[fits].tolist(), strict=True
        ):
            if (line, number) not in known:
                known[line, number] = _against(groups, totals, rules[number], line)
            if known[line, number]:
                pairs.append(WatchedPair(line, label, number, known[line, number]))
                n += len(known[line, number]) - 1
                if n > _MOST:
                    raise InputError(
                        f"the rules compare groups with each other in more than {_MOST:,} ways, which would take "
                        "hours; leave groups out with `min_count` or `max_order`."
                    )
    return _comparisons(pairs, rules, groups)


def _comparisons(
    pairs: Sequence[WatchedPair], rules: tuple[Rule, ...], groups: GroupSeries
) -> Comparisons:
    pair = [i for i, each in enumerate(pairs) for _ in each.against]
    against = [other for each in pairs for other in each.against]
    return Comparisons(
        tuple(pairs), rules, groups, np.array(pair, np.int64), np.array(against, np.int64)
    )


def _settled(rule: Rule, counts: Counts, favourable: str | None) -> Rule:
    if rule.measure not in ("uniform_bias", "impact_ratio"):
        raise InputError(
            f"the rule {rule.words} cannot be tested batch by batch; only rules on uniform_bias or "
            "impact_ratio can be monitored."
        )
    if rule.reference == "best" and rule.bounds[1] < 1:
        raise InputError(
            f"the rule {rule.words} cannot be tested batch by batch; a ratio to the best-off group is "
            "monitored with a limit from below only."
        )
    # Tests of single tables have no part in those of a stream.
    return settle_label(replace(rule, significance=None), counts, favourable)


def unseen(rule: Rule, counts: Counts) -> list[str]:
    """The values that a rule names and that no batch has had so far, as in sex=x."""
    other = rule.reference
    groups = [rule.where] if other in (None, "rest", "best") else [rule.where, Group.parse(other)]
    named = {name: value for group in groups for name, value in group.items()}
    if rule.label is not None:
        named[counts.label.name] = rule.label
    return [
        f"{name}={format_value(value)}"
        for name, value in named.items()
        if value not in counts.axis(name).codes
    ]


def _against(
    groups: GroupSeries, totals: NDArray[np.int64], rule: Rule, line: int
) -> tuple[int, ...]:
    """What a rule compares a group with; nothing if there is nothing to compare it with."""
    if rule.measure == "uniform_bias" or rule.reference in (None, "rest"):
        return (REST,) if totals[line] < groups.n_rows else ()
    sizes = np.array([len(axis) for axis in groups.counts.sensitive])
    fixed = groups.codes[line] != sizes
    if rule.reference == "best":
        alike = ((groups.codes != sizes) == fixed).all(axis=1) & (totals >= rule.min_count)
        alike[line] = False
        return tuple(np.flatnonzero(alike).tolist())
    other = _line_of(groups, str(rule.reference))
    if other is None:
        return ()
    there = groups.codes[other]
    both = fixed & (there != sizes)
    # Rows of both groups would be on both sides of the comparison.
    apart = bool((groups.codes[line][both] != there[both]).any())
    return (other,) if apart else ()


def _line_of(groups: GroupSeries, pattern: str) -> int | None:
    wanted = Group.parse(pattern)
    codes = [
        axis.code(wanted[axis.name]) if axis.name in wanted else len(axis)
        for axis in groups.counts.sensitive
    ]
    found = np.flatnonzero((groups.codes == codes).all(axis=1))
    return int(found[0]) if len(found) else None


def named(groups: GroupSeries, pair: WatchedPair) -> tuple[Group, Value]:
    """The group and the label of a pair."""
    return group_of(groups.counts, groups.codes[pair.line]), groups.counts.label.values[pair.label]
