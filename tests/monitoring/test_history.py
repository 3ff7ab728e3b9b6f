"""The history of a stream: periods, lines, alarms, and its page."""

from __future__ import annotations

import datetime
import json

import pytest

import equipoise as eq
from equipoise.reports.pages import write_page
from streams import START, biased, counts, fill, quiet


@pytest.fixture
def monitor(tmp_path):
    with eq.Monitor(tmp_path / "bias.sqlite") as opened:
        yield opened


def test_every_period_has_its_own_numbers(monitor):
    batches = quiet(20)
    fill(monitor, batches)
    history = monitor.history("hires", group="sex=w, hired=yes")
    assert [p.rows for p in history.periods] == [batch.n for batch in batches]
    (line,) = history.lines
    for i, batch in enumerate(batches):
        assert line.ub[i] == pytest.approx(eq.measure(batch)["sex=w", "yes"].ub)
        rate = history.periods[i].rates[history.labels.index("yes")]
        assert rate == pytest.approx(batch.of("hired=yes") / batch.n)
    window = batches[-3] + batches[-2] + batches[-1]
    assert history.window == 3
    assert line.window_ub[-1] == pytest.approx(eq.measure(window)["sex=w", "yes"].ub)
    assert line.low[-1] < 0 < line.high[-1]  # the bias that the batches were drawn with


def test_many_batches_become_days_and_weeks(monitor):
    fill(monitor, quiet(400))
    weekly = monitor.history("hires")
    assert 50 <= len(weekly.periods) <= 60
    assert sum(p.rows for p in weekly.periods) == 40_000
    assert sum(p.batches for p in weekly.periods) == 400
    assert {p.start.weekday() for p in weekly.periods} == {0}
    fill(monitor, quiet(100), name="hourly", step=datetime.timedelta(hours=5))
    assert len(monitor.history("hourly").periods) == 100


def test_an_alert_has_its_beginning_and_its_end(monitor):
    fill(monitor, quiet(20) + biased(20, seed=2))
    (alarm,) = [
        a for a in monitor.history("hires").alarms if str(a.group) == "sex=w" and a.label == "yes"
    ]
    assert alarm.end is None
    assert alarm.start > START + datetime.timedelta(days=20)


def test_a_period_with_another_mix_is_told(monitor):
    usual = quiet(30)
    odd = counts({("w", "yes"): 80, ("m", "no"): 20})
    fill(monitor, [*usual, odd])
    history = monitor.history("hires")
    assert history.unusual[0].start == START + datetime.timedelta(days=30)
    assert "have another mix of groups and labels" in " ".join(history.sentences)
    distance = history.periods[-1].distance
    rest = usual[0]
    for batch in usual[1:]:
        rest += batch
    cells = {cell: n / rest.n for cell, n in rest.cells().items()}
    here = {cell: n / odd.n for cell, n in odd.cells().items()}
    wanted = sum(abs(cells.get(c, 0) - here.get(c, 0)) for c in {*cells, *here}) / 2
    assert distance == pytest.approx(wanted)


def test_late_batches_are_shown_at_their_time(monitor):
    fill(monitor, quiet(5))
    fill(monitor, quiet(1, seed=9), start=START - datetime.timedelta(days=1))
    history = monitor.history("hires")
    assert history.periods[0].start == START - datetime.timedelta(days=1)
    assert len(history.periods) == 6


def test_a_history_is_plain_data_and_a_page(monitor, tmp_path):
    nasty = "<script>alert(1)</script>"
    more = counts({(nasty, "yes"): 90, (nasty, "no"): 10})
    fill(monitor, [batch + more for batch in biased(30)])
    history = monitor.history("hires")
    data = json.loads(history.to_json())
    assert len(data["periods"]) == 30
    assert history.to_arrow().num_rows == 30
    assert history.to_csv().count("\n") == 31
    write_page(history, tmp_path / "h.html", source="hires")
    page = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert nasty not in page
    assert "Biases over time" in page
    assert page.count("<svg") == 3
    assert "://" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize("days", [1, 2])
def test_a_short_history_has_a_page_too(monitor, tmp_path, days):
    fill(monitor, quiet(days))
    write_page(monitor.history("hires"), tmp_path / "h.html")
    assert "<svg" in (tmp_path / "h.html").read_text(encoding="utf-8")


def test_a_history_without_batches_has_a_page_without_charts(monitor, tmp_path):
    fill(monitor, quiet(1))
    monitor.withdraw("hires", id=monitor.batches("hires").batches[0].id)
    history = monitor.history("hires")
    assert history.periods == ()
    write_page(history, tmp_path / "h.html")
    page = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert "Nothing can be judged yet" in page
    assert "<svg" not in page


def test_times_are_shown_in_a_zone(monitor):
    fill(monitor, quiet(3))
    assert (
        "2025-12-31 19:00-05:00"
        in monitor.history("hires", timezone="America/New_York").grid().rows[0][0]
    )
