"""Limits that a team agrees on, and what a bias table says of them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from equipoise.errors import InputError, SourceNotFound, did_you_mean
from equipoise.lattice import Group, format_value
from equipoise.measures.display import TOO_FEW, number, whole
from equipoise.measures.four_fifths import ROUNDING, RULE, ratio_to_best
from equipoise.measures.options import require_reference
from equipoise.measures.registry import measure_named
from equipoise.plain import Grid, csv_text
from equipoise.results import FlatTable, Result, column_names
from equipoise.validate import a_number, at_least, one_of
from equipoise.values import Value, as_value, plain

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from equipoise.measures.measure import Floats
    from equipoise.measures.row import Row
    from equipoise.measures.table import BiasTable

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
        Groups with fewer rows are not looked at, nor are they anybody's best-off group.
    reference
        To whom a ratio or a difference compares a group: ``"rest"``, ``"best"`` (the best-off
        group of the same attributes, of all that were measured) or a group's pattern; if not
        given, as the table was measured. With ``"best"`` the rule is about the favourable label:
        `label`, or else the label that was named as favourable when measuring.

    >>> Rule(group="sex=Female", label=">50K", max_abs=0.2)
    Rule(|uniform_bias| ≤ 0.2 for sex=Female, label >50K)
    >>> Rule(measure="impact_ratio", min=0.8, reference="best", label=">50K")
    Rule(impact_ratio ≥ 0.8 against the best-off group for *, label >50K)
    """

    group: Group | str = "*"
    label: Value | None = None
    measure: str = "uniform_bias"
    max_abs: float | None = None
    min: float | None = None
    max: float | None = None
    k: float = 1.0
    min_count: int = 1
    reference: str | None = None

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
        if self.reference is not None:
            self._check_reference()

    def _check_reference(self) -> None:
        measure = measure_named(self.measure)
        if measure.against != "reference":
            raise InputError(
                f"a rule on {measure.name} has no reference: it compares a group with "
                f"{'nobody' if measure.against is None else 'all rows'}; use it with a measure "
                "such as impact_ratio."
            )
        if not isinstance(self.reference, str):
            raise InputError(f"a rule's reference is text, not {self.reference!r}.")
        require_reference("a rule's reference", self.reference)

    @property
    def key(self) -> tuple[str, str | None]:
        """What is limited: of the rules on the same the last that fits a row decides it."""
        return self.measure, self.reference

    @property
    def has_interval(self) -> bool:
        """Whether what is limited has an interval."""
        return self.measure == "uniform_bias" or self.key == ("impact_ratio", "best")

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
        against = {None: "", "best": " against the best-off group", "rest": " against the rest"}
        of_whom = against.get(self.reference, f" against {self.reference}")
        return " and ".join(words) + of_whom + (f" at K = {self.k:g}" if self.k != 1 else "")

    def __repr__(self) -> str:
        label = "" if self.label is None else f", label {format_value(self.label)}"
        return f"Rule({self.limits} for {self.group}{label})"


