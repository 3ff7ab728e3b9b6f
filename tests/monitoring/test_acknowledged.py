"""What the history says of alerts that were acknowledged."""

from __future__ import annotations

import datetime
import json

import pytest

from equipoise.reports.history.data import biases, evidence
from equipoise.reports.pages import write_page
from streams import START, biased, fill, quiet

DAY = datetime.timedelta(days=1)


def told(alarm):
    return alarm.group, alarm.label, alarm.start, alarm.times


def lines(history):
    return {(line.group, line.label): line for line in history.lines}


def test_alerts_before_an_acknowledgement_stay_in_the_history(monitor):
    fill(monitor, biased(30))
    before = monitor.history("hires")
    assert before.alarms
    monitor.acknowledge("hires", reason="the form is mended")
    fill(monitor, quiet(20, seed=5), start=START + 30 * DAY)
    after = monitor.history("hires")
    assert after.check.alerts == ()
    assert list(map(told, after.alarms)) == list(map(told, before.alarms))
    for alarm in after.alarms:
        assert (alarm.end, alarm.ended) == (START + 29 * DAY, "acknowledgement")
    assert (
        f"{len(after.alarms)} earlier alerts lasted until the acknowledgement." in after.sentences
    )
    assert after.alarm_grid().rows[0][1] == "2026-01-30, acknowledged"
    data = json.loads(after.to_json())
    assert {alarm["ended"] for alarm in data["alarms"]} == {"acknowledgement"}
    (noted,) = data["acknowledgements"]
    assert noted["at"] == "2026-01-30T00:00:00+00:00"
    assert noted["text"] == "All alerts so far were acknowledged: the form is mended."


def test_the_evidence_before_is_what_it_was_and_begins_anew_after(monitor):
    fill(monitor, biased(30))
    before = lines(monitor.history("hires", group="sex=w"))
    monitor.acknowledge("hires")
    fill(monitor, quiet(20, seed=5), start=START + 30 * DAY)
    history = monitor.history("hires", group="sex=w")
    fill(monitor, quiet(20, seed=5), name="fresh")
    fresh = lines(monitor.history("fresh", group="sex=w"))
    for pair, line in lines(history).items():
        assert line.log10_e[:30] == pytest.approx(before[pair].log10_e)
        assert line.low[:30] == pytest.approx(before[pair].low, nan_ok=True)
        assert line.alert[:30] == before[pair].alert
        assert line.log10_e[30:] == pytest.approx(fresh[pair].log10_e)
        assert not any(line.alert[30:])


def test_right_after_an_acknowledgement_the_groups_with_alerts_are_drawn(monitor):
    fill(monitor, biased(30))
    monitor.acknowledge("hires")
    history = monitor.history("hires")
    assert history.check.findings == ()
    assert {str(line.group) for line in history.lines} == {"sex=w", "sex=m"}
    assert all(bar["alarms"] for bar in biases(history))


def test_without_any_alert_groups_are_drawn_right_after_an_acknowledgement(monitor):
    fill(monitor, quiet(30))
    monitor.acknowledge("hires")
    history = monitor.history("hires")
    assert history.alarms == ()
    assert {str(line.group) for line in history.lines} == {"sex=w", "sex=m"}


def test_each_stretch_has_its_own_alerts(monitor):
    fill(monitor, biased(20))
    monitor.acknowledge("hires")
    monitor.acknowledge("hires", reason="twice")  # with nothing in between
    fill(monitor, biased(20, seed=2), start=START + 20 * DAY)
    monitor.acknowledge("hires")
    fill(monitor, biased(20, seed=3), start=START + 40 * DAY)
    history = monitor.history("hires")
    own = [a for a in history.alarms if (str(a.group), a.label) == ("sex=w", "yes")]
    assert [a.ended for a in own] == ["acknowledgement", "acknowledgement", None]
    ends = [START + 19 * DAY, START + 39 * DAY]
    assert [a.end for a in own] == [*ends, None]
    assert all(a.start >= START + 20 * i * DAY for i, a in enumerate(own))
    assert [each.at for each in history.acknowledgements] == [ends[0], ends[0], ends[1]]


