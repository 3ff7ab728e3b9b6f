"""The workflow, run by Airflow within one process."""

from __future__ import annotations

import json

import pytest

import equipoise as eq
from loans import DAYS, EXAMPLES, TOOLS, prepare, require_tool, run, surroundings

pytestmark = pytest.mark.slow

RUN = """\
import datetime, json, sys
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.utils.db import initdb

import equipoise as eq

days, late = sys.argv[1].split(","), {}
for told in sys.argv[2:]:
    day, tries = told.split("=")
    late[day] = int(tries)

add = eq.Monitor.add

def add_late(monitor, data, **given):
    if late.get(given["at"], 0):
        late[given["at"]] -= 1
        raise FileNotFoundError(data)
    return add(monitor, data, **given)

eq.Monitor.add = add_late

initdb()
DagBundlesManager().sync_bundles_to_db()
bag = DagBag()
assert not bag.import_errors, bag.import_errors
sync_bag_to_db(bag, "dags-folder", None)
(workflow,) = bag.dags.values()
for task in workflow.tasks:
    task.retry_delay = datetime.timedelta(0)
told = []
for day in days:
    moment = datetime.datetime.fromisoformat(day).replace(tzinfo=datetime.UTC)
    done = workflow.test(logical_date=moment)
    tasks = {each.task_id: each for each in done.get_task_instances()}
    told.append({
        "state": done.state.value,
        "order": [t.task_id for t in sorted(tasks.values(), key=lambda t: t.start_date)],
        "tries": {name: each.try_number for name, each in tasks.items()},
        "status": tasks["check_stream"].xcom_pull("check_stream"),
    })
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What became of a run for each day, and all that Airflow logged."""
    require_tool("airflow")
    folder = tmp_path_factory.mktemp("airflow")
    prepare(folder, ["quiet"] * 3 + ["without black women"] + ["biased"] * 5)
    known = surroundings(
        folder,
        first=[TOOLS],
        AIRFLOW_HOME=str(folder / "airflow"),
        AIRFLOW__CORE__DAGS_FOLDER=str(EXAMPLES / "airflow"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        BIAS_STORE=str(folder / "bias.sqlite"),
        BIAS_FOLDER=str(folder),
        PYTHONDONTWRITEBYTECODE="1",
    )
    days = [DAYS[0], *DAYS]
    late = f"{DAYS[1]}=2"
    done = run([str(TOOLS / "python"), "-c", RUN, ",".join(days), late], folder, known)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return folder, found, done.stdout + done.stderr


def test_airflow_adds_each_day_once_and_then_checks(runs):
    folder, (first, again, *_), logged = runs
    for each in (first, again):
        assert (each["state"], each["status"]) == ("success", "inside")
        assert each["order"] == ["add_batch", "check_stream"]
    assert "is already there" in logged
    with eq.Monitor(folder / "bias.sqlite") as monitor:
        assert monitor.counts("loans", until=DAYS[1]).n == 300


def test_airflow_retries_a_file_that_comes_late(runs):
    _, (_, _, late, *_), _ = runs
    assert (late["state"], late["status"]) == ("success", "inside")
    assert late["tries"] == {"add_batch": 3, "check_stream": 1}


def test_airflow_is_warned_of_too_little_evidence(runs):
    _, found, logged = runs
    vanished = found[4]
    assert (vanished["state"], vanished["status"]) == ("success", "undecided")
    assert "1 group has vanished" in logged


def test_airflow_fails_at_once_if_there_is_an_alert(runs):
    _, found, logged = runs
    *_, last = found
    assert last["state"] == "failed"
    assert last["tries"]["check_stream"] == 1
    assert "AirflowFailException: Alert: " in logged
