from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("pandas")

PROGRAM = """
import contextlib, io, json, sys
from equipoise.cli import main
found = {}
for line in json.load(sys.stdin):
    sys.argv = ["equipoise", *line]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            code = end.code
    found[line[0]] = [code, "pandas" in sys.modules, said.getvalue()]
print(json.dumps(found))
"""
COLUMNS = ["-s", "sex", "-l", "hired"]


@pytest.mark.slow
def test_no_command_loads_pandas(tmp_path):
    cells = {("m", "yes"): 40, ("m", "no"): 40, ("w", "yes"): 20, ("w", "no"): 60}
    lines = [f"{s},{h},{i}" for (s, h), n in cells.items() for i in range(n)]
    (tmp_path / "people.csv").write_text("sex,hired,age\n" + "\n".join(lines) + "\n")
    (tmp_path / "lake").mkdir()
    more = [f"w,yes,{i}" for i in range(1000, 1100)] + [f"m,no,{i}" for i in range(1000, 1100)]
    (tmp_path / "lake" / "more.csv").write_text("sex,hired,age\n" + "\n".join(more) + "\n")
    commands = [
        ["measure", "people.csv", *COLUMNS],
        ["check", "people.csv", *COLUMNS, "--max-abs-ub", "0.9"],
        ["diff", "people.csv", "people.csv", *COLUMNS],
        ["plan", "people.csv", *COLUMNS, "--allow", "add", "-o", "plan.json"],
        ["apply", "plan.json", "--to", "people.csv", "--pool", "lake/more.csv", "-o", "a.parquet"],
        ["find", "plan.json", "lake"],
        ["repair", "people.csv", "lake", *COLUMNS, "--allow", "add", "-o", "repaired.parquet"],
    ]
    for run in ([["measure", "adult", "-s", "sex,race", "-l", "income"]], commands):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=json.dumps(run),
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        found = json.loads(done.stdout)
        failed = [name for name, (code, *_) in found.items() if code > 1]  # 1: rows are missing
        assert failed == [], found
        assert [name for name, (_, loaded, _) in found.items() if loaded] == []
    assert len(found) == len(commands)


def test_pandas_is_still_there_for_who_asks():
    program = """
import sys
from equipoise.cli import startup
startup.begin_program()
import pyarrow as pa
import importlib.resources
assert importlib.resources.files("pyarrow").joinpath("__init__.py").is_file()
pa.array(["a"]).to_numpy(zero_copy_only=False)
assert "pandas" not in sys.modules
assert pa.table({"a": [1, 2]}).to_pandas()["a"].tolist() == [1, 2]
import pandas as pd
assert pa.table(pd.DataFrame({"a": [3]})).to_pydict() == {"a": [3]}
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_where_other_code_runs_pyarrow_knows_pandas():
    program = """
import equipoise.cli.app
import pyarrow as pa
pa.array([1])
import sys
assert "pandas" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nanoseconds_need_no_pandas():
    program = """
from equipoise.cli import startup
startup.begin_program()
import pyarrow as pa
from equipoise.counts import Counts
moments = pa.array([1_500_000_001, 0], pa.timestamp("ns"))
counts = Counts.from_frame(
    pa.table({"at": moments, "y": ["a", "b"]}), sensitive=["at"], label="y"
)
print(*counts.axes[0].values, sep="|")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "1970-01-01 00:00:00|1970-01-01 00:00:01.500000001\n"


def test_a_search_loads_no_pyarrow(tmp_path):
    (tmp_path / "lake").mkdir()
    for name in ("query.csv", "lake/staff.csv"):
        (tmp_path / name).write_text(f"sex,hired,file\nw,yes,{name}\nm,no,{name}\n")
    program = """
import sys
from equipoise.cli import startup
from equipoise.cli.app import run
startup.begin_program()
sys.argv = ["equipoise", "lake", "search", "query.csv", "lake"]
assert run() == 0
print("pyarrow" in sys.modules)
"""
    ends = [
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        ).stdout.split()
        for _ in range(2)  # the first run indexes the lake
    ]
    assert "staff.csv" in ends[1]
    assert [end[-1] for end in ends] == ["True", "False"]
