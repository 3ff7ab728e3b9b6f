"""A condition, an encoding and a delimiter are carried from the first command to the last."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import equipoise as eq
from equipoise.cli.app import run
from equipoise.errors import InputError
from lakes import read, write

HEADER = ("id", "sex", "hired", "age", "dept", "since")
COLUMNS = ["-s", "sex", "-l", "hired"]
WHERE = "age > 30 AND dept <> 'Café'"
SAID = "Only rows where age > 30 AND dept <> 'Café'"


def people(n, seed, start=0, rate=(0.3, 0.6)):
    draw = random.Random(seed)
    rows = []
    for i in range(start, start + n):
        sex = draw.choice(["Female", "Male"])
        hired = "yes" if draw.random() < rate[sex == "Male"] else "no"
        age = draw.choice([9, 25, 31, 44, 100])
        dept = draw.choice(["Café", "Ops", "Sales"])
        rows.append((i, sex, hired, age, dept, f"20{draw.randint(10, 25)}-01-02"))
    return rows


def is_meant(row):
    """What the condition says, of a row as CSV has it."""
    return int(row["age"]) > 30 and row["dept"] != "Café"


@pytest.fixture(autouse=True)
def _tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("people.csv", HEADER, people(200, 1), encoding="latin-1", delimiter=";")
    write("lake/a.csv", HEADER, people(300, 2, 1000, (0.5, 0.5)))
    write("lake/b.csv", HEADER, people(300, 3, 2000, (0.5, 0.5)), encoding="cp1252", delimiter="|")


def done(*arguments, code=0):
    assert run([*map(str, arguments), "--quiet"]) == code


def printed(capsys, *arguments, code=0):
    capsys.readouterr()
    done(*arguments, code=code)
    return capsys.readouterr().out


def refused(capsys, *arguments):
    """Nothing is written, and one sentence is said."""
    before = {p for p in Path().rglob("*") if ".equipoise" not in p.name}
    capsys.readouterr()
    done(*arguments, code=2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert {p for p in Path().rglob("*") if ".equipoise" not in p.name} == before
    return err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "reading"),
    [
        ({"encoding": "utf-16", "delimiter": ";"}, ["--encoding", "utf-16", "--delimiter", ";"]),
        ({}, ["--where", WHERE]),
        ({"encoding": "latin-1", "delimiter": "^"}, None),
    ],
    ids=["both", "where", "all"],
)
def test_the_whole_loop_reads_the_base_as_it_was_counted(base, reading, capsys):
    write("people.csv", HEADER, people(200, 1), **base)
    if reading is None:
        reading = ["--encoding", "latin-1", "--delimiter", "^", "--where", WHERE]
    n = json.loads(printed(capsys, "measure", "people.csv", *COLUMNS, *reading, "--json"))["n"]
    own = [dict(zip(HEADER, map(str, row), strict=True)) for row in people(200, 1)]
    kept = [row for row in own if "--where" not in reading or is_meant(row)]
    assert n == len(kept)
    done("plan", "people.csv", *COLUMNS, *reading, "--allow", "both", "-o", "plan.json")
    offered = json.loads(printed(capsys, "find", "plan.json", "lake", "--json"))
    assert offered["compared_with_base"]
    done("lake", "mapping", "plan.json", "lake", "-o", "mapping.toml")
    done("acquire", "plan.json", "lake", "--mapping", "mapping.toml", "-o", "out.csv")
    verify = ["--base", "people.csv", "--plan"]
    done("verify", "out.csv", *verify, "plan.json", "--ledger", "out.csv.ledger.parquet")
    done("lake", "replay", "out.csv.ledger.parquet", "lake", "--repaired", "out.csv")
    done("apply", "plan.json", "--to", "people.csv", "--pool", "lake/a.csv", "-o", "applied.csv")
    done("repair", "people.csv", "lake", *COLUMNS, *reading, "-o", "again.parquet")
    ledger = "again.parquet.ledger.parquet"
    done("verify", "again.parquet", *verify, "again.parquet.plan.json", "--ledger", ledger)
    done("lake", "replay", ledger, "lake", "--repaired", "again.parquet")
    tables = (read("out.csv"), read("applied.csv"), pq.read_table("again.parquet").to_pylist())
    for rows in tables:
        stays = [row for row in rows if int(row["id"]) < 1000]
        assert [{k: str(v) for k, v in row.items()} for row in stays] == [
            row for row in kept if row["id"] in {str(r["id"]) for r in stays}
        ]
        assert len(rows) > len(stays)
        if "--where" in reading:
            assert all(map(is_meant, rows))


@pytest.mark.slow
def test_an_explicit_encoding_overrides_the_recorded_one(capsys):
    done("plan", "people.csv", *COLUMNS, "--encoding", "latin-1", "-o", "plan.json")
    write("people.csv", HEADER, people(200, 1))
    mojibake = [*("acquire", "plan.json", "lake"), "--dry-run", "--json"]
    told = json.loads(printed(capsys, *mojibake, "--encoding", "utf-8", "--delimiter", ","))
    assert told["as_planned"]
    assert told["reading"]["encoding"] is None
    done("acquire", "plan.json", "lake", "--encoding", "utf-8", "-o", "out.csv")
    ledger = ["--plan", "plan.json", "--ledger", "out.csv.ledger.parquet", "--base", "people.csv"]
    done("verify", "out.csv", *ledger, "--encoding", "utf-8")
    done("verify", "out.csv", *ledger, code=1)  # Café is another text in latin-1
    assert "is not UTF-16" in refused(capsys, "find", "plan.json", "lake", "--encoding", "utf-16")


READ = [*COLUMNS, "--encoding", "latin-1", "--where", WHERE]
MOVES = ["--x", "add sex=Female, hired=yes", "--y", "delete sex=Male, hired=yes"]
SMALL = ["--models", "logistic", "--repeats", "2", "--versions", "p", "--jobs", "1"]
FEW = ["--methods", "group,drop", "--min-count", "2"]
COMMANDS = {
    "measure": ["measure", "people.csv", *READ],
    "check": ["check", "people.csv", *READ, "--max-abs-ub", "9"],
    "diff": ["diff", "people.csv", "people.csv", *READ],
    "plan": ["plan", "people.csv", *READ],
    "frontier": ["frontier", "people.csv", *READ, "--points", "2"],
    "map": ["map", "people.csv", *READ, *MOVES],
    "missing": ["missing", "people.csv", *READ, *FEW, "-s", "since", "--na", "2015-01-02"],
    "taken away": ["missing", "people.csv", *READ, *FEW, "--take-away", "0.2", "--repeats", "1"],
    "evaluate": ["evaluate", "people.csv", *READ, *SMALL],
    "repair": ["repair", "people.csv", "lake", *READ, "--dry-run"],
}


def recorded(value):
    """Find the record of how a table was read, wherever it stands in plain data."""
    if isinstance(value, dict):
        if "where_types" in value:
            yield value
        value = list(value.values())
    for child in value if isinstance(value, list) else ():
        yield from recorded(child)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_and_records_the_condition(name, capsys):
    text = " ".join(printed(capsys, *COMMANDS[name]).split())
    assert SAID in text
    found = list(recorded(json.loads(printed(capsys, *COMMANDS[name], "--json"))))
    assert found
    for record in found:
        assert record["where"] == WHERE
        assert record["where_types"] == {"age": "BIGINT", "dept": "VARCHAR"}
        assert record["encoding"] == "iso8859-1"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["measure", "plan", "frontier", "map", "missing", "evaluate", "taken away"]
)
def test_every_page_says_the_condition(name):
    done(*COMMANDS[name], "-o", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert "Only rows where age &gt; 30 AND dept &lt;&gt; &#x27;Café&#x27;" in page
    assert "<dt>only rows where</dt>" in page


@pytest.mark.slow
def test_a_repair_and_what_follows_say_the_condition(capsys):
    done("repair", "people.csv", "lake", *READ, "-o", "out.csv", "--report", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert page.count("Only rows where age &gt; 30 AND dept") >= 1
    assert "<dt>only rows where</dt>" in page
    plan = json.loads(Path("out.csv.plan.json").read_text("utf-8"))
    assert plan["counts"]["reading"]["where"] == WHERE
    note = json.loads(pq.read_schema("out.csv.ledger.parquet").metadata[b"equipoise"])
    assert note["reading"]["where"] == WHERE
    files = ["--plan", "out.csv.plan.json", "--ledger", "out.csv.ledger.parquet"]
    for command in (
        ["find", "out.csv.plan.json", "lake"],
        ["acquire", "out.csv.plan.json", "lake", "--dry-run"],
        ["verify", "out.csv", "--base", "people.csv", *files],
        [
            "apply",
            "out.csv.plan.json",
            *("--to", "people.csv", "--pool", "lake/a.csv", "-o", "x.csv"),
        ],
    ):
        assert SAID in printed(capsys, *command)
        told = json.loads(printed(capsys, *command, "--json"))
        assert told["reading"]["where"] == WHERE
    assert SAID in printed(capsys, "lake", "mapping", "out.csv.plan.json", "lake")


@pytest.mark.parametrize("part", [["--where", WHERE], ["--lenient"], ["--sql", "FROM input"]])
def test_what_a_plan_is_not_about_is_not_written_over(part, capsys):
    before = Path("people.csv").read_bytes()
    read = [*COLUMNS, "--encoding", "latin-1", *part]
    done("plan", "people.csv", *read, "-o", "plan.json")
    output = ["--to", "people.csv", "--pool", "lake/a.csv", "-o", "people.csv"]
    assert "would be lost; write to another file" in refused(capsys, "apply", "plan.json", *output)
    assert Path("people.csv").read_bytes() == before


@pytest.mark.slow
def test_verify_finds_rows_outside_the_condition():
    done("repair", "people.csv", "lake", *READ, "-o", "out.csv")
    rows = [list(row.values()) for row in read("out.csv")]
    rows[-1][3] = "25"
    write("out.csv", HEADER, rows)
    found = eq.verify(
        "out.csv",
        base="people.csv",
        plan="out.csv.plan.json",
        ledger="out.csv.ledger.parquet",
    )
    said = [example for finding in found.findings for example in finding.examples]
    assert "1 row of out.csv does not satisfy the condition of the plan" in said


@pytest.mark.slow
def test_a_query_is_recorded_and_refused_where_other_tables_are_looked_into(capsys):
    query = "SELECT *, 'x' AS y FROM input WHERE age <> '9'"
    sql = [*COLUMNS, "--encoding", "latin-1", "--sql", query]
    told = json.loads(printed(capsys, "measure", "people.csv", *sql, "--json"))
    assert told["reading"]["sql"] == query
    assert query in " ".join(printed(capsys, "measure", "people.csv", *sql).split())
    done("plan", "people.csv", *sql, "-o", "plan.json")
    assert json.loads(Path("plan.json").read_text())["counts"]["reading"]["sql"] == query
    for command in (
        ["repair", "people.csv", "lake", *sql, "-o", "out.csv"],
        ["plan", "people.csv", *sql, "--lake", "lake", "-o", "other.json"],
        ["find", "plan.json", "lake"],
        ["acquire", "plan.json", "lake", "-o", "out.csv"],
        ["lake", "mapping", "plan.json", "lake", "-o", "mapping.toml"],
    ):
        assert "--where" in refused(capsys, *command)
    # Where one other table has the same columns, the query runs over both.
    done("apply", "plan.json", "--to", "people.csv", "--pool", "lake/a.csv", "-o", "out.csv")
    assert {row["y"] for row in read("out.csv")} == {"x"}
    assert "9" not in {row["age"] for row in read("out.csv")}


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("age >", "is not a condition on rows"),
        ("ages > 3", "Did you mean 'age'?"),
        ("age > 3; SELECT 1", "without a semicolon"),
        ("SELECT 1", "is not a condition on rows"),
        ("age > 1000", "no row of people.csv satisfies the condition age > 1000"),
    ],
)
def test_bad_conditions_end_with_a_sentence_and_write_nothing(where, says, capsys):
    reading = [*COLUMNS, "--encoding", "latin-1", "--where", where]
    for output, *command in (
        ["out.json", "plan", "people.csv"],
        ["out.csv", "repair", "people.csv", "lake"],
    ):
        assert says in refused(capsys, *command, *reading, "-o", output)


@pytest.mark.slow
def test_plans_without_the_record_are_still_read():
    write("people.csv", HEADER, people(200, 1))
    done("plan", "people.csv", *COLUMNS, "-o", "plan.json")
    plan = json.loads(Path("plan.json").read_text("utf-8"))
    del plan["counts"]["reading"]
    Path("plan.json").write_text(json.dumps(plan), "utf-8")
    done("acquire", "plan.json", "lake", "-o", "out.csv")
    ledger = ["--plan", "plan.json", "--ledger", "out.csv.ledger.parquet"]
    done("verify", "out.csv", "--base", "people.csv", *ledger)


def test_a_lake_is_searched_for_a_table_in_another_encoding(capsys):
    found = printed(capsys, "lake", "search", "people.csv", "lake", "--encoding", "latin-1")
    assert "a.csv" in found
    assert "--encoding" in refused(capsys, "lake", "search", "people.csv", "lake")


def test_rows_that_can_be_added_are_those_of_the_condition():
    counts = eq.count(
        "people.csv", sensitive_features=["sex"], label="hired", where=WHERE, encoding="latin-1"
    )
    made = eq.plan(
        "people.csv",
        sensitive_features=["sex"],
        label="hired",
        where=WHERE,
        encoding="latin-1",
        available_from="lake/a.csv",
        allow="both",
    )
    rows = [row for row in read("lake/a.csv") if is_meant(row)]
    assert made.counts == counts
    assert made.request.pool.n == len(rows)
    applied = eq.apply(made, to="people.csv", pool="lake/a.csv", output="out.csv")
    assert applied.as_planned
    assert all(map(is_meant, read("out.csv")))


def test_two_tables_are_held_to_one_meaning_of_a_condition():
    write("later.csv", HEADER, [(*row[:3], "unknown", *row[4:]) for row in people(5, 4)])
    with Path("later.csv").open("a", encoding="utf-8") as file:
        file.writelines("{},{},{},{},{},{}\n".format(*row) for row in people(50, 5))
    asked = {"sensitive_features": ["sex"], "label": "hired", "where": "age > 30"}
    write("people.csv", HEADER, people(200, 1))
    change = eq.diff("people.csv", "later.csv", **asked)
    assert change.after.counts.n == sum(row[3] > 30 for row in people(50, 5))


def test_a_plan_for_other_rows_is_not_carried_out():
    from equipoise.engines.sources import locate
    from equipoise.lake.lake import Lake
    from equipoise.lake.repair.acquire import acquire

    write("people.csv", HEADER, people(200, 1))
    asked = {"sensitive_features": ["sex"], "label": "hired"}
    plan = eq.plan("people.csv", **asked, where="age > 0")
    with pytest.raises(InputError, match=r"made for the rows where age > 0, .* to all rows of"):
        acquire(plan, locate("people.csv"), Lake("lake"), None)


def test_a_repaired_table_is_compared_with_a_base_in_another_encoding(tmp_path, monkeypatch):
    """A repaired table is UTF-8 with commas, whatever its base is."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(1)
    rows = [
        (i, draw.choice(["féminin", "masculin"]), draw.choice(["oui", "non"]), draw.random())
        for i in range(200)
    ]
    write(
        "base.csv", ("nr", "sexe", "libéré", "âge"), rows[:150], delimiter=";", encoding="latin-1"
    )
    write("after.csv", ("nr", "sexe", "libéré", "âge"), rows)
    asked = {"sensitive_features": ["sexe"], "label": "libéré"}
    written = {"encoding": "latin-1", "delimiter": ";"}
    change = eq.diff("base.csv", "after.csv", **asked, **written)
    assert (change.before.counts.n, change.after.counts.n) == (150, 200)
    fitted = {"models": "logistic", "repeats": 2, "jobs": 1}
    (study,) = eq.evaluate("base.csv", "after.csv", **asked, **written, **fitted).studies
    assert (study["rows"], study["rows_after"]) == (150 + 200, 200)
