"""Certificates: the bias a plan leaves, measured again on the counts after it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import LatticeTooLarge
from equipoise.lattice import Group, format_value, roll_up
from equipoise.measures.uniform_bias import ub_of
from equipoise.plain import Grid
from equipoise.plans.judgement import (
    check_rules,
    compared_with,
    drift,
    keeps_drift,
    off_by,
    off_target,
    within_a_row,
    within_tolerance,
)
from equipoise.plans.patterns import group_of
from equipoise.plans.problem import Problem, deletable, offered
from equipoise.plans.solvers.closed_form import rounding_bound
from equipoise.plans.solvers.rounding import keeps_frequencies
from equipoise.plans.tolerance import pays
from equipoise.results import FlatTable, Result
from equipoise.values import MISSING, Value, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from equipoise.measures.policy import Check
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.solution import Solution

MEMORY = 4_000_000_000
"""Maximum memory of the lattice of a certificate, in bytes; above it only the finest groups are measured."""


@dataclass(frozen=True)
class Worst:
    """The group and label with the largest |UB|."""

    group: Group
    label: Value
    ub: float

    def __str__(self) -> str:
        return f"{self.group}, {format_value(self.label)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "group": {n: plain(v) for n, v in self.group.items()},
            "label": plain(self.label),
            "ub": self.ub,
        }


@dataclass(frozen=True)
class Held:
    """One constraint of the request, and whether the plan satisfies it."""

    constraint: str
    holds: bool
    value: float
    limit: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class Certificate(Result):
    """The properties of the repaired table, measured from its counts alone.

    Attributes
    ----------
    tolerance, tolerance_on, reference
        The requested tolerance, what it limits, and the label frequencies it refers to.
    reached
        Whether every judged group is within the tolerance and every limit holds. At zero
        tolerance: whether every label of every judged group is less than one row off its exact
        number, which is the group's size in ``sizes`` times its target.
    off_before, off_after
        The largest distance of a judged group from its target, measured as the tolerance is. With
        a policy: how far a group is outside the limits of its rule, or 0 if none is.
    rounding_bound
        Upper bound of ``off_after`` at zero tolerance, because rows are whole numbers. For
        groups of a few rows it is 1 or more, and then it says nothing.
    max_abs_ub_before, max_abs_ub_after, worst_before, worst_after
        The largest |UB| of all groups of the lattice and the group that has it, before and
        after, each relative to the table's own label frequencies.
    label_drift
        Total variation distance between the label frequencies before and after.
    labels_before, labels_after
        Label frequencies.
    n_before, n_after
        Number of rows.
    groups
        Number of groups of the lattice that were measured.
    constraints
        The constraints of the request, and whether each holds.
    targets
        Whether some group has a target K other than 1.
    policy
        Whether the rules of a policy decide. Then ``reached`` means that a check of the repaired
        table passes, each rule is one of the ``constraints``, and its value the number of pairs of
        a group and a label that do not pass.
    labels_planned, planned_at, cut_short
        The label frequencies and the tolerance the plan was made for, and whether the budget
        paid for only a part of it.
    has_tolerance
        Whether a tolerance was requested. A plan made by hand can be without one; then it is
        ``reached`` if every limit holds.
    sizes
        At zero tolerance, the sizes of the judged groups before rounding, the finest groups first.
    """

    tolerance: float
    tolerance_on: str
    reference: str
    reached: bool
    off_before: float
    off_after: float
    rounding_bound: float | None
    max_abs_ub_before: float
    max_abs_ub_after: float
    worst_before: Worst | None
    worst_after: Worst | None
    label_drift: float
    labels_before: tuple[float, ...]
    labels_after: tuple[float, ...]
    n_before: int
    n_after: int
    groups: int
    constraints: tuple[Held, ...] = ()
    targets: bool = False
    labels_planned: tuple[float, ...] = ()
    planned_at: float = 0.0
    cut_short: bool = False
    policy: bool = False
    has_tolerance: bool = True
    sizes: tuple[float, ...] = ()

    @property
    def kind(self) -> str:
        """The quantity that the tolerance limits, as a formula."""
        if self.policy:
            return "excess over a limit"
        if self.tolerance_on == "rate":
            return "|f_gy − K·f_y|" if self.targets else "difference of rates"
        return "|f_gy/(K·f_y) − 1|" if self.targets else "|UB|"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Whether the plan reaches its tolerance, as measured on the counts after it."""
        if not self.has_tolerance:
            broken = sum(not held.holds for held in self.constraints)
            limits = f"{broken:,} of the limits do not hold" if broken else "every limit holds"
            return (f"No tolerance was requested; {limits}.",)
        word = "is" if self.reached else "is not"
        if self.policy:
            return (f"The policy {word} kept: a check of the repaired table says so.",)
        return (f"The tolerance of {self.tolerance:g} {word} reached.",)

    def grid(self) -> Grid:
        """The certificate as a small table: before, after, and each limit."""
        c = self
        largest, measured = "largest |UB| of all groups", f"{c.groups:,} groups measured"
        limit = f"≤ {c.tolerance:g}"
        if c.rounding_bound is not None:
            limit = f"up to rounding, ≤ {c.rounding_bound:.3g}"
        off = f"{c.kind} against {c.reference} frequencies {limit}"
        if c.policy:
            off = "largest excess over a limit of the policy"
        reached = "reached" if c.reached else "NOT reached"
        if not c.has_tolerance:
            off, reached = f"{c.kind} against {c.reference} frequencies", "no tolerance requested"
        rows = (
            ("rows", f"{c.n_before:,}", f"{c.n_after:,}", ""),
            (largest, f"{c.max_abs_ub_before:.4f}", f"{c.max_abs_ub_after:.4f}", measured),
            ("where", *("–" if w is None else str(w) for w in (c.worst_before, c.worst_after)), ""),
            ("label drift (total variation)", "", f"{c.label_drift:.4f}", ""),
            (off, f"{c.off_before:.4g}", f"{c.off_after:.4g}", reached),
            *(
                (h.constraint, "", f"{h.value:,.6g}", "holds" if h.holds else "BROKEN")
                for h in c.constraints
            ),
        )
        return Grid(("", "before", "after", ""), rows, frozenset({1, 2}))

    def _table(self) -> FlatTable:
        c = self
        off, largest = f"{c.kind} against {c.reference} frequencies", "largest |UB| of all groups"
        limit = 0.0 if c.policy else c.tolerance
        asked = (limit, c.reached) if c.has_tolerance else (None, None)
        rows: list[tuple[Any, ...]] = [
            ("rows", c.n_before, c.n_after, None, None),
            (largest, c.max_abs_ub_before, c.max_abs_ub_after, None, None),
            ("label drift (total variation)", None, c.label_drift, None, None),
            (off, c.off_before, c.off_after, *asked),
            *((h.constraint, None, h.value, h.limit, h.holds) for h in c.constraints),
        ]
        return ("constraint", "before", "after", "limit", "holds"), rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        made = ("time", "version")  # a plan stores its own
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in made}
        for name, value in given.items():
            if isinstance(value, tuple):
                given[name] = [v.to_dict() if isinstance(v, Held) else v for v in value]
            elif isinstance(value, Worst):
                given[name] = value.to_dict()
        return given

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Certificate:
        """Read what :meth:`to_dict` wrote."""
        given: dict[str, Any] = {}
        for name, value in data.items():
            given[name] = tuple(value) if isinstance(value, list) else value
        given["constraints"] = tuple(Held(**c) for c in given["constraints"])
        for name in ("worst_before", "worst_after"):
            w = given[name]
            if w is not None:
                group = Group({n: MISSING if v is None else v for n, v in w["group"].items()})
                given[name] = Worst(group, MISSING if w["label"] is None else w["label"], w["ub"])
        return cls(**given)


