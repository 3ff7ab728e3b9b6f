"""The tasks of the Airflow example, run by a stand-in for Airflow.

Airflow brings 130 packages, too many to install for a test. The stand-in has what the example takes
of it: tasks that wait for their run, their order, templates of arguments, and retries.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import types

import pytest

import equipoise as eq
from loans import DAYS, EXAMPLES, prepare


class AirflowFailException(Exception):
    """A failure that no retry changes."""


class Task:
    """A function with its arguments, which is called when its run comes."""

    def __init__(self, function, arguments):
        self.function, self.arguments, self.after = function, arguments, []

    def __rshift__(self, other):
        other.after.append(self)
        return other

    def run(self, day, retries):
        """Call the function; every failure but one is tried again."""
        arguments = {k: v.replace("{{ ds }}", day) for k, v in self.arguments.items()}
        for left in reversed(range(retries + 1)):
            try:
                return self.function(**arguments)
            except AirflowFailException:
                raise
            except Exception:
                if not left:
                    raise
        return None


class StandIn:
    """What the example imports of Airflow, and the runs of its workflow."""

    def __init__(self):
        self.tasks, self.settings = [], {}

    def task(self, function):
        def made(**arguments):
            self.tasks.append(Task(function, arguments))
            return self.tasks[-1]

        return made

    def dag(self, **settings):
        self.settings = settings
        return lambda function: function

    def run(self, day):
        """Run all tasks in their order."""
        first, second = self.tasks
        assert (first.after, second.after) == ([], [first])
        return [t.run(day, self.settings["default_args"]["retries"]) for t in (first, second)]


@pytest.fixture
def workflow(tmp_path, monkeypatch):
    airflow = StandIn()
    sdk, exceptions = (types.ModuleType(f"airflow.sdk{more}") for more in ("", ".exceptions"))
    sdk.dag, sdk.task = airflow.dag, airflow.task
    exceptions.AirflowFailException = AirflowFailException
    for module in (types.ModuleType("airflow"), sdk, exceptions):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("BIAS_STORE", str(tmp_path / "bias.sqlite"))
    monkeypatch.setenv("BIAS_FOLDER", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = EXAMPLES / "airflow" / "bias_dag.py"
    spec = importlib.util.spec_from_file_location("bias_dag", file)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return airflow


def test_a_stand_in_for_airflow_runs_quiet_days_and_retries(workflow, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    prepare(tmp_path, ["quiet"])
    for outcome in ("Added the batch", "already there"):
        caplog.clear()
        assert workflow.run(DAYS[0]) == [None, "inside"]
        assert outcome in caplog.text
    with eq.Monitor(tmp_path / "bias.sqlite") as monitor:
        assert monitor.counts("loans").n == 300


def test_a_stand_in_for_airflow_fails_at_once_if_there_is_an_alert(workflow, tmp_path):
    prepare(tmp_path, ["biased"] * 2)
    workflow.run(DAYS[0])
    with pytest.raises(AirflowFailException, match="Alert: "):
        workflow.run(DAYS[1])


def test_a_stand_in_for_airflow_is_warned_of_too_little_evidence(workflow, tmp_path, caplog):
    prepare(tmp_path, ["quiet"] * 3 + ["without black women"])
    done = [workflow.run(day)[1] for day in DAYS[:4]]
    assert done == ["inside"] * 3 + ["undecided"]
    (record,) = (r for r in caplog.records if r.levelno == logging.WARNING)
    assert "1 group has vanished" in record.message


def test_a_stand_in_for_airflow_retries_a_file_that_comes_late(workflow, tmp_path, monkeypatch):
    prepare(tmp_path)
    tries, add = [], eq.Monitor.add

    def slow(monitor, data, **options):
        tries.append(data)
        if len(tries) == 3:
            prepare(tmp_path, ["quiet"])
        return add(monitor, data, **options)

    monkeypatch.setattr(eq.Monitor, "add", slow)
    assert workflow.run(DAYS[0]) == [None, "inside"]
    assert len(tries) == 3
