"""Limits that a team agrees on, and the check of a bias table against them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Group, format_value
from equipoise.measures.configuration import read_config
from equipoise.measures.display import TOO_FEW, number, whole
from equipoise.measures.findings import OUTSIDE, Evidence, Findings, find_rows, settle_label
from equipoise.measures.rules import Rule, four_fifths_rule, refuse_unknown, rule_from_dict
from equipoise.plain import Grid, csv_text
from equipoise.results import FlatTable, Result, column_names
from equipoise.validate import a_number, one_of
from equipoise.values import plain

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from equipoise.measures.row import Row
    from equipoise.measures.table import BiasTable

Status: TypeAlias = Literal["inside", "outside", "undecided"]
SCHEMA = "equipoise.check/1"
EXIT_CODES: Mapping[Status, int] = {"inside": 0, "outside": 1, "undecided": 3}

_POLICY_KEYS = ("max_abs_ub", "four_fifths", "favourable", "min_count", "evidence", "rules")
# A [check] table may also hold defaults of the command's other options.
_OPTION_KEYS = (
    *("sensitive", "label", "count", "weight", "bin", "na", "missing", "missing_label"),
    *("encoding", "delimiter", "threads", "memory", "quiet", "max_order", "limit", "confidence"),
    *("sampling", "adjust", "top", "output", "suppress_below", "where", "sql"),
    *("no_header", "lenient"),
)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Rules in order: of those on one measure and baseline, the last that fits a row decides.

    Parameters
    ----------
    rules
        The rules.
    evidence
        Whether the measured value decides (``"estimate"``), or a row is inside or outside only
        if its whole interval is (``"interval"``).

    >>> policy = Policy.from_dict(
    ...     {"max-abs-ub": 0.1, "rules": [{"group": "sex=Female", "max-abs-ub": 0.2}]}
    ... )
    >>> policy.rules
    (Rule(|uniform_bias| ≤ 0.1 for *), Rule(|uniform_bias| ≤ 0.2 for sex=Female))
    """

    rules: tuple[Rule, ...]
    evidence: Evidence = "estimate"

    def __post_init__(self) -> None:
        one_of("evidence", self.evidence, get_args(Evidence))
        if not self.rules:
            raise InputError(
                "there is no rule to check; give a limit, as in `max_abs_ub=0.1` or "
                "`four_fifths=True`, or rules in equipoise.toml."
            )
        tested = [r for r in self.rules if r.significance is not None]
        if self.evidence == "interval" and tested:
            raise InputError(
                "a rule has either a level of significance or whole intervals as its evidence; leave "
                "significance out, or use `evidence='estimate'`."
            )
        uncertain = [r.measure for r in self.rules if not r.has_interval]
        if self.evidence == "interval" and uncertain:
            raise InputError(
                f"`evidence='interval'` needs intervals, which {uncertain[0]} does not have; limit "
                "uniform_bias, or impact_ratio with the reference 'best', or use "
                "`evidence='estimate'`."
            )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Policy:
        """Read a policy from plain data, as written in ``equipoise.toml``."""
        given = {key.replace("-", "_"): value for key, value in data.items()}
        refuse_unknown("a policy", given, (*_POLICY_KEYS, *_OPTION_KEYS))
        listed = given.get("rules", [])
        if not isinstance(listed, Sequence) or isinstance(listed, str):
            raise InputError("rules must be a list of tables, [[check.rules]] in TOML.")
        rules = []
        if given.get("max_abs_ub") is not None:
            a_number("max-abs-ub", given["max_abs_ub"])
            rules.append(Rule(max_abs=given["max_abs_ub"], min_count=given.get("min_count") or 1))
        if not isinstance(given.get("four_fifths", False), bool):
            raise InputError(
                f"four-fifths must be true or false, not {given['four_fifths']!r}; for another limit "
                "use a rule with min-impact-ratio."
            )
        if given.get("four_fifths"):
            rules.append(four_fifths_rule(given.get("favourable"), given.get("min_count") or 1))
        rules += [rule_from_dict(r, given.get("min_count") or 1) for r in given.get("rules", [])]
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
        """Take a policy, plain data or the path of a TOML file, and put further limits before it.

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
        """The measures that are limited, without repetition."""
        return tuple(dict.fromkeys(r.measure for r in self.rules))

    def check(self, table: BiasTable) -> Check:
        """Check a bias table against the rules."""
        counts, favourable = table.counts, table.options.favourable
        rules = tuple(settle_label(rule, counts, favourable) for rule in self.rules)
        settled = replace(self, rules=rules)
        return Check(table, settled, find_rows(table, settled.rules, settled.evidence))


@dataclass(frozen=True)
class Finding:
    """A row that is outside the limits of a rule, or that the rule cannot decide."""

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
    """The check of a table against a policy: the rows outside their limits or undecided.

    >>> import equipoise as eq
    >>> result = eq.check("adult", sensitive_features=["sex"], label="income", max_abs_ub=0.1)
    >>> result.status, len(result.outside)
    ('outside', 3)
    """

    table: BiasTable
    policy: Policy
    found: Findings
    _best_lines: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def findings(self, top: int | None = None) -> Iterator[Finding]:
        """The findings, or only the first ones.

        Rows outside their limits come first, of these the ones with enough evidence, by size.
        """
        found = self.found
        for i, row in enumerate(self.table.measured.rows_at(found.line[:top], found.label[:top])):
            status: Status = "outside" if found.code[i] == OUTSIDE else "undecided"
            rule = self.policy.rules[found.rule[i]]
            against = self._best(rule, int(found.line[i]), int(found.label[i]))
            yield Finding(row, rule, float(found.value[i]), status, bool(found.sure[i]), against)

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
    def rows_checked(self) -> int:
        """How many rows were checked."""
        return self.found.checked

    @property
    def _n_outside(self) -> int:
        return int((self.found.code == OUTSIDE).sum())

    @property
    def status(self) -> Status:
        """``"outside"`` if any row is; ``"undecided"`` if any is, or none was checked."""
        if self._n_outside:
            return "outside"
        return "undecided" if len(self.found.code) or not self.rows_checked else "inside"

    @property
    def exit_code(self) -> int:
        """The exit code of the command line: 0 inside, 1 outside, 3 not enough evidence."""
        return EXIT_CODES[self.status]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The outcome, as :attr:`sentence` says it."""
        return (self.sentence,)

    @property
    def sentence(self) -> str:
        """The outcome in a sentence, and which rows were read if not all were."""
        return " ".join((self.outcome, *self.table.counts.reading.sentences))

    @property
    def outcome(self) -> str:
        """The outcome alone, in a sentence."""
        checked = f"of {self.rows_checked:,} group and label pairs checked"
        if not self.rows_checked:
            return "No group was large enough to be checked."
        undecided = len(self.found.code) - self._n_outside
        if self.status == "outside":
            more = f"; {undecided:,} more cannot be decided" if undecided else ""
            return f"{self._n_outside:,} {checked} are outside their limits{more}."
        if self.status == "undecided":
            why = (
                "their intervals contain the limit, or the measure is undefined"
                if self.policy.evidence == "interval"
                else "they have too few rows, or the measure is undefined"
            )
            return (
                f"{undecided:,} {checked} cannot be decided: {why}. Leave small groups out with "
                "`min_count`, or use more rows."
            )
        return f"All {self.rows_checked:,} group and label pairs checked are inside their limits."

    def to_csv(self, top: int | None = None) -> str:
        """One line per finding, in full precision."""
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
        """Where the findings begin that may be outside their limits by chance alone."""
        outside = [f.sure for f in found if f.status == "outside"]
        unsure = outside.index(False) if False in outside else None
        return None if unsure is None else (unsure, f"outside, but {TOO_FEW}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON."""
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
        if not len(self.found.code):
            return self.sentence
        more = 0 if top is None else max(len(self.found.code) - top, 0)
        rest = f"\n… and {more:,} more" if more else ""
        return f"{self.grid(top).text()}{rest}\n\n{self.sentence}"

    def __repr__(self) -> str:
        return self.text()


def _cells(f: Finding) -> tuple[str, ...]:
    known = f.row.n_group is not None
    return (
        f.status,
        str(f.row.group),
        format_value(f.row.label),
        f"{whole(f.row.n_cell)} of {whole(f.row.n_group)}" if known else "–",
        number(f.value) if f.rule.measure == "uniform_bias" else number(f.value).removeprefix("+"),
        f.rule.limits,
    )
