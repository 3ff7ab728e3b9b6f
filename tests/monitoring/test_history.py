"""The history of a stream: periods, lines, alarms, and its page."""

from __future__ import annotations

import csv
import datetime
import html
import io
import json
import re

import numpy as np
import pytest

import equipoise as eq
from equipoise.monitoring.check import E_VALUE_TOLD, KINDS, SEQUENCE_TOLD, TIMES_TOLD, UB_TOLD
from equipoise.monitoring.periods import differences
from equipoise.reports.history.captions import (
    bias_caption,
    evidence_caption,
    population_captions,
)
from equipoise.reports.history.charts import COLOURS
from equipoise.reports.history.data import biases, evidence, population
from equipoise.reports.history.page import plot
from equipoise.reports.pages import write_page
from streams import START, biased, counts, day, fill, quiet

DAY = datetime.timedelta(days=1)


def written(history, folder):
    write_page(history, folder / "h.html")
    return (folder / "h.html").read_text(encoding="utf-8")


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
    said = " ".join(history.sentences)
    assert "the mix of groups and labels differs" in said
    assert "more than twice what is expected, and by more than chance explains" in said
    distance = history.periods[-1].distance
    rest = usual[0]
    for batch in usual[1:]:
        rest += batch
    cells = {cell: n / rest.n for cell, n in rest.cells().items()}
    here = {cell: n / odd.n for cell, n in odd.cells().items()}
    wanted = sum(abs(cells.get(c, 0) - here.get(c, 0)) for c in {*cells, *here}) / 2
    assert distance == pytest.approx(wanted)


@pytest.mark.parametrize(("cells", "rows", "days"), [(4, 100, 120), (40, 8, 60), (4, 100, 3)])
def test_chance_alone_seldom_makes_a_mix_unusual(cells, rows, days):
    rng = np.random.default_rng(cells + days)
    drawn = [rng.multinomial(rows, rng.dirichlet(np.ones(cells)), days).T for _ in range(200)]
    assert sum(differences(mixes)[2].any() for mixes in drawn) <= 20


def test_periods_without_rows_are_not_unusual():
    mixes = np.array([[30, 0, 28, 31, 29, 32], [70, 0, 72, 69, 71, 8], [0] * 6])
    distance, _, unusual = differences(mixes)
    assert np.isnan(distance[1])
    assert unusual.tolist() == [False] * 5 + [True]
    assert not differences(np.array([[30], [70]]))[2].any()
    assert not differences(np.array([[30, 40]]))[2].any()


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
    assert history.to_arrow().num_rows == 30 * len(history.lines)
    write_page(history, tmp_path / "h.html", source="hires")
    page = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert nasty not in page
    assert "Biases over time" in page
    assert page.count("<svg") == 6  # each chart also for a narrow screen
    assert "://" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize("days", [1, 2])
def test_a_single_period_is_numbers_and_two_are_charts(monitor, tmp_path, days):
    fill(monitor, quiet(days))
    history = monitor.history("hires")
    page = written(history, tmp_path)
    assert ("<svg" in page) == (days > 1)
    assert ("There is only one period so far" in page) == (days == 1)
    assert len(plot(history)) == (1 if days == 1 else 3)  # a picture of dots


def test_a_history_without_batches_has_a_page_without_charts(monitor, tmp_path):
    fill(monitor, quiet(1))
    monitor.withdraw("hires", id=monitor.batches("hires").batches[0].id)
    history = monitor.history("hires")
    assert history.periods == ()
    write_page(history, tmp_path / "h.html")
    page = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert "there is nothing to test yet" in page
    assert "<svg" not in page


def test_times_are_shown_in_a_zone(monitor):
    fill(monitor, quiet(3))
    assert (
        "2025-12-31 19:00-05:00"
        in monitor.history("hires", timezone="America/New_York").grid().rows[0][0]
    )


