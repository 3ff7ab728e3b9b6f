"""The whole loop: the cheapest plan, or the best with what the lake has; never a changed base."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import equipoise as eq
from equipoise.errors import InputError
from equipoise.lake.lake import Lake
from lakes import HEADER, OTHERS, mapping_file, more, read, share, write

PEOPLE = [
    *((i, "Female", "no", 30 + i) for i in range(8)),
    *((i, "Female", "yes", 30 + i) for i in range(8, 10)),
    *((i, "Male", "no", 30 + i) for i in range(10, 15)),
    *((i, "Male", "yes", 30 + i) for i in range(15, 20)),
]
SEX = {"sensitive_features": ["sex"], "label": "hired"}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("people.csv", HEADER, PEOPLE)
    Path("lake").mkdir()


def repaired(output="out.csv", data="people.csv", **options):
    before = Path(data).read_bytes()
    done = eq.repair(data, options.pop("lake", "lake"), output, **{**SEX, **options})
    assert Path(data).read_bytes() == before
    return done


def confirmed():
    """A mapping file that says that names and values mean the same."""
    values = {"sex": {v: v for v in ("Female", "Male")}, "hired": {v: v for v in ("yes", "no")}}
    said = {"name": "a.csv", "columns": {n: n for n in HEADER}, "values": values}
    return mapping_file("mapping.toml", [said])


@pytest.mark.slow
def test_a_repair_by_a_policy_passes_the_check_or_says_that_it_does_not():
    policy = {"rules": [{"group": "sex=Female", "label": "yes", "max": 0.2}]}
    share("lake/a.csv", more(100, 20))
    done = repaired(policy=policy)
    assert done.reached
    assert eq.check("out.csv", **SEX, policy=policy).status == "inside"
    share("lake/a.csv", more(100, 1))
    short = repaired("short.csv", policy=policy)
    assert not short.reached
    assert "the policy cannot be kept" in short.text()


@pytest.mark.slow
def test_the_cheapest_plan_is_carried_out_if_the_lake_has_its_rows():
    share("lake/a.csv", [*more(100, 20), *more(200, 20, sex="Male", hired="no")])
    done = repaired(tolerance=0.2)
    assert done.ideal is done.plan
    assert done.reached
    assert done.verification.ok
    assert done.exit_code == 0
    assert done.acquired.added == done.plan.additions > 0
    measured = eq.measure("out.csv", **SEX)
    assert abs(measured.measured.ub).max() <= 0.2
    plan = eq.Plan.read("out.csv.plan.json")
    assert plan.source == "people.csv"
    assert eq.verify(
        "out.csv", base="people.csv", plan="out.csv.plan.json", ledger="out.csv.ledger.parquet"
    ).ok
    assert done.sentences[0].startswith("The lake has all rows that the cheapest plan adds: ")


@pytest.mark.slow
def test_parquet_made_of_csv_has_types_and_still_says_what_it_said():
    header = (*HEADER, "since", "rate", "zip", "member", "mixed")
    odd = [("2024-02-29", "0.5", "02139", "true", "7"), ("", "12.25", "10115", "false", "n/a")]
    for name, rows in (("people.csv", PEOPLE), ("lake/a.csv", [*more(100, 20), *OTHERS])):
        write(name, header, [(*row, *odd[i % 2]) for i, row in enumerate(rows)])
    done = repaired(tolerance=0.2, output="out.parquet")
    assert done.verification.ok
    assert Lake("lake").replay("out.parquet.ledger.parquet", repaired="out.parquet").ok
    kinds = {field.name: str(field.type) for field in pq.read_schema("out.parquet")}
    assert kinds == {
        "id": "int64",
        "sex": "string",
        "hired": "string",
        "age": "int64",
        "since": "date32[day]",
        "rate": "double",
        "zip": "string",
        "member": "bool",
        "mixed": "string",
    }


@pytest.mark.slow
def test_it_plans_again_with_what_there_is():
    share("lake/a.csv", [*more(100, 1), *more(200, 20, sex="Male", hired="no")])
    done = repaired(tolerance=0.1, allow="both")
    assert done.ideal is not None
    assert done.lacks
    wanted = {(c.group["sex"], c.label): c.add for c in done.plan.cells}
    assert wanted.get(("Female", "yes"), 0) <= 1
    assert done.reached
    assert done.exit_code == 0
    assert done.verification.ok


@pytest.mark.slow
def test_what_cannot_be_reached_is_come_near_to_and_said():
    share("lake/a.csv", more(100, 1))
    done = repaired(tolerance=0.2)
    assert not done.reached
    assert done.exit_code == 1
    assert done.acquired.added == 1 + len(OTHERS)
    assert "a tolerance of 0.2 cannot be reached" in done.text()
    assert "ended by its own rules, not by time" in done.text()
    late = replace(done, plan=replace(done.plan, timed_out=True))
    assert "The time limit of 60 seconds ended that search" in late.text()
    assert done.acquired.max_abs_ub_after < done.acquired.max_abs_ub_before
    assert done.acquired.as_planned


@pytest.mark.slow
def test_why_the_lake_lacks_rows_is_said():
    """All it has are rows of the table, though nothing is added in the end."""
    share("lake/a.csv", [row for row in PEOPLE if row[1:3] == ("Female", "yes")])
    done = repaired(tolerance=0.1, mapping=confirmed())
    assert done.acquired.added < done.ideal.additions
    said = next(s for s in done.sentences if s.startswith("sex=Female, hired=yes: "))
    assert "2: duplicates" in said
    told = done.to_dict()["lacks"]
    assert told == json.loads(done.to_json())["lacks"]
    assert {lack["cell"]: sum(lack["reasons"].values()) for lack in told} == {
        name: lack.missing for name, lack in done.lacks
    }


def test_a_table_within_the_tolerance_needs_nothing():
    done = repaired(tolerance=0.9)
    assert (done.acquired.added, done.acquired.removed) == (0, 0)
    assert done.reached
    assert done.exit_code == 0
    assert Path("out.csv").read_bytes() == Path("people.csv").read_bytes()
    assert done.sentences[0] == "The cheapest plan needs no rows of the lake."


@pytest.mark.slow
def test_an_empty_lake_gives_nothing():
    done = repaired(tolerance=0.2)
    assert (done.acquired.added, done.exit_code, done.reached) == (0, 1, False)
    assert read("out.csv") == read("people.csv")


@pytest.mark.slow
def test_rows_may_be_deleted_without_any_lake():
    done = repaired(tolerance=0.2, allow="delete")
    assert done.reached
    assert done.acquired.removed > 0
    assert done.verification.ok


@pytest.mark.slow
def test_limits_that_stop_a_plan_are_not_called_reached():
    share("lake/a.csv", [*more(100, 20), *more(200, 20, sex="Male", hired="no")])
    done = repaired(tolerance=0.2, budget=0.0)
    assert done.acquired.added == 0
    assert not done.reached
    assert done.exit_code == 1
    assert done.to_dict()["reached"] is False


def test_a_table_of_counts_has_no_rows_to_add_to():
    with pytest.raises(InputError, match="a repair adds rows, but 'age' holds counts"):
        repaired(count="age")


@pytest.mark.slow
def test_a_dry_run_writes_nothing():
    share("lake/a.csv", [*more(100, 20), *more(200, 20, sex="Male", hired="no")])
    Lake("lake").refresh()
    before = {str(p) for p in Path().rglob("*")}
    done = repaired(None, tolerance=0.2)
    assert {str(p) for p in Path().rglob("*")} == before
    assert done.verification is None
    assert done.exit_code == 0
    assert done.reached


@pytest.mark.slow
def test_the_data_is_json():
    share("lake/a.csv", [*more(100, 20), *more(200, 20, sex="Male", hired="no")])
    done = repaired(tolerance=0.2)
    data = json.loads(done.to_json())
    assert data == json.loads(json.dumps(done.to_dict()))
    assert data["acquired"]["added"] == done.acquired.added
    assert data["verification"]["ok"] is True


@pytest.mark.parametrize(
    "places",
    [
        {"plan_file": "people.csv"},
        {"plan_file": "lake/a.csv"},
        {"plan_file": "out.csv"},
        {"plan_file": "l.csv", "ledger": "l.csv"},
        {"output": "people.csv"},
        {"ledger": "people.csv"},
    ],
)
def test_what_is_read_is_never_written_to(places):
    share("lake/a.csv", more(100, 20))
    before = {p: p.read_bytes() for p in (Path("people.csv"), Path("lake/a.csv"))}
    with pytest.raises(InputError):
        repaired(tolerance=0.2, **places)
    assert {p: p.read_bytes() for p in before} == before
    assert not Path("out.csv").exists()


@pytest.mark.slow
def test_binned_attributes_are_repaired():
    base = pa.table(
        {
            "age": pa.array([20, 21, 22, 23, 60, 61, 62, 63], pa.int32()),
            "hired": ["yes", "yes", "no", "no", "yes", "no", "no", "no"],
            "id": [f"p{i}" for i in range(8)],
        }
    )
    pq.write_table(base, "people.parquet")
    ages = ["64", "65.0", " 66 ", "6.7e1", "x", "68", *map(str, range(70, 90))]
    rows = [(a, "yes", f"q{i}") for i, a in enumerate(ages)]
    write("lake/a.csv", ("age", "hired", "id"), [*rows, ("25", "no", "r1"), ("26", "no", "r2")])
    done = repaired(
        "out.parquet",
        "people.parquet",
        sensitive_features=["age"],
        bins={"age": (40.0,)},
        tolerance=0.3,
    )
    assert done.reached
    assert done.verification.ok
    assert done.acquired.failed == 1
    assert pq.read_schema("out.parquet").field("age").type == pa.int32()


@pytest.mark.slow
def test_cells_that_lack_values_stay_aside():
    write("people.csv", HEADER, [*PEOPLE, (50, None, "yes", 1), (51, "Male", None, 1)])
    share(
        "lake/a.csv", [*more(100, 20), (300, None, "no", 3), *more(200, 9, sex="Male", hired="no")]
    )
    done = repaired(tolerance=0.2, mapping=confirmed())
    assert done.reached
    assert done.verification.ok
    lines = read("out.csv")
    assert [r["id"] for r in lines if not r["sex"] or not r["hired"]] == ["50", "51"]


@pytest.mark.slow
def test_texts_that_mean_missing_are_no_values():
    write("people.csv", HEADER, [*PEOPLE, (50, "?", "yes", 1)])
    share(
        "lake/a.csv", [*more(100, 20), (300, "?", "yes", 3), *more(200, 9, sex="Male", hired="no")]
    )
    done = repaired(tolerance=0.2, na=("?",), mapping=confirmed())
    assert done.reached
    assert [r["id"] for r in read("out.csv") if r["sex"] == "?"] == ["50"]


@pytest.mark.slow
def test_infinite_numbers_are_written_to_csv_as_numbers():
    columns = [pa.array(values) for values in zip(*PEOPLE, strict=True)]
    scores = pa.array([float(i) for i in range(len(PEOPLE))])
    pq.write_table(pa.table([*columns, scores], names=[*HEADER, "score"]), "people.parquet")
    found = [*more(100, 20), *more(200, 20, sex="Male", hired="no")]
    columns = [pa.array(values) for values in zip(*found, strict=True)]
    infinite = pa.array([float("-inf" if i % 2 else "inf") for i in range(40)])
    pq.write_table(pa.table([*columns, infinite], names=[*HEADER, "score"]), "lake/a.parquet")
    mapped = {"name": "a.parquet", "columns": {n: n for n in ("sex", "hired", "score")}}
    mapped["values"] = {
        "sex": {v: v for v in ("Female", "Male")},
        "hired": {v: v for v in ("yes", "no")},
    }
    done = repaired(data="people.parquet", mapping=mapping_file("mapping.toml", [mapped]))
    assert done.verification.ok, done.verification.text()
    assert {row["score"] for row in read("out.csv")[len(PEOPLE) :]} == {"inf", "-inf"}


@pytest.mark.slow
def test_values_full_of_delimiters_are_read_as_they_were_written():
    odd = [(f"{i};{i}|{i}", s, h, a) for i, s, h, a in PEOPLE]
    write("people.csv", HEADER, odd)
    rows = [(f"{i};{i}|{i}", s, h, a) for i, s, h, a in more(100, 20)]
    share("lake/a.csv", [*rows, *OTHERS])
    done = repaired(tolerance=0.2, allow="both")
    assert done.verification.ok


# --- a plan that was made by hand ------------------------------------------------------------------


def drawn(**moves):
    """A plan made by hand, written and read again."""
    eq.scenario("people.csv", **SEX, **moves).write("scenario.json")
    return eq.Plan.read("scenario.json")


@pytest.mark.slow
def test_a_scenario_is_found_applied_acquired_and_repaired_with():
    share("lake/a.csv", [*more(100, 20), *more(200, 20, sex="Male", hired="no")])
    plan = drawn(add={"sex=Female, hired=yes": 6}, delete={"sex=Female, hired=no": 2})
    lake = Lake("lake")
    found = lake.find("scenario.json")
    assert found.exit_code == 0
    taken = lake.acquire("scenario.json", output="acquired.csv")
    assert (taken.added, taken.removed, taken.as_planned) == (6, 2, True)
    applied = eq.apply("scenario.json", to="people.csv", pool="lake/a.csv", output="applied.csv")
    assert applied.as_planned
    done = eq.repair("people.csv", "lake", "out.csv", plan="scenario.json")
    assert done.is_given
    assert done.reached
    assert done.verification.ok
    assert done.plan.cells == plan.cells
    assert "The given plan adds 6 rows and deletes 2; all of these" in done.sentences[0]
    for file in ("acquired.csv", "applied.csv", "out.csv"):
        assert eq.count(file, **SEX).cells() == plan.after().cells()
    assert eq.Plan.read("out.csv.plan.json").cells == plan.cells
    eq.report(done, "out.html")
    assert "every limit of the plan holds" in Path("out.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_the_lake_does_not_have_of_a_given_plan_is_left_out_and_told():
    share("lake/a.csv", more(100, 4))
    drawn(add={"sex=Female, hired=yes": 6})
    done = eq.repair("people.csv", "lake", "out.csv", plan="scenario.json")
    assert done.acquired.added == 4
    assert done.exit_code == 1
    assert any("4 of 6 rows found" in s for s in done.sentences)


@pytest.mark.slow
def test_a_searched_plan_is_carried_out_as_it_is():
    share("lake/a.csv", [*more(100, 20), *more(200, 20, sex="Male", hired="no")])
    plan = eq.plan("people.csv", **SEX, tolerance=0.2, reference="original")
    done = eq.repair("people.csv", "lake", "out.csv", plan=plan)
    assert done.reached
    assert done.plan.cells == plan.cells
    assert "The tolerance of 0.2 is reached." in done.sentences


def test_a_given_plan_settles_what_is_repaired():
    plan = drawn(add={"sex=Female, hired=yes": 6})
    for options in (SEX, {"tolerance": 0.1}, {"missing": "drop"}, {"costs": {"*": 2}}):
        with pytest.raises(InputError, match="settled by the plan that is given"):
            eq.repair("people.csv", "lake", "out.csv", plan=plan, **options)
    with pytest.raises(InputError, match="is the plan, and would be replaced"):
        eq.repair("people.csv", "lake", "scenario.json", plan="scenario.json")
