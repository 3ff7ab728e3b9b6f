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
Objective: TypeAlias = Literal["cost", "rows", "additions", "groups"]
SweepKind: TypeAlias = Literal["tolerance", "coverage", "budget", "cost-ratio", "label-drift"]
"""What a frontier varies."""
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
        may_name_file=True,
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
        may_name_file=True,
    )
    target_rates: Any = option(
        None,
        help="Table whose label rates by group are the targets, such as a census: rows, counts or "
        "rates by some of the sensitive attributes and the label.",
        group="What is allowed",
        metavar="TABLE",
        may_name_file=True,
    )
    target_shares: Any = option(
        None,
        help="Table whose groups have the shares of all rows that groups should have, within "
        "`share_tolerance`.",
        group="What is allowed",
        metavar="TABLE",
        may_name_file=True,
    )
    target_count: str | None = option(
        None,
        help="Column of `target_rates` and `target_shares` with the number of rows, or with the rate. "
        "By default each line is a row.",
        group="What is allowed",
        metavar="COLUMN",
    )
    objective: Objective = option(
        "cost",
        help="What a plan minimises: the cost, the rows of the repaired table, the additions, or the "
        "finest groups that change. Among equals the cheapest plan is taken.",
        group="Costs and limits",
    )
    policy: Any = option(
        None,
        help="Rules that the repaired table must pass, as for a check: a TOML file with a [check] "
        "table. A `tolerance` is then a rule that comes before them.",
        group="What is allowed",
        metavar="FILE",
        may_name_file=True,
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
    at_least_each: Numbers = option(
        (),
        help="Minimum number of rows of every group of some attributes after the repair: 'sex, race' "
        "stands for all combinations of their values, also those without rows.",
        group="Costs and limits",
        metavar="ATTRIBUTES ROWS",
        form="pattern numbers",
        accepts=_WHOLE,
    )
    group_shares: Numbers = option(
        (),
        help="Share of all rows that a group has after the repair, within `share_tolerance`.",
        group="Costs and limits",
        metavar="PATTERN SHARE",
        flags=("--group-share",),
        form="pattern numbers",
        accepts=_NUMBERS,
    )
    share_tolerance: float = option(
        0.0,
        help="Largest distance of a group from its share in `group_shares` or `target_shares`, as a "
        "share of all rows. 0 requires the exact share, up to less than a row.",
        group="Costs and limits",
        at_least=0,
        below=1,
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
        help="Time limit of the whole request, with its explanation. The best plan found by then is used.",
        group="Search",
        metavar="SECONDS",
        above=0,
    )
    gap: float | None = option(
        None,
        help="Relative gap between the cost and its lower bound at which the search stops. By "
        "default 0.002, or after a fixed amount of work.",
        group="Search",
        at_least=0,
        below=math.inf,
    )

    def __post_init__(self) -> None:
        check(self)


MEASURED = (
    *("tolerance", "tolerance_on", "reference", "allow", "labels", "label_drift", "target"),
    *("cost_add", "cost_delete", "available", "at_least", "min_rows", "max_rows", "deletable"),
    *("constrain", "min_group", "plan_missing", "may_vanish", "policy"),
    *("target_rates", "target_shares", "target_count", "group_shares", "share_tolerance"),
    "at_least_each",
)
"""What a plan made by hand is measured by; the other options only steer the search for a plan."""
