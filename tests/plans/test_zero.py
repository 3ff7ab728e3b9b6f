"""Zero tolerance: every claim of a plan against enumeration in fractions, with limits of every kind."""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.plans.certificate import certify
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.problem import pose
from equipoise.plans.request import PlanRequest
from equipoise.plans.solution import solve

SMALL = Fraction(1, 10**6)


def table(have):
    """Groups g0, g1, … and labels y0, y1, … with the given rows."""
    cells = {(f"g{g}", f"y{y}"): n for g, row in enumerate(have) for y, n in enumerate(row) if n}
    return eq.Counts.from_mapping(cells, sensitive=["g"], label="y")


def crossed(have):
    """The same over two attributes, a0 and a1 by b0 and b1."""
    names = [("a0", "b0"), ("a0", "b1"), ("a1", "b0"), ("a1", "b1")]
    cells = {
        (*name, f"y{y}"): n
        for name, row in zip(names, have, strict=True)
        for y, n in enumerate(row)
        if n
    }
    return eq.Counts.from_mapping(cells, sensitive=["a", "b"], label="y")


# --- the definition, in the plainest words ---------------------------------------------------------


def near(value):
    """The fraction that a float stands for; whole where only its last digits differ from it."""
    exact = Fraction(value)
    whole = round(exact)
    return Fraction(whole) if abs(exact - whole) <= 1e-9 * max(whole, 1) else exact


def exact_numbers(problem, base, sizes):
    """The exact number of each label of each judged group, the coarser groups last."""
    targets = problem.judged_ratios * base
    return [[near(t * q) for q in row] for t, row in zip(sizes, targets, strict=True)]


def slack(problem, limit, rows):
    have = problem.have.ravel()[limit.cells]
    now = rows.ravel()[limit.cells]
    if limit.kind == "available":
        return limit.rows - sum(max(int(a - b), 0) for a, b in zip(now, have, strict=True))
    total = int(now.sum())
    return limit.rows - total if limit.kind == "max_rows" else total - limit.rows


def meets(problem, rows):
    """Whether whole rows keep every limit but that on their distance from the exact numbers."""
    cells = problem.cells
    if (rows < cells.least).any() or (rows > cells.most).any():
        return False
    if (rows.sum(axis=1) < cells.group_least).any():
        return False
    return all(slack(problem, limit, rows) >= 0 for limit in problem.limits)


def is_near(problem, rows, exact):
    """Whether every label of every judged group is less than a row off."""
    judged = [rows[line] for line in np.flatnonzero(problem.judged)]
    judged += [rows[j.lines].sum(axis=0) for j in problem.coarse]
    return all(
        abs(int(m) - x) < 1
        for row, wanted in zip(judged, exact, strict=True)
        for m, x in zip(row, wanted, strict=True)
    )


def roundings(problem, exact):
    """All whole rows that are less than a row off, where every finest group is judged."""
    choices = [
        sorted({math.floor(x), math.ceil(x)}) for row in exact[: len(problem.cells)] for x in row
    ]
    for chosen in itertools.product(*choices):
        yield np.array(chosen, np.int64).reshape(problem.have.shape)


