"""Coverage of groups and shares of the table, against all small tables."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from enumeration import all_tables, costs, within
from equipoise.errors import InputError
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.request import request_from_dict

SMALL = st.lists(st.integers(1, 4), min_size=4, max_size=4).map(lambda n: np.reshape(n, (2, 2)))
HOW = {"reference": "original", "gap": 0.0}


def counts_of(have):
    cells = {(g, y): int(have[i, j]) for i, g in enumerate(["m", "w"]) for j, y in enumerate("ny")}
    return eq.Counts.from_mapping(cells, sensitive=["sex"], label="hired")


def rows_of(plan):
    after = plan.after()
    return np.array([[_cell(after, g, y) for y in "ny"] for g in ("m", "w")])


def _cell(counts, group, label):
    (a, b) = counts.axes
    line = (counts.codes == [a.code(group), b.code(label)]).all(axis=1)
    return int(counts.rows[line].sum())


def best_and_found(have, allowed, tables, **options):
    """The least cost of the allowed tables, and the plan; each None if there is none."""
    best = costs(tables[allowed], have).min(initial=10**9)
    try:
        plan = eq.plan(counts_of(have), **options)
    except Infeasible:
        plan = None
    return best, plan


@settings(max_examples=25, deadline=None)
@given(
    have=SMALL,
    least=st.integers(0, 7),
    cells=st.booleans(),
    tolerance=st.sampled_from([0.2, 0.5]),
    allow=st.sampled_from(["add", "both", "delete"]),
)
def test_every_group_has_its_rows_at_the_least_cost(have, least, cells, tolerance, allow):
    tables = all_tables(have, allow=allow, more=4)
    size = tables if cells else tables.sum(axis=2)
    enough = (size >= least).reshape(len(tables), -1).all(axis=1)
    allowed = within(tables, have, tolerance) & enough
    asked = {"sex, hired" if cells else "sex": least}
    options = {"tolerance": tolerance, "allow": allow, "at_least_each": asked, **HOW}
    best, plan = best_and_found(have, allowed, tables, **options)
    if plan is None:
        assert not allowed.any()
        return
    assert plan.reached
    rows = rows_of(plan)
    assert (rows if cells else rows.sum(axis=1)).min() >= least
    assert plan.cost <= best + 1e-9
    if (rows <= have + 4).all():
        assert plan.cost == pytest.approx(best)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    have=SMALL,
    share=st.sampled_from([0.5, 0.4, 0.25, 0.7]),
    room=st.sampled_from([0.0, 0.05, 0.1]),
    tolerance=st.sampled_from([0.2, 0.5]),
    allow=st.sampled_from(["add", "both"]),
)
def test_a_group_gets_its_share_at_the_least_cost(have, share, room, tolerance, allow):
    tables = all_tables(have, allow=allow, more=4)
    exact, width = Fraction(str(share)), Fraction(str(room))
    off = abs(exact.denominator * tables[:, 1].sum(axis=1) - exact.numerator * tables.sum((1, 2)))
    near = off < exact.denominator
    if room:
        near = off * width.denominator <= width.numerator * exact.denominator * tables.sum((1, 2))
    allowed = within(tables, have, tolerance) & near
    shares = {"group_shares": {"sex=w": share}, "share_tolerance": room}
    options = {"tolerance": tolerance, "allow": allow, **shares, **HOW}
    best, plan = best_and_found(have, allowed, tables, **options)
    if plan is None:
        assert not allowed.any()
        return
    assert plan.reached
    assert plan.bound <= best + 1e-6
    rows = rows_of(plan)
    group, everything = int(rows[1].sum()), int(rows.sum())
    assert abs(group - exact * everything) <= width * everything or (
        not room and abs(group - exact * everything) < 1
    )
    assert plan.cost <= best + 1e-9


PEOPLE = {
    ("m", "a", "y"): 30, ("m", "a", "n"): 60, ("m", "b", "y"): 10, ("m", "b", "n"): 20,
    ("w", "a", "y"): 10, ("w", "a", "n"): 40,
}  # fmt: skip


def people():
    return eq.Counts.from_mapping(PEOPLE, sensitive=["sex", "race"], label="hired")


def test_combinations_without_rows_get_some_and_the_certificate_has_one_line():
    plan = eq.plan(people(), tolerance=0.1, reference="original", at_least_each={"sex, race": 25})
    (line,) = [h for h in plan.certificate.constraints if "every group" in h.constraint]
    assert line.constraint == "at least 25 rows of every group of sex, race"
    assert (line.holds, line.value) == (True, 25)
    assert sum(c.after for c in plan.cells if str(c.group) == "sex=w, race=b") == 25


def test_a_pattern_with_any_value_and_one_value_names_some_groups():
    plan = eq.plan(
        people(), tolerance=0.2, reference="original", at_least_each={"sex=*, race=a": 100}
    )
    sizes = {str(c.group): 0 for c in plan.cells}
    for cell in plan.cells:
        sizes[str(cell.group)] += cell.after
    assert sizes["sex=m, race=a"] >= 100
    assert sizes["sex=w, race=a"] >= 100
    assert "sex=w, race=b" not in sizes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"at_least_each": {"sex, age": 3}}, "age"),
        ({"at_least_each": {"sex, sex": 3}}, "each once"),
        ({"at_least_each": {"sex": 1.5}}, "whole"),
        ({"group_shares": {"sex=m": 0.7, "sex=w": 0.6}}, "add up to 1.3"),
        ({"group_shares": {"sex=m": 1.0}}, "below 1"),
        ({"group_shares": {"*": 0.5}}, "all rows"),
        ({"group_shares": {"sex=w, race=b": 0.5}}, "has no rows"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(options, words):
    with pytest.raises(InputError, match=words):
        eq.plan(people(), **options)


@pytest.mark.slow
def test_an_infeasible_coverage_or_share_names_the_nearest_that_helps():
    pool = {"allow": "delete", "tolerance": 0.3, "reference": "original"}
    with pytest.raises(Infeasible) as none:
        eq.plan(people(), at_least_each={"sex": 60}, **pool)
    (each,) = [r for r in none.value.relaxations if r.option == "at_least_each"]
    assert each.needed < 60
    assert eq.plan(people(), at_least_each={"sex": each.needed}, **pool).reached
    with pytest.raises(Infeasible):
        eq.plan(people(), at_least_each={"sex": each.needed + 1}, **pool)
    few = {"available": {"sex=w": 10}, "tolerance": 0.3, "reference": "original"}
    with pytest.raises(Infeasible) as none:
        eq.plan(people(), group_shares={"sex=w": 0.5}, **few)
    (share,) = [r for r in none.value.relaxations if r.option == "share_tolerance"]
    assert 0 < share.needed < 0.3
    assert eq.plan(
        people(), group_shares={"sex=w": 0.5}, share_tolerance=share.needed, **few
    ).reached


def test_a_plan_with_coverage_and_shares_is_written_and_read_again():
    asked = {"at_least_each": {"sex, race": 20}, "group_shares": {"sex=w": 0.4}}
    plan = eq.plan(people(), tolerance=0.2, share_tolerance=0.01, reference="original", **asked)
    again = eq.Plan.from_json(plan.to_json())
    assert again.to_dict() == plan.to_dict()
    assert request_from_dict(plan.request.to_dict()) == plan.request


VACUOUS = (
    {"at_least_each": {"sex": 0}},
    {"at_least_each": {"sex, race": 0, "hired": 0}},
    {"at_least": {"sex=m": 0}},
    {"group_shares": {"sex=w": 0.5}, "share_tolerance": 0.6},
)


@pytest.mark.parametrize("limit", VACUOUS)
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_a_limit_that_excludes_nothing_changes_nothing(limit, tolerance):
    how = {"tolerance": tolerance, "allow": "both", "reference": "original"}
    plain, limited = eq.plan(people(), **how), eq.plan(people(), **how, **limit)
    assert [c.to_dict() for c in limited.cells] == [c.to_dict() for c in plain.cells]
    assert (limited.bound, limited.method) == (plain.bound, plain.method)


@pytest.mark.slow
@pytest.mark.parametrize("allow", ["add", "both"])
def test_with_new_frequencies_coverage_and_shares_hold_and_the_bound_is_true(allow):
    have = np.array([[3, 4], [1, 3]])
    tables = all_tables(have, allow=allow, more=5)
    size, everything = tables.sum(axis=2), tables.sum(axis=(1, 2))
    near = abs(10 * size[:, 1] - 5 * everything) <= everything
    allowed = within(tables, have, 0.25, reference="new") & (size >= 6).all(axis=1) & near
    best = costs(tables[allowed], have).min()
    asked = {"group_shares": {"sex=w": 0.5}, "share_tolerance": 0.1, "at_least_each": {"sex": 6}}
    plan = eq.plan(counts_of(have), tolerance=0.25, allow=allow, **asked)
    assert plan.reached
    assert plan.bound <= best
    assert plan.cost == best
