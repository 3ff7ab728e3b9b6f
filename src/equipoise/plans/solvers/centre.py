"""Plans relative to the label frequencies of the repaired table.

Those frequencies depend on the plan. The search therefore chooses a centre φ and makes a plan whose
groups lie in the band around φ and whose label frequencies are φ. For a box of centres, the union
of their bands gives an exact lower bound for each group; boxes are split, the most promising first.
The centre found is not proved to be the best, so the cost is reported with the lower bound.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.judgement import within_tolerance
from equipoise.plans.request import SOLVER_GAP
from equipoise.plans.solvers.box import Box, allowed_box
from equipoise.plans.solvers.coupled import relaxed_cost, solve_coupled
from equipoise.plans.solvers.gap import GapSearch
from equipoise.plans.solvers.incumbent import Incumbent, holds_everything
from equipoise.plans.solvers.many_labels import search_many_labels
from equipoise.plans.solvers.separable import granularity, solve_bands, solve_separable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem

SMALL = 400
"""Maximum number of cells for one model of all groups; in larger tables only the largest groups
balance the labels, because HiGHS takes too long otherwise."""

BALANCING = 40
"""Number of the largest groups that balance the labels of a large table."""

WORK = 16_000
"""Number of distinct groups that are searched for the first centres and the bound."""

USUAL = 0.003
"""Gap at which the search ends if none was asked for."""

QUICK = 0.2
"""With less effort than this, the first good plan is taken and the gap is not closed."""

RELAXED = 2_400
"""Maximum number of cells in real-valued models, for moving a centre and for raising the bound.