def certify(
    problem: Problem,
    solution: Solution,
    rows: Whole,
    *,
    cut_short: bool = False,
    has_tolerance: bool = True,
) -> Certificate:
    """Measure the table that a plan leads to, and check it against the request.

    If a budget cut a plan for zero tolerance short, the remaining bias does not count as rounding.
    """
    have, base, request = problem.have, solution.base, problem.request
    before_off, off = (_off(problem, table, base) for table in (have, rows))
    bound = None
    if not has_tolerance:
        good = True
    elif request.tolerance or solution.held is None:  # of zero, if not even rounding counts
        good = within_tolerance(problem, rows, base)
    else:
        good = within_a_row(problem, rows, base, solution.held)
        good = good and keeps_frequencies(problem, rows, base)
    if has_tolerance and not request.tolerance and not request.exact:
        bound = _rounding_bound(problem, rows, base)
    (before, _), (after, groups) = _worst(problem, have), _worst(problem, rows)
    constraints = tuple(_constraints(problem, rows, solution))
    if problem.ruled is not None:
        passed = check_rules(problem, rows)
        good = passed.status == "inside"
        constraints = (*_rules(passed), *constraints)
    f, g = have.sum(axis=0) / have.sum(), rows.sum(axis=0) / max(rows.sum(), 1)
    return Certificate(
        tolerance=request.tolerance,
        tolerance_on=request.tolerance_on,
        reference=problem.reference,
        reached=good and not cut_short and all(c.holds for c in constraints),
        off_before=before_off,
        off_after=off,
        rounding_bound=bound,
        max_abs_ub_before=0.0 if before is None else abs(before.ub),
        max_abs_ub_after=0.0 if after is None else abs(after.ub),
        worst_before=before,
        worst_after=after,
        label_drift=float(np.abs(f - g).sum() / 2),
        labels_before=tuple(f.tolist()),
        labels_after=tuple(g.tolist()),
        n_before=int(have.sum()) + problem.aside,
        n_after=int(rows.sum()) + problem.aside,
        groups=groups,
        constraints=constraints,
        targets=problem.special,
        labels_planned=tuple(base.tolist()),
        cut_short=cut_short,
        policy=problem.ruled is not None,
        planned_at=solution.tolerance,
        has_tolerance=has_tolerance,
        sizes=() if solution.held is None else tuple(solution.held.tolist()),
    )


