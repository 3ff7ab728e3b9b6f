"""The rules that a repaired table must pass, as a request for a plan states them.

The rules are those of a check. A plan translates a rule on Uniform Bias exactly. The rule that no
rate of a label is below a share c of the best-off group's holds if there is a number b such that
every group's rate lies between c·b and b times the overall rate. A search finds the cheapest b. The
condition is also necessary if every finest group is checked and large enough to be a best-off group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.measures.configuration import read_config
from equipoise.measures.policy import Policy
from equipoise.measures.rules import Rule, rule_from_dict

if TYPE_CHECKING:
    import os

UB = ("uniform_bias", None)
BEST = ("impact_ratio", "best")
"""The measures and baselines that a plan can limit."""


@dataclass(frozen=True)
class PlanPolicy:
    """The rules of a policy in the order of a check, the last that fits a group and label decides.

    >>> PlanPolicy.of({"rules": [{"group": "sex=w", "max-abs-ub": 0.2}]}, tolerance=0.1).rules
    (Rule(|uniform_bias| ≤ 0.1 for *), Rule(|uniform_bias| ≤ 0.2 for sex=w))
    """

    rules: tuple[Rule, ...]
    tolerance: float
    """How far label frequencies may move if they are kept: the tolerance that was given, or the
    largest limit of a rule. A request for a larger tolerance widens all limits by the difference."""
    max_order: int | None = None
    """Maximum number of attributes that define a group that is checked."""

    @classmethod
    def of(cls, given: Any, *, tolerance: float = 0.0, min_group: int = 1) -> PlanPolicy:
        """Take a policy, plain data or the path of a TOML file.

        A tolerance is a rule before the others. ``min_group`` raises the minimum size of all rules.
        """
        max_order = None
        if not isinstance(given, Policy):
            data = given if isinstance(given, Mapping) else _read_check(given)
            max_order = data.get("max_order", data.get("max-order"))
            given = Policy.of(data)
        first = (Rule(max_abs=tolerance),) if tolerance else ()
        rules = tuple(
            replace(rule, min_count=max(rule.min_count, min_group))
            for rule in (*first, *given.rules)
        )
        _refuse_interval(given)
        _refuse_others(rules)
        return cls(rules, tolerance or _largest(rules), max_order)

    @property
    def ratio(self) -> Rule | None:
        """The rule on the ratio to the best-off group's rate, if there is one."""
        return next((rule for rule in self.rules if rule.key == BEST), None)

    @property
    def checked(self) -> Policy:
        """The policy that the repaired table is checked against."""
        return Policy(rules=self.rules)

    def without(self, left_out: Rule) -> PlanPolicy:
        """The policy without a rule; no earlier rule takes back the groups that it decided for."""
        # UB is never above 1, so this rule excludes nothing.
        nothing = replace(left_out, max_abs=None, min=None, max=1.0, k=1.0)
        kept = [nothing if rule is left_out else rule for rule in self.rules]
        if left_out.key == BEST:
            kept.remove(nothing)
        if not any(rule is not nothing for rule in kept):
            raise InputError("a policy needs a rule.")
        return replace(self, rules=tuple(kept))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that :meth:`from_dict` reads."""
        rules = [rule.to_dict() for rule in self.rules]
        return {"rules": rules, "tolerance": self.tolerance, "max_order": self.max_order}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PlanPolicy:
        """Read what :meth:`to_dict` wrote."""
        rules = tuple(rule_from_dict(rule, 1) for rule in data["rules"])
        _refuse_others(rules)
        return cls(rules, float(data["tolerance"]), data["max_order"])


def _read_check(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The table of a file that the rules are in."""
    found = read_config(path).get("check")
    if found is None:
        raise InputError(
            f"{path} has no table [check] with rules; write one, as for `equipoise check`."
        )
    return dict(found)


def _refuse_interval(policy: Policy) -> None:
    if policy.evidence == "interval":
        raise InputError(
            "`policy` asks for whole intervals inside the limits (evidence = 'interval'), which a "
            "plan cannot promise: intervals depend on the rows in ways that it does not model. Plan "
            "with evidence = 'estimate' and narrower limits, and check the repaired table."
        )


def _refuse_others(rules: tuple[Rule, ...]) -> None:
    """Refuse rules that a plan cannot translate."""
    for rule in rules:
        if rule.key not in (UB, BEST):
            raise InputError(
                f"`policy` has the rule {rule.words}, which a plan cannot translate; plans take rules "
                "on uniform_bias, and one on impact_ratio with the reference 'best'. Write it as "
                "limits on uniform_bias, or leave it out and check the repaired table."
            )
    ratios = [rule for rule in rules if rule.key == BEST]
    for rule in ratios:
        _refuse_ratio(rule)
    if len(ratios) > 1:
        raise InputError(
            f"`policy` has {len(ratios)} rules on impact_ratio against the best-off group, and a plan "
            "takes one; limit uniform_bias instead of the others."
        )


def _refuse_ratio(rule: Rule) -> None:
    low, high = rule.bounds
    if rule.label is None:
        raise InputError(
            f"the rule {rule.words} needs to know which label value is favourable; name it as the "
            "rule's label, or with the key favourable of the policy."
        )
    if not 0 < low <= 1 or np.isfinite(high):
        raise InputError(
            f"`policy` has the rule {rule.words}; a plan takes a minimum above 0 and at most 1 for "
            "the ratio to the best-off group's rate, and no maximum."
        )


def _largest(rules: tuple[Rule, ...]) -> float:
    """The largest limit of the rules on |UB|, which must be above zero."""
    limits = [abs(x) for rule in rules if rule.key == UB for x in rule.bounds if np.isfinite(x)]
    limits += [1 - rule.bounds[0] for rule in rules if rule.key == BEST]
    if not max(limits) > 0:
        raise InputError(
            "`policy` allows no bias at all, which whole rows reach only by chance; use `tolerance=0` "
            "without a policy for zero bias up to rounding, or allow a little."
        )
    return float(max(limits))
