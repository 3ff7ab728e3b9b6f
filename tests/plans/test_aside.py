"""Plans made in a process of their own: the same plans, and errors where that process dies."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import equipoise as eq
from equipoise.errors import InputError
from equipoise.plans.aside import Aside, Cancelled, WorkerEnded, plan_aside
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.planner import make_plan
from equipoise.plans.request import PlanRequest
from hard_work import raise_column_not_found
from strategies import SEX_AND_RACE

pytestmark = pytest.mark.slow  # a process starts in about half a second


@pytest.fixture(scope="module")
def counts():
    return eq.Counts.from_mapping(SEX_AND_RACE, sensitive=["sex", "race"], label="o")


@pytest.fixture
def aside():
    with Aside() as aside:
        yield aside


def test_a_plan_made_aside_is_the_same_plan(counts):
    request = PlanRequest(tolerance=0.1, allow="both", constrain="marginals")
    told = []
    plan = plan_aside(counts, request, progress=lambda title, share: told.append((title, share)))
    here = make_plan(counts, request)
    assert plan.reached
    assert (plan.cells, plan.cost, plan.bound) == (here.cells, here.cost, here.bound)
    assert told
    assert all(0 <= share <= 1 for _, share in told)


def test_one_worker_makes_many_plans(aside, counts):
    request = PlanRequest(tolerance=0.1, reference="original")
    assert aside.pid is None
    first = aside.plan(counts, request)
    pid = aside.pid
    assert aside.plan(counts, request).cells == first.cells
    assert aside.pid == pid != os.getpid()
    aside.close()
    assert aside.pid is None


def test_errors_arrive_as_they_are(aside, counts):
    with pytest.raises(Infeasible) as infeasible:
        aside.plan(counts, PlanRequest(tolerance=0.1, max_rows=2))
    assert infeasible.value.relaxations
    pid = aside.pid
    with pytest.raises(InputError, match="lower `min_group`"):
        aside.plan(counts, PlanRequest(tolerance=0.1, min_group=10**6))
    assert aside.pid == pid  # an error is an answer: the worker lives on


def test_an_error_that_cannot_be_sent_keeps_its_text(aside):
    with pytest.raises(InputError, match="column 'a' not found in t; it has: b"):
        aside.run(raise_column_not_found, time_limit=20)


def test_what_a_solver_prints_is_not_an_answer(aside):
    assert aside.run(os.write, 1, b"Stray line\n", time_limit=20) == 11


@pytest.mark.skipif(os.name == "nt", reason="processes end without signals there")
def test_a_worker_that_crashes_is_an_error_here_and_the_next_plan_works(aside, counts):
    with pytest.raises(WorkerEnded, match="ended by signal SIGABRT before the work was done"):
        aside.run(os.abort, time_limit=20)
    assert aside.plan(counts, PlanRequest(tolerance=0.1, reference="original")).reached


@pytest.mark.skipif(os.name == "nt", reason="processes end without signals there")
def test_a_worker_that_is_killed_is_an_error_here(aside):
    aside.run(os.getpid, time_limit=20)
    killer = threading.Timer(0.3, lambda: os.kill(aside.pid, signal.SIGKILL))
    killer.start()
    start = time.monotonic()
    with pytest.raises(WorkerEnded, match="ended by signal SIGKILL"):
        aside.run(time.sleep, 30, time_limit=60)
    assert time.monotonic() - start < 10


def test_a_worker_that_was_killed_while_idle_is_replaced(aside):
    first = aside.run(os.getpid, time_limit=20)
    aside._process.kill()
    aside._process.wait()
    assert aside.run(os.getpid, time_limit=20) != first


def test_time_that_runs_out_ends_the_worker(aside):
    aside.run(os.getpid, time_limit=20)
    start = time.monotonic()
    with pytest.raises(WorkerEnded, match="took longer than 1 seconds"):
        aside.run(time.sleep, 60, time_limit=1)
    assert time.monotonic() - start < 10
    assert aside.pid is None


def test_a_plan_can_be_cancelled(aside):
    aside.run(os.getpid, time_limit=20)
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    start = time.monotonic()
    with pytest.raises(Cancelled):
        aside.run(time.sleep, 60, time_limit=60, cancelled=stop.is_set)
    assert time.monotonic() - start < 10
    assert aside.pid is None


def test_a_report_that_fails_ends_the_worker_and_not_only_the_call(aside, counts):
    def refuse(title, share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        aside.plan(counts, PlanRequest(tolerance=0.1, allow="both"), progress=refuse)
    assert aside.pid is None
    assert aside.plan(counts, PlanRequest(tolerance=0.1, reference="original")).reached
