"""Plans made by hand: what they do, held against counting by hand in fractions."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.errors import InputError, PatternError
from equipoise.plans.moves import Move

CELLS = {("m", "h"): 160, ("m", "n"): 290, ("w", "h"): 40, ("w", "n"): 110}
SMALL = st.fixed_dictionaries(
    {cell: st.integers(0, 9) for cell in itertools.product("mwx", "ab", "hno")}
)


def counted(cells, sensitive=("sex", "race"), label="o"):
    return eq.Counts.from_mapping(cells, sensitive=list(sensitive), label=label)


@pytest.fixture
def counts():
    return counted(CELLS, ["sex"])


def largest_ub(rows):
    """The largest |UB| of all groups, in fractions, by counting every group of the lattice."""
    n = sum(rows.values())
    width = len(next(iter(rows))) - 1
    worst = Fraction(0)
    for attributes in itertools.chain.from_iterable(
        itertools.combinations(range(width), order) for order in range(1, width + 1)
    ):
        for values in {tuple(c[a] for a in attributes) for c, k in rows.items() if k}:
            group = {c: k for c, k in rows.items() if tuple(c[a] for a in attributes) == values}
            n_g = sum(group.values())
            for y in {c[-1] for c in rows}:
                n_y = sum(k for c, k in rows.items() if c[-1] == y)
                n_gy = sum(k for c, k in group.items() if c[-1] == y)
                if n_g and n_y:
                    worst = max(worst, abs(1 - Fraction(n_gy * n, n_g * n_y)))
    return worst


def rows_by_hand(cells, moves):
    """The rows of each cell after moves of single cells."""
    after = dict(cells)
    for cell, rows in moves:
        after[cell] = after.get(cell, 0) + rows
    return after


@pytest.mark.slow
@settings(max_examples=40)
@given(SMALL, st.data(), st.sampled_from([None, 0.0, 0.1, 0.5, 1.0]))
def test_the_certificate_is_what_counting_by_hand_gives(cells, data, tolerance):
    assume(all(sum(k for c, k in cells.items() if c[-1] == y) for y in "hno"))
    chosen = data.draw(
        st.lists(st.sampled_from(sorted(cells)), min_size=1, max_size=4, unique=True)
    )
    moves = [(c, data.draw(st.integers(-cells[c], 20).filter(bool))) for c in chosen]
    counts = counted(cells)
    assume(all(c[0] in counts.axis("sex").values for c in chosen))
    after = rows_by_hand(cells, moves)
    assume(all(sum(k for c, k in after.items() if c[-1] == y) for y in "hno"))
    listed = {
        kind: {f"sex={s}, race={r}, o={y}": sign * n for (s, r, y), n in moves if sign * n > 0}
        for kind, sign in (("add", 1), ("delete", -1))
    }
    asked = {} if tolerance is None else {"tolerance": tolerance, "may_vanish": True}
    plan = eq.scenario(counts, **listed, **asked)
    got = {cell: rows for cell, rows in plan.after().cells().items() if rows}
    assert got == {cell: rows for cell, rows in after.items() if rows}
    worst = largest_ub(after)
    assert plan.certificate.max_abs_ub_after == pytest.approx(float(worst), abs=1e-12)
    assert plan.certificate.max_abs_ub_before == pytest.approx(float(largest_ub(cells)), abs=1e-12)
    assert plan.cost == sum(abs(n) for _, n in moves)
    assert plan.method == "scenario"
    if tolerance:
        assert plan.reached == (worst <= Fraction(str(tolerance)))
    again = eq.Plan.from_json(plan.to_json())
    assert again.to_json() == plan.to_json()
    assert again.certificate == plan.certificate


@pytest.mark.slow
@settings(max_examples=60)
@given(SMALL, st.integers(1, 500), st.sampled_from(["sex=m", "race=a, o=h", "o=n", "race=b"]))
def test_whole_rows_are_split_by_the_shares_of_a_map(cells, rows, pattern):
    assume(all(sum(k for c, k in cells.items() if c[-1] == y) for y in "hno"))
    counts = counted(cells)
    group = eq.Group.parse(pattern)
    assume(all(v in counts.axis(a).values for a, v in group.items()))
    for kind in ("add", "delete"):
        there = counts.of(group)
        if kind == "delete" and not there:
            continue
        n = min(rows, there) if kind == "delete" else rows
        move = Move.parse(f"{kind} {pattern}", counts)
        split = move.whole(n)
        assert split.sum() == n
        total = int(move.parts.sum())
        off = [abs(s - Fraction(n * int(p), total)) for s, p in zip(split, move.parts, strict=True)]
        assert max(off) < 1
        if kind == "delete":
            assert (split <= move.parts).all()
        if n < counts.n or kind == "add":
            plan = eq.scenario(counts, **{kind: {pattern: n}})
            got = plan.add if kind == "add" else plan.delete
            assert sorted(got.rows.tolist()) == sorted(split[split > 0].tolist())


@pytest.mark.slow
def test_a_searched_plan_drawn_again_has_the_same_certificate():
    compas = eq.count("compas", sensitive_features=["sex", "race"], label="risk", count="n")
    found = eq.plan(compas, tolerance=0.05, allow="both", reference="original")
    label = compas.label.name
    moved = {
        kind: {
            f"{c.group}, {label}={c.label}": getattr(c, kind)
            for c in found.moves
            if getattr(c, kind)
        }
        for kind in ("add", "delete")
    }
    drawn = eq.scenario(compas, **moved, tolerance=0.05, reference="original")
    assert drawn.cells == found.cells
    assert drawn.reached
    assert drawn.cost == found.cost
    for name in ("max_abs_ub_after", "off_after", "label_drift", "n_after", "worst_after"):
        assert getattr(drawn.certificate, name) == getattr(found.certificate, name)
    assert drawn.bound == 0


def test_it_says_that_it_was_made_by_hand_and_whether_the_tolerance_is_reached(counts):
    for tolerance, reached in ((0.05, False), (0.2, True)):
        plan = eq.scenario(counts, add={"sex=w, o=h": 10}, tolerance=tolerance)
        assert plan.reached is reached
        assert plan.exit_code == 1 - reached
        assert any("not optimised" in s for s in plan.explanation)
        assert any("NOT meet the request" in s for s in plan.explanation) is not reached
        assert (
            any(f"reaches the tolerance of {tolerance:g}" in s for s in plan.explanation) == reached
        )
    assert not eq.scenario(counts, add={"sex=w, o=h": 10}, tolerance=None).certificate.has_tolerance
    plan = eq.scenario(counts, add={"sex=w, o=h": 10})
    assert plan.exit_code == 0
    assert plan.certificate.sentences == ("No tolerance was requested; every limit holds.",)
    assert "no tolerance requested" in plan.text()
    assert not any("rounding" in s or "Zero bias" in s for s in plan.explanation)
    assert "made by hand" in repr(plan)
    assert plan.certificate.to_arrow().to_pylist()[3]["holds"] is None


@pytest.mark.slow
def test_zero_tolerance_is_judged_up_to_rounding(counts):
    best = eq.plan(counts)
    moves = {f"{c.group}, o={c.label}": c.add for c in best.moves}
    assert eq.scenario(counts, add=moves, tolerance=0).reached
    fewer = dict(list(moves.items())[:1])
    assert not eq.scenario(counts, add=fewer, tolerance=0).reached


def test_every_changed_group_has_its_sentence(counts):
    plan = eq.scenario(counts, add={"sex=w, o=h": 10}, delete={"sex=m, o=n": 5})
    assert plan.reasons == (
        "sex=w: add 10 h; its UB for h goes from +0.200 to +0.100.",
        "sex=m: delete 5 n; its UB for n goes from +0.033 to +0.019.",
    )
    assert set(plan.reasons) <= set(plan.explanation)


# --- limits and costs ------------------------------------------------------------------------------

LIMITS = [
    ({"at_least": {"sex=w": 161}}, "at least 161 rows of sex=w"),
    ({"available": {"sex=w, o=h": 9}}, "at most 9 rows of sex=w, o=h can be added"),
    ({"max_rows": 604}, "at most 604 rows in all"),
    ({"min_rows": 606}, "at least 606 rows in all"),
    ({"allow": "add"}, "nothing is deleted"),
    ({"allow": "delete"}, "nothing is added"),
    ({"deletable": ["sex=w"]}, "only deletable rows are deleted"),
    ({"label_drift": 0.01}, "no label frequency moves by more than 0.01 of itself"),
]


@pytest.mark.parametrize(("limit", "words"), LIMITS)
def test_limits_that_are_given_are_measured(counts, limit, words):
    plan = eq.scenario(counts, add={"sex=w, o=h": 10}, delete={"sex=m, o=n": 5}, **limit)
    (held,) = (h for h in plan.certificate.constraints if h.constraint == words)
    assert not held.holds
    assert not plan.reached
    assert plan.exit_code == 1
    assert any(words in s for s in plan.explanation)
    assert eq.Plan.from_json(plan.to_json()).certificate == plan.certificate


@pytest.mark.parametrize(
    "options",
    [
        {"target": "keep rates of: sex"},
        {"target": {"sex=w": {"h": 0.9}}, "tolerance": 0.3},
        {"labels": {"h": 0.3, "n": 0.7}, "tolerance": 0.1},
        {"labels": "keep", "tolerance": 0.1},
        {"tolerance": 0.1, "tolerance_on": "rate", "reference": "original"},
        {"tolerance": 0.1, "constrain": ["sex=w"], "min_group": 100},
        {"tolerance": 0, "labels": "keep"},
        {"tolerance": 0, "reference": "original", "label_drift": 0.1},
    ],
)
def test_every_way_to_measure_is_read_back(counts, options):
    plan = eq.scenario(counts, add={"sex=w, o=h": 10}, **options)
    again = eq.Plan.from_json(plan.to_json())
    assert again.to_json() == plan.to_json()
    assert again.certificate == plan.certificate
    assert plan.certificate.has_tolerance == ("tolerance" in options)


def test_labels_that_are_to_be_kept_are_a_limit(counts):
    for tolerance, holds in ((0.02, False), (0.1, True)):
        plan = eq.scenario(counts, add={"sex=w, o=h": 10}, labels="keep", tolerance=tolerance)
        (held,) = (h for h in plan.certificate.constraints if "label frequency" in h.constraint)
        assert held.holds is holds


def test_a_pool_is_a_limit_that_is_measured(counts):
    pool = counted({("w", "h"): 9, ("m", "n"): 1}, ["sex"])
    for rows, holds in ((9, True), (10, False)):
        plan = eq.scenario(counts, add={"sex=w, o=h": rows}, available_from=pool)
        assert plan.reached is holds


def test_nothing_is_limited_unless_it_is_asked_for(counts):
    plan = eq.scenario(counts, add={"sex=w, o=h": 500}, tolerance=10)
    assert plan.reached
    assert [h.constraint for h in plan.certificate.constraints] == ["no group loses all its rows"]


def test_costs_are_those_of_the_request(counts):
    moves = {"add": {"sex=w, o=h": 10}, "delete": {"sex=m, o=n": 5}}
    assert eq.scenario(counts, **moves, costs={"sex=w": 2, "delete *": 0.5}).cost == 22.5
    assert eq.scenario(counts, **moves, cost_add={"o=h": 3}).cost == 35


def test_a_group_must_not_vanish_unless_it_may(counts):
    gone = {"sex=w": 150}
    plan = eq.scenario(counts, delete=gone)
    assert not plan.reached
    assert "no group loses all its rows" in plan.explain()
    assert eq.scenario(counts, delete=gone, may_vanish=True).reached


# --- cells without rows ----------------------------------------------------------------------------


def test_rows_are_added_to_empty_cells_and_to_groups_without_rows():
    cells = {("m", "a", "h"): 5, ("m", "b", "n"): 7, ("w", "a", "n"): 4, ("w", "a", "h"): 0}
    counts = counted(cells)
    plan = eq.scenario(counts, add={"sex=w, race=a, o=h": 3, "sex=w, race=b": 5})
    after = plan.after().cells()
    assert after["w", "a", "h"] == 3
    assert sorted((after["w", "b", "h"], after["w", "b", "n"])) == [2, 3]
    assert plan.certificate.max_abs_ub_after == pytest.approx(float(largest_ub(after)))
    again = eq.Plan.from_json(plan.to_json())
    assert again.certificate == plan.certificate
    assert again.after() == plan.after()
    said = " ".join(plan.explanation)
    assert "split over 2 cells, equally, as none has rows" in said
    assert "sex=w, race=b: add" in said


def test_rows_with_missing_values_stay_unless_they_are_planned():
    cells = {
        ("m", "h"): 5,
        ("m", "n"): 7,
        ("w", "n"): 4,
        (eq.MISSING, "h"): 6,
        (eq.MISSING, "n"): 6,
    }
    counts = counted(cells, ["sex"])
    plan = eq.scenario(counts, delete={"o=h": 3}, add={"o=n": 4})
    assert {c.group["sex"] for c in plan.moves} == {"m", "w"}
    assert plan.certificate.n_after == counts.n + 1
    with pytest.raises(InputError, match=r"only 5 of them, without 6 with a missing value"):
        eq.scenario(counts, delete={"o=h": 6})
    with pytest.raises(InputError, match="`plan_missing=True`"):
        eq.scenario(counts, add={"sex=<missing>": 6})
    plan = eq.scenario(
        counts, delete={"o=h": 11}, plan_missing=True, may_vanish=True, add={"o=n": 1}
    )
    assert plan.deletions == 11
    assert eq.Plan.from_json(plan.to_json()).after() == plan.after()


# --- refused ---------------------------------------------------------------------------------------

REFUSED = [
    ({}, "needs at least one move"),
    ({"delete": {"sex=w": 151}}, r"“delete sex=w” deletes 151 rows, but .* only 150 of them"),
    (
        {"add": {"sex=w": 5}, "delete": {"o=h": 9}},
        r"contradict .* sex=w, o=h would be added and 2 ",
    ),
    (
        {"delete": {"sex=w, o=h": 30, "sex=w": 60}},
        r"together, the moves delete 46 rows of sex=w, o=h",
    ),
    ({"delete": {"sex=w": 150, "sex=m": 450}}, "deletes every row"),
    ({"add": {"sex=w": 0}}, r"“add sex=w” must be a whole number of at least 1"),
    ({"add": {"sex=w": 2.5}}, "must be a whole number"),
    ({"add": {"sex=w": "5"}}, "must be a whole number"),
    ({"add": {"sex=w": -5}}, "at least 1"),
    ({"add": {"sex=v": 5}}, "'sex' has no value v"),
    ({"add": {"sx=w": 5}}, "Did you mean 'sex'"),
    ({"add": {"sex=w": 5}, "tolerance": -1}, "`tolerance`"),
]


@pytest.mark.parametrize(("asked", "words"), REFUSED)
def test_what_cannot_be_done_is_refused_with_the_reason(counts, asked, words):
    with pytest.raises(InputError, match=words):
        eq.scenario(counts, **asked)


def test_a_pattern_of_everything_is_refused(counts):
    with pytest.raises(PatternError, match="names no attribute"):
        eq.scenario(counts, add={"*": 5})


def test_deleting_from_a_group_without_rows_is_refused():
    counts = counted({("m", "h"): 5, ("m", "n"): 7, ("w", "n"): 4}, ["sex"])
    with pytest.raises(InputError, match="deletes nothing: no row of the table is sex=w, o=h"):
        eq.scenario(counts, delete={"sex=w, o=h": 1})


@pytest.mark.parametrize("name", ["budget", "gap", "rounding", "time_limit", "extra", "priority"])
def test_options_of_the_search_are_no_options_of_a_scenario(counts, name):
    with pytest.raises(TypeError, match=f"scenario\\(\\) has no keyword '{name}'"):
        eq.scenario(counts, add={"sex=w": 5}, **{name: 1})


def test_an_edited_scenario_is_refused(counts):
    plan = eq.scenario(counts, add={"sex=w, o=h": 10}, tolerance=0.05)
    for change in (
        {"certificate": {**plan.certificate.to_dict(), "has_tolerance": False, "reached": True}},
        {"certificate": {**plan.certificate.to_dict(), "reached": True}},
        {"cost": 9.0},
    ):
        with pytest.raises(InputError, match="edited after it was"):
            eq.Plan.from_dict({**plan.to_dict(), **change})
    searched = eq.plan(counts, tolerance=0.05, reference="original").to_dict()
    held = {**searched["certificate"], "has_tolerance": False}
    with pytest.raises(InputError, match="certificate"):
        eq.Plan.from_dict({**searched, "certificate": held})


def test_a_plan_written_before_there_were_scenarios_is_read(counts):
    data = json.loads(eq.plan(counts, tolerance=0.05, reference="original").to_json())
    del data["reasons"], data["certificate"]["has_tolerance"]
    plan = eq.Plan.from_dict(data)
    assert plan.reasons == ()
    assert plan.certificate.has_tolerance


# --- the reasons of searched plans -----------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"tolerance": 0.05, "reference": "original"}])
def test_each_group_that_a_searched_plan_changes_has_its_sentence(options):
    rng = np.random.default_rng(3)
    cells = {c: int(rng.integers(20, 200)) for c in itertools.product("abcdef", "xy", "hn")}
    plan = eq.plan(counted(cells), **options)
    groups = [str(c.group) for c in plan.moves]
    assert len(plan.reasons) == len(set(groups)) > 4
    assert {r.partition(":")[0] for r in plan.reasons} == set(groups)
    sizes = [
        sum(c.add + c.delete for c in plan.moves if str(c.group) == r.partition(":")[0])
        for r in plan.reasons
    ]
    assert sizes == sorted(sizes, reverse=True)
    text = plan.text()
    assert sum(reason in text for reason in plan.reasons) == 3
    assert f"… and {len(plan.reasons) - 3} more groups change." in text
    assert plan.to_dict()["reasons"] == list(plan.reasons)
    assert eq.Plan.from_json(plan.to_json()).reasons == plan.reasons
