"""The four-fifths rule: each group's rate of the favourable label over the best-off group's.

A group is compared with all measured groups that fix the same attributes, even if they are not
shown. The best-off group is the one with the highest rate among those with enough rows to say
anything. A group with too few rows gets a ratio but no verdict. ``min_count`` leaves smaller groups
out altogether.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.measures.measure import Floats, ratio
from equipoise.measures.measurement import Measurement
from equipoise.measures.row import NOTE_CODES
from equipoise.measures.uncertainty.intervals import Interval, ratio_interval
from equipoise.values import Value, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

RULE = 0.8
"""The ratio to the best-off group's rate below which the rule asks for a closer look."""
ROUNDING = 1e-12
"""A ratio closer to a limit than this is at the limit: quotients of floats are rounded."""


@dataclass(frozen=True, eq=False)
class FourFifths:
    """The four-fifths rule for some groups, against the best-off of all measured groups."""

    measured: Measurement
    label: int
    """Number of the favourable label."""
    line: NDArray[np.int64]
    """Lattice lines of the groups shown: groups with the same attributes together, the lowest rate
    first, and groups with too few rows for a verdict last."""

    @classmethod
    def of(cls, measured: Measurement, lines: NDArray[np.int64]) -> FourFifths | None:
        """Apply the rule to some lines of a lattice; None unless a favourable label is named."""
        favourable = measured.options.favourable
        if favourable is None or not len(lines):
            return None
        m, label = measured, measured.counts.label.code(favourable)
        shown = np.unique(lines)
        known = np.isfinite(m.ub[shown, label])
        if m.suppressed is not None:
            known &= ~m.suppressed[shown, label]
        shown = shown[known]
        fixed = m.lattice.codes[shown] != np.array(m.lattice.sizes)
        # The first attribute is the highest bit, which keeps families in the order of attributes.
        family = ~fixed @ (1 << np.arange(fixed.shape[1], dtype=np.int64)[::-1])
        silent = cls(m, label, shown).too_small[shown]
        order = np.lexsort((m.margins.rate[shown, label], family, m.lattice.orders[shown], silent))
        return cls(m, label, shown[order])

    @property
    def favourable(self) -> Value:
        """The favourable label."""
        return self.measured.counts.label.values[self.label]

    @functools.cached_property
    def best(self) -> NDArray[np.int64]:
        """The line of each measured group's best-off group."""
        return self.measured.best()[:, self.label]

    @functools.cached_property
    def impact_ratio(self) -> Floats:
        """Each measured group's rate over the best-off group's."""
        rate = self.measured.margins.rate[:, self.label]
        return np.where(self.best < 0, np.nan, ratio(rate, rate[self.best]))

    @functools.cached_property
    def interval(self) -> Interval | None:
        """The interval of each measured group's impact ratio; the best-off group's own is 1."""
        m = self.measured
        return None if m.interval is None else ratio_to_best(m, self.best, self.label)

    @functools.cached_property
    def too_small(self) -> NDArray[np.bool_]:
        """Which measured groups, other than the whole table, have too few rows for a verdict."""
        notes = self.measured.notes[:, self.label]
        return np.asarray((notes > 0) & (notes != NOTE_CODES.index("all rows")))

    @functools.cached_property
    def compared(self) -> NDArray[np.bool_]:
        """Which measured groups have a verdict."""
        return ~self.too_small & np.isfinite(self.impact_ratio)

    @functools.cached_property
    def below(self) -> NDArray[np.bool_]:
        """Which of these are below the limit of the rule."""
        return self.compared & (self.impact_ratio < RULE - ROUNDING)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; ``below`` is None for a group with too few rows for a verdict."""
        shown = self.compared[self.line]
        return {
            "label": self.measured.counts.label.name,
            "favourable": plain(self.favourable),
            "threshold": RULE,
            "measured": _tally(self.compared, self.below),
            "shown": _tally(shown, self.below[self.line]),
            "best": [self._group(int(at)) for at in dict.fromkeys(self.best[self.line].tolist())],
            "groups": [self.group(int(at)) for at in self.line],
        }

    def group(self, line: int) -> dict[str, Any]:
        """A group as plain data."""
        known = bool(self.compared[line])
        low, high = (
            (plain(float(x[line])) for x in self.interval) if self.interval else (None, None)
        )
        return {
            **self._group(line),
            "best": str(self.measured.group(int(self.best[line]))),
            "best_rate": plain(self._rate(int(self.best[line]))),
            "impact_ratio": plain(float(self.impact_ratio[line])),
            "impact_ratio_low": low,
            "impact_ratio_high": high,
            "below": bool(self.below[line]) if known else None,
            "too_small": bool(self.too_small[line]),
        }

    def _group(self, line: int) -> dict[str, Any]:
        m = self.measured
        group = m.group(line)
        return {
            "pattern": str(group),
            "group": {k: plain(v) for k, v in group.items()},
            "n_group": int(m.n_group[line]),
            "n_favourable": int(m.n_cell[line, self.label]),
            "rate": plain(self._rate(line)),
        }

    def _rate(self, line: int) -> float:
        return float(self.measured.margins.rate[line, self.label])


def ratio_to_best(m: Measurement, best: NDArray[np.int64], label: int) -> Interval:
    """Compute the interval of each group's rate of a label over its best-off group's rate."""
    rate = m.margins.rate[:, label]
    sizes = m.n_group if m.counts.weights is None else m.effective_sizes[0][:, 0]
    limits = ratio_interval(
        rate,
        sizes,
        rate[best],
        sizes[best],
        confidence=m.options.confidence,
        whole=m.counts.weights is None,
    )
    itself = best == np.arange(len(best))
    low, high = (np.where(itself, 1.0, np.where(best < 0, np.nan, x)) for x in limits)
    return Interval(low, high)


def _tally(compared: NDArray[np.bool_], below: NDArray[np.bool_]) -> dict[str, int]:
    return {
        "groups": len(compared),
        "compared": int(compared.sum()),
        "below": int(below.sum()),
        "without_verdict": int((~compared).sum()),
    }
