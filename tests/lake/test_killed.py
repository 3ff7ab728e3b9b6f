"""Runs that are killed at any moment leave nothing that is broken, and the next one ends as ever."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def scale():
    """The benchmark that kills many more; its modules find each other by their folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        spec = importlib.util.spec_from_file_location("lake_scale", FOLDER / "lake_scale.py")
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def folder(scale, tmp_path_factory):
    """A table to repair, a lake and a plan, made once since each start of the program counts."""
    made = tmp_path_factory.mktemp("killed")
    scale.make_case(made / "start", tables=8)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("command", "kills"), [("index", 3), ("acquire", 2), ("repair", 1)])
def test_killed_runs_leave_nothing_broken_and_can_be_done_again(scale, folder, command, kills):
    told = scale.kill_some(folder, command, kills, random.Random(command))
    assert (told.faults, told.killed) == ([], kills)


@pytest.mark.slow
def test_what_is_broken_would_be_told(scale, folder):
    with scale._fresh(folder) as place:
        before = scale._shown(place)
        scale._run(place, "acquire")
        wanted = scale._state(place)
        assert scale._faults(place, wanted, {}, before) == []
        for name in ("out.csv", "out.csv.ledger.parquet", scale.INDEX):
            (place / name).write_bytes((place / name).read_bytes()[:-9])
        (place / "lake" / "left.csv").write_text("a,b\n")
        assert scale._faults(place, wanted, {}, before) == [
            "out.csv is not whole",
            "out.csv.ledger.parquet is not whole",
            "the index is not whole",
            "lake/left.csv can be seen",
        ]
