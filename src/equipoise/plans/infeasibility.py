"""Infeasible requests: the single changes that would make each of them feasible."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.errors import EquipoiseError, InputError
from equipoise.lattice import Group, format_value
from equipoise.plain import Grid
from equipoise.plans.clock import end_after
from equipoise.plans.judgement import drift, keeps_limits
from equipoise.plans.limits import Limit
from equipoise.plans.policy import PlanPolicy
from equipoise.plans.problem import Problem, pose
from equipoise.plans.reach import (
    KINDS,
    LITTLE_EFFORT,
    is_small,
    possible_rows,
    reach,
    share_of_work,
)
from equipoise.plans.rounds import solve
from equipoise.plans.solution import ANY_PLAN, Solution
from equipoise.plans.solvers.box import allowed_box
from equipoise.plans.solvers.incumbent import Incumbent, holds_everything
from equipoise.plans.solvers.overlap.fixed import solve_fixed
from equipoise.plans.tolerance import least_tolerance
from equipoise.results import FlatTable, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from equipoise.counts import Counts
    from equipoise.measures.rules import Rule
    from equipoise.plans.cells import Whole
    from equipoise.plans.request import PlanRequest

MOST_ROWS = 2**40
"""A limit on rows that stands for no limit; larger ones lose digits in the solver."""

PATIENCE = 60.0
"""Time limit of the whole explanation in seconds, a last resort: the work is limited by counts."""

QUICKLY = 0.3
"""Share of the usual effort that a trial of one change takes."""

FINE, ROUGH = 2e-3, 1e-2
"""How near a number is searched for that is not a number of rows, in a small table and in others."""

Found: TypeAlias = "tuple[Problem, Whole]"


@dataclass(frozen=True)
class Relaxation:
    """A single change that makes a request feasible."""

    option: str
    pattern: str | None  # of the cells that the option limits, if any
    asked: Any
    needed: Any  # the feasible value nearest to it
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {k: v.to_dict() if isinstance(v, PlanPolicy) else v for k, v in vars(self).items()}

    def apply(self, request: PlanRequest) -> PlanRequest:
        """The request with this change."""
        if self.option == "tolerance":
            return request.widened(self.needed)
        if self.pattern is None:
            return request.but(**{self.option: self.needed})
        given = list(getattr(request, self.option))
        given[given.index((self.pattern, self.asked))] = (self.pattern, self.needed)
        return request.but(**{self.option: tuple(given)})


class Infeasible(EquipoiseError, Result):
    """No plan meets the request; the message names the reason and changes that would help."""

    exit_code = 1

    def __init__(
        self, sentence: str, relaxations: tuple[Relaxation, ...] = (), *, proved: bool = True
    ) -> None:
        self.sentence, self.relaxations, self.proved = sentence, relaxations, proved
        Result.__init__(self)
        super().__init__(" ".join([sentence, *(r.sentence for r in relaxations)]))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The reason, and the changes that would help."""
        return (self.sentence, *(r.sentence for r in self.relaxations))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "feasible": False,
            "proved": self.proved,
            "explanation": list(self.sentences),
            "relaxations": [r.to_dict() for r in self.relaxations],
        }

    def _table(self) -> FlatTable:
        names = ("option", "pattern", "asked", "needed", "sentence")
        return names, [[getattr(r, name) for name in names] for r in self.relaxations]

    def grid(self) -> Grid:
        """The changes that would help, as a table for people."""
        names, rows = self._table()
        texts = (tuple("" if v is None else str(v) for v in row) for row in rows)
        return Grid(tuple(names), tuple(texts))


def explain_infeasible(
    problem: Problem,
    *,
    proved: bool,
    reason: str = "",
    progress: Callable[[float], None] = lambda _: None,
) -> Infeasible:
    """Find every single change that would make a request feasible.

    ``reason`` is what is known already, as the end of a sentence.
    """
    found = []
    end = end_after(min(problem.request.time_limit, PATIENCE))
    ways = list(_ways(problem))
    tried = 0
    while tried < len(ways) and time.monotonic() <= end:
        relaxation = ways[tried](end)
        found += [] if relaxation is None else [relaxation]
        tried += 1
        progress(tried / len(ways))
    sentence = "No plan was found that meets all limits, which does not prove that there is none."
    if proved:
        sentence = f"No plan meets all limits of the request{_shortest(problem) or reason}."
    if tried < len(ways):
        sentence += " There was not enough time to try every single change."
    elif not found:
        sentence += " Changing a single limit does not help: relax more than one."
    return Infeasible(sentence, tuple(found), proved=proved)


