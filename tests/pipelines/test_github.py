"""The steps of the GitHub workflow, run as its runner runs them; only what installs is left out."""

from __future__ import annotations

import re

import psycopg
import pytest
import yaml

import equipoise as eq
from loans import DAYS, EXAMPLES, prepare, run, surroundings
from servers import new_database

WORKFLOW = yaml.safe_load((EXAMPLES / "github" / "bias.yml").read_text(encoding="utf-8"))
(JOB,) = WORKFLOW["jobs"].values()
INSTALLS = ("Install Equipoise",)


def evaluated(environment, values):
    """The environment of a job or a step, with the values of its expressions."""
    return {
        name: re.sub(r"\$\{\{ *([\w.]+) *\}\}", lambda found: values[found[1]], text)
        for name, text in (environment or {}).items()
    }


def run_job(folder, day, store="bias.sqlite"):
    """Run the steps up to the first that fails; GitHub starts bash so if no shell is named."""
    values = {
        "inputs.day": day,
        "vars.BIAS_STORE": store,
        "secrets.BIAS_STORE_PASSWORD": "unused",
    }
    summary = folder / "summary.md"
    summary.write_text("", encoding="utf-8")
    done = []
    for step in JOB["steps"]:
        if "run" not in step or step["name"] in INSTALLS:
            continue
        assert "${{" not in step["run"]  # values come as variables, which no shell reads as code
        script = folder / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        own = evaluated(JOB["env"], values) | evaluated(step.get("env"), values)
        known = surroundings(folder, GITHUB_STEP_SUMMARY=str(summary), **own)
        done.append(run(["bash", "-e", str(script)], folder, known))
        if done[-1].returncode:
            break
    return done, summary.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "code", "said"),
    [
        (["quiet"] * 3, 0, "No alert"),
        (["biased"] * 3, 1, "Alert: "),
        (["quiet"] * 3 + ["without black women"], 0, "1 group has vanished"),
    ],
)
def test_a_day_fails_only_if_there_is_an_alert(tmp_path, kinds, code, said):
    prepare(tmp_path, kinds)
    for day in DAYS[: len(kinds)]:
        (added, checked), summary = run_job(tmp_path, day)
        assert added.returncode == 0, added.stderr
        assert f"Added the batch {day}" in added.stdout
    assert checked.returncode == code, checked.stderr
    assert said in summary
    assert ("::warning" in checked.stdout) == ("vanished" in said)


@pytest.mark.slow
def test_a_job_that_is_run_again_adds_nothing_twice(tmp_path):
    prepare(tmp_path, ["quiet"])
    run_job(tmp_path, DAYS[0])
    (added, checked), _ = run_job(tmp_path, DAYS[0])
    assert "already there" in added.stdout
    assert checked.returncode == 0
    assert eq.Monitor(tmp_path / "bias.sqlite").counts("loans").n == 300


@pytest.mark.slow
def test_jobs_of_several_machines_share_a_store_in_postgres(tmp_path):
    with new_database() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA monitoring")
        store = f"{address}{'&' if '?' in address else '?'}schema=monitoring"
        for number in range(3):  # each with the files of its own checkout, and nothing else
            folder = prepare(tmp_path / str(number), ["biased"] * 3)
            (added, checked), summary = run_job(folder, DAYS[number], store)
            assert added.returncode == 0, added.stderr
    assert checked.returncode == 1
    assert "3 batches with 900 rows" in summary


def test_a_job_without_data_fails_and_checks_nothing(tmp_path):
    prepare(tmp_path)
    (added,), summary = run_job(tmp_path, DAYS[0])
    assert added.returncode == 2
    assert f"data/{DAYS[0]}.csv" in added.stderr
    assert summary == ""


def test_no_step_but_those_of_the_test_runs_a_shell():
    assert [step["name"] for step in JOB["steps"] if "run" in step] == [
        *INSTALLS,
        "Add the applications of the day",
        "Check the stream",
    ]
