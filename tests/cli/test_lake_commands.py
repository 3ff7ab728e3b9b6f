"""The commands around a lake: what they print, what they write, and how they end."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import equipoise as eq
from equipoise.cli.app import run
from equipoise.cli.commands.lake import command as lake_command
from lakes import HEADER, more, share, write

PEOPLE = [
    *((i, "Female", "no", 30 + i) for i in range(8)),
    *((i, "Female", "yes", 30 + i) for i in range(8, 10)),
    *((i, "Male", "no", 30 + i) for i in range(10, 15)),
    *((i, "Male", "yes", 30 + i) for i in range(15, 20)),
]
COLUMNS = ["-s", "sex", "-l", "hired"]
QUIET = ["--quiet"]


@pytest.fixture(autouse=True)
def _tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("people.csv", HEADER, PEOPLE)
    share("lake/a.csv", [*more(100, 20), *more(200, 20, sex="Male", hired="no")])


@functools.cache
def plan_text():
    return eq.plan("people.csv", sensitive_features=["sex"], label="hired", tolerance=0.2).to_json()


def plan():
    Path("plan.json").write_text(plan_text(), "utf-8")


def there():
    skipped = ".equipoise-index"
    return {
        str(p): p.read_bytes() for p in Path().rglob("*") if p.is_file() and skipped not in p.name
    }


def printed(arguments, capsys, code=0):
    """Run a command that prints its result to stdout, and nothing else to stderr."""
    capsys.readouterr()
    assert run([*arguments, *QUIET]) == code
    out, err = capsys.readouterr()
    assert err == ""
    assert "Traceback" not in out
    return out


def refused(arguments, capsys, code=2):
    """Nothing is printed or written but one sentence; give that."""
    before = there()
    capsys.readouterr()
    assert run([*arguments, *QUIET]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert there() == before
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def test_every_command_shows_examples(capsys):
    for name in ("find", "acquire", "repair", "verify"):
        assert run([name, "--help"]) == 0
        assert "Examples:" in capsys.readouterr().out
    for name in lake_command.commands:
        shown = CliRunner().invoke(lake_command, [name, "--help"])
        assert "Examples:" in shown.output, name


@pytest.mark.slow
def test_from_a_plan_to_a_table_that_is_verified(capsys):
    plan()
    base = Path("people.csv").read_bytes()
    assert printed(["lake", "index", "lake"], capsys).startswith("1 table with 42 rows in ")
    assert "a.csv" in printed(["lake", "search", "people.csv", "lake"], capsys)
    out = printed(["find", "plan.json", "lake"], capsys)
    assert "Together they have all needed rows." in out
    mapping = printed(["lake", "mapping", "plan.json", "lake"], capsys)
    Path("mapping.toml").write_text(mapping, "utf-8")
    assert 'name = "a.csv"' in mapping
    acquire = ["acquire", "plan.json", "lake", "--mapping", "mapping.toml"]
    before = there()
    assert printed([*acquire, "--dry-run"], capsys).startswith("Would write: people.csv with ")
    assert there() == before
    out = printed([*acquire, "-o", "out.parquet", "--ledger", "l.csv"], capsys)
    assert out.startswith("Wrote out.parquet: people.csv with ")
    out = printed(["lake", "replay", "l.csv", "lake", "--repaired", "out.parquet"], capsys)
    assert out.endswith("match the ledger.\n")
    check = ["verify", "out.parquet", "--base", "people.csv", "--plan", "plan.json"]
    assert printed([*check, "--ledger", "l.csv"], capsys).startswith("All 8 checks hold.")
    assert Path("people.csv").read_bytes() == base


@pytest.mark.slow
def test_the_same_as_data(capsys):
    plan()
    for command in (
        ["lake", "index", "lake"],
        ["lake", "search", "people.csv", "lake"],
        ["find", "plan.json", "lake"],
        ["acquire", "plan.json", "lake", "-o", "out.csv"],
        ["lake", "replay", "out.csv.ledger.parquet", "lake"],
        [
            *("verify", "out.csv", "--base", "people.csv", "--plan", "plan.json"),
            *("--ledger", "out.csv.ledger.parquet"),
        ],
    ):
        data = json.loads(printed([*command, "--json"], capsys))
        assert data["schema"].startswith("equipoise.")


@pytest.mark.slow
def test_a_repair_in_one_go(capsys):
    repair = ["repair", "people.csv", "lake", *COLUMNS, "--tolerance", "0.2"]
    out = printed([*repair, "-o", "out.csv"], capsys)
    assert "All 8 checks hold." in out
    data = json.loads(printed([*repair, "-o", "again.csv", "--json"], capsys))
    api = eq.repair(
        "people.csv", "lake", "again.csv", sensitive_features=["sex"], label="hired", tolerance=0.2
    ).to_dict()
    for own in (data, api):
        for part in (own["ideal"], own["plan"]):
            part.pop("created")
        own["acquired"].pop("time")
    assert data == json.loads(json.dumps(api))
    before = there()
    assert "Would write" in printed([*repair, "--dry-run"], capsys)
    assert there() == before


@pytest.mark.slow
def test_what_falls_short_ends_with_one(capsys):
    plan()
    share("lake/a.csv", more(100, 1))
    assert "missing" in printed(["find", "plan.json", "lake"], capsys, 1)
    assert "too few rows" in refused(["acquire", "plan.json", "lake", "-o", "out.csv"], capsys, 1)
    partial = ["acquire", "plan.json", "lake", "-o", "out.csv", "--partial"]
    assert "This is not as planned" in printed(partial, capsys, 1)
    check = ["verify", "out.csv", "--base", "people.csv", "--plan", "plan.json", "--ledger"]
    assert "BROKEN" in printed([*check, "out.csv.ledger.parquet"], capsys, 1)
    repair = ["repair", "people.csv", "lake", *COLUMNS, "--tolerance", "0.2", "-o", "r.csv"]
    assert "cannot be reached" in printed(repair, capsys, 1)
    share("lake/a.csv", more(300, 1))
    replay = ["lake", "replay", "out.csv.ledger.parquet", "lake"]
    assert "differ from the ledger" in printed(replay, capsys, 1)


@pytest.mark.parametrize(
    "command",
    [
        ["find", "no.json", "lake"],
        ["find", "plan.json", "nowhere"],
        ["find", "people.csv", "lake"],
        ["find", "plan.json", "lake", "--mapping", "people.csv"],
        ["find", "plan.json", "lake", "--mapping", "no.toml"],
        ["find", "plan.json", "lake", "--sources", "no.toml"],
        ["find", "plan.json", "lake", "--codebook", "no.toml"],
        ["find", "plan.json", "lake", "--deny", "b.csv"],
        ["find", "plan.json", "lake", "--dedupe", "key"],
        ["find", "plan.json", "lake", "--dedupe", "key", "--key", "nr"],
        ["find", "plan.json", "lake", "--base", "nobody.csv"],
        ["acquire", "plan.json", "lake"],
        ["acquire", "plan.json", "lake", "-o", "out.csv", "--dry-run"],
        ["acquire", "plan.json", "lake", "-o", "people.csv"],
        ["acquire", "plan.json", "lake", "-o", "lake/a.csv"],
        ["acquire", "plan.json", "lake", "-o", "o.csv", "--ledger", "o.csv"],
        ["acquire", "plan.json", "lake", "-o", "o.txt"],
        ["acquire", "plan.json", "lake", "-o", "o.csv", "--base", "lake/a.csv"],
        ["acquire", "plan.json", "lake", "-o", "o.csv", "--hash-key-file", "no.key"],
        ["lake", "mapping", "plan.json", "lake", "--base", "nobody.csv"],
        ["lake", "search", "nobody.csv", "lake"],
        ["lake", "index", "nowhere"],
        ["lake", "replay", "people.csv", "lake"],
        ["lake", "replay", "no.parquet", "lake"],
        ["repair", "people.csv", "lake", *COLUMNS],
        ["repair", "people.csv", "lake", "-s", "gender", "-l", "hired", "-o", "o.csv"],
        ["repair", "people.csv", "lake", *COLUMNS, "-o", "o.csv", "--report", "people.csv"],
        ["repair", "people.csv", "lake", *COLUMNS, "-o", "o.csv", "--plan-file", "people.csv"],
        ["repair", "people.csv", "lake", *COLUMNS, "-o", "o.csv", "--available-from", "lake/a.csv"],
        ["verify", "people.csv", "--base", "people.csv", "--plan", "no", "--ledger", "no"],
    ],
)
def test_bad_input_is_one_sentence(command, capsys):
    if "plan.json" in command:
        plan()
    refused(command, capsys)


def test_a_plan_names_its_table_and_says_if_it_is_gone(capsys):
    plan()
    Path("people.csv").rename("moved.csv")
    said = refused(["acquire", "plan.json", "lake", "-o", "out.csv"], capsys)
    assert (
        said
        == "error: pass the table that the plan was made for as --base (people.csv does not exist).\n"
    )
    assert "Without the base, duplicates" in printed(["find", "plan.json", "lake"], capsys)
    printed(["acquire", "plan.json", "lake", "-o", "out.csv", "--base", "moved.csv"], capsys)


def test_a_lake_without_a_matching_column_says_what_came_nearest(capsys):
    plan()
    Path("lake/a.csv").unlink()
    write("lake/b.csv", ("hired",), [("yes",), ("no",)])
    out = printed(["find", "plan.json", "lake"], capsys, 1)
    assert "most similar to 'hired' is 'hired' of b.csv" in out
    said = refused(["lake", "mapping", "plan.json", "lake"], capsys, 1)
    assert "'hired' of b.csv" in said


def test_a_key_is_read_from_a_file(capsys):
    plan()
    Path("key").write_text("secret\n", "utf-8")
    printed(["acquire", "plan.json", "lake", "-o", "out.csv", "--hash-key-file", "key"], capsys)
    replay = ["lake", "replay", "out.csv.ledger.parquet", "lake"]
    printed([*replay, "--hash-key-file", "key"], capsys)
    assert "pass it as --hash-key-file" in refused(replay, capsys)


@pytest.mark.slow
def test_a_lake_that_changed_is_indexed_again_unless_told_not_to(capsys):
    plan()
    printed(["lake", "index", "lake"], capsys)
    share("lake/a.csv", [*more(400, 20), *more(500, 20, sex="Male", hired="no")])
    acquire = ["acquire", "plan.json", "lake", "-o", "out.csv"]
    said = refused([*acquire, "--no-refresh"], capsys)
    assert "a.csv has changed since the lake was indexed" in said
    printed(acquire, capsys)
