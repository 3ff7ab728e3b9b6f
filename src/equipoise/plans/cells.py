"""The arrays a plan is computed from: rows of each cell, bounds on them, and costs of changes."""

from __future__ import annotations

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

    def contain(self, rows: Whole) -> bool:
        """Whether rows are within the bounds of all cells and groups."""
        inside = bool((rows >= self.least).all() and (rows <= self.most).all())
        return inside and bool((rows.sum(axis=1) >= self.group_least).all())

    def cost(self, rows: Whole) -> Real:
        """The cost of each group when it changes to the given rows."""
        change = rows - self.have
        return np.asarray(
            (np.where(change > 0, self.add, 0.0) * change).sum(axis=1)
            - (np.where(change < 0, self.drop, 0.0) * change).sum(axis=1)
        )

    def total_cost(self, rows: Whole) -> float:
        """The cost of all groups together."""
        return float(self.cost(rows).sum())

    def __post_init__(self) -> None:
        # Larger counts would come near UNLIMITED, which stands for no bound.
        if self.have.sum(dtype=float) > UNLIMITED / 1000:
            raise InputError(
                "these are more rows than can be planned for; the maximum is 1,125,899,906,842."
            )


@dataclass(frozen=True, eq=False)
class Band:
    """The range of shares of each label in its group: a line per group, a column per label."""

    low: Real
    high: Real

    @classmethod
    def around(cls, rates: Any, tolerance: Any, *, most: Any = None, on: str = "ub") -> Band:
        """The band around target rates: relative (``"ub"``) or absolute (``"rate"``).

        With ``most`` it is the union of the bands around all targets from ``rates`` to ``most``,
        for bounds that hold for all of them.

        >>> Band.around([[0.25, 0.75]], 0.2).high.round(2)
        array([[0.3, 0.9]])
        """
        least = np.atleast_2d(np.asarray(rates, float))
        most = least if most is None else np.atleast_2d(np.asarray(most, float))
        if on == "ub":
            return cls(np.maximum(least * (1 - tolerance), 0.0), most * (1 + tolerance))
        return cls(np.maximum(least - tolerance, 0.0), most + tolerance)

    def lines(self, n: int) -> Band:
        """Repeat the band for each of n groups."""
        shape = (n, self.low.shape[1])
        return Band(np.broadcast_to(self.low, shape), np.broadcast_to(self.high, shape))

    def take(self, lines: Any) -> Band:
        """Select the lines of some groups."""
        return Band(self.low[lines], self.high[lines])
