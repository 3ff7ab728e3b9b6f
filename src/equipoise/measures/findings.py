"""Which rows of a bias table are outside the limits of rules, or cannot be decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError
from equipoise.measures.four_fifths import ROUNDING, ratio_to_best
from equipoise.measures.measurement import lines_inside
from equipoise.measures.registry import measure_named
from equipoise.measures.uncertainty.comparisons import fisher_p

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.counts import Counts
    from equipoise.measures.measure import Floats
    from equipoise.measures.rules import Rule
    from equipoise.measures.table import BiasTable

Evidence: TypeAlias = Literal["estimate", "interval"]
OUTSIDE, UNDECIDED = 1, 2
Lines: TypeAlias = NDArray[np.int64]


class Findings(NamedTuple):
    """The rows that rules find: those outside first, of these the evident ones, by size."""

    rule: Lines
    """Number of the rule."""
    line: Lines
    label: Lines
    value: Floats
    """Value of the limited measure."""
    code: NDArray[np.int8]
    """`OUTSIDE` or `UNDECIDED`."""
    sure: NDArray[np.bool_]
    """Whether the value differs by more than chance."""
    checked: int
    """How many rows were checked in all."""


def find_rows(table: BiasTable, rules: Sequence[Rule], evidence: Evidence) -> Findings:
    """Find the rows that are outside the limits of rules, or cannot be decided."""
    parts: list[tuple[NDArray[Any], ...]] = []
    checked = 0
    for key in dict.fromkeys(rule.key for rule in rules):
        deciding = _deciding_rules(table, rules, key)
        checked += int((deciding >= 0).sum())
        for number, rule in enumerate(rules):
            if rule.key == key:
                line, label = np.nonzero(deciding == number)
                parts.append(_found_by(table, rule, number, evidence, line, label))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    *_, code, sure, far = columns
    # Rows with enough evidence come first whatever their size: the others may be chance.
    order = np.lexsort((-np.round(far, 12), ~sure, code))
    rule_, line, label, value, code, sure = (c[order] for c in columns[:-1])
    return Findings(rule_, line, label, value, code, sure, checked)


def _deciding_rules(table: BiasTable, rules: Sequence[Rule], key: tuple[str, str | None]) -> Lines:
    """For each line and label the number of the last rule that fits it, or −1."""
    m = table.measured
    deciding = fitting_rules(m.counts, m.lattice.codes, rules, key)
    # A group too small for a later rule is exempt: no earlier rule takes it back.
    least = np.array([rule.min_count for rule in rules])[deciding]
    deciding = np.where(m.n_group[:, None] >= least, deciding, -1)
    deciding[np.isnan(m.ub)] = -1
    shown = np.zeros(m.ub.shape, np.bool_)
    shown[table.places] = True
    return np.where(shown, deciding, -1)


def fitting_rules(
    counts: Counts, codes: NDArray[np.int32], rules: Sequence[Rule], key: tuple[str, str | None]
) -> Lines:
    """For each group and label the number of the last rule on a key that fits, whatever its size.

    It is −1 where none fits. The groups are given as lines of codes, as in a lattice.
    """
    fitting = np.full((len(codes), len(counts.label)), -1, np.int64)
    for number, rule in enumerate(rules):
        if rule.key == key:
            inside = lines_inside(
                counts, codes, rule.where, "use the key label of the rule instead"
            )
            labels = slice(None) if rule.label is None else counts.label.code(rule.label)
            fitting[inside, labels] = number
    return fitting


def _found_by(
    table: BiasTable, rule: Rule, number: int, evidence: Evidence, line: Lines, label: Lines
) -> tuple[NDArray[Any], ...]:
    """The columns of `Findings` for one rule, and how far each value is from the neutral one."""
    values = table.measured.measure(rule.measure, rule.reference, rule.min_count)
    value = _relative_to(values[line, label], rule.k)
    status = _statuses(table, rule, evidence, value, line, label)
    found = status != 0
    line, label, value, status = (a[found] for a in (line, label, value, status))
    neutral = measure_named(rule.measure).neutral or 0.0
    far = np.nan_to_num(np.abs(value - neutral), nan=-1.0)
    sure = _sure(table, rule, line, label)
    return np.full(len(line), number), line, label, value, status, sure, far


def _statuses(
    table: BiasTable, rule: Rule, evidence: Evidence, value: Floats, line: Lines, label: Lines
) -> NDArray[np.int8]:
    """0 where a row is inside, else OUTSIDE or UNDECIDED."""
    low, high = rule.bounds
    if evidence == "estimate":
        # UB comes from whole numbers and is exact; ratios of rates are off by rounding.
        slack = 0.0 if rule.measure == "uniform_bias" else ROUNDING
        outside = (value < low - slack) | (value > high + slack)
        unsure = (outside & table.measured.unsound[line, label]) | np.isnan(value)
        if rule.significance is not None:
            unsure |= outside & ~_significant(table, rule, outside, line, label)
    else:
        least, most = _interval(table, rule, line, label)
        outside = (least > high) | (most < low)
        unsure = ~outside & ~((least >= low) & (most <= high))
    return np.where(unsure, UNDECIDED, np.where(outside, OUTSIDE, 0)).astype(np.int8)


def _significant(
    table: BiasTable, rule: Rule, tested: NDArray[np.bool_], line: Lines, label: Lines
) -> NDArray[np.bool_]:
    """Where Fisher's exact test tells a group that is tested from its best-off group."""
    m = table.measured
    if m.counts.weights is not None:
        raise InputError("a rule with significance needs whole rows; these are weighted.")
    best = m.best(min_count=rule.min_count)
    found = np.zeros(len(line), np.bool_)
    for place in np.flatnonzero(tested):
        one, code = line[place], label[place]
        other = best[one, code]
        x1, n1, x0, n0 = (
            int(x) for at in (one, other) for x in (m.n_cell[at, code], m.n_group[at])
        )
        found[place] = fisher_p(x1, n1, x0, n0) <= (rule.significance or 0.0)
    return found


