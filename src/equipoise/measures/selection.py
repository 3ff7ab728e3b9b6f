"""Selection rates of categories, and their ratios to the highest rate.

Laws and guidelines on selection compare categories of one table with each other: those of sex, of
race, or of both. Rows whose category is unknown are counted and are no category.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from equipoise.measures.four_fifths import ROUNDING, RULE
from equipoise.measures.measure import Floats, ratio
from equipoise.measures.measurement import Measurement
from equipoise.measures.uncertainty.comparisons import fisher_p, normal_p, pooled_z
from equipoise.measures.uncertainty.intervals import Interval, ratio_interval
from equipoise.values import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from equipoise.lattice import Group

Eligible: TypeAlias = Literal["all", "sound"]
"""Which categories may be the one that others are compared with: all, or those with enough rows to
prove anything, as in :mod:`equipoise.measures.four_fifths`, and with a share that is not small."""


class RateComparison(NamedTuple):
    """A category compared with the best-off one."""

    z: float
    """Difference of the rates in standard deviations, negative if this category's is lower."""
    p_z: float
    p_exact: float
    """p-value of Fisher's exact test."""
    selections: int | None
    """Selections more (or fewer, if negative) of this category that would bring its ratio to the
    limit (or below it), while nothing else changes; None if no number would."""
    moved: int | None
    """The same if these were taken from (or given to) the best-off category."""


