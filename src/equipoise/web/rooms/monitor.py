"""The room of a stream of batches: its alerts, its history, and any group of it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from equipoise.errors import InputError
from equipoise.monitoring.moments import zone_named
from equipoise.options.monitor import WatchOptions, ZoneOptions
from equipoise.web.rooms.room import Ask, Room, Text, table_query
from equipoise.web.schema import offered
from equipoise.web.twins import Expression, Twin, outside_name, python_value, quoted, shell_command

if TYPE_CHECKING:
    from equipoise.api.monitors import Monitor
    from equipoise.lattice import Group
    from equipoise.monitoring.check import StreamCheck, StreamFinding
    from equipoise.monitoring.history import History

OPTIONS = offered(WatchOptions, ZoneOptions)
_LISTED, _KIN, _NEAREST = 100, 40, 5
_PERIODS = 60


def monitor_query() -> Any:
    """Make the class of the address of this room; the table in it is that of the other rooms."""
    return table_query(
        "MonitorQuery",
        OPTIONS,
        store=(Text | None, Field(default=None, description="Name of the store of batches.")),
        stream=(
            Text | None,
            Field(default=None, description="Stream of the store. By default the first one."),
        ),
        group=(
            Text | None,
            Field(
                default=None,
                description="Pattern of the group that is shown; it may name a label, too.",
            ),
        ),
    )


def open_store(ask: Ask) -> Monitor:
    """The store that is named, which is left as it is."""
    from equipoise.api.monitors import Monitor

    return Monitor(ask.path, read_only=True)


def history(ask: Ask) -> History:
    """The history of the stream that is asked for."""
    with open_store(ask) as monitor:
        return _history(
            ask, monitor, _stream(ask, [s.stream.name for s in monitor.streams().streams])
        )


def _stream(ask: Ask, names: Sequence[str]) -> str:
    if not names:
        raise InputError(f"{ask.data} has no stream yet; equipoise monitor add adds a first batch.")
    return ask.view.get("stream") or names[0]


def _history(ask: Ask, monitor: Monitor, name: str) -> History:
    return monitor.history(name, group=ask.view.get("group") or None, **ask.options)


def compute(ask: Ask) -> dict[str, Any]:
    """Check a stream, and tell how it came there."""
    zone = zone_named(ask.options.get("timezone", "UTC"))
    with open_store(ask) as monitor:
        ask.progress("reading the batches", 0.1)
        streams = monitor.streams().to_dict()["streams"]
        name = _stream(ask, [each["name"] for each in streams])
        ask.progress("testing the batches", 0.3)
        made = _history(ask, monitor, name)
    check, told = made.check, made.to_dict()
    group = made.group
    listed = _findings(made)
    near = [] if listed else _nearest(made)
    return {
        "store": ask.data,
        "streams": streams,
        "stream": name,
        "zone": str(zone),
        "status": check.status,
        "heading": check.heading,
        "sentences": told["sentences"],
        "watched": told["check"]["watched"],
        **{key: told["check"][key] for key in ("batches", "rows", "first", "last")},
        "alerts": len(check.alerts),
        "changes": len(check.changes),
        "undecided": len(check.undecided),
        "pairs": len(check.findings),
        "findings": [_finding(check, made, f) for f in (listed or near)[:_LISTED]],
        "nearest": bool(near),
        "findings_left_out": len(listed[_LISTED:]),
        "group": None if group is None else _near(check, group),
        **{key: told[key] for key in ("label", "labels", "window", "periods", "lines", "sizes")},
        "acknowledgements": told["acknowledgements"],
        "forgotten": made.forgotten,
        "alarms": told["alarms"][-_LISTED:],
        "alarms_left_out": len(told["alarms"][:-_LISTED]),
        "events": told["events"][-_LISTED:],
        "events_left_out": len(told["events"][:-_LISTED]),
        "charts": _charts(made),
    }


def _findings(made: History) -> list[StreamFinding]:
    """All of a group, or the alerts, the changes and what cannot be judged, for any label or for one."""
    found = made.check.telling if made.group is None else made.check.findings
    return [
        each
        for each in found
        if made.group in (None, each.group) and made.only_label in (None, each.label)
    ]


def _nearest(made: History) -> list[StreamFinding]:
    """Without an alert, the groups with the most evidence against their limits."""
    fitting = [f for f in made.check.findings if made.only_label in (None, f.label)]
    return fitting[:_NEAREST] if made.group is None else []


def _finding(check: StreamCheck, made: History, finding: StreamFinding) -> dict[str, Any]:
    """A finding with its interval, which is known of what is drawn, too."""
    told = {**finding.to_dict(), "alert": _is_alert(check, finding)}
    if told["ub_low"] is None:
        for line in made.lines:
            if (line.group, line.label) == (finding.group, finding.label):
                drawn = line.to_dict()
                told["ub_low"], told["ub_high"] = drawn["low"][-1], drawn["high"][-1]
    return told


def _is_alert(check: StreamCheck, finding: StreamFinding) -> bool:
    return any(finding is each for each in check.alerts)


def _near(check: StreamCheck, group: Group) -> dict[str, Any]:
    """A group with those of one attribute less and of one attribute more."""
    own = set(group.items())
    parents = [f for f in check.findings if own > set(f.group.items())]
    children = [f for f in check.findings if own < set(f.group.items())]
    return {
        "pattern": str(group),
        "sentences": _sentences(check, group),
        "parents": [_kin(check, f) for f in parents if len(f.group) == len(group) - 1][:_KIN],
        "children": [_kin(check, f) for f in children if len(f.group) == len(group) + 1][:_KIN],
    }


def _sentences(check: StreamCheck, group: Group) -> list[str]:
    from equipoise.lattice import format_value
    from equipoise.monitoring.check import KINDS

    found = [finding for finding in check.findings if finding.group == group]
    return [
        check.explain(f)
        if _is_alert(check, f)
        else f"{f.group} for {format_value(f.label)}: {KINDS[f.kind]}."
        for f in found
    ]


def _kin(check: StreamCheck, finding: StreamFinding) -> dict[str, Any]:
    told = finding.to_dict()
    kept = ("pattern", "label", "kind", "changed", "rows", "cases", "ub", "log10_e")
    return {**{key: told[key] for key in kept}, "alert": _is_alert(check, finding)}


def _charts(made: History) -> dict[str, Any] | None:
    """The charts as data; a single period has no course that could be drawn."""
    from equipoise.reports.history.captions import (
        bias_caption,
        evidence_caption,
        population_captions,
    )
    from equipoise.reports.history.data import biases, evidence, population

    if len(made.periods) < 2:
        return None
    bars = biases(made)
    for bar, line in zip(bars, made.lines, strict=True):
        bar["pattern"] = str(line.group)
    return {
        "biases": bars,
        "evidence": evidence(made),
        "population": population(made),
        "captions": {
            "biases": bias_caption(made),
            "evidence": evidence_caption(made),
            **population_captions(made),
        },
    }


def present(ask: Ask, shown: dict[str, Any]) -> dict[str, Any]:
    """The time zone, what the columns of the findings mean, and the last periods as a table."""
    from equipoise.monitoring.check import (
        E_VALUE_TOLD,
        KINDS,
        SEQUENCE_TOLD,
        SINCE_TOLD,
        TIMES_TOLD,
        UB_TOLD,
    )

    found = shown["findings"]
    # What is outside is called an alert where it is one.
    names = {each["kind"] for each in found if each["kind"] != "outside" or not each["alert"]}
    kinds: dict[str, str] = {kind: said for kind, said in KINDS.items() if kind in names}
    if any(each["kind"] == "outside" and each["alert"] for each in found):
        kinds = {"alert": KINDS["outside"], **kinds}
    if any(each["changed"] and each["kind"] != "changed" for each in found):
        kinds["changed lately"] = KINDS["changed"]
    return {
        "zone": _zone(ask),
        "kinds": kinds,
        "ub_told": UB_TOLD,
        "times_told": TIMES_TOLD,
        "columns_told": [E_VALUE_TOLD, SEQUENCE_TOLD, SINCE_TOLD],
        "limits": list(dict.fromkeys(finding["limits"] for finding in shown["findings"])),
        "last_periods": list(enumerate(shown["periods"]))[-_PERIODS:],
    }


def _zone(ask: Ask) -> datetime.tzinfo:
    return zone_named(ask.options.get("timezone", "UTC"))


class _StoreTwin(Twin):
    """A step that names a store and a stream instead of a table."""

    def shell(self) -> str:
        """The command."""
        line = shell_command(self.command, (), self.given, self.options)
        return " ".join([line, *self.flags])


def twin(ask: Ask, shown: dict[str, Any]) -> list[Twin]:
    """The check of the stream, and its history."""
    store, name = outside_name(ask.data), shown["stream"]
    flags = ("--store", quoted(store), "--name", quoted(name))
    group = ask.view.get("group")
    both: dict[str, Any] = {
        "words": (Expression(python_value(name)),),
        "given": ask.options,
        "options": OPTIONS,
    }
    opened = f"Monitor({python_value(store)})"
    check = _StoreTwin("monitor check", f"{opened}.check", **both, flags=flags, result="check")
    drawn = (*flags, "--group", quoted(group)) if group else flags
    keywords = {"group": group} if group else {}
    show = _StoreTwin("monitor show", f"{opened}.history", **both, flags=drawn, keywords=keywords)
    return [check, show]


ROOM = Room(
    name="monitor",
    title="Monitor",
    about="Bias watched as data arrives: alerts, how they came about, and every group over time.",
    query=monitor_query(),
    options=OPTIONS,
    compute=compute,
    counts=False,
    source="store",
    files=("html", "csv", "json"),
    twin=twin,
    present=present,
)
