"""Limits that a team agrees on, and what a bias table says of them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from equipoise.errors import InputError, SourceNotFound, did_you_mean
from equipoise.lattice import Group, format_value
from equipoise.measures.display import number, whole
from equipoise.measures.registry import Floats, measure_named
from equipoise.measures.table import BiasTable, Row
from equipoise.plain import Grid, csv_text
from equipoise.results import FlatTable, Result, column_names
from equipoise.validate import a_number, at_least, one_of
from equipoise.values import Value, as_value, plain

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

Evidence: TypeAlias = Literal["estimate", "interval"]
EVIDENCE: tuple[Evidence, ...] = ("estimate", "interval")
Status: TypeAlias = Literal["inside", "outside", "undecided"]
SCHEMA = "equipoise.check/1"
OUTSIDE, UNDECIDED = 1, 2
EXIT_CODES: Mapping[Status, int] = {"inside": 0, "outside": 1, "undecided": 3}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A limit on one measure, for some groups and labels.

    Parameters
    ----------
    group
        A pattern; the rule holds for that group and every group inside it.
    label
        A label value; all labels, if not given.
    measure
        The measure that is limited.
    max_abs, min, max
        The limits: on its absolute value, from below, from above.
    k
        The ratio f_gy/f_y that is allowed instead of 1; UB is then taken against it.
    min_count
        Groups with fewer rows are not looked at.

    >>> Rule(group="sex=Female", label=">50K", max_abs=0.2)
    Rule(|uniform_bias| ≤ 0.2 for sex=Female, label >50K)
    """

    group: Group | str = "*"
    label: Value | None = None
    measure: str = "uniform_bias"
    max_abs: float | None = None
    min: float | None = None
    max: float | None = None
    k: float = 1.0
    min_count: int = 1

    def __post_init__(self) -> None:
        for name in ("group", "measure"):
            if not isinstance(getattr(self, name), (str, Group)):
                raise InputError(f"a rule's {name} is text, not {getattr(self, name)!r}.")
        object.__setattr__(self, "group", self.where)
        object.__setattr__(self, "measure", measure_named(self.measure).name)
        if self.label is not None:
            object.__setattr__(self, "label", as_value(self.label))
        for name in ("max_abs", "min", "max", "k", "min_count"):
            if getattr(self, name) is not None:
                a_number(name.replace("_", "-"), getattr(self, name))
        if self.max_abs is None and self.min is None and self.max is None:
            raise InputError("a rule needs a limit: max-abs (or max-abs-ub), min or max.")
        if self.max_abs is not None:
            at_least("max-abs", self.max_abs, 0)
        if self.bounds[0] > self.bounds[1]:
            raise InputError(f"no value is inside both limits of a rule: {self.limits}.")
        if self.min_count < 1:
            raise InputError(f"min-count must be at least 1, not {self.min_count}.")
        if self.k != 1.0 and self.measure != "uniform_bias":
            raise InputError("k, the allowed ratio, goes with uniform_bias only.")
        if not self.k >= 1e-9:
            raise InputError(
                f"k, the allowed ratio f_gy/f_y, must be above 0, at least 1e-9, not {self.k}."
            )

    @property
    def where(self) -> Group:
        """The group the rule holds for."""
        return Group.parse(self.group) if isinstance(self.group, str) else self.group

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value allowed."""
        limit = np.inf if self.max_abs is None else self.max_abs
        low = -np.inf if self.min is None else self.min
        high = np.inf if self.max is None else self.max
        return float(np.maximum(low, -limit)), float(np.minimum(high, limit))

    @property
    def limits(self) -> str:
        """The limits in words."""
        words = []
        if self.max_abs is not None:
            words.append(f"|{self.measure}| ≤ {self.max_abs:g}")
        if self.min is not None:
            words.append(f"{self.measure} ≥ {self.min:g}")
        if self.max is not None:
            words.append(f"{self.measure} ≤ {self.max:g}")
        return " and ".join(words) + (f" at K = {self.k:g}" if self.k != 1 else "")

    def __repr__(self) -> str:
        label = "" if self.label is None else f", label {format_value(self.label)}"
        return f"Rule({self.limits} for {self.group}{label})"


_POLICY_KEYS = ("max_abs_ub", "min_count", "evidence", "rules")
# A [check] table holds defaults of the command's other options, too.
_OPTION_KEYS = (
    *("sensitive", "label", "count", "weight", "bin", "na", "missing", "missing_label", "sql"),
    *("encoding", "delimiter", "threads", "memory", "quiet", "max_order", "limit", "confidence"),
    *("sampling", "adjust", "top", "output", "suppress_below"),
)
_RULE_KEYS = ("group", "label", "measure", "max_abs", "max_abs_ub", "min", "max", "k", "min_count")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Rules in order: of those on one measure the last that fits a row decides it.

    Parameters
    ----------
    rules
        The rules.
    evidence
        ``"estimate"`` judges the measured value; ``"interval"`` calls a row inside or
        outside only if its whole interval is.

    >>> policy = Policy.from_dict(
    ...     {"max-abs-ub": 0.1, "rules": [{"group": "sex=Female", "max-abs-ub": 0.2}]}
    ... )
    >>> policy.rules
    (Rule(|uniform_bias| ≤ 0.1 for *), Rule(|uniform_bias| ≤ 0.2 for sex=Female))
    """

    rules: tuple[Rule, ...]
    evidence: Evidence = "estimate"

    def __post_init__(self) -> None:
        one_of("evidence", self.evidence, EVIDENCE)
        if not self.rules:
            raise InputError(
                "there is no rule to check; give a limit, as in --max-abs-ub 0.1, or rules in "
                "equipoise.toml."
            )
        uncertain = [r.measure for r in self.rules if r.measure != "uniform_bias"]
        if self.evidence == "interval" and uncertain:
            raise InputError(
                f"evidence='interval' needs intervals, which {uncertain[0]} does not have; limit "
                "uniform_bias, or use evidence='estimate'."
            )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Policy:
        """Read a policy from plain data, as it stands in ``equipoise.toml``."""
        given = {key.replace("-", "_"): value for key, value in data.items()}
        _refuse_unknown("a policy", given, (*_POLICY_KEYS, *_OPTION_KEYS))
        listed = given.get("rules", [])
        if not isinstance(listed, Sequence) or isinstance(listed, str):
            raise InputError("rules are a list of tables, [[check.rules]] in TOML.")
        rules = []
        if given.get("max_abs_ub") is not None:
            a_number("max-abs-ub", given["max_abs_ub"])
            rules.append(Rule(max_abs=given["max_abs_ub"], min_count=given.get("min_count") or 1))
        rules += [_rule(r, given.get("min_count") or 1) for r in given.get("rules", [])]
        return cls(rules=tuple(rules), evidence=given.get("evidence") or "estimate")

    @classmethod
    def of(
        cls,
        policy: Policy | Mapping[str, Any] | str | os.PathLike[str] | None,
        *,
        max_abs_ub: float | None = None,
        evidence: Evidence | None = None,
    ) -> Policy:
        """Take a policy, plain data or the path of a TOML file, with a limit put before it.

        A file has a ``[check]`` table, or ``[tool.equipoise.check]`` if it is a pyproject file.
        """
        if isinstance(policy, Policy):
            first = () if max_abs_ub is None else (Rule(max_abs=max_abs_ub),)
            return cls(rules=(*first, *policy.rules), evidence=evidence or policy.evidence)
        if policy is None or isinstance(policy, Mapping):
            data = policy or {}
        else:
            data = read_config(policy).get("check", {})
        given = {key.replace("-", "_"): value for key, value in data.items()}
        stated = {"max_abs_ub": max_abs_ub, "evidence": evidence}
        return cls.from_dict({**given, **{k: v for k, v in stated.items() if v is not None}})

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that are limited, each once."""
        return tuple(dict.fromkeys(r.measure for r in self.rules))

    def check(self, table: BiasTable) -> Check:
        """Hold a bias table against the rules."""
        parts: list[tuple[NDArray[Any], ...]] = []
        looked_at = 0
        for measure in self.measures:
            decided = self._deciding(table, measure)
            looked_at += int((decided >= 0).sum())
            parts += self._found(table, table.measure(measure), decided)
        rule, line, label, value, code = map(np.concatenate, zip(*parts, strict=True))
        order = np.lexsort((-np.abs(value), code))
        rule, line, label, value, code = (a[order] for a in (rule, line, label, value, code))
        return Check(table, self, rule, line, label, value, code, rows_checked=looked_at)

    def _deciding(self, table: BiasTable, measure: str) -> NDArray[np.int64]:
        """For each line and label the number of the rule that decides it, or −1."""
        m = table.measured
        decided = np.full(m.ub.shape, -1, np.int64)
        for place, rule in enumerate(self.rules):
            if rule.measure == measure:
                fits = _lines(table, rule)[:, None] & _labels(table, rule)[None, :]
                decided[fits] = np.where(m.n_group[:, None] >= rule.min_count, place, -1)[
                    np.nonzero(fits)[0], 0
                ]
        decided[np.isnan(m.ub)] = -1
        shown = np.zeros(m.ub.shape, np.bool_)
        shown[table.places] = True
        return np.where(shown, decided, -1)

    def _found(
        self, table: BiasTable, values: Floats, decided: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[Any], ...]]:
        """For each rule: its number, and line, label, value and status of what it finds."""
        for place, rule in enumerate(self.rules):
            line, label = np.nonzero(decided == place)
            status = self._statuses(table, rule, values, line, label)
            line, label, status = (a[status != 0] for a in (line, label, status))
            value = _against(values[line, label], rule.k)
            yield np.full(len(line), place), line, label, value, status

    def _statuses(
        self,
        table: BiasTable,
        rule: Rule,
        values: Floats,
        line: NDArray[np.int64],
        label: NDArray[np.int64],
    ) -> NDArray[np.int8]:
        """0 where a row is inside, else OUTSIDE or UNDECIDED."""
        low, high = rule.bounds
        m = table.measured
        value = _against(values[line, label], rule.k)
        outside = (value < low) | (value > high)
        if self.evidence == "estimate":
            unsure = (outside & m.too_small[line, label]) | np.isnan(value)
        else:
            if m.interval is None:
                raise InputError("evidence='interval' needs intervals; measure with uncertainty.")
            least = _against(m.interval.low[line, label], rule.k)
            most = _against(m.interval.high[line, label], rule.k)
            outside = (least > high) | (most < low)
            unsure = ~outside & ~((least >= low) & (most <= high))
        return np.where(unsure, UNDECIDED, np.where(outside, OUTSIDE, 0)).astype(np.int8)


@dataclass(frozen=True)
class Finding:
    """A row that a rule finds outside its limits, or cannot decide."""

    row: Row
    rule: Rule
    value: float
    status: Status

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            **self.row.to_dict(),
            "measure": self.rule.measure,
            "value": None if np.isnan(self.value) else self.value,
            "limits": self.rule.limits,
            "status": self.status,
        }


@dataclass(frozen=True, eq=False)
class Check(Result):
    """What a policy says of a table: the rows outside their limits or undecided.

    >>> import equipoise as eq
    >>> result = eq.check("adult", sensitive_features=["sex"], label="income", max_abs_ub=0.1)
    >>> result.status, len(result.outside)
    ('outside', 3)
    """

    table: BiasTable
    policy: Policy
    rule: NDArray[np.int64]
    line: NDArray[np.int64]
    label: NDArray[np.int64]
    value: Floats
    code: NDArray[np.int8]
    rows_checked: int = 0

    def findings(self, top: int | None = None) -> Iterator[Finding]:
        """The findings, those outside first, the largest first; or only the first ones."""
        rules, codes, values = (a[:top].tolist() for a in (self.rule, self.code, self.value))
        rows = self.table.rows_at(self.line[:top], self.label[:top])
        for i, row in enumerate(rows):
            status: Status = "outside" if codes[i] == OUTSIDE else "undecided"
            yield Finding(row, self.policy.rules[rules[i]], values[i], status)

    @property
    def outside(self) -> tuple[Finding, ...]:
        """The rows outside their limits."""
        return tuple(self.findings(self._n_outside))

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """The rows for which there is not enough evidence."""
        return tuple(f for f in self.findings() if f.status == "undecided")

    @property
    def _n_outside(self) -> int:
        return int((self.code == OUTSIDE).sum())

    @property
    def status(self) -> Status:
        """``"outside"`` if any row is; ``"undecided"`` if any is, or none was checked."""
        if self._n_outside:
            return "outside"
        return "undecided" if len(self.code) or not self.rows_checked else "inside"

    @property
    def exit_code(self) -> int:
        """What the command line returns: 0 inside, 1 outside, 3 not enough evidence."""
        return EXIT_CODES[self.status]

    @property
    def sentence(self) -> str:
        """The outcome in a sentence."""
        checked = f"of {self.rows_checked:,} group and label pairs checked"
        if not self.rows_checked:
            return "No group was large enough to be checked."
        undecided = len(self.code) - self._n_outside
        if self.status == "outside":
            more = f"; {undecided:,} more cannot be decided" if undecided else ""
            return f"{self._n_outside:,} {checked} are outside their limits{more}."
        if self.status == "undecided":
            why = (
                "their intervals reach across the limit, or the measure is undefined"
                if self.policy.evidence == "interval"
                else "they have too few rows, or the measure is undefined"
            )
            return (
                f"{undecided:,} {checked} cannot be decided: {why}; leave small groups out with "
                "--min-count, or get more rows."
            )
        return f"All {self.rows_checked:,} group and label pairs checked are inside their limits."

    def to_csv(self, top: int | None = None) -> str:
        """One line a finding, in full precision."""
        return csv_text(*self._table(top))

    def _table(self, top: int | None = None) -> FlatTable:
        rows = (
            (
                f.status,
                str(f.row.group),
                str(f.row.label),
                f.row.n_group,
                f.row.n_cell,
                f.rule.measure,
                plain(f.value),
                plain(f.rule.bounds[0]),
                plain(f.rule.bounds[1]),
                f.rule.k,
            )
            for f in self.findings(top)
        )
        own = ("status", "group", "n_group", "n_cell", "measure", "value", "least", "most", "k")
        label = column_names(own, [self.table.counts.label.name])
        return (*own[:2], *label, *own[2:]), rows

    def grid(self, top: int | None = None) -> Grid:
        """The findings, or the first of them, as a table."""
        rows = tuple(
            (
                f.status,
                str(f.row.group),
                format_value(f.row.label),
                "–"
                if f.row.n_group is None
                else f"{whole(f.row.n_cell)} of {whole(f.row.n_group)}",
                number(f.value),
                f.rule.limits,
            )
            for f in self.findings(top)
        )
        headers = ("status", "group", self.table.counts.label.name, "rows", "value", "limits")
        return Grid(headers, rows, frozenset({3, 4}))

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        about = {
            k: v for k, v in self.table.top(0).to_dict().items() if k not in ("rows", "schema")
        }
        return {
            "schema": SCHEMA,
            "status": self.status,
            "exit_code": self.exit_code,
            "sentence": self.sentence,
            "evidence": self.policy.evidence,
            "rows_checked": self.rows_checked,
            "findings": [f.to_dict() for f in self.findings()],
            **about,
        }

    def text(self, top: int | None = 20) -> str:
        """The first findings as a table, and the outcome in a sentence."""
        if not len(self.code):
            return self.sentence
        more = 0 if top is None else max(len(self.code) - top, 0)
        rest = f"\n… and {more:,} more" if more else ""
        return f"{self.grid(top).text()}{rest}\n\n{self.sentence}"

    def __repr__(self) -> str:
        return self.text()


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read ``equipoise.toml``, or the ``[tool.equipoise]`` table of a pyproject file."""
    file = Path(path)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SourceNotFound(f"{file} cannot be read: {error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file} is not TOML: {error}.") from None
    tools = data.get("tool")
    if file.name == "pyproject.toml" or (isinstance(tools, dict) and "equipoise" in tools):
        ours = tools.get("equipoise", {}) if isinstance(tools, dict) else {}
        data = ours if isinstance(ours, dict) else {"equipoise": ours}
    if not all(isinstance(table, dict) for table in data.values()):
        raise InputError(f"{file} must hold tables, as [check], with options as keys.")
    return data


