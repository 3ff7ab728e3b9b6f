"""Which tables of a large lake are worth a close comparison with a base."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from equipoise.engines.profiling import Profile
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.search_words import search_words
from equipoise.lake.tables.contents import Contents
from equipoise.lake.tables.index import Table
from equipoise.lake.tables.search import find_having, most_similar
from equipoise.options.search import SearchRequest

SURVEYED = 2_000
"""Number of tables up to which all of them are compared."""

SIMILAR = 500
"""Number of tables that are compared because union search finds them most similar to the base."""


def propose(
    lake: Contents,
    tables: Sequence[Table],
    want: Wanted,
    looking: SearchRequest,
    named: Collection[str],
) -> list[Table]:
    """Return the tables that are compared with a base.

    To compare a table takes some milliseconds, so that of a large lake not all are. Those are that

    - for every counted column have a column that shares a word with it, in its header or in a value,
      known synonyms included;
    - or are most similar to the base as a whole;
    - or are named in a mapping file.

    The meaning of any other table would not be certain, unless it abbreviates both header and values in
    ways that no list has. How many tables are passed over is part of the result of a survey.
    """
    if len(tables) <= SURVEYED:
        return list(tables)
    asked = search_words(want, looking.codebook)
    chosen = find_having(lake.index, [(w.headers, w.values) for w in asked.values()])
    if chosen is None:  # nothing can be searched for
        return list(tables)
    chosen |= set(most_similar(lake.index, Profile(0, want.columns), SIMILAR))
    return [table for table in tables if table.id in chosen or table.name in named]
