"""What a plan is asked for: tolerance, costs, and what may and must not happen."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from equipoise.counts import Counts
from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.plans.files import read_mapping
from equipoise.plans.targets import Targets
from equipoise.validate import a_number, at_least, one_of
from equipoise.values import MISSING, as_value

Allow: TypeAlias = Literal["add", "delete", "both"]
ALLOW: tuple[Allow, ...] = ("add", "delete", "both")
Rounding: TypeAlias = Literal["floor", "nearest", "optimal"]
ROUNDINGS: tuple[Rounding, ...] = ("floor", "nearest", "optimal")
ToleranceOn: TypeAlias = Literal["ub", "rate"]
TOLERANCE_ON: tuple[ToleranceOn, ...] = ("ub", "rate")
Reference: TypeAlias = Literal["new", "original"]
REFERENCES: tuple[Reference, ...] = ("new", "original")
SOLVER_GAP = 1e-4
"""At which share of the cost a solver may stop, if nothing was said."""
Numbers: TypeAlias = tuple[tuple[str, float], ...]
"""Patterns, each with a number; where several fit a cell the last decides."""


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """Everything a plan is asked for, checked.

    Parameters
    ----------
    tolerance
        The largest |UB| (or difference of rates) left to any group; 0 is zero bias, which
        whole rows reach up to rounding.
    tolerance_on
        ``"ub"``: |f_gy/(K·f_y) − 1|; ``"rate"``: |f_gy − K·f_y|.
    reference
        Against which label frequencies: those of the repaired table (``"new"``), or the
        present ones (``"original"``). If not given: the new ones, or with targets K, which
        are ratios to the present frequencies, the original ones.
    allow
        ``"add"``, ``"delete"`` or ``"both"``.
    rounding
        At zero tolerance: ``"floor"``, ``"nearest"`` or ``"optimal"``.
    labels
        ``"keep"`` label frequencies, leave them ``"free"``, or the distribution wanted.
    label_drift
        No label frequency moves by more than this share of itself.
    target
        The ratios K wanted; see :mod:`equipoise.plans.targets`.
    cost_add, cost_delete
        What adding or deleting a row costs, by pattern; 1 elsewhere.
    budget, priority
        How much may be spent; and if it does not suffice, what is served in which order.
    available, pool
        How many rows can be added, by pattern in all, or as counted from a table.
    at_least, min_rows, max_rows
        How many rows there must be: by pattern, and in all.
    deletable
        Rows of which patterns may be deleted.
    constrain, min_group
        Which groups count: ``"all"``, ``"marginals"`` or patterns; and from which size on.
    extra
        At zero tolerance, without deletions: how many rows of its free label a group gets
        beyond the least.
    plan_missing
        Take missing values for values: such groups count, and rows may be added to them.
    may_vanish
        Whether a group may lose all its rows.
    time_limit, gap
        How many seconds a search may take, and by which share of its cost a plan may be dearer
        than the least possible. A gap that is given is searched for until it is reached or time is
        up; without one a search stops after a fixed amount of work, the same on any machine.
    """

    tolerance: float = 0.0
    tolerance_on: ToleranceOn = "ub"
    reference: Reference | None = None
    allow: Allow = "add"
    rounding: Rounding = "optimal"
    labels: Any = "keep"
    label_drift: float | None = None
    target: Any = None
    cost_add: Numbers = ()
    cost_delete: Numbers = ()
    budget: float | None = None
    priority: tuple[str, ...] = ()
    available: Numbers = ()
    pool: Counts | None = field(default=None, repr=False)
    at_least: Numbers = ()
    min_rows: int | None = None
    max_rows: int | None = None
    deletable: tuple[str, ...] = ()
    constrain: str | tuple[str, ...] = "all"
    min_group: int = 1
    extra: Numbers = ()
    plan_missing: bool = False
    may_vanish: bool = False
    time_limit: float = 60.0
    gap: float | None = None

    def __post_init__(self) -> None:
        self._check_words()
        self._check_numbers()
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
                "has such a size."
            )

    def _check_words(self) -> None:
        one_of("tolerance_on", self.tolerance_on, TOLERANCE_ON)
        if self.reference is not None:
            one_of("reference", self.reference, REFERENCES)
        one_of("allow", self.allow, ALLOW)
        one_of("rounding", self.rounding, ROUNDINGS)
        if self.labels not in ("keep", "free"):
            object.__setattr__(self, "labels", _shares(self.labels))
        if self.constrain not in ("all", "marginals"):
            patterns = (self.constrain,) if isinstance(self.constrain, str) else self.constrain
            object.__setattr__(self, "constrain", tuple(map(str, patterns)))
        if self.target is not None:
            object.__setattr__(self, "target", Targets.of(self.target))
        for name in ("priority", "deletable"):
            given = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))

    def _check_numbers(self) -> None:
        at_least("tolerance", self.tolerance, 0)
        for name in ("label_drift", "budget", "gap"):
            if getattr(self, name) is not None:
                at_least(name, getattr(self, name), 0)
        for name in ("min_rows", "max_rows"):
            if getattr(self, name) is not None:
                at_least(name, getattr(self, name), 0, whole=True)
        at_least("min_group", self.min_group, 1, whole=True)
        a_number("time_limit", self.time_limit)
        if not self.time_limit > 0:
            raise InputError(f"`time_limit` must be above 0 seconds, not {self.time_limit}.")
        for name in ("tolerance", "budget", "gap"):
            value = getattr(self, name)
            if value is not None and math.isinf(value):
                raise InputError(f"`{name}` must be finite, not {value}.")
        for name, whole in NUMBERED.items():
            object.__setattr__(self, name, _numbers(name, getattr(self, name), whole=whole))

    def but(self, **changes: Any) -> PlanRequest:
        """The same request with something changed."""
        return replace(self, **changes)

    def widened(self, tolerance: float, **changes: Any) -> PlanRequest:
        """The same request at a tolerance above zero, without what goes with zero only."""
        return replace(self, tolerance=tolerance, extra=(), rounding="optimal", **changes)

    @property
    def solver_gap(self) -> float:
        """The gap at which one model is solved well enough."""
        return SOLVER_GAP if self.gap is None else self.gap

    def to_dict(self) -> dict[str, Any]:
        """What differs from the defaults, as plain data."""
        given: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value is self or value == each.default or (each.name == "pool" and value is None):
                continue
            if isinstance(value, Counts):
                value = value.to_dict()
            elif each.name in NUMBERED:
                value = [[pattern, number] for pattern, number in value]
            elif isinstance(value, tuple):
                value = list(value)
            elif each.name == "labels" and not isinstance(value, str):
                value = [[None if v is MISSING else v, share] for v, share in value]
            elif isinstance(value, Targets):
                value = value.to_dict()
            given[each.name] = value
        return given


NUMBERED = {
    "cost_add": False,
    "cost_delete": False,
    "available": True,
    "at_least": True,
    "extra": True,
}


def request_from_dict(data: Mapping[str, Any]) -> PlanRequest:
    """Read what :meth:`PlanRequest.to_dict` wrote.

    >>> request = PlanRequest(tolerance=0.05, cost_add={"sex=Female": 2})
    >>> request_from_dict(request.to_dict()) == request
    True
    """
    given = dict(data)
    unknown = set(given) - {each.name for each in fields(PlanRequest)}
    if unknown:
        raise InputError(f"a plan's request has no {', '.join(sorted(unknown))}.")
    if given.get("pool") is not None:
        given["pool"] = Counts.from_dict(given["pool"])
    for name in ("priority", "deletable"):
        given[name] = tuple(given.get(name, ()))
    if isinstance(given.get("constrain"), list):
        given["constrain"] = tuple(given["constrain"])
    return PlanRequest(**given)


def _numbers(name: str, given: Any, *, whole: bool) -> Numbers:
    """Read ``{pattern: number}`` or pairs of them."""
    if not isinstance(given, (Mapping, Sequence)):
        raise InputError(
            f"`{name}` takes patterns, each with a number, as in {{'sex=Female': 2}}, not {given!r}."
        )
    pairs: Iterable[Any] = given.items() if isinstance(given, Mapping) else given
    read = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise InputError(
                f"`{name}` takes patterns, each with a number, as in {{'sex=Female': 2}}, not {pair!r}."
            )
        pattern, value = pair
        text = str(pattern) if isinstance(pattern, Group) else pattern
        if not isinstance(text, str):
            raise InputError(f"`{name}`: a pattern is text, as in 'sex=Female', not {pattern!r}.")
        Group.parse(text)
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise InputError(
                    f"`{name}` of {text}: {value!r} is not a number, as in '{text}' 2."
                ) from None
        at_least(f"`{name}` of {text}", value, 0, whole=whole)
        if math.isinf(value):
            raise InputError(f"`{name}` of {text} must be finite, not {value}.")
        read.append((text, int(value) if whole else float(value)))
    return tuple(read)


def _shares(given: Any) -> tuple[tuple[Any, float], ...]:
    """Read ``{label: share}``, pairs of them, or a file with them."""
    if isinstance(given, (str, os.PathLike)):
        given = read_mapping(given, "label frequencies", "'keep' or 'free'")
    pairs = given.items() if isinstance(given, Mapping) else given
    try:
        shares = tuple((as_value(label), float(share)) for label, share in pairs)
    except (TypeError, ValueError):
        raise InputError(
            f"`labels` must be 'keep', 'free' or a share for each label value, as in "
            f"{{'yes': 0.3, 'no': 0.7}}, not {given!r}."
        ) from None
    for label, share in shares:
        at_least(f"the share of label {label}", share, 0)
    return shares
