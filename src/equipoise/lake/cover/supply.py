"""Supply of needed rows with its costs, and the limits of a selection."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.validate import at_least

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from equipoise.lake.cover.worth import Real, Whole

CLOSE = 1e-9
"""Relative difference below which costs count as equal, since sums of floats are rounded."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Supply:
    """Rows of each cell (column) in each table (line), with the need and the costs.

    The need must not exceed the rows of all tables. A table has a fixed cost and a cost per row.

    >>> supply = Supply(
    ...     rows=np.array([[3, 0], [2, 4]]),
    ...     need=np.array([4, 1]),
    ...     fixed=np.ones(2),
    ...     per_row=np.array([0.5, 0.1]),
    ... )
    >>> take = supply.fill([0, 1])
    >>> take
    array([[2, 0],
           [2, 1]])
    >>> supply.cost(take), supply.covered(take)
    (3.3, True)
    """

    rows: Whole
    need: Whole
    fixed: Real
    per_row: Real

    @functools.cached_property
    def same_row_cost(self) -> bool:
        """Whether a row costs the same in all tables."""
        return bool((self.per_row == self.per_row[0]).all())

    def trimmed(self) -> tuple[Supply, Whole, Whole]:
        """Restrict the supply to tables and cells with needed rows."""
        rows = np.minimum(self.rows, self.need)
        tables, cells = np.flatnonzero(rows.any(axis=1)), np.flatnonzero(self.need)
        few = replace(self.of(tables), rows=rows[np.ix_(tables, cells)], need=self.need[cells])
        return few, tables, cells

    def of(self, tables: Whole) -> Supply:
        """Restrict the supply to some tables."""
        return replace(
            self, rows=self.rows[tables], fixed=self.fixed[tables], per_row=self.per_row[tables]
        )

    def cost(self, take: Whole) -> float:
        """Return the cost of some rows."""
        return float(self.fixed[take.any(axis=1)].sum() + self.per_row @ take.sum(axis=1))

    def fill(self, tables: Iterable[int], need: Whole | None = None) -> Whole:
        """Take the rows of each cell from the cheapest of some tables, as far as they have them."""
        chosen = np.array(sorted(tables), dtype=np.int64)
        chosen = chosen[np.argsort(self.per_row[chosen], kind="stable")]
        most = self.need if need is None else need
        reach = np.minimum(np.cumsum(self.rows[chosen], axis=0), most)
        take = np.zeros_like(self.rows)
        take[chosen] = np.diff(reach, axis=0, prepend=0)
        return take

    def covered(self, take: Whole) -> bool:
        """Whether rows meet the whole need."""
        return bool((take.sum(axis=0) == self.need).all())


@dataclass(frozen=True)
class CoverLimits:
    """Limits of a selection: its cost, the share of one table, and the number of tables."""

    budget: float = math.inf
    share: float = math.inf
    tables: float = math.inf

    @classmethod
    def of(
        cls, *, budget: float | None, max_share: float | None, max_tables: int | None
    ) -> CoverLimits:
        """Make limits, and refuse invalid ones."""
        if budget is not None:
            at_least("budget", budget, 0)
        if max_tables is not None:
            at_least("max_tables", max_tables, 1, whole=True)
        if max_share is not None and not 0 < max_share <= 1:
            raise InputError(f"max_share must be above 0 and at most 1, not {max_share}.")
        return cls(
            math.inf if budget is None else float(budget),
            math.inf if max_share is None or max_share == 1 else float(max_share),
            math.inf if max_tables is None else int(max_tables),
        )

    def allow(self, supply: Supply, take: Whole) -> bool:
        """Whether a selection stays within the limits and the need."""
        within = self.allow_cost(supply.cost(take), take)
        return within and bool((take.sum(axis=0) <= supply.need).all())

    def allow_cost(self, cost: float, take: Whole) -> bool:
        """Whether a selection stays within the limits; its cost may be rounded."""
        return bool(
            cost <= self.budget * (1 + CLOSE)
            and take.any(axis=1).sum() <= self.tables
            and take.sum(axis=1).max(initial=0) <= self.most(int(take.sum()))
        )

    def most(self, total: int) -> int:
        """Return the maximum number of rows from one table, given the total."""
        return total if self.share >= 1 else math.floor(self.share * total * (1 + CLOSE))


def whole_numbers(name: str, values: ArrayLike, axes: int) -> Whole:
    """Convert to whole numbers of rows, and refuse other values."""
    given = np.asarray(values)
    if given.ndim != axes:
        raise InputError(f"{name} must have {axes} axes; it has the shape {given.shape}.")
    whole = given.astype(np.int64)
    if (whole != given).any() or (whole < 0).any():
        raise InputError(f"{name} must hold whole numbers of zero or more.")
    return whole
