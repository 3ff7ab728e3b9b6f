"""The check of a stream against a policy, which can be repeated as often as needed."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from equipoise.lattice import Group, format_value
from equipoise.measures.display import UNKNOWN, magnitude, number, whole
from equipoise.measures.policy import EXIT_CODES, Status
from equipoise.measures.rules import Rule
from equipoise.monitoring.moments import iso, shown
from equipoise.options.monitor import AlertOn
from equipoise.plain import Grid, rows_text
from equipoise.results import FlatTable, Result, column_names
from equipoise.values import Value, plain

SCHEMA = "equipoise.monitor/1"
UB_TOLD = (
    "UB: 1 − rate in the group / overall rate. If it is positive, the group has fewer of the rows with the label "
    "than its share of all rows."
)
E_VALUE_TOLD = (
    "E-value: evidence against the limit. While the limit holds, an e-value of 100 or more is ever reached with a "
    "probability of at most 1 in 100."
)
SEQUENCE_TOLD = (
    "Sequence: the confidence sequence of UB. However often you look, it contains the true value, if the ratio of "
    "rates is the same in all batches."
)
SINCE_TOLD = "Since: when the bias left the limit, as an estimate."
TIMES_TOLD = "Times: how often the alert was raised. Evidence near the threshold can raise and end an alert several times."
Kind: TypeAlias = Literal["outside", "changed", "vanished", "too small", "inside"]
KINDS: Mapping[Kind, str] = {
    "outside": "the evidence is strong enough that the limit does not hold in every batch",
    "changed": "the change detector reports that the bias has recently left the limit",
    "vanished": "the group had rows before, and has had none for so long that chance is an unlikely explanation",
    "too small": "the bias of the rows so far is outside the limit, but there are too few rows for a conclusion",
    "inside": "there is no alert",
}

_NO_ALERT: Mapping[AlertOn, str] = {
    "evidence": "the evidence against the limit is not strong enough for",
    "changes": "the change detector is not above its threshold for",
    "both": "neither the evidence nor the change detector is above its threshold for",
}


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What is tested in a stream: groups, rules and false alarm probability."""

    rules: tuple[Rule, ...]
    alpha: float = 0.05
    alert_on: AlertOn = "evidence"
    max_order: int | None = None
    favourable: str | None = None
    tags: Mapping[str, str] | None = None

    @property
    def level(self) -> str:
        """The level of confidence sequences, in words.

        >>> Watched(rules=()).level, Watched(rules=(), alpha=0.001).level
        ('95%', '99.9%')
        """
        return f"{100 * (1 - self.alpha):.6g}%"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "rules": [rule.to_dict() for rule in self.rules],
            "alpha": self.alpha,
            "alert_on": self.alert_on,
            "max_order": self.max_order,
            "favourable": self.favourable,
            "tags": dict(self.tags or {}),
        }

    def key(self, start: int) -> str:
        """What identifies the evidence: rules, groups, batches, and the place they are tested from."""
        told = {k: v for k, v in self.to_dict().items() if k not in ("alpha", "alert_on")}
        text = json.dumps([told, start], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class StreamFinding:
    """A group and label of a stream, with the evidence against its limit."""

    group: Group
    label: Value
    rule: Rule
    kind: Kind
    rows: int
    cases: int
    batches: int
    """Number of batches with rows of the group and of others."""
    ub: float
    """UB within batches: the UB of the ratio of rates that all tested batches have in common (Mantel–Haenszel).

    It does not change if the overall rate drifts. It refers to the group's share of all these rows."""
    ub_low: float
    ub_high: float
    value: float
    """Value of the limited measure within batches: UB, UB relative to K, or the ratio of rates."""
    log10_e: float
    """Decimal logarithm of the e-value, such as 2 for an e-value of 100."""
    since: datetime.datetime | None
    """Estimated time since which the bias has been outside the limit."""
    raised: datetime.datetime | None
    """Time of the batch that raised the alert."""
    changed: bool
    last_seen: datetime.datetime | None

    @property
    def e_value(self) -> float:
        """The e-value; infinite if it exceeds the range of numbers."""
        return 10.0**self.log10_e if self.log10_e < 300 else math.inf

    def to_dict(self, zone: datetime.tzinfo = datetime.UTC) -> dict[str, Any]:
        """Plain data, for JSON, with times in a zone."""
        own = {k: v for k, v in vars(self).items() if k not in ("group", "rule", "label")}
        told = {
            k: iso(v, zone) if isinstance(v, datetime.datetime) else plain(v)
            for k, v in own.items()
        }
        return {
            "group": {k: plain(v) for k, v in self.group.items()},
            "pattern": str(self.group),
            "label": plain(self.label),
            "measure": self.rule.measure,
            "limits": self.rule.limits,
            **told,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamCheck(Result):
    """The result of checking a stream: alerts, changes, and groups that cannot be judged.

    Attributes
    ----------
    name
        Name of the stream.
    watched
        The rules and the false alarm probability.
    findings
        All groups and labels to which rules apply. Alerts come first.
    batches, rows, tested
        Number of batches in the stream, number of rows, and number of tested batches.
    """

    name: str
    store: str
    watched: Watched
    findings: tuple[StreamFinding, ...]
    batches: int
    rows: int
    first: datetime.datetime | None
    last: datetime.datetime | None
    tested: int
    remarks: tuple[str, ...] = ()
    zone: datetime.tzinfo = datetime.UTC

    @functools.cached_property
    def alerts(self) -> tuple[StreamFinding, ...]:
        """The findings that raise an alert."""
        on = self.watched.alert_on
        return tuple(
            f
            for f in self.findings
            if (f.kind == "outside" and on != "changes") or (f.changed and on != "evidence")
        )

    @property
    def undecided(self) -> tuple[StreamFinding, ...]:
        """Groups that have vanished, or are too small to judge."""
        return tuple(f for f in self.findings if f.kind in ("vanished", "too small"))

    @property
    def changes(self) -> tuple[StreamFinding, ...]:
        """Groups and labels for which only the change detector is above its threshold."""
        return tuple(f for f in self.findings if f.kind == "changed")

    @property
    def telling(self) -> tuple[StreamFinding, ...]:
        """All findings except those that are inside their limits."""
        return tuple(f for f in self.findings if f.kind != "inside")

    @property
    def status(self) -> Status:
        """``"outside"`` if there is an alert, ``"undecided"`` if some groups cannot be judged, else ``"inside"``."""
        if self.alerts:
            return "outside"
        return "undecided" if self.undecided or not self.findings else "inside"

    @property
    def exit_code(self) -> int:
        """The exit code of the command line: 0 no alert, 1 an alert, 3 not enough evidence."""
        return EXIT_CODES[self.status]

    @property
    def heading(self) -> str:
        """What was checked, in one line."""
        if self.first is None or self.last is None:
            return f"{self.name}: no batches"
        return (
            f"{self.name}: {self.batches:,} {'batch' if self.batches == 1 else 'batches'} with "
            f"{rows_text(self.rows)}, {shown(self.first, self.zone)} to {shown(self.last, self.zone)}"
        )

    @property
    def outcome(self) -> str:
        """The outcome in a sentence."""
        if not self.findings:
            return f"{self._nothing}, so there is nothing to test yet."
        if self.status == "outside":
            return f"Alert: {len(self.alerts):,} of {self._pairs} {self._are_outside}."
        if self.status == "undecided":
            return self._undecided_told
        one = len(self.findings) == 1
        which = "the one group and label pair" if one else f"any of the {self._pairs}"
        return f"No alert: {_NO_ALERT[self.watched.alert_on]} {which}."

    @property
    def _pairs(self) -> str:
        n = len(self.findings)
        return f"{n:,} group and label {'pair' if n == 1 else 'pairs'}"

    @property
    def _are_outside(self) -> str:
        one = len(self.alerts) == 1
        if all(f.kind == "changed" for f in self.alerts):
            return f"{'has left its limit' if one else 'have left their limits'} according to the change detector"
        return "is outside its limit" if one else "are outside their limits"

    @property
    def _undecided_told(self) -> str:
        vanished = len({str(f.group) for f in self.undecided if f.kind == "vanished"})
        small = sum(f.kind == "too small" for f in self.undecided)
        parts = []
        if small:
            verb = "has" if small == 1 else "have"
            parts.append(f"{small:,} of {self._pairs} {verb} too few rows to judge")
        if vanished:
            parts.append(f"{vanished:,} {'group has' if vanished == 1 else 'groups have'} vanished")
        advice = " Use `min_count` to leave out small groups." if small else ""
        return f"No alert, but {' and '.join(parts)}.{advice}"

    @property
    def _nothing(self) -> str:
        """Why there is no finding."""
        least = max(rule.min_count for rule in self.watched.rules)
        if not self.batches:
            return "The stream has no batches"
        if not self.tested:
            return "No batch has been added since the tests started"
        if least > 1:
            return f"No group with at least {least:,} rows could be compared with others"
        return "No group could be compared with others in any batch"

    @property
    def sentences(self) -> tuple[str, ...]:
        """The outcome, an explanation of the strongest alert, changes, and remarks."""
        said = [self.outcome]
        if self.alerts:
            said += [self.explain(max(self.alerts, key=lambda f: f.log10_e))]
        said += self._vanished_told
        if self.changes and self.watched.alert_on == "evidence":
            first = self.changes[0]
            said.append(
                f"The change detector reports {len(self.changes):,} "
                f"{'change' if len(self.changes) == 1 else 'changes'} for which the evidence of all batches is not "
                f"strong enough yet, for example {first.group} for {format_value(first.label)}{self._since(first)}."
            )
        return (*said, *self.remarks)

    @property
    def _vanished_told(self) -> list[str]:
        """Which group has vanished, and since when; of many, the first."""
        gone = {f.group: f.last_seen for f in self.undecided if f.kind == "vanished"}
        for group, last in gone.items():
            if last is not None:
                more = f", and {len(gone) - 1:,} more" if len(gone) > 1 else ""
                return [
                    f"Vanished: {group}, whose last rows are of {shown(last, self.zone)}{more}."
                ]
        return []

    def explain(self, finding: StreamFinding) -> str:
        """Explain one finding in sentences."""
        which, limits = f"{finding.group} for {format_value(finding.label)}", finding.rule.limits
        found = f"Within batches, {self._value(finding)}."
        if finding.kind == "outside":
            verb = "is" if finding.since is None else "has been"
            return (
                f"{which} {verb} outside the limit {limits}{self._since(finding)}. {found} If the limit held in "
                "every batch, the probability of ever seeing such strong evidence would be at most "
                f"1 in {_odds(finding.log10_e)}{self._of_any(finding)}."
            )
        if finding.kind == "changed":
            return (
                f"{which} has left the limit {limits}{self._since(finding)}, according to the change detector. "
                f"{found} If all limits held, false alarms of the detector would be at least 1,000 batches apart on "
                "average, for all groups and labels together."
            )
        return (
            f"There is no alert for {which}. {found} The e-value against {limits} is "
            f"{magnitude(finding.log10_e)}."
        )

    def _of_any(self, finding: StreamFinding) -> str:
        """What holds for the worst of all that are tested, since the worst is what is read."""
        n = len(self.findings)
        if n == 1:
            return ""
        of_any = finding.log10_e - math.log10(n)
        # One of many alerts together may have less evidence than it would take alone.
        if of_any < math.log10(2):
            return f". {n:,} groups and labels are tested"
        return f", or 1 in {_odds(of_any)} for any of the {n:,} groups and labels that are tested"

    @staticmethod
    def _value(finding: StreamFinding) -> str:
        """The value of the limited measure, and UB if this is another."""
        if finding.rule.measure == "impact_ratio":
            return f"the ratio of rates is {finding.value:.3g} and UB is {number(finding.ub)}"
        if finding.rule.k != 1:
            return f"UB relative to K is {number(finding.value)}"
        return f"UB is {number(finding.ub)}"

    def _since(self, finding: StreamFinding) -> str:
        return "" if finding.since is None else f" since about {shown(finding.since, self.zone)}"

    def grid(self, top: int | None = None) -> Grid:
        """The alerts, changes and undecided groups as a table."""
        told = self.telling[:top]
        headers = (
            "state",
            "group",
            "label",
            "rows",
            "UB",
            f"{self.watched.level} sequence",
        )
        lines = tuple(
            (
                f.kind,
                str(f.group),
                format_value(f.label),
                f"{whole(f.cases)} of {whole(f.rows)}",
                number(f.ub),
                UNKNOWN if math.isnan(f.ub_low) else f"{number(f.ub_low)} … {number(f.ub_high)}",
                magnitude(f.log10_e),
                UNKNOWN if f.since is None else shown(f.since, self.zone),
                f.rule.limits,
            )
            for f in told
        )
        return Grid((*headers, "e-value", "since", "limits"), lines, frozenset({3, 4, 5, 6}))

    def nearest(self, top: int = 5) -> Grid:
        """The groups and labels inside their limits with the most evidence against them, as a table."""
        inside = [f for f in self.findings if f.kind == "inside"][:top]
        rows = tuple(
            (
                *(f.kind, str(f.group), format_value(f.label)),
                *(f"{whole(f.cases)} of {whole(f.rows)}", number(f.ub), magnitude(f.log10_e)),
                f.rule.limits,
            )
            for f in inside
        )
        headers = ("state", "group", "label", "rows", "UB", "e-value", "limits")
        return Grid(headers, rows, frozenset({3, 4, 5}))

    def _table(self) -> FlatTable:
        own = (
            *("state", "group", "n_group", "n_cell", "batches", "ub", "ub_low", "ub_high"),
            *("log10_e", "since", "raised", "changed", "limits"),
        )
        (label,) = column_names(own, [self._label])
        rows = (
            (
                *(f.kind, str(f.group), f.rows, f.cases, f.batches, plain(f.ub), plain(f.ub_low)),
                *(plain(f.ub_high), plain(f.log10_e), iso(f.since, self.zone)),
                *(iso(f.raised, self.zone), f.changed),
                *(f.rule.limits, str(f.label)),
            )
            for f in self.findings
        )
        return (*own, label), rows

    @property
    def _label(self) -> str:
        return "label"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "store": self.store,
            "status": self.status,
            "exit_code": self.exit_code,
            "sentences": list(self.sentences),
            "batches": self.batches,
            "rows": self.rows,
            "first": iso(self.first, self.zone),
            "last": iso(self.last, self.zone),
            "watched": self.watched.to_dict(),
            "alerts": [f.to_dict(self.zone) for f in self.alerts],
            "undecided": [f.to_dict(self.zone) for f in self.undecided],
            "changes": [f.to_dict(self.zone) for f in self.changes],
            "findings": [f.to_dict(self.zone) for f in self.findings],
            "version": self.version,
            "time": self.time,
        }


def _odds(log10_e: float) -> str:
    """Evidence as odds, rounded down, since they bound a chance from above."""
    return magnitude(log10_e) if log10_e >= 2 else f"{math.floor(10**log10_e)}"
