"""What tables offer of what is needed, what it costs, and what a selection must not exceed."""

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
"""Costs and worths that differ by this share of themselves are the same."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Supply:
    """Tables (lines) with rows of cells (columns), and what is needed of them.

    Attributes
    ----------
    rows
        How many rows of each cell each table offers.
    need
        How many rows of each cell are to be had, no more than the tables have.
    fixed, per_row
        What it costs to open each table, and to take a row from it.
    price
        What a row of each cell is worth.

    Examples
    --------
    >>> supply = Supply(
    ...     rows=np.array([[3, 0], [2, 4]]),
    ...     need=np.array([4, 1]),
    ...     fixed=np.ones(2),
    ...     per_row=np.array([0.5, 0.1]),
    ...     price=np.ones(2),
    ... )
    >>> take = supply.fill([0, 1])
    >>> take
    array([[2, 0],
           [2, 1]])
    >>> supply.cost(take), supply.worth(take), supply.covered(take)
    (3.3, 5.0, True)
    """

    rows: Whole
    need: Whole
    fixed: Real
    per_row: Real
    price: Real

    @functools.cached_property
    def same_row_cost(self) -> bool:
        """Whether it is all one from which open table a row is taken."""
        return bool((self.per_row == self.per_row[0]).all())

    def trimmed(self) -> tuple[Supply, Whole, Whole]:
        """Only what matters: tables and cells with rows that are needed."""
        rows = np.minimum(self.rows, self.need)
        tables, cells = np.flatnonzero(rows.any(axis=1)), np.flatnonzero(self.need)
        few = replace(self.of(tables), rows=rows[np.ix_(tables, cells)], need=self.need[cells])
        return replace(few, price=self.price[cells]), tables, cells

    def of(self, tables: Whole) -> Supply:
        """Only some of the tables."""
        return replace(
            self, rows=self.rows[tables], fixed=self.fixed[tables], per_row=self.per_row[tables]
        )

    def cost(self, take: Whole) -> float:
        """What it costs to take rows."""
        return float(self.fixed[take.any(axis=1)].sum() + self.per_row @ take.sum(axis=1))

    def worth(self, take: Whole) -> float:
        """What rows are worth."""
        return float(self.price @ take.sum(axis=0))

    def fill(self, tables: Iterable[int], need: Whole | None = None) -> Whole:
        """The rows of each cell from the cheapest of some tables, as far as they have them."""
        chosen = np.array(sorted(tables), dtype=np.int64)
        chosen = chosen[np.argsort(self.per_row[chosen], kind="stable")]
        reach = np.minimum(
            np.cumsum(self.rows[chosen], axis=0), self.need if need is None else need
        )
        take = np.zeros_like(self.rows)
        take[chosen] = np.diff(reach, axis=0, prepend=0)
        return take

    def covered(self, take: Whole) -> bool:
        """Whether rows are all that are needed."""
        return bool((take.sum(axis=0) == self.need).all())


@dataclass(frozen=True)
class CoverLimits:
    """What a selection must not exceed: its cost, a table's share of the rows, its tables.

    >>> limits = CoverLimits.of(budget=None, max_share=0.3, max_tables=None)
    >>> limits.most(11)
    3
    """

    budget: float = math.inf
    share: float = math.inf
    tables: float = math.inf

    @classmethod
    def of(
        cls, *, budget: float | None, max_share: float | None, max_tables: int | None
    ) -> CoverLimits:
        """The limits that were asked for; what makes none is refused."""
        if budget is not None:
            at_least("budget", budget, 0)
        if max_tables is not None:
            at_least("max_tables", max_tables, 1, whole=True)
        if max_share is not None and not 0 < max_share <= 1:
            raise InputError(f"max_share must be above 0 and at most 1, not {max_share}.")
        return cls(
            math.inf if budget is None else float(budget),
            math.inf if max_share in {None, 1} else float(max_share or 0),
            math.inf if max_tables is None else int(max_tables),
        )

    def allow(self, supply: Supply, take: Whole) -> bool:
        """Whether a selection takes no more, and no more than is needed."""
        within = self.allow_cost(supply.cost(take), take)
        return within and bool((take.sum(axis=0) <= supply.need).all())

    def allow_cost(self, cost: float, take: Whole) -> bool:
        """Whether a selection of some cost takes no more; only the cost may be off by rounding."""
        return bool(
            cost <= self.budget * (1 + CLOSE)
            and take.any(axis=1).sum() <= self.tables
            and take.sum(axis=1).max(initial=0) <= self.most(int(take.sum()))
        )

    def most(self, total: int) -> int:
        """How many rows one table may give of so many."""
        return total if self.share >= 1 else math.floor(self.share * total * (1 + CLOSE))


def whole_numbers(name: str, values: ArrayLike, axes: int) -> Whole:
    """Numbers of rows; what is none is refused.

    >>> whole_numbers("need", [3.0, 4.0], axes=1)
    array([3, 4])
    """
    given = np.asarray(values)
    if given.ndim != axes:
        raise InputError(f"{name} must have {axes} axes; it has the shape {given.shape}.")
    whole = given.astype(np.int64)
    if (whole != given).any() or (whole < 0).any():
        raise InputError(f"{name} must hold whole numbers of zero or more.")
    return whole
