"""Where the smallest tolerance of a request is likely to be, so that few plans need be tried."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise.plans.clock import is_late
from equipoise.plans.reach import allowed_rows
from equipoise.plans.solvers.overlap.own import fits_at

if TYPE_CHECKING:
    from equipoise.plans.problem import Problem

LARGE = 60
"""Number of cells of a table above which a good guess of the tolerance ends the search."""

JUMP, LOWER, PROBES = 0.3, 0.8, 2
"""Jump of the logarithm of rows from one tolerance to the next after which a lower one is tried, how
much lower, and how often."""

ABOVE_ONE = 0.15
"""Relative width of the bracket of tolerances above one, which only limit what groups have too much
of, in larger tables."""

REAL_WIDTH, LEAST = 2e-3, 1e-4
"""Relative width of the bracket of the tolerance that real-valued rows need, and a tolerance below
which it makes no difference."""


class Guess:
    """Guesses of the smallest tolerance.

    First what real-valued rows need at the usual label frequencies, then by the rows that plans
    lacked or left: the logarithm of what a limit counts falls about linearly with the tolerance.
    """

    def __init__(self, problem: Problem, low: float, high: float, width: float) -> None:
        limit = problem.coupling[0] if len(problem.coupling) == 1 else None
        self.start = 0.0 if limit is None else 1.0 + abs(allowed_rows(problem, limit))
        self.large, self.width = problem.have.size > LARGE, width
        self.failed, self.high = [low], high
        self.heights: dict[
            bool, float
        ] = {}  # at the highest tolerance without a plan, and with one
        self.last: bool | None = None  # whether there was a plan
        self.widths: list[float] = []
        self.probes = PROBES
        real = needed_by_real_rows(problem, low, high) * (1 + width / 2)
        self.first = [real, real / 2 if real > 1 else real * (1 - width)]

    @property
    def low(self) -> float:
        """The highest tolerance below the best one for which no plan was found."""
        return max((each for each in self.failed if each < self.high), default=0.0)

    def saw(self, tolerance: float, short: float, *, fits: bool) -> None:
        """Take note of a plan that fits or not, and of rows that it lacks; below zero: leaves."""
        if fits:
            self.high = min(self.high, tolerance)
        else:
            self.failed.append(tolerance)
        if fits == self.last and (not fits) in self.heights:
            self.heights[not fits] /= 2  # this end would otherwise stay for long
        if self.start and math.isfinite(short):
            self.heights[fits] = math.log(max(self.start + short, 1.0) / self.start)
        self.last = fits

    def next(self) -> float | None:
        """The next tolerance to try; None if the best is near enough to one without a plan."""
        low, high = self.low, self.high
        while self.first:
            first = self.first.pop(0)
            if low < first < high:
                return first
        if self.settled:
            return self.probe()
        self.widths.append(high - low)
        slow = len(self.widths) > 2 and self.widths[-1] > self.widths[-3] / 2
        if len(self.heights) < 2 or slow:
            self.widths = []
            return (low + high) / 2
        part = self.heights[False] / max(self.heights[False] - self.heights[True], 1e-12)
        # A little more than expected, so that there is a plan if the guess is good.
        aim = (low + part * (high - low)) * (1 + self.width / 4)
        return min(max(aim, low + self.width / 2 * high), high * (1 - 0.9 * self.width))

    @property
    def settled(self) -> bool:
        """Whether the bracket is narrow enough."""
        good = bool(self.last) and len(self.heights) > 1 and len(self.widths) > 1
        width = self.width * (2.0 if good and self.large else 1.0)
        width = ABOVE_ONE if self.large and self.high > 1 else width
        return self.high - self.low <= width * max(self.high, 1e-3)

    def probe(self) -> float | None:
        """A lower tolerance where far more rows were lacking than so little less of it explains.

        A search that rounds badly at one tolerance may find a plan at a smaller one.
        """
        jump = self.heights.get(False, 0.0) - self.heights.get(True, 0.0)
        asked = self.failed[0]
        if not self.probes or jump < JUMP or self.high > 1 or LOWER * self.high <= asked:
            return None
        self.probes -= 1
        self.widths = []
        return LOWER * self.high


def needed_by_real_rows(problem: Problem, low: float, high: float) -> float:
    """The tolerance that real-valued rows need at the label frequencies as they are."""
    while high - low > REAL_WIDTH * max(high, LEAST) and not is_late():
        middle = (low + high) / 2
        trial = replace(problem, request=problem.request.widened(middle))
        low, high = (low, middle) if fits_at(trial, problem.base) else (middle, high)
    return high
