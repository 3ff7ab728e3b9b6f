"""Long work tells how far it is, and stops when asked to."""

from __future__ import annotations

import threading
import time

import pytest

from equipoise.counts import CountRequest
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.sources import locate
from equipoise.errors import EquipoiseError
from equipoise.progress import cancellable, pulse, silent, watched


def test_the_result_is_the_work_s():
    found = watched(
        lambda: [1], title="t", share=lambda: 0.0, interrupt=lambda: None, report=silent
    )
    assert found == [1]


def test_short_work_reports_nothing():
    calls: list[tuple[str, float]] = []
    watched(
        lambda: 1,
        title="t",
        share=lambda: 0.5,
        interrupt=lambda: None,
        report=lambda title, share: calls.append((title, share)),
    )
    assert calls == []


def test_long_work_reports_its_title_and_share():
    calls: list[tuple[str, float]] = []
    shares = iter([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    watched(
        lambda: time.sleep(0.35),
        title="counting",
        share=lambda: next(shares),
        interrupt=lambda: None,
        report=lambda title, share: calls.append((title, share)),
    )
    assert calls[:2] == [("counting", 0.1), ("counting", 0.2)]


@pytest.mark.parametrize("error", [ValueError("mine"), TimeoutError("mine")])
def test_an_error_of_the_work_comes_through(error):
    def fail():
        raise error

    with pytest.raises(type(error), match="mine") as caught:
        watched(fail, title="t", share=lambda: 0.0, interrupt=lambda: None, report=silent)
    assert caught.value is error


def test_an_interrupt_stops_the_work_and_comes_through():
    stop = threading.Event()

    def report(title: str, share: float) -> None:
        raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        watched(
            lambda: stop.wait(30), title="t", share=lambda: 0.0, interrupt=stop.set, report=report
        )
    assert stop.is_set()
    assert time.monotonic() - started < 5


def test_an_error_of_the_reporter_stops_the_work_too():
    stop = threading.Event()

    def report(title: str, share: float) -> None:
        raise BrokenPipeError

    started = time.monotonic()
    with pytest.raises(BrokenPipeError):
        watched(
            lambda: stop.wait(30), title="t", share=lambda: 0.0, interrupt=stop.set, report=report
        )
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "error", [RuntimeError("mine"), TimeoutError("mine"), EquipoiseError("mine")]
)
def test_the_reporter_of_work_cancels_a_long_step_of_it(error):
    stop, calls = threading.Event(), []

    def report(title: str, share: float) -> None:
        calls.append((title, share))
        if len(calls) == 3:
            raise error

    @cancellable
    def step(*, progress=silent):
        progress("inner", 0.2)
        try:
            watched(
                lambda: stop.wait(30), title="t", share=float, interrupt=stop.set, report=silent
            )
        except (RuntimeError, OSError, EquipoiseError):  # as code does that reads a table
            pytest.fail("the error of the reporter was mistaken for another")

    @cancellable
    def work(*, progress=silent):
        progress("outer", 0.1)
        try:
            step(progress=progress)
        except (RuntimeError, OSError, EquipoiseError):
            pytest.fail("the error of the reporter was mistaken for another")

    with pytest.raises(type(error)) as caught:
        work(progress=report)
    assert caught.value is error
    assert stop.is_set()
    assert calls == [("outer", 0.1), ("inner", 0.2), ("inner", 0.2)]
    pulse()  # nothing is repeated outside of the work
    assert len(calls) == 3


def test_an_error_of_cancellable_work_comes_through():
    @cancellable
    def work(*, progress=silent):
        progress("t", 0.5)
        raise OSError("mine")

    with pytest.raises(OSError, match="mine"):
        work(progress=lambda title, share: None)


SLOW = "SELECT a.range % 2 AS s, b.range % 2 AS y FROM range(100000000) a, range(1000) b"


def test_a_scan_reports_shares_between_nothing_and_all():
    calls: list[tuple[str, float]] = []

    def report(title: str, share: float) -> None:
        calls.append((title, share))
        if len(calls) == 3:
            raise KeyboardInterrupt

    engine = DuckDBEngine(report=report)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        engine.counts(locate({"x": [1]}, sql=SLOW), CountRequest(sensitive=("s",), label="y"))
    assert time.monotonic() - started < 10
    assert len(calls) == 3
    assert all(title == "counting the frame" and 0 <= share <= 1 for title, share in calls)
    # The engine works on after an interrupt.
    engine._session.report = silent
    assert engine.distinct(locate({"x": [1]}), "x") == {"1": 1}
    engine.close()


def test_an_interrupted_scan_is_no_error_of_ours():
    engine = DuckDBEngine()
    timer = threading.Timer(0.3, engine._session.connection.interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        engine.counts(locate({"x": [1]}, sql=SLOW), CountRequest(sensitive=("s",), label="y"))
    assert not isinstance(caught.value, EquipoiseError)
    engine.close()