_POLICY_KEYS = ("max_abs_ub", "four_fifths", "favourable", "min_count", "evidence", "rules")
# A [check] table holds defaults of the command's other options, too.
_OPTION_KEYS = (
    *("sensitive", "label", "count", "weight", "bin", "na", "missing", "missing_label"),
    *("encoding", "delimiter", "threads", "memory", "quiet", "max_order", "limit", "confidence"),
    *("sampling", "adjust", "top", "output", "suppress_below", "where", "sql"),
    *("no_header", "lenient"),
)
_RULE_KEYS = (
    *("group", "label", "measure", "reference", "max_abs", "max_abs_ub", "min_impact_ratio"),
    *("min", "max", "k", "min_count"),
)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Rules in order: of those on one measure and reference the last that fits a row decides.

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
                "there is no rule to check; give a limit, as in --max-abs-ub 0.1 or --four-fifths, "
                "or rules in equipoise.toml."
            )
        uncertain = [r.measure for r in self.rules if not r.has_interval]
        if self.evidence == "interval" and uncertain:
            raise InputError(
                f"evidence='interval' needs intervals, which {uncertain[0]} does not have; limit "
                "uniform_bias, or impact_ratio with the reference 'best', or use "
                "evidence='estimate'."
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
        if not isinstance(given.get("four_fifths", False), bool):
            raise InputError(
                f"four-fifths is true or false, not {given['four_fifths']!r}; a rule with "
                "min-impact-ratio has another limit."
            )
        if given.get("four_fifths"):
            rules.append(four_fifths_rule(given.get("favourable"), given.get("min_count") or 1))
        rules += [_rule(r, given.get("min_count") or 1) for r in given.get("rules", [])]
        return cls(rules=tuple(rules), evidence=given.get("evidence") or "estimate")

    @classmethod
    def of(
        cls,
        policy: Policy | Mapping[str, Any] | str | os.PathLike[str] | None,
        *,
        max_abs_ub: float | None = None,
        four_fifths: bool = False,
        evidence: Evidence | None = None,
    ) -> Policy:
        """Take a policy, plain data or the path of a TOML file, with limits put before it.

        A file has a ``[check]`` table, or ``[tool.equipoise.check]`` if it is a pyproject file.
        """
        if isinstance(policy, Policy):
            first = [] if max_abs_ub is None else [Rule(max_abs=max_abs_ub)]
            first += [four_fifths_rule()] if four_fifths else []
            return cls(rules=(*first, *policy.rules), evidence=evidence or policy.evidence)
        if policy is None or isinstance(policy, Mapping):
            data = policy or {}
        else:
            data = read_config(policy).get("check", {})
        given = {key.replace("-", "_"): value for key, value in data.items()}
        stated = {"max_abs_ub": max_abs_ub, "evidence": evidence}
        stated["four_fifths"] = four_fifths or None
        return cls.from_dict({**given, **{k: v for k, v in stated.items() if v is not None}})

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that are limited, each once."""
        return tuple(dict.fromkeys(r.measure for r in self.rules))

    def check(self, table: BiasTable) -> Check:
        """Hold a bias table against the rules."""
        settled = replace(self, rules=tuple(_settled(rule, table) for rule in self.rules))
        return settled._check(table)  # noqa: SLF001 (of the same class)

    def _check(self, table: BiasTable) -> Check:
        parts: list[tuple[NDArray[Any], ...]] = []
        looked_at = 0
        for key in dict.fromkeys(rule.key for rule in self.rules):
            decided = self._deciding(table, key)
            looked_at += int((decided >= 0).sum())
            parts += self._found(table, key, decided)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        *_, code, sure, far = columns
        # Those first for which there is enough evidence, whatever their size.
        order = np.lexsort((-np.round(far, 12), ~sure, code))
        rule, line, label, value, code, sure = (c[order] for c in columns[:-1])
        return Check(table, self, rule, line, label, value, code, sure, rows_checked=looked_at)

    def _deciding(self, table: BiasTable, key: tuple[str, str | None]) -> NDArray[np.int64]:
        """For each line and label the number of the rule that decides it, or −1."""
        m = table.measured
        decided = np.full(m.ub.shape, -1, np.int64)
        for place, rule in enumerate(self.rules):
            if rule.key == key:
                fits = _lines(table, rule)[:, None] & _labels(table, rule)[None, :]
                decided[fits] = np.where(m.n_group[:, None] >= rule.min_count, place, -1)[
                    np.nonzero(fits)[0], 0
                ]
        decided[np.isnan(m.ub)] = -1
        shown = np.zeros(m.ub.shape, np.bool_)
        shown[table.places] = True
        return np.where(shown, decided, -1)

    def _found(
        self, table: BiasTable, key: tuple[str, str | None], decided: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[Any], ...]]:
        """For each rule: its number, and of what it finds the columns of a Check, and the size."""
        neutral = measure_named(key[0]).neutral or 0.0
        for place, rule in enumerate(self.rules):
            if rule.key != key:
                continue
            values = table.measure(key[0], reference=key[1], min_count=rule.min_count)
            line, label = np.nonzero(decided == place)
            value = _against(values[line, label], rule.k)
            status = self._statuses(table, rule, value, line, label)
            found = status != 0
            line, label, value, status = (a[found] for a in (line, label, value, status))
            sure = _sure(table, rule, line, label)
            far = np.nan_to_num(np.abs(value - neutral), nan=-1.0)
            yield np.full(len(line), place), line, label, value, status, sure, far

    def _statuses(
        self,
        table: BiasTable,
        rule: Rule,
        value: Floats,
        line: NDArray[np.int64],
        label: NDArray[np.int64],
    ) -> NDArray[np.int8]:
        """0 where a row is inside, else OUTSIDE or UNDECIDED."""
        low, high = rule.bounds
        if self.evidence == "estimate":
            slack = 0.0 if rule.measure == "uniform_bias" else ROUNDING
            outside = (value < low - slack) | (value > high + slack)
            unsure = (outside & table.measured.unsound[line, label]) | np.isnan(value)
        else:
            least, most = _interval(table, rule, line, label)
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
    sure: bool
    """Whether it differs by more than chance."""
    against: Group | None = None
    """The group it was compared with, if the rule compares with the best-off one."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            **self.row.to_dict(),
            "measure": self.rule.measure,
            "reference": self.rule.reference,
            "against": None if self.against is None else str(self.against),
            "value": None if np.isnan(self.value) else self.value,
            "limits": self.rule.limits,
            "sure": self.sure,
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
    sure: NDArray[np.bool_]
    rows_checked: int = 0
    _best_lines: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def findings(self, top: int | None = None) -> Iterator[Finding]:
        """The findings, or only the first ones.

        Those outside come first, and of these the ones with enough evidence; then by size.
        """
        rules, codes, values = (a[:top].tolist() for a in (self.rule, self.code, self.value))
        rows = self.table.rows_at(self.line[:top], self.label[:top])
        for i, row in enumerate(rows):
            status: Status = "outside" if codes[i] == OUTSIDE else "undecided"
            rule = self.policy.rules[rules[i]]
            against = self._best(rule, int(self.line[i]), int(self.label[i]))
            yield Finding(row, rule, values[i], status, bool(self.sure[i]), against)

    def _best(self, rule: Rule, line: int, label: int) -> Group | None:
        if rule.reference != "best":
            return None
        m = self.table.measured
        if rule.min_count not in self._best_lines:
            self._best_lines[rule.min_count] = m.best(min_count=rule.min_count)
        best = int(self._best_lines[rule.min_count][line, label])
        return None if best < 0 else m.group(best)

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
        """The outcome in a sentence, and of which rows if not of all."""
        return " ".join((self._outcome, *self.table.counts.reading.sentences))

    @property
    def _outcome(self) -> str:
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
                f.rule.reference,
                None if f.against is None else str(f.against),
                f.sure,
            )
            for f in self.findings(top)
        )
        before = ("status", "group")
        numbers = ("n_group", "n_cell", "measure", "value", "least", "most", "k")
        after = (*numbers, "reference", "against", "sure")
        label = column_names((*before, *after), [self.table.counts.label.name])
        return (*before, *label, *after), rows

    def grid(self, top: int | None = None) -> Grid:
        """The findings, or the first of them, as a table."""
        found = list(self.findings(top))
        rows = tuple(_cells(f) for f in found)
        headers = ["status", "group", self.table.counts.label.name, "rows", "value", "limits"]
        if any(f.against is not None for f in found):
            rows = tuple((*row, str(f.against or "")) for row, f in zip(rows, found, strict=True))
            headers.append("compared with")
        return Grid(tuple(headers), rows, frozenset({3, 4}), self._line(found))

    def _line(self, found: Sequence[Finding]) -> tuple[int, str] | None:
        """Where findings begin that are outside their limits, perhaps by chance alone."""
        outside = [f.sure for f in found if f.status == "outside"]
        unsure = outside.index(False) if False in outside else None
        return None if unsure is None else (unsure, f"outside, but {TOO_FEW}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        about = {k: v for k, v in self.table.about().items() if k != "schema"}
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


def four_fifths_rule(favourable: Any = None, min_count: int = 1) -> Rule:
    """The four-fifths rule: a rate of at least 0.8 times that of the best-off group.

    >>> four_fifths_rule(">50K")
    Rule(impact_ratio ≥ 0.8 against the best-off group for *, label >50K)
    """
    return Rule(
        measure="impact_ratio", min=RULE, reference="best", label=favourable, min_count=min_count
    )


def _settled(rule: Rule, table: BiasTable) -> Rule:
    """The rule with the label it is about: who is best off depends on which is good to have."""
    if rule.reference != "best" or rule.label is not None:
        return rule
    if table.options.favourable is None:
        label = table.counts.label
        values = ", ".join(format_value(v) for v in label.values[:20])
        raise InputError(
            f"the rule {rule.limits} needs the label value that is good to have; name it with "
            f"--favourable (favourable= in Python and in [check]) or as the rule's label. "
            f"{label.name!r} has: {values}{', …' if len(label.values) > 20 else ''}."
        )
    return replace(rule, label=table.options.favourable)


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
    if "min_impact_ratio" in given:
        if {"min", "measure"} & given.keys():
            raise InputError(
                "min-impact-ratio stands for the measure impact_ratio and its min; leave these out."
            )
        a_number("min-impact-ratio", given["min_impact_ratio"])
        given |= {"measure": "impact_ratio", "min": given.pop("min_impact_ratio")}
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


def _interval(
    table: BiasTable, rule: Rule, line: NDArray[np.int64], label: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """The limits of what a rule is about, which has an interval."""
    m = table.measured
    if m.interval is None:
        raise InputError("evidence='interval' needs intervals; measure with uncertainty.")
    if rule.measure == "uniform_bias":
        low, high = (_against(x[line, label], rule.k) for x in m.interval)
        return low, high
    best = m.best(min_count=rule.min_count)
    low, high = np.full((2, *m.ub.shape), np.nan)
    for code in np.unique(label):
        low[:, code], high[:, code] = ratio_to_best(m, best[:, code], int(code))
    return low[line, label], high[line, label]


def _sure(
    table: BiasTable, rule: Rule, line: NDArray[np.int64], label: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Where what a rule is about differs by more than chance from its neutral value."""
    m = table.measured
    usual = rule.measure == "uniform_bias" and rule.k == 1
    if usual or m.interval is None or not rule.has_interval:
        return np.asarray(m.evident[line, label])
    neutral = measure_named(rule.measure).neutral or 0.0
    low, high = _interval(table, rule, line, label)
    return np.asarray(((low > neutral) | (high < neutral)) & ~m.unsound[line, label])


def _cells(f: Finding) -> tuple[str, ...]:
    known = f.row.n_group is not None
    return (
        f.status,
        str(f.row.group),
        format_value(f.row.label),
        f"{whole(f.row.n_cell)} of {whole(f.row.n_group)}" if known else "–",
        number(f.value) if f.rule.measure == "uniform_bias" else _unsigned(f.value),
        f.rule.limits,
    )


def _unsigned(value: float) -> str:
    return number(value).removeprefix("+")


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
