"""Corners where a planner easily says what is not so."""

from __future__ import annotations

import pytest

import equipoise as eq
from equipoise.errors import InputError

HIRED = {("m", "1"): 160, ("m", "0"): 290, ("w", "1"): 40, ("w", "0"): 110}


def counted(cells, sensitive=("s",)):
    return eq.Counts.from_mapping(cells, sensitive=list(sensitive), label="y")


@pytest.mark.slow
def test_what_no_budget_pays_for_is_not_rounding():
    """Groups of two rows are never far from whole numbers; still nothing was repaired."""
    plan = eq.plan(counted({("a", "0"): 2, ("b", "1"): 2}), budget=0)
    assert not plan.reached
    assert plan.explanation[0] == "Nothing is changed."


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits",
    [{"min_rows": 10_000_000}, {"at_least": {"y=1": 6_000_000}, "reference": "original"}],
)
def test_a_limit_may_be_far_off(limits):
    plan = eq.plan(counted(HIRED), tolerance=0.05, **limits)
    assert plan.reached
    assert all(h.holds for h in plan.certificate.constraints)


@pytest.mark.parametrize("limit", [{}, {"min_rows": 1}, {"available": {"y=M": 2}}])
def test_a_limit_that_excludes_nothing_changes_nothing(limit):
    cells = {("m", "L"): 1, ("m", "M"): 2, ("f", "L"): 5, ("f", "M"): 4}
    assert eq.plan(counted(cells), tolerance=0.1, allow="delete", **limit).cost == 1


def test_label_drift_is_kept_with_targets():
    plan = eq.plan(
        counted(HIRED),
        tolerance=0.05,
        target={"s=w": {"1": 0.8}},
        label_drift=0.001,
        allow="both",
    )
    assert plan.reached
    drift = next(h for h in plan.certificate.constraints if "moves" in h.constraint)
    assert drift.value <= 0.001


def test_a_rate_of_zero_can_be_kept():
    cells = {("m", "b", "1"): 16, ("m", "b", "0"): 29, ("w", "b", "0"): 11, ("m", "w", "1"): 3}
    plan = eq.plan(counted(cells, ("s", "r")), target="keep rates of: s")
    assert eq.Plan.from_json(plan.to_json()).cells == plan.cells


def test_a_target_outside_what_is_constrained_counts():
    cells = {(s, r, y): 20 for s in "mw" for r in "bc" for y in "01"}
    target = {"s=w, r=b": {"1": 0.5}}
    plan = eq.plan(counted(cells, ("s", "r")), constrain="s=m", target=target)
    after = plan.after()
    assert after.of("s=w, r=b, y=1") / after.of("s=w, r=b") == pytest.approx(0.25, abs=0.02)


def test_a_label_that_rows_lack_needs_no_share():
    cells = {**HIRED, ("w", None): 4}
    plan = eq.plan(counted(cells), labels={"1": 0.5, "0": 0.5})
    assert plan.certificate.labels_after[:2] == pytest.approx((0.5, 0.5), abs=0.01)


def test_small_groups_that_do_not_count_never_make_it_dearer():
    cells = {
        (s, r, y): 3 + 7 * (s == "m") + 5 * (y == "1") for s in "mw" for r in "bcd" for y in "01"
    }
    cells["m", "e", "1"] = 1
    counts = counted(cells, ("s", "r"))
    how = {"tolerance": 0.1, "allow": "both", "reference": "original"}
    assert eq.plan(counts, **how, min_group=5).cost <= eq.plan(counts, **how).cost


@pytest.mark.slow
def test_free_labels_are_not_dearer_than_kept_ones():
    counts = counted(HIRED)
    how = {"tolerance": 0.1, "allow": "both"}
    assert eq.plan(counts, **how, labels="free").cost <= eq.plan(counts, **how).cost


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"deletable": ["s=m"]}, "allow='both'"),
        ({"rounding": "floor", "tolerance": 0.1}, "tolerance=0"),
        ({"available": 100}, "patterns"),
    ],
)
def test_options_that_do_nothing_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        eq.plan(counted(HIRED), **options)


def test_a_misspelt_option_names_the_nearest():
    with pytest.raises(TypeError, match="tolerance"):
        eq.plan(counted(HIRED), tolerence=0.1)


def test_a_plan_is_written_and_read(tmp_path):
    plan = eq.plan(counted(HIRED))
    plan.write(tmp_path / "plan.json")
    assert eq.Plan.read(tmp_path / "plan.json").to_json() == plan.to_json()
    eq.report(plan, tmp_path / "plan.html")
    assert "Certificate" in (tmp_path / "plan.html").read_text("utf-8")
