"""Tables from the command line: standard input, no header, broken lines, several kinds of files."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbooks
from equipoise.cli.app import run
from equipoise.engines.readers import stdin

ROWS = [("w", "no"), ("w", "no"), ("w", "yes"), ("m", "yes"), ("m", "yes"), ("m", "no")]
LINES = [f"{sex},{hired}\n" for sex, hired in ROWS]
TEXT = "sex,hired\n" + "".join(LINES)
COLUMNS = ["-s", "sex", "-l", "hired"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def piped(monkeypatch):
    def pipe(content):
        stdin.copy_input.cache_clear()
        raw = io.BytesIO(content if isinstance(content, bytes) else content.encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))

    yield pipe
    stdin.copy_input.cache_clear()


def printed(arguments, capsys, code=0):
    capsys.readouterr()
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return out if code == 0 else err


def measured(arguments, capsys):
    return json.loads(printed(["measure", *arguments, "--json", "--quiet"], capsys))


def as_parquet():
    sink = io.BytesIO()
    pq.write_table(
        pa.table(dict(zip(("sex", "hired"), zip(*ROWS, strict=True), strict=True))), sink
    )
    return sink.getvalue()


def as_workbook():
    return workbooks.write(Path("book.xlsx"), {"s": [["sex", "hired"], *ROWS]}).read_bytes()


PIPED = {
    "csv": lambda: TEXT,
    "tsv": lambda: TEXT.replace(",", "\t"),
    "gzip": lambda: gzip.compress(TEXT.encode()),
    "utf-16": lambda: TEXT.encode("utf-16"),
    "json lines": lambda: "".join(json.dumps({"sex": s, "hired": h}) + "\n" for s, h in ROWS),
    "json": lambda: json.dumps([{"sex": s, "hired": h} for s, h in ROWS]),
    "packed json": lambda: gzip.compress(PIPED["json"]().encode()),
    "parquet": as_parquet,
    "excel": as_workbook,
}


@pytest.mark.parametrize("kind", PIPED)
def test_standard_input_is_read_whatever_it_holds(kind, piped, capsys):
    piped(PIPED[kind]())
    found = measured(["-", *COLUMNS], capsys)
    assert found["n"] == 6
    assert found["labels"] == ["no", "yes"]


@pytest.mark.slow
def test_commands_that_read_twice_and_that_write(piped, capsys):
    piped(TEXT)
    assert measured(["-", *COLUMNS], capsys)["n"] == 6
    assert run(["check", "-", *COLUMNS, "--max-abs-ub", "0.9", "--quiet"]) == 0
    assert run(["plan", "-", *COLUMNS, "--tolerance", "0.3", "-o", "plan.json", "--quiet"]) == 0
    assert json.loads(Path("plan.json").read_text())["source"] is None
    assert run(["diff", "-", "-", *COLUMNS, "--quiet"]) == 0
    Path("lake").mkdir()
    Path("lake/more.csv").write_text("sex,hired,id\n" + "".join(f"w,yes,{i}\n" for i in range(50)))
    assert "pass the table that the plan was made for as --base" in printed(
        ["acquire", "plan.json", "lake", "-o", "out.csv", "--quiet"], capsys, 2
    )


@pytest.mark.slow
def test_a_real_pipe_leaves_no_files_behind(tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "equipoise", "measure", "-", *COLUMNS, "--json"],
        input=TEXT,
        capture_output=True,
        text=True,
        check=True,
        env={"TMPDIR": str(folder), "PYTHONPATH": str(Path(stdin.__file__).parents[3])},
    )
    assert json.loads(done.stdout)["n"] == 6
    assert list(folder.iterdir()) == []


def test_standard_input_that_cannot_be_read_is_called_so(piped, capsys, monkeypatch):
    for content, why in (
        ("", "standard input is empty"),
        ("sex,hired\nw,yes,1\n", "line 2 of standard input has 3 fields"),
        (b"sex,hired\n\xff,yes\n", "standard input is not UTF-8 text"),
        ("sex,sex\nw,yes\n", "standard input has more than one column named 'sex'"),
    ):
        piped(content)
        assert why in printed(["measure", "-", *COLUMNS], capsys, 2)
    piped(TEXT)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert "which is the terminal; pipe a table" in printed(["measure", "-", *COLUMNS], capsys, 2)


def test_no_header(capsys):
    Path("a.csv").write_text("".join(LINES))
    columns = ["-s", "column_1", "-l", "column_2"]
    assert measured(["a.csv", "--no-header", *columns], capsys)["n"] == 6
    assert "it has: column_1, column_2." in printed(
        ["measure", "a.csv", "--no-header", *COLUMNS], capsys, 2
    )
    pq.write_table(pa.table({"a": [1]}), "a.parquet")
    assert "is only for CSV and Excel files" in printed(
        ["measure", "a.parquet", "--no-header", *columns], capsys, 2
    )
    assert run(["plan", "a.csv", "--no-header", *columns, "-o", "plan.json", "--quiet"]) == 0
    assert json.loads(Path("plan.json").read_text())["counts"]["reading"]["header"] is False


@pytest.mark.parametrize("command", ["measure", "check", "plan", "diff"])
def test_skipped_lines_are_told_by_every_command(command, capsys):
    Path("a.csv").write_text(TEXT + "w\nw,yes,9\n")
    second = ["a.csv"] if command == "diff" else []
    limit = ["--max-abs-ub", "2"] if command == "check" else []
    asked = [command, "a.csv", *second, *COLUMNS, *limit]
    assert "skip such lines with --lenient" in printed(asked, capsys, 2)
    assert run([*asked, "--lenient"]) == 0
    err = capsys.readouterr().err
    assert "2 lines were skipped because they are not rows of the table (line 8, line 9)." in err
    assert run([*asked, "--lenient", "--json", "--quiet"]) == 0
    told = capsys.readouterr().out
    assert '"first":["line8","line9"]' in "".join(told.split())


def test_skipped_lines_are_in_every_form_of_a_report(capsys):
    Path("a.csv").write_text(TEXT + "w\n")
    asked = ["measure", "a.csv", *COLUMNS, "--lenient", "--quiet"]
    assert measured(asked[1:-1], capsys)["skipped"] == {"lines": 1, "first": ["line 8"]}
    said = "skipped lines: 1 that are not rows (line 8)"
    assert said in " ".join(printed(asked, capsys).split())
    printed([*asked, "-o", "a.html"], capsys)
    assert "1 that are not rows (line 8)" in Path("a.html").read_text()
    assert "1 that are not rows (line 8)" in printed([*asked, "--markdown"], capsys)


def test_files_that_cannot_be_read_exit_with_two(capsys):
    Path("a.xlsx").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    assert "is protected by a password" in printed(["measure", "a.xlsx", *COLUMNS], capsys, 2)
    Path("a.xlsx").write_text(TEXT)
    assert "cannot be read as an Excel file" in printed(["measure", "a.xlsx", *COLUMNS], capsys, 2)
    Path("a.sqlite").write_text(TEXT * 99)
    assert "cannot be read as an SQLite" in printed(["measure", "a.sqlite", *COLUMNS], capsys, 2)
