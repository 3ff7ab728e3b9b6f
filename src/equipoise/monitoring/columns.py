"""Columns of a table that a stream expects: which are there, and which have vanished or been renamed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from equipoise.counts import CountRequest, Counts
from equipoise.errors import ColumnNotFound, InputError


@dataclass(frozen=True)
class Expected:
    """How the columns of a table answer to those of a stream."""

    request: CountRequest
    """What is counted in this table, by its own names and without columns that vanished."""
    renamed: tuple[tuple[str, str], ...]
    """Pairs of the name in the stream and the name in this table."""
    vanished: tuple[str, ...]
    uncounted: str | None = None
    """The column of numbers of rows that other tables have, and this one has not."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What differs, in sentences."""
        said = [
            f"The column {ours!r} is called {theirs!r} in this table. It was used as {ours!r}."
            for ours, theirs in self.renamed
        ]
        said += [
            f"The column {name!r} is missing. All rows of this batch have no value for it."
            for name in self.vanished
        ]
        if self.uncounted is not None:
            said.append(
                f"The column {self.uncounted!r}, which contained numbers of rows, is missing. Each line of this "
                "batch was counted as one row."
            )
        return tuple(said)

    def restore(self, counts: Counts, stream: CountRequest) -> Counts:
        """Give counts of this table the axes of the stream."""
        if not self.renamed and not self.vanished:
            return counts
        data = counts.to_dict()
        ours = {theirs: ours for ours, theirs in self.renamed}
        axes = {ours.get(a["name"], a["name"]): a for a in data["axes"]}
        lines = np.array(data["codes"], np.int64).reshape(-1, len(axes))
        place = {name: i for i, name in enumerate(axes)}
        nothing = {"values": [None], "role": "sensitive"}
        data["axes"] = [{**axes.get(name, nothing), "name": name} for name in stream.columns]
        data["codes"] = [
            [int(line[place[name]]) if name in place else 0 for name in stream.columns]
            for line in lines
        ]
        absent = {ours.get(k, k): n for k, n in data["missing_values"].items()}
        data["missing_values"] = absent | dict.fromkeys(self.vanished, counts.n)
        data["bins"] = {n: list(b) for n, b in stream.bins.items() if isinstance(b, tuple)}
        data["request"] = stream.to_dict()
        for axis in data["axes"]:
            if axis["name"] in self.vanished:
                axis["values"] = [None]
        return Counts.from_dict(data)


def answer(stream: CountRequest, columns: Sequence[str], table: str) -> Expected:
    """Find the columns of a stream in a table; a name may differ in case and separators only.

    >>> request = CountRequest(sensitive=("sex", "race"), label="hired")
    >>> found = answer(request, ["Sex", "hired"], "people.csv")
    >>> found.renamed, found.vanished
    ((('sex', 'Sex'),), ('race',))
    """
    plain: dict[str, list[str]] = {}
    for name in columns:
        plain.setdefault(_plain(name), []).append(name)
    taken = set(stream.columns) & set(columns)
    renamed, vanished = {}, []
    for name in stream.columns:
        if name in columns:
            continue
        near = [other for other in plain.get(_plain(name), []) if other not in taken]
        if len(near) == 1:
            renamed[name] = near[0]
        elif name == stream.label:
            raise ColumnNotFound(name, table=table, columns=columns)
        else:
            vanished.append(name)
    kept = [name for name in stream.sensitive if name not in vanished]
    if not kept:
        several = len(stream.sensitive) > 1
        raise InputError(
            f"{table} does not have {'any of the sensitive attributes' if several else 'the sensitive attribute'} "
            f"of the stream ({', '.join(stream.sensitive)}). It has: {', '.join(columns)}. Nothing was added."
        )
    request = replace(
        stream,
        sensitive=tuple(renamed.get(name, name) for name in kept),
        label=renamed.get(stream.label, stream.label),
        bins={renamed.get(n, n): b for n, b in stream.bins.items() if n in kept},
    )
    return Expected(request, tuple(renamed.items()), tuple(vanished))


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())
