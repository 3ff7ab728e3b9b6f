"""``equipoise plan --move`` and ``equipoise compare``: plans by hand, and plans side by side."""

from __future__ import annotations

import csv
import io
import json

import pytest

import equipoise as eq
from equipoise.cli.app import run

HOW = ["-s", "sex", "-l", "hired", "-q"]
MOVES = ["--move", "sex=w, hired=y", "+30", "--move", "sex=m, hired=n", "-5"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ["w,y"] * 40 + ["w,n"] * 110 + ["m,y"] * 160 + ["m,n"] * 290
    (tmp_path / "people.csv").write_text("\n".join(["sex,hired", *rows]), encoding="utf-8")


def output(arguments, capsys, code=0):
    assert run(arguments) == code, capsys.readouterr().err
    return capsys.readouterr().out


def refused(arguments, capsys):
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


def test_moves_are_a_plan_like_that_of_the_library(capsys):
    printed = json.loads(output(["plan", "people.csv", *HOW, *MOVES, "--json"], capsys))
    made = eq.scenario(
        "people.csv",
        sensitive_features=["sex"],
        label="hired",
        add={"sex=w, hired=y": 30},
        delete={"sex=m, hired=n": 5},
    )
    wanted = json.loads(made.to_json())
    assert {**printed, "created": 0} == {**wanted, "created": 0}
    assert (printed["method"], printed["additions"], printed["deletions"]) == ("scenario", 30, 5)


@pytest.mark.parametrize(("tolerance", "code"), [("0.1", 0), ("0.01", 1)])
def test_the_exit_code_says_whether_the_tolerance_is_reached(tolerance, code, capsys):
    said = output(["plan", "people.csv", *HOW, *MOVES, "--tolerance", tolerance], capsys, code)
    assert "not optimised" in said
    assert ("NOT reached" in said) == bool(code)


def test_without_a_tolerance_it_is_only_measured(capsys):
    assert "no tolerance requested" in output(["plan", "people.csv", *HOW, *MOVES], capsys)


def test_limits_and_costs_are_measured(capsys):
    limits = ["--max-rows", "500", "--cost-add", "sex=w", "2", "--allow", "add"]
    said = output(["plan", "people.csv", *HOW, *MOVES, *limits], capsys, code=1)
    assert "at a cost of 65" in said
    assert "at most 500 rows in all" in said
    assert "nothing is deleted" in said


def test_moves_may_stand_in_a_configuration_file(tmp_path, capsys):
    lines = ["[plan]", "tolerance = 0.1", "budget = 3", "[plan.move]", "'sex=w, hired=y' = 30"]
    (tmp_path / "equipoise.toml").write_text("\n".join(lines), encoding="utf-8")
    said = output(["plan", "people.csv", *HOW], capsys)
    assert "Add 30 rows" in said
    assert "≤ 0.1" in said


BAD = {
    "budget": (["--budget", "5"], "--budget steers the search for the cheapest plan"),
    "gap": (["--gap", "0.1"], "--gap steers the search"),
    "rounding": (["--rounding", "floor"], "--rounding steers the search"),
    "time": (["--time-limit", "5"], "--time-limit steers the search"),
    "extra": (["--extra", "sex=w", "5"], "--extra steers the search"),
    "priority": (["--priority", "sex=w"], "--priority steers the search"),
    "lake": (["--lake", "."], "equipoise find shows which of them the lake has"),
    "no number": (["--move", "sex=w", "many"], "as in 'sex=Female' +3000"),
    "no rows": (["--move", "sex=w", "+0"], "as in 'sex=Female' +3000"),
    "half a row": (["--move", "sex=w", "2.5"], "as in 'sex=Female' +3000"),
    "too many": (["--move", "sex=m", "-451"], "the table has only 450 of them"),
    "contradiction": (["--move", "sex=w, hired=y", "-3"], "contradict each other"),
    "no value": (["--move", "sex=v", "+3"], "'sex' has no value v"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_go_with_moves_is_refused_with_the_reason(name, capsys):
    options, words = BAD[name]
    assert words in refused(["plan", "people.csv", *HOW, *MOVES, *options], capsys)


@pytest.mark.parametrize("rows", ["+1,500", "1_500", "1500"])
def test_rows_may_be_grouped_and_a_sign_left_out(rows, capsys):
    said = output(["plan", "people.csv", *HOW, "--move", "sex=w", rows], capsys)
    assert "Add 1,500 rows" in said


# --- side by side ----------------------------------------------------------------------------------


@pytest.fixture
def plans(capsys):
    output(["plan", "people.csv", *HOW, *MOVES, "-o", "drawn.json"], capsys)
    output(["plan", "people.csv", *HOW, "--reference", "original", "--tolerance", "0.05",
            "-o", "found.json"], capsys)  # fmt: skip
    return ["found.json", "drawn.json"]


def test_plans_are_compared_as_the_library_does(plans, capsys):
    printed = json.loads(output(["compare", *plans, "--json"], capsys))
    wanted = json.loads(eq.compare(plans).to_json())
    assert {**printed, "time": 0} == {**wanted, "time": 0}
    assert printed["names"] == ["found", "drawn"]
    assert output(["compare", *plans], capsys) == eq.compare(plans).text() + "\n"
    assert output(["compare", *plans, "--top", "1"], capsys) == eq.compare(plans).text(1) + "\n"


@pytest.mark.slow
def test_other_formats_hold_the_same(plans, capsys, tmp_path):
    lines = list(csv.DictReader(io.StringIO(output(["compare", *plans, "--csv"], capsys))))
    assert [line["drawn"] for line in lines] == [
        str(r.after[1]) for r in eq.compare(plans).biases.rows
    ]
    assert "| found |" in output(["compare", *plans, "--markdown"], capsys)
    output(["compare", *plans, "--name", "one", "--name", "two", "-o", "both.html", "-q"], capsys)
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert "“one”" in page


def test_bad_plans_are_refused(plans, capsys):
    assert "there is no plan none.json" in refused(["compare", *plans, "none.json"], capsys)
    assert "is given twice" in refused(["compare", "found.json", "found.json"], capsys)
    assert "1 names for 2 plans" in refused(["compare", *plans, "--name", "x"], capsys)
    assert "would be replaced" in refused(["compare", *plans, "-o", "found.json"], capsys)
    run(["plan", "people.csv", *HOW, "--where", "sex = 'w' or hired = 'y'", *MOVES[:3],
         "-o", "other.json"])  # fmt: skip
    capsys.readouterr()
    assert "plans for different counts" in refused(["compare", *plans, "other.json"], capsys)


# --- a point of a map ------------------------------------------------------------------------------

MAP = ["map", "people.csv", *HOW, "--x", "delete sex=m, hired=y", "--y", "add sex=w, hired=y"]


def test_a_point_of_a_map_becomes_a_plan(capsys):
    output([*MAP, "--at", "5", "10", "--cost-y", "2", "-o", "point.json"], capsys)
    plan = eq.Plan.read("point.json")
    assert (plan.method, plan.additions, plan.deletions, plan.cost) == ("scenario", 10, 5, 25)
    assert plan.source == "people.csv"
    drawn = eq.scenario(
        plan.counts, add={"sex=w, hired=y": 10}, delete={"sex=m, hired=y": 5}, cost_add={"sex=w": 2}
    )
    assert drawn.certificate == plan.certificate
    assert drawn.cells == plan.cells


@pytest.mark.slow
def test_printed_and_on_a_page_the_point_is_part_of_the_map(capsys, tmp_path):
    said = output([*MAP, "--at", "5", "10"], capsys)
    assert "All groups at x = 5 and y = 10" in said
    printed = json.loads(output([*MAP, "--at", "5", "10", "--json"], capsys))
    assert printed["schema"] == "equipoise.map/1"
    assert (printed["effect"]["x"], printed["effect"]["y"]) == (5, 10)
    output([*MAP, "--at", "5", "10", "-o", "map.html"], capsys)
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert "What the moves do to all groups" in page
    assert "The diamond is the chosen point." in page


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (("0", "0"), "no row is moved; choose another point with --at"),
        (("161", "0"), "deletes more rows than there are"),
        (("-1", "5"), "at least 0"),
        (("1.5", "5"), "not a valid integer"),
    ],
)
def test_bad_points_are_refused(at, words, capsys):
    assert words in refused([*MAP, "--at", *at], capsys)


# --- carried out -----------------------------------------------------------------------------------


def table(path, first, **rows):
    """A table of people with a number of each sex and label."""
    listed = [cell.split("_") for cell, n in rows.items() for _ in range(n)]
    lines = [f"{i},{sex},{hired}" for i, (sex, hired) in enumerate(listed, first)]
    path.write_text("\n".join(["id,sex,hired", *lines]), encoding="utf-8")


@pytest.mark.slow
def test_a_scenario_is_carried_out_by_repair(tmp_path, capsys):
    (tmp_path / "lake").mkdir()
    table(tmp_path / "staff.csv", 0, Female_yes=4, Female_no=11, Male_yes=16, Male_no=29)
    table(tmp_path / "lake" / "more.csv", 1000, Female_yes=20, Male_no=20)
    (tmp_path / "equipoise.toml").write_text("[repair]\ntolerance = 0.3\n", encoding="utf-8")
    moves = ["--move", "sex=Female, hired=yes", "+3", "--move", "sex=Male, hired=no", "-5"]
    output(["plan", "staff.csv", *HOW, *moves, "-o", "drawn.json"], capsys)
    given = ["repair", "staff.csv", "lake", "--plan", "drawn.json", "-q"]
    assert "--tolerance is settled by the plan" in refused(
        [*given, "--tolerance", "0.1", "-o", "out.csv"], capsys
    )
    assert "--sensitive is settled by the plan" in refused([*given, *HOW, "-o", "out.csv"], capsys)
    over = ["-o", "out.csv", "--plan-file", "drawn.json"]
    assert "is the plan, and would be replaced" in refused([*given, *over], capsys)
    assert "extension that cannot be written" in refused([*given, "-o", "drawn.json"], capsys)
    said = json.loads(output([*given, "-o", "out.csv", "--json"], capsys))
    assert said["is_given"]
    assert (said["acquired"]["added"], said["acquired"]["removed"]) == (3, 5)
    assert len((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()) == 1 + 60 + 3 - 5