def least_real_cost(problem, base):
    """The lowest cost in real numbers under all limits: a program in sizes, gains and losses."""
    cells, (g, k) = problem.cells, problem.have.shape
    n = g * k
    q, have = (problem.ratios * base).ravel(), problem.have.ravel().astype(float)
    grow = np.zeros((n, g))
    grow[np.arange(n), np.arange(n) // k] = q
    eye, none = np.eye(n), np.zeros(g)
    left = [np.hstack([grow, -eye, 0 * eye]), np.hstack([-grow, 0 * eye, -eye])]
    right = [have, -have]
    for limit in problem.coupling:
        chosen = np.isin(np.arange(n), limit.cells).astype(float)
        row = np.concatenate([chosen @ grow, np.zeros(2 * n)])
        bound = limit.rows
        if limit.kind == "available":
            row = np.concatenate([none, chosen, np.zeros(n)])
        if limit.kind in ("at_least", "min_rows"):
            row, bound = -row, -bound
        left.append(row[None])
        right.append(np.array([bound], float))
    price = np.concatenate([none, cells.add.ravel(), cells.drop.ravel()])
    least = np.maximum((cells.least / q.reshape(g, k)).max(axis=1), cells.group_least)
    most = (cells.most / q.reshape(g, k)).min(axis=1)
    bounds = [*zip(least, np.maximum(most, least), strict=True), *[(0, None)] * (2 * n)]
    found = linprog(price, np.vstack(left), np.concatenate(right), bounds=bounds)
    return found.fun if found.status == 0 and (most >= least).all() else math.inf


# --- random requests ---------------------------------------------------------------------------------


def random_limits(rng, counts):
    """Limits that may bind, exclude everything, or exclude nothing."""
    n, groups, labels = counts.n, len(counts.axes[0]), len(counts.label)
    names = ["*"] + [f"g=g{g}" for g in range(groups)] + [f"y=y{y}" for y in range(labels)]
    names += [f"g=g{g}, y=y{y}" for g in range(groups) for y in range(labels)]
    limits = {}
    if rng.random() < 0.5:
        limits["available"] = {rng.choice(names): rng.randrange(0, n)}
    if rng.random() < 0.4:
        limits["at_least"] = {rng.choice(names): rng.randrange(0, n)}
    if rng.random() < 0.3:
        limits["min_rows"] = rng.randrange(1, 2 * n)
    if rng.random() < 0.3:
        limits["max_rows"] = rng.randrange(max(n // 2, limits.get("min_rows", 1)), 4 * n)
    return limits


def random_request(rng):
    groups, labels = rng.choice([(2, 2), (3, 2), (2, 3), (4, 2)])
    largest = rng.choice([6, 25])
    have = [[rng.randrange(0, largest) for _ in range(labels)] for _ in range(groups)]
    have[0] = [rng.randrange(1, largest) for _ in range(labels)]
    have = [row if any(row) else [1] * labels for row in have]
    counts = table(have)
    allow = rng.choice(["add", "both", "both", "delete"])
    request = {
        "allow": allow,
        "rounding": rng.choice(["floor", "nearest", "optimal"]),
        "labels": rng.choice(["keep", "keep", "free"]),
        "cost_delete": {"*": rng.choice([0.5, 1, 1.5, 3])},
        **random_limits(rng, counts),
    }
    return counts, PlanRequest(**request)


def check_rounding(rows, exact, rounding, possible):
    """Check that no other rows keep the limits and differ less from the rounding that was named."""
    half = Fraction(1, 2) if rounding == "nearest" else 0
    named = np.array([[math.floor(x + half) for x in row] for row in exact])
    assert (rows != named).sum() == min((other != named).sum() for other in possible)


def check_claims(counts, request):
    """Check everything that is claimed of a request; tell what was claimed."""
    problem = pose(counts, request)
    found = solve(problem)
    if found.rows is None:
        if found.held is not None and found.bound == math.inf:
            exact = exact_numbers(problem, found.base, found.held)
            assert not any(meets(problem, rows) for rows in roundings(problem, exact))
        elif found.bound == math.inf:
            assert least_real_cost(problem, found.base) == math.inf
        return "infeasible"
    exact = exact_numbers(problem, found.base, found.held)
    certificate = certify(problem, found, found.rows)
    truth = meets(problem, found.rows) and is_near(problem, found.rows, exact)
    assert certificate.reached == truth
    assert truth
    possible = [rows for rows in roundings(problem, exact) if meets(problem, rows)]
    optimum = min(problem.cells.total_cost(rows) for rows in possible)
    assert found.bound <= optimum + 1e-9
    assert certificate.off_after <= certificate.rounding_bound * (1 + 1e-9)
    if request.rounding != "optimal":
        check_rounding(found.rows, exact, request.rounding, possible)
    if request.labels == "keep":
        real = sum(map(Fraction, problem.cells.cost(np.array(exact, float)).tolist()))
        assert real <= least_real_cost(problem, found.base) + 1e-6
    return "limited" if problem.limits else "unlimited"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_every_claim_at_zero_tolerance_is_true(part):
    rng = random.Random(part)
    claims = [check_claims(*random_request(rng)) for _ in range(100)]
    assert min(map(claims.count, ("infeasible", "limited", "unlimited"))) >= 3


# --- groups that are not all judged ------------------------------------------------------------------


def crossed_request(rng):
    """Marginals, large groups or the groups of a pattern, on four finest groups of two labels."""
    counts = crossed([[rng.randrange(1, 9) for _ in range(2)] for _ in range(4)])
    request = {
        "allow": rng.choice(["add", "both"]),
        "rounding": rng.choice(["floor", "nearest", "optimal"]),
        **rng.choice([{"constrain": "marginals"}, {"constrain": ("a=a0",)}, {"min_group": 6}]),
    }
    if rng.random() < 0.4:
        request["available"] = {"y=y1": rng.randrange(0, 25)}
    if rng.random() < 0.4:
        request["max_rows"] = counts.n + rng.randrange(-5, 20)
    return counts, PlanRequest(**request)


def whole_tables(problem, around, below):
    """All whole rows within two rows of some others that cost less than a bound."""
    choices = [sorted({max(n + step, 0) for step in (-2, -1, 0, 1, 2)}) for n in around.ravel()]
    grid = np.stack([g.ravel() for g in np.meshgrid(*choices)], axis=1)
    cells = problem.cells
    inside = (grid >= cells.least.ravel()) & (grid <= cells.most.ravel())
    change = grid - cells.have.ravel()
    cost = (change.clip(0) * cells.add.ravel() + (-change).clip(0) * cells.drop.ravel()).sum(axis=1)
    return grid[inside.all(axis=1) & (cost < below - 1e-9)].reshape(-1, *problem.have.shape)


@pytest.mark.slow
def test_every_claim_is_true_where_only_some_groups_are_judged():
    rng = random.Random(7)
    told = []
    while len(told) < 30:
        counts, request = crossed_request(rng)
        try:
            problem = pose(counts, request)
        except eq.errors.InputError:  # no group has so many rows
            continue
        found = solve(problem)
        if found.rows is None:
            continue
        exact = exact_numbers(problem, found.base, found.held)
        certificate = certify(problem, found, found.rows)
        assert certificate.reached
        assert meets(problem, found.rows)
        assert is_near(problem, found.rows, exact)
        room = len(problem.cells) + 1  # label frequencies are kept up to a row per group
        for rows in whole_tables(problem, found.rows, found.bound):
            balanced = np.abs(rows.sum(axis=0) - problem.base * rows.sum()).max() <= room
            assert not (balanced and meets(problem, rows) and is_near(problem, rows, exact))
        told.append(found.method)
    assert "solver" in told


# --- claims that were false ---------------------------------------------------------------------------


def test_no_bound_is_claimed_for_label_frequencies_that_were_only_searched():
    """Its bound was 2, and the table is as good as any within a row of some frequencies."""
    plan = eq.plan(
        table([[5, 2], [7, 7]]),
        labels="free",
        allow="both",
        costs={"delete *": 1.5},
        available={"y=y0": 1},
    )
    assert plan.bound == 0
    assert plan.reached


def test_a_group_is_held_to_the_size_that_was_rounded():
    """It was called reached with a group further off than its rounding."""
    counts = table([[18, 3], [22, 20], [24, 4]])
    plan = eq.plan(counts, min_rows=1)
    assert plan.cells == eq.plan(counts).cells
    rates = [Fraction(64, 91), Fraction(27, 91)]
    sizes = [max(18 / rates[0], 3 / rates[1]), max(22 / rates[0], 20 / rates[1])]
    sizes.append(max(24 / rates[0], 4 / rates[1]))
    assert plan.certificate.sizes == pytest.approx([float(s) for s in sizes])
    after = {(str(c.group), c.label): c.after for c in plan.cells}
    for g, size in enumerate(sizes):
        for y, rate in enumerate(rates):
            assert abs(after[f"g=g{g}", f"y{y}"] - size * rate) < 1


# --- rounding under limits --------------------------------------------------------------------------

COMPAS = {"sensitive_features": ["sex", "race"], "label": "risk", "count": "n"}


@pytest.mark.slow
@pytest.mark.parametrize(("rounding", "rows"), [("floor", 11_621), ("optimal", 11_628)])
@pytest.mark.parametrize("limit", [{}, {"min_rows": 1000}, {"available": {"risk=H": 10**6}}])
def test_a_limit_that_excludes_nothing_changes_nothing_of_compas(rounding, rows, limit):
    plan = eq.plan("compas", rounding=rounding, **limit, **COMPAS)
    assert plan.additions == rows
    assert plan.cells == eq.plan("compas", rounding=rounding, **COMPAS).cells


def test_a_rounding_goes_with_a_limit_that_binds():
    plans = {
        rounding: eq.plan("compas", rounding=rounding, max_rows=50_000, allow="both", **COMPAS)
        for rounding in ("floor", "nearest", "optimal")
    }
    assert len({plan.certificate.sizes for plan in plans.values()}) == 1
    exact = exact_numbers(
        pose(plans["floor"].counts, plans["floor"].request),
        np.array(plans["floor"].certificate.labels_planned),
        plans["floor"].certificate.sizes,
    )
    after = {
        rounding: np.array([c.after for c in plan.cells]).reshape(4, 3)
        for rounding, plan in plans.items()
    }
    assert after["floor"].tolist() == [[math.floor(x) for x in row] for row in exact]
    whole = [[math.floor(x + Fraction(1, 2)) for x in row] for row in exact]
    assert np.abs(after["nearest"] - whole).sum() <= 1  # one more if that keeps the limit
    assert all(rows.sum() <= 50_000 for rows in after.values())


@pytest.mark.slow
def test_rows_that_limits_lack_are_named():
    counts = table([[18, 3], [22, 20], [24, 4]])
    needed = eq.plan(counts).certificate.n_after
    with pytest.raises(eq.Infeasible, match=r"at zero bias they lack \d+ rows") as caught:
        eq.plan(counts, max_rows=needed - 20)
    named = {r.option: r.needed for r in caught.value.relaxations}
    assert needed - 6 <= named["max_rows"] <= needed


# --- limits that exclude nothing -------------------------------------------------------------------


def excluding_nothing(rng, plan):
    """Limits of every kind that a plan keeps with or without room, some of them at once."""
    before, after = plan.counts, plan.after()
    names = ["*", "g=g0", "y=y1", "g=g1, y=y0", "g=g0, y=y1"]
    added = {name: plan.add.of(name) if name != "*" else plan.add.n for name in names}
    rows = {name: after.of(name) if name != "*" else after.n for name in names}
    pattern, room = rng.choice(names), rng.choice([0, 1, 10**6])
    drift = max(
        abs(new / old - 1)
        for new, old in zip(
            plan.certificate.labels_after, plan.certificate.labels_before, strict=True
        )
    )
    pool = eq.Counts.from_mapping(
        {
            (f"g{g}", f"y{y}"): 10**6
            for g in range(len(before.axes[0]))
            for y in range(len(before.label))
        },
        sensitive=["g"],
        label="y",
    )
    limits = [
        {"available": {pattern: added[pattern] + room}},
        {"at_least": {pattern: max(rows[pattern] - room, 0)}},
        {"min_rows": max(after.n - room, 0)},
        {"max_rows": after.n + room},
        {"label_drift": drift * 1.001 + 1e-9 + rng.choice([0, 10])},
        {"available_from": pool},
        {"budget": plan.cost + room},
        {"budget": plan.cost + room, "priority": ("g=g1",)},
        {"costs": {"add *": 1.0}},
    ]
    if plan.request.allow != "add":
        limits.append({"deletable": ("*",)})
    chosen = rng.sample(limits, rng.choice([1, 1, 2]))
    return {name: value for limit in chosen for name, value in limit.items()}


def same_plan_with_more_limits(rng, **options):
    have = [[rng.randrange(1, 15) for _ in range(2)] for _ in range(3)]
    counts = table(have)
    options |= {"allow": rng.choice(["add", "both"]), "labels": rng.choice(["keep", "free"])}
    plan = eq.plan(counts, **options)
    limits = excluding_nothing(rng, plan)
    again = eq.plan(counts, **options, **limits)
    assert again.cells == plan.cells, (have, options, limits)
    assert again.cost == plan.cost
    assert again.reached


@pytest.mark.slow
def test_limits_that_exclude_nothing_change_no_plan_for_zero_bias():
    rng = random.Random(3)
    for _ in range(60):
        same_plan_with_more_limits(rng, rounding=rng.choice(["floor", "nearest", "optimal"]))


@pytest.mark.slow
def test_limits_that_exclude_nothing_change_no_plan_against_the_original_frequencies():
    rng = random.Random(4)
    for _ in range(40):
        same_plan_with_more_limits(
            rng, tolerance=rng.choice([0.05, 0.1, 0.3]), reference="original"
        )


@pytest.mark.slow
def test_limits_that_exclude_nothing_change_no_plan_against_the_new_frequencies():
    rng = random.Random(5)
    for _ in range(3):
        same_plan_with_more_limits(rng, tolerance=rng.choice([0.1, 0.3]))


# --- plan files ---------------------------------------------------------------------------------------


def without_sizes(plan):
    """A plan as versions wrote it that did not write the sizes before rounding."""
    data = json.loads(plan.to_json())
    del data["certificate"]["sizes"]
    return data


def test_the_sizes_before_rounding_are_written_and_judge_the_plan_that_is_read():
    plan = eq.plan(table([[18, 3], [22, 20], [24, 4]]), max_rows=140)
    again = eq.Plan.from_json(plan.to_json())
    assert again.certificate == plan.certificate
    assert len(again.certificate.sizes) == 3
    data = json.loads(plan.to_json())
    data["certificate"]["sizes"][0] += 5
    with pytest.raises(eq.errors.InputError, match="the certificate of this plan does not match"):
        eq.Plan.from_dict(data)


def test_a_plan_of_an_earlier_version_is_read():
    plan = eq.plan(table([[18, 3], [22, 20], [24, 4]]), rounding="floor")
    assert eq.Plan.from_dict(without_sizes(plan)).cells == plan.cells


def test_a_plan_of_an_earlier_version_that_rounded_otherwise_is_refused_with_the_reason():
    """At these sizes it is no rounding of zero bias, although it is one at others."""
    plan = eq.plan(table([[18, 3], [22, 20], [24, 4]]), extra={"g=g2": 10})
    data = without_sizes(plan)
    del data["request"]["extra"]
    with pytest.raises(
        eq.errors.InputError, match="of an earlier version, which rounded by another"
    ):
        eq.Plan.from_dict(data)


@pytest.mark.slow
def test_zero_bias_of_thousands_of_overlapping_groups_is_refused_at_once():
    """Whole rows that are within a row in all of them need not exist."""
    rng = np.random.default_rng(3)
    codes = np.unique(rng.integers(0, 4, (3_000, 6)), axis=0)
    rows = rng.integers(1, 20, (len(codes), 2))
    cells = {
        (*map(str, code), "ny"[y]): int(rows[i, y])
        for i, code in enumerate(codes.tolist())
        for y in (0, 1)
    }
    counts = eq.Counts.from_mapping(cells, sensitive=list("abcdef"), label="y")
    start = time.process_time()
    with pytest.raises(Infeasible, match="`min_group`") as refused:
        eq.plan(counts, tolerance=0, min_group=30)
    assert not refused.value.proved
    assert time.process_time() - start < 5
    assert eq.plan(counts, tolerance=0, constrain="marginals").reached
