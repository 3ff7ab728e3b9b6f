"""What a store keeps: streams, batches and events, and how a batch is written as bytes."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from equipoise.counts import CountRequest, Counts
from equipoise.monitoring.moments import from_number
from equipoise.options.count import bin_names, request_from_dict
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAIR = np.dtype([("cell", "<u4"), ("rows", "<i8")])
"""How a batch is stored: the number of each cell that has rows, and its rows."""

State: TypeAlias = Literal["current", "replaced", "withdrawn", "merged"]
EventKind: TypeAlias = Literal[
    "late", "ahead", "drift", "corrected", "withdrawn", "merged", "acknowledged"
]


class Periods(NamedTuple):
    """How a table is split by the times of its rows."""

    every: str
    zone: str


@dataclass(frozen=True)
class Stream:
    """A stream of batches over the same columns."""

    number: int
    name: str
    request: CountRequest
    """How the tables of its batches are counted; numbers of quantile bins are settled edges."""
    asked_bins: Mapping[str, Any]
    """The bins that were requested with the first batch, which later ones may repeat."""
    reading: Mapping[str, Any]
    """How the tables are read: a condition, a query, and so on."""
    split: Periods | None = None
    """How the first table with times was split, which others must be alike so that no row is counted twice."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive attributes, then the label."""
        return self.request.columns

    def definition(self) -> str:
        """What is stored of it."""
        bins = {n: list(b) if isinstance(b, tuple) else b for n, b in self.asked_bins.items()}
        told = {
            "request": self.request.to_dict(),
            "asked_bins": bins,
            "reading": dict(self.reading),
        }
        if self.split is not None:
            told["split"] = self.split._asdict()
        return json.dumps(told, ensure_ascii=False)

    @classmethod
    def stored(cls, number: int, name: str, definition: str) -> Stream:
        """Read a stream from a store."""
        data = json.loads(definition)
        request = request_from_dict(data["request"])
        if request is None:
            raise ValueError("a stream without columns")
        bins = {n: tuple(b) if isinstance(b, list) else b for n, b in data["asked_bins"].items()}
        split = Periods(**data["split"]) if "split" in data else None
        return cls(number, name, request, bins, data["reading"], split)


@dataclass(frozen=True)
class Batch:
    """One batch of a stream, or several that were merged."""

    arrival: int
    place: int
    """Position in the order in which batches are tested; a corrected batch keeps that of the first."""
    id: str
    starts: datetime.datetime
    ends: datetime.datetime
    """Time of the last batch, if several were merged."""
    added: datetime.datetime
    state: State
    tags: Mapping[str, str]
    fingerprint: str
    n: int
    merged: int
    """Number of batches that it stands for."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Missing values, dropped rows, and what else differs from a usual batch."""
    cells: bytes = b""

    COLUMNS = "arrival, place, id, starts, ends, added, state, tags, fingerprint, n, merged, about"

    @classmethod
    def stored(cls, *line: Any) -> Batch:
        """Read a batch from the columns of a store."""
        arrival, place, id_, starts, ends, added, state, tags, print_, n, merged, about, *cells = (
            line
        )
        return cls(
            arrival=arrival,
            place=place,
            id=id_,
            starts=from_number(starts),
            ends=from_number(ends),
            added=from_number(added),
            state=state,
            tags=read_plain(tags),
            fingerprint=print_,
            n=n,
            merged=merged,
            about=read_plain(about),
            cells=bytes(cells[0]) if cells else b"",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "id": self.id,
            "at": self.starts.isoformat(),
            "until": self.ends.isoformat(),
            "added": self.added.isoformat(),
            "state": self.state,
            "tags": dict(self.tags),
            "rows": self.n,
            "batches": self.merged,
            **self.about,
        }


def read_plain(text: str) -> dict[str, Any]:
    """Read what is stored of tags, or of what is unusual in a batch."""
    # Most batches have nothing to read here, and there may be many thousands.
    return {} if text == "{}" else json.loads(text)


