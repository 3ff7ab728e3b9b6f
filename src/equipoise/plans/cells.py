"""The arrays a plan is computed from: rows of each cell, bounds on them, and costs of changes."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole: TypeAlias = NDArray[np.int64]
    Real: TypeAlias = NDArray[np.float64]

UNLIMITED = 2**50
"""No upper bound on rows. Sums of many of these still fit in 64 bits, and in floats exactly."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """Arrays with one line per finest group and one column per label."""

    have: Whole  # present rows
    least: Whole  # bounds on the rows after the repair
    most: Whole
    add: Real  # cost of adding and of deleting one row
    drop: Real
    group_least: Whole  # minimum rows of each group after the repair

    @classmethod
    def of(
        cls,
        have: Any,
        *,
        least: Any = 0,
        most: Any = UNLIMITED,
        add: Any = 1.0,
        drop: Any = 1.0,
        group_least: Any = 1,
    ) -> Cells:
        """Make cells from array-likes; single numbers fill whole arrays."""
        rows = np.atleast_2d(np.asarray(have, np.int64))

        def whole(value: Any, shape: tuple[int, ...]) -> Whole:
            return np.ascontiguousarray(np.broadcast_to(np.asarray(value, np.int64), shape))

        def real(value: Any) -> Real:
            return np.ascontiguousarray(np.broadcast_to(np.asarray(value, float), rows.shape))

        return cls(
            have=rows,
            least=whole(least, rows.shape),
            most=whole(most, rows.shape),
            add=real(add),
            drop=real(drop),
            group_least=whole(group_least, rows.shape[:1]),
        )

    def __len__(self) -> int:
        return len(self.have)

    @property
    def labels(self) -> int:
        """Number of labels."""
        return int(self.have.shape[1])

    def take(self, lines: Any) -> Cells:
        """Select groups, possibly repeatedly."""
        return replace(self, **{f.name: getattr(self, f.name)[lines] for f in fields(self)})

    def near(self, rows: Whole) -> Cells:
        """Narrow the bounds to the neighbourhood of some rows, to keep a model small."""
        far = np.maximum(rows // 5, 50)  # room for the corrections that balancing labels needs
        return replace(
            self,
            least=np.maximum(self.least, np.minimum(rows, self.have) - far),
            most=np.minimum(self.most, np.maximum(rows, self.have) + far),
        )

    def bounded_as(self, other: Cells) -> bool:
        """Whether cells and groups have the same bounds as others."""
        names = ("least", "most", "group_least")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def contain(self, rows: Whole) -> bool:
        """Whether rows are within the bounds of all cells and groups."""
        inside = bool((rows >= self.least).all() and (rows <= self.most).all())
        return inside and bool((rows.sum(axis=1) >= self.group_least).all())

    def cost(self, rows: Whole | Real) -> Real:
        """The cost of each group when it changes to the given rows."""
        change = rows - self.have
        return np.asarray(
            (np.where(change > 0, self.add, 0.0) * change).sum(axis=1)
            - (np.where(change < 0, self.drop, 0.0) * change).sum(axis=1)
        )

    def total_cost(self, rows: Whole | Real) -> float:
        """The cost of all groups together."""
        return float(self.cost(rows).sum())

    @property
    def lowest_cost(self) -> float:
        """A cost that no rows are below: zero, unless some changes are paid for."""
        gain = np.minimum(self.add, 0.0) * (self.most - self.have).clip(0)
        gain += np.minimum(self.drop, 0.0) * (self.have - self.least).clip(0)
        return float(gain.sum())

    def most_changes(self, cost: float) -> tuple[float, float]:
        """How many rows a cost pays for at the lowest price: additions alone, and deletions alone."""

        def paid(prices: Real) -> float:
            if not prices.size:
                return 0.0
            return cost / float(prices.min()) if prices.min() > 0 else math.inf

        return paid(self.add[self.most > self.have]), paid(self.drop[self.least < self.have])


def refuse_too_many(rows: float) -> None:
    """Refuse counts that come near UNLIMITED, which stands for no bound."""
    if rows > UNLIMITED / 1000:
        raise InputError(
            f"{int(rows):,} rows are more than can be planned for; the maximum is 1,125,899,906,842."
        )


@dataclass(frozen=True, eq=False)
class Band:
    """The range of shares of each label in its group: a line per group, a column per label."""

    low: Real
    high: Real

    @classmethod
    def around(cls, rates: Any, tolerance: Any, *, on: str = "ub") -> Band:
        """The band around target rates: relative (``"ub"``) or absolute (``"rate"``).

        >>> Band.around([[0.25, 0.75]], 0.2).high.round(2)
        array([[0.3, 0.9]])
        """
        at = np.atleast_2d(np.asarray(rates, float))
        if on == "ub":
            return cls(np.maximum(at * (1 - tolerance), 0.0), at * (1 + tolerance))
        return cls(np.maximum(at - tolerance, 0.0), at + tolerance)

    def lines(self, n: int) -> Band:
        """Repeat the band for each of n groups."""
        shape = (n, self.low.shape[1])
        return Band(np.broadcast_to(self.low, shape), np.broadcast_to(self.high, shape))

    def take(self, lines: Any) -> Band:
        """Select the lines of some groups."""
        return Band(self.low[lines], self.high[lines])


@dataclass(frozen=True, eq=False)
class Edges:
    """The limits on each label's share of a group, as functions of the label's frequency f.

    A share lies between ``low·f + low_shift`` and ``high·f + high_shift``. There is a line per
    group and a column per label. No slope is negative, so limits rise with the frequency.
    """

    low: Real
    low_shift: Real
    high: Real
    high_shift: Real

    @classmethod
    def around(cls, ratios: Real, tolerance: float, on: str = "ub") -> Edges:
        """The limits at a tolerance around K times the frequency, relative or absolute.

        >>> edges = Edges.around(np.ones((1, 2)), 0.2)
        >>> edges.at(np.array([0.25, 0.75])).high.round(2)
        array([[0.3, 0.9]])
        """
        none = np.zeros_like(ratios)
        if on == "ub":
            return cls(ratios * max(1 - tolerance, 0.0), none, ratios * (1 + tolerance), none)
        return cls(ratios, none - tolerance, ratios, none + tolerance)

    def at(self, rates: Real, most: Real | None = None) -> Band:
        """The band at label frequencies, or the union of the bands from ``rates`` to ``most``."""
        most = rates if most is None else most
        low = np.maximum(self.low * rates + self.low_shift, 0.0)
        return Band(low, self.high * most + self.high_shift)

    def without(self, lines: Any) -> Edges:
        """The same, with no limits for the given lines."""
        free = lines[:, None]
        low, low_shift, high = (
            np.where(free, 0.0, part) for part in (self.low, self.low_shift, self.high)
        )
        return Edges(low, low_shift, high, np.where(free, 1.0, self.high_shift))

    def take(self, lines: Any) -> Edges:
        """Select the lines of some groups."""
        return Edges(**{f.name: getattr(self, f.name)[lines] for f in fields(self)})