def _rule(data: Mapping[str, Any], min_count: int) -> Rule:
    if not isinstance(data, Mapping):
        raise InputError(
            f"rules are a list of tables, [[check.rules]] in TOML; {data!r} is not a table."
        )
    given = {key.replace("-", "_"): value for key, value in data.items()}
    _refuse_unknown("a rule", given, _RULE_KEYS)
    if "max_abs" in given and "max_abs_ub" in given:
        raise InputError("a rule has max-abs or max-abs-ub, which are the same, not both.")
    if "max_abs_ub" in given:
        given["max_abs"] = given.pop("max_abs_ub")
    return Rule(**{"min_count": min_count, **given})


def _refuse_unknown(what: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            raise InputError(
                f"{what} has no key {key!r}; it has: {', '.join(known)}.{did_you_mean(key, known)}"
            )


def _against(ub: Any, k: float) -> Any:
    """UB against an allowed ratio: 1 − f_gy/(K·f_y)."""
    return ub if k == 1 else 1 - (1 - ub) / k


def _lines(table: BiasTable, rule: Rule) -> NDArray[np.bool_]:
    codes = table.measured.lattice.codes
    inside = np.ones(len(codes), np.bool_)
    names = [a.name for a in table.counts.sensitive]
    for name, value in rule.where.items():
        axis = table.counts.axis(name)
        if name not in names:
            raise InputError(f"the rule's group {rule.group} names the label; use the key label.")
        inside &= codes[:, names.index(name)] == axis.code(value)
    return inside


def _labels(table: BiasTable, rule: Rule) -> NDArray[np.bool_]:
    label = table.counts.label
    if rule.label is None:
        return np.ones(len(label), np.bool_)
    return np.asarray(np.arange(len(label)) == label.code(rule.label))