# --- groups and labels that are named -----------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("sex=*", "'sex' has no value '*'; it has: w, m"),
        ("sex=x", "'sex' has no value x"),
        ("hired=maybe", "'hired' has no value maybe"),
        ("*", "the group of all rows cannot be compared with other rows; name a value of sex"),
        (eq.Group(), "the group of all rows"),
        (3, "`group` is a Group or a pattern"),
    ],
)
def test_a_group_that_is_not_there_is_an_error(monitor, group, said):
    fill(monitor, quiet(3))
    with pytest.raises(eq.EquipoiseError) as refused:
        monitor.history("hires", group=group)
    assert said in str(refused.value)


def test_a_star_may_be_a_value(monitor):
    cells = {("*", "yes"): 30, ("*", "no"): 70, ("m", "yes"): 50, ("m", "no"): 50}
    fill(monitor, [counts(cells)] * 3)
    (line, _) = monitor.history("hires", group="sex=*").lines
    assert str(line.group) == "sex='*'"
    assert line.ub[0] == pytest.approx(1 - 0.3 / 0.4)


def test_a_group_that_cannot_be_compared_is_an_error(monitor):
    fill(monitor, quiet(3))
    with pytest.raises(eq.EquipoiseError, match="hires has no group sex=w that can be compared"):
        monitor.history("hires", group="sex=w", min_count=1000)


def test_a_label_alone_draws_the_groups_with_the_most_evidence_for_it(monitor):
    fill(monitor, biased(30))
    for label in ("yes", "no"):
        history = monitor.history("hires", group=f"hired={label}")
        found = [f for f in history.check.findings if f.label == label]
        assert [(line.group, line.label) for line in history.lines] == [
            (f.group, label) for f in found
        ]
        assert len(found) == 2


def test_frames_and_csv_have_a_line_for_each_period_and_drawn_group(monitor):
    fill(monitor, quiet(10) + biased(20))
    history = monitor.history("hires", group="sex=w")
    frame = history.to_arrow().to_pylist()
    assert len(frame) == 60
    for line in history.lines:
        own = [row for row in frame if row["label"] == line.label]
        assert {row["group"] for row in own} == {"sex=w"}
        assert [row["ub"] for row in own] == pytest.approx(line.ub)
        assert [row["n_cell"] for row in own] == list(line.cases)
        assert [row["n_group"] for row in own] == list(line.rows)
        assert [row["log10_e"] for row in own] == pytest.approx(line.log10_e)
        assert [row["alert"] for row in own] == list(line.alert)
        assert own[-1]["alert"]
        assert not own[0]["alert"]
        assert [row["rows"] for row in own] == [p.rows for p in history.periods]
    table = list(csv.DictReader(io.StringIO(history.to_csv())))
    assert list(table[0]) == history.to_arrow().column_names
    assert [row["label"] for row in table] == [row["label"] for row in frame]
    assert float(table[0]["ub"]) == frame[0]["ub"]


def test_periods_without_a_group_to_draw_are_still_in_the_table(monitor):
    fill(monitor, quiet(4))
    frame = monitor.history("hires", min_count=10_000).to_arrow().to_pylist()
    assert [row["rows"] for row in frame] == [100] * 4
    assert [row["ub"] for row in frame] == [None] * 4


# --- times --------------------------------------------------------------------------------------


def test_times_in_files_are_those_of_the_zone(monitor):
    fill(monitor, quiet(5) + biased(30))
    fill(monitor, quiet(1, seed=9), start=START - DAY)
    monitor.acknowledge("hires")
    here, there = monitor.history("hires"), monitor.history("hires", timezone="Asia/Kolkata")
    told, again = here.to_dict(), there.to_dict()
    assert told["periods"][0]["start"] == "2025-12-31T00:00:00+00:00"
    assert again["periods"][0]["start"] == "2025-12-31T05:30:00+05:30"
    pairs = list(zip(times_in(told), times_in(again), strict=True))
    assert len(pairs) > 80
    for one, other in pairs:
        assert one.endswith("+00:00")
        assert other.endswith("+05:30")
        assert moment(one) == moment(other)
    assert there.to_csv().splitlines()[1].startswith("2025-12-31T05:30:00+05:30,")
    listed = monitor.batches("hires", timezone="Asia/Kolkata")
    for at in (listed.to_dict()["batches"][0]["at"], listed.to_arrow().to_pylist()[0]["at"]):
        assert at == "2026-01-01T05:30:00+05:30"
    streams = monitor.streams(timezone="Asia/Kolkata").to_dict()["streams"]
    assert streams[0]["first"] == "2025-12-31T05:30:00+05:30"


