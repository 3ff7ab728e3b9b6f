"""The cheapest plan for two labels relative to the repaired table's own label frequencies.

With two labels there is one frequency P to search for. Its range is cut into intervals. In an interval
every group must lie in the union of the bands, and the rows of the rarer label must be a share of all
rows that lies in the interval. A multiplier puts this balance into the prices of rows, so that groups
can be solved one by one, in whole numbers: the sum of their costs is a lower bound for the interval.
Intervals with the lowest bounds are cut again. Plans are made at the most promising frequencies: the
groups are solved at two multipliers, one on each side of the balance, and are moved from one solution to
the other until the labels are balanced.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.solvers.balance import balanced_rows
from equipoise.plans.solvers.kinds import BIG, WIDER, Curves, PricedRows, kinds_of
from equipoise.plans.solvers.polish import polish
from equipoise.plans.solvers.separable import granularity

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box
    from equipoise.plans.solvers.incumbent import Incumbent

INTERVALS = 12
"""Number of intervals that the range of P is cut into first."""

PARTS = 4
"""Number of parts that an interval is cut into."""

MOST_INTERVALS = 600
"""Maximum number of intervals that are bounded; a request with a gap allows ten times as many."""

WORK = 40_000_000
"""Maximum number of groups solved, each at one multiplier in one interval, for very large tables."""

TOGETHER = 8
"""Maximum number of intervals that are cut at once."""

PLANS = 3
"""Number of intervals at whose frequencies plans are made each time."""

POLISHED = 0.01
"""Plans that cost up to this much more than the best one are improved row by row."""

NARROW = 1e-9
"""Width of an interval that is not cut any further."""

HAIR = 1e-12
"""Rounding error of the end of an interval, at most."""

SIZES = 20_000
"""Maximum number of table sizes for which it is decided whether an interval has a frequency."""

NEARBY = (16,)
"""Windows in which rows of a plan are searched for; what is further away is found in other ways."""

WIDE = 0.01
"""Width of intervals that are bounded roughly."""

IDLE = 12
"""Number of times that intervals are cut without raising the bound, before the search ends."""

GRID = np.array([0.4, 1.0, 2.0, 4.0, 16.0])
"""First multipliers, in units of a usual price of a row."""

UNEVEN = 30.0
"""Ratio of prices from which the smallest and the largest count as usual prices, too."""

INSIDE = np.array([0.2, 0.5, 0.8])
"""Places inside a bracket of multipliers that are tried beside the crossing of the tangents."""

REFINED = 3
"""How often the bracket of multipliers is narrowed."""

MARGINS = (0.1, 0.5, 2.0, 6.0)
"""Rows by which the labels of a plan may miss the frequency that it is made for."""

LARGE = 20_000
"""Rows of a table from which on the smallest margin makes no difference."""

EXACT = 1e-6
"""Rows by which a plan for a frequency that is met exactly may miss it: rounding errors of floats."""

DENOMINATOR = 10_000
"""Largest denominator of a frequency that is met exactly."""


def search_two_labels(
    problem: Problem,
    box: Box,
    found: Incumbent,
    *,
    effort: float = 1.0,
    deadline: float = math.inf,
    progress: Callable[[float], None] = lambda _: None,
) -> None:
    """Improve the best plan and its lower bound until the search is done.

    Groups must be independent but for the balance of the labels. ``effort`` scales the limit of work.
    """
    _Search(problem, box, found, effort, deadline, progress).run()


@dataclass(eq=False)
class Side:
    """The multiplier nearest to the best one on one side, with the rows of all kinds there."""

    multiplier: Real
    value: Real
    slope: Real  # rows of the rarer label beyond its share of all rows
    m: Real
    c: Real

    def rows(self, interval: int, kind: Any) -> tuple[Real, Real]:
        """The rows of every group, by label."""
        return self.m[interval][kind], self.c[interval][kind]


@dataclass(eq=False)
class Intervals:
    """Intervals of P, each with a lower bound, and the frequency of its cheapest rows."""

    low: Real
    high: Real
    bound: Real
    centre: Real

    def take(self, which: Any) -> Intervals:
        """Select intervals."""
        return Intervals(self.low[which], self.high[which], self.bound[which], self.centre[which])

    def and_also(self, other: Intervals) -> Intervals:
        """These intervals and others."""
        parts = zip(vars(self).values(), vars(other).values(), strict=True)
        return Intervals(*(np.concatenate(pair) for pair in parts))

    def cut(self) -> tuple[Real, Real]:
        """Cut every interval in four, around the frequency of its cheapest rows if that is inside."""
        width = self.high - self.low
        at = np.clip(self.centre, self.low + width / 4, self.high - width / 4)
        points = np.stack(
            [self.low, (self.low + at) / 2, at, (at + self.high) / 2, self.high], axis=1
        )
        return points[:, :-1].ravel(), points[:, 1:].ravel()

    def promising(self) -> Real:
        """Frequencies to make plans at: those of the cheapest rows, and the ends of the best interval."""
        best = np.argsort(self.bound, kind="stable")[:PLANS]
        ends = [self.low[best[:1]], self.high[best[:1]]]
        return np.unique(np.concatenate([self.centre[best], *ends]))

    def simple(self) -> Real:
        """The simplest fraction inside the best interval.

        At such a frequency alone, bands may reach the shares of two kinds of small groups: with a
        tolerance of 0.2, the band around 5/12 reaches from 1/3 to 1/2.
        """
        best = int(self.bound.argmin())
        ends = float(self.low[best]) - HAIR, float(self.high[best]) + HAIR
        found = simplest(*map(Fraction, ends))
        return np.array(
            [float(found)] if found.denominator <= DENOMINATOR and 0 < found < 1 else []
        )


@dataclass(eq=False)
class _Search:
    problem: Problem
    box: Box
    found: Incumbent
    effort: float
    deadline: float
    progress: Callable[[float], None]
    work: int = 0
    turned: float = field(init=False)  # when the last turn began

    def __post_init__(self) -> None:
        self.turned = time.monotonic()
        cells = self.problem.cells
        self.rare = int(cells.have.sum(axis=0).argmin())
        self.kinds, self.kind = kinds_of(cells, self.problem.edges, self.rare)
        self.step = granularity(np.concatenate([cells.add, cells.drop], axis=1))
        prices = np.concatenate(
            [cells.add[cells.most > cells.have], cells.drop[cells.least < cells.have]]
        )
        self.multipliers = _first_multipliers(prices[prices > 0])
        self.unit = float(self.multipliers.max()) / 16
        self.most = (
            self.effort * MOST_INTERVALS * (10 if self.problem.request.gap is not None else 1)
        )

    def run(self) -> None:
        """Cut the intervals with the lowest bounds until the bound is close enough to the cost."""
        found = self.found
        ends = np.linspace(self.box.low[self.rare], self.box.high[self.rare], INTERVALS + 1)
        open_ = self.bounded(ends[:-1], ends[1:])
        done, idle, reached = len(open_.low), 0, found.lowest
        while True:
            open_ = open_.take(open_.bound < found.cost - 1e-9)
            self.construct(open_)
            open_ = open_.take((open_.bound < found.cost - 1e-9) & self.attainable(open_))
            floor = float(open_.bound.min(initial=found.cost))
            found.bound = max(found.bound, floor)
            idle = 0 if floor > reached + max(found.gap, 1e-6) * abs(floor) / 50 else idle + 1
            reached = max(reached, floor)
            self.progress(min(1.0, done / self.most))
            if found.done or not len(open_.low) or idle > IDLE or self.spent(done):
                break
            chosen = self.chosen(open_)
            if not chosen.any():
                break
            parents = open_.take(chosen)
            parts = self.bounded(*parents.cut())
            parts.bound = np.maximum(parts.bound, np.repeat(parents.bound, PARTS))
            done += len(parts.low)
            open_ = open_.take(~chosen).and_also(parts)

    def spent(self, done: int) -> bool:
        """Whether the limit of work or time is reached."""
        if done >= self.most or self.work > WORK * max(self.effort, 0.1):
            return True
        now = time.monotonic()
        # The next turn takes about as long as the last one, and its end cannot be waited for.
        then = now if self.found.rows is None else now + 0.7 * (now - self.turned)
        self.turned = now
        self.found.timed_out |= then > self.deadline
        return self.found.timed_out

    def chosen(self, open_: Intervals) -> Any:
        """The intervals to cut: those with the lowest bounds, which hold the whole bound down."""
        aim = max(self.found.near_cost, float(open_.bound.min()) + 1e-9)
        below = (open_.bound < aim) & (open_.high - open_.low > NARROW)
        order = np.argsort(np.where(below, open_.bound, np.inf), kind="stable")
        chosen = np.zeros(len(order), np.bool_)
        chosen[order[:TOGETHER]] = True
        return chosen & below

    def attainable(self, open_: Intervals) -> Any:
        """Whether a table of whole rows that is not too dear can have a frequency in an interval."""
        added, deleted = self.problem.cells.most_changes(self.found.cost - self.found.lowest)
        n = float(self.problem.have.sum())
        least, most = max(n - deleted, 1.0), n + added
        possible = np.ones(len(open_.low), np.bool_)
        if most - least > SIZES:
            return possible
        narrow = np.flatnonzero((open_.high - open_.low) * most < 1)
        if len(narrow):
            sizes = np.arange(math.floor(least), math.ceil(most) + 1.0)
            low, high = open_.low[narrow, None] * sizes, open_.high[narrow, None] * sizes
            error = HAIR * sizes
            possible[narrow] = (np.ceil(low - error) <= np.floor(high + error)).any(axis=1)
        return possible

    # ------------------------------------------------------------------------- bounds

    def bounded(self, low: Real, high: Real) -> Intervals:
        """Bound the cost of every plan with P in an interval."""
        lines = Curves.of(self.kinds, *self.kinds.band(low, high))
        # In a wide interval whole numbers say little more than real ones.
        windows = () if (high - low).max(initial=0.0) > WIDE else WIDER
        bound, left, right = self.maximise(lines, low, high, windows)
        if self.step:
            stepped = np.ceil(np.minimum(bound, BIG) / self.step - 1e-6) * self.step
            bound = np.where(np.isfinite(bound), stepped, bound)
        else:
            bound = bound - 1e-12 * np.abs(np.where(np.isfinite(bound), bound, 0.0)) - 1e-9
        # The mixture of both sides that balances the labels.
        share = np.clip(left.slope / np.maximum(left.slope - right.slope, 1e-30), 0.0, 1.0)
        m, c = (
            (1 - share) * (getattr(left, y) @ self.kinds.many)
            + share * (getattr(right, y) @ self.kinds.many)
            for y in ("m", "c")
        )
        centre = np.clip(m / np.maximum(m + c, 1.0), low, high)
        return Intervals(low, high, np.maximum(bound, self.found.lowest), centre)

    def maximise(
        self, lines: Curves, low: Real, high: Real, windows: tuple[int, ...] = WIDER
    ) -> tuple[Real, Side, Side]:
        """Find the highest bound of each interval, and the multipliers next to the best one."""
        n, k = lines.start.shape[0], len(self.kinds.many)
        bottom, top = self.limits(lines, low, high)
        bound = np.full(n, -np.inf)
        left, right = (
            Side(end, np.full(n, np.inf), np.zeros(n), np.zeros((n, k)), np.zeros((n, k)))
            for end in (bottom, top)
        )
        trial = np.clip(self.multipliers, bottom[:, None], top[:, None])
        for turn in range(REFINED + 1):
            rate = np.where(trial > 0, high[:, None], low[:, None])
            solved = lines.solve(trial * (1 - rate), -trial * rate, windows)
            self.work += solved.value.size
            value, m, c = (part @ self.kinds.many for part in solved)
            bound = np.maximum(bound, value.max(axis=1))
            slope = m - rate * (m + c)
            _take_nearest(left, trial, value, slope, solved, sign=1)
            _take_nearest(right, trial, value, slope, solved, sign=-1)
            if turn < REFINED:
                trial = _between(left, right)
        # Beyond the last multiplier a group grows without end, so there may be no other side.
        for side, other in ((left, right), (right, left)):
            alone = ~np.isfinite(side.value)
            side.m[alone], side.c[alone] = other.m[alone], other.c[alone]
        return bound, left, right

    def limits(self, lines: Curves, low: Real, high: Real) -> tuple[Real, Real]:
        """The multipliers beyond which a group would grow without end."""
        kinds = self.kinds
        grows = (lines.end >= BIG / 1e3) | ((kinds.most[:, 1] >= BIG) & (lines.free > 0))
        top, bottom = np.full((2, len(low)), 1e6 * self.unit)
        for odds in (lines.above, lines.below):
            share = np.where(odds >= BIG, 0.0, 1 / (1 + odds))
            price = share * kinds.add[:, 0] + (1 - share) * kinds.add[:, 1]
            for limit, distance in ((top, high[:, None] - share), (bottom, share - low[:, None])):
                with np.errstate(over="ignore"):  # of no distance, infinite
                    reach = price / np.maximum(distance, 1e-300)
                np.minimum(
                    limit, np.where(grows & (distance > 0), reach, np.inf).min(axis=1), out=limit
                )
        return -bottom * (1 - 1e-9), top * (1 - 1e-9)

    # ------------------------------------------------------------------ constructing

    def construct(self, open_: Intervals) -> None:
        """Make plans at the frequencies of the most promising intervals."""
        if not len(open_.low):
            return
        rates, exact = open_.promising(), open_.simple()
        n = max(float(self.problem.have.sum()), 1.0)
        margins = MARGINS if n <= LARGE else MARGINS[1:]
        rate = np.concatenate([np.repeat(rates, len(margins)), exact])
        rows = np.concatenate([np.tile(margins, len(rates)), np.full(len(exact), EXACT)])
        # The band that holds for all frequencies within the margin.
        margin = np.where(rows > EXACT, rows, 0.0) / n
        low, high = self.kinds.band(rate + margin, rate - margin)
        lines = Curves.of(self.kinds, low, high)
        bound, left, right = self.maximise(lines, rate, rate, NEARBY)
        for i in np.argsort(bound, kind="stable").tolist():
            if not bound[i] < self.found.cost:
                break
            made = balanced_rows(
                self.kinds.take(self.kind),
                (low[i][self.kind], high[i][self.kind]),
                (left.rows(i, self.kind), right.rows(i, self.kind)),
                rate=float(rate[i]),
                margin=float(rows[i]),
            )
            if made is not None:
                self.offer(made)

    def offer(self, rows: Whole) -> None:
        if self.rare:
            rows = rows[:, ::-1]
        self.found.offer(self.problem, rows, self.box)
        cost = self.problem.cells.total_cost(rows)
        if cost < self.found.cost + abs(self.found.cost) * POLISHED:
            self.found.offer(self.problem, polish(self.problem, rows, self.box), self.box)


def simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the smallest denominator between two numbers, ends included.

    >>> simplest(Fraction("0.41"), Fraction("0.42"))
    Fraction(5, 12)
    """
    whole = math.floor(low)
    if low == whole:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / simplest(1 / (high - whole), 1 / (low - whole))


