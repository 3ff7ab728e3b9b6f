"""The tables of a lake that are worth a close comparison, found by queries of the index."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.lake.tables._similarity import (
    DIGITS,
    Rarity,
    SearchColumn,
    SearchColumns,
    agreement,
    is_numeric,
)
from equipoise.lake.tables._terms import Terms
from equipoise.lake.tables.headers import is_opaque
from equipoise.lake.tables.index import Index

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COMMON = 0.25  # terms in more than this share of the columns do not make a table a candidate

MOST_POSTINGS = 500_000
"""About how many pairs of a term and a table are read for a query, those of its rarest terms first."""

MOST_NUMBERS = 5_000
"""How many columns are compared with a column of numbers: those whose medians are nearest to its own."""


def find_by_terms(
    index: Index, asked: SearchColumns, rarity: Rarity, most: int, exclude: Collection[str]
) -> list[int]:
    """Find the tables that share the most terms with the query, rare terms counting more."""
    rare = _rarest(asked.terms.terms, rarity)
    found = index.given(
        """
        WITH scored AS (
            SELECT id, sum(weight * n) AS score FROM postings JOIN asked USING (term) GROUP BY id
        )
        SELECT id FROM scored JOIN tables USING (id)
        WHERE snapshot NOT IN (SELECT unnest(?::VARCHAR[]))
        ORDER BY round(score / sqrt(terms), 6) DESC, snapshot, name LIMIT ?
        """,
        {"term": rare, "weight": rarity(rare) ** 2},
        [list(exclude), most],
    )
    return [int(number) for number in found["id"]]


def _rarest(terms: NDArray[np.uint64], rarity: Rarity) -> NDArray[np.uint64]:
    """Choose the terms by which tables are found: the rarest, which say most, within a limit of reading.

    In a large lake most of what could be read are trigrams of headers that a good part of all tables
    have. They hardly change which tables are compared closely, where every term counts.
    """
    counted = np.isin(rarity.terms, terms)  # a term that no column has finds no table
    counted &= rarity.counts <= max(_COMMON * rarity.columns, 10)
    known, counts = rarity.terms[counted], rarity.counts[counted]
    order = np.argsort(counts, kind="stable")
    read_before = np.cumsum(counts[order]) - counts[order]
    return np.sort(known[order[read_before < MOST_POSTINGS]])


def find_by_numbers(
    index: Index, asked: SearchColumns, most: int, exclude: Collection[str], without: Sequence[int]
) -> list[int]:
    """Find the tables whose numbers are distributed like the query's, where a header says nothing."""
    numeric = [column for column in asked.columns if is_numeric(column)]
    if not numeric:
        return []
    found = _of_like_size(index, numeric, [list(exclude), list(without)])
    if not len(found["id"]):
        return []
    theirs = found["opaque"].astype(bool)
    spread = np.stack(list(found["quantiles"]))
    tables, place = np.unique(found["id"], return_inverse=True)
    score = np.zeros(len(tables))
    for column in numeric:
        counts = theirs | is_opaque(column.name)
        best = np.zeros(len(tables))
        np.maximum.at(best, place[counts], agreement(np.array(column.quantiles), spread[counts]))
        score += best
    names = zip(found["snapshot"], found["name"], strict=True)
    called = dict(zip(found["id"].tolist(), names, strict=True))
    scores = dict(zip(tables.tolist(), score.round(DIGITS).tolist(), strict=True))
    likely = [number for number in scores if scores[number] > 0]
    return sorted(likely, key=lambda n: (-scores[n], *called[n]))[:most]


def _of_like_size(
    index: Index, numeric: Sequence[SearchColumn], without: Sequence[object]
) -> dict[str, NDArray[Any]]:
    """Return the columns whose median is between the quartiles of one of the query's columns.

    Of many such columns those with the nearest medians are returned. Where both headers say something, they are compared and not the numbers.
    """
    cuts = [np.quantile(column.quantiles or (), [0.25, 0.5, 0.75]) for column in numeric]
    low, middle, high = np.array(cuts).T
    any_silent = any(is_opaque(column.name) for column in numeric)
    return index.given(
        f"""
        WITH near AS (
            SELECT DISTINCT unnest(one, recursive := true) FROM (
                SELECT unnest(arg_min(
                    {{'id': id, 'place': place}},
                    (abs(median - middle), id, place),
                    {MOST_NUMBERS}
                )) AS one
                FROM numbers JOIN asked ON median BETWEEN low AND high
                WHERE {"true" if any_silent else "opaque"} GROUP BY low, middle, high
            )
        )
        SELECT id, snapshot, tables.name, opaque, quantiles
        FROM near JOIN numbers USING (id, place) JOIN tables USING (id)
        WHERE snapshot NOT IN (SELECT unnest(?::VARCHAR[])) AND id NOT IN (SELECT unnest(?::BIGINT[]))
        """,
        {"low": low, "middle": middle, "high": high},
        without,
    )


def stored_columns(index: Index, ids: Sequence[int]) -> dict[int, SearchColumns]:
    """Read the columns of some tables that have values, with their terms."""
    found = index.columns(ids, 'id, name, "numeric", quantiles, terms, weights')
    owner = found["id"]
    starts, ends = np.searchsorted(owner, ids, "left"), np.searchsorted(owner, ids, "right")
    return {
        number: _columns_of({name: column[a:b] for name, column in found.items()})
        for number, a, b in zip(ids, starts.tolist(), ends.tolist(), strict=True)
    }


def _columns_of(rows: Mapping[str, NDArray[Any]]) -> SearchColumns:
    columns = [
        SearchColumn(name, float(numeric), None if quantiles is None else quantiles.tolist())
        for name, numeric, quantiles in zip(
            rows["name"], rows["numeric"], rows["quantiles"], strict=True
        )
    ]
    lengths = [len(terms) for terms in rows["terms"]]
    none = np.zeros(0)
    terms = Terms(
        np.repeat(np.arange(len(columns)), lengths),
        np.concatenate([none.astype(np.uint64), *rows["terms"]]),
        np.concatenate([none, *rows["weights"]]).astype(float),
    )
    return SearchColumns(columns, terms)
