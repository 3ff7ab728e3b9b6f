"""The ledger: of any kind, with or without a key; its replay finds what was changed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.engines.base import Part
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import InputError
from equipoise.lake.lake import Lake
from equipoise.lake.repair.ledger import (
    ABOUT,
    COLUMNS,
    about,
    ledger_table,
    read_ledger,
    stored_ledger,
)
from lakes import HEADER, OTHERS, PEOPLE, acquired, ledger, more, planned, read, share, write

NEED = {("Female", "yes"): 3}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("people.csv", HEADER, PEOPLE)
    share("lake/a.csv", more(100, 3))
    share("lake/b.csv", more(200, 2))


def taken(**options):
    plan = planned("people.csv", {("Female", "yes"): 5}, {("Male", "no"): 1})
    return acquired(plan, **options)


def replayed(name="out.csv.ledger.parquet", **how):
    return Lake("lake").replay(name, **how)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".tsv", ".jsonl"])
def test_a_ledger_may_be_of_any_kind(ending):
    taken()
    taken(ledger=f"l{ending}")
    lines = read_ledger(f"l{ending}", shared_engine()).to_pylist()
    assert lines == ledger()
    assert list(lines[0]) == list(COLUMNS)
    done = replayed(f"l{ending}", repaired="out.csv")
    assert (done.ok, done.rows, done.sources, done.exit_code) == (True, 5, 2, 0)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_a_plan_without_changes_has_an_empty_ledger(ending):
    acquired(planned("people.csv", {}), ledger=f"l{ending}")
    assert replayed(f"l{ending}", repaired="out.csv").to_dict()["rows"] == 0
    assert Path("out.csv").read_text("utf-8") == Path("people.csv").read_text("utf-8")


@pytest.mark.slow
def test_hashes_with_a_key_need_it():
    taken(hash_key=b"secret")
    assert {len(line["hash"]) for line in ledger()} == {64}
    assert replayed(hash_key=b"secret", repaired="out.csv").ok
    assert not replayed(hash_key=b"other").ok
    with pytest.raises(InputError, match="were made with a key; pass it as `hash_key`"):
        replayed()
    taken()
    with pytest.raises(InputError, match="were made without a key; do not pass `hash_key`"):
        replayed(hash_key=b"secret")


@pytest.mark.slow
def test_a_changed_row_of_a_source_is_found():
    taken()
    text = Path("lake/a.csv").read_text("utf-8")
    Path("lake/a.csv").write_text(text.replace("101,", "999,"), "utf-8")
    done = replayed()
    assert done.exit_code == 1
    assert done.problems[0].startswith("1 of 3 rows of a.csv differ from the ledger; the first")


@pytest.mark.slow
def test_rows_added_behind_change_the_file_but_not_the_rows():
    taken()
    with Path("lake/a.csv").open("a", encoding="utf-8") as file:
        file.write("500,Male,no,33\n")
    (problem,) = replayed().problems
    assert problem.startswith("a.csv has changed since, but the 3 rows that were taken from it")


@pytest.mark.slow
def test_a_shortened_source_is_found():
    taken()
    share("lake/a.csv", [])
    assert "is another row" in replayed().text() or "does not exist" in replayed().text()
    write("lake/a.csv", HEADER, [])
    assert not replayed().ok


@pytest.mark.slow
def test_a_removed_source_is_found():
    taken()
    Path("lake/a.csv").unlink()
    assert replayed().problems == ("a.csv is no longer in the lake; 3 rows came from it.",)
    lake = Lake("lake", refresh=False)
    assert not lake.replay("out.csv.ledger.parquet").ok


@pytest.mark.slow
def test_a_source_that_changes_its_columns_is_found():
    taken()
    write("lake/a.csv", ("x",), [(i,) for i in range(9)])
    assert replayed(repaired="out.csv").exit_code == 1


TAMPERED = {
    "source_hash": "0" * 32,
    "place": 4,
    "snapshot": "0" * 64,
    "source": "c.csv",
    "row": 0,
    "hash": "0" * 32,
    "mapping": "{}",
}


@pytest.mark.slow
def test_a_ledger_that_was_tampered_with_is_found():
    taken()
    schema = pq.read_schema("out.csv.ledger.parquet")
    for name, value in [*TAMPERED.items(), *((name, None) for name in TAMPERED)]:
        lines = ledger()
        place = next(i for i, line in enumerate(lines) if line["source"] == "a.csv")
        lines[place][name] = value
        pq.write_table(pa.Table.from_pylist(lines, schema), "l.parquet")
        done = replayed("l.parquet", repaired="out.csv")
        assert done.exit_code == 1, (name, value)
        assert done.problems
        assert json.loads(done.to_json())["ok"] is False


@pytest.mark.slow
def test_a_row_listed_twice_is_found():
    taken()
    lines = [*ledger(), ledger()[-1]]
    pq.write_table(
        pa.Table.from_pylist(lines, pq.read_schema("out.csv.ledger.parquet")), "l.parquet"
    )
    assert "is listed 2 times, but was taken once." in replayed("l.parquet").text()


@pytest.mark.slow
@pytest.mark.parametrize("column", HEADER)
def test_a_repaired_row_that_was_tampered_with_is_found(column):
    taken()
    assert replayed(repaired="out.csv").ok
    lines = read("out.csv")
    lines[-1][column] = "Male" if column == "sex" else "77"
    write("out.csv", HEADER, [line.values() for line in lines])
    done = replayed(repaired="out.csv")
    (said,) = done.problems
    assert said.startswith("1 of ")
    assert "rows of out.csv that came from" in said


@pytest.mark.slow
def test_a_value_filled_in_where_the_source_has_none_is_found():
    for name in ("a", "b"):
        start = 100 if name == "a" else 200
        write(f"lake/{name}.csv", HEADER[:3], [r[:3] for r in [*more(start, 3), *OTHERS]])
    taken()
    assert replayed(repaired="out.csv").ok
    lines = read("out.csv")
    assert lines[-1]["age"] == ""
    lines[-1]["age"] = "50"
    write("out.csv", HEADER, [line.values() for line in lines])
    assert not replayed(repaired="out.csv").ok


@pytest.mark.slow
def test_a_repaired_table_that_lacks_rows_is_found():
    taken()
    write("out.csv", HEADER, [line.values() for line in read("out.csv")[:-1]])
    assert (
        "does not have all rows that the ledger lists from" in replayed(repaired="out.csv").text()
    )


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "action,row\nadd,1\n"])
def test_what_is_no_ledger_is_said(text):
    Path("l.csv").write_text(text, "utf-8")
    with pytest.raises(InputError, match=r"l\.csv is not a ledger: it has no column"):
        replayed("l.csv")


def test_a_damaged_ledger_is_said():
    taken(ledger="l.csv")
    text = Path("l.csv").read_text("utf-8").replace("add,", "add,x", 1)
    Path("l.csv").write_text(text, "utf-8")
    with pytest.raises(InputError, match=r"l\.csv is damaged"):
        replayed("l.csv")


@pytest.mark.slow
def test_dates_and_large_numbers_are_the_same_in_every_type():
    base = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "sex": ["Female", "Male"],
            "hired": ["no", "yes"],
            "at": pa.array([0, 1], pa.timestamp("us")),
        }
    )
    pq.write_table(base, "people.parquet")
    rows = [
        (2**60 + 1, "Female", "yes", "2024-01-01"),
        (2**60 + 2, "Male", "no", "2024-01-02 10:00"),
    ]
    for name in ("a", "b"):
        write(f"lake/{name}.csv", ("id", "sex", "hired", "at"), rows)
    plan = planned("people.parquet", {("Female", "yes"): 1, ("Male", "no"): 1})
    acquired(plan, base="people.parquet", output="out.parquet")
    assert set(pq.read_table("out.parquet")["id"].to_pylist()) == {1, 2, 2**60 + 1, 2**60 + 2}
    assert replayed("out.parquet.ledger.parquet", repaired="out.parquet").ok


# ----------------------------------------------------------------------- a ledger as a table


def test_a_stored_ledger_is_read_with_what_it_says_of_the_repair(tmp_path):
    line = {"action": "add", "source": "archive.old", "place": "007", "hash": "ab", "cell": "{}"}
    made = ledger_table([line, line | {"place": "12"}], {"base": "people"})
    stored = stored_ledger(made)
    assert stored["action"].to_pylist() == [ABOUT, "add", "add"]
    assert stored.schema.metadata is None
    engine = shared_engine()
    for name in ("ledger.parquet", "ledger.csv"):
        engine.write(tmp_path / name, [Part(locate(stored))])
        read = read_ledger(tmp_path / name, engine)
        assert read.to_pylist() == made.to_pylist()
        assert about(read)["base"] == "people"