def _off(problem: Problem, rows: Whole, base: Real) -> float:
    """The largest distance of a judged group from its target, or from the limits of its rule."""
    off = off_by(problem, rows, base)
    if problem.ruled is None:
        return off
    return max(off - float(problem.request.policy.tolerance), 0.0)


def _rules(check: Check) -> Iterator[Held]:
    """The rules of a policy, and how many pairs of a group and a label do not pass each."""
    for number, rule in enumerate(check.policy.rules):
        failed = int((check.found.rule == number).sum())
        size = f", groups of at least {rule.min_count:,} rows" if rule.min_count > 1 else ""
        yield Held(f"{rule.words}{size}", failed == 0, failed, 0)


def _rounding_bound(problem: Problem, rows: Whole, base: Real) -> float:
    """Upper bound of the distance between a group and its target that rounding can leave."""
    size = problem.judged_rows(rows).sum(axis=1).astype(float)
    each = rounding_bound(problem.judged_ratios * base, size)
    own = float(each.max(initial=0.0))
    if problem.reference == "original":
        return own
    # The table is a mixture of its groups, so its frequencies are off by their weighted mean at most.
    if problem.judged.all():
        finest = slice(len(problem.judged))
        moved = float((each * size)[finest].sum() / max(size[finest].sum(), 1))
    else:
        moved = drift(rows, base, "ub")
    rates = compared_with(problem, rows, base).real
    anything = max(1.0, 1 / rates[rates > 0].min(initial=1.0) - 1)  # no rate can be further off
    return float(min((own + moved) / (1 - moved), anything) if moved < 1 else anything)


