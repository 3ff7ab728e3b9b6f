"""A run of draws: what has been drawn, what is still needed, and which sources may have it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from equipoise.errors import InputError
from equipoise.lake.sampling.purchases import WHY, Kept, Purchase, Standing, Stopped
from equipoise.lake.sampling.sources import (
    Cell,
    Flags,
    Floats,
    SampledSource,
    Whole,
    mix_of,
    mixes_of,
    sizes_of,
)
from equipoise.progress import Reporter

FIRST = 8
"""Number of first draws from a source whose mix is unknown, and initial weight of the prior."""

_CONFIDENCE = 0.95
"""Confidence level of the bound by which a cell is given up in a source."""


class BuyingLimits(NamedTuple):
    """Limits of a run, as :func:`tailor` takes them."""

    budget: float | None
    max_draws: int | None
    min_rate: float
    batch: int | None
    stop: Callable[[Standing], bool] | None


class Run:
    """What has been drawn, what is still needed, and which sources may have it."""

    def __init__(
        self,
        sources: Sequence[SampledSource],
        need: Mapping[Cell, int],
        limits: BuyingLimits,
        rng: np.random.Generator,
        keep: Callable[[str, Cell, Any], None] | None,
        progress: Reporter,
    ) -> None:
        self.sources, self.limits, self.rng = sources, limits, rng
        self.cells = list(need)
        self.asked = sum(need.values())
        self.left = np.array(list(need.values()), np.int64)
        self.costs = np.array([source.cost for source in sources], float)
        self.sizes = sizes_of(sources)
        self.mixes = mixes_of(sources, self.cells)
        self.told: Flags = np.array([mix_of(source) is not None for source in sources])
        self.drawn = np.zeros(len(sources), np.int64)
        self.kept = np.zeros(len(sources), np.int64)
        self.seen = np.zeros(self.mixes.shape, np.int64)
        self.exhausted = np.array([size == 0 for size in self.sizes])
        self.hopeless: Flags = np.asarray(self.mixes == 0)
        self.strengths = np.full(len(self.cells), float(FIRST))
        self.rows: dict[Cell, list[Kept]] = {cell: [] for cell in need}
        self.stopped: Stopped = "interrupted"
        self.error: Exception | None = None
        self._keep, self._progress = keep, progress
        self._places = {cell: g for g, cell in enumerate(self.cells)}

    @property
    def cost(self) -> float:
        """Cost of all draws so far."""
        return math.fsum(self.drawn * self.costs)

    def useful(self) -> Flags:
        """Mark by source and cell whether the source may still have needed rows."""
        return np.asarray(~self.exhausted[:, None] & ~self.hopeless & (self.left > 0))

    def most(self) -> Whole:
        """Return the maximum number of draws in the next request by source; 0 if it is of no use."""
        most = np.minimum(self.sizes - self.drawn, float(self.limits.batch or 2**31))
        if self.limits.max_draws is not None:
            most = np.minimum(most, self.limits.max_draws - int(self.drawn.sum()))
        if self.limits.budget is not None:
            most = np.minimum(most, [self._affordable(s) for s in range(len(self.sources))])
        return np.where(self.useful().any(axis=1), most, 0).astype(np.int64)

    def _affordable(self, s: int) -> int:
        budget = self.limits.budget or 0.0
        n = int(min((budget - self.cost) / self.costs[s], 2**31)) + 1
        spent = self.drawn * self.costs
        # Checked with the sum that is reported, so that no rounding error exceeds the budget.
        while n > 0:
            spent[s] = (self.drawn[s] + n) * self.costs[s]
            if math.fsum(spent) <= budget:
                break
            n -= 1
        return max(n, 0)

    def reason_to_stop(self) -> Stopped | None:
        """Return the reason to stop, if there is one."""
        if not self.left.any():
            return "met"
        if not self.useful().any():
            return "exhausted" if self.exhausted.all() else "no progress"
        if self.limits.max_draws is not None and self.drawn.sum() >= self.limits.max_draws:
            return "max_draws"
        if not self.most().any():
            return "budget"
        return "asked" if self.limits.stop and self.limits.stop(self._standing()) else None

    def _standing(self) -> Standing:
        missing = {self.cells[g]: int(self.left[g]) for g in np.flatnonzero(self.left)}
        return Standing(int(self.drawn.sum()), self.cost, missing)

    def draw(self, s: int, n: int) -> None:
        """Draw rows and record each as it arrives, since it has been paid for."""
        source = self.sources[s]
        self._progress(f"drawing from {source.name}", 1 - float(self.left.sum()) / self.asked)
        given = 0
        for given, (cell, row) in enumerate(source.draw(n), 1):
            if given > n:
                raise InputError(f"{source.name} returned more than the {n:,} rows requested.")
            self.drawn[s] += 1
            g = self._places.get(cell)
            if g is not None:
                self._take(s, g, row)
        self.exhausted[s] = given < n or self.drawn[s] >= self.sizes[s]
        self._give_up(s)

    def _take(self, s: int, g: int, row: Any) -> None:
        self.seen[s, g] += 1
        if self.left[g]:
            self.left[g] -= 1
            self.kept[s] += 1
            self.rows[self.cells[g]].append(Kept(self.sources[s].name, row))
            if self._keep:
                self._keep(self.sources[s].name, self.cells[g], row)

    def _give_up(self, s: int) -> None:
        if self.told[s] and math.isfinite(self.sizes[s]):
            rows = np.round(self.mixes[s] * self.sizes[s])
            self.hopeless[s] |= self.seen[s] >= rows
        if self.drawn[s] * self.limits.min_rate > 1:  # fewer draws cannot rule anything out
            least = np.full(len(self.cells), self.limits.min_rate)
            if self.told[s]:  # a cell may be as rare as stated; give up only if it is far rarer
                least = np.minimum(least, self.mixes[s] / 10)
            self.hopeless[s] |= _highest_rate(self.drawn[s], self.seen[s], self.sizes[s]) < least

    def purchases(self) -> tuple[Purchase, ...]:
        """Return the draws, rows kept and cost of each source."""
        columns = (self.drawn, self.kept, self.drawn * self.costs, self.exhausted)
        lines = zip(self.sources, *(column.tolist() for column in columns), strict=True)
        return tuple(Purchase(source.name, *numbers) for source, *numbers in lines)

    def reasons(self) -> dict[Cell, str]:
        """Explain why rows are missing, by cell."""
        anywhere: Flags = np.asarray(self.useful().any(axis=0))
        return {
            self.cells[g]: WHY[self.stopped] if anywhere[g] else self._nowhere(g)
            for g in np.flatnonzero(self.left).tolist()
        }

    def _nowhere(self, g: int) -> str:
        given_up = self.hopeless[:, g] & ~self.told & ~self.exhausted
        if given_up.any():
            return f"no source is likely to have it at a rate of {self.limits.min_rate:g} or more"
        return "no source has any more" if self.seen[:, g].any() else "no source has it"


def buy(run: Run, choose: Callable[[Run], Iterable[tuple[int, int]]]) -> None:
    """Draw until a limit is reached; an error ends the run, and what was paid for is kept."""
    try:
        while (reason := run.reason_to_stop()) is None:
            for s, n in choose(run):
                most = int(run.most()[s])  # other draws of this round have changed it
                if most:
                    run.draw(s, min(n, most))
                if not run.left.any():
                    break
        run.stopped = reason
    except KeyboardInterrupt:
        run.stopped = "interrupted"
    except Exception as error:  # noqa: BLE001 - it is in the result, and what was paid for is kept
        run.stopped, run.error = "failed", error


def _highest_rate(drawn: int, seen: Whole, size: float) -> Floats:
    """Upper Clopper-Pearson bound of the share of a cell among the rows not drawn yet."""
    from scipy.special import betaincinv

    rest = np.maximum(drawn - seen, 0)
    rate = np.where(rest > 0, betaincinv(seen + 1, np.maximum(rest, 1), _CONFIDENCE), 1.0)
    if math.isfinite(size):
        return np.maximum(rate * size - seen, 0) / max(size - drawn, 1)
    return rate
