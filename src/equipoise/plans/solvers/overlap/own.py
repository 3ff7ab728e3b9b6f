"""Plans for overlapping groups against the label frequencies of the repaired table.

Boxes of frequencies are split, the one with the lowest bound first. In a box a linear model, in
which the product of a group's size and a frequency lies in McCormick's envelope, bounds the cost.
Plans are made at fixed frequencies: the linear model there, then moves of single rows, which keep
the limits at all frequencies within a row or so. Small boxes of small problems are solved in whole
rows. The work is counted, so the result is the same on every machine; time is a last resort.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.cells import Band
from equipoise.plans.solvers.box import Box
from equipoise.plans.solvers.incumbent import CLOSED, Incumbent, holds_everything
from equipoise.plans.solvers.overlap.fixed import cost_step, rounded_up, separated
from equipoise.plans.solvers.overlap.groups import Groups, cuts_at, cuts_in
from equipoise.plans.solvers.overlap.moves import walk_from
from equipoise.plans.solvers.overlap.relaxation import BROKEN, ChangeModel
from equipoise.plans.solvers.overlap.whole import solve_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.overlap.relaxation import RelaxedChanges

WORK = 48_000
"""Number of cells in all linear models for bounds, and as many for better frequencies."""

LOOKED, TRIED = (5, 400), (8, 120)
"""Least and most number of boxes, and of frequencies that are tried around the best ones."""

CONSTRUCTED, TO_DECIDE = 12, 4
"""Number of frequencies at which whole rows are made, also if it only matters whether there are any."""

TINY = 100
"""Maximum number of cells of a table whose boxes are solved in whole rows."""

PIVOTS, STARTED = 15_000, 80
"""Number of simplex steps of all models in whole rows, and the number that a new model counts for."""

LITTLE = 0.25
"""With less effort than this, there are fewer of these steps. Without a plan they are not limited."""

FEWEST = 12
"""Number of cells up to which these steps are not counted, because all models are quick."""

NARROW = 1e-9
"""A box that is not split any further."""

WHOLE = 1.0
"""Maximum error of the linear model, in rows, at which a box is solved in whole rows."""

RELAXED_GAP = 0.002
"""A bound this close to the cheapest real-valued rows is high enough: whole rows cost more."""

ROOM = (1.0, 4.0)
"""Number of rows by which the label totals of a plan may differ from the chosen frequencies."""


def search_coupled(
    problem: Problem,
    box: Box,
    found: Incumbent,
    *,
    effort: float = 1.0,
    deadline: float = math.inf,
    progress: Callable[[float], None] = lambda _: None,
) -> None:
    """Improve a plan and the bound of its cost until they meet within a gap, or the work is done.

    The label frequencies of the repaired table lie in ``box``. ``found`` is updated; its bound is
    infinite if there is proved to be no plan. With infinite ``effort`` only the gap or the deadline
    ends the search.
    """
    _Search(problem, box, found, effort, deadline, progress).run()


def boxes_exclude_plans(
    problem: Problem, box: Box, *, boxes: int, deadline: float = math.inf
) -> bool:
    """Whether linear models over a few boxes of frequencies prove that there is no plan."""
    search = _Search(problem, box, Incumbent(), 0.0, deadline, lambda _: None)
    for _ in range(boxes):
        if search.possible(heapq.heappop(search.heap)[2]) or not search.heap:
            break
    return not search.heap and search.floor == math.inf


def fits_at(problem: Problem, rates: Real, *, deadline: float = math.inf) -> bool:
    """Whether real-valued rows keep all limits at given label frequencies."""
    groups = Groups.of(problem)
    model = ChangeModel(problem, groups)
    model.deadline = deadline
    return model.solve(cuts_at(groups.edges, rates), Box(rates, rates)).rows is not None


class _Search:
    def __init__(
        self,
        problem: Problem,
        box: Box,
        found: Incumbent,
        effort: float,
        deadline: float,
        progress: Callable[[float], None],
    ) -> None:
        self.problem, self.box, self.found = problem, box, found
        self.gap, self.effort = max(found.gap, CLOSED), effort
        self.deadline, self.progress = deadline, progress
        self.groups, self.step = Groups.of(problem), cost_step(problem)
        self.sizes = problem.have.sum(axis=1).astype(float)
        self.group_sizes = np.asarray(self.groups.inside @ self.sizes)
        self.bounds = ChangeModel(problem, self.groups)
        self.plans = ChangeModel(problem, self.groups)
        self.bounds.deadline = self.plans.deadline = deadline
        self.small = problem.have.size <= TINY
        self.decides = found.enough is not None  # what a plan costs does not matter
        self.number = itertools.count()
        self.heap = [(found.lowest, next(self.number), box)]
        self.floor = math.inf  # the lowest bound of a box that is too narrow to split
        self.made: list[Real] = []  # frequencies at which plans were made
        self.best_rates: Real | None = None  # where real-valued rows are cheapest
        self.best_bound = math.inf
        share = effort * WORK / problem.have.size
        self.most = math.inf if effort == math.inf else int(np.clip(share, *LOOKED))
        self.trials = int(np.clip(share, *TRIED))
        self.pivots_left = min(effort / LITTLE, 1.0) * PIVOTS  # of models in whole rows
        if effort == math.inf or problem.have.size <= FEWEST:
            self.pivots_left = math.inf

    # ---------------------------------------------------------------------------- bounds

    def run(self) -> None:
        """Look into the box with the lowest bound, until it is close enough to the best cost."""
        found, looked = self.found, 0
        base, request = self.box.clip(self.problem.base), self.problem.request
        # Around fixed frequencies, this tolerance suffices for all frequencies within it.
        t = request.tolerance
        self.offer(
            separated(self.problem, base, t / (2 + t) if request.tolerance_on == "ub" else t / 2)
        )
        if not self.enough():
            self.construct(base)
        while self.heap and not self.enough():
            # Without a plan the search goes on, because there may be none.
            spent = self.pivots_left <= 0 and found.rows is not None
            if looked >= self.most or spent or self.late():
                break
            bound, _, box = heapq.heappop(self.heap)
            if bound >= min(self.floor, found.cost - 1e-9):
                heapq.heappush(self.heap, (bound, next(self.number), box))
                break
            self.look(bound, box)
            looked += 1
            found.bound = max(found.bound, self.lowest())
            self.progress(
                self.closed() if self.effort == math.inf else min(1.0, looked / self.most)
            )
        found.bound = max(found.bound, self.lowest())
        found.timed_out &= not self.enough()

    def lowest(self) -> float:
        """The bound that all boxes have; the best cost if no box is left."""
        lowest = self.heap[0][0] if self.heap else math.inf
        return min(lowest, self.floor, self.found.cost)

    def closed(self) -> float:
        """How much of the gap is closed."""
        found = self.found
        if found.rows is None or found.cost <= 0:
            return 0.0
        return min(1.0, self.gap * found.cost / max(found.cost - found.bound, 1e-12))

    def enough(self) -> bool:
        return self.found.done

    def late(self) -> bool:
        self.found.timed_out |= time.monotonic() > self.deadline
        return self.found.timed_out

    def look(self, bound: float, box: Box) -> None:
        """Bound a box, make a plan in it, and add its parts."""
        narrow, least, most = self.corridor(box)
        cuts = cuts_in(self.groups.edges, narrow, least, most)
        alone = self.alone(self.groups.union(narrow.low, narrow.high))
        relaxed = self.bounds.solve(cuts, narrow, least=alone, cutoff=self.found.cost)
        lower = max(bound, rounded_up(relaxed.bound, self.step))
        if lower >= self.found.cost - 1e-9:  # also if there is no plan in the box
            return
        if relaxed.rows is None:
            self.split(lower, box, box.middle, box.high - box.low)
            return
        rates = box.clip(relaxed.frequencies)
        self.construct(rates)
        off = self.error(relaxed.rows)
        if self.small and off.max() < WHOLE and lower < self.found.cost - 1e-9:
            lower = max(lower, self.in_whole_rows(narrow, least, most))
        self.split(lower, box, rates, off)

    def alone(self, band: Band) -> Real | None:
        """What each judged finest group costs at least, if that matters."""
        if self.decides and not self.small:
            return None
        return self.groups.alone(self.problem, band).costs

    def possible(self, box: Box) -> bool:
        """Whether real-valued rows keep all limits at their own frequencies; if not, split a box."""
        least, most = np.zeros(len(self.groups)), np.ones(len(self.groups))
        alone = self.alone(self.groups.union(box.low, box.high))
        cuts = cuts_in(self.groups.edges, box, least, most)
        relaxed = self.bounds.solve(cuts, box, least=alone)
        if relaxed.bound == math.inf:
            return False
        rates = box.middle if relaxed.rows is None else box.clip(relaxed.frequencies)
        off = box.high - box.low if relaxed.rows is None else self.error(relaxed.rows)
        self.split(-1.0, box, rates, off)
        return self.late() or (relaxed.rows is not None and float(off.max()) <= BROKEN)

    def error(self, rows: Real) -> Real:
        """By how many rows groups break their limits at the rows' own frequencies, for each label."""
        totals = rows.sum(axis=0)
        sums = self.groups.inside @ rows
        cuts = cuts_at(self.groups.edges, totals / max(float(totals.sum()), 1e-9))
        return np.asarray(
            np.max([c.excess(sums, totals).max(axis=0) for c in cuts], axis=0).clip(0)
        )

    def corridor(self, box: Box) -> tuple[Box, Real, Real]:
        """The box, and the shares of the table that groups can have below the best cost."""
        cells, cost = self.problem.cells, self.found.cost
        if self.found.lowest < 0:
            cost = math.inf  # some changes pay for others
        n, sizes = float(self.sizes.sum()), self.group_sizes
        least, most = np.zeros(len(sizes)), np.ones(len(sizes))
        added, gone = cells.most_changes(cost)
        if not math.isfinite(added) or gone >= n:
            return box, least, most
        ends = [(0.0, 0.0), (added, 0.0), (0.0, gone)]
        least = np.min([(sizes - d).clip(0) / (n + a - d) for a, d in ends], axis=0)
        most = np.max([(sizes + a) / (n + a - d) for a, d in ends], axis=0).clip(0, 1)
        some = np.where(self.problem.have.sum(axis=0) > 0, 1 / (n + added + 1), 0.0)
        return Box(np.maximum(box.low, np.minimum(some, box.high)), box.high), least, most

    def in_whole_rows(self, box: Box, least: Real, most: Real) -> float:
        """Bound a box in whole rows, and take what it finds if that is valid."""
        cost = self.found.cost
        far = self.gap * abs(cost) * (1 - 1e-9)
        enough = max(self.step or 0.0, far) if cost < math.inf else 0.0
        solved = solve_whole(
            self.problem,
            self.groups,
            cuts_in(self.groups.edges, box, least, most),
            box,
            gap=self.gap / 4,
            deadline=self.deadline,
            cheaper=cost - enough,
            effort=0.1 * min(self.effort, 1.0),
        )
        self.pivots_left -= solved.pivots + STARTED
        if solved.bound == math.inf:
            return cost if enough == self.step else cost - enough
        if solved.rows is not None:
            self.offer(solved.rows)
            self.construct(self.box.clip(solved.rows.sum(axis=0) / max(int(solved.rows.sum()), 1)))
        return rounded_up(solved.bound, self.step)

    def split(self, lower: float, box: Box, rates: Real, off: Real) -> None:
        """Add the parts of a box; a box too narrow to split limits the bound that can be proved."""
        if lower >= self.found.cost - 1e-9:
            return
        width = box.high - box.low
        if width.max() <= NARROW:
            self.floor = min(self.floor, lower)
            return
        y = int(np.where(width > NARROW, off, -1.0).argmax())
        if off[y] <= 0:
            y = int(width.argmax())
        inner = width[y] / 10  # a cut near the edge would leave one part as wide as before
        at = self.cut(lower, box, rates, y)
        for part in box.split(y, float(np.clip(at, box.low[y] + inner, box.high[y] - inner))):
            heapq.heappush(self.heap, (lower, next(self.number), part))

    def cut(self, lower: float, box: Box, rates: Real, y: int) -> float:
        """Where to split a box.

        Of two labels, the part next to the best frequencies gets the width at which its bound is
        just high enough: bounds fall about linearly with the width.
        """
        best = self.best_rates
        if best is None or len(rates) > 2 or box.low[y] < best[y] < box.high[y]:
            return float(rates[y])
        end, other = (
            (box.low[y], box.high[y]) if best[y] <= box.low[y] else (box.high[y], box.low[y])
        )
        shares = np.array([1 - end, 1 - end])
        shares[y] = end
        near = self.at(shares).bound
        enough = min(self.found.cost * (1 - self.gap), self.best_bound * (1 - RELAXED_GAP))
        if not lower < enough < near < math.inf:
            return float(rates[y])
        return float(end + 0.9 * (near - enough) / (near - lower) * (other - end))

    # ---------------------------------------------------------------------------- plans

    def construct(self, rates: Real) -> None:
        """Make a plan at label frequencies, after moving them to where it is cheaper."""
        apart = 0.5 / max(float(self.sizes.sum()), 1.0)
        most = TO_DECIDE if self.decides and not self.small else CONSTRUCTED
        if len(self.made) >= most or any(np.abs(rates - r).max() < apart for r in self.made):
            return
        self.made.append(rates)
        relaxed = self.at(rates)
        if self.best_rates is None and relaxed.rows is not None and not self.decides:
            rates, relaxed = self.polished(rates, relaxed)
            self.made.append(rates)
        if relaxed.rows is None or relaxed.bound >= self.found.cost or self.late():
            return
        if relaxed.bound < self.best_bound:
            self.best_rates, self.best_bound = rates, relaxed.bound
        elif self.found.rows is not None and not self.small:
            return  # whole rows cost about as much more everywhere
        for room in ROOM:
            before = self.found.cost
            self.walk(rates, relaxed, room)
            if self.found.cost < before:
                return

    def at(self, rates: Real) -> RelaxedChanges:
        """The cheapest real-valued rows with given label frequencies."""
        alone = self.alone(self.groups.band(rates, rates))
        return self.plans.solve(cuts_at(self.groups.edges, rates), Box(rates, rates), least=alone)

    def polished(self, rates: Real, best: RelaxedChanges) -> tuple[Real, RelaxedChanges]:
        """Move frequencies step by step to where real-valued rows are cheapest."""
        left, step = self.trials, float((self.box.high - self.box.low).max()) / 4
        ways = 2 if len(rates) == 2 else None
        while step > 1e-4 and left > 0 and not self.late():
            moved = False
            for other in itertools.islice(self.box.near(rates, step), ways):
                left -= 1
                if self.late():
                    break
                trial = self.at(other)
                if trial.rows is not None and trial.bound < best.bound - 1e-6:
                    best, rates, moved = trial, other, True
                    break
            step = step if moved else step / 4
        return rates, best

    def walk(self, rates: Real, start: RelaxedChanges, room: float) -> None:
        """Make whole rows whose label totals are within a few rows of given frequencies."""
        rows = start.rows
        near = room / max(float(self.sizes.sum() if rows is None else rows.sum()), 1.0)
        low = np.maximum(np.maximum(rates - near, self.box.low), rates / 2)
        high = np.minimum(rates + near, self.box.high)
        walk = walk_from(
            self.problem,
            self.groups,
            self.groups.band(low, high),
            start,
            table=Band(low[None], high[None]),
            accepts=self.accepts,
            deadline=self.deadline,
            effort=self.effort,
            enough=max(self.found.sufficient, start.bound / (1 - min(self.gap, 0.5))),
        )
        self.offer(walk.best)
        if self.found.rows is None and self.small:
            solved = solve_whole(
                self.problem,
                self.groups,
                cuts_at(self.groups.edges, low, high),
                Box(low, high),
                gap=self.gap,
                deadline=self.deadline,
                effort=0.1 * min(self.effort, 1.0),
            )
            self.offer(solved.rows)

    def accepts(self, rows: Whole) -> bool:
        return holds_everything(self.problem, rows, self.box)

    def offer(self, rows: Whole | None) -> None:
        self.found.offer(self.problem, rows, self.box)
