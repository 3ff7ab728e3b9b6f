"""Whole plans at label frequencies that look cheap, for any number of labels.

A linear program gives real-valued rows at given frequencies. Small groups get whole rows that suit
the prices of the balance, the others balance the labels, and single rows are moved until all holds.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.cells import Band
from equipoise.plans.solvers.box import Box
from equipoise.plans.solvers.relaxation import FrequencyRelaxation, Kinds
from equipoise.plans.solvers.row_moves import RowMoves
from equipoise.plans.solvers.separable import granularity, solve_bands, solve_separable

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from equipoise.plans.cells import Edges, Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.incumbent import Incumbent
    from equipoise.plans.solvers.relaxation import Relaxed

WORK = 30_000
"""Number of linear programs that are solved by default, times cells."""

MOST = (500, 400)
"""Number of linear programs that are solved at most, with few labels and with many."""

FAR, PATIENCE = 0.02, 2.4
"""With a gap above the first, the search does so many times the work."""

CLOSE = 0.99
"""A bound this close to real-valued plans is not raised much by more work: whole rows cost more."""

FEW_LABELS = 4
"""With more labels than this, splitting boxes raises bounds too slowly to go on for long."""

COARSE = 3.0
"""Width of a band, in rows, below which a group's whole rows are chosen before others balance."""

LARGE = 240
"""Number of cells above which real-valued rows are rounded in one way only."""

MOST_BOXES = 160
"""Number of boxes that are explored at most, however few groups there are."""

QUICK = 0.15
"""With less effort than this, fewer plans are made around the usual and the best frequencies."""

EXPLORED = 6_000
"""Number of groups that are planned by themselves for frequencies all over the box."""

DEARER = 1.012
"""How much dearer than a real-valued plan a plan in whole rows may be, before others are tried."""

STEPS = (0.001, 0.004, 0.016)
"""How far the shares of labels are moved to look for cheaper whole rows nearby."""


