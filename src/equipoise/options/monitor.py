"""How batches are added to a stream, and how a stream is checked and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from equipoise.options.declaration import check, option

Every: TypeAlias = Literal["hour", "day", "week", "month"]
AlertOn: TypeAlias = Literal["evidence", "changes", "both"]


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """The time and the name of a batch."""

    at: Any = option(
        None,
        help="Time of the batch, such as 2026-11-15 or 2026-11-15T08:30+01:00. By default the present time.",
        group="Which batches",
        common=True,
        metavar="TIME",
    )
    time_column: str | None = option(
        None,
        help="Column with the time of each row. It splits the table into one batch per day, or per `every`. "
        "A time with an offset is an instant. A time without an offset is a time in the `timezone`.",
        group="Which batches",
        common=True,
        metavar="COLUMN",
    )
    every: Every = option(
        "day",
        help="Length of the batches into which `time_column` splits a table. Days, weeks and months follow the "
        "`timezone`.",
        group="Which batches",
    )
    id: str | None = option(
        None,
        help="Id of the batch, with 1 to 200 characters. A batch whose id already exists is not added again. "
        "By default a hash of its counts, time and tags. With `time_column`, each id consists of this text "
        "and the time of the batch.",
        group="Which batches",
        metavar="TEXT",
    )
    tags: Mapping[str, str] | Sequence[str] | None = option(
        (),
        help="Tag of the batch, as name=value.",
        group="Which batches",
        example="region=north",
        metavar="NAME=VALUE",
        flags=("--tag",),
        form="texts",
    )
    replace: bool = option(
        False,
        help="Correct the existing batch that has this `id`, or this time and these tags. A time or tags that you "
        "leave out stay the same. Both versions are kept.",
        group="Which batches",
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class ZoneOptions:
    """The time zone of a user."""

    timezone: str = option(
        "UTC",
        help="Time zone of times without an offset, and of all times in the output. The store contains times "
        "in UTC.",
        group="Which batches",
        example="Europe/Berlin",
        metavar="ZONE",
    )


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """The limits of a stream, and the level of its alerts."""

    max_abs_ub: float | None = option(
        None,
        help="Largest |UB| allowed in a batch, for every group and label. By default 0.1, unless there are "
        "other rules.",
        group="What is allowed",
        common=True,
        at_least=0,
    )
    four_fifths: bool = option(
        False,
        help="Require that every group's rate of the favourable label is at least 0.8 times that of "
        "the best-off group of the same attributes.",
        group="What is allowed",
    )
    favourable: str | None = option(
        None,
        help="Favourable label value, for `four_fifths`.",
        group="What is allowed",
        metavar="VALUE",
        accepts="Any",
    )
    alpha: float = option(
        0.05,
        help="False alarm probability: the largest probability that a stream inside its limits ever raises an "
        "alert, however often it is checked.",
        group="What is allowed",
        common=True,
        above=0,
        below=1,
    )
    alert_on: AlertOn = option(
        "evidence",
        help="What raises an alert: the evidence of all batches, the change detector, or both. The evidence "
        "keeps `alpha`. The change detector finds recent changes sooner, with at most one false alarm per 1,000 "
        "batches on average.",
        group="What is allowed",
    )
    min_count: int = option(
        1,
        help="Minimum number of rows of a group in the stream. Smaller groups are not tested.",
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
    only_tags: Mapping[str, str] | Sequence[str] = option(
        (),
        help="Use only batches with this tag.",
        group="Which batches",
        example="region=north",
        metavar="NAME=VALUE",
        flags=("--tag",),
        keyword="tags",
        form="texts",
    )

    def __post_init__(self) -> None:
        if isinstance(self.only_tags, Mapping):
            listed = tuple(f"{name}={value}" for name, value in self.only_tags.items())
            object.__setattr__(self, "only_tags", listed)
        check(self)


@dataclass(frozen=True, kw_only=True)
class WindowOptions:
    """The batches that are summed."""

    window: str | None = option(
        None,
        help="Length of the window that ends with the last batch, such as 12h, 30d or 4w. By default "
        "all batches.",
        group="Which batches",
        common=True,
        metavar="SPAN",
    )
    since: Any = option(
        None,
        help="Use only batches from this time on.",
        group="Which batches",
        metavar="TIME",
    )
    until: Any = option(
        None,
        help="Use only batches before this time.",
        group="Which batches",
        metavar="TIME",
    )
    tags: Mapping[str, str] | Sequence[str] = option(
        (),
        help="Use only batches with this tag.",
        group="Which batches",
        example="region=north",
        metavar="NAME=VALUE",
        flags=("--tag",),
        form="texts",
    )

    def __post_init__(self) -> None:
        check(self)
