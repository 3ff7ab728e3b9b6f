"""The options of a plan: what is allowed, what it may cost, and how long it may take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from equipoise.options.declaration import check, option

Allow: TypeAlias = Literal["add", "delete", "both"]
Rounding: TypeAlias = Literal["floor", "nearest", "optimal"]
ToleranceOn: TypeAlias = Literal["ub", "rate"]
Reference: TypeAlias = Literal["new", "original"]
Numbers: TypeAlias = tuple[tuple[str, float], ...]
"""Patterns, each with a number; where several match a cell, the last one decides."""

_NUMBERS = "Mapping[str, float] | Sequence[tuple[str, float]]"
_WHOLE = "Mapping[str, int] | Sequence[tuple[str, int]]"


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Everything a user can ask of a plan."""

    tolerance: float = option(
        0.0,
        help="Largest |UB| that any group may keep. 0 requests zero bias, up to rounding.",
        group="What is allowed",
        common=True,
        at_least=0,
        below=math.inf,
    )
    tolerance_on: ToleranceOn = option(
        "ub",
        help="What the tolerance limits: |UB|, or the difference between rates, |f_gy − f_y|.",
        group="What is allowed",
    )
    reference: Reference | None = option(
        None,
        help="Label frequencies that groups are compared with: those of the repaired table (new) or "
        "the present ones (original). By default new, or original with `target`.",
        group="What is allowed",
    )
    allow: Allow = option(
        "add",
        help="Whether rows may be added, deleted, or both.",
        group="What is allowed",
        common=True,
    )
    rounding: Rounding = option(
        "optimal",
        help="How exact numbers become whole rows at zero tolerance.",
        group="What is allowed",
    )
    exact: bool = option(
        False,
        help="Leave no bias at all, not even that of rounding, at zero tolerance. Often expensive.",
        group="What is allowed",
    )
    labels: Any = option(
        "keep",
        help="Label frequencies of the repaired table: keep the present ones within the tolerance, "
        "choose the cheapest (free), or read them from a TOML or JSON file.",
        group="What is allowed",
        metavar="keep|free|FILE",
    )
    label_drift: float | None = option(
        None,
        help="Largest relative change of any label frequency.",
        group="What is allowed",
        at_least=0,
        metavar="SHARE",
    )
    target: Any = option(
        None,
        help="Target ratios K of rates by group and label: a TOML file, or a rule such as "
        "'keep rates of: sex'.",
        group="What is allowed",
        metavar="FILE|RULE",
    )
    cost_add: Numbers = option(
        (),
        help="Cost of adding a row that matches a pattern, instead of 1. The last match decides.",
        group="Costs and limits",
        metavar="PATTERN COST",
        form="pattern numbers",
        accepts=_NUMBERS,
    )
    cost_delete: Numbers = option(
        (),
        help="Cost of deleting a row that matches a pattern, instead of 1.",
        group="Costs and limits",
        metavar="PATTERN COST",
        form="pattern numbers",
        accepts=_NUMBERS,
    )
    budget: float | None = option(
        None,
        help="Maximum total cost. If it does not suffice, the plan minimises the largest |UB| that "
        "is left.",
        group="Costs and limits",
        at_least=0,
        below=math.inf,
    )
    priority: tuple[str, ...] = option(
        (),
        help="Patterns to repair first if the budget does not suffice, in this order.",
        group="Costs and limits",
        metavar="PATTERN",
        form="texts",
    )
    available: Numbers = option(
        (),
        help="Maximum number of rows of a pattern that can be added in total.",
        group="Costs and limits",
        metavar="PATTERN ROWS",
        form="pattern numbers",
        accepts=_WHOLE,
    )
    at_least: Numbers = option(
        (),
        help="Minimum number of rows of a pattern after the repair.",
        group="Costs and limits",
        metavar="PATTERN ROWS",
        form="pattern numbers",
        accepts=_WHOLE,
    )
    min_rows: int | None = option(
        None,
        help="Minimum number of rows after the repair.",
        group="Costs and limits",
        at_least=0,
    )
    max_rows: int | None = option(
        None,
        help="Maximum number of rows after the repair.",
        group="Costs and limits",
        at_least=0,
    )
    deletable: tuple[str, ...] = option(
        (),
        help="Patterns of the only rows that may be deleted.",
        group="What is allowed",
        metavar="PATTERN",
        form="texts",
    )
    # A word or patterns; a repeatable flag gives the word as a list of one.
    constrain: str | tuple[str, ...] = option(
        "all",
        help="Groups that the tolerance applies to: all of them (the default), those of a single "
        "attribute (marginals), or the group of a pattern with everything inside it.",
        group="Which groups",
        metavar="all|marginals|PATTERN",
        form="texts",
    )
    min_group: int = option(
        1,
        help="Minimum number of rows of a group that the tolerance applies to.",
        group="Which groups",
        common=True,
        at_least=1,
    )
    extra: Numbers = option(
        (),
        help="Additional rows of its free label that a group receives, at zero tolerance and with "
        "additions only.",
        group="Costs and limits",
        metavar="PATTERN ROWS",
        form="pattern numbers",
        accepts=_WHOLE,
    )
    plan_missing: bool = option(
        False,
        help="Treat missing values as values. By default rows with missing values stay as they are.",
        group="Which groups",
    )
    may_vanish: bool = option(
        False, help="Allow a group to lose all its rows.", group="What is allowed"
    )
    time_limit: float = option(
        60.0,
        help="Time limit of the search. The best plan found by then is used.",
        group="Search",
        metavar="SECONDS",
        above=0,
    )
    gap: float | None = option(
        None,
        help="Relative gap between the cost and its lower bound at which the search stops. By "
        "default it stops after a fixed amount of work.",
        group="Search",
        at_least=0,
        below=math.inf,
    )

    def __post_init__(self) -> None:
        check(self)