moment = datetime.datetime.fromisoformat


def times_in(data):
    """All times in plain data but that at which it was made."""
    if isinstance(data, dict):
        for name, value in data.items():
            if name != "time":
                yield from times_in(value)
    elif isinstance(data, list):
        for value in data:
            yield from times_in(value)
    elif isinstance(data, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d", data):
        yield data


def test_late_batches_raise_alerts_when_they_arrive(monitor):
    fill(monitor, quiet(60, seed=3))
    early = START + datetime.timedelta(hours=5)
    fill(monitor, [day(10, 90)] * 3, start=early, step=datetime.timedelta(hours=1))
    history = monitor.history("hires", group="sex=w, hired=yes")
    (line,) = history.lines
    last = START + 59 * DAY
    (alarm,) = [a for a in history.alarms if (a.group, a.label) == (line.group, line.label)]
    assert alarm.start == last
    assert START < alarm.start_batch < START + DAY
    assert line.alert == (*[False] * 62, True)
    assert max(line.log10_e[:-1]) < 1 < line.log10_e[-1]
    assert line.log10_e[-1] == pytest.approx(history.check.alerts[1].log10_e, abs=1e-9)
    raised = history.alarm_grid().rows[0][0]
    assert raised == "2026-03-01 by the late batch of 2026-01-01 06:00"
    (bar,) = biases(history)
    assert [each["t"] for each in bar["alarms"]] == [bar["span"][1]]
    points = evidence(history)["points"]
    assert [each["t"] for each in points if each["log10_e"] > 1] == [bar["span"][1]]


def test_periods_that_would_lie_on_one_another_are_drawn_side_by_side(monitor):
    fill(monitor, quiet(1), start=START - 200 * DAY)
    fill(monitor, biased(20), step=datetime.timedelta(minutes=3))
    history = monitor.history("hires")
    drawn = population(history)
    assert not drawn["even"]
    assert [each["t"] for each in drawn["distances"]] == list(range(21))
    first = biases(history)[0]
    assert 0 < first["alarms"][0]["t"] < 20
    assert drawn["ticks"][0] == {"at": 0.0, "text": "2025-06-15"}
    fill(monitor, quiet(30), name="daily")
    assert population(monitor.history("daily"))["even"]


# --- text and page ------------------------------------------------------------------------------


def test_the_text_says_how_many_periods_there_are(monitor):
    fill(monitor, quiet(40))
    history = monitor.history("hires")
    for text in (history.text(), history.markdown()):
        assert "The last 12 of 40 periods:" in text
        assert UB_TOLD in text
        assert text.count("2026-02-") == 9 + 1  # and in the heading
        assert "2026-01-28" not in text
    assert "The last 2 of 40 periods:" in history.text(2)
    assert "2026-02-07" not in history.text(2)
    assert "All 40 periods:" in history.text(100)


def test_a_page_holds_thousands_of_groups_folded(monitor, tmp_path):
    cells = {
        (f"job {i}", label): n for i in range(1000) for label, n in (("yes", i % 3), ("no", 2))
    }
    fill(monitor, [counts({cell: n for cell, n in cells.items() if n})] * 2)
    history = monitor.history("hires")
    few = len(history.check.grid().rows)
    assert few > 520
    page = written(history, tmp_path)
    shown, _, rest = page.partition(f"<summary>and {few - 20:,} more</summary>")
    findings = shown.partition('<section id="alerts">')[2]
    assert findings.count("<tr>") == 21
    folded = rest.partition("</details>")[0]
    assert folded.count("<tr>") == 501
    assert f"… and {few - 520:,} more rows." in folded


def test_a_page_tells_where_a_stream_is_kept_and_what_ub_is(monitor, tmp_path):
    fill(monitor, biased(20))
    history = monitor.history("hires")
    write_page(history, tmp_path / "h.html", source="hires")
    page = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert f'<p class="source">{history.check.store}, 2026-01-01 to 2026-01-20</p>' in page
    assert html.escape(UB_TOLD) in page
    assert "The limit is |uniform_bias| ≤ 0.1." in page
    # The name of a group has room, and dates are not broken.
    first = page.partition('<section id="alerts">')[2]
    assert re.findall(r"<th[^>]*>([^<]*)</th>", first)[:3] == ["group", "label", "state"]
    assert '<td class="text whole">2026-01-01</td>' in first


def test_a_quiet_page_shows_the_groups_with_the_most_evidence(monitor, tmp_path):
    fill(monitor, quiet(20))
    history = monitor.history("hires")
    page = written(history, tmp_path)
    assert "There are none. These groups have the most evidence" in page
    near = history.check.nearest(3)
    inside = [f for f in history.check.findings if f.kind == "inside"]
    assert [row[1] for row in near.rows] == [str(f.group) for f in inside[:3]]
    best = max(f.log10_e for f in history.check.findings)
    assert inside[0].log10_e == best


@pytest.mark.parametrize("asked", [None, "sex=w, hired=yes"])
def test_of_two_rules_on_a_group_the_one_with_an_alert_is_drawn(monitor, asked):
    fill(monitor, biased(40))
    far = {"measure": "impact_ratio", "reference": "rest", "label": "yes", "min": 0.8}
    policy = {"rules": [{"max_abs_ub": 0.9}, far]}
    check = monitor.check("hires", policy=policy)
    history = monitor.history("hires", policy=policy, group=asked)
    (alert,) = check.alerts
    (alarm,) = history.alarms
    line = history.lines[0]
    assert (line.group, line.label) == (alert.group, alert.label) == (alarm.group, alarm.label)
    assert line.log10_e[-1] == pytest.approx(alert.log10_e, abs=1e-9)
    assert line.alert == tuple(period.start >= alarm.start for period in history.periods)


# --- charts that explain themselves -------------------------------------------------------------


def test_the_evidence_has_thresholds_with_words_and_an_axis_of_powers(monitor, tmp_path):
    fill(monitor, quiet(20))
    history = monitor.history("hires")
    drawn = evidence(history)
    upper, lower = drawn["thresholds"]
    assert (upper["above"], upper["below"]) == ("alert from 80", "")
    assert (lower["above"], lower["below"]) == ("", "no alert below 20")
    low, high = drawn["domain"]
    assert low < lower["at"] < upper["at"] < high
    assert [each["text"] for each in drawn["powers"]] == ["1", "10", "100"]
    caption = evidence_caption(history)
    assert "4 pairs of a group and a label are tested together: an e-value of 80 (upper" in caption
    assert "one below 20 (lower dashed line) never is" in caption
    page = written(history, tmp_path)
    for said in ("e-value (logarithmic)", "alert from 80", "no alert below 20", caption):
        assert said in page


def test_words_of_thresholds_do_not_lie_on_each_other_nor_on_the_axis(monitor):
    fill(monitor, biased(60))
    drawn = evidence(monitor.history("hires"))
    assert [each["text"] for each in drawn["powers"]] == ["1", "10⁵⁰", "10¹⁰⁰"]
    assert [each["below"] for each in drawn["thresholds"]] == ["", ""]


def test_thresholds_are_those_of_the_alerts(monitor):
    """An alert of one pair alone, and of changes, has other thresholds."""
    fill(monitor, biased(30))
    rule = {"group": "sex=w", "label": "yes", "max_abs_ub": 0.1}
    alone = monitor.history("hires", policy={"rules": [rule]})
    assert [each["above"] for each in evidence(alone)["thresholds"]] == ["alert from 20"]
    assert "An e-value of 20 (dashed line) or more is an alert." in evidence_caption(alone)
    changes = monitor.history("hires", alert_on="changes")
    assert evidence(changes)["thresholds"] == []
    assert "No threshold is drawn" in evidence_caption(changes)
    both = monitor.history("hires", alert_on="both")
    assert evidence_caption(both).endswith("The change detector raises alerts, too.")


def test_a_caption_says_what_a_dot_is_and_whether_all_are_seen(monitor):
    fill(monitor, quiet(20))
    caption = bias_caption(monitor.history("hires"))
    assert "Dots: UB of each batch, above 0 if the group has the label less often" in caption
    assert "Line: UB of the last 3 batches together" in caption
    assert "beyond the axis" not in caption
    fill(monitor, [day(95, 1)], start=START + 20 * DAY)
    assert "some lie beyond the axis" in bias_caption(monitor.history("hires"))
    fill(monitor, quiet(400), name="years")
    told = bias_caption(monitor.history("years"))
    assert re.search(r"UB of each period \(400 batches are drawn as \d+ periods\)", told)


def test_charts_say_which_labels_and_groups_are_left_out(monitor):
    labels = [f"grade {letter}" for letter in "ABCDEFGHIJKL"]
    cells = {(f"job {i}", label): 5 for i in range(11) for label in labels}
    fill(monitor, [counts(cells)] * 2)
    titles = population_captions(monitor.history("hires"))
    assert titles["rates"] == "Rates of hired, the first 9 of 12 labels"
    assert titles["sizes"] == "Shares of the 9 largest groups of one attribute"
    fill(monitor, quiet(2), name="few")
    assert population_captions(monitor.history("few")) == {
        "rates": "Rates of hired",
        "sizes": "Shares of groups of one attribute",
    }


def test_the_confidence_of_sequences_is_not_rounded_to_all(monitor):
    fill(monitor, biased(30))
    history = monitor.history("hires", alpha=0.001)
    assert "Band: 99.9% confidence sequence" in bias_caption(history)
    assert "99.9% sequence" in history.check.grid().headers


def test_a_page_says_what_its_columns_mean(monitor, tmp_path):
    fill(monitor, biased(20))
    page = written(monitor.history("hires"), tmp_path)
    for said in (E_VALUE_TOLD, SEQUENCE_TOLD, f"Outside: {KINDS['outside']}."):
        assert html.escape(said) in page
    assert html.escape(KINDS["vanished"]) not in page
    assert TIMES_TOLD in page
    assert "|uniform_bias| ≤ 0.1 for all groups" in page
    # Short names leave their room to the numbers beside them.
    assert '<td class="text short">sex=w</td>' in page
    fill(monitor, quiet(20), name="quiet")
    assert html.escape(E_VALUE_TOLD) in written(monitor.history("quiet"), tmp_path)


def test_an_axis_of_weeks_has_dates_with_their_year(monitor):
    fill(monitor, quiet(30))
    assert evidence(monitor.history("hires"))["format"] == "%Y-%m-%d"
    fill(monitor, quiet(20), name="hourly", step=datetime.timedelta(hours=1))
    assert evidence(monitor.history("hourly"))["format"] is None


def test_a_page_of_a_stream_that_cannot_be_tested_says_so(monitor, tmp_path):
    fill(monitor, [counts({("w", "yes"): 5, ("w", "no"): 5})] * 2)
    page = written(monitor.history("hires"), tmp_path)
    assert "<strong>not judged yet</strong>" in page
    assert "No group has been tested yet." in page
    assert "There are none." not in page.partition('<section id="population">')[0]


@pytest.mark.parametrize(("back", "colours"), [("#ffffff", COLOURS), ("#1c222b", COLOURS[2:])])
def test_the_lines_of_charts_are_seen_on_light_and_dark_pages(back, colours):
    def light(colour):
        parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.05 + sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    for colour in colours:
        ratio = light(colour) / light(back)
        assert max(ratio, 1 / ratio) >= 3, colour


def test_an_alert_of_merged_batches_is_drawn_where_its_evidence_is_known(monitor):
    """When it was raised is not known; the first day of the stream would be wrong."""
    fill(monitor, [*quiet(30), *biased(40)])
    monitor.check("hires")
    monitor.merge("hires", older_than="20d")
    history = monitor.history("hires", group="sex=w, hired=yes")
    (alarm,) = [a for a in history.alarms if str(a.group) == "sex=w" and a.label == "yes"]
    assert alarm.start is None
    (bar,) = biases(history)
    (drawn,) = bar["alarms"]
    assert drawn["t"] == min(point["t"] for point in evidence(history)["points"]) > bar["span"][0]
    assert drawn["word"] == "earlier alert"
    assert drawn["about"].endswith("raised in batches that were merged")