def test_alerts_that_ended_by_themselves_say_so(monitor):
    fill(monitor, biased(5) + quiet(60, seed=4))
    monitor.acknowledge("hires")
    history = monitor.history("hires")
    ended = {a.ended for a in history.alarms if a.start is not None}
    assert "evidence" in ended
    assert any("ended because the evidence fell" in said for said in history.sentences)


def test_acknowledgements_and_alerts_before_them_are_in_the_charts(monitor, tmp_path):
    fill(monitor, biased(30))
    monitor.acknowledge("hires", reason="mended")
    fill(monitor, quiet(20, seed=5), start=START + 30 * DAY)
    history = monitor.history("hires")
    for bar in biases(history):
        (rule,) = bar["breaks"]
        raised = [each["t"] for each in bar["alarms"]]
        assert raised
        assert max(raised) < rule["t"]
        assert {each["piece"] for each in bar["band"]} == {0, 1}  # a band does not cross the rule
        assert {each["piece"] for each in bar["band"] if each["t"] <= rule["t"]} == {0}
    assert evidence(history)["breaks"] == [rule]
    write_page(history, tmp_path / "h.html")
    page = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert "2026-01-30, acknowledged" in page
    assert "Grey line: alerts were acknowledged" in page
    assert '<td class="text whole">acknowledged</td>' in page
    assert "No alert has been raised" not in page


def test_of_merged_batches_nothing_is_guessed(monitor, tmp_path):
    fill(monitor, biased(40))
    monitor.check("hires")
    monitor.acknowledge("hires")
    fill(monitor, quiet(60, seed=5), start=START + 40 * DAY)
    assert monitor.history("hires").alarms
    monitor.merge("hires", older_than="80d", every="week")
    history = monitor.history("hires")
    assert history.alarms == ()
    assert [each.known for each in history.acknowledgements] == [False]
    (said,) = [s for s in history.sentences if "their evidence is no longer stored" in s]
    write_page(history, tmp_path / "h.html")
    page = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert "No alert has been raised" not in page
    assert said in page


def test_what_was_merged_before_a_stretch_does_not_matter_to_it(monitor):
    fill(monitor, biased(20))
    monitor.acknowledge("hires")
    fill(monitor, biased(60, seed=2), start=START + 20 * DAY)
    monitor.acknowledge("hires")
    fill(monitor, quiet(20, seed=5), start=START + 80 * DAY)
    before = monitor.history("hires")
    monitor.merge("hires", older_than="90d", every="day")
    after = monitor.history("hires")
    assert [each.known for each in after.acknowledgements] == [False, True]
    later = [alarm for alarm in before.alarms if alarm.end == START + 79 * DAY]
    assert later
    assert list(map(told, after.alarms)) == list(map(told, later))


def test_tags_choose_the_batches_of_all_stretches(monitor):
    for number, (north, south) in enumerate(zip(biased(20), quiet(20), strict=True)):
        monitor.add(north, name="hires", at=START + number * DAY, tags={"region": "north"})
        monitor.add(south, name="hires", at=START + number * DAY, tags={"region": "south"})
    monitor.acknowledge("hires")
    assert monitor.history("hires", tags=["region=north"]).alarms
    assert not monitor.history("hires", tags=["region=south"]).alarms


def test_the_time_of_an_acknowledgement_is_shown_in_the_zone(monitor):
    monitor._clock = lambda: datetime.datetime(2026, 11, 20, 8, 30, tzinfo=datetime.UTC)
    fill(monitor, quiet(3))
    monitor.acknowledge("hires")
    for zone, time in (("UTC", "2026-11-20 08:30"), ("Europe/Berlin", "2026-11-20 09:30+01:00")):
        said = monitor.check("hires", timezone=zone).sentences[-1]
        assert said.endswith(f"The tests start with the batches added after {time}.")


def test_it_is_told_from_which_batches_on_tests_are_made(monitor):
    fill(monitor, biased(5))
    monitor.acknowledge("hires", reason="mended")
    fill(monitor, quiet(5), start=START + datetime.timedelta(days=5))
    (remark,) = monitor.check("hires").remarks
    assert "The tests start with the batches added after 20" in remark
