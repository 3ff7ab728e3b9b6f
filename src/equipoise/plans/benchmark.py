"""Targets from another table, such as a census: rates of labels by group, and shares of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.plain import in_words
from equipoise.plans.patterns import members
from equipoise.plans.targets import ByLabel, Ratios, complete_rates
from equipoise.validate import a_number
from equipoise.values import MISSING, as_value, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from equipoise.counts import Counts
    from equipoise.plans.cells import Real, Whole

DIGITS = 6
"""Decimal places of shares from a table; more would make no difference in rows."""

NAMED = 5
"""Maximum number of groups that a sentence names."""


@dataclass(frozen=True)
class TargetRates:
    """The rate of each label in some groups, from another table.

    >>> TargetRates.of({"sex=w": {"hired": 0.3, "not": 0.7}}).rates[0][1]
    (('hired', 0.3), ('not', 0.7))
    """

    rates: tuple[tuple[Group, ByLabel], ...]
    source: str | None = None

    @classmethod
    def of(cls, given: Any) -> TargetRates:
        """Take rates by group and label, or what :meth:`to_dict` wrote."""
        pairs, source = _written(given, "rates")
        return cls(tuple((group, _by_label(group, each)) for group, each in pairs), source)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that :meth:`of` reads."""
        rates = [[str(g), [[plain(label), rate] for label, rate in each]] for g, each in self.rates]
        return {"source": self.source, "rates": rates}


