"""The OpenMetrics text, read by the parser of Prometheus' own client."""

from __future__ import annotations

import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.errors import InputError
from streams import START, biased, counts, fill, quiet


def families(text):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    return {family.name: family for family in text_string_to_metric_families(text)}


def test_the_text_is_openmetrics(tmp_path):
    nasty = 'a "quoted"\\ value\nwith a break'
    with eq.Monitor(tmp_path / "bias.sqlite") as monitor:
        fill(monitor, biased(30))
        fill(monitor, [batch + counts({(nasty, "yes"): 5}) for batch in quiet(20)], name="calm")
        found = families(monitor.metrics())
        check = monitor.check("hires")
    status = {s.labels["stream"]: s.value for s in found["equipoise_status"].samples}
    assert status["hires"] == 1
    batches = {s.labels["stream"]: s.value for s in found["equipoise_batches"].samples}
    assert batches == {"hires": 30, "calm": 20}
    last = {
        s.labels["stream"]: s.value for s in found["equipoise_last_batch_timestamp_seconds"].samples
    }
    assert last["hires"] == START.timestamp() + 29 * 86400
    values = {
        (s.labels["group"], s.labels["label"]): s.value
        for s in found["equipoise_uniform_bias"].samples
        if s.labels["stream"] == "hires"
    }
    for finding in check.findings:
        assert abs(values[str(finding.group), finding.label] - finding.ub) < 1e-5
    alerts = [
        s
        for s in found["equipoise_alert"].samples
        if s.value == 1 and s.labels["stream"] == "hires"
    ]
    assert len(alerts) == len(check.alerts)
    groups = {s.labels["group"] for s in found["equipoise_group_rows"].samples}
    assert str(eq.Group({"sex": nasty})) in groups


def test_a_stream_that_cannot_be_checked_does_not_take_the_others_away(tmp_path):
    told = {}
    rules = {"policy": {"rules": [{"group": "race=x", "max_abs_ub": 0.2}]}}
    with eq.Monitor(tmp_path / "bias.sqlite") as monitor:
        fill(monitor, biased(3))
        calm = counts({("x", "yes"): 5, ("y", "no"): 5}, sensitive=["race"])
        fill(monitor, [calm] * 3, name="calm")
        found = families(monitor.metrics(**rules, failed=told.__setitem__))
        assert families(monitor.metrics(**rules)).keys() == found.keys()
        with pytest.raises(InputError, match="no attribute 'race'"):
            monitor.metrics("hires", **rules)
        with pytest.raises(InputError, match="`alpha`"):
            monitor.metrics(alpha=7)
    failed = {s.labels["stream"]: s.value for s in found["equipoise_check_failed"].samples}
    assert failed == {"calm": 0, "hires": 1}
    assert [s.labels["stream"] for s in found["equipoise_status"].samples] == ["calm"]
    assert "no attribute 'race'" in str(told["hires"])


def test_a_missing_label_and_its_name_as_a_text_are_two_series(tmp_path):
    rows = {"sex": ["m", "m", "w", "w"] * 9, "hired": [None, "<missing>", "yes", None] * 9}
    with eq.Monitor(tmp_path / "bias.sqlite") as monitor:
        monitor.add(
            pa.table(rows),
            name="hires",
            sensitive_features=["sex"],
            label="hired",
            missing_label="group",
        )
        labels = [
            s.labels["label"]
            for s in families(monitor.metrics())["equipoise_alert"].samples
            if s.labels["group"] == "sex=m"
        ]
    assert sorted(labels) == ["'<missing>'", "<missing>", "yes"]


def test_an_empty_store_has_no_samples(tmp_path):
    with eq.Monitor(tmp_path / "bias.sqlite") as monitor:
        fill(monitor, quiet(1))
        monitor.withdraw("hires", id=monitor.batches("hires").batches[0].id)
        found = families(monitor.metrics())
    assert [s.value for s in found["equipoise_status"].samples] == [3.0]
    assert found["equipoise_uniform_bias"].samples == []
