"""Sweeps: the cheapest plan at each of several values of one option."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import Reading
from equipoise.errors import InputError
from equipoise.plain import Grid, csv_text
from equipoise.plans.judgement import drift, off_by
from equipoise.plans.problem import Problem, pose
from equipoise.plans.rounds import solve
from equipoise.plans.solution import Solution
from equipoise.plans.tolerance import least_tolerance
from equipoise.progress import Reporter, silent
from equipoise.results import Drawable, FlatTable
from equipoise.validate import at_least
from equipoise.values import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.counts import Counts
    from equipoise.options.plan import SweepKind
    from equipoise.plans.request import PlanRequest

SCHEMA = "equipoise.sweep/1"

EFFORT = 0.3
"""Share of the usual effort of each plan."""

RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
DRIFTS = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)

WORDS = {
    "coverage": "minimum rows of every group",
    "budget": "budget",
    "cost-ratio": "cost of a deletion relative to an addition",
    "label-drift": "largest relative change of a label frequency",
}
"""What each sweep varies, as the title of an axis."""


@dataclass(frozen=True)
class SweepPoint:
    """The cheapest plan at one value; with a budget, the plan that leaves the least bias."""

    value: float
    cost: float  # infinite if there is no plan
    bound: float  # lower bound of the cost of any plan
    additions: int
    deletions: int
    rows: int  # after the plan
    smallest: int  # rows of the smallest covered group after the plan
    reached: float  # largest distance of a judged group from its target
    drift: float  # largest relative change of a label frequency
    dominated: bool = False

    @property
    def found(self) -> bool:
        """Whether there is a plan."""
        return math.isfinite(self.cost)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; None where there is no plan."""
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Sweep(Drawable):
    """The cheapest plan at each value of one option.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> sweep = eq.frontier(counts, sweep="coverage", values=[100, 200, 400], tolerance=0.05)
    >>> [(point.value, point.cost, point.smallest) for point in sweep.points]
    [(100.0, 19.0, 161), (200.0, 58.0, 200), (400.0, 258.0, 400)]

    A point is *dominated* if another is at least as good in both criteria of the sweep, and better
    in one: cost and label drift, cost and remaining bias (budgets), or cost and the rows of the
    smallest group (coverage).
    """

    sweep: SweepKind
    request: PlanRequest
    reference: str
    fingerprint: str
    points: tuple[SweepPoint, ...]
    reading: Reading = field(default_factory=Reading)

    @property
    def exact(self) -> bool:
        """Whether every cost is proved to be the lowest; budgets are not about the lowest cost."""
        return self.sweep != "budget" and all(
            not p.found or p.bound >= p.cost - 1e-6 * max(p.cost, 1) for p in self.points
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to read first."""
        kind = "|UB|" if self.request.tolerance_on == "ub" else "difference of rates"
        goal = f"that leaves a {kind} of at most {self.request.tolerance:g}"
        said = [f"For each {WORDS[self.sweep]}, the cheapest plan {goal}."]
        if self.sweep == "budget":
            said = [f"For each budget, the plan found that leaves the smallest {kind}."]
        elif not self.request.tolerance:
            said = [said[0].replace("at most 0", "0, up to rounding")]
        said.append(f"Groups are compared with the {self.reference} label frequencies.")
        found = [p for p in self.points if p.found]
        if len(found) > 1:
            said.append(f"{self._at(found[0])}; {self._at(found[-1])}.".capitalize())
        if self.exact:
            said.append("Every cost is proved to be the lowest.")
        elif self.sweep != "budget":
            said.append("The costs are the lowest found; no plan costs less than the bound.")
        said += self._exceptions()
        return (*said, *self.reading.sentences)

    def _at(self, point: SweepPoint) -> str:
        gets = f"cost {point.cost:,.6g}"
        if self.sweep == "budget":
            gets += f" leaves {point.reached:.4g}"
        elif self.sweep == "label-drift":
            gets += f", drift {point.drift:.4g}"
        elif self.sweep == "cost-ratio":
            gets += f", {point.additions:,} rows added and {point.deletions:,} deleted"
        return f"at {point.value:,g}: {gets}"

    def _exceptions(self) -> list[str]:
        said = []
        many = sum(p.dominated for p in self.points)
        if many:
            said.append(
                f"{many:,} point{' is' if many == 1 else 's are'} dominated: another is at least as "
                "good in both respects."
            )
        none = [f"{p.value:g}" for p in self.points if not p.found]
        if none:
            said.append(f"There is no plan at {', '.join(none)}.")
        return said

    def grid(self) -> Grid:
        """One line per value."""
        headers = ["least cost", "bound", "add", "delete", "rows", "smallest", "reached", "drift"]
        marked = [""] if any(p.dominated for p in self.points) else []
        lines = []
        for p in self.points:
            told = [f"{p.value:,g}", "no plan", *[""] * 7]
            if p.found:
                told = [f"{number:,.6g}" for number in (p.value, p.cost, p.bound)]
                told += [f"{n:,}" for n in (p.additions, p.deletions, p.rows, p.smallest)]
                told += [f"{number:.4g}" for number in (p.reached, p.drift)]
            lines.append((*told, *(["dominated" * p.dominated] if marked else [])))
        return Grid((self.sweep, *headers, *marked), tuple(lines), frozenset(range(9)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": SCHEMA,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "reading": self.reading.to_dict(),
            "sweep": self.sweep,
            "reference": self.reference,
            "exact": self.exact,
            "points": [p.to_dict() for p in self.points],
            "explanation": list(self.sentences),
            "request": self.request.to_dict(),
        }

    def to_csv(self) -> str:
        """One line per value, in full precision."""
        return csv_text(*self._table())

    def _table(self) -> FlatTable:
        names = tuple(vars(self.points[0]))
        return names, [[p.to_dict()[n] for n in names] for p in self.points]

    def __repr__(self) -> str:
        return f"<Sweep of {len(self.points)} values of {self.sweep}>"

    __str__ = __repr__  # printing stays short; :meth:`text` has everything


def make_sweep(
    counts: Counts,
    request: PlanRequest,
    sweep: SweepKind,
    *,
    values: Sequence[float] | None = None,
    points: int = 10,
    progress: Reporter = silent,
) -> Sweep:
    """Plan at each value of one option; the others are those of the request."""
    problem = pose(counts, _settled(request, sweep))
    asked = _asked(problem, sweep, values, points)
    if sweep == "budget":
        found = _budgets(problem, asked, progress)
    else:
        found = _plans(problem, sweep, asked, progress)
    return Sweep(
        sweep=sweep,
        request=problem.request,
        reference=problem.reference,
        fingerprint=counts.fingerprint,
        points=tuple(_marked(found, sweep)),
        reading=counts.reading,
    )


def _settled(request: PlanRequest, sweep: SweepKind) -> PlanRequest:
    """The request with what a sweep is about: free labels, deletions."""
    if sweep == "label-drift" and request.labels == "keep":
        return request.but(labels="free")
    if sweep == "cost-ratio" and request.allow != "both":
        raise InputError(
            "a sweep of the cost of deletions relative to additions needs both; use `allow='both'`."
        )
    return request


def _asked(
    problem: Problem, sweep: SweepKind, values: Sequence[float] | None, points: int
) -> list[float]:
    if values is None:
        return _usual(problem, sweep, points)
    asked = sorted({float(value) for value in values})
    if not asked:
        raise InputError("a sweep needs at least one of `values`.")
    for value in asked:
        at_least(f"a value of {sweep}", value, 0, whole=sweep == "coverage")
        if math.isinf(value):
            raise InputError(f"`values` of a sweep must be finite, not {value:g}.")
    return asked


def _usual(problem: Problem, sweep: SweepKind, points: int) -> list[float]:
    """Values that show the range of an option."""
    at_least("points", points, 2, whole=True)
    if sweep == "cost-ratio":
        return list(RATIOS)
    if sweep == "label-drift":
        return list(DRIFTS)
    if sweep == "coverage":
        sizes = problem.have.sum(axis=1)
        return sorted({float(round(v)) for v in np.linspace(0, np.median(sizes) * 2, points)})
    rows = solve(problem, effort=EFFORT).rows
    most = 1.0 if rows is None else problem.cells.total_cost(rows)
    return sorted({float(f"{v:.4g}") for v in np.linspace(0, max(most, 1.0) * 1.02, points)})


def _at_value(problem: Problem, sweep: SweepKind, value: float) -> Problem:
    """The problem at one value of the option."""
    if sweep == "coverage":
        return problem.again(at_least_each=tuple((text, int(value)) for text in _covered(problem)))
    if sweep == "label-drift":
        return problem.again(label_drift=value)
    cells = problem.cells
    return replace(problem, cells=replace(cells, drop=cells.drop * value))


def _covered(problem: Problem) -> list[str]:
    """The attributes of the groups to cover: those that the request names, or all."""
    named = [text for text, _ in problem.request.at_least_each]
    return named or [", ".join(axis.name for axis in problem.counts.sensitive)]


def _plans(
    problem: Problem, sweep: SweepKind, asked: list[float], progress: Reporter
) -> list[SweepPoint]:
    """Plan from the strictest value on, since each plan is a candidate for the next."""
    found: dict[float, SweepPoint] = {}
    loose = _without_limit(problem, sweep)
    known: list[Solution] = []
    for number, value in enumerate(sorted(asked, reverse=sweep == "coverage")):
        trial = _at_value(problem, sweep, value)
        if loose is not None and _keeps(trial, loose, sweep, value):
            best = loose
        else:
            best = _best(trial, known)
        if best.rows is not None:
            known = [*known, best] if sweep == "cost-ratio" else [best]
        found[value] = _point(trial, value, best)
        progress("plans", (number + 1) / len(asked))
    return [found[value] for value in asked]


def _best(trial: Problem, known: list[Solution]) -> Solution:
    """The cheapest plan: a new one, or a known one that is as cheap and was found before."""
    fits = [x for x in known if x.rows is not None and x.rows.shape == trial.have.shape]
    solved = solve(trial, candidates=[x.rows for x in fits if x.rows is not None], effort=EFFORT)
    chosen = solved
    for other in reversed(fits):
        if chosen.rows is None or _cost(trial, other) <= _cost(trial, chosen):
            chosen = other
    return replace(chosen, bound=solved.bound)


def _cost(problem: Problem, found: Solution) -> float:
    return math.inf if found.rows is None else problem.cells.total_cost(found.rows)


def _without_limit(problem: Problem, sweep: SweepKind) -> Solution | None:
    """The plan without the limit that a sweep sets: where it keeps the limit, it is the cheapest."""
    if sweep == "cost-ratio" or not problem.request.tolerance:
        return None
    change: dict[str, Any] = {"label_drift": None}
    if sweep == "coverage":
        change = {"at_least_each": ()}
    found = solve(problem.again(**change), effort=EFFORT)
    return None if found.rows is None else found


def _keeps(trial: Problem, found: Solution, sweep: SweepKind, value: float) -> bool:
    rows = found.rows
    if rows is None or rows.shape != trial.have.shape:
        return False
    if sweep == "coverage":
        return all(trial.slack(limit, rows) >= 0 for limit in trial.limits)
    return drift(rows, trial.base, "ub") <= value


def _budgets(problem: Problem, asked: list[float], progress: Reporter) -> list[SweepPoint]:
    found = []
    for number, budget in enumerate(asked):
        bought = least_tolerance(problem, budget)
        found.append(_point(problem, budget, None if bought is None else bought[1]))
        progress("budgets", (number + 1) / len(asked))
    return found


def _point(problem: Problem, value: float, found: Solution | None) -> SweepPoint:
    if found is None or found.rows is None:
        return SweepPoint(value, math.inf, math.inf, 0, 0, 0, 0, math.nan, math.nan)
    rows = found.rows
    change = rows - problem.have
    cost = problem.cells.total_cost(rows)
    covered = [x for x in problem.limits if x.kind == "at_least_each"]
    sizes = [int(rows.ravel()[x.cells].sum()) for x in covered] or rows.sum(axis=1).tolist()
    return SweepPoint(
        value=value,
        cost=cost,
        bound=max(min(found.bound, cost), 0.0),
        additions=int(change.clip(0).sum()),
        deletions=int((-change).clip(0).sum()),
        rows=int(rows.sum()) + problem.aside,
        smallest=min(sizes),
        reached=off_by(problem, rows, found.base),
        drift=drift(rows, problem.base, "ub"),
    )


_CRITERIA: dict[str, Callable[[SweepPoint], tuple[float, float]]] = {
    "coverage": lambda p: (p.cost, -p.smallest),
    "budget": lambda p: (p.cost, p.reached),
    "label-drift": lambda p: (p.cost, p.drift),
}
"""The two numbers of a point that should both be small."""


def _marked(points: list[SweepPoint], sweep: SweepKind) -> list[SweepPoint]:
    """Mark points that another one makes pointless."""
    criteria = _CRITERIA.get(sweep)
    if criteria is None:
        return points
    numbers = [criteria(p) if p.found else None for p in points]

    def beaten(own: tuple[float, float] | None) -> bool:
        if own is None:
            return False
        a, b = own
        # Costs are sums of floats, so tiny differences do not count.
        others = [(x[0] - a, x[1] - b) for x in numbers if x is not None]
        good = [(x, y) for x, y in others if x <= 1e-9 and y <= 1e-12]
        return any(x < -1e-9 or y < -1e-12 for x, y in good)

    return [replace(p, dominated=beaten(own)) for p, own in zip(points, numbers, strict=True)]
