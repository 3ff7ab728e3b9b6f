"""Checks of streams: alerts, since when, groups that cannot be judged, acknowledged and merged batches."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq
from equipoise.errors import InputError, PatternError
from streams import START, biased, counts, day, drawn, fill, quiet


def finding(check, group, label="yes"):
    return next(f for f in check.findings if str(f.group) == group and f.label == label)


def test_a_quiet_stream_raises_no_alert(monitor):
    fill(monitor, quiet(60))
    check = monitor.check("hires")
    assert (check.status, check.exit_code, check.alerts) == ("inside", 0, ())
    assert (
        check.outcome
        == "No alert: the evidence against the limit is not strong enough for any of the 4 group and "
        "label pairs."
    )
    assert (check.batches, check.rows) == (60, 6000)


def test_a_biased_stream_raises_one_and_says_how_sure(monitor):
    fill(monitor, biased(30))
    check = monitor.check("hires")
    assert (check.status, check.exit_code) == ("outside", 1)
    worst = finding(check, "sex=w")
    assert worst.kind == "outside"
    assert worst.log10_e > 2
    # The true rates are .1 and .4, and the overall rate .28.
    assert worst.ub == pytest.approx(1 - 0.1 / 0.28, abs=0.1)
    assert worst.ub_low < 1 - 0.1 / 0.28 < worst.ub_high
    assert check.alerts[0].log10_e == max(f.log10_e for f in check.alerts)
    told = check.explain(replace(worst, log10_e=math.log10(250.9)))
    assert told.endswith(
        "the probability of ever seeing such strong evidence would be at most 1 in 250, or 1 in 62 for any "
        "of the 4 groups and labels that are tested."
    )
    assert check.explain(replace(worst, log10_e=0.5)).endswith(
        "at most 1 in 3. 4 groups and labels are tested."
    )


@pytest.mark.parametrize(("log10_e", "written"), [(2.9999, "999"), (39.9, "10³⁹"), (-9, "<0.001")])
def test_evidence_is_written_the_same_in_sentences_and_tables(monitor, log10_e, written):
    fill(monitor, biased(30))
    check = monitor.check("hires")
    check = replace(check, findings=(replace(check.alerts[0], log10_e=log10_e),))
    assert check.grid().to_dict()["rows"][0][6] == written
    if log10_e > 0:
        assert check.sentences[1].endswith(f"at most 1 in {written}.")


def test_one_pair_is_told_in_the_singular(monitor):
    fill(monitor, biased(30))
    rule = {"group": "sex=w", "label": "yes", "max_abs_ub": 0.1}
    check = monitor.check("hires", policy={"rules": [rule]})
    assert check.outcome == "Alert: 1 of 1 group and label pair is outside its limit."
    assert "groups and labels" not in check.sentences[1]
    wide = {"policy": {"rules": [{**rule, "max_abs_ub": 0.9}]}}
    assert monitor.check("hires", **wide).outcome == (
        "No alert: the evidence against the limit is not strong enough for the one group and label pair."
    )
    assert monitor.check("hires", **wide, alert_on="changes").outcome == (
        "No alert: the change detector is not above its threshold for the one group and label pair."
    )


def test_ub_within_batches_does_not_mix_different_days(monitor):
    # Everybody has the rate of the day, but women come on bad days: pooled they look worse.
    good = counts({("w", "yes"): 8, ("w", "no"): 2, ("m", "yes"): 72, ("m", "no"): 18})
    bad = counts({("w", "yes"): 18, ("w", "no"): 72, ("m", "yes"): 2, ("m", "no"): 8})
    fill(monitor, [good, bad] * 20)
    assert abs(eq.measure(monitor.counts("hires"))["sex=w", "yes"].ub) > 0.4
    check = monitor.check("hires")
    assert check.status == "inside"
    assert finding(check, "sex=w").ub == pytest.approx(0, abs=1e-12)
    assert finding(check, "sex=w").log10_e <= 0


def test_a_change_says_since_when(monitor):
    fill(monitor, quiet(60, seed=3) + biased(25, seed=4))
    check = monitor.check("hires")
    women = finding(check, "sex=w")
    assert women.kind == "outside"
    begins = START + datetime.timedelta(days=60)
    assert abs(women.since - begins) <= datetime.timedelta(days=3)
    assert women.raised >= begins
    assert women.changed


def test_the_change_detector_can_be_what_alerts(monitor):
    fill(monitor, quiet(400, seed=5) + biased(6, seed=6))
    by_evidence = monitor.check("hires")
    by_changes = monitor.check("hires", alert_on="changes")
    assert by_evidence.status == "inside"
    assert [str(f.group) for f in by_evidence.changes]
    assert "The change detector reports" in " ".join(by_evidence.sentences)
    assert by_changes.exit_code == 1
    assert {f.kind for f in by_changes.alerts} == {"changed"}
    assert by_changes.outcome.endswith("has left its limit according to the change detector.")
    said = by_changes.sentences[1]
    assert "has left the limit |uniform_bias| ≤ 0.1" in said
    assert "at least 1,000 batches apart on average, for all groups and labels together" in said
    assert "at most 1 in" not in said
    assert monitor.check("hires", alert_on="both").exit_code == 1


def test_every_day_gives_the_same_answer_as_all_days_at_once(monitor):
    batches = quiet(20, seed=7) + biased(20, seed=8)
    seen = []
    for i, batch in enumerate(batches):
        monitor.add(batch, name="hires", at=START + i * datetime.timedelta(days=1))
        seen.append(finding(monitor.check("hires"), "sex=w").log10_e)
    history = monitor.history("hires", group="sex=w, hired=yes")
    (line,) = history.lines
    assert line.log10_e == pytest.approx(seen, abs=1e-9)


def test_limits_come_from_one_policy(monitor, tmp_path):
    fill(monitor, biased(30, women=0.25, men=0.4))
    assert monitor.check("hires", max_abs_ub=0.1).exit_code == 1
    assert monitor.check("hires", max_abs_ub=0.5).exit_code == 0
    rules = [
        {"group": "sex=w", "max_abs_ub": 0.9},
        {"group": "sex=m", "label": "no", "max_abs_ub": 0.9},
    ]
    policy = {"max_abs_ub": 0.1, "rules": rules}
    alerts = monitor.check("hires", policy=policy).alerts
    assert [(str(f.group), f.label) for f in alerts] == [("sex=m", "yes")]
    file = tmp_path / "equipoise.toml"
    file.write_text(
        '[check]\nlabel = "hired"\nmax-abs-ub = 0.1\n'
        '[[check.rules]]\ngroup = "sex=w"\nmax-abs-ub = 0.9\n'
        '[[check.rules]]\ngroup = "sex=m"\nlabel = "no"\nmax-abs-ub = 0.9\n',
        encoding="utf-8",
    )
    again = monitor.check("hires", policy=file).alerts
    assert [(str(f.group), f.label) for f in again] == [("sex=m", "yes")]
    only_labels = {"rules": [{"label": "yes", "max_abs_ub": 0.1}]}
    assert {f.label for f in monitor.check("hires", policy=only_labels).findings} == {"yes"}


def test_a_wanted_ratio_is_the_middle_of_the_limits(monitor):
    fill(monitor, biased(40, women=0.15, men=0.30))
    overall = 0.4 * 0.15 + 0.6 * 0.30
    rules = [
        {"group": "sex=w", "label": "yes", "k": 0.15 / overall, "max_abs_ub": 0.1},
        {"group": "sex=m", "label": "yes", "k": 0.30 / overall, "max_abs_ub": 0.1},
    ]
    assert monitor.check("hires", policy={"rules": rules}).exit_code == 0
    wrong = [{**rules[0], "k": 1.5}]
    assert monitor.check("hires", policy={"rules": wrong}).exit_code == 1


def three(rng, rates, rows=60):
    cells = {}
    for group, rate in rates.items():
        hired = int(rng.binomial(rows, rate))
        cells |= {(group, "yes"): hired, (group, "no"): rows - hired}
    return counts({cell: n for cell, n in cells.items() if n}, sensitive=("race",))


def test_more_comparisons_than_a_machine_can_make_are_refused(monitor, monkeypatch):
    cells = {(f"g{i}", label): 5 for i in range(20) for label in ("yes", "no")}
    fill(monitor, [counts(cells)])
    monkeypatch.setattr("equipoise.monitoring.comparisons._MOST", 20 * 18 - 1)
    with pytest.raises(InputError, match=r"more than 359 ways, .* `min_count` or `max_order`"):
        monitor.check("hires", four_fifths=True, favourable="yes")
    assert len(monitor.check("hires").findings) == 40


def test_the_four_fifths_rule_compares_with_the_best_off_group(monitor):
    rng = np.random.default_rng(9)
    fill(monitor, [three(rng, {"a": 0.5, "b": 0.5, "c": 0.25}) for _ in range(40)])
    check = monitor.check("hires", four_fifths=True, favourable="yes")
    assert [(str(f.group), f.label) for f in check.alerts] == [("race=c", "yes")]
    assert "0.8 against the best-off group" in check.alerts[0].rule.limits
    near = eq.Monitor(monitor._address)
    fill(near, [three(rng, {"a": 0.5, "b": 0.45, "c": 0.42}) for _ in range(40)], name="near")
    assert near.check("near", four_fifths=True, favourable="yes").exit_code == 0
    with pytest.raises(InputError, match="needs to know which label value is favourable"):
        monitor.check("hires", four_fifths=True)


@pytest.mark.parametrize("limits", [{"max": 1.25}, {"min": 0.2, "max": 1.25}, {"max_abs": 1}])
def test_no_ratio_to_the_best_off_group_is_above_one(monitor, limits):
    rng = np.random.default_rng(9)
    fill(monitor, [three(rng, {"a": 0.6, "b": 0.6, "c": 0.2}) for _ in range(30)])
    rule = {"measure": "impact_ratio", "reference": "best", "label": "yes", **limits}
    check = monitor.check("hires", policy={"rules": [rule]})
    assert check.status == "inside"
    assert [f.log10_e for f in check.findings] == pytest.approx([0, 0, 0], abs=1e-12)
    assert finding(check, "race=c").value == pytest.approx(1 / 3, abs=0.05)
    with pytest.raises(InputError, match="monitored with a limit from below only"):
        monitor.check("hires", policy={"rules": [{**rule, "max": 0.9}]})


def test_a_favourable_label_that_is_given_comes_before_that_of_the_policy(monitor):
    fill(monitor, biased(30))
    policy = {"four_fifths": True, "favourable": "no"}
    for given, label in (({}, "no"), ({"favourable": "yes"}, "yes")):
        watched = monitor.check("hires", policy=policy, **given).watched
        assert (watched.favourable, [rule.label for rule in watched.rules]) == (label, [label])
    best = {"favourable": "yes", "rules": [{"min_impact_ratio": 0.8, "reference": "best"}]}
    assert {f.label for f in monitor.check("hires", policy=best).findings} == {"yes"}


def test_a_ratio_to_a_named_group_is_tested(monitor):
    rng = np.random.default_rng(10)
    fill(monitor, [three(rng, {"a": 0.5, "b": 0.5, "c": 0.2}) for _ in range(40)])
    rule = {"measure": "impact_ratio", "min": 0.8, "reference": "race=a", "label": "yes"}
    check = monitor.check("hires", policy={"rules": [rule]})
    assert [str(f.group) for f in check.findings] == ["race=c", "race=b"]
    assert [str(f.group) for f in check.alerts] == ["race=c"]
    unseen = monitor.check("hires", policy={"rules": [{**rule, "reference": "race=z"}]})
    assert unseen.findings == ()
    assert unseen.remarks == ("A rule names race=z, which no batch has contained so far.",)
    with pytest.raises(InputError, match="cannot be tested batch by batch"):
        monitor.check("hires", policy={"rules": [{"measure": "mean_difference", "max_abs": 0.1}]})


def test_small_and_vanished_groups_are_states_of_their_own(monitor):
    tiny = counts({("x", "yes"): 2, ("w", "yes"): 1, ("w", "no"): 1})
    fill(monitor, [*quiet(20), tiny])
    check = monitor.check("hires")
    assert check.status == "undecided"
    assert check.exit_code == 3
    assert finding(check, "sex=x").kind == "too small"
    assert "have too few rows to judge. Use `min_count` to leave out small groups." in check.outcome
    assert monitor.check("hires", min_count=30).exit_code == 0

    men = counts({("m", "yes"): 30, ("m", "no"): 70, ("x", "yes"): 3, ("x", "no"): 7})
    later = datetime.timedelta(days=30)
    fill(monitor, [men] * 3, start=START + later)
    check = monitor.check("hires", min_count=50)
    women = finding(check, "sex=w")
    assert (women.kind, women.last_seen) == ("vanished", START + datetime.timedelta(days=20))
    assert (check.status, check.exit_code) == ("undecided", 3)
    assert check.outcome == "No alert, but 1 group has vanished."
    assert check.sentences[1] == "Vanished: sex=w, whose last rows are of 2026-01-21."


def test_a_stream_with_nothing_to_compare_is_undecided(monitor):
    fill(monitor, [counts({("w", "yes"): 5, ("w", "no"): 5})] * 3)
    check = monitor.check("hires")
    assert (check.status, check.findings) == ("undecided", ())
    assert "there is nothing to test yet" in check.outcome


def test_acknowledging_begins_the_tests_anew(monitor):
    fill(monitor, biased(30))
    assert monitor.check("hires").exit_code == 1
    monitor.acknowledge("hires", reason="the form is mended")
    fill(monitor, quiet(20), start=START + datetime.timedelta(days=30))
    check = monitor.check("hires")
    assert check.exit_code == 0
    assert any("the form is mended" in text for text in check.remarks)
    assert finding(check, "sex=w").batches == 20
    fill(monitor, biased(30, seed=2), start=START + datetime.timedelta(days=60))
    assert monitor.check("hires").exit_code == 1


def test_withdrawing_the_cause_ends_an_alert(monitor):
    fill(monitor, [*quiet(10), *biased(6, women=0.01, men=0.9), *quiet(10, seed=2)])
    assert monitor.check("hires").exit_code == 1
    for batch in monitor.batches("hires").batches[10:16]:
        monitor.withdraw("hires", id=batch.id)
    assert monitor.check("hires").exit_code == 0


def test_merging_keeps_totals_and_evidence(monitor):
    fill(monitor, biased(60, women=0.2, men=0.35))
    before, total = monitor.check("hires"), monitor.counts("hires")
    merged, into = monitor.merge("hires", older_than="14d")
    assert (merged, into) == (39, 6)
    assert monitor.counts("hires") == total
    after = monitor.check("hires")
    assert after.batches == 60
    for one, other in zip(before.findings, after.findings, strict=True):
        assert other.log10_e == pytest.approx(one.log10_e, abs=1e-9)
        assert (other.kind, other.since, other.raised) == (one.kind, one.since, one.raised)
    # And the batches that come next are tested as if nothing had been merged.
    more = biased(5, seed=3, women=0.2, men=0.35)
    fill(monitor, more, start=START + datetime.timedelta(days=60))
    whole = eq.Monitor(monitor._address + ".whole")
    fill(whole, biased(60, women=0.2, men=0.35))
    fill(whole, more, start=START + datetime.timedelta(days=60))
    for one, other in zip(
        whole.check("hires").findings, monitor.check("hires").findings, strict=True
    ):
        assert other.log10_e == pytest.approx(one.log10_e, abs=1e-9)
    assert monitor.merge("hires", older_than="14d") == (7, 1)
    assert finding(monitor.check("hires"), "sex=w").log10_e == pytest.approx(
        finding(whole.check("hires"), "sex=w").log10_e, abs=1e-9
    )


def test_merged_batches_are_still_known(monitor):
    batches = quiet(30)
    added = fill(monitor, batches)
    monitor.merge("hires", older_than="7d", every="week")
    first = monitor.add(batches[0], name="hires", at=START)
    assert first.added == 0
    assert monitor.counts("hires").n == 3000
    old = added[0].batch.id
    with pytest.raises(InputError, match="was merged with others and can no longer be corrected"):
        monitor.add(day(), name="hires", at=START, id=old, replace=True)
    with pytest.raises(InputError, match="was merged with others and can no longer be withdrawn"):
        monitor.withdraw("hires", id=old)
    assert monitor.merge("hires", older_than="7d", every="week") == (0, 0)


def test_rules_that_were_not_checked_before_merging_begin_after_it(monitor):
    fill(monitor, biased(60))
    monitor.check("hires")
    monitor.merge("hires", older_than="14d")
    check = monitor.check("hires", max_abs_ub=0.2)
    assert any("The tests start after the merged batches" in text for text in check.remarks)
    (said,) = monitor.check("hires").remarks
    assert said == "The confidence sequences use only the 21 batches that were not merged."


def test_a_stream_that_was_merged_as_a_whole_says_so(monitor):
    fill(monitor, biased(20))
    monitor.merge("hires", older_than="1h", every="day")
    for batch in monitor.batches("hires").batches:
        if batch.state == "current":
            monitor.withdraw("hires", id=batch.id)
    check = monitor.check("hires", max_abs_ub=0.7)
    assert check.sentences == (
        "No batch has been added since the tests started, so there is nothing to test yet.",
        (
            "The tests start after the merged batches, because no evidence for these rules was kept when "
            "they were merged."
        ),
    )


def test_a_check_is_plain_data(monitor):
    fill(monitor, [*biased(30), counts({("<b>", "yes"): 1})])
    check = monitor.check("hires")
    data = json.loads(check.to_json())
    assert data["status"] == "outside"
    assert len(data["findings"]) == len(check.findings)
    assert data["alerts"][0]["pattern"] in ("sex=w", "sex=m")
    table = check.to_arrow()
    assert table.num_rows == len(check.findings)
    assert "<b>" not in check._repr_html_()
    assert math.isfinite(check.findings[0].e_value)


def test_options_are_checked(monitor):
    fill(monitor, [day()])
    for wrong, what in (
        ({"alpha": 0}, "`alpha` must be a number above 0 and below 1"),
        ({"max_abs_ub": -1}, "`max_abs_ub` must be a number of at least 0"),
        ({"alert_on": "never"}, "`alert_on` must be one of"),
        ({"min_count": 0}, "`min_count` must be a whole number of at least 1"),
    ):
        with pytest.raises(InputError, match=what):
            monitor.check("hires", **wrong)
    with pytest.raises(InputError, match="no keyword 'limit'"):
        monitor.check("hires", limit=0.1)
    with pytest.raises(PatternError, match="has no value z"):
        monitor.history("hires", group="sex=z")


def test_plans_need_only_the_counts_of_a_window(monitor):
    fill(monitor, [drawn(np.random.default_rng(i), 0.1, 0.4) for i in range(40)])
    plan = monitor.plan("hires", window="30d", tolerance=0.1)
    assert plan.counts == monitor.counts("hires", window="30d")
    assert plan.certificate.reached
    assert plan.additions > 0


def test_values_of_ratios_and_of_targets_are_told(monitor):
    fill(monitor, [day(women=30, men=60)] * 40)
    ratio = {"measure": "impact_ratio", "min": 0.8, "reference": "sex=m", "label": "yes"}
    check = monitor.check("hires", policy={"rules": [{**ratio, "group": "sex=w"}]})
    women = finding(check, "sex=w")
    assert women.kind == "outside"
    assert women.value == pytest.approx(0.5)
    assert "the ratio of rates is 0.5 and UB is +0.333" in check.explain(women)
    rule = {"group": "sex=w", "label": "yes", "k": 0.6, "max_abs_ub": 0.05}
    check = monitor.check("hires", policy={"rules": [rule]})
    women = finding(check, "sex=w")
    assert women.ub == pytest.approx(1 / 3)
    assert women.value == pytest.approx(1 - (2 / 3) / 0.6)
    assert "UB relative to K is −0.111" in check.explain(women)
    best = monitor.check("hires", four_fifths=True, favourable="yes")
    assert finding(best, "sex=w").value == pytest.approx(0.5)


def test_what_is_said_of_a_group_without_an_alert_is_no_alert(monitor):
    fill(monitor, quiet(10))
    check = monitor.check("hires")
    said = check.explain(finding(check, "sex=w"))
    assert "outside the limit" not in said
    assert said.startswith("There is no alert for sex=w for yes.")


def test_a_check_says_why_there_is_nothing_to_judge(monitor):
    monitor.add(counts({("w", "yes"): 3, ("w", "no"): 4}), name="hires", at="2026-01-01")
    assert monitor.check("hires").outcome.startswith("No group could be compared with others")
    fill(monitor, [day()] * 3, start=START + datetime.timedelta(days=3))
    few = monitor.check("hires", min_count=5000)
    assert few.outcome.startswith("No group with at least 5,000 rows could be compared")
    monitor.acknowledge("hires")
    assert monitor.check("hires").outcome.startswith(
        "No batch has been added since the tests started"
    )


def test_a_significance_of_single_tables_is_not_shown(monitor):
    fill(monitor, [day()] * 3)
    rule = {"min_impact_ratio": 0.8, "reference": "best", "label": "yes", "significance": 0.05}
    (limits,) = {f.rule.limits for f in monitor.check("hires", policy={"rules": [rule]}).findings}
    assert "p >" not in limits


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[chek]\nmax-abs-ub = 0.3", r"no table \[check\] with limits; it has chek"),
        ("", r"no table \[check\] with limits; it is empty"),
        ("[monitor]\nstore = 'x'", "it has monitor"),
    ],
)
def test_a_policy_file_has_limits(monitor, tmp_path, text, why):
    fill(monitor, quiet(3))
    (tmp_path / "limits.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=why):
        monitor.check("hires", policy=tmp_path / "limits.toml")
    with pytest.raises(InputError, match="`policy` must be a Policy, a mapping"):
        monitor.check("hires", policy=[1])


def test_spans_may_be_timedeltas(monitor):
    fill(monitor, quiet(5))
    days = datetime.timedelta(days=2)
    assert monitor.counts("hires", window=days) == monitor.counts("hires", window="2d")
    for wrong in (7, datetime.timedelta(), "0d", "999999999999w", "9" * 13 + "d"):
        with pytest.raises(InputError, match="a time span"):
            monitor.counts("hires", window=wrong)


def test_merging_keeps_the_evidence_of_rules_that_are_given_with_it(monitor, tmp_path):
    with eq.Monitor(tmp_path / "whole.sqlite") as whole:
        for each in (monitor, whole):
            fill(each, biased(40))
        # No check was made before.
        merged, into = monitor.merge("hires", older_than="5d", max_abs_ub=0.15)
        assert merged > into > 0
        one, other = (m.check("hires", max_abs_ub=0.15) for m in (monitor, whole))
        evidence = [f.log10_e for f in other.findings]
        assert [f.log10_e for f in one.findings] == pytest.approx(evidence)
        unknown = monitor.check("hires", max_abs_ub=0.3)
        assert any("no evidence for these rules" in text for text in unknown.remarks)


def test_rules_may_name_what_has_not_been_seen_yet(monitor):
    fill(monitor, quiet(5))
    rules = [
        {"max_abs_ub": 0.2},
        {"group": "sex=x", "max_abs_ub": 0.1},
        {"label": "maybe", "max_abs_ub": 0.1},
    ]
    check = monitor.check("hires", policy={"rules": rules})
    assert {f.rule.max_abs for f in check.findings} == {0.2}
    assert len(check.remarks) == 2
    assert "A rule names sex=x, which no batch has contained so far." in check.remarks
    fill(
        monitor, [counts({("x", "maybe"): 3, ("w", "yes"): 4})], start=START + datetime.timedelta(9)
    )
    assert {f.rule.max_abs for f in monitor.check("hires", policy={"rules": rules}).findings} == {
        0.1,
        0.2,
    }
    with pytest.raises(PatternError, match="no attribute 'age'"):
        monitor.check("hires", policy={"rules": [{"group": "age=3", "max_abs_ub": 0.1}]})


def test_rules_about_newer_batches_do_not_stop_a_merge(monitor):
    fill(monitor, quiet(20))
    late = {"name": "hires", "at": START + datetime.timedelta(days=20)}
    monitor.add(counts({("x", "yes"): 3, ("w", "yes"): 4}), tags={"region": "north"}, **late)
    monitor.check("hires", tags=["region=north"])
    monitor.check("hires", policy={"rules": [{"group": "sex=x", "max_abs_ub": 0.1}]})
    assert monitor.merge("hires", older_than="5d")[0] > 10
    assert monitor.check("hires", tags=["region=north"]).batches == 1


def test_merging_after_an_acknowledgement_keeps_rules_and_counts(tmp_path):
    checks = []
    for merged in (False, True):
        with eq.Monitor(tmp_path / f"{merged}.sqlite") as monitor:
            fill(monitor, biased(10))
            monitor.check("hires", max_abs_ub=0.2)
            monitor.acknowledge("hires")
            fill(monitor, biased(40, seed=2), start=START + datetime.timedelta(days=10))
            if merged:
                assert monitor.merge("hires", older_than="5d", every="month")[0] > 30
            checks.append(monitor.check("hires", max_abs_ub=0.2))
    whole, other = checks
    assert whole.tested == other.tested == 40
    evidence = [f.log10_e for f in whole.findings]
    assert [f.log10_e for f in other.findings] == pytest.approx(evidence)
    assert not any("no evidence" in text for text in other.remarks)


@pytest.mark.parametrize("reference", ["best", "rest", "sex=m"])
def test_the_ratio_of_rates_is_the_same_after_a_merge(tmp_path, reference):
    rng = np.random.default_rng(5)
    batches = [drawn(rng, 0.1 + i / 200, 0.4 - i / 300, women=20 + i) for i in range(40)]
    rule = {"measure": "impact_ratio", "min": 0.8, "reference": reference, "label": "yes"}
    checks = []
    for merged in (False, True):
        with eq.Monitor(tmp_path / f"{merged}.sqlite") as monitor:
            fill(monitor, batches)
            monitor.check("hires", policy={"rules": [rule]})
            if merged:
                assert monitor.merge("hires", older_than="5d", every="month")[0] > 30
            checks.append(monitor.check("hires", policy={"rules": [rule]}))
    values = [{str(f.group): f.value for f in check.findings} for check in checks]
    assert values[0] == pytest.approx(values[1])


@pytest.mark.parametrize("reference", ["best", "rest", "race=a"])
def test_the_ratio_of_rates_is_that_since_both_groups_are_large_enough(tmp_path, reference):
    rng = np.random.default_rng(6)
    batches = [three(rng, {"a": 0.6, "b": 0.3 + i / 200, "c": 0.5}, rows=9) for i in range(30)]
    rule = {"measure": "impact_ratio", "min": 0.8, "reference": reference, "label": "yes"}
    limits = {"policy": {"rules": [rule]}, "min_count": 9 * 28}
    checks = []
    for merged in (False, True):
        with eq.Monitor(tmp_path / f"{merged}.sqlite") as monitor:
            fill(monitor, batches[:20])
            monitor.check("hires", **limits)
            if merged:
                assert monitor.merge("hires", older_than="5d", every="week")[0] > 5
            fill(monitor, batches[20:], start=START + datetime.timedelta(days=20))
            checks.append(monitor.check("hires", **limits))
    values = [{str(f.group): f.value for f in check.findings} for check in checks]
    assert values[0]
    assert values[0] == pytest.approx(values[1])


def test_the_level_of_a_confidence_sequence_is_not_rounded(monitor):
    fill(monitor, biased(30))
    check = monitor.check("hires", alpha=0.001)
    assert "99.9% sequence" in check.text()
    assert "99.9% sequence" in check.markdown()


def test_a_confidence_sequence_of_the_past_stays_what_it_was(monitor):
    rng = np.random.default_rng(6)
    fill(monitor, [drawn(rng, 0.2, 0.4) for _ in range(30)])
    before = monitor.history("hires", group="sex=w, hired=yes").lines[0]
    many = [drawn(rng, 0.2, 0.4, women=400) for _ in range(30)]
    fill(monitor, many, start=START + datetime.timedelta(days=30))
    after = monitor.history("hires", group="sex=w, hired=yes").lines[0]
    assert after.low[:30] == pytest.approx(before.low, abs=0.02)
    assert after.high[:30] == pytest.approx(before.high, abs=0.02)
