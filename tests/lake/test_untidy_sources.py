r"""Rows are taken, verified and replayed from whatever kind of file holds them."""

from __future__ import annotations

import contextlib
import csv
import json
import sqlite3
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import equipoise as eq
import workbooks
from equipoise.cli.app import run
from equipoise.lake.lake import Lake

HEADER = ("id", "sex", "hired", "town")
PEOPLE = [
    *((i, "Female", "no", "Ulm") for i in range(8)),
    *((i, "Female", "yes", "Bonn") for i in range(8, 10)),
    *((i, "Male", "no", None) for i in range(10, 15)),
    *((i, "Male", "yes", "Ulm") for i in range(15, 20)),
]
MORE = [(100 + i, "Female", "yes", None if i % 3 else "Köln") for i in range(40)]
MORE += [(200 + i, "Male", "no", "Bonn") for i in range(10)]


def lines(rows=MORE, header=HEADER):
    return [",".join("" if v is None else str(v) for v in row) for row in [header, *rows]]


def sqlite(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE staff (id INTEGER, sex TEXT, hired TEXT, town TEXT)")
        connection.executemany("INSERT INTO staff VALUES (?, ?, ?, ?)", MORE)
        connection.execute("CREATE TABLE notes (a)")
        connection.commit()


def broken(path):
    texts = lines()
    for place in (30, 17, 3):
        texts.insert(place, "7,Female,yes")
    texts.insert(20, '8,"Female"x,yes,Bonn')
    path.write_text("\n".join(texts) + "\n")


def cased(path):
    rows = [(*row, "first", "second") for row in MORE]
    path.write_text("\n".join(lines(rows, (*HEADER, "IOD", "iod"))) + "\n")


def long_and_mixed(path):
    """What is wrong shows only in the middle of it, once rows were given already."""
    texts = [f'{i},"Male","yes","a\nb {i}"' for i in range(1000, 4000)]
    texts += [*lines()[1:], "7,Female"]
    head = ",".join(HEADER) + "\r\n" + "\r\n".join(texts[:3000]) + "\r\n"
    path.write_bytes((head + "\n".join(texts[3000:]) + "\n").encode())


SOURCES = {
    "long.csv": long_and_mixed,
    "broken.csv": broken,
    "case.csv": cased,
    "null.csv": lambda path: path.write_text(
        "\n".join(lines([[r"\N" if v is None else v for v in row] for row in MORE])) + "\n"
    ),
    "mixed.csv": lambda path: path.write_bytes(
        "".join(t + "\r\n" * (i % 2) + "\n" * (1 - i % 2) for i, t in enumerate(lines())).encode()
    ),
    "marked.csv": lambda path: path.write_bytes("\r\n".join(lines()).encode("utf-16")),
    "staff.sqlite": sqlite,
    "staff.db": sqlite,
    "book.xlsx": lambda path: workbooks.write(
        path, {"Notes": [["of no table"]], "Staff": [["All staff"], [], HEADER, *MORE]}
    ),
}
INNER = {"staff.sqlite": "::staff", "staff.db": "::staff", "book.xlsx": "::Staff"}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("\n".join(lines(PEOPLE)) + "\n")
    Path("lake").mkdir()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "output"),
    [
        *((kind, "out.csv") for kind in SOURCES),
        ("long.csv", "out.parquet"),
        ("book.xlsx", "out.parquet"),
    ],
)
def test_rows_of_any_file_are_taken_verified_and_replayed(kind, output):
    SOURCES[kind](Path("lake", kind))
    done = eq.repair(
        "people.csv", "lake", output, sensitive_features=["sex"], label="hired", tolerance=0.2
    )
    assert done.acquired.added > 0
    assert (done.reached, done.verification.ok) == (True, True)
    taken = pq.read_table(f"{output}.ledger.parquet").to_pydict()
    assert set(taken["source"]) == {kind + INNER.get(kind, "")}
    if output.endswith(".csv"):
        with Path(output).open(newline="") as file:
            found = [tuple(row.values()) for row in csv.DictReader(file)]
    else:
        rows = pq.read_table(output).to_pylist()
        found = [tuple("" if v is None else v for v in row.values()) for row in rows]
    told = {tuple("" if v is None else str(v) for v in row) for row in MORE}
    added = [tuple(map(str, row)) for row in found if int(row[0]) >= 100]
    assert len(added) == done.acquired.added == len(set(added) & told)
    for lake in (Lake("lake"), Lake("lake", index="another.duckdb")):
        assert lake.replay(f"{output}.ledger.parquet", repaired=output).ok


@pytest.mark.slow
def test_what_is_skipped_is_told_where_tables_are_listed(capsys):
    broken(Path("lake/broken.csv"))
    skipped = {"lines": 4, "first": ["line 4", "line 19", "line 21", "line 34"]}
    assert run(["lake", "index", "lake", "--json", "--quiet"]) == 0
    index = json.loads(capsys.readouterr().out)
    assert index["skipped"] == [{"table": "broken.csv", **skipped}]
    assert (index["problems"], index["rows"]) == ([], 50)
    assert run(["lake", "index", "lake", "--quiet"]) == 0
    assert "1 of them are read without some lines" in capsys.readouterr().out
    assert run(["lake", "search", "people.csv", "lake", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"][0]["skipped"] == skipped
    eq.plan("people.csv", sensitive_features=["sex"], label="hired", tolerance=0.2).write(
        "plan.json"
    )
    assert run(["find", "plan.json", "lake", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["offers"][0]["skipped"] == skipped
    assert any(s.startswith("Of broken.csv 4 lines were skipped") for s in found["sentences"])


@pytest.mark.slow
def test_a_lenient_base_is_repaired_verified_and_replayed():
    Path("lake/more.csv").write_text("\n".join(lines()) + "\n")
    Path("people.csv").write_text("\n".join([*lines(PEOPLE), "1,Female", "2,Male,no,Ulm,x"]) + "\n")
    asked = {"sensitive_features": ["sex"], "label": "hired"}
    with pytest.raises(eq.errors.InputError, match="skip such lines with `lenient=True`"):
        eq.repair("people.csv", "lake", "out.csv", tolerance=0.2, **asked)
    done = eq.repair(
        "people.csv", "lake", "out.csv", plan_file="plan.json", tolerance=0.2, lenient=True, **asked
    )
    assert (done.reached, done.verification.ok) == (True, True)
    again = eq.verify(
        "out.csv", base="people.csv", plan="plan.json", ledger="out.csv.ledger.parquet"
    )
    assert again.ok
    plan = eq.plan("people.csv", tolerance=0.2, lenient=True, **asked)
    assert any("2 lines were skipped" in sentence for sentence in plan.explanation)


@pytest.mark.slow
def test_a_base_with_nulls_of_dumps_is_repaired_and_verified():
    Path("lake/more.csv").write_text("\n".join(lines()) + "\n")
    rows = [[r"\N" if v is None else v for v in row] for row in PEOPLE]
    rows[0][3] = r'"\N"'  # a text
    Path("people.csv").write_text("\n".join(lines(rows)) + "\n")
    for output in ("out.csv", "out.parquet"):
        done = eq.repair(
            "people.csv", "lake", output, sensitive_features=["sex"], label="hired", tolerance=0.2
        )
        assert (done.reached, done.verification.ok) == (True, True)
        towns = [
            row["town"]
            for row in eq.engines.routing.shared_engine()
            .fetch(eq.engines.sources.locate(output), range(20))
            .to_pylist()
        ]
        assert towns[0] == r"\N"
        assert towns[10] is None
