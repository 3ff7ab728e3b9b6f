"""Boxes of label frequencies, which searches split."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from equipoise.plans.cells import Real
    from equipoise.plans.problem import Problem


@dataclass(frozen=True, eq=False)
class Box:
    """A range for each label's frequency."""

    low: Real
    high: Real

    @property
    def middle(self) -> Real:
        """A distribution inside the box."""
        room = self.high - self.low
        left = 1 - self.low.sum()
        return np.asarray(self.low + room * (left / max(room.sum(), 1e-300)))

    @property
    def empty(self) -> bool:
        """Whether no distribution lies inside."""
        return bool((self.low > self.high + 1e-15).any() or self.low.sum() > 1 + 1e-12) or bool(
            self.high.sum() < 1 - 1e-12
        )

    def tightened(self) -> Box:
        """The smallest box with the same distributions."""
        low = np.maximum(self.low, 1 - (self.high.sum() - self.high))
        high = np.minimum(self.high, 1 - (low.sum() - low))
        return Box(low, np.maximum(high, low))

    def halves(self) -> Iterator[Box]:
        """The box cut in two across its widest side."""
        y = int((self.high - self.low).argmax())
        return self.split(y, (self.low[y] + self.high[y]) / 2)

    def split(self, y: int, at: float) -> Iterator[Box]:
        """The parts of the box with the frequency of a label below and above a value."""
        for side in (0, 1):
            low, high = self.low.copy(), self.high.copy()
            (high if side == 0 else low)[y] = at
            if not Box(low, high).empty:
                yield Box(low, high).tightened()

    def near(self, centre: Real, step: float) -> Iterator[Real]:
        """Neighbours that move a share from one label to another, or to all others."""
        labels = range(len(centre))
        for up, down in itertools.islice(itertools.permutations(labels, 2), 60):
            move = min(step, self.high[up] - centre[up], centre[down] - self.low[down])
            if 0 < move < centre[down]:
                moved = centre.copy()
                moved[up] += move
                moved[down] -= move
                yield moved
        for y, sign in itertools.product(labels, (1, -1)):
            moved = centre.copy()
            moved[y] = max(moved[y] + sign * step, 1e-9)
            yield self.clip(moved / moved.sum())

    def clip(self, centre: Real) -> Real:
        """A distribution inside the box that is close to another."""
        for _ in range(50):
            centre = np.clip(centre, self.low, self.high)
            left = 1 - centre.sum()
            if abs(left) < 1e-14:
                break
            room = self.high - centre if left > 0 else centre - self.low
            if not room.sum() > 0:
                break
            centre = centre + left * room / room.sum()
        return np.asarray(centre)


def allowed_box(problem: Problem, base: Real) -> Box:
    """The range that a request allows for the resulting label frequencies."""
    request = problem.request
    drift = math.inf if request.label_drift is None else request.label_drift
    if request.labels == "free" or problem.special:
        drift = min(drift, 1e9)  # 0·∞ would be nan
        least = np.where(base > 0, 1e-6, 0.0)
        low, high = np.maximum(base * (1 - drift), least), np.minimum(base * (1 + drift), 1.0)
        return Box(low, high).tightened()
    if request.tolerance_on == "ub":
        drift = min(drift, request.tolerance)
        low, high = base * (1 - drift), base * (1 + drift)
    else:
        room = np.minimum(request.tolerance, min(drift, 1e9) * base)
        low, high = base - room, base + room
    return Box(np.maximum(low, base * 1e-6), np.minimum(high, 1.0)).tightened()
