"""The arrays a plan is made of: what each cell has, may have, and costs to change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole: TypeAlias = NDArray[np.int64]
    Real: TypeAlias = NDArray[np.float64]

UNLIMITED = 2**50
"""Stands for no upper bound on rows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """One line a finest group, one column a label.

    Attributes
    ----------
    have
        How many rows each cell has.
    least, most
        How few and how many it may have in the end.
    add, drop
        What adding and deleting one of its rows costs.
    group_least, group_most
        How few and how many rows each group may have in the end.
    """

    have: Whole
    least: Whole
    most: Whole
    add: Real
    drop: Real
    group_least: Whole
    group_most: Whole

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
        group_most: Any = UNLIMITED,
    ) -> Cells:
        """Fill in single numbers for whole arrays.

        >>> Cells.of([[160, 290], [40, 110]], least=[[160, 290], [40, 110]]).most.shape
        (2, 2)
        """
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
            group_most=whole(group_most, rows.shape[:1]),
        )

    def __len__(self) -> int:
        return len(self.have)

    @property
    def labels(self) -> int:
        """How many labels there are."""
        return int(self.have.shape[1])

    def take(self, lines: Any) -> Cells:
        """Some of the groups, or some of them several times."""
        return replace(self, **{name: getattr(self, name)[lines] for name in _ARRAYS})

    def near(self, rows: Whole) -> Cells:
        """The same, but for rows not far from those: what a solver should look at."""
        far = np.maximum(rows // 5, 50)
        return replace(
            self,
            least=np.maximum(self.least, np.minimum(rows, self.have) - far),
            most=np.minimum(self.most, np.maximum(rows, self.have) + far),
        )

    def cost(self, rows: Whole) -> Real:
        """What it costs each group to have those rows instead."""
        change = rows - self.have
        return np.asarray(
            (np.where(change > 0, self.add, 0.0) * change).sum(axis=1)
            - (np.where(change < 0, self.drop, 0.0) * change).sum(axis=1)
        )

    def __post_init__(self) -> None:
        if self.have.sum(dtype=float) > UNLIMITED / 1000:
            raise InputError("these are more rows than can be planned for, 1,125,899,906,842.")


_ARRAYS = tuple(Cells.__dataclass_fields__)


@dataclass(frozen=True, eq=False)
class Band:
    """Between which shares of its group each label must lie: a line a group, a column a label."""

    low: Real
    high: Real

    @classmethod
    def around(cls, rates: Any, tolerance: float, *, on: str = "ub") -> Band:
        """The band around target rates: relative (``"ub"``) or absolute (``"rate"``).

        >>> Band.around([[0.25, 0.75]], 0.2).high.round(2)
        array([[0.3, 0.9]])
        """
        rates = np.atleast_2d(np.asarray(rates, float))
        return cls.between(rates, rates, tolerance, on=on)

    @classmethod
    def between(cls, least: Any, most: Any, tolerance: float, *, on: str = "ub") -> Band:
        """The band around every target between two, for bounds that hold for all of them."""
        least, most = (
            np.atleast_2d(np.asarray(least, float)),
            np.atleast_2d(np.asarray(most, float)),
        )
        if on == "ub":
            return cls(np.maximum(least * (1 - tolerance), 0.0), most * (1 + tolerance))
        return cls(np.maximum(least - tolerance, 0.0), most + tolerance)

    def lines(self, n: int) -> Band:
        """The same band with a line for each group."""
        shape = (n, self.low.shape[1])
        return Band(np.broadcast_to(self.low, shape), np.broadcast_to(self.high, shape))

    def take(self, lines: Any) -> Band:
        """The lines of some groups."""
        return Band(self.low[lines], self.high[lines])