def _worst(problem: Problem, rows: Whole) -> tuple[Worst | None, int]:
    """The group with the largest |UB| relative to the rows' own label frequencies."""
    present = rows.sum(axis=1) > 0
    axes = problem.counts.sensitive
    codes, sizes = problem.codes[present], [len(a) for a in axes]
    try:
        lattice = roll_up(codes, sizes, [rows[present]], memory=MEMORY)
        lines, sums = lattice.codes, lattice.columns[0]
    except LatticeTooLarge:  # a coarser group is a mixture of finer ones, so it is never worse
        lines, sums = codes, rows[present]
    total = rows.sum(axis=0)
    rates = total / max(int(total.sum()), 1)
    off = off_target(sums, np.ones(sums.shape), rates, "ub")
    off[:, total == 0] = np.nan
    if not len(off) or np.isnan(off).all():
        return None, len(lines)
    line, y = np.unravel_index(int(np.nanargmax(off)), off.shape)
    n, n_y, n_g = (int(part) for part in (total.sum(), total[y], sums[line].sum()))
    ub = ub_of(n=n, n_y=n_y, n_g=n_g, n_gy=int(sums[line, y]))
    label = problem.counts.label.values[int(y)]
    return Worst(group_of(axes, lines[line].tolist()), label, ub), len(lines)


def _constraints(problem: Problem, rows: Whole, solution: Solution) -> Iterator[Held]:
    """The constraints of a request other than its tolerance.

    Plan files store these texts and are compared with them when they are read, so they must not
    change.
    """
    request, have = problem.request, problem.have
    yield from _limits(problem, rows)
    added, gone = (rows - have).clip(0), (have - rows).clip(0)
    if request.allow == "add" or request.deletable:
        lost = int(gone.ravel()[~deletable(problem.counts, problem.codes, request)].sum())
        words = (
            "nothing is deleted" if request.allow == "add" else "only deletable rows are deleted"
        )
        yield Held(words, lost == 0, lost, 0)
    if request.allow == "delete":
        yield Held("nothing is added", int(added.sum()) == 0, int(added.sum()), 0)
    if request.pool is not None:
        over = int((added - offered(problem.counts, problem.codes, request.pool)).clip(0).sum())
        yield Held("no more rows are added than the pool has", over == 0, over, 0)
    if not request.may_vanish:
        emptied = int(((rows.sum(axis=1) == 0) & (have.sum(axis=1) > 0)).sum())
        yield Held("no group loses all its rows", emptied == 0, emptied, 0)
    if (gone > have).any():
        yield Held("no more rows are deleted than there are", False, int((gone - have).max()), 0)
    if request.budget is not None:
        cost = problem.cells.total_cost(rows)
        words = f"cost at most {request.budget:g}"
        yield Held(words, pays(request.budget, cost), cost, request.budget)
    yield from _drift(problem, rows, solution)


def _limits(problem: Problem, rows: Whole) -> Iterator[Held]:
    """The limits on rows; one that every group of some attributes has is one line."""
    together: dict[str, Held] = {}
    for limit in problem.limits:
        slack = problem.slack(limit, rows)
        value = limit.measured(rows, problem.have, problem.aside)
        if limit.kind != "at_least_each":
            yield Held(limit.words, slack >= 0, value, limit.stated)
        elif limit.asked not in together or value < together[limit.asked].value:
            words = f"at least {limit.rows:,} rows of every group of {limit.asked}"
            together[limit.asked] = Held(words, slack >= 0, value, limit.stated)
    yield from together.values()


def _drift(problem: Problem, rows: Whole, solution: Solution) -> Iterator[Held]:
    """The limit on how far label frequencies move, if the request has one."""
    request, base = problem.request, problem.base
    relative, absolute = (drift(rows, base, on) for on in ("ub", "rate"))
    if request.label_drift is not None:
        limit = request.label_drift
        words = f"no label frequency moves by more than {limit:g} of itself"
        yield Held(words, keeps_drift(problem, rows), relative, limit)
    elif request.labels != "free" and request.tolerance and not problem.special:
        value = relative if request.tolerance_on == "ub" else absolute
        unit = "of itself" if request.tolerance_on == "ub" else "(absolute)"
        limit = max(request.tolerance, solution.tolerance)
        words = f"no label frequency moves by more than {limit:.4g} {unit}"
        yield Held(words, value <= limit + 1e-12, value, limit)
