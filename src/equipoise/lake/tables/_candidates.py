"""The tables of a lake that are worth a close comparison, found by queries of the index."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.lake.tables._similarity import (
    DIGITS,
    Rarity,
    SearchColumn,
    SearchColumns,
    agreement,
    is_numeric,
)
from equipoise.lake.tables._terms import NUMERIC, Terms
from equipoise.lake.tables.headers import is_opaque
from equipoise.lake.tables.index import Index

if TYPE_CHECKING:
    import pyarrow as pa

_COMMON = 0.25  # terms in more than this share of the columns do not make a table a candidate


def find_by_terms(
    index: Index, asked: SearchColumns, rarity: Rarity, most: int, exclude: Collection[str]
) -> list[int]:
    """Find the tables that share the most terms with the query, rare terms counting more."""
    common = rarity.terms[rarity.counts > max(_COMMON * rarity.columns, 10)]
    rare = np.setdiff1d(asked.terms.terms, common)
    rows = index.query(
        """
        WITH asked AS (SELECT unnest(?::UBIGINT[]) AS term, unnest(?::DOUBLE[]) AS weight),
        scored AS (SELECT id, sum(asked.weight) AS score FROM terms JOIN asked USING (term) GROUP BY id),
        size AS (SELECT id, count(*) AS terms FROM terms GROUP BY id)
        SELECT id FROM scored JOIN size USING (id) JOIN tables USING (id)
        WHERE snapshot NOT IN (SELECT unnest(?::VARCHAR[]))
        ORDER BY round(score / sqrt(terms), 6) DESC, snapshot, id LIMIT ?
        """,
        [rare.tolist(), (rarity(rare) ** 2).tolist(), list(exclude), most],
    )
    return [number for (number,) in rows]


def find_by_numbers(
    index: Index, asked: SearchColumns, most: int, exclude: Collection[str], without: Sequence[int]
) -> list[int]:
    """Find the tables whose numbers are distributed like the query's, where a header says nothing."""
    numeric = [column for column in asked.columns if is_numeric(column)]
    if not numeric:
        return []
    found = _of_like_size(index, numeric, [list(exclude), list(without)])
    opaque = {name: is_opaque(name) for name in found["name"].unique().to_pylist()}
    theirs = np.array([opaque[name] for name in found["name"].to_pylist()], bool)
    spread = found["quantiles"].combine_chunks().flatten().to_numpy()
    spread = spread.reshape(-1, len(numeric[0].quantiles or ()))
    tables, place = np.unique(found["id"].to_numpy(), return_inverse=True)
    score = np.zeros(len(tables))
    for column in numeric:
        counts = theirs | is_opaque(column.name)
        best = np.zeros(len(tables))
        np.maximum.at(best, place[counts], agreement(np.array(column.quantiles), spread[counts]))
        score += best
    snapshot = dict(zip(found["id"].to_pylist(), found["snapshot"].to_pylist(), strict=True))
    scores = dict(zip(tables.tolist(), score.round(DIGITS).tolist(), strict=True))
    likely = [number for number in scores if scores[number] > 0]
    return sorted(likely, key=lambda n: (-scores[n], snapshot[n], n))[:most]


def _of_like_size(
    index: Index, numeric: Sequence[SearchColumn], without: Sequence[object]
) -> pa.Table:
    """Return the columns whose median is between the quartiles of one of the query's columns."""
    quartiles = [np.quantile(column.quantiles or (), [0.25, 0.75]).tolist() for column in numeric]
    return index.arrow(
        """
        WITH asked AS (SELECT unnest(?::DOUBLE[]) AS low, unnest(?::DOUBLE[]) AS high)
        SELECT id, snapshot, columns.name, quantiles FROM columns JOIN tables USING (id)
        WHERE "numeric" >= ? AND quantiles IS NOT NULL
        AND snapshot NOT IN (SELECT unnest(?::VARCHAR[])) AND id NOT IN (SELECT unnest(?::INTEGER[]))
        AND EXISTS (SELECT 1 FROM asked WHERE quantiles[(len(quantiles) + 1) // 2] BETWEEN low AND high)
        """,
        [[low for low, _ in quartiles], [high for _, high in quartiles], NUMERIC, *without],
    )


def stored_columns(index: Index, ids: Sequence[int]) -> dict[int, SearchColumns]:
    """Read the columns of some tables that have values, with their terms."""
    rows = index.query(
        'SELECT id, place, name, "numeric", quantiles FROM columns '
        'WHERE id IN (SELECT unnest(?)) AND "distinct" > 0 ORDER BY id, place',
        [list(ids)],
    )
    columns: dict[int, dict[int, SearchColumn]] = {number: {} for number in ids}
    for number, place, *about in rows:
        columns[number][place] = SearchColumn(*about)
    terms = _stored_terms(index, ids)
    return {n: _renumbered(columns[n], terms[n]) for n in ids}


def _stored_terms(index: Index, ids: Sequence[int]) -> dict[int, Terms]:
    rows = index.arrow(
        "SELECT id, place, term, weight FROM terms WHERE id IN (SELECT unnest(?)) ORDER BY id",
        [list(ids)],
    )
    names = ("id", "place", "term", "weight")
    owner, place, term, weight = (rows[name].to_numpy() for name in names)
    starts, ends = np.searchsorted(owner, ids, "left"), np.searchsorted(owner, ids, "right")
    return {
        number: Terms(place[a:b].astype(int), term[a:b], weight[a:b].astype(float))
        for number, a, b in zip(ids, starts, ends, strict=True)
    }


def _renumbered(columns: Mapping[int, SearchColumn], terms: Terms) -> SearchColumns:
    """Number the columns from 0, and drop the terms of columns that are not among them."""
    kept = np.fromiter(columns, int)
    chosen = np.isin(terms.places, kept)
    places = np.searchsorted(kept, terms.places[chosen])
    return SearchColumns(
        list(columns.values()), Terms(places, terms.terms[chosen], terms.weights[chosen])
    )
