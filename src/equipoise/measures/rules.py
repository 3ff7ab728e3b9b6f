"""Limits on measures, each for some groups and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from equipoise.errors import InputError, did_you_mean
from equipoise.lattice import Group, format_value
from equipoise.measures.four_fifths import RULE
from equipoise.measures.registry import measure_named
from equipoise.measures.request import require_reference
from equipoise.validate import a_number, at_least, between
from equipoise.values import Value, as_value

_RULE_KEYS = (
    *("group", "label", "measure", "reference", "max_abs", "max_abs_ub", "min_impact_ratio"),
    *("min", "max", "k", "min_count", "significance"),
)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A limit on one measure, for some groups and labels.

    Parameters
    ----------
    group
        Pattern of the group. The rule applies to that group and every group inside it.
    label
        Label value the rule applies to. By default all labels.
    measure
        Name of the measure that is limited.
    max_abs, min, max
        Limits on its absolute value, from below and from above.
    k
        Ratio f_gy/f_y that is allowed instead of 1; UB is then computed relative to it.
    min_count
        Minimum number of rows of a group that is checked, and of a best-off group.
    reference
        Baseline that a ratio or a difference compares a group with: ``"rest"``, ``"best"`` (the
        best-off of all measured groups of the same attributes) or a group's pattern. By default
        the one the table was measured with. With ``"best"`` the rule applies to the favourable
        label: `label`, or else the label that was named as favourable when measuring.
    significance
        Level of Fisher's exact test of the group against the best-off group, for a rule on
        impact_ratio with the reference ``"best"``. A group below the limit is outside only if p is
        at most this, and undecided otherwise. By default there is no test.

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
    significance: float | None = None

    def __post_init__(self) -> None:
        for name in ("group", "measure"):
            if not isinstance(getattr(self, name), (str, Group)):
                raise InputError(f"a rule's {name} must be text, not {getattr(self, name)!r}.")
        object.__setattr__(self, "group", self.where)
        object.__setattr__(self, "measure", measure_named(self.measure).name)
        if self.label is not None:
            object.__setattr__(self, "label", as_value(self.label))
        for name in ("max_abs", "min", "max", "k", "min_count", "significance"):
            if getattr(self, name) is not None:
                a_number(name.replace("_", "-"), getattr(self, name))
        if self.max_abs is None and self.min is None and self.max is None:
            raise InputError("a rule needs a limit: max-abs (or max-abs-ub), min or max.")
        if self.max_abs is not None:
            at_least("max-abs", self.max_abs, 0)
        if self.bounds[0] > self.bounds[1]:
            raise InputError(f"no value can be inside both limits of a rule: {self.limits}.")
        if self.min_count < 1:
            raise InputError(f"min-count must be at least 1, not {self.min_count}.")
        if self.k != 1.0 and self.measure != "uniform_bias":
            raise InputError("k, the allowed ratio, applies to uniform_bias only.")
        if not self.k >= 1e-9:
            raise InputError(
                f"k, the allowed ratio f_gy/f_y, must be above 0, at least 1e-9, not {self.k}."
            )
        self._check_reference()
        self._check_significance()

    def _check_reference(self) -> None:
        if self.reference is None:
            return
        measure = measure_named(self.measure)
        if measure.against != "reference":
            raise InputError(
                f"a rule on {measure.name} takes no reference, because the measure compares a group "
                f"with {'nothing' if measure.against is None else 'all rows'}; use a measure such "
                "as impact_ratio."
            )
        if not isinstance(self.reference, str):
            raise InputError(f"a rule's reference must be text, not {self.reference!r}.")
        require_reference("a rule's reference", self.reference)

    def _check_significance(self) -> None:
        if self.significance is None:
            return
        between("significance", self.significance, 0, 1)
        if self.key != ("impact_ratio", "best"):
            raise InputError(
                "significance is the level of a test against the best-off group; use it in a rule "
                "with min-impact-ratio and the reference 'best'."
            )

    @property
    def key(self) -> tuple[str, str | None]:
        """The measure and baseline that are limited; the last rule on them that fits a row decides."""
        return self.measure, self.reference

    @property
    def has_interval(self) -> bool:
        """Whether the limited measure has an interval."""
        return self.measure == "uniform_bias" or self.key == ("impact_ratio", "best")

    @property
    def where(self) -> Group:
        """The group the rule applies to."""
        return Group.parse(self.group) if isinstance(self.group, str) else self.group

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value allowed."""
        limit = np.inf if self.max_abs is None else self.max_abs
        low = -np.inf if self.min is None else self.min
        high = np.inf if self.max is None else self.max
        return float(np.maximum(low, -limit)), float(np.minimum(high, limit))

    @property
    def limits(self) -> str:
        """The limits as a formula."""
        words = []
        if self.max_abs is not None:
            words.append(f"|{self.measure}| ≤ {self.max_abs:g}")
        if self.min is not None:
            words.append(f"{self.measure} ≥ {self.min:g}")
        if self.max is not None:
            words.append(f"{self.measure} ≤ {self.max:g}")
        against = {None: "", "best": " against the best-off group", "rest": " against the rest"}
        of_whom = against.get(self.reference, f" against {self.reference}")
        tested = "" if self.significance is None else f", unless p > {self.significance:g}"
        at_k = f" at K = {self.k:g}" if self.k != 1 else ""
        return " and ".join(words) + of_whom + at_k + tested

    @property
    def words(self) -> str:
        """The limits, and the groups and the label they apply to."""
        label = "" if self.label is None else f", label {format_value(self.label)}"
        return f"{self.limits} for {self.group}{label}"

    def __repr__(self) -> str:
        return f"Rule({self.words})"

    def to_dict(self) -> dict[str, Any]:
        """What differs from the defaults, as plain data that :func:`rule_from_dict` reads."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        given = {f.name: given[f.name] for f in fields(self) if given[f.name] != f.default}
        return {**given, "group": str(self.group)}


def four_fifths_rule(favourable: Any = None, min_count: int = 1) -> Rule:
    """The four-fifths rule: a rate of at least 0.8 times that of the best-off group.

    >>> four_fifths_rule(">50K")
    Rule(impact_ratio ≥ 0.8 against the best-off group for *, label >50K)
    """
    return Rule(
        measure="impact_ratio", min=RULE, reference="best", label=favourable, min_count=min_count
    )


def rule_from_dict(data: Mapping[str, Any], min_count: int) -> Rule:
    """Read a rule from plain data, as in ``equipoise.toml``."""
    if not isinstance(data, Mapping):
        raise InputError(
            f"rules must be a list of tables, [[check.rules]] in TOML; {data!r} is not a table."
        )
    given = {key.replace("-", "_"): value for key, value in data.items()}
    refuse_unknown("a rule", given, _RULE_KEYS)
    if "max_abs" in given and "max_abs_ub" in given:
        raise InputError("a rule has either max-abs or max-abs-ub, which mean the same, not both.")
    if "max_abs_ub" in given:
        given["max_abs"] = given.pop("max_abs_ub")
    if "min_impact_ratio" in given:
        if {"min", "measure"} & given.keys():
            raise InputError(
                "min-impact-ratio already sets the measure impact_ratio and its min; leave these out."
            )
        a_number("min-impact-ratio", given["min_impact_ratio"])
        given |= {"measure": "impact_ratio", "min": given.pop("min_impact_ratio")}
    return Rule(**{"min_count": min_count, **given})


def refuse_unknown(what: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a key that is not known, and suggest one that is."""
    for key in given:
        if key not in known:
            raise InputError(
                f"{what} has no key {key!r}; it has: {', '.join(known)}.{did_you_mean(key, known)}"
            )