def explain_poor(problem: Problem) -> Infeasible:
    """Explain that the budget does not pay for the limits on rows, and what would help."""
    budget = problem.request.budget
    assert budget is not None  # noqa: S101 - without a budget there is nothing to be short of
    sentence = (
        f"A budget of {budget:,g} does not pay for the changes that the other limits require."
    )
    found = []
    cost = _cheapest(problem.counts, problem.request).cost
    if math.isfinite(cost):
        words = f"With a budget of {cost:,.6g} there is a plan."
        found.append(Relaxation("budget", None, budget, cost, words))
    for limit in _on_rows(problem):
        given = _bisected(problem, limit, lambda request, _: _paid(problem.counts, request, budget))
        found += [] if given is None else [given]
    return Infeasible(sentence, tuple(found))


def _paid(counts: Counts, request: PlanRequest, budget: float) -> Whole | None:
    """Rows that meet the limits on rows, if a budget pays for some."""
    found = _cheapest(counts, request)
    return found.rows if found.cost <= budget else None


def _cheapest(counts: Counts, request: PlanRequest) -> Incumbent:
    """The cheapest way of meeting the limits on rows, whatever the bias."""
    problem = pose(counts, request.widened(ANY_PLAN, labels="free", label_drift=None))
    nobody = np.zeros(len(problem.cells), np.bool_)
    free = replace(problem, judged=nobody, coarse=())
    deadline = end_after(problem.request.time_limit)
    return solve_fixed(free, problem.rates, None, Incumbent(), deadline=deadline)


def _ways(problem: Problem) -> Iterator[Callable[[float], Relaxation | None]]:
    """The changes to try; each takes the time of the monotonic clock at which to end."""
    request = problem.request

    def way(search: Callable[..., Relaxation | None], *given: Any) -> Any:
        return lambda end: search(_until(problem, end), *given)

    for limit in _on_rows(problem):
        yield way(_give_rows, limit)
    if any(limit.kind == "group_shares" for limit in problem.limits):
        yield way(_give_shares)
    if request.label_drift is not None:
        yield way(_give_drift)
    if request.pool is not None:
        yield way(_without_pool)
    if request.policy is not None:
        yield from (way(_without_rule, rule) for rule in request.policy.rules)
    yield way(_give_tolerance)
    others: list[tuple[str, Any, str]] = []
    if request.extra:
        others.append(("extra", (), "Without the extra rows there is a plan."))
    if request.exact:
        others.append(("exact", False, "Up to rounding, without `exact`, there is a plan."))
    if request.labels != "free":
        others.append(("labels", "free", "With `labels='free'` there is a plan."))
    if request.allow != "both":
        words = "deletions" if request.allow == "add" else "additions"
        others.append(("allow", "both", f"If {words} are allowed as well, there is a plan."))
    if request.deletable:
        others.append(("deletable", (), "If all rows are deletable, there is a plan."))
    yield from (way(_other, *other) for other in others)


def _until(problem: Problem, end: float) -> Problem:
    """The problem with the time that is left as its limit."""
    left = max(end - time.monotonic(), 0.05)
    return replace(problem, request=problem.request.but(time_limit=left))


def _on_rows(problem: Problem) -> list[Limit]:
    """The limits on numbers of rows, one of those that the request states together."""
    stated = {(limit.kind, limit.asked or limit.pattern): limit for limit in problem.limits}
    return [limit for limit in stated.values() if limit.kind != "group_shares"]


def _plan(counts: Counts, request: PlanRequest, effort: float = QUICKLY) -> Found | None:
    """A request as a problem and a plan for it, if one is found."""
    try:
        problem = pose(counts, request.but(gap=None))
        rows = possible_rows(problem, effort * share_of_work(problem))
    except InputError:
        return None
    return None if rows is None else (problem, rows)


def _possible(counts: Counts, request: PlanRequest, effort: float = QUICKLY) -> bool:
    """Whether a plan is found for a request."""
    return _plan(counts, request, effort) is not None


def _give_rows(problem: Problem, limit: Limit) -> Relaxation | None:
    """Find the nearest feasible value of a limit on rows."""
    if limit.kind in KINDS and problem.request.tolerance:
        found = reach(problem, limit)
        return None if found is None else _changed(limit, found.number)

    def rows_for(request: PlanRequest, effort: float) -> Whole | None:
        found = _plan(problem.counts, request, effort)
        return None if found is None else found[1]

    return _bisected(problem, limit, rows_for)


