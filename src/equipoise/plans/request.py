"""A request for a plan: tolerance, costs, and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_args

from equipoise.counts import Counts
from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.options.plan import Allow, Numbers, PlanOptions, Reference, Rounding
from equipoise.plans.benchmark import TargetRates, TargetShares
from equipoise.plans.coverage import read_each
from equipoise.plans.policy import PlanPolicy
from equipoise.plans.targets import Targets, read_shares
from equipoise.validate import a_number
from equipoise.values import plain

ALLOW: tuple[Allow, ...] = get_args(Allow)
ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)
REFERENCES: tuple[Reference, ...] = get_args(Reference)
SOLVER_GAP = 2e-3
"""Relative gap at which a solver may stop by default."""


@dataclass(frozen=True, kw_only=True)
class PlanRequest(PlanOptions):
    """A request for a plan, validated.

    Parameters
    ----------
    pool
        Counts of the rows that can be added; by default any rows can.

    The other parameters are declared in :class:`~equipoise.options.plan.PlanOptions`.
    """

    pool: Counts | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._read_words()
        if self.policy is not None:
            self._read_policy()
        for name, whole in NUMBERED.items():
            object.__setattr__(self, name, _read_numbers(name, getattr(self, name), whole=whole))
        _check_shares(self.group_shares)
        self._check_objective()
        if self.priority and self.budget is None:
            raise InputError("`priority` orders what a budget pays for first; give `budget`, too.")
        if self.extra and (self.tolerance or self.allow != "add"):
            raise InputError(
                "`extra` needs `tolerance=0` and `allow='add'`; to ask for more rows otherwise, use "
                "`at_least` or `min_rows`."
            )
        if self.deletable and self.allow == "add":
            raise InputError(
                "`deletable` names rows that may be deleted, but no rows may be; use `allow='both'`."
            )
        if self.rounding != "optimal" and self.tolerance:
            raise InputError(
                f"`rounding={self.rounding!r}` needs `tolerance=0`; with a tolerance, whole rows are "
                "chosen by cost."
            )
        if self.exact:
            self._require_no_residual_alone()
        if self.extra and self.labels == "free":
            raise InputError(
                "`extra` needs label frequencies that are kept or given, not `labels='free'`."
            )
        if (
            self.min_rows is not None
            and self.max_rows is not None
            and self.min_rows > self.max_rows
        ):
            raise InputError(
                f"`min_rows`, {self.min_rows:,}, is above `max_rows`, {self.max_rows:,}; no table "
                "can satisfy both."
            )

    def _check_objective(self) -> None:
        wanted = f"`objective={self.objective!r}`"
        if self.objective == "cost":
            return
        if self.budget is not None:
            raise InputError(f"{wanted} does not go with `budget`, which limits the cost.")
        if self.tolerance:
            return
        if self.objective == "groups" or (self.objective == "rows" and self.allow != "add"):
            raise InputError(
                f"{wanted} needs a `tolerance` above 0"
                + (" if rows may be deleted." if self.objective == "rows" else ".")
            )

    def _require_no_residual_alone(self) -> None:
        """Refuse what does not go with a plan that leaves no bias at all."""
        if self.tolerance:
            raise InputError(
                f"`exact` leaves no bias at all, and `tolerance={self.tolerance:g}` allows some; use "
                "`tolerance=0`, or leave `exact` out."
            )
        if self.rounding != "optimal" or self.extra:
            other = "extra" if self.extra else "rounding"
            raise InputError(f"`exact` leaves nothing to round, so `{other}` does not go with it.")
        for name in ("target", "target_rates", "policy"):
            if getattr(self, name) is not None:
                raise InputError(
                    "`exact` needs equal rates in all groups: targets K are decimal numbers, which "
                    f"whole rows meet only up to rounding; leave `exact` or `{name}` out."
                )
        if self.reference == "original" and self.labels != "keep":
            raise InputError(
                "`exact` compares groups with the repaired table, so `reference='original'` needs "
                "`labels='keep'`, with which both are the same."
            )

    def _read_words(self) -> None:
        if self.labels not in ("keep", "free"):
            object.__setattr__(self, "labels", read_shares(self.labels))
        patterns = (self.constrain,) if isinstance(self.constrain, str) else tuple(self.constrain)
        if patterns in ((), ("all",), ("marginals",)):  # as a repeatable flag gives them
            object.__setattr__(self, "constrain", patterns[0] if patterns else "all")
        else:
            object.__setattr__(self, "constrain", tuple(map(str, patterns)))
        if self.target is not None:
            object.__setattr__(self, "target", Targets.of(self.target))
        if isinstance(self.target_rates, Mapping):
            object.__setattr__(self, "target_rates", TargetRates.of(self.target_rates))
        if isinstance(self.target_shares, Mapping):
            object.__setattr__(self, "target_shares", TargetShares.of(self.target_shares))
        if self.target is not None and self.target_rates is not None:
            raise InputError(
                "give either `target` or `target_rates`; both set the rates of groups."
            )
        for name in ("priority", "deletable"):
            given = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))

    def _read_policy(self) -> None:
        """Take the rules of a policy; the tolerance becomes one of them."""
        if not isinstance(self.policy, PlanPolicy):
            policy = PlanPolicy.of(self.policy, tolerance=self.tolerance, min_group=self.min_group)
            object.__setattr__(self, "policy", policy)
            object.__setattr__(self, "tolerance", policy.tolerance)
        refused = {
            "tolerance_on": ("ub", "rules limit UB"),
            "constrain": ("all", "rules name the groups they apply to"),
            "target": (None, "rules have their own K"),
            "target_rates": (None, "rules have their own K"),
        }
        for name, (usual, why) in refused.items():
            if getattr(self, name) != usual:
                raise InputError(f"`{name}` cannot be combined with `policy`, whose {why}.")
        if self.reference == "original":
            raise InputError(
                "`policy` is checked on the repaired table, relative to its own label frequencies; "
                "leave out `reference='original'`."
            )
        object.__setattr__(self, "reference", "new")

    def but(self, **changes: Any) -> PlanRequest:
        """The same request with something changed."""
        return replace(self, **changes)

    def widened(self, tolerance: float, **changes: Any) -> PlanRequest:
        """The same request at a tolerance above zero, without what goes with zero only."""
        zero = {"extra": (), "rounding": "optimal", "exact": False}
        return replace(self, tolerance=tolerance, **{**zero, **changes})

    @property
    def slack(self) -> float:
        """How far the limits of the policy are widened, because its rules cannot all be met."""
        return 0.0 if self.policy is None else float(self.tolerance - self.policy.tolerance)

    @property
    def solver_gap(self) -> float:
        """The gap at which one model is solved well enough."""
        return SOLVER_GAP if self.gap is None else self.gap

    def to_dict(self) -> dict[str, Any]:
        """What differs from the defaults, as plain data."""
        given: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value == each.default:
                continue
            if isinstance(value, (Counts, Targets, TargetRates, TargetShares, PlanPolicy)):
                value = value.to_dict()
            elif isinstance(value, tuple) and (each.name in NUMBERED or each.name == "labels"):
                value = [[plain(key), number] for key, number in value]
            elif isinstance(value, tuple):
                value = list(value)
            given[each.name] = value
        return given


NUMBERED = {
    "cost_add": False,
    "cost_delete": False,
    "available": True,
    "at_least": True,
    "at_least_each": True,
    "group_shares": False,
    "extra": True,
}
"""Options that take patterns with numbers, and whether these must be whole."""


def request_from_dict(data: Mapping[str, Any]) -> PlanRequest:
    """Read what :meth:`PlanRequest.to_dict` wrote."""
    given = dict(data)
    unknown = set(given) - {each.name for each in fields(PlanRequest)}
    if unknown:
        raise InputError(f"a plan's request has no {', '.join(sorted(unknown))}.")
    if given.get("pool") is not None:
        given["pool"] = Counts.from_dict(given["pool"])
    if given.get("policy") is not None:
        given["policy"] = PlanPolicy.from_dict(given["policy"])
    return PlanRequest(**given)


def _check_shares(shares: Numbers) -> None:
    """Refuse shares of groups that no table can have."""
    totals: dict[tuple[str, ...], float] = {}
    for pattern, share in dict(shares).items():
        a_number(f"`group_shares` of {pattern}", share, above=0, below=1)
        names = tuple(sorted(Group.parse(pattern)))
        if not names:
            raise InputError("`group_shares` names all rows, whose share is 1; name a group.")
        totals[names] = totals.get(names, 0.0) + share
    for names, total in totals.items():
        if total > 1 + 1e-9:
            raise InputError(
                f"the shares of the groups of {', '.join(names)} add up to {total:.6g}; they can be "
                "at most 1."
            )


def _read_numbers(name: str, given: Any, *, whole: bool) -> Numbers:
    """Read ``{pattern: number}`` or pairs of them."""
    pairs: Any = given.items() if isinstance(given, Mapping) else given
    wanted = f"`{name}` takes patterns, each with a number, as in {{'sex=Female': 2}}, not"
    if not isinstance(given, (Mapping, Sequence)):
        raise InputError(f"{wanted} {given!r}.")
    read = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise InputError(f"{wanted} {pair!r}.")
        pattern, value = pair
        text = str(pattern) if isinstance(pattern, Group) else pattern
        if not isinstance(text, str):
            raise InputError(f"`{name}`: a pattern is text, as in 'sex=Female', not {pattern!r}.")
        read_each(text) if name == "at_least_each" else Group.parse(text)
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise InputError(
                    f"`{name}` of {text}: {value!r} is not a number, as in '{text}' 2."
                ) from None
        a_number(f"`{name}` of {text}", value, whole=whole, at_least=0, below=math.inf)
        read.append((text, int(value) if whole else float(value)))
    return tuple(read)
