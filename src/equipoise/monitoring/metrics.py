"""The state of streams as OpenMetrics text, for Prometheus and others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from equipoise.lattice import format_value
from equipoise.measures.policy import EXIT_CODES
from equipoise.values import Value

if TYPE_CHECKING:
    from equipoise.monitoring.check import StreamCheck, StreamFinding

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""The media type of the text, for servers that serve it."""

_FAMILIES = (
    ("equipoise_check_failed", "gauge", "1 if the stream cannot be checked, else 0."),
    ("equipoise_batches", "gauge", "Batches of the stream, without those that were withdrawn."),
    ("equipoise_rows", "gauge", "Rows of these batches."),
    ("equipoise_last_batch_timestamp_seconds", "gauge", "Time of the latest batch."),
    ("equipoise_status", "gauge", "0 no alert, 1 an alert, 3 not enough evidence."),
    ("equipoise_alerts", "gauge", "Groups and labels with an alert."),
    ("equipoise_group_rows", "gauge", "Rows of the group in the batches that are tested."),
    ("equipoise_uniform_bias", "gauge", "Uniform Bias of the group and label within batches."),
    ("equipoise_log10_e_value", "gauge", "Decimal logarithm of the e-value against the limit."),
    ("equipoise_alert", "gauge", "1 if the group and label have an alert, else 0."),
    ("equipoise_changed", "gauge", "1 if the change detector is above its threshold, else 0."),
    (
        "equipoise_undecided",
        "gauge",
        "1 if the group has vanished or is too small to judge, else 0.",
    ),
)


def write_metrics(checks: Sequence[StreamCheck], failed: Sequence[str] = ()) -> str:
    """Write the checks of streams, and the names of those whose check failed, as one OpenMetrics text.

    >>> print(write_metrics([]).splitlines()[-1])
    # EOF
    """
    samples = {name: list[str]() for name, _, _ in _FAMILIES}
    told = {**dict.fromkeys((check.name for check in checks), 0), **dict.fromkeys(failed, 1)}
    samples["equipoise_check_failed"] += [
        f"equipoise_check_failed{_labels(stream=name)} {value}" for name, value in told.items()
    ]
    for check in checks:
        _stream(samples, check)
        alerts = set(map(id, check.alerts))
        for finding in check.findings:
            _finding(samples, check, finding, alerted=id(finding) in alerts)
    lines = []
    for name, kind, about in _FAMILIES:
        unit = ["# UNIT equipoise_last_batch_timestamp_seconds seconds"] * name.endswith("_seconds")
        lines += [f"# TYPE {name} {kind}", *unit, f"# HELP {name} {about}", *samples[name]]
    return "\n".join([*lines, "# EOF", ""])


def _stream(samples: dict[str, list[str]], check: StreamCheck) -> None:
    named = _labels(stream=check.name)
    samples["equipoise_batches"].append(f"equipoise_batches{named} {check.batches}")
    samples["equipoise_rows"].append(f"equipoise_rows{named} {check.rows}")
    if check.last is not None:
        time = f"{check.last.timestamp():.3f}"
        samples["equipoise_last_batch_timestamp_seconds"].append(
            f"equipoise_last_batch_timestamp_seconds{named} {time}"
        )
    samples["equipoise_status"].append(f"equipoise_status{named} {EXIT_CODES[check.status]}")
    samples["equipoise_alerts"].append(f"equipoise_alerts{named} {len(check.alerts)}")


def _finding(
    samples: dict[str, list[str]], check: StreamCheck, finding: StreamFinding, *, alerted: bool
) -> None:
    # As in a pattern, so that the text <missing> is not taken for a label that is missing.
    label = format_value(finding.label)
    of_group = {"stream": check.name, "group": str(finding.group)}
    named = _labels(**of_group, label=label, limits=finding.rule.limits)
    rows = f"equipoise_group_rows{named} {finding.rows}"
    samples["equipoise_group_rows"].append(rows)
    values = {
        "equipoise_uniform_bias": finding.ub,
        "equipoise_log10_e_value": finding.log10_e,
        "equipoise_alert": float(alerted),
        "equipoise_changed": float(finding.changed),
        "equipoise_undecided": float(finding.kind in ("vanished", "too small")),
    }
    for name, value in values.items():
        samples[name].append(f"{name}{named} {_number(value)}")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.6g}"


def _labels(**values: Value) -> str:
    return "{" + ",".join(f'{name}="{_escaped(str(text))}"' for name, text in values.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