def _changed(limit: Limit, rows: int) -> Relaxation:
    """A limit on rows with another number."""
    total = limit.kind in ("min_rows", "max_rows")
    pattern = None if total else limit.asked or limit.pattern
    return Relaxation(limit.kind, pattern, limit.rows, rows, _row_sentence(limit, rows))


def _bisected(
    problem: Problem, limit: Limit, rows_for: Callable[[PlanRequest, float], Whole | None]
) -> Relaxation | None:
    """Find the nearest value of a limit on rows for which there are rows, by bisection.

    What a plan needs is often less than the value it was made for, and counts.
    """
    raise_ = limit.kind in ("available", "max_rows")

    def needed(rows: int, effort: float = QUICKLY) -> int | None:
        found = rows_for(_changed(limit, rows).apply(problem.request), effort)
        if found is None or found.shape != problem.have.shape:
            return None if found is None else rows
        counted = int(limit.measured(found, problem.have, problem.aside))
        return min(rows, counted) if raise_ else max(rows, counted)

    far = needed(MOST_ROWS if raise_ else 0)
    if far is None:
        return None
    near, step = limit.rows, -1 if raise_ else 1
    below = True  # the cheapest plan often needs the least
    while abs(far - near) > 1:
        middle = far + step if below else (near + far) // 2
        found = needed(middle)
        if found is None:
            near = middle
        else:
            far, below = found, False
    while far + step != limit.rows and (found := needed(far + step, effort=1.0)) is not None:
        far = found  # the quick trials may have missed a plan
    return _changed(limit, far)


def _row_sentence(limit: Limit, needed: int) -> str:
    if limit.kind == "available":
        return (
            f"{limit.rows:,} of the {needed:,} rows of {limit.pattern} that a plan needs are "
            f"available; with {needed:,}, there is a plan."
        )
    if limit.kind == "at_least":
        return f"With at least {needed:,} rows of {limit.pattern}, not {limit.rows:,}, there is a plan."
    if limit.kind == "at_least_each":
        return (
            f"With at least {needed:,} rows of every group of {limit.asked}, not {limit.rows:,}, "
            "there is a plan."
        )
    word = "at least" if limit.kind == "min_rows" else "at most"
    return f"With {word} {needed:,} rows in all, not {limit.rows:,}, there is a plan."


def _give_tolerance(problem: Problem) -> Relaxation | None:
    found = least_tolerance(problem)
    if found is None:
        return None
    tries = (_rounded_up(found[0], digits) for digits in (4, 3, 2, 1))
    needed = next((t for t in tries if _is_reached(problem, t, found[1])), None)
    if needed is None:
        return None
    sentence = f"A tolerance of {needed:g} can be reached."
    if problem.request.policy is not None:
        wider = needed - problem.request.policy.tolerance
        sentence = f"With every limit of the policy wider by {wider:.4g} there is a plan."
    return Relaxation("tolerance", None, problem.request.tolerance, needed, sentence)


def _is_reached(problem: Problem, tolerance: float, found: Solution) -> bool:
    """Whether a plan keeps everything at a tolerance; if not, whether another one is found."""
    at = replace(problem, request=problem.request.widened(tolerance, reference=problem.reference))
    if at.reference == "new" and at.ruled is None and found.rows is not None:
        box = allowed_box(at, at.base)
        if keeps_limits(at, found.rows) and holds_everything(at, found.rows, box):
            return True
    return _possible(problem.counts, problem.request.widened(tolerance), 1.0)


def _rounded_up(value: float, digits: int) -> float:
    """The next number of so many significant digits."""
    step = 10.0 ** (math.floor(math.log10(max(value, 1e-9))) + 1 - digits)
    return float(f"{math.ceil(value / step - 1e-9) * step:.{digits}g}")


def _without_rule(problem: Problem, rule: Rule) -> Relaxation | None:
    """Leave out one rule of a policy, and exempt its groups from earlier rules."""
    try:
        policy = problem.request.policy.without(rule)
    except InputError:
        return None
    if not _possible(problem.counts, problem.request.but(policy=policy)):
        return None
    sentence = f"Without the rule {rule.words} there is a plan."
    return Relaxation("policy", None, rule.words, policy, sentence)