@dataclass(frozen=True, eq=False)
class SelectionTable:
    """The categories of some attributes, in the order of their values."""

    measured: Measurement
    label: int
    """Number of the label that stands for a selection."""
    attributes: tuple[str, ...]
    line: NDArray[np.int64]
    """The line of each category in the lattice."""
    unknown: int | None
    """Rows whose category is unknown; None if that is suppressed."""
    exclude_below: float
    eligible: Eligible

    @classmethod
    def of(
        cls,
        measured: Measurement,
        label: int,
        attributes: Sequence[str],
        *,
        exclude_below: float = 0.0,
        eligible: Eligible = "all",
    ) -> SelectionTable:
        """Find the categories of some attributes that have rows."""
        axes, codes = measured.counts.sensitive, measured.lattice.codes
        fixed = codes != np.array(measured.lattice.sizes)
        wanted = np.array([axis.name in attributes for axis in axes])
        line = np.flatnonzero((fixed == wanted).all(axis=1))
        known = np.ones(len(line), np.bool_)
        for position, axis in enumerate(axes):
            if wanted[position] and MISSING in axis.codes:
                known &= codes[line, position] != axis.codes[MISSING]
        hidden = measured.suppressed
        told = hidden is None or not hidden[line[~known], label].any()
        unknown = measured.counts.n - int(measured.n_group[line[known]].sum()) if told else None
        return cls(
            measured, label, tuple(attributes), line[known], unknown, exclude_below, eligible
        )

    def __len__(self) -> int:
        return len(self.line)

    def group(self, place: int) -> Group:
        """The group of a category."""
        return self.measured.group(int(self.line[place]))

    def values(self, place: int) -> tuple[str, ...]:
        """The values of a category, in the order of the attributes."""
        group = self.group(place)
        return tuple(str(group[name]) for name in self.attributes)

    # -------------------------------------------------------------------- numbers

    @functools.cached_property
    def suppressed(self) -> NDArray[np.bool_]:
        """Which categories are hidden."""
        hidden = self.measured.suppressed
        if hidden is None:
            return np.zeros(len(self.line), np.bool_)
        return np.asarray(hidden[self.line, self.label])

    @functools.cached_property
    def n(self) -> NDArray[np.int64]:
        """Rows of each category."""
        return np.asarray(self.measured.n_group[self.line])

    @functools.cached_property
    def selected(self) -> NDArray[np.int64]:
        """Selected rows of each category."""
        return np.asarray(self.measured.n_cell[self.line, self.label])

    @functools.cached_property
    def rate(self) -> Floats:
        """Selection rate; nan where it is hidden."""
        return np.where(
            self.suppressed, np.nan, ratio(self.selected.astype(float), self.n.astype(float))
        )

    @functools.cached_property
    def share(self) -> Floats:
        """Share of all rows; nan where it is hidden."""
        return np.where(self.suppressed, np.nan, self.n / self.measured.counts.n)

    @functools.cached_property
    def small(self) -> NDArray[np.bool_]:
        """Which categories are a smaller share of all rows than may be left out."""
        return np.asarray(self.share < self.exclude_below)

    @functools.cached_property
    def best(self) -> int:
        """The category with the highest rate, or −1; the first of equal ones."""
        may_be = ~self.suppressed
        if self.eligible == "sound":
            sound = may_be & ~self.too_small
            large = sound & ~self.small
            may_be = next((mask for mask in (large, sound) if mask.any()), may_be)
        return _highest(self.rate, may_be)

    @functools.cached_property
    def ratio(self) -> Floats:
        """Impact ratio: each rate over the highest one; nan if that is 0."""
        return self._over(self.best)

    @functools.cached_property
    def ratio_without_small(self) -> Floats:
        """The same with small categories left out; theirs is nan."""
        best = _highest(self.rate, ~self.small & ~self.suppressed)
        return np.where(self.small, np.nan, self._over(best))

    def _over(self, best: int) -> Floats:
        if best < 0:
            return np.full(len(self.line), np.nan)
        return ratio(self.rate, np.full(len(self.line), self.rate[best]))

    @functools.cached_property
    def interval(self) -> Interval | None:
        """The interval of each impact ratio; that of the best-off category itself is 1."""
        if self.measured.interval is None or self.best < 0:
            return None
        rate, n, best = self.rate, self.n.astype(float), self.best
        low, high = ratio_interval(
            rate, n, rate[best], n[best], confidence=self.measured.options.confidence
        )
        itself, unknown = np.arange(len(self.line)) == best, np.isnan(self.ratio)
        low, high = (np.where(unknown, np.nan, np.where(itself, 1.0, x)) for x in (low, high))
        return Interval(low, high)

    @functools.cached_property
    def below(self) -> NDArray[np.bool_]:
        """Which impact ratios are below four fifths."""
        return np.asarray(self.ratio < RULE - ROUNDING)

    @functools.cached_property
    def too_small(self) -> NDArray[np.bool_]:
        """Which categories have too few rows to prove anything."""
        return np.asarray(self.measured.unsound[self.line, self.label])

    def compare(self, place: int) -> RateComparison | None:
        """Compare a category with the best-off one; None for that itself, and where it is hidden."""
        if place == self.best or self.best < 0 or self.suppressed[place]:
            return None
        x1, n1 = int(self.selected[place]), int(self.n[place])
        x0, n0 = int(self.selected[self.best]), int(self.n[self.best])
        z = pooled_z(x1, n1, x0, n0)
        selections, moved = _changes(x1, n1, x0, n0)
        return RateComparison(z, normal_p(z), fisher_p(x1, n1, x0, n0), selections, moved)


def _highest(rate: Floats, may_be: NDArray[np.bool_]) -> int:
    rates = np.where(may_be & np.isfinite(rate), rate, -1.0)
    return int(np.argmax(rates)) if len(rates) and rates.max() >= 0 else -1


def _changes(x1: int, n1: int, x0: int, n0: int) -> tuple[int | None, int | None]:
    """How many selections would change on which side of four fifths a ratio is, in whole numbers.

    The ratio is below the limit if 5·x1·n0 < 4·x0·n1.
    """
    if not x0:
        return None, None
    lack = 4 * x0 * n1 - 5 * x1 * n0
    if lack > 0:
        # x1 and its counterpart x0 stay within the numbers of rows, since 4/5 of a rate is at most it.
        return -(-lack // (5 * n0)), -(-lack // (5 * n0 + 4 * n1))
    fewer, moved = -lack // (5 * n0) + 1, -lack // (5 * n0 + 4 * n1) + 1
    possible = fewer <= x1, moved <= x1 and x0 + moved <= n0
    return -fewer if possible[0] else None, -moved if possible[1] else None