def _relative_to(ub: Any, k: float) -> Any:
    """UB relative to an allowed ratio: 1 − f_gy/(K·f_y)."""
    return ub if k == 1 else 1 - (1 - ub) / k


def _interval(table: BiasTable, rule: Rule, line: Lines, label: Lines) -> tuple[Floats, Floats]:
    """The interval of the measure that a rule limits."""
    m = table.measured
    if m.interval is None:
        raise InputError("`evidence='interval'` needs intervals; measure with `uncertainty=True`.")
    if rule.measure == "uniform_bias":
        low, high = (_relative_to(x[line, label], rule.k) for x in m.interval)
        return low, high
    best = m.best(min_count=rule.min_count)
    low, high = np.full((2, *m.ub.shape), np.nan)
    for code in np.unique(label):
        low[:, code], high[:, code] = ratio_to_best(m, best[:, code], int(code))
    return low[line, label], high[line, label]


def _sure(table: BiasTable, rule: Rule, line: Lines, label: Lines) -> NDArray[np.bool_]:
    """Where the limited measure differs from its neutral value by more than chance."""
    m = table.measured
    usual = rule.measure == "uniform_bias" and rule.k == 1
    if usual or m.interval is None or not rule.has_interval:
        return np.asarray(m.evident[line, label])
    neutral = measure_named(rule.measure).neutral or 0.0
    low, high = _interval(table, rule, line, label)
    return np.asarray(((low > neutral) | (high < neutral)) & ~m.unsound[line, label])


def settle_label(rule: Rule, counts: Counts, favourable: str | None) -> Rule:
    """Name the label of a rule on the best-off group, which depends on the favourable label."""
    if rule.reference != "best" or rule.label is not None:
        return rule
    if favourable is None:
        label = counts.label
        raise InputError(
            f"the rule {rule.limits} needs to know which label value is favourable; name it with "
            f"`favourable` or as the rule's label. {label.name!r} has: {label.listed}."
        )
    return replace(rule, label=favourable)
