"""What the rules of a policy demand of each group of a table, and which demands follow from others."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Lattice, roll_up
from equipoise.measures.findings import fitting_rules
from equipoise.measures.uniform_bias import ub_of
from equipoise.plans.cells import Edges
from equipoise.plans.patterns import group_of
from equipoise.plans.policy import BEST, UB

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.counts import Axis, Counts
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.policy import PlanPolicy

    Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Demands:
    """Limits on the UB relative to K of groups and labels; infinite where there is none.

    There is a line per group and a column per label.
    """

    low: Real
    high: Real
    k: Real

    def take(self, lines: Any) -> Demands:
        """Select the lines of some groups."""
        return Demands(**{f.name: getattr(self, f.name)[lines] for f in fields(self)})

    def where(self, chosen: Flags) -> Demands:
        """The same, with no limits elsewhere."""
        return Demands(
            np.where(chosen, self.low, -np.inf), np.where(chosen, self.high, np.inf), self.k
        )

    def widened(self, by: float) -> Demands:
        """The limits moved outward on both sides."""
        return Demands(self.low - by, self.high + by, self.k) if by else self

    @property
    def limited(self) -> Flags:
        """Where there is a limit."""
        return np.isfinite(self.low) | np.isfinite(self.high)

    @property
    def edges(self) -> Edges:
        """The limits on shares: UB within [low, high] is a share within K·(1 − high, 1 − low)·f."""
        none = np.zeros_like(self.k)
        above = np.isfinite(self.low)
        low = np.where(np.isfinite(self.high), self.k * np.maximum(1 - self.high, 0.0), 0.0)
        high = np.where(above, self.k * np.maximum(1 - self.low, 0.0), 0.0)
        return Edges(low, none, high, np.where(above, 0.0, 1.0))

    def excess(self, ub: Real) -> Real:
        """How far UB is beyond its limits, negative inside them; computed as a check does."""
        value = self._relative(ub)
        return np.asarray(np.maximum(self.low - value, value - self.high))

    def met(self, ub: Real) -> Flags:
        """Whether UB is inside its limits; an undefined one is not checked."""
        value = self._relative(ub)
        return ~((value < self.low) | (value > self.high))

    def _relative(self, ub: Real) -> Real:
        return np.where(self.k == 1, ub, 1 - (1 - ub) / self.k)


def refuse_missing(rows: int) -> None:
    """Refuse rows with missing values that a plan would set aside."""
    if rows:
        raise InputError(
            f"{rows:,} rows have a missing value, which a check counts as groups of their own; use "
            "`plan_missing=True` to plan for them, or `missing='drop'` to leave them out here and in "
            "the check."
        )


def joint_edges(demands: tuple[Demands, ...], slack: float) -> Edges:
    """The limits on shares that meet several demands at once."""
    first, *others = (d.widened(slack).edges for d in demands)
    for other in others:
        free, their = first.high_shift > 0, other.high_shift > 0
        high = np.where(
            free, other.high, np.where(their, first.high, np.minimum(first.high, other.high))
        )
        first = Edges(
            np.maximum(first.low, other.low),
            first.low_shift,
            high,
            np.where(free & their, 1.0, 0.0),
        )
    return first


def bias_of(sums: Whole, totals: Whole) -> Real:
    """UB of groups from their rows and the rows of each label, in the floats of a check."""
    n_y = totals.astype(float)
    size = sums.sum(axis=1, keepdims=True)
    return np.asarray(ub_of(n=float(n_y.sum()), n_y=n_y, n_g=size, n_gy=sums))


@dataclass(frozen=True, eq=False)
class Ruled:
    """What a policy demands of every group of a table's lattice, if the group is large enough."""

    axes: tuple[Axis, ...]  # the sensitive attributes
    lattice: Lattice  # the first column is not used, the second has the present rows
    codes: NDArray[np.int32]  # of the finest groups
    finest: NDArray[np.int64]  # the line of each finest group in the lattice
    layers: tuple[Demands, ...]  # demands that all have to be met, by line of the lattice
    least: tuple[Whole, ...]  # minimum rows of a group that each layer applies to
    best: Flags | None  # groups and labels that the last layer holds to a best-off group's rate
    ratio: float = 1.0  # of the rates of these groups and the best-off group's, at least

    @classmethod
    def of(cls, counts: Counts, codes: NDArray[np.int32], have: Whole, policy: PlanPolicy) -> Ruled:
        """Find the rule that decides for each group and label of a table."""
        lattice = _rolled_up(counts, codes, have)
        deep = np.zeros(len(lattice), np.bool_)
        if policy.max_order is not None:
            deep = lattice.orders > policy.max_order
        fitting = fitting_rules(counts, lattice.codes, policy.rules, UB)
        fitting[deep] = -1
        given = [(*rule.bounds, rule.k, rule.min_count) for rule in policy.rules]
        low, high, k, least = np.array([*given, (-np.inf, np.inf, 1.0, 1)]).T[:, fitting]
        layers, sizes = [Demands(low, high, k)], [least.astype(np.int64)]
        made = cls(
            tuple(counts.sensitive),
            lattice,
            codes,
            lattice.find(codes),
            tuple(layers),
            tuple(sizes),
            None,
        )
        if policy.ratio is None:
            return made
        held = fitting_rules(counts, lattice.codes, policy.rules, BEST) >= 0
        held[deep] = False
        if not held.any():
            return made
        return made._with_ratio(held, policy.ratio.bounds[0], policy.ratio.min_count)

    def _with_ratio(self, held: Flags, ratio: float, least: int) -> Ruled:
        none = np.ones(held.shape)
        layer = Demands(none * -np.inf, none * np.inf, none)
        return replace(
            self,
            layers=(*self.layers, layer),
            least=(*self.least, np.full(held.shape, least)),
            best=held,
            ratio=ratio,
        ).between(1.0, 1 / ratio)

    def best_rate(self, rows: Whole) -> float:
        """The highest rate that a group has after the repair, as a multiple of the overall rate."""
        assert self.best is not None  # noqa: S101 - asked only if there is such a rule
        sums = self.sums(rows)
        held = np.isfinite(self.layers[-1].low) & (sums.sum(axis=1)[:, None] >= self.least[-1])
        ratio = 1 - bias_of(sums, rows.sum(axis=0))[held]
        # A little above, because floats of a check may round the other way.
        return float(max(ratio[~np.isnan(ratio)].max(initial=1.0), 1.0)) * (1 + 1e-15)

    @property
    def families(self) -> NDArray[np.intp]:
        """For each group, the number of the set of attributes that it fixes."""
        fixed = self.lattice.codes != np.array(self.lattice.sizes)
        return np.unique(fixed, axis=0, return_inverse=True)[1].reshape(-1)

    @property
    def compares_all(self) -> bool:
        """Whether the rule on the best-off group is one range of rates for all groups it compares.

        That is so if it applies to all groups of the same attributes, and to the finest groups,
        whose best-off group has the highest rate of all, or to the groups of one set of attributes.
        """
        assert self.best is not None  # noqa: S101 - asked only if there is such a rule
        held: Flags = np.asarray(self.best.any(axis=1))
        family = self.families
        compared = np.unique(family[held])
        finest = family[self.finest[0]]
        return bool(held[np.isin(family, compared)].all()) and (
            len(compared) == 1 or finest in compared
        )

    def without_best(self) -> Ruled:
        """The demands without those of the rule on the best-off group."""
        return replace(self, layers=self.layers[:-1], least=self.least[:-1], best=None)

    def between(self, least: float, most: float) -> Ruled:
        """The demands if the best-off group's rate is between two multiples of the overall rate.

        Every group of the same attributes has at most the best-off group's rate.
        """
        assert self.best is not None  # noqa: S101 - asked only if there is such a rule
        family = self.families
        compared = np.zeros((int(family.max(initial=-1)) + 1, self.best.shape[1]), np.bool_)
        np.logical_or.at(compared, family, self.best)
        low = np.where(compared[family], 1 - most, -np.inf)
        high = np.where(self.best, 1 - self.ratio * least, np.inf)
        layer = Demands(low, high, np.ones(low.shape))
        return replace(self, layers=(*self.layers[:-1], layer))

    @property
    def sizes(self) -> Whole:
        """The present number of rows of each group."""
        return np.asarray(self.lattice.columns[1].sum(axis=1))

    def sums(self, rows: Whole) -> Whole:
        """The rows of every group of the lattice."""
        return roll_up(self.codes, self.lattice.sizes, _with_presence(rows)).columns[1]

    def judged(self, sizes: Whole) -> tuple[Flags, ...]:
        """Where each layer applies if groups have the given sizes."""
        pairs = zip(self.layers, self.least, strict=True)
        return tuple(layer.limited & (sizes[:, None] >= least) for layer, least in pairs)

    def broken(self, rows: Whole, slack: float) -> NDArray[np.intp]:
        """The lines of groups that are outside their limits after the repair."""
        sums = self.sums(rows)
        ub = bias_of(sums, rows.sum(axis=0))
        outside = np.zeros(ub.shape, np.bool_)
        for layer, held in zip(self.layers, self.judged(sums.sum(axis=1)), strict=True):
            outside |= held & ~layer.widened(slack).met(ub)
        return np.flatnonzero(outside.any(axis=1))

    def excess(self, rows: Whole) -> float:
        """The largest excess over a limit, of groups that are large enough before or after."""
        sums = self.sums(rows)
        ub = bias_of(sums, rows.sum(axis=0))
        after = sums.sum(axis=1)
        worst = -np.inf
        for layer, held in zip(
            self.layers,
            self.judged(np.where(after > 0, np.maximum(after, self.sizes), 0)),
            strict=True,
        ):
            over = layer.excess(ub)[held]
            worst = max(worst, float(over[~np.isnan(over)].max(initial=-np.inf)))
        return worst

    def posed(self, lifted: Flags, slack: float) -> Posed:
        """The demands of a problem: those of groups that are large enough, or that are lifted."""
        large = self.judged(np.where(lifted, np.iinfo(np.int64).max, self.sizes))
        layers = tuple(d.where(at) for d, at in zip(self.layers, large, strict=True))
        edges = joint_edges(layers, slack)
        if not slack:
            self._refuse_contradiction(edges)
        low, high = edges.low, np.where(edges.high_shift > 0, np.inf, edges.high)
        is_finest = np.zeros(len(self.lattice), np.bool_)
        is_finest[self.finest] = True
        limited = np.asarray(((low > 0) | np.isfinite(high)).any(axis=1))
        coarse = limited & ~is_finest & (~self._implied(low, high) | lifted)
        judged = limited[self.finest]
        if not limited.any():
            raise InputError(
                "`policy` has no rule for any group of the table that is large enough, so there is "
                "nothing to repair; lower min-count, or add rules."
            )
        lines = np.flatnonzero(coarse)
        parts = tuple(self.parts(line) for line in lines.tolist())
        own = tuple(d.take(self.finest) for d in layers)
        return Posed(judged, parts, own, tuple(d.take(lines) for d in layers))

    def _refuse_contradiction(self, edges: Edges) -> None:
        """Refuse limits under which the rates of a group cannot add up to one, at any frequencies."""
        most = np.where(edges.high_shift > 0, np.inf, edges.high).max(axis=1)
        least = edges.low.min(axis=1)
        wrong = np.flatnonzero((most < 1) | (least > 1))
        if len(wrong):
            line = int(wrong[0])
            above = most[line] < 1
            sum_, word = (most[line], "most") if above else (least[line], "least")
            group = group_of(self.axes, self.lattice.codes[line].tolist())
            raise InputError(
                f"`policy` contradicts itself: by the rules for {group}, the rates of its labels would "
                f"add up to at {word} {sum_:.4g}, not 1; a K is meant for one label, so name the "
                "label of the rule."
            )

    def parts(self, line: int) -> NDArray[np.intp]:
        """The finest groups inside a group."""
        fixed = self.lattice.codes[line] != np.array(self.lattice.sizes)
        return np.flatnonzero((self.codes[:, fixed] == self.lattice.codes[line, fixed]).all(axis=1))

    def _implied(self, low: Real, high: Real) -> Flags:
        """Which coarser groups are inside their limits whenever their parts are inside theirs.

        A group is a mixture of its parts by any one attribute, so its share lies between the
        smallest and the largest limit of these parts. Limits that follow count for coarser groups.
        """
        low, high = low.copy(), high.copy()
        implied = np.zeros(len(low), np.bool_)
        orders, codes = self.lattice.orders, self.lattice.codes
        for order in range(int(orders.max(initial=1)) - 1, 0, -1):
            least, most = np.zeros(low.shape), np.full(high.shape, np.inf)
            child = np.flatnonzero(orders == order + 1)
            for axis, size in enumerate(self.lattice.sizes):
                inside = child[codes[child, axis] != size]
                upper = codes[inside].copy()
                upper[:, axis] = size
                parent = self.lattice.find(upper)
                hull_low, hull_high = np.full(low.shape, np.inf), np.zeros(high.shape)
                np.minimum.at(hull_low, parent, low[inside])
                np.maximum.at(hull_high, parent, high[inside])
                found = np.unique(parent)
                least[found] = np.maximum(least[found], hull_low[found])
                most[found] = np.minimum(most[found], hull_high[found])
            here = orders == order
            follows = np.asarray(((least >= low) & (most <= high)).all(axis=1))
            implied[here] = follows[here]
            low[here], high[here] = (
                np.maximum(low, least)[here],
                np.minimum(high, most)[here],
            )
        return implied


@dataclass(frozen=True, eq=False)
class Posed:
    """The demands of a problem."""

    judged: Flags  # finest groups with a limit
    parts: tuple[NDArray[np.intp], ...]  # the finest groups inside each coarser group with a limit
    own: tuple[Demands, ...]  # of the finest groups
    coarse: tuple[Demands, ...]


def _with_presence(rows: Whole) -> list[Whole]:
    # Groups that have no rows yet are part of the lattice, too, since a plan may give them some.
    return [np.ones((len(rows), 1), np.int64), rows]


def _rolled_up(counts: Counts, codes: NDArray[np.int32], rows: Whole) -> Lattice:
    return roll_up(codes, [len(a) for a in counts.sensitive], _with_presence(rows))
