"""How a table is measured: which groups, with which uncertainty, and what is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from equipoise.options.declaration import check, option

Sampling: TypeAlias = Literal["rows", "groups"]
Adjustment: TypeAlias = Literal["bh", "by"]


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """How a table is measured."""

    min_count: int = option(
        1,
        help="Minimum number of rows of a group. Smaller groups are left out.",
        group="Which groups",
        common=True,
        at_least=1,
    )
    max_order: int | None = option(
        None,
        help="Maximum number of attributes that define a group. By default all of them.",
        group="Which groups",
        at_least=1,
    )
    limit: float = option(
        0.1,
        help="Largest |UB| of a group that counts as inside. Hidden groups are outside it while "
        "all their parents are inside.",
        group="Which groups",
        at_least=0,
    )
    uncertainty: bool = option(
        True,
        help="Whether to compute intervals, p-values and q-values.",
        flag_help="Leave out intervals, p-values and q-values.",
        group="Uncertainty",
    )
    confidence: float = option(
        0.95, help="Confidence level of the intervals.", group="Uncertainty", above=0, below=1
    )
    sampling: Sampling = option(
        "rows",
        help="What was sampled at random: whole rows, or only the label of each row within groups "
        "of fixed sizes.",
        group="Uncertainty",
    )
    adjust: Adjustment = option(
        "bh",
        help="How q-values are adjusted: by Benjamini–Hochberg, which is approximate for "
        "overlapping groups, or by Benjamini–Yekutieli, which is valid under any dependence.",
        group="Uncertainty",
    )
    favourable: str | None = option(
        None,
        help="Favourable label value. Adds the four-fifths rule, which compares each group with "
        "the best-off group.",
        group="Output",
        metavar="VALUE",
        accepts="Any",  # label values may be numbers or truth values
    )
    reference: str = option(
        "rest",
        help="Baseline that additional measures compare a group with: the rest of the table, the "
        "best-off group of the same attributes (best), or the group of a pattern.",
        group="Output",
        example="sex=Male",
        metavar="rest|best|PATTERN",
        accepts="Any",  # a Group, too
    )
    measures: tuple[str, ...] = option(
        (),
        help="Names of additional measures to show.",
        group="Output",
        example="impact_ratio,mean_difference",
        form="names",
    )

    def __post_init__(self) -> None:
        check(self)
