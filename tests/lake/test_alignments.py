"""Many tables are aligned by two processes, with the same result as by one."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import pyarrow as pa
import pytest

from equipoise.counts import Counts
from equipoise.engines.memory import MemoryEngine
from equipoise.engines.profiling import Profile
from equipoise.engines.sources import Source
from equipoise.lake.matching.columns.target import Wanted, wanted
from equipoise.lake.offers import alignments
from equipoise.lake.offers.alignments import Aligner, is_worth_help


def _profile(**columns: Sequence[str]) -> Profile:
    source = Source(kind="frame", name="t", data=pa.table(dict(columns)))
    return MemoryEngine().profile(source)


@pytest.fixture(scope="module")
def tables() -> list[Profile]:
    """Tables with the sexes in several words, or about something else."""
    words = (["Female", "Male"], ["F", "M"], ["w", "m"], ["red", "blue"])
    alike = [
        _profile(**{f"sex{i or ''}": some * 10, "hired": ["yes", "no"] * 10})
        for i in range(3)
        for some in words
    ]
    return [*alike, _profile(city=["Turin", "Oslo"])] * 2


@pytest.fixture(scope="module")
def want() -> Wanted:
    cells = {("Female", "yes"): 2, ("Female", "no"): 8, ("Male", "yes"): 5, ("Male", "no"): 5}
    return wanted(Counts.from_mapping(cells, sensitive=["sex"], label="hired"))


def _aligned(want: Wanted, tables: list[Profile], *, helped: bool) -> list[str]:
    with Aligner(want, False, {}, helped) as aligner:
        return [repr(found) for found in aligner.align(tables, lambda _: None)]


@pytest.mark.slow  # a process is started
def test_two_processes_align_as_one_does(want: Wanted, tables: list[Profile]) -> None:
    alone = _aligned(want, tables, helped=False)
    assert "None" in alone
    assert len(set(alone)) > 3
    assert _aligned(want, tables, helped=True) == alone


@pytest.mark.slow
def test_tables_of_a_process_that_was_killed_are_aligned_here(
    want: Wanted, tables: list[Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def kill(self: object, *_: object, **__: object) -> None:
        worker = aligner._worker
        process = worker._started()
        asked.append(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        raise worker._ended(process)

    monkeypatch.setattr(alignments.Worker, "run", kill)
    with Aligner(want, False, {}, True) as aligner:
        found = [repr(each) for each in aligner.align(tables, lambda _: None)]
    assert len(asked) == 1
    assert found == _aligned(want, tables, helped=False)


@pytest.mark.slow
def test_a_reporter_that_stops_the_work_stops_both_processes(
    want: Wanted, tables: list[Profile]
) -> None:
    class Stopped(Exception):
        pass

    def stop(_: int) -> None:
        raise Stopped

    with Aligner(want, False, {}, True) as aligner, pytest.raises(Stopped):
        aligner.align(tables, stop)
    assert aligner._worker.pid is None


def test_few_tables_are_not_worth_a_process() -> None:
    assert not is_worth_help(alignments.MANY - 1)