def _first_multipliers(prices: Real) -> Real:
    """Multipliers on both sides of zero, in units of the usual prices."""
    usual = [float(np.median(prices))] if prices.size else [1.0]
    grid = np.concatenate([[1e-9], *(GRID * each for each in usual)])
    if prices.size and prices.max() > UNEVEN * prices.min():
        grid = np.concatenate([grid, GRID[1::2] * prices.min(), GRID[1::2] * prices.max()])
    grid = np.unique(grid)
    return np.concatenate([-grid[::-1], grid])


def _take_nearest(
    side: Side, trial: Real, value: Real, slope: Real, solved: PricedRows, *, sign: int
) -> None:
    """Keep the multiplier nearest to the best one among those on one side of it."""
    line = np.arange(len(trial))
    there = (sign * slope >= 0) & np.isfinite(value)
    place = np.where(there, sign * trial, -np.inf).argmax(axis=1)
    at = trial[line, place]
    nearer = there[line, place] & (~np.isfinite(side.value) | (sign * at >= sign * side.multiplier))
    for name, new in (
        ("multiplier", at),
        ("value", value[line, place]),
        ("slope", slope[line, place]),
    ):
        setattr(side, name, np.where(nearer, new, getattr(side, name)))
    side.m[nearer] = solved.m[line, place][nearer]
    side.c[nearer] = solved.c[line, place][nearer]


def _between(left: Side, right: Side) -> Real:
    """Multipliers between two sides: where the tangents cross, and some others."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = right.value - left.value + left.slope * left.multiplier
        cross = (rise - right.slope * right.multiplier) / (left.slope - right.slope)
    width = right.multiplier - left.multiplier
    middle = left.multiplier + width / 2
    cross = np.where(np.isfinite(cross), cross, middle)
    cross = np.clip(cross, left.multiplier, np.maximum(left.multiplier, right.multiplier))
    between = left.multiplier[:, None] + width[:, None] * INSIDE
    return np.concatenate([cross[:, None], between], axis=1)