class PlanSearch:
    """What is searched, what is found, and how plans are made."""

    def __init__(
        self,
        problem: Problem,
        box: Box,
        found: Incumbent,
        gap: float,
        effort: float,
        deadline: float,
        progress: Callable[[float], None],
    ) -> None:
        self.problem, self.box, self.found, self.gap = problem, box, found, gap
        self.effort, self.deadline, self.progress = effort, deadline, progress
        cells = problem.cells
        self.step = granularity(np.concatenate([cells.add, cells.drop], axis=1))
        self.kinds = Kinds.of(problem)
        self.relaxation = FrequencyRelaxation(problem, self.kinds)
        self.rounding = RowMoves(problem, box)
        self.number = itertools.count()
        self.least, self.most = np.zeros(len(self.kinds)), np.ones(len(self.kinds))  # shares
        self.real = math.inf
        self.centre: Real | None = None

    def late(self) -> bool:
        """Whether time has run out."""
        self.found.timed_out |= time.monotonic() > self.deadline
        return self.found.timed_out

    def done(self) -> bool:
        """Whether the search has what it is for, or time or work has run out."""
        if self.found.settled:
            return True
        few = self.problem.cells.labels <= FEW_LABELS
        most = self.effort * min(max(WORK / self.relaxation.n, 60), MOST[0 if few else 1])
        if few and self.effort >= 1 and self.is_far():
            most *= PATIENCE
        self.progress(min(1.0, self.relaxation.solved / max(most, 1.0)))
        return self.late() or self.relaxation.solved > most

    def is_far(self) -> bool:
        """Whether the gap is wide, and more than what whole rows cost more than real-valued ones."""
        return not self.found.near(FAR) and self.found.bound < CLOSE * self.real

    def effort_of(self, work: int) -> float:
        """A number that counts work, at the effort of the search, which may be unlimited."""
        return work * min(self.effort, 4.0)

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return max(self.deadline - time.monotonic(), 0.01)

    def start(self) -> None:
        """Plan around the usual frequencies, which nearly always works."""
        self.offer_tight(self.box.clip(self.problem.base))

    def offer_tight(self, centre: Real) -> None:
        """Plan inside the limits of all frequencies near a centre, as near as they must be."""
        low, high = 0.0, 1.0
        left = 9 if self.effort >= QUICK else 3  # bands that are planned for
        for _ in range(9):
            if not left or self.found.settled:
                break
            near = (low + high) / 2
            band = self.problem.edges.at(centre * (1 + near), most=centre * (1 - near))
            band = Band(band.low, np.minimum(band.high, 1.0))
            possible = (band.low <= band.high).all() and (band.low.sum(axis=1) <= 1).all()
            possible = possible and (band.high.sum(axis=1) >= 1).all()
            solved = solve_separable(self.problem.cells, band) if possible else None
            left -= int(possible)
            if solved is None or not solved.feasible:
                high = near
                continue
            cost = self.found.cost
            self.found.offer(self.problem, solved.rows, self.box)
            if self.found.cost < cost:
                high = near
            else:
                low = near

    def descend(self, centre: Real, steps: int) -> None:
        """Move a centre to where a real-valued plan is cheapest nearby, and make plans there."""
        best, reach, failed = self.point(centre), 0.1, 0
        for _ in range(steps):
            if best.rows is None or failed == 2 or self.done():
                break
            room = reach * np.minimum(centre, 1 - centre)
            low, high = np.maximum(centre - room, self.box.low), centre + room
            near = Box(low, np.minimum(high, self.box.high))
            self.relaxation.share(self.least, self.most)
            self.relaxation.move(near)
            relaxed = self.relaxation.solve(rounds=2, time_limit=self.left)
            if relaxed.rows is None or relaxed.bound > best.bound - 0.1 * self.gap * best.bound:
                break
            other = self.frequencies(relaxed, near)
            moved = self.point(other)
            if moved.rows is not None and moved.bound < best.bound - 1e-6:
                best, centre, failed = moved, other, 0
            else:
                reach, failed = reach / 4, failed + 1
        if best.rows is None or best.bound >= self.found.cost:
            return
        if best.bound < self.real - 1e-6 or self.found.cost > 1.02 * self.real:
            self.real, self.centre = min(self.real, best.bound), centre
            self.plan_at(best, centre)

    def try_others(self) -> None:
        """Plan at other frequencies, as long as whole rows cost more than real-valued ones."""
        ways = [self.look_around, self.explore] if self.effort >= QUICK else [self.explore]
        for way in ways:
            if self.found.cost > DEARER * self.real and not self.found.settled:
                way()

    def explore(self) -> None:
        """Plan at frequencies at which whole rows of every group are cheap.

        Where groups are small, their whole rows depend on the frequencies more than the balance.
        """
        kinds, left = self.kinds, int(min(self.effort_of(EXPLORED) / len(self.kinds), MOST_BOXES))
        heap = [(self.found.lowest, next(self.number), self.box)]
        middles: list[tuple[float, int, Real]] = []
        while heap and left > 0 and heap[0][0] < self.found.cost and not self.late():
            batch = [heapq.heappop(heap)[2] for _ in range(min(len(heap), 16))]
            boxes = [half for box in batch for half in box.halves()]
            left -= len(boxes)
            points = [Box(b.middle, b.middle) for b in boxes]
            bands = [band_over(kinds.edges, b) for b in boxes + points]
            costs, rows = solve_bands(kinds.cells, bands, kinds.times)
            for box, least in zip(boxes, costs, strict=False):
                heapq.heappush(heap, (float(least), next(self.number), box))
            n = len(boxes)
            middles += self.weighed([box.middle for box in boxes], costs[n:], rows[n:])
        lowest = heap[0][0] if heap else math.inf
        self.found.bound = max(self.found.bound, min(lowest, self.found.cost))
        self.plan_at_best(middles)

    def look_around(self) -> None:
        """Plan near the centre, at frequencies at which whole rows of every group are cheap."""
        if self.centre is None:
            return
        kinds, best = self.kinds, self.centre
        seen: list[tuple[float, int, Real]] = []
        for step in (*STEPS, *STEPS):
            points = [best, *self.box.near(best, step)]
            bands = [band_over(kinds.edges, Box(point, point)) for point in points]
            costs, rows = solve_bands(kinds.cells, bands, kinds.times)
            seen += self.weighed(points, costs, rows)
            if self.late():
                return
            best = min(seen)[2] if seen else best
        self.plan_at_best(seen)

    def weighed(
        self, points: list[Real], costs: Real, rows: Whole
    ) -> list[tuple[float, int, Real]]:
        """Offer the whole rows that were made at frequencies, and estimate what plans there cost."""
        seen = []
        for point, cost, whole in zip(points, costs, rows, strict=True):
            if math.isfinite(cost):
                self.found.offer(self.problem, whole[self.kinds.back], self.box)
                estimate = float(cost) + self.imbalance(whole, point)
                seen.append((estimate, next(self.number), point))
        return seen

    def plan_at_best(self, seen: list[tuple[float, int, Real]]) -> None:
        """Plan at the best of the frequencies that were looked at, given with estimated costs."""
        for cost, _, centre in sorted(seen, key=lambda m: m[:2])[:3]:
            if cost < self.found.cost + 0.05 * abs(self.found.cost) and not self.late():
                self.plan_at(self.point(centre), centre)

    def imbalance(self, rows: Whole, centre: Real) -> float:
        """Cost of moving a plan's labels to a centre, at the usual price of a row."""
        total = (rows * self.kinds.times[:, None]).sum(axis=0)
        off = np.abs(total - centre * total.sum()).sum() / 2
        return float(off * np.median(self.problem.cells.add))

    def point(self, centre: Real) -> Relaxed:
        """The cheapest real-valued plan with given label frequencies."""
        self.relaxation.cheaper(math.inf)
        return self.at(centre)

    def plan_at(self, relaxed: Relaxed, centre: Real) -> None:
        """Make whole plans from a real-valued one whose label frequencies are a centre."""
        if relaxed.rows is None or (self.found.rows is not None and self.late()):
            return
        planned = self.with_small_groups(relaxed, centre)
        large = relaxed.rows.size > LARGE
        tries = 40 + relaxed.rows.size // (2 if large else 1)
        ways = [planned] if large and planned is not None else [planned, relaxed.rows]
        for rows in ways if planned is not relaxed.rows else [planned]:
            if rows is not None:
                for whole in self.rounding.near(rows[self.kinds.back], tries, once=large):
                    self.found.offer(self.problem, whole, self.box)
            self.rounding.frozen[:] = False

    def with_small_groups(self, relaxed: Relaxed, centre: Real) -> Real | None:
        """Choose whole rows for groups that have few, and let the others balance the labels."""
        if relaxed.rows is None:
            return None
        kinds, room = self.kinds, 2.0 / max(float(self.problem.have.sum()), 1.0)
        band = kinds.edges.at(centre + room, most=np.maximum(centre - room, centre / 2))
        band = Band(band.low, np.minimum(band.high, 1.0))
        size = relaxed.rows.sum(axis=1, keepdims=True)
        width = ((band.high - band.low) * size).min(axis=1)
        largest = np.sort(width)[-max(len(width) // 8, min(len(width), 2))]
        small = np.flatnonzero((width < COARSE) & (width < largest))
        if not len(small):
            return relaxed.rows
        cells = kinds.cells.take(small)
        # With the prices of balance, groups choose rows that suit the whole table.
        priced = replace(cells, add=cells.add + relaxed.balance, drop=cells.drop - relaxed.balance)
        solved = solve_separable(priced, band.take(small))
        fits = np.isfinite(solved.costs)
        whole = np.zeros_like(kinds.cells.have)
        whole[small] = solved.rows
        small = small[fits]
        self.relaxation.pin(whole, small)
        pinned = self.around(whole[small], small, centre)
        self.relaxation.pin(None)
        if pinned.rows is None or pinned.bound >= self.found.cost:
            return None
        self.rounding.frozen = np.isin(kinds.back, small)
        return pinned.rows

    def around(self, rows: Whole, lines: NDArray[np.intp], centre: Real) -> Relaxed:
        """The cheapest real-valued plan at a centre or near it, where some groups' rows still fit."""
        at_centre = self.at(centre)
        if not len(lines) or self.effort < QUICK or self.late():
            return at_centre
        share = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1)
        edges = self.kinds.edges.take(lines)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(edges.low > 0, (share - edges.low_shift) / edges.low, 1.0)
            least = np.where(edges.high > 0, (share - edges.high_shift) / edges.high, 0.0)
        low = np.maximum(least.max(axis=0), self.box.low)
        high = np.minimum(most.min(axis=0), self.box.high)
        fits = Box(low, np.maximum(low, high)).tightened()
        if (low > high).any() or fits.empty:
            return at_centre
        self.relaxation.share(self.least, self.most)
        self.relaxation.move(fits)
        relaxed = self.relaxation.solve(rounds=2, time_limit=self.left)
        if relaxed.rows is None or relaxed.bound >= at_centre.bound:
            return at_centre
        moved = self.at(self.frequencies(relaxed, fits))
        return moved if moved.bound < at_centre.bound else at_centre

    def at(self, centre: Real) -> Relaxed:
        """The cheapest real-valued plan with given label frequencies, of the groups not pinned."""
        self.relaxation.move(Box(centre, centre))
        return self.relaxation.solve(rounds=1, time_limit=self.left)

    def frequencies(self, relaxed: Relaxed, box: Box) -> Real:
        """The label frequencies of real-valued rows."""
        rows = self.kinds.cells.have if relaxed.rows is None else relaxed.rows
        total = (rows * self.kinds.times[:, None]).sum(axis=0)
        return box.clip(total / max(total.sum(), 1e-9))


def band_over(edges: Edges, box: Box) -> Band:
    """The shares that groups can have at frequencies in a box."""
    band = edges.at(box.low, most=box.high)
    return Band(band.low, np.minimum(band.high, 1.0))
