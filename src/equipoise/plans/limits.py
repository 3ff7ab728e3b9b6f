"""Limits on rows: linear functions of the cells after a repair, with bounds."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from equipoise.plans.cells import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from equipoise.plans.cells import Real, Whole

Kind: TypeAlias = Literal[
    "available", "at_least", "at_least_each", "min_rows", "max_rows", "group_shares"
]

ALMOST_A_ROW = 1 - 1e-5
"""The largest distance below a row that solvers use, because they may exceed a bound by a little."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Limit:
    """A linear limit: ``low`` ≤ Σ factor·rows ≤ ``high``, over some cells.

    The rows are those after the repair or, if ``of_additions``, the rows that are added. Factors
    are 1, except for a share of the table: rows of the group − share·all rows. Solvers need only
    ``coefficients``, ``low``, ``high`` and ``of_additions``; ``slack`` decides in whole numbers.
    """

    kind: Kind  # the parameter that set it
    pattern: str
    rows: int = 0  # the bound that the request states, if it is a number of rows
    cells: NDArray[np.intp]  # numbers of the cells that the pattern names
    least: Fraction | None = None  # exact bounds of the linear function; both: ± less than a row
    most: Fraction | None = None
    share: Fraction = Fraction(0)  # of all rows, which is subtracted
    everything: int = 0  # number of all cells, if a share is subtracted
    asked: str = ""  # the text of the request that it comes from, if that is not the pattern

    @property
    def of_additions(self) -> bool:
        """Whether it limits the rows that are added, and not those after the repair."""
        return self.kind == "available"

    @property
    def binding(self) -> bool:
        """Whether some table could break it; a minimum of no rows excludes none."""
        return self.share > 0 or self.most is not None or bool(self.least and self.least > 0)

    @property
    def low(self) -> float:
        """The lower bound for a solver; minus infinity if there is none."""
        if self.least is None:
            return -math.inf
        return float(self.least) if self.most is None else -self.high

    @property
    def high(self) -> float:
        """The upper bound for a solver; infinity if there is none."""
        if self.most is None:
            return math.inf
        return float(self.most) if self.least is None else min(float(self.most), ALMOST_A_ROW)

    @functools.cached_property
    def coefficients(self) -> tuple[NDArray[np.intp], Real]:
        """The numbers of the cells that it depends on, and the factor of each."""
        if not self.share:
            return self.cells, np.ones(len(self.cells))
        factors = np.full(self.everything, -float(self.share))
        factors[self.cells] = float(1 - self.share)
        return np.arange(self.everything), factors

    def value(self, rows: Whole, have: Whole) -> Fraction:
        """The exact value of the linear function."""
        chosen = rows.ravel()[self.cells]
        if self.of_additions:
            chosen = (chosen - have.ravel()[self.cells]).clip(0)
        return int(chosen.sum()) - self.share * int(rows.sum())

    def slack(self, rows: Whole, have: Whole) -> Fraction:
        """What is left until the nearest bound; negative if it is broken."""
        value = self.value(rows, have)
        below = [] if self.least is None else [value - self.least]
        above = [] if self.most is None else [self.most - value]
        return min(below + above)

    def measured(self, rows: Whole, have: Whole, aside: int) -> float:
        """The quantity that the limit is stated in: rows, or a share of them."""
        if self.share:
            return int(rows.ravel()[self.cells].sum()) / max(int(rows.sum()), 1)
        return int(self.value(rows, have)) + (aside if self.kind in ("min_rows", "max_rows") else 0)

    def reach(self, rows: int) -> float:
        """More rows than this limit makes a plan add to a table of so many rows."""
        if not self.share:
            return 4.0 * self.rows if self.rows < UNLIMITED / 1e3 else 0.0
        return 4.0 * rows / float(min(self.share, 1 - self.share))

    @property
    def stated(self) -> float:
        """The bound as it is stated: a number of rows, or a share."""
        return float(self.share) if self.share else self.rows

    @property
    def words(self) -> str:
        """The limit as part of a sentence."""
        # Plan files contain these words and are compared with them, so they must not change.
        if self.kind == "available":
            return f"at most {self.rows:,} rows of {self.pattern} can be added"
        if self.kind in ("at_least", "at_least_each"):
            return f"at least {self.rows:,} rows of {self.pattern}"
        if self.kind == "group_shares":
            return f"{self._side}{float(self.share):.6g} of all rows are {self.pattern}{self._near}"
        least = "at least" if self.kind == "min_rows" else "at most"
        return f"{least} {self.rows:,} rows in all"

    @property
    def _side(self) -> str:
        if self.least is not None and self.most is not None:
            return ""
        return "at most " if self.least is None else "at least "

    @property
    def _near(self) -> str:
        return ", within a row" if self.least is not None and self.most is not None else ""


def limit_rows(
    kind: Kind, pattern: str, rows: int, cells: NDArray[np.intp], *, aside: int = 0
) -> Limit:
    """A limit on a number of rows; ``aside`` rows outside the cells count, too."""
    bound = Fraction(rows - aside)
    if kind in ("available", "max_rows"):
        return Limit(kind=kind, pattern=pattern, rows=rows, cells=cells, most=bound)
    return Limit(kind=kind, pattern=pattern, rows=rows, cells=cells, least=bound)


def limit_share(
    pattern: str, share: float, tolerance: float, cells: NDArray[np.intp], everything: int
) -> Iterator[Limit]:
    """The limits that keep a group's share of all rows within a tolerance of a number.

    Without a tolerance the group must be less than a row away from its exact share.
    """
    exact, room = Fraction(repr(float(share))), Fraction(repr(float(tolerance)))
    limit = Limit(kind="group_shares", pattern=pattern, cells=cells, everything=everything)
    if not room:
        # In units of 1/denominator the distance is whole, so "less than a row" is a closed limit.
        most = 1 - Fraction(1, exact.denominator)
        yield replace(limit, share=exact, least=-most, most=most)
        return
    if exact - room > 0:
        yield replace(limit, share=exact - room, least=Fraction(0))
    if exact + room < 1:
        yield replace(limit, share=exact + room, most=Fraction(0))
