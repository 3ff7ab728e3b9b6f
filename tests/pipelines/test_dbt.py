"""The dbt project, run by dbt with DuckDB: its hook writes counts, which are added to a stream."""

from __future__ import annotations

import shutil

import duckdb
import pytest

import equipoise as eq
from loans import DAYS, EXAMPLES, TOOLS, prepare, require_tool, run, surroundings, watch, write_day

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path):
    """A function that runs the project for a day."""
    require_tool("dbt")
    folder = tmp_path / "loans"
    shutil.copytree(EXAMPLES / "dbt", folder)
    prepare(folder, ["biased"])
    known = surroundings(tmp_path, first=[TOOLS])

    def run_day(day):
        return run(["sh", "run.sh", day], folder, known)

    run_day.folder = folder
    return run_day


def test_the_counts_of_a_day_are_added_once(project):
    for outcome in ("Added the batch", "already there"):
        done = project(DAYS[0])
        assert done.returncode == 0, done.stdout + done.stderr
        assert outcome in done.stdout
        assert "No alert" in done.stdout
    # The model and the stream have each row once, and only the counts of cells left dbt.
    with duckdb.connect(project.folder / "loans.duckdb", read_only=True) as connection:
        assert connection.sql("SELECT count(*) FROM applications").fetchall() == [(300,)]
    counts = project.folder / "counts" / f"applications-{DAYS[0]}.parquet"
    columns = ["sex", "race", "approved", "n"]
    table = duckdb.sql(f"SELECT * FROM '{counts}'")
    assert (table.columns, len(table.fetchall())) == (columns, 8)
    file = project.folder / "data" / f"{DAYS[0]}.csv"
    counted = eq.count(file, sensitive_features=["sex", "race"], label="approved")
    with eq.Monitor(project.folder / "bias.sqlite") as monitor:
        assert monitor.counts("loans").cells() == counted.cells()


def test_a_run_fails_if_there_is_an_alert(project):
    watch(project.folder, ["biased"] * 2)
    write_day(project.folder / "data" / f"{DAYS[2]}.csv", "biased")
    done = project(DAYS[2])
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Added the batch" in done.stdout
    assert "Alert: " in done.stdout


def test_a_model_that_fails_adds_nothing(project):
    (project.folder / "data" / f"{DAYS[0]}.csv").unlink()
    done = project(DAYS[0])
    assert done.returncode == 1
    assert "No files found" in done.stdout
    assert not (project.folder / "bias.sqlite").exists()