@dataclass(frozen=True)
class Event:
    """Something that happened to a stream other than a usual batch."""

    place: int
    """The place of the last batch when it happened, or of the batch that it is about."""
    noted: datetime.datetime
    kind: EventKind
    about: Mapping[str, Any]

    @classmethod
    def stored(cls, place: int, noted: int, kind: EventKind, about: str) -> Event:
        """Read an event from the columns of a store."""
        return cls(place, from_number(noted), kind, json.loads(about))

    @property
    def text(self) -> str:
        """What happened, in a sentence."""
        return str(self.about.get("text", ""))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"noted": self.noted.isoformat(), "kind": self.kind, **self.about}


def batch_id(counts: Counts, at: datetime.datetime, tags: Mapping[str, str]) -> str:
    """The id of a batch that was given none: a hash of its content, its time and its tags."""
    told = json.dumps([counts.fingerprint, at.isoformat(), sorted(tags.items())])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def plain_text(data: Any) -> str:
    """Write data as short JSON."""
    return json.dumps(data, separators=(",", ":"))


def tags_text(tags: Mapping[str, str]) -> str:
    """How tags are stored, in one order, so that the same tags are the same text."""
    return plain_text(dict(sorted(tags.items())))


def cell_text(values: tuple[Value, ...]) -> str:
    """How the values of a cell are stored."""
    return json.dumps([None if v is MISSING else v for v in values])


def cell_values(text: str) -> tuple[Value, ...]:
    """Read the values of a cell."""
    return tuple(MISSING if v is None else v for v in json.loads(text))


@dataclass(frozen=True)
class StreamCells:
    """The cells of a stream by their numbers: their codes on axes of all values there have been."""

    stream: Stream
    values: tuple[tuple[Value, ...], ...]

    def counts(self, rows: NDArray[np.int64], about: Mapping[str, Any] | None = None) -> Counts:
        """Counts with the given number of rows in each cell."""
        used = np.flatnonzero(rows)
        names, bins = self.stream.columns, self._edges()
        axes, columns = [], []
        for position, name in enumerate(names):
            seen = dict.fromkeys(self.values[cell][position] for cell in used.tolist())
            listed: list[Value] = list(bin_names(bins[name])) if name in bins else []
            listed += [v for v in seen if v not in listed and v is not MISSING]
            listed += [MISSING] * (MISSING in seen)
            code = {value: i for i, value in enumerate(listed)}
            axes.append((name, listed))
            columns.append([code[self.values[cell][position]] for cell in used.tolist()])
        told = dict(about or {})
        return Counts.from_dict(
            {
                "schema": "equipoise.counts/1",
                "axes": [
                    {
                        "name": name,
                        "role": "label" if name == self.stream.request.label else "sensitive",
                        "values": [None if v is MISSING else v for v in listed],
                    }
                    for name, listed in axes
                ],
                "codes": [list(line) for line in zip(*columns, strict=True)],
                "rows": rows[used].tolist(),
                "weights": None,
                "missing_values": dict.fromkeys(names, 0) | dict(told.get("missing_values", {})),
                "dropped": told.get("dropped", 0),
                "bins": {n: list(b) for n, b in bins.items()},
                "request": self.stream.request.to_dict(),
                "reading": dict(self.stream.reading),
            }
        )

    def _edges(self) -> dict[str, tuple[float, ...]]:
        return {n: b for n, b in self.stream.request.bins.items() if isinstance(b, tuple)}


def rows_of(batches: Sequence[Batch], cells: int) -> NDArray[np.int64]:
    """The rows of all batches: a line per cell, a column per batch.

    A ValueError or an IndexError tells that they are not those that were written.
    """
    pairs = np.frombuffer(b"".join(batch.cells for batch in batches), PAIR)
    lengths = [len(batch.cells) // PAIR.itemsize for batch in batches]
    found = np.zeros((cells, len(batches)), np.int64)
    found[pairs["cell"], np.repeat(np.arange(len(batches)), lengths)] = pairs["rows"]
    if found.sum(axis=0).tolist() != [batch.n for batch in batches]:
        raise ValueError("other numbers of rows")
    return found
