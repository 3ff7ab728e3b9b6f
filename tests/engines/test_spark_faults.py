"""Spark loses workers, jobs or its session in the middle of a query: a retry or an error, never half a result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import equipoise as eq
import servers
from equipoise.counts import CountRequest
from equipoise.engines.base import Part
from equipoise.engines.sources import locate
from equipoise.engines.spark import SparkEngine
from equipoise.engines.spark._errors import UNTOUCHED, Interrupted
from equipoise.errors import InputError

pytestmark = pytest.mark.spark

ROWS = 120
ASKED = {"sensitive_features": ["sex"], "label": "hired"}
REQUEST = CountRequest(sensitive=("sex",), label="hired")
MARK = f"equipoise-fault-{os.getpid()}-"
SLOW = (
    f"SELECT number, CASE WHEN number % 10 = 0 AND reflect('java.io.File', 'createTempFile', '{MARK}', '') = 'x' "
    "OR reflect('java.lang.Thread', 'sleep', CAST(40 AS BIGINT)) = 'x' THEN 'z' ELSE sex END AS sex, hired FROM input"
)
"""Takes 40 milliseconds for each row, and leaves a temporary file for every tenth: it tells that the query runs."""


@pytest.fixture(scope="module")
def session():
    session = servers.spark_session()
    session.sql("CREATE SCHEMA faults")
    session.sql(
        "CREATE TABLE faults.people AS SELECT id AS number, IF(id % 2 = 0, 'w', 'm') AS sex, "
        f"IF(id % 3 = 0 OR id % 10 = 2, 'yes', 'no') AS hired FROM range({ROWS})"
    )
    yield session
    session.sql("DROP SCHEMA faults CASCADE")
    drop_marks()


def workers_of(session) -> list[int]:
    """Find the processes that run the tasks of a session."""
    wanted = ["CoarseGrainedExecutorBackend", session.sparkContext.applicationId]
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_text("utf-8", errors="replace")
        except OSError:
            continue
        if all(word in line for word in wanted) and line.startswith(("java", "/")):
            found.append(int(path.parent.name))
    return found


def marks() -> list[Path]:
    """Find the temporary files that the workers made: Java puts them into /tmp, whatever TMPDIR says."""
    return list(Path("/tmp").glob(f"{MARK}*"))


def drop_marks() -> None:
    for path in marks():
        path.unlink()


class Ending:
    """End workers, in a thread, while a slow query of ours runs: once, or as often as there are some."""

    def __init__(self, session, *, again: bool = False) -> None:
        self.ended = 0
        self._session, self._again, self._is_over = session, again, False
        self._thread = threading.Thread(target=self._work)

    def __enter__(self):
        drop_marks()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over = True
        self._thread.join()
        drop_marks()

    def _work(self) -> None:
        while not self._is_over:
            time.sleep(0.05)
            if not marks():
                continue
            for pid in workers_of(self._session):
                os.kill(pid, signal.SIGKILL)
                self.ended += 1
            drop_marks()
            if self.ended and not self._again:
                return


def test_workers_that_end_while_rows_are_counted(session):
    expected = eq.count("spark:faults.people", **ASKED)
    with Ending(session) as ending:
        assert eq.count("spark:faults.people", **ASKED, sql=SLOW) == expected
    assert ending.ended > 0


def made(session, name: str) -> int:
    """Make a table of the slow rows; return how many it has."""
    engine, target = SparkEngine(session), locate(f"spark:faults.{name}")
    with engine.creating(target, [Part(locate("spark:faults.people", sql=SLOW))]) as new:
        return engine.counts(new.source, REQUEST).n


def test_workers_that_end_while_a_table_is_made(session):
    with Ending(session) as ending:
        assert made(session, "whole") == ROWS
    assert ending.ended > 0


def test_workers_that_end_again_and_again_while_a_table_is_made(session):
    before = [t.name for t in session.catalog.listTables("faults")]
    with (
        Ending(session, again=True) as ending,
        pytest.raises(eq.EquipoiseError, match=r"work on spark:faults.half: .*; try again"),
    ):
        made(session, "half")
    assert ending.ended > 1
    assert [t.name for t in session.catalog.listTables("faults")] == before
    # Nor are there files that would be in the way of the next try.
    session.sql("CREATE TABLE faults.half AS SELECT 1 AS one")
    session.sql("DROP TABLE faults.half")


PEOPLE = [Part(locate("spark:faults.people"))]


def tables_of(session) -> list[str]:
    return sorted(table.name for table in session.catalog.listTables("faults"))


def test_a_table_that_another_run_made_in_the_meantime_stays(session):
    engine, target = SparkEngine(session), locate("spark:faults.shared")
    before = tables_of(session)
    with (
        pytest.raises(eq.EquipoiseError, match="shared exists already"),
        engine.creating(target, PEOPLE),
        engine.creating(target, [*PEOPLE, *PEOPLE]) as first,
    ):
        assert engine.counts(first.source, REQUEST).n == 2 * ROWS
    assert tables_of(session) == sorted([*before, "shared"])
    assert session.table("faults.shared").count() == 2 * ROWS
    session.sql("DROP TABLE faults.shared")


def test_rows_to_remove_that_are_gone_in_the_meantime(session):
    engine, before = SparkEngine(session), tables_of(session)
    gone = Part(locate("spark:faults.people?id=number"), without=["3", str(ROWS)])
    with (
        pytest.raises(InputError, match=r"people.* has changed since .*; nothing was written"),
        engine.creating(locate("spark:faults.fewer"), [gone]),
    ):
        pytest.fail("rows that are gone were not missed")
    with pytest.raises(InputError, match="has changed since"):
        engine.part_rows(gone)
    assert tables_of(session) == before


def test_a_catalog_that_cannot_rename_tables(session, monkeypatch):
    engine, target, run = SparkEngine(session), locate("spark:faults.copied"), SparkEngine._run
    before = tables_of(session)

    def refuse(self, source, statement, title):
        if statement.startswith("ALTER"):
            raise InputError("Cannot rename tables.")
        run(self, source, statement, title)

    monkeypatch.setattr(SparkEngine, "_run", refuse)
    with engine.creating(target, PEOPLE, "a copy"):
        pass
    assert session.table("faults.copied").count() == ROWS
    assert session.catalog.getTable("faults.copied").description == "a copy"
    session.sql("DROP TABLE faults.copied")
    assert tables_of(session) == before


class Dead:
    """A session that has ended after it made a table, so that it cannot drop it."""

    def sql(self, statement):
        assert statement.startswith("DROP TABLE IF EXISTS `out_equipoise_1`")
        raise ConnectionError


@pytest.mark.parametrize(
    "error", [Interrupted(f"lost; {UNTOUCHED}; try again."), InputError("No."), OSError()]
)
def test_a_table_that_cannot_be_dropped_is_named(error):
    with pytest.raises(type(error)) as told, SparkEngine(Dead())._dropping("`out_equipoise_1`"):
        raise error
    said = str(told.value) + "".join(getattr(told.value, "__notes__", ()))
    assert "the table `out_equipoise_1` may be left, and can be dropped" in said
    assert UNTOUCHED not in said


def test_jobs_that_somebody_cancels(session):
    drop_marks()

    def cancel() -> None:
        while not marks():
            time.sleep(0.05)
        session.sparkContext.cancelAllJobs()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(
        eq.EquipoiseError, match=r"could not finish its work on .* cancelled .*try again"
    ):
        eq.count("spark:faults.people", **ASKED, sql=SLOW)
    thread.join()


STOPPED = """
import glob, threading, time, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
session = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
)
session.sparkContext.setLogLevel("OFF")
import equipoise as eq
rows = session.sql("SELECT IF(id % 2 = 0, 'w', 'm') AS sex, 'yes' AS hired, id AS number FROM range(200)")

def stop():
    while not glob.glob("/tmp/MARK*"):
        time.sleep(0.05)
    session.sparkContext._jsc.stop()

threading.Thread(target=stop).start()
for query in (SLOW, None):
    try:
        eq.count(rows, sensitive_features=["sex"], label="hired", sql=query)
    except eq.EquipoiseError as error:
        print(error)
"""


def test_a_session_that_somebody_stops():
    drop_marks()
    script = STOPPED.replace("SLOW", repr(SLOW)).replace("MARK", MARK)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    first, second = done.stdout.splitlines()
    assert "could not finish its work on the DataFrame" in first
    assert "its session has been stopped" in second