def _give_drift(problem: Problem) -> Relaxation | None:
    asked = float(problem.request.label_drift or 0.0)
    needed = _nearest(problem, "label_drift", asked, 100, _drift)
    if needed is None:
        return None
    sentence = f"With a label drift of {needed:g}, not {asked:g}, there is a plan."
    return Relaxation("label_drift", None, asked, needed, sentence)


def _drift(problem: Problem, rows: Whole) -> float:
    """How far a plan moves label frequencies."""
    return drift(rows, problem.base, "ub")


def _give_shares(problem: Problem) -> Relaxation | None:
    asked = problem.request.share_tolerance
    needed = _nearest(problem, "share_tolerance", asked, 0.999, _off_shares)
    if needed is None:
        return None
    sentence = f"With a share tolerance of {needed:g}, not {asked:g}, there is a plan."
    return Relaxation("share_tolerance", None, asked, needed, sentence)


def _off_shares(problem: Problem, rows: Whole) -> float:
    """How far a plan leaves groups from the shares of the table that they should have."""
    within = float(problem.request.share_tolerance)
    limits = [limit for limit in problem.limits if limit.kind == "group_shares"]
    beyond = [
        (share - float(limit.share)) * (-1 if limit.most is None else 1)
        for limit in limits
        for share in [limit.measured(rows, problem.have, problem.aside)]
    ]
    return max(within + max(beyond, default=0.0), 0.0)


def _nearest(
    problem: Problem,
    option: str,
    asked: float,
    most: float,
    measure: Callable[[Problem, Whole], float],
) -> float | None:
    """The nearest larger value of an option, at most ``most``, for which there is a plan.

    What a plan measures is often less than the value it was made for, and counts.
    """
    small = is_small(problem)
    width, effort = (FINE, LITTLE_EFFORT) if small else (ROUGH, QUICKLY)
    low, high, best, halved = asked, most, None, False
    while best is None or high - low > width * high:
        wide = high > 10 * low > 0
        middle = math.sqrt(low * high) if wide else (low + high) / 2
        if best is None:
            middle = most
        elif halved and small:  # plans often leave what no plan can leave less of
            middle = max(high * (1 - width), low)
        found = _plan(problem.counts, problem.request.but(**{option: middle}), effort)
        if found is not None:
            halved = best is not None and not halved
            best, high = found[1], min(measure(*found), middle)
        elif best is None:
            return None
        else:
            low, halved = middle, False
    for digits in (4, 3, 2, 1):
        needed = _rounded_up(high, digits)
        if needed > asked and keeps_limits(problem.again(**{option: needed}), best):
            return needed
    return None


def _without_pool(problem: Problem) -> Relaxation | None:
    """The rows that the cheapest plan without the pool needs and the pool does not have."""
    request = problem.request.but(pool=None)
    rows = solve(pose(problem.counts, request), effort=0.1).rows
    if rows is None:
        return None
    offered = problem.cells.most - problem.have
    missing = (rows - problem.have).clip(0) - offered
    parts = []
    for cell in np.argsort(-missing.ravel())[:5]:
        line, y = divmod(int(cell), rows.shape[1])
        if missing[line, y] > 0:
            label = problem.counts.label
            name = Group({**problem.group(line), label.name: label.values[y]})
            need = int(rows[line, y] - problem.have[line, y])
            parts.append(f"{offered[line, y]:,} of the {need:,} rows {name}")
    sentence = f"The pool offers {'; '.join(parts)} that the best plan needs."
    return Relaxation("pool", None, None, None, sentence)


def _other(problem: Problem, option: str, value: Any, sentence: str) -> Relaxation | None:
    try:
        request = problem.request.but(**{option: value})
    except InputError:
        return None
    if not _possible(problem.counts, request):
        return None
    asked = getattr(problem.request, option)
    return Relaxation(option, None, asked if isinstance(asked, str) else None, value, sentence)


def _shortest(problem: Problem) -> str:
    """The reason, if it is as simple as a cell whose bounds exclude each other."""
    over = problem.cells.least > problem.cells.most
    if not over.any():
        return ""
    line, y = np.argwhere(over)[0].tolist()
    label = format_value(problem.counts.label.values[y])
    return (
        f": {problem.group(line)}, label {label}, must have at least "
        f"{problem.cells.least[line, y]:,} rows and can have at most {problem.cells.most[line, y]:,}"
    )
