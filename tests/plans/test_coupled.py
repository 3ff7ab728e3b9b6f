"""Groups that share limits: HiGHS against enumeration of whole tables, and against the search."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.problem import pose
from equipoise.plans.request import PlanRequest
from equipoise.plans.solution import solve
from equipoise.plans.solvers.separable import solve_separable
from equipoise.values import ANY
from reference_models import cheapest_by_scipy
from strategies import SEX_AND_RACE as CELLS
from strategies import biases, label_rates, largest_bias, lattice_of, repairable, rows_of

TOLERANCES = (0.1, 0.2, 0.25, 0.3, 0.5)
COSTS = (0.0, 0.5, 1.0, 2.0)
NAMES = ("a", "b")


# --- everything there is, in the plainest words ---------------------------------------------------


def fits(cell, pattern):
    """Whether a cell (values…, label) is named by a pattern."""
    group = Group.parse(pattern)
    named = dict(zip((*NAMES, "y"), cell, strict=True))
    return all(named[name] == value for name, value in group.items())


def price(before, after, request):
    total = Fraction(0)
    for cell, rows in after.items():
        change = rows - before.get(cell, 0)
        given = request.cost_add if change > 0 else request.cost_delete
        cost = Fraction(1)
        for pattern, value in given:
            if fits(cell, pattern):
                cost = Fraction(repr(value))
        total += abs(change) * cost
    return total


def judged_groups(before, request):
    """The groups that are held to the tolerance, by their rows before."""
    found = []
    for group, labels in lattice_of(before).items():
        order = sum(v is not ANY for v in group)
        named = dict(zip(NAMES, group, strict=True))
        inside = isinstance(request.constrain, str) or any(
            all(named[n] == v for n, v in Group.parse(p).items()) for p in request.constrain
        )
        if sum(labels.values()) < request.min_group or not inside:
            continue
        if request.constrain == "marginals" and order != 1:
            continue
        found.append(group)
    return found


def holds(before, after, request):
    """Whether a table is what was asked for, against the original label frequencies."""
    n = sum(after.values())
    if not n or n < (request.min_rows or 0) or n > (request.max_rows or n):
        return False
    for pattern, limit in request.available:
        if sum(max(x - before.get(c, 0), 0) for c, x in after.items() if fits(c, pattern)) > limit:
            return False
    for pattern, limit in request.at_least:
        if sum(x for c, x in after.items() if fits(c, pattern)) < limit:
            return False
    if any(not any(after[c] for c in after if c[:-1] == g) for g in {c[:-1] for c in before}):
        return False
    rates, t = label_rates(before), Fraction(repr(request.tolerance))
    off = biases(after, on=request.tolerance_on, rates=rates)
    groups = judged_groups(before, request)
    if any(abs(off[group, label]) > t for group in groups for label in rates):
        return False
    moved = label_rates(after)
    for label, rate in rates.items():
        drift = abs(moved.get(label, Fraction(0)) - rate)
        if drift > (t * rate if request.tolerance_on == "ub" else t):
            return False
    return True


def enumerated(counts, request, more):
    """The least cost of all tables with up to so many rows more in each cell, in whole numbers."""
    before = rows_of(counts)
    groups = sorted({cell[:-1] for cell in before})
    cells = [(*g, y) for g in groups for y in counts.label.values]
    have = np.array([before.get(cell, 0) for cell in cells])
    ranges = []
    for cell, rows in zip(cells, have.tolist(), strict=True):
        deletable = request.allow != "add" and (
            not request.deletable or any(fits(cell, p) for p in request.deletable)
        )
        high = rows + more if request.allow != "delete" else rows
        ranges.append(np.arange(0 if deletable else rows, high + 1))
    tables = np.stack([grid.ravel() for grid in np.meshgrid(*ranges)], axis=1)
    change = tables - have
    twice = 2 * sum(
        np.clip(sign * change[:, i], 0, None) * _cost(cells[i], given)
        for i in range(len(cells))
        for sign, given in ((1, request.cost_add), (-1, request.cost_delete))
    )
    for place in np.argsort(twice, kind="stable"):
        after = dict(zip(cells, tables[place].tolist(), strict=True))
        if holds(before, after, request):
            return Fraction(twice[place]) / 2
    return None


def _cost(cell, given):
    return next((cost for pattern, cost in reversed(given) if fits(cell, pattern)), 1.0)


@st.composite
def requests(draw, counts):
    """A request that couples groups."""
    n = counts.n
    options = {
        "tolerance": draw(st.sampled_from(TOLERANCES)),
        "tolerance_on": draw(st.sampled_from(["ub", "rate"])),
        "reference": "original",
        "allow": draw(st.sampled_from(["add", "delete", "both", "both"])),
        "gap": 0.0,
    }
    kinds = draw(st.sets(st.sampled_from(range(8)), min_size=1, max_size=3))
    if 0 in kinds:
        options["min_rows"] = n + draw(st.integers(-1, 3))
    if 1 in kinds:
        options["max_rows"] = max(n + draw(st.integers(-2, 3)), options.get("min_rows") or 0, 1)
    if 2 in kinds:
        options["available"] = {
            draw(st.sampled_from(["a=a0", "y=y1", "*"])): draw(st.integers(0, 3))
        }
    if 3 in kinds:
        options["at_least"] = {"y=y0": draw(st.integers(1, 6))}
    if 4 in kinds:
        options["constrain"] = "marginals"
    if 5 in kinds:
        options["min_group"] = draw(st.integers(2, 5))
    if 6 in kinds and options["allow"] != "add":
        options["deletable"] = ("y=y0",)
    if 7 in kinds:
        options["cost_add"] = {"a=a0": draw(st.sampled_from(COSTS))}
        options["cost_delete"] = {"y=y1": draw(st.sampled_from(COSTS))}
    values = {axis.name: axis.values for axis in counts.axes}
    for name in ("available", "cost_add"):
        options[name] = {
            p: v for p, v in options.get(name, {}).items() if "a0" not in p or "a0" in values["a"]
        }
    return PlanRequest(**options)


# --- against enumeration --------------------------------------------------------------------------


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_coupled_plan_is_as_cheap_as_the_best_of_all_tables(data):
    counts = data.draw(repairable(shape=(2, 2), largest=2) | repairable(shape=(3,), largest=4))
    if len(counts.sensitive) == 1:  # one attribute: call it a, and leave b the same everywhere
        cells = {(a, "b0", y): n for (a, y), n in rows_of(counts).items()}
        counts = eq.Counts.from_mapping(cells, sensitive=NAMES, label="y")
    request = data.draw(requests(counts))
    groups = len({cell[:-1] for cell in rows_of(counts)})
    more = 1 if groups > 3 else 2 if groups == 3 else 6
    try:
        problem = pose(counts, request)
    except InputError:  # no group counts
        assert not judged_groups(rows_of(counts), request)
        return
    found = solve(problem)
    best = enumerated(counts, request, more)
    if found.rows is None:
        assert best is None
        return
    before = rows_of(counts)
    after = {
        (*problem.group(line).values(), y): int(found.rows[line, i])
        for line in range(len(problem.cells))
        for i, y in enumerate(counts.label.values)
    }
    assert holds(before, after, request)
    assert float(price(before, after, request)) == pytest.approx(
        float(problem.cells.cost(found.rows).sum()), abs=1e-9
    )
    assert found.bound <= float(price(before, after, request)) + 1e-6
    if best is not None:
        assert price(before, after, request) <= best + Fraction(1, 10**6)
    if best is not None and all(x <= before.get(c, 0) + more for c, x in after.items()):
        assert float(best) == pytest.approx(float(price(before, after, request)), abs=1e-6)
        assert found.bound <= float(best) + 1e-6


# --- the search and HiGHS -------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=40)
@given(
    repairable(shape=(2, 2), labels=3, largest=60) | repairable(shape=(3, 2), labels=2, largest=99),
    st.sampled_from((0.03, 0.05, 0.1, 0.2, 0.25)),
    st.sampled_from(["ub", "rate"]),
    st.sampled_from(["add", "both"]),
    st.sampled_from(COSTS),
)
def test_the_search_and_highs_agree_where_both_apply(counts, tolerance, on, allow, cost):
    request = PlanRequest(
        tolerance=tolerance,
        tolerance_on=on,
        reference="original",
        allow=allow,
        cost_add={"y=y0": cost},
        gap=0.0,
    )
    problem = pose(counts, request)
    assert problem.separable
    mine = solve_separable(problem.cells, problem.band(problem.rates))
    theirs = cheapest_by_scipy(problem, problem.rates, whole=True)
    assert mine.cost == pytest.approx(theirs, abs=1e-6)


# --- each limit, in the table that comes out ------------------------------------------------------


@pytest.fixture
def counts():
    return eq.Counts.from_mapping(CELLS, sensitive=["sex", "race"], label="o")


LIMITS = {
    "min_rows": ({"min_rows": 300}, lambda after, plan: after.n >= 300),
    "max_rows": ({"max_rows": 250, "allow": "both"}, lambda after, plan: after.n <= 250),
    "exact size": (
        {"min_rows": 255, "max_rows": 255, "allow": "both"},
        lambda after, plan: after.n == 255,
    ),
    "at_least": (
        {"at_least": {"sex=w": 130}, "allow": "both"},
        lambda after, plan: after.of("sex=w") >= 130,
    ),
    "at_least of a label": (
        {"at_least": {"o=h": 90}},
        lambda after, plan: after.of("o=h") >= 90,
    ),
    "available over several cells": (
        {"available": {"sex=w": 3}, "allow": "both"},
        lambda after, plan: plan.add.of("sex=w") <= 3,
    ),
    "available in all": (
        {"available": {"*": 5}, "allow": "both"},
        lambda after, plan: plan.additions <= 5,
    ),
    "deletable": (
        {"deletable": ("sex=m",), "allow": "both"},
        lambda after, plan: plan.delete.of("sex=w") == 0,
    ),
    "allow add": ({"allow": "add"}, lambda after, plan: plan.deletions == 0),
    "allow delete": ({"allow": "delete"}, lambda after, plan: plan.additions == 0),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_a_limit_holds_in_the_repaired_table(counts, name, tolerance):
    options, check = LIMITS[name]
    plan = eq.plan(counts, tolerance=tolerance, reference="original", **options)
    after = plan.after()
    assert plan.reached
    assert check(after, plan)
    assert all(held.holds for held in plan.certificate.constraints)
    if tolerance:
        off = largest_bias(rows_of(after), rates=label_rates(rows_of(counts)))
        assert off <= Fraction(repr(tolerance))


def test_all_limits_together(counts):
    plan = eq.plan(
        counts,
        tolerance=0.1,
        reference="original",
        allow="both",
        min_rows=262,
        max_rows=270,
        available={"sex=w, o=h": 12, "*": 30},
        at_least={"sex=w": 100, "race=z": 130},
        deletable=("sex=m", "race=z"),
        costs={"sex=w": 2, "delete race=z": 0.5},
        budget=100,
    )
    after = plan.after()
    assert plan.reached
    assert 262 <= after.n <= 270
    assert plan.add.of("sex=w, o=h") <= 12
    assert plan.additions <= 30
    assert after.of("sex=w") >= 100
    assert after.of("race=z") >= 130
    assert plan.delete.of("sex=w, race=x") == 0
    assert plan.cost <= 100
    off = largest_bias(rows_of(after), rates=label_rates(CELLS))
    assert off <= Fraction(1, 10)


def test_only_the_marginals_count(counts):
    plan = eq.plan(
        counts, tolerance=0.05, reference="original", allow="both", constrain="marginals"
    )
    off = biases(rows_of(plan.after()), rates=label_rates(CELLS))
    single = {g: b for (g, y), b in off.items() if sum(v is not ANY for v in g) == 1}
    assert plan.reached
    assert max(map(abs, single.values())) <= Fraction(1, 20)
    assert plan.cost < eq.plan(counts, tolerance=0.05, reference="original", allow="both").cost


def test_only_one_group_counts(counts):
    plan = eq.plan(
        counts, tolerance=0.05, reference="original", allow="both", constrain="sex=w", labels="free"
    )
    off = biases(rows_of(plan.after()), rates=label_rates(CELLS))
    women = [b for (g, y), b in off.items() if g[0] == "w"]
    assert len(women) == 6
    assert max(map(abs, women)) <= Fraction(1, 20)
    assert plan.add.of("sex=m") == plan.delete.of("sex=m") == 0


def test_patterns_to_constrain_may_be_a_list(counts):
    options = {"tolerance": 0.05, "reference": "original", "allow": "both"}
    listed = eq.plan(counts, constrain=["sex=w"], **options)
    assert listed.cost == eq.plan(counts, constrain=("sex=w",), **options).cost


def test_small_groups_do_not_count(counts):
    """With 60 rows as the least, women of either race do not count, but women do."""
    plan = eq.plan(counts, tolerance=0.05, reference="original", allow="both", min_group=60)
    off = biases(rows_of(plan.after()), rates=label_rates(CELLS))
    large = {g for g, labels in lattice_of(CELLS).items() if sum(labels.values()) >= 60}
    assert len(large) == 6
    assert max(abs(b) for (g, y), b in off.items() if g in large) <= Fraction(1, 20)


def test_no_group_counts(counts):
    with pytest.raises(InputError, match="lower `min_group`"):
        eq.plan(counts, tolerance=0.05, min_group=1000)


@pytest.mark.parametrize("option", [{"min_group": 1000}, {"constrain": "marginals"}])
def test_a_group_with_a_target_counts(counts, option):
    """Whatever else does not: a target that is given is not left out without a word."""
    plan = eq.plan(counts, target="keep rates of: sex", **option)
    assert plan.cells == eq.plan(counts, target="keep rates of: sex").cells
    assert plan.reached


def test_a_group_without_rows_gets_its_first(counts):
    cells = {c: n for c, n in CELLS.items() if c[:2] != ("w", "z")}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex", "race"], label="o")
    plan = eq.plan(counts, tolerance=0.1, at_least={"sex=w, race=z": 20}, reference="original")
    after = rows_of(plan.after())
    assert after["w", "z", "h"] + after["w", "z", "n"] >= 20
    assert largest_bias(after, rates=label_rates(cells)) <= Fraction(1, 10)


@pytest.mark.slow
def test_impossible_bounds_are_infeasible(counts):
    with pytest.raises(Infeasible, match="must have at least 40 rows and can have at most 11"):
        eq.plan(
            counts,
            tolerance=0.1,
            at_least={"sex=w, race=x, o=h": 40},
            available={"sex=w, race=x, o=h": 1},
        )


@pytest.fixture
def large():
    rng = np.random.default_rng(3)
    cells = {
        (f"a{a}", f"b{b}", f"y{y}"): int(n)
        for (a, b, y), n in np.ndenumerate(rng.integers(1, 400, (9, 9, 3)))
    }
    return eq.Counts.from_mapping(cells, sensitive=["a", "b"], label="y")


@pytest.mark.slow
def test_time_that_runs_out_gives_a_plan_with_its_gap(large):
    """Many groups under one limit, and little time."""
    request = PlanRequest(
        tolerance=0.2, reference="original", allow="both", gap=0.0, max_rows=large.n, time_limit=1.0
    )
    problem = pose(large, request)
    found = solve(problem)
    assert found.rows is not None
    cost = float(problem.cells.cost(found.rows).sum())
    assert found.bound <= cost + 1e-6
    assert found.timed_out or found.bound >= cost - 1e-3


@pytest.mark.slow
def test_time_that_runs_out_proves_nothing(large):
    request = PlanRequest(
        tolerance=0.013, reference="original", allow="both", max_rows=large.n, time_limit=0.05
    )
    problem = pose(large, request)
    assert solve(problem).bound < math.inf


def test_a_far_bound_does_not_hide_the_best_plan():
    """(1,1) and (2,2) make the five rows asked for with four additions."""
    cells = {("a0", "b0", "y0"): 1, ("a1", "b1", "y1"): 1}
    counts = eq.Counts.from_mapping(cells, sensitive=["a", "b"], label="y")
    plan = eq.plan(counts, tolerance=0.1, reference="original", min_rows=5)
    assert plan.cost == 4
    assert plan.bound <= 4