Counting work rather than seconds makes the same request give the same plan on every machine. The
request's time limit is a last resort.
"""


def solve_new(
    problem: Problem,
    base: Real,
    *,
    candidates: Iterable[Whole] = (),
    effort: float = 1.0,
    enough: float | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Incumbent:
    """Find a cheap plan relative to its own label frequencies, with a lower bound of the cost.

    The tolerance must be above zero. The label frequencies stay near ``base``, ``candidates`` are
    rows known to be feasible, and an ``effort`` below 1 tries fewer centres.
    """
    first = enough is not None and math.isinf(enough)
    search = _Search(problem, base, effort, first=first, progress=progress)
    search.found.gap = problem.request.solver_gap
    for rows in (problem.have, *candidates):
        search.offer(rows)
    return search.run()


class _Search:
    """The search for a centre, and for the best plan around it."""

    def __init__(
        self,
        problem: Problem,
        base: Real,
        effort: float,
        *,
        first: bool,
        progress: Callable[[float], None],
    ) -> None:
        self.problem, self.effort, self.first, self.progress = problem, effort, first, progress
        self.box = allowed_box(problem, base)
        self.base = self.box.clip(base)
        self.deadline = time.monotonic() + problem.request.time_limit
        self.found = Incumbent()
        self.small = problem.have.size <= SMALL
        self.trials = max(6, int(effort * min(RELAXED / problem.have.size, 120)))

    def run(self) -> Incumbent:
        found = self.found
        if self.enough():
            return found
        self.surely()
        if self.first and not self.enough():
            self.construct(self.base)
            if self.enough():
                return found
        if self.problem.cells.labels > 2 and not self.problem.coarse:
            self.many_labels()
            return found
        # Ignoring the limits that couple groups keeps the bound valid, and plans may still meet them.
        centres = self.explore()
        if not self.problem.separable and found.bound < math.inf and not self.enough():
            centres = [*self.widest(), *centres]
        if found.bound < math.inf and not self.enough():
            self.build(centres)
        found.bound = min(found.bound, found.cost)
        gap = self.problem.request.gap
        if gap is None or found.rows is None or self.enough() or found.near(gap):
            return found
        if self.effort >= QUICK:
            GapSearch(self.problem, found, self.box, gap, self.deadline, self.construct).run()
        return found

    def many_labels(self) -> None:
        """Search with linear programs, until the gap that was asked for, or one that is usual."""
        asked = self.problem.request.gap
        search_many_labels(
            self.problem,
            self.box,
            self.found,
            gap=USUAL if asked is None else asked,
            effort=self.effort if asked is None or self.effort < QUICK else math.inf,
            deadline=self.deadline,
            progress=self.progress,
        )

    def enough(self) -> bool:
        return self.found.cost <= 0 or (self.first and self.found.rows is not None)

    def late(self) -> bool:
        self.found.timed_out |= time.monotonic() > self.deadline
        return self.found.timed_out

    def offer(self, rows: Whole | None) -> None:
        self.found.offer(self.problem, rows, self.box)

    # --------------------------------------------------------------------- exploring

    def explore(self) -> list[Real]:
        """Split boxes of centres, the most promising first, and return the best middles."""
        kinds = max(1, len(np.unique(self.problem.have, axis=0)))
        most = min(self.effort * max(64, min(WORK // kinds, 1500)), max(25 * WORK // kinds, 2))
        batch = max(1, min(48, WORK // len(self.problem.cells), int(most) // 8))
        number = itertools.count()
        (bound,), _ = self.costs([self.box])
        heap = [(float(bound), next(number), self.box)]
        middles: list[tuple[float, int, Real]] = []
        done = 0
        while heap[0][0] < self.found.cost - 1e-9 and done < most and not self.late():
            split = [heapq.heappop(heap) for _ in range(min(batch, len(heap)))]
            boxes = [half for _, _, parent in split for half in parent.halves()]
            done += len(boxes)
            bounds, _ = self.costs(boxes)
            costs, rows = self.costs([Box(b.middle, b.middle) for b in boxes])
            for each, least, cost, plan in zip(boxes, bounds, costs, rows, strict=True):
                heapq.heappush(heap, (float(least), next(number), each))
                if math.isfinite(cost):
                    price = float(cost) + self.imbalance(plan, each.middle)
                    middles.append((price, next(number), each.middle))
                    self.offer(plan)
            self.progress(0.5 * min(1.0, done / most))
            if self.enough() or not heap:
                break
        self.found.bound = min(heap[0][0], self.found.cost) if heap else self.found.cost
        middles.sort(key=lambda m: m[:2])
        return _apart([m for _, _, m in middles], 4)

    def imbalance(self, rows: Whole, centre: Real) -> float:
        """Cost of moving a plan's labels to a centre, at the usual price of a row."""
        off = np.abs(rows.sum(axis=0) - centre * rows.sum()).sum() / 2
        return float(off * np.median(self.problem.cells.add))

    def widest(self) -> list[Real]:
        """Bound coupled groups by one model, with the bands around the whole box."""
        low, high = self.box.low, self.box.high
        wide = solve_coupled(
            self.problem, low, most=high, balance=self.box, time_limit=self.seconds
        )
        self.found.bound = max(self.found.bound, min(wide.bound, self.found.cost))
        centres: list[Real] = []
        rows = wide.rows
        while rows is not None and len(centres) < 3:
            self.offer(rows)
            centres.append(self.box.clip(rows.sum(axis=0) / max(int(rows.sum()), 1)))
            rows = solve_coupled(self.problem, centres[-1], time_limit=self.seconds).rows
        return centres

    def costs(self, boxes: list[Box]) -> tuple[Real, Whole]:
        """The lowest cost with every group in the band around a box, for several boxes at once."""
        bands = [self.problem.band(b.low, most=b.high) for b in boxes]
        return solve_bands(self.problem.cells, bands)

    def polished(self, centres: list[Real]) -> Real:
        """Move the best centre step by step to where a real-valued plan is cheapest."""
        cost, _, centre = min(
            (self.balanced_cost(c), number, c) for number, c in enumerate(centres)
        )
        step, left = 0.02, self.trials
        while math.isfinite(cost) and step > 1e-4 and left > 0 and not self.late():
            moved = False
            for nudged in self.box.near(centre, step):
                value = self.balanced_cost(nudged)
                left -= 1
                if value < cost - 1e-7:
                    cost, centre, moved = value, nudged, True
            step = step if moved else step / 3
        return centre

    def balanced_cost(self, centre: Real) -> float:
        """The lowest cost of a real-valued plan whose label frequencies are a centre."""
        return relaxed_cost(self.problem, Box(centre, centre))

    def dive(self, boxes: list[Box]) -> list[Real]:
        """Halve the last box repeatedly, keeping the half with the cheaper real-valued plan.

        Returns the middles around which a balanced plan exists, the deepest first. The earlier ones
        leave more room, because the cheapest centre is often at the edge of the feasible ones.
        """
        path, box = [b.middle for b in boxes], boxes[-1]
        while (box.high - box.low).max() > 1e-6 and not self.late():
            halves = [(relaxed_cost(self.problem, half), half) for half in box.halves()]
            if not halves or not math.isfinite(min(cost for cost, _ in halves)):
                break
            _, box = min(halves, key=lambda h: h[0])
            path.append(box.middle)
        return [c for c in reversed(path) if math.isfinite(self.balanced_cost(c))]

    def bisect(self) -> list[Box]:
        """Split boxes again by the cost of a balanced real-valued plan, which raises the bound.

        Returns the cheapest box at the end, after the boxes it was split from.
        """
        cells = self.problem.cells
        step = granularity(np.concatenate([cells.add, cells.drop], axis=1))
        number = itertools.count()
        heap = [(self.found.bound, next(number), [self.box])]
        left = 2 * self.trials if self.effort >= QUICK else 0
        while left > 0 and heap[0][0] < self.found.cost and not self.late():
            bound, _, boxes = heapq.heappop(heap)
            for half in boxes[-1].halves():
                left -= 1
                cost = relaxed_cost(self.problem, half)
                if math.isfinite(cost):
                    cost = math.ceil(cost / step - 1e-6) * step if step else cost * (1 - 1e-9)
                    heapq.heappush(heap, (max(bound, cost), next(number), [*boxes, half]))
            if not heap:
                return [self.box]
        self.found.bound = max(self.found.bound, min(heap[0][0], self.found.cost))
        return heap[0][2]

    # ------------------------------------------------------------------ constructing

    def build(self, centres: list[Real]) -> None:
        """Make plans around the best centres."""
        deep = self.dive(self.bisect()) if self.small else []
        chosen = [*deep[:1], *centres, self.base]
        if self.small or not self.problem.separable:
            chosen = [self.polished(chosen), *chosen]
        missed = 0
        needed = 1 if self.effort < QUICK else len(chosen)
        chosen += deep[1 : 1 + round(12 * self.effort)]
        for number, centre in enumerate(chosen):
            if number >= needed and self.found.rows is not None:
                break
            if number and (self.late() or self.enough()):
                break
            best = self.found.cost
            self.construct(centre)
            missed = missed + 1 if self.found.cost >= best else 0
            if not self.small and missed == 2:
                break
            self.progress(0.5 + 0.4 * (number + 1) / len(chosen))

    def construct(self, centre: Real) -> None:
        """Make plans whose label frequencies are a centre, and offer them."""
        key = np.round(centre, 9).tobytes()
        if key in self.found.tried:
            return
        self.found.tried.add(key)
        self.tighten(centre)
        if self.enough() or (self.late() and self.found.rows is not None):
            return
        self.settle(centre)
        for rows in (1.0, 3.0, 0.0):
            whole = self.small or not self.problem.separable
            plan = (self.balanced if whole else self.balanced_by_largest)(centre, rows)
            if plan is not None:
                self.offer(plan)
                return

    def settle(self, centre: Real) -> None:
        """Plan around a centre, and take the resulting frequencies as the next one, repeatedly."""
        for _ in range(4):
            (cost,), (rows,) = self.costs([Box(centre, centre)])
            if not math.isfinite(cost) or self.late():
                return
            self.offer(rows)
            next_ = self.box.clip(rows.sum(axis=0) / rows.sum())
            if np.abs(next_ - centre).max() < 1e-9:
                return
            centre = next_

    def surely(self) -> None:
        """Plan at a tolerance so small that the result is always valid, as a fallback."""
        solved = solve_separable(self.problem.cells, self.problem.band(self.base, self.sure))
        if solved.feasible:
            self.offer(solved.rows)

    @property
    def sure(self) -> float:
        """The tolerance around a centre that suffices for all label frequencies within it."""
        t = self.problem.request.tolerance
        return t / (2 + t) if self.problem.request.tolerance_on == "ub" else t / 2

    def tighten(self, centre: Real) -> None:
        """Plan at the largest tolerance that gives a valid plan; τ/(2+τ) always does."""
        low, high = self.sure, self.problem.request.tolerance
        for trial in range(7):
            middle = low if trial == 0 else (low + high) / 2
            solved = solve_separable(self.problem.cells, self.problem.band(centre, middle))
            if solved.feasible and not holds_everything(self.problem, solved.rows, self.box):
                high = middle
                continue
            low = middle
            if solved.feasible:
                self.offer(solved.rows)
            if self.late() and self.found.rows is not None:
                return

    def balanced(self, centre: Real, rows: float) -> Whole | None:
        """Solve one model of all groups, with label frequencies within a few rows of the centre."""
        low, high = self.around(centre, rows)
        # A requested gap is closed at the end, over all boxes; a gap for any plan holds here, too.
        asked = self.problem.request.solver_gap
        gap = max(asked if asked >= 1 else SOLVER_GAP, SOLVER_GAP / max(self.effort, 0.02))
        for inside in (0.0, 1e-5):
            solved = solve_coupled(
                self.problem,
                high,
                most=low,
                balance=Box(low, high),
                time_limit=self.seconds,
                gap=gap,
                inside=inside,
            )
            if solved.rows is None or within_tolerance(self.problem, solved.rows, self.base):
                return solved.rows
        return None

    def around(self, centre: Real, rows: float) -> tuple[Real, Real]:
        """Label frequencies a few rows below and above a centre, inside the box."""
        room = rows / max(float(self.problem.have.sum()), 1.0)
        low, high = (
            np.maximum(centre - room, self.box.low),
            np.minimum(centre + room, self.box.high),
        )
        return np.maximum(low, centre / 2), high

    def balanced_by_largest(self, centre: Real, rows: float) -> Whole | None:
        """Plan every group on its own, then balance the labels with the largest groups."""
        problem = self.problem
        low, high = self.around(centre, rows)
        solved = solve_separable(problem.cells, problem.band(high, most=low))
        if solved.cost >= self.found.cost:  # infinite if some group has no solution
            return None
        order = np.argsort(-solved.rows.sum(axis=1), kind="stable")
        chosen, rest = np.sort(order[:BALANCING]), np.sort(order[BALANCING:])
        part = problem.part(chosen)
        some = solve_coupled(
            replace(part, cells=part.cells.near(solved.rows[chosen])),
            high,
            most=low,
            balance=Box(low, high),
            fixed=solved.rows[rest].sum(axis=0),
            time_limit=self.seconds,
            nodes=100,
            gap=1e-3,
            inside=1e-6,
        )
        if some.rows is None:
            return None
        plan = solved.rows.copy()
        plan[chosen] = some.rows
        return plan

    @property
    def seconds(self) -> float:
        longest = 3.0 if self.small else 20.0
        return max(min((self.deadline - time.monotonic()) / 3, longest), 0.1)


def _apart(centres: list[Real], most: int) -> list[Real]:
    """The first centres that are not next to each other."""
    chosen: list[Real] = []
    for centre in centres:
        if all(np.abs(centre - c).max() > 2e-3 for c in chosen):
            chosen.append(centre)
        if len(chosen) == most:
            break
    return chosen
