"""What every room is made of."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from equipoise.options import Option
from equipoise.options.count import CountRequest, ReadOptions
from equipoise.progress import Reporter, silent
from equipoise.web.schema import Query, offered, query_model
from equipoise.web.twins import Twin, outside_name

if TYPE_CHECKING:
    from equipoise.counts import Counts
    from equipoise.engines.base import Engine
    from equipoise.web.places import Places

TABLE_OPTIONS = offered(CountRequest, ReadOptions)
"""Which columns of the table are counted, and how it is read: the same in every room."""

SHARED = ("data", *(option.keyword for option in TABLE_OPTIONS))
"""Parameters that all rooms share."""

_SHARE = 0.6
"""The part of a worker's memory that the database may use."""

Text = Annotated[str, Field(max_length=4000)]


def table_query(name: str, options: Sequence[Option] = (), **own: Any) -> type[Query]:
    """Make the class of the address of a room: the table, its options, and what is shown."""
    data = (Text | None, Field(default=None, description="Name of the table."))
    return query_model(name, [*TABLE_OPTIONS, *options], data=data, **own)


@dataclass(frozen=True)
class Ask:
    """A request as a worker gets it."""

    data: str
    """Name of the table or store, as the user knows it."""
    path: str
    """Name of the table or store for the library."""
    places: Places
    table: Mapping[str, Any]
    """Options of the table, as keywords."""
    options: Mapping[str, Any]
    """Options of the room, as keywords."""
    view: Mapping[str, Any]
    """What is shown: the room's other parameters."""
    counts: bytes | None = None
    """The counts of the table, packed."""
    pairs: tuple[tuple[str, str], ...] = ()
    """The address of the room, for links to others."""
    read_only: bool = False
    memory: int | None = None
    """Maximum number of bytes of a worker process."""
    named: Mapping[str, str] = field(default_factory=dict)
    """Files among the options, as the user knows them."""
    progress: Reporter = field(default=silent, compare=False)

    @property
    def engine(self) -> Engine:
        """An engine that reads nothing but the files of the user."""
        return engine_of(self.places, self.memory)

    def counted(self) -> Counts:
        """The counts of the table."""
        if self.counts is None:
            raise RuntimeError("the room was opened without counts")
        return unpack(self.counts)


def pack(counts: Counts) -> bytes:
    """Counts as the explorer keeps them, which never looks into them."""
    return pickle.dumps(counts, protocol=pickle.HIGHEST_PROTOCOL)


@functools.lru_cache(maxsize=8)
def unpack(packed: bytes) -> Counts:
    """Counts that were packed; a worker keeps the last ones, and what was derived from them."""
    counts: Counts = pickle.loads(packed)  # noqa: S301  made by a worker
    return counts


def engine_of(places: Places, memory: int | None) -> Engine:
    """An engine that reads nothing but the files of a user, within most of a worker's memory."""
    from equipoise.engines.routing import shared_engine

    size = None if memory is None else f"{_SHARE * memory / 1e6:.0f}MB"
    return shared_engine(None, size, silent, places.folders)


def outside_files(ask: Ask) -> dict[str, str]:
    """Files among the options, as they are called outside of the explorer."""
    return {name: outside_name(file) for name, file in ask.named.items()}


def plain_twin(
    ask: Ask, command: str, function: str, options: Sequence[Option], **more: Any
) -> Twin:
    """The step that takes the table of a request, and the options of its room."""
    named = {**ask.table, **ask.options, **outside_files(ask)}
    known = (*TABLE_OPTIONS, *options)
    step = {
        "command": command,
        "function": function,
        "words": (outside_name(ask.data),),
        "given": {
            option.keyword: named[option.keyword] for option in known if option.keyword in named
        },
        "options": known,
    }
    return Twin(**{**step, **more})


@dataclass(frozen=True)
class Room:
    """A room: its name, what it is for, its address, and how it is computed."""

    name: str
    title: str
    about: str
    query: type[Query]
    options: tuple[Option, ...]
    """Options of its form, beside those of the table."""
    compute: Callable[[Ask], dict[str, Any]]
    counts: bool = True
    """Whether it needs the counts of the table."""
    source: str = "data"
    """The parameter that names what it reads: ``data`` is a table, and ``store`` a history."""
    slow: bool = False
    """Whether it may take long, and must leave processes to the others."""
    files: tuple[str, ...] = field(default=())
    """What can be downloaded."""
    twin: Callable[[Ask, dict[str, Any]], Sequence[Twin]] = lambda _ask, _shown: ()
    """The commands and calls that do the same."""
    present: Callable[[Ask, dict[str, Any]], dict[str, Any]] = lambda _ask, _shown: {}
    """What its page needs beside what is computed."""