@dataclass(frozen=True)
class TargetShares:
    """The share of the rows that each group of some attributes has in another table."""

    shares: tuple[tuple[Group, float], ...]
    source: str | None = None

    @classmethod
    def of(cls, given: Any) -> TargetShares:
        """Take shares by group, or what :meth:`to_dict` wrote."""
        pairs, source = _written(given, "shares")
        for group, share in pairs:
            a_number(f"`target_shares` of {group}", share, above=0)
        if len({tuple(group) for group, _ in pairs}) != 1:
            raise InputError("`target_shares` needs groups of the same attributes.")
        return cls(tuple((group, float(share)) for group, share in pairs), source)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that :meth:`of` reads."""
        return {"source": self.source, "shares": [[str(g), share] for g, share in self.shares]}


@dataclass(frozen=True)
class Lacking:
    """What a table of targets lacks: groups of ours, and groups it has that ours does not."""

    option: str
    ours: tuple[Group, ...] = ()
    theirs: tuple[Group, ...] = ()
    zero: tuple[Group, ...] = ()  # groups with a label that the other table does not have

    @property
    def sentences(self) -> Iterator[str]:
        """What is lacking, and what follows for these groups."""
        what = "rates" if self.option == "target_rates" else "shares"
        follows = (
            "have no target and are not judged"
            if self.option == "target_rates"
            else "together keep their present share of the table"
        )
        if self.ours:
            yield f"The target {what} lack {_listed(self.ours)}; these groups {follows}."
        if self.zero:
            yield (
                f"The target rates of {_listed(self.zero)} are 0 for a label, which no plan can "
                "promise; these groups have no target and are not judged."
            )
        if self.theirs:
            yield f"The target {what} of {_listed(self.theirs)} are not used: the table has no such rows."


def resolve_rates(
    targets: TargetRates, counts: Counts, codes: Any, have: Whole, rates: Real, *, coarse: bool
) -> tuple[Ratios, Lacking]:
    """The K that brings every finest group to the rates of the smallest given group around it.

    With ``coarse``, groups of one attribute get their rates as a whole instead.
    """
    finest, given = np.ones(have.shape), np.zeros(len(have), np.bool_)
    whole: list[tuple[Group, Real]] = []
    theirs, zero = [], []
    for group, by_label in sorted(targets.rates, key=lambda pair: len(pair[0])):
        lines = _lines(counts, codes, have, group)
        if not len(lines):
            theirs.append(group)
            continue
        wanted = complete_rates(group, by_label, counts, rates)
        if (wanted[rates > 0] <= 0).any():
            zero.append(group)
            given[lines] = False
            continue
        ratio = np.where(rates > 0, wanted / np.where(rates > 0, rates, 1.0), 1.0)
        if coarse and len(group) == 1 < len(counts.sensitive):
            whole.append((group, ratio))
        else:
            finest[lines], given[lines] = ratio, True
    if not given.any() and not whole:
        raise InputError(
            "the target rates have no group that the table has as well; give rates for groups of "
            f"{in_words([axis.name for axis in counts.sensitive])}."
        )
    excused = np.concatenate([_lines(counts, codes, have, g) for g in zero] or [np.zeros(0, int)])
    covered = np.zeros(len(have), np.bool_)
    covered[[*excused, *(line for g, _ in whole for line in _lines(counts, codes, have, g))]] = True
    ours = () if coarse else tuple(_named(counts, codes, have, ~given & ~covered))
    lacking = Lacking("target_rates", ours, tuple(theirs), tuple(zero))
    return Ratios(finest, np.zeros(len(have), np.bool_), ~given, tuple(whole)), lacking


def resolve_shares(
    targets: TargetShares, counts: Counts, codes: Any, have: Whole
) -> tuple[list[tuple[str, float]], Lacking]:
    """The share of the repaired table for each group that both tables have.

    Groups that the other table lacks keep their present share together.
    """
    held: list[tuple[Group, float]] = []
    theirs: list[tuple[Group, float]] = []
    inside = np.zeros(len(have), np.bool_)
    for group, share in targets.shares:
        lines = _lines(counts, codes, have, group)
        inside[lines] = True
        (held if len(lines) else theirs).append((group, share))
    if len(held) < 2:
        raise InputError(
            f"the target shares have {len(held)} group that the table has as well; at least 2 are needed."
        )
    names = list(held[0][0])
    ours = {
        group: None
        for line in np.flatnonzero(~inside & (have.sum(axis=1) > 0)).tolist()
        for group in [_coarser(counts, codes[line], names)]
    }
    room = float(have[inside].sum() / have.sum())
    total = sum(share for _, share in held)
    shares = [round(share / total * room, DIGITS) for _, share in held]
    largest = int(np.argmax(shares))
    shares[largest] = round(shares[largest] + round(room, DIGITS) - sum(shares), DIGITS)
    lacking = Lacking("target_shares", tuple(ours), tuple(group for group, _ in theirs))
    return [(str(g), s) for (g, _), s in zip(held, shares, strict=True) if s > 0], lacking


def _lines(counts: Counts, codes: Any, have: Whole, group: Group) -> NDArray[np.intp]:
    """The finest groups with rows inside a group; none if a value does not occur."""
    if any(value not in counts.axis(name).codes for name, value in group.items()):
        return np.zeros(0, np.intp)
    lines = members(counts, codes, group)
    return np.asarray(lines if have[lines].sum() else lines[:0])


def _named(counts: Counts, codes: Any, have: Whole, chosen: NDArray[np.bool_]) -> Iterator[Group]:
    names = [axis.name for axis in counts.sensitive]
    for line in np.flatnonzero(chosen & (have.sum(axis=1) > 0)).tolist():
        yield _coarser(counts, codes[line], names)


def _coarser(counts: Counts, codes: Any, names: list[str]) -> Group:
    values = zip(counts.sensitive, codes.tolist(), strict=True)
    return Group({axis.name: axis.values[code] for axis, code in values if axis.name in names})


def _listed(groups: tuple[Group, ...]) -> str:
    more = [f"{len(groups) - NAMED:,} more groups"] if len(groups) > NAMED else []
    return in_words([*(f"({group})" for group in groups[:NAMED]), *more])


def _written(given: Any, what: str) -> tuple[list[tuple[Group, Any]], str | None]:
    """Pairs of groups and numbers, from a mapping or from what ``to_dict`` wrote."""
    source = None
    if isinstance(given, Mapping) and set(given) == {"source", what}:
        given, source = given[what], given["source"]
    pairs: Iterable[Any] = given.items() if isinstance(given, Mapping) else given
    try:
        read = [(Group.parse(str(pattern)), number) for pattern, number in pairs]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`target_{what}` takes a table, or groups with their {what}, not {given!r}: {error}"
        ) from None
    if not read or any(not group for group, _ in read):
        raise InputError(
            f"`target_{what}` must name at least one group, and no pattern of all rows."
        )
    return read, source


def _by_label(group: Group, given: Any) -> ByLabel:
    try:
        pairs = list(given.items() if isinstance(given, Mapping) else given)
        rates = [(MISSING if v is None else as_value(v), float(rate)) for v, rate in pairs]
    except (TypeError, ValueError):
        raise InputError(
            f"give the rates of {group} by label, as in {{'yes': 0.3, 'no': 0.7}}, not {given!r}."
        ) from None
    for label, rate in rates:
        a_number(f"`target_rates` of {group}, {label}", rate, at_least=0)
        if rate > 1:
            raise InputError(f"the rate of {label} in {group} must be at most 1, not {rate:g}.")
    return tuple(rates)
