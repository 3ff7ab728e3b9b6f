"""Plans held against the repaired table's own label frequencies, for any number of labels.

Boxes of label frequencies are split, the one with the lowest bound first. A linear relaxation
bounds a box, the frequencies of its solution give a plan, and plans make the boxes and the ranges
of the groups' shares narrower, which makes the relaxation tighter.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.plans.solvers.box import Box
from equipoise.plans.solvers.incumbent import CLOSED
from equipoise.plans.solvers.plan_search import PlanSearch, band_over
from equipoise.plans.solvers.relaxation import FrequencyRelaxation, Kinds, Relaxed
from equipoise.plans.solvers.separable import solve_separable
from equipoise.plans.solvers.size_ranges import range_shares

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.plans.cells import Real
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.incumbent import Incumbent

NARROW = 1e-9
"""A box that is not split any further."""

SMALL, WHOLE = 30, 120
"""Numbers of cells up to which models in whole rows are solved: by default, and for a given gap."""

FINE = 0.001
"""Gap at which a plan is not improved further, unless a smaller one is asked for."""

EXCHANGED = 60
"""Number of groups up to which single rows of the best plan are exchanged."""

QUICK = 0.2
"""With less effort than this, no model in whole rows is solved."""

POLISHED = 30
"""Number of branches of one model in whole rows."""

EVERY = 8
"""Plans are made from the first boxes, and from one in so many later."""

ROUNDS = 3
"""How often the box is narrowed at most before it is split."""

TELLING = 0.6
"""Share of the best cost that groups by themselves must cost to tell anything about their sizes."""

SHARES = 8
"""Number of groups whose shares of the table are bounded by linear programs: the widest ranges."""


def search_many_labels(
    problem: Problem,
    box: Box,
    found: Incumbent,
    *,
    gap: float,
    effort: float,
    deadline: float,
    progress: Callable[[float], None] = lambda _: None,
) -> None:
    """Find a cheap plan with label frequencies in a box, and a lower bound of the cost.

    ``found`` is updated. The search ends at the relative ``gap``, after work in proportion to
    ``effort``, or at the ``deadline`` of the monotonic clock. With infinite effort only the gap
    and the deadline end it.
    """
    ManyLabels(problem, box, found, gap, effort, deadline, progress).run()


class Node(NamedTuple):
    """A box that may have cheaper plans inside, the frequencies of its bound, and its errors."""

    box: Box
    centre: Real
    off: Real | None


class ManyLabels(PlanSearch):
    """The search."""

    heap: list[tuple[float, int, Node]]
    wholly = False  # whether boxes are searched in whole rows

    def __init__(self, *asked: Any) -> None:
        super().__init__(*asked)
        self.heap, self.floor, self.looked = [], math.inf, 0
        self.whole: FrequencyRelaxation | None = None
        self.small = self.problem.have.size <= (WHOLE if math.isinf(self.effort) else SMALL)

    # ------------------------------------------------------------------------- searching

    def run(self) -> None:
        """Search until the gap is reached, or the work is done."""
        found = self.found
        self.start()
        box = None if found.settled else self.root()
        if box is not None:
            self.look(found.bound, box)
        self.branch()
        self.polish()
        self.improve()
        if math.isinf(self.effort):
            self.wholly = True
            self.branch()
        self.progress(1.0)

    def branch(self) -> None:
        """Split the box with the lowest bound, as long as that can help."""
        found = self.found
        self.raise_bound()
        while self.heap and not found.near(self.gap) and not self.done():
            bound, _, node = heapq.heappop(self.heap)
            if bound >= self.cutoff:
                continue
            if not self.wholly and bound >= self.rounded(self.real * (1 - self.gap / 10)):
                heapq.heappush(self.heap, (bound, next(self.number), node))
                break  # real-valued plans are as cheap
            self.split(bound, node)
            self.raise_bound()
        self.raise_bound()

    def polish(self) -> None:
        """Search all boxes that are left for whole rows with one model, if it is small."""
        nodes = [node for _, _, node in self.heap]
        near = self.found.near(self.gap)
        if not nodes or not self.small or near or self.late() or self.effort < QUICK:
            return
        low = np.min([node.box.low for node in nodes], axis=0)
        high = np.max([node.box.high for node in nodes], axis=0)
        asked = math.isinf(self.effort)
        self.relaxation.share(self.least, self.most)
        bound = self.in_whole_rows(Box(low, high), nodes=10 * POLISHED if asked else POLISHED)
        self.heap = [(max(b, bound), n, node) for b, n, node in self.heap]
        heapq.heapify(self.heap)
        self.raise_bound()

    def improve(self) -> None:
        """Exchange single rows of the best plan for cheaper ones."""
        rows, tries = self.found.rows, int(self.effort_of(60))
        near = self.found.near(min(self.gap, FINE))
        if rows is None or near or self.effort < QUICK or self.late() or len(rows) > EXCHANGED:
            return
        self.found.offer(self.problem, self.rounding.exchange(rows, tries), self.box)
        self.raise_bound()

    def in_whole_rows(self, box: Box, nodes: int) -> float:
        """Bound a box in whole rows, and offer what is found; the bound is rounded."""
        if self.whole is None:
            self.whole = FrequencyRelaxation(self.problem, Kinds.all(self.problem), whole=True)
        whole, back, cutoff = self.whole, self.kinds.back, self.cutoff
        whole.share(self.relaxation.least[back], self.relaxation.most[back])
        whole.cheaper(cutoff)
        whole.move(box)
        gap = max(self.gap / 4, 0.9 * (self.step or 0.0) / max(abs(cutoff), 1e-9))
        bound, rows = whole.in_whole_rows(gap=min(gap, 1.0), nodes=nodes, time_limit=self.left)
        self.relaxation.solved += 10
        if rows is not None:
            self.found.offer(self.problem, rows, self.box)
            mended = self.rounding.repair(rows, 20 + rows.size)
            if mended is not None:
                self.found.offer(self.problem, self.rounding.trim(mended, rows.size), self.box)
        return self.beyond(cutoff) if bound == math.inf else self.rounded(bound)

    @property
    def cutoff(self) -> float:
        """The cost below which a plan is worth a search."""
        cost = self.found.cost
        if not math.isfinite(cost):
            return math.inf
        size = abs(cost)
        return cost - max(
            self.gap * size * (1 - 1e-9), (self.step or 0.0) * (1 - 1e-4), CLOSED * size
        )

    def raise_bound(self) -> None:
        """No plan costs less than the boxes that are left, or than what was not searched for."""
        lowest = self.heap[0][0] if self.heap else math.inf
        bound = min(lowest, self.floor, self.beyond(self.cutoff))
        self.found.bound = max(self.found.bound, min(bound, self.found.cost))

    def beyond(self, cost: float) -> float:
        """The lowest possible cost above one that no plan has, nor a lower one."""
        if not self.step or not math.isfinite(cost):
            return self.rounded(cost)
        return (math.floor(cost / self.step + 1e-9) + 1) * self.step

    def rounded(self, cost: float) -> float:
        """Round a bound up to the next possible cost, if costs are multiples of a step."""
        if not math.isfinite(cost):
            return cost if cost > 0 else self.found.lowest
        if self.step:
            return math.ceil(cost / self.step - 1e-4) * self.step
        return cost - 1e-9 * abs(cost) - 1e-7

    def look(self, bound: float, box: Box) -> None:
        """Bound a box, make a plan from it, and keep it if cheaper plans may be inside."""
        relaxed = self.bound(box)
        bound = max(bound, self.rounded(relaxed.bound))
        if bound >= self.cutoff:
            return
        if self.wholly and relaxed.rows is not None and relaxed.worst < 1 and self.small:
            bound = max(bound, self.in_whole_rows(box, nodes=10 * POLISHED))
            if bound >= self.cutoff:
                return
        centre = box.middle
        if relaxed.rows is not None:
            box = self.narrowed(box, relaxed)
            centre = self.frequencies(relaxed, box)
        heapq.heappush(self.heap, (bound, next(self.number), Node(box, centre, relaxed.off)))
        self.looked += 1
        if relaxed.rows is not None and (self.looked <= EVERY or self.looked % EVERY == 0):
            self.descend(centre, steps=2)

    def narrowed(self, box: Box, relaxed: Relaxed) -> Box:
        """Cut off what would cost too much by the prices of the sides that the solution is at."""
        room = self.cutoff - relaxed.bound
        if relaxed.sides is None or not math.isfinite(room):
            return box
        over, under = relaxed.sides
        least = max(self.smallest, 1.0)
        with np.errstate(divide="ignore"):
            high = np.where(over > 1e-6, box.low + 1.001 * room / (over * least), np.inf)
            low = np.where(under > 1e-6, box.high - 1.001 * room / (under * least), -np.inf)
        cut = Box(np.maximum(box.low, low), np.minimum(box.high, high))
        return box if cut.empty else cut.tightened()

    def bound(self, box: Box) -> Relaxed:
        """Bound a box by the relaxation, in which no group costs less than its whole rows."""
        relaxation, kinds, cutoff = self.relaxation, self.kinds, self.cutoff
        band = band_over(kinds.edges, box)
        solved = solve_separable(kinds.cells, band)
        if not solved.feasible:
            return Relaxed(math.inf)
        apart = float(solved.costs @ kinds.times)
        if self.rounded(apart) >= cutoff:
            return Relaxed(apart)
        least, most = self.least, self.most
        if apart > TELLING * cutoff:
            narrow = range_shares(kinds, band, solved.costs, cutoff)
            least, most = np.maximum(narrow[0], least), np.minimum(narrow[1], most)
        relaxation.share(least, np.maximum(least, most))
        relaxation.cheaper(cutoff)
        relaxation.move(box)
        relaxation.dearer(solved.costs)
        return relaxation.solve(time_limit=self.left)

    def split(self, bound: float, node: Node) -> None:
        """Split a box at the label whose products are most wrong."""
        box, off = node.box, node.off
        width = box.high - box.low
        if width.max() <= NARROW:
            self.floor = min(self.floor, bound)
            return
        off = width if off is None or off.max() <= 0 else off
        y = int(np.where(width > NARROW, off, -1.0).argmax())
        inner = width[y] / 10  # a cut near the edge would leave one part as wide as before
        at = float(np.clip(node.centre[y], box.low[y] + inner, box.high[y] - inner))
        for part in box.split(y, at):
            self.look(bound, part)

    # ------------------------------------------------------------------------ tightening

    def root(self) -> Box | None:
        """Narrow the box and the shares by what plans may cost, again while that helps."""
        box = self.box
        for turn in range(ROUNDS):
            before = self.found.cost
            self.rough_shares()
            relaxed = self.bound(box)
            bound = self.rounded(relaxed.bound)
            if bound >= self.cutoff:
                return None
            self.found.bound = max(self.found.bound, min(bound, self.found.cost))
            if relaxed.rows is not None:
                self.descend(self.frequencies(relaxed, box), steps=12)
            if turn == 0:
                self.try_others()
            if not math.isfinite(self.cutoff) or self.found.near(self.gap) or self.done():
                return box
            narrowed = self.narrow(box)
            if narrowed is None:
                return None
            wide = (narrowed.high - narrowed.low).sum() > 0.8 * (box.high - box.low).sum()
            box = narrowed
            if wide and self.found.cost > 0.995 * before:
                break
        return box

    def rough_shares(self) -> None:
        """Bound the groups' shares by the rows that the best cost pays for."""
        cells, cost = self.kinds.cells, self.found.cost - self.found.lowest
        n = float(self.problem.have.sum())
        sizes = cells.have.sum(axis=1).astype(float)
        added, gone = cells.most_changes(cost)
        self.largest, self.smallest = n + added, n - gone
        paid = self.found.lowest < 0  # what some changes pay for is not told by the prices alone
        if not math.isfinite(added) or gone >= n or paid:
            return
        ends = [(0.0, 0.0), (added, 0.0), (0.0, gone)]
        least = np.min([(sizes - d).clip(0) / (n + a - d) for a, d in ends], axis=0)
        most = np.max([(sizes + a) / (n + a - d) for a, d in ends], axis=0).clip(0, 1)
        self.least, self.most = np.maximum(least, self.least), np.minimum(most, self.most)

    def narrow(self, box: Box) -> Box | None:
        """Narrow a box and the shares to those of cheaper plans; None if there are none."""
        relaxation, at = self.relaxation, self.relaxation.at
        relaxation.cheaper(self.cutoff)
        relaxation.move(box)
        (most,) = relaxation.extremes([(at["everything"], -1.0)], seconds=self.left)
        if most == math.inf:
            return None
        n = min(-most * (1 + 1e-9), self.largest) if math.isfinite(most) else self.largest
        surplus = [*at["over"], *at["under"]]
        found = relaxation.extremes([(np.array([j]), 1.0) for j in surplus], seconds=self.left)
        if found[-1] == math.inf:
            return None
        gained = (np.maximum(found, 0.0) / n * (1 - 1e-9)).reshape(2, -1)
        low, high = box.low + gained[0], box.high - gained[1]
        narrowed = Box(low, np.maximum(high, low)).tightened()
        self.narrow_shares(n)
        return narrowed

    def narrow_shares(self, n: float) -> None:
        """Narrow the widest ranges of shares; ``n`` is the size of the largest table."""
        relaxation, at = self.relaxation, self.relaxation.at
        wide = self.most - self.least
        chosen = np.sort(np.argsort(-wide, kind="stable")[:SHARES])
        least, most = self.least.copy(), self.most.copy()
        pairs = [np.array([at["size"][g], at["everything"][0]]) for g in chosen]
        lows = [(pair, np.array([1.0, -least[g]])) for g, pair in zip(chosen, pairs, strict=True)]
        highs = [(pair, np.array([-1.0, most[g]])) for g, pair in zip(chosen, pairs, strict=True)]
        found = relaxation.extremes(lows + highs, seconds=self.left)
        if len(found) < 2 * len(chosen) or math.inf in found:
            return
        gained = (np.maximum(found, 0.0) / n * (1 - 1e-9)).reshape(2, -1)
        least[chosen] += gained[0]
        most[chosen] -= gained[1]
        self.least, self.most = least, np.maximum(most, least)
