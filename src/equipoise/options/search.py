"""How rows are searched for in a lake, and within which limits they are taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from equipoise.options.declaration import check, option

Dedupe: TypeAlias = Literal["strict", "multiset", "key"]
OtherColumns: TypeAlias = Literal["convert", "keep", "blank"]
ProfiledBy: TypeAlias = Literal["client", "spark"]

_GROUP = "Finding rows"


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """How rows are searched for in a lake."""

    mapping: str | None = option(
        None,
        help="Mapping file that says what columns and values of the lake's tables mean, as "
        "proposed by equipoise lake mapping and confirmed by you.",
        group=_GROUP,
        common=True,
        metavar="FILE",
        form="path",
        accepts="str | PathLike[str] | None",
    )
    codebook: Mapping[str, Mapping[str, str]] = option(
        dict,
        help="TOML file that lists for each attribute which value of a source means which value of "
        "the table.",
        group=_GROUP,
        metavar="FILE",
        form="path",
        accepts="Mapping[str, Mapping[str, str]] | str | PathLike[str] | None",
    )
    same_codes: bool = option(
        False,
        help="Assume that codes such as 1 and 2 mean the same in all tables.",
        group=_GROUP,
    )
    sources: str | None = option(
        None,
        help="File of the costs, licences and consent of sources. By default sources.toml in the "
        "lake's folder.",
        group=_GROUP,
        metavar="FILE",
        form="path",
        accepts="str | PathLike[str] | None",
    )
    deny: Sequence[str] = option(
        (),
        help="Tables from which no rows are taken, by name or glob.",
        group=_GROUP,
        metavar="NAME|GLOB",
        form="texts",
    )
    min_confidence: float = option(
        0.6,
        help="Minimum confidence of the schema matching. Tables below it are not used.",
        group=_GROUP,
        at_least=0,
        at_most=1,
    )
    dedupe: Dedupe = option(
        "strict",
        help="Which rows are duplicates: all rows with the same values (strict), those beyond the "
        "largest number of such rows in any one table (multiset), or rows with the same key.",
        group=_GROUP,
    )
    key: Sequence[str] = option(
        (), help="Columns of the key, for `dedupe='key'`.", group=_GROUP, form="names"
    )
    seed: int = option(
        0,
        help="Seed of the choice among the rows of a cell. The same seed gives the same rows on any "
        "machine.",
        group=_GROUP,
    )
    other_columns: OtherColumns = option(
        "convert",
        help="Values of columns that are not counted, where a source writes them differently: "
        "convert them if that is certain and leave them missing otherwise, keep them, or leave "
        "all of them missing (blank).",
        group=_GROUP,
    )
    second_opinion: bool = option(
        False,
        help="Also ask Valentine, and leave a table open where it prefers another column. Needs "
        "the extra valentine.",
        group=_GROUP,
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """How the tables of a lake are read for its index."""

    by: ProfiledBy = option(
        "client",
        help="Where new and changed tables are profiled: on this machine (client), or by the workers of "
        "Spark, which must find the files under the same paths.",
        group="Running",
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class AcquisitionLimits:
    """Limits within which rows are taken from a lake."""

    budget: float | None = option(
        None, help="Maximum total cost of the rows.", group="Costs and limits", at_least=0
    )
    max_share_per_source: float | None = option(
        None,
        help="Maximum share of the added rows that one table may contribute.",
        group="Costs and limits",
        metavar="SHARE",
        above=0,
        at_most=1,
    )
    max_tables: int | None = option(
        None,
        help="Maximum number of tables to take rows from.",
        group="Costs and limits",
        at_least=1,
    )
    max_shift: float | None = option(
        None,
        help="Largest distance allowed between the added rows and the table's rows of the same "
        "cells, in any other column.",
        group="Costs and limits",
        metavar="DISTANCE",
        at_least=0,
        at_most=1,
    )
    require_columns: bool = option(
        False,
        help="Leave out tables that do not have all columns. By default missing columns stay "
        "empty.",
        group="Costs and limits",
    )
    partial: bool = option(
        False, help="Take what there is if there are too few rows.", group="Costs and limits"
    )
    force: bool = option(
        False,
        help="Continue even if the table does not have the counts the plan was made for.",
        group="Costs and limits",
    )
    # Without a flag: a repair passes on the time limit of its plan.
    time_limit: float = option(
        30.0,
        help="Time limit of the search for the lowest cost, in seconds.",
        group="Search",
        metavar="SECONDS",
        at_least=0,
        flags=None,
    )

    def __post_init__(self) -> None:
        check(self)
