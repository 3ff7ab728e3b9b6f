"""The result of a union search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from equipoise.engines.base import Engine
from equipoise.engines.sources import Source
from equipoise.engines.stores.states import snapshots_of
from equipoise.lake.tables.index import Index
from equipoise.lake.tables.profiles import quick_profile
from equipoise.lake.tables.search import Hit, search
from equipoise.plain import Grid
from equipoise.results import FlatTable, Result

SCHEMA = "equipoise.search/1"
_SHOWN = 4


@dataclass(frozen=True)
class Hits(Result):
    """Tables whose rows could be appended to a table, the best first."""

    query: str
    hits: tuple[Hit, ...]
    tables: int

    def grid(self) -> Grid:
        """The tables, with the columns they have in common with the query."""
        rows = tuple(
            (hit.table.name, f"{hit.table.rows:,}", f"{hit.score:.3f}", _columns(hit))
            for hit in self.hits
        )
        return Grid(("table", "rows", "score", "columns in common"), rows, frozenset({1, 2}))

    def _table(self) -> FlatTable:
        rows = [(hit.table.name, hit.table.rows, hit.score, _columns(hit)) for hit in self.hits]
        return ("table", "rows", "score", "columns"), rows

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many tables were found."""
        if not self.hits:
            return (f"None of {self.tables:,} tables is similar to {self.query}.",)
        return (f"{len(self.hits):,} of {self.tables:,} tables are most similar to {self.query}.",)

    def text(self) -> str:
        """The tables that were found, or that there are none."""
        return self.grid().text() if self.hits else self.sentences[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        return {
            "schema": SCHEMA,
            "query": self.query,
            "tables": self.tables,
            "hits": [
                {
                    "table": hit.table.name,
                    "rows": hit.table.rows,
                    "score": hit.score,
                    "problem": hit.table.problem,
                    "skipped": hit.table.skipped.to_dict(),
                    "columns": [asdict(match) for match in hit.columns],
                }
                for hit in self.hits
            ],
        }


def _columns(hit: Hit) -> str:
    best = sorted(hit.columns, key=lambda match: -match.similarity)
    names = [
        match.query if match.query == match.table else f"{match.query} ← {match.table}"
        for match in best[:_SHOWN]
    ]
    more = [f"{len(best) - _SHOWN} more"] if len(best) > _SHOWN else []
    return ", ".join([*names, *more])


def search_lake(
    index: Index, engine: Callable[[], Engine], source: Source, *, top: int = 10
) -> Hits:
    """Search a lake for tables similar to one, without copies of its own file."""
    own = snapshots_of(source)
    # Loading the engine takes longer than reading a small file without it.
    profile = quick_profile(source) or engine().profile(source)
    found = search(index, profile, top=top, exclude=own)
    return Hits(source.name, tuple(found), index.counts[0])
