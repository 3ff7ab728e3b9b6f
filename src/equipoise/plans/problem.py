"""A request applied to counts: the arrays that solvers work on."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.plans.benchmark import (
    Lacking,
    TargetRates,
    TargetShares,
    resolve_rates,
    resolve_shares,
)
from equipoise.plans.cells import UNLIMITED, Band, Cells, Edges, refuse_too_many
from equipoise.plans.coverage import LeastRows, add_empty_groups, minimums
from equipoise.plans.demands import Demands, Ruled, joint_edges, refuse_missing
from equipoise.plans.judged import Judged, judged_groups
from equipoise.plans.limits import Limit, limit_rows, limit_share
from equipoise.plans.patterns import cell_numbers, group_of, numbers_of
from equipoise.plans.request import NUMBERED, PlanRequest
from equipoise.plans.targets import (
    Ratios,
    Targets,
    label_frequencies,
    require_labels,
    resolve,
)
from equipoise.values import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from equipoise.counts import Counts
    from equipoise.options.plan import Numbers, Reference
    from equipoise.plans.cells import Real, Whole

NO_LIMITS: dict[str, Any] = {
    "available": (),
    "at_least": (),
    "at_least_each": (),
    "min_rows": None,
    "max_rows": None,
    "pool": None,
    "label_drift": None,
    "group_shares": (),
    "target_shares": None,
}
"""Options without which a request limits neither rows nor the move of label frequencies."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """A planning problem.

    "Lines" are the finest groups: all arrays have one line for each of them.
    """

    counts: Counts
    request: PlanRequest
    codes: NDArray[np.int32]  # the finest groups without missing values
    aside: int  # number of rows with missing values, which stay unchanged
    cells: Cells  # with the bounds of limits on single cells and groups
    rates: Real  # present label frequencies
    ratios: Real  # K of each finest group and label
    judged: NDArray[np.bool_]  # finest groups that must stay within the tolerance
    coarse: tuple[Judged, ...]  # coarser ones, where that does not follow from their parts
    limits: tuple[Limit, ...]  # all limits on rows
    coupling: tuple[Limit, ...]  # those that several groups share
    lacking: tuple[Lacking, ...] = ()  # what tables of targets lack
    ruled: Ruled | None = None  # what the rules of a policy demand, if there is one
    own: tuple[Demands, ...] = ()  # of these what holds for the finest groups
    shared: tuple[Demands, ...] = ()  # and for the coarser ones

    @property
    def have(self) -> Whole:
        """Present number of rows of each cell."""
        return self.cells.have

    @property
    def separable(self) -> bool:
        """Whether every group can be planned independently of the others."""
        return not self.coarse and not self.coupling

    @property
    def plain(self) -> bool:
        """Whether every finest group must come to K = 1, and so the whole lattice does."""
        if self.ruled is not None:
            return False
        return bool(self.judged.all()) and bool((self.ratios == 1).all())

    @property
    def special(self) -> bool:
        """Whether some target K is not 1, so that label frequencies must be free to adapt."""
        return bool((self.ratios != 1).any()) or any((j.k != 1).any() for j in self.coarse)

    @property
    def reference(self) -> Reference:
        """The label frequencies that groups are compared with."""
        if self.special and not self.request.tolerance:
            return (
                "original"  # K is a ratio to the present frequencies, which must be free to adapt
            )
        return self.request.reference or ("original" if self.special else "new")

    @functools.cached_property
    def base(self) -> Real:
        """The label frequencies to keep: the present ones, or those that the request gives."""
        labels = self.request.labels
        if isinstance(labels, str):
            return self.rates
        return label_frequencies(labels, self.counts.label, self.have.sum(axis=0))

    @property
    def may_drift(self) -> bool:
        """Whether label frequencies could move too far if nothing limits them.

        If every group reaches K = 1 within the tolerance, so does the table, as their mixture.
        """
        if self.request.label_drift is not None:
            return True
        return self.request.labels != "free" and not self.plain

    def group(self, line: int) -> Group:
        """The finest group of a line."""
        return group_of(self.counts.sensitive, self.codes[line].tolist())

    @functools.cached_property
    def edges(self) -> Edges:
        """The limits of the finest groups; those that are not judged have none."""
        return self._finest_edges(self.request.tolerance)

    @functools.cached_property
    def coarse_edges(self) -> Edges:
        """The limits of the coarser groups that are judged."""
        if self.ruled is not None:
            return joint_edges(self.shared, self.request.slack)
        return self._edges(self.coarse_ratios, self.request.tolerance)

    def _finest_edges(self, tolerance: float) -> Edges:
        if self.ruled is not None:
            return joint_edges(self.own, tolerance - self.request.policy.tolerance)
        return self._edges(self.ratios, tolerance).without(~self.judged)

    def _edges(self, ratios: Real, tolerance: float) -> Edges:
        return Edges.around(ratios, tolerance, self.request.tolerance_on)

    def band(self, centre: Real, tolerance: float | None = None, most: Real | None = None) -> Band:
        """The rates allowed to each finest group, around label frequencies."""
        edges = self.edges
        if tolerance is not None:
            edges = self._finest_edges(tolerance)
        band = edges.at(centre, most)
        return Band(band.low, np.minimum(band.high, 1.0))

    def coarse_band(self, centre: Real, most: Real | None = None) -> Band:
        """The rates allowed to each coarser group."""
        return self.coarse_edges.at(centre, most)

    @functools.cached_property
    def coarse_ratios(self) -> Real:
        """K of the coarser groups that are judged."""
        return np.array([j.k for j in self.coarse]).reshape(-1, self.cells.labels)

    @functools.cached_property
    def judged_ratios(self) -> Real:
        """K of all judged groups, the finest first."""
        return np.concatenate([self.ratios[self.judged], self.coarse_ratios])

    def judged_rows(self, rows: Whole) -> Whole:
        """The rows of all judged groups, in the order of ``judged_ratios``."""
        coarse = [rows[j.lines].sum(axis=0, keepdims=True) for j in self.coarse]
        return np.concatenate([rows[self.judged], *coarse])

    @functools.cached_property
    def membership(self) -> Any:
        """Which finest groups each coarser group contains, as a sparse matrix."""
        from scipy import sparse

        lines = [j.lines for j in self.coarse]
        rows = np.repeat(np.arange(len(lines)), [len(i) for i in lines])
        shape = (len(lines), len(self.cells))
        return sparse.csr_array((np.ones(len(rows)), (rows, np.concatenate(lines))), shape=shape)

    def holds(self, rows: Whole) -> bool:
        """Whether rows keep all limits except the tolerance."""
        shared = all(self.slack(limit, rows) >= 0 for limit in self.coupling)
        return shared and self.cells.contain(rows)

    def slack(self, limit: Limit, rows: Whole) -> Fraction:
        """The rows left until a limit; negative if it is broken."""
        return limit.slack(rows, self.have)

    def part(self, lines: NDArray[np.intp]) -> Problem:
        """The problem restricted to some groups."""
        return replace(
            self,
            codes=self.codes[lines],
            cells=self.cells.take(lines),
            ratios=self.ratios[lines],
            judged=self.judged[lines],
            own=tuple(demands.take(lines) for demands in self.own),
        )

    def demanding(self, ruled: Ruled, lifted: NDArray[np.bool_]) -> Problem:
        """The same problem with other demands of a policy; they also apply to lifted groups."""
        posed = ruled.posed(lifted, self.request.slack)
        one = np.ones(self.cells.labels)
        return replace(
            self,
            judged=posed.judged,
            coarse=tuple(Judged(parts, one) for parts in posed.parts),
            ruled=ruled,
            own=posed.own,
            shared=posed.coarse,
        )

    @property
    def limited(self) -> bool:
        """Whether the request limits rows or the move of label frequencies."""
        return any(getattr(self.request, name) not in ((), None) for name in NO_LIMITS)

    def unlimited(self) -> Problem:
        """The same problem without limits on rows and on the move of label frequencies."""
        request = self.request.but(**NO_LIMITS)
        cells = _cells(self.counts, self.codes, self.have, request, ())
        # Another objective sets its own prices, which are not those of the request.
        cells = replace(cells, add=self.cells.add, drop=self.cells.drop)
        return replace(self, request=request, cells=cells, limits=(), coupling=())

    def without(self, limit: Limit) -> Problem:
        """The same problem without one of its limits on rows."""
        limits = tuple(x for x in self.limits if x is not limit)
        cells = _cells(self.counts, self.codes, self.have, self.request, limits)
        cells = replace(cells, add=self.cells.add, drop=self.cells.drop)
        coupling = tuple(x for x in self.coupling if x is not limit)
        return replace(self, cells=cells, limits=limits, coupling=coupling)

    def again(self, **changes: Any) -> Problem:
        """The same problem with changes to the request."""
        return pose(self.counts, self.request.but(**changes))


def pose(counts: Counts, request: PlanRequest, *, added: Counts | None = None) -> Problem:
    """Pose the problem that a request states about a table.

    It has every finest group with rows, those that must get some, and those to which a known plan
    has ``added`` rows.
    """
    _refuse_missing(request)
    known, aside = known_rows(counts, plan_missing=request.plan_missing)
    if not known.n:
        raise InputError(
            "no row has a value for every attribute and the label, so nothing can be planned."
        )
    codes, (have,) = known.finest()
    refuse_too_many(int(have.sum()))
    asked = minimums(counts, codes, have, request.at_least, request.at_least_each)
    codes, have = add_empty_groups(counts, codes, have, asked, added)
    rates = have.sum(axis=0) / have.sum()
    require_labels(counts.label, rates, plan_missing=request.plan_missing)
    ratios, lacking = _ratios(counts, codes, have, rates, request)
    shares, also_lacking = _shares(counts, codes, have, request)
    limits = tuple(_limits(counts, codes, request, asked, shares, aside))
    cells = _cells(counts, codes, have, request, limits)
    nobody: tuple[NDArray[np.bool_], tuple[Judged, ...]] = (np.zeros(len(codes), np.bool_), ())
    ruled = request.policy is not None
    judged, coarse = nobody if ruled else judged_groups(counts, codes, have, request, ratios)
    problem = Problem(
        counts=counts,
        request=request,
        codes=codes,
        aside=aside,
        cells=cells,
        rates=rates,
        ratios=ratios.finest,
        judged=judged,
        coarse=coarse,
        limits=limits,
        lacking=tuple(x for x in (lacking, also_lacking) if x is not None),
        coupling=tuple(x for x in limits if x.binding and not _on_one(x, have.shape[1])),
    )
    return _with_rules(problem) if ruled else problem


def _with_rules(problem: Problem) -> Problem:
    """Add what the policy of the request demands of the groups that are large enough now."""
    refuse_missing(problem.aside)
    ruled = Ruled.of(problem.counts, problem.codes, problem.have, problem.request.policy)
    return problem.demanding(ruled, np.zeros(len(ruled.lattice), np.bool_))


def _refuse_missing(request: PlanRequest) -> None:
    """Refuse patterns of rows that stay unchanged."""
    constrain = request.constrain if isinstance(request.constrain, tuple) else ()
    named = [p for n in NUMBERED if n != "at_least_each" for p, _ in getattr(request, n)]
    for pattern in (*named, *request.priority, *request.deletable, *constrain):
        if not request.plan_missing and MISSING in Group.parse(pattern).values():
            raise InputError(
                f"{pattern} names rows with a missing value, which stay unchanged; use "
                "`plan_missing=True` to plan for them."
            )


def known_rows(counts: Counts, *, plan_missing: bool) -> tuple[Counts, int]:
    """Leave out rows with missing values; return the other counts and how many were left out."""
    if counts.weights is not None:
        raise InputError(
            "a plan consists of whole rows, and these counts are weighted; count without `weight`."
        )
    if plan_missing:
        return counts, 0
    absent = np.zeros(len(counts.rows), np.bool_)
    for position, axis in enumerate(counts.axes):
        if MISSING in axis.codes:
            absent |= counts.codes[:, position] == axis.codes[MISSING]
    kept = replace(counts, codes=counts.codes[~absent], rows=counts.rows[~absent])
    return kept, int(counts.rows[absent].sum())


def _ratios(
    counts: Counts, codes: NDArray[np.int32], have: Whole, rates: Real, request: PlanRequest
) -> tuple[Ratios, Lacking | None]:
    """The K of every group, from ratios or from the rates of another table."""
    given = request.target_rates
    if given is None:
        return resolve(Targets.of(request.target), counts, codes, have, rates), None
    if not isinstance(given, TargetRates):
        raise InputError(f"`target_rates` must be read before a plan is made, not {given!r}.")
    coarse = request.constrain == "marginals"
    return resolve_rates(given, counts, codes, have, rates, coarse=coarse)


def _shares(
    counts: Counts, codes: NDArray[np.int32], have: Whole, request: PlanRequest
) -> tuple[Numbers, Lacking | None]:
    """The shares of groups, from the request and from another table."""
    given = request.target_shares
    if given is None:
        return request.group_shares, None
    if not isinstance(given, TargetShares):
        raise InputError(f"`target_shares` must be read before a plan is made, not {given!r}.")
    shares, lacking = resolve_shares(given, counts, codes, have)
    return (*request.group_shares, *shares), lacking


def _limits(
    counts: Counts,
    codes: NDArray[np.int32],
    request: PlanRequest,
    asked: Sequence[LeastRows],
    shares: Numbers,
    aside: int,
) -> Iterable[Limit]:
    for pattern, rows in request.available:
        most = min(int(rows), UNLIMITED)  # more would not fit in 64 bits
        yield limit_rows("available", pattern, most, cell_numbers(counts, codes, pattern))
    for kind, pattern, least, text, group in asked:
        refuse_too_many(least)
        cells = numbers_of(counts, codes, group)
        yield replace(limit_rows(kind, pattern, least, cells), asked=text)
    everything = np.arange(len(codes) * len(counts.label))
    if request.min_rows is not None:
        refuse_too_many(int(request.min_rows))
        yield limit_rows("min_rows", "*", int(request.min_rows), everything, aside=aside)
    if request.max_rows is not None:
        most = min(int(request.max_rows), UNLIMITED)
        yield limit_rows("max_rows", "*", most, everything, aside=aside)
    for pattern, share in shares:
        cells = cell_numbers(counts, codes, pattern)
        if not len(cells):
            raise InputError(f"`group_shares` names {pattern}, which has no rows.")
        yield from limit_share(pattern, share, request.share_tolerance, cells, len(everything))


def _on_one(limit: Limit, k: int) -> bool:
    """Whether a limit applies to one cell, or is the minimum size of one group."""
    if limit.kind not in ("available", "at_least", "at_least_each"):
        return False
    if len(limit.cells) <= 1:
        return True
    one_group = limit.cells[0] // k == limit.cells[-1] // k
    return not limit.of_additions and bool(one_group) and len(limit.cells) == k


def _cells(
    counts: Counts,
    codes: NDArray[np.int32],
    have: Whole,
    request: PlanRequest,
    limits: Sequence[Limit],
) -> Cells:
    """Bounds and costs of each cell."""
    k = have.shape[1]
    flat = have.ravel()
    least = np.where(deletable(counts, codes, request), 0, flat)
    more = np.full(flat.shape, UNLIMITED)
    if request.pool is not None:
        more = offered(counts, codes, request.pool).ravel()
    group_least = (have.sum(axis=1) > 0).astype(np.int64) * (not request.may_vanish)
    group_least[have.sum(axis=1).argmax()] = 1  # a plan must not empty the whole table
    for limit in limits:
        if not _on_one(limit, k) or not len(limit.cells):
            continue
        if limit.of_additions:
            more[limit.cells] = np.minimum(more[limit.cells], limit.rows)
        elif len(limit.cells) == 1:
            least[limit.cells] = np.maximum(least[limit.cells], limit.rows)
        else:
            line = limit.cells[0] // k
            group_least[line] = max(group_least[line], limit.rows)
    if request.allow == "delete":
        more[:] = 0
    return Cells.of(
        have,
        least=least.reshape(have.shape),
        most=np.minimum(flat + more, UNLIMITED).reshape(have.shape),
        add=_costs(counts, codes, request.cost_add).reshape(have.shape),
        drop=_costs(counts, codes, request.cost_delete).reshape(have.shape),
        group_least=group_least,
    )


def deletable(counts: Counts, codes: NDArray[np.int32], request: PlanRequest) -> NDArray[np.bool_]:
    """The cells whose rows may be deleted, by their number."""
    may = np.full(len(codes) * len(counts.label), request.allow != "add" and not request.deletable)
    for pattern in request.deletable:  # none if only additions are allowed
        may[cell_numbers(counts, codes, pattern)] = True
    return may


def _costs(counts: Counts, codes: NDArray[np.int32], given: Numbers) -> Real:
    costs = np.ones(len(codes) * len(counts.label))
    for pattern, cost in given:
        costs[cell_numbers(counts, codes, pattern)] = cost
    return costs


def offered(counts: Counts, codes: NDArray[np.int32], pool: Counts) -> Whole:
    """The number of rows of each cell that a pool has."""
    if [a.name for a in pool.axes] != [a.name for a in counts.axes]:
        raise InputError(
            f"the pool is counted by {', '.join(a.name for a in pool.axes)} and the table by "
            f"{', '.join(a.name for a in counts.axes)}; count the same columns."
        )
    maps = [
        np.array([ours.codes.get(v, -1) for v in theirs.values], np.int32)
        for ours, theirs in zip(counts.axes, pool.axes, strict=True)
    ]
    cells = np.stack([m[pool.codes[:, i]] for i, m in enumerate(maps)], axis=1)
    known = (cells >= 0).all(axis=1)
    place = {group: line for line, group in enumerate(map(tuple, codes.tolist()))}
    found = np.zeros((len(codes), len(counts.label)), np.int64)
    for (*group, label), rows in zip(cells[known].tolist(), pool.rows[known].tolist(), strict=True):
        if tuple(group) in place:
            found[place[tuple(group)], label] = rows
    return found
