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
        help="Time of the batch, such as 2026-11-15 or 2026-11-15T08:30+01:00. By default now.",
        group="Which batches",
        common=True,
        metavar="TIME",
    )
    time_column: str | None = option(
        None,
        help="Column with the time of each row. The table is then split into one batch for each "
        "day, or for what `every` says. A time with an offset is an instant, and another one is a time of "
        "the `timezone`.",
        group="Which batches",
        common=True,
        metavar="COLUMN",
    )
    every: Every = option(
        "day",
        help="Length of the batches into which `time_column` splits a table. They begin in the `timezone`.",
        group="Which batches",
    )
    id: str | None = option(
        None,
        help="Id of the batch, of 1 to 200 characters. A batch whose id is already there is not added again. "
        "By default a hash of its counts, its time and its tags. With `time_column`, the ids are this text "
        "and the time of each batch.",
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
        help="Correct the batch that has this `id`, or the time and tags of this one. It keeps the time and the "
        "tags that are not given. Both versions are kept.",
        group="Which batches",
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class ZoneOptions:
    """The time zone of a user."""

    timezone: str = option(
        "UTC",
        help="Time zone of times that state none, and of times that are shown. The store keeps UTC.",
        group="Which batches",
        example="Europe/Berlin",
        metavar="ZONE",
    )


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """The limits of a stream, and the level of its alerts."""

    max_abs_ub: float | None = option(
        None,
        help="Largest |UB| allowed in a batch, for any group and label. By default 0.1, if there are no "
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
        help="Largest chance that a stream inside its limits ever raises an alert, however often it is "
        "checked.",
        group="What is allowed",
        common=True,
        above=0,
        below=1,
    )
    alert_on: AlertOn = option(
        "evidence",
        help="What raises an alert: the evidence of all batches, which keeps `alpha`; recent changes, "
        "which are found sooner, with a false alarm in 1,000 batches or more; or both.",
        group="What is allowed",
    )
    min_count: int = option(
        1,
        help="Minimum number of rows of a group in the stream. Smaller groups are left out.",
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
        help="Time from which batches are used.",
        group="Which batches",
        metavar="TIME",
    )
    until: Any = option(
        None,
        help="Time before which batches are used.",
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
