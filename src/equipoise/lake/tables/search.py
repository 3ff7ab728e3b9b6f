"""Union search: which tables of a lake could be appended to a table, column by column.

Columns are compared by three kinds of evidence: their headers; their words (of header and values in
one bag, rare words counting more); and, where a header says nothing, the distribution of their
numbers. Columns are then paired one to one. The score of a table combines the similarities of the
pairs with how much the words of the two tables as a whole have in common: a column ``Name`` means
little unless both tables are about the same subject. File names are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.errors import InputError
from equipoise.lake.tables._assignment import FEW_COLUMNS, best_pairs
from equipoise.lake.tables._candidates import find_by_numbers, find_by_terms, stored_columns
from equipoise.lake.tables._similarity import (
    DIGITS,
    Parts,
    Rarity,
    SearchColumns,
    compare,
    unit_vectors,
    value_overlap,
)
from equipoise.lake.tables._terms import (
    TOKEN,
    WORD,
    Terms,
    header_words,
    term_number,
    words,
)
from equipoise.lake.tables.index import Index, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONTEXT_WEIGHT = 0.4
"""Weight of the words of a whole table in its score; the rest is the weight of its columns."""

CANDIDATES, NUMBER_CANDIDATES = 150, 50
"""How many tables are compared closely: because of their words, and because of their numbers."""

_SHOWN = 0.1  # pairs of columns that are less similar are not reported
_NOTABLE = 0.5  # similarity from which on headers and words are named as reasons


@dataclass(frozen=True)
class ColumnPair:
    """A column of the query and the column of a table it is paired with, and why."""

    query: str
    table: str
    similarity: float
    why: str


@dataclass(frozen=True)
class Hit:
    """A table that was found, with its score from 0 to 1 and the columns that match."""

    table: Table
    score: float
    columns: tuple[ColumnPair, ...]


def search(
    index: Index, query: Profile, *, top: int = 10, exclude: Collection[str] = ()
) -> list[Hit]:
    """Find the tables whose rows could be appended to a table, the best first.

    Tables that have nothing in common with the query are left out, and so are files whose snapshots
    are in ``exclude``, such as the query's own.
    """
    if top < 1:
        raise InputError(f"`top` is {top}, so no table can be found; set it to 1 or more.")
    query = _filled(query)
    asked = SearchColumns.of(query)
    columns = index.counts[1]
    rarity = Rarity(columns, *index.frequencies(np.unique(asked.terms.terms)))
    ids = find_by_terms(index, asked, rarity, max(top, CANDIDATES), exclude)
    ids += find_by_numbers(index, asked, max(top, NUMBER_CANDIDATES), exclude, without=ids)
    if not ids:
        return []
    stored = stored_columns(index, ids)
    used = np.concatenate([asked.terms.terms, *(table.terms.terms for table in stored.values())])
    rarity = Rarity(columns, *index.frequencies(np.unique(used)))
    scores = _scores(asked, stored, rarity)
    tables = index.tables_by_id(ids)
    ranked = sorted(ids, key=lambda n: (-scores[n], tables[n].snapshot, tables[n].name))
    found = [n for n in ranked[:top] if scores[n] > 0]
    profiles = index.profiles(found)
    hits = []
    for n in found:
        compared = compare(asked, stored[n], rarity)
        pairs = _matches(query.columns, _filled(profiles[n]).columns, compared)
        hits.append(Hit(tables[n], scores[n], pairs))
    return hits


def most_similar(index: Index, query: Profile, most: int) -> list[int]:
    """Find the numbers of the tables that share the most words with a table."""
    asked = SearchColumns.of(query)
    rarity = Rarity(index.counts[1], *index.frequencies(np.unique(asked.terms.terms)))
    return find_by_terms(index, asked, rarity, most, ())


def find_having(
    index: Index, columns: Sequence[tuple[Sequence[str], Sequence[str]]]
) -> set[int] | None:
    """Find the numbers of the tables that have a counterpart of each of some columns.

    A counterpart has some word of the given headers in its header, or some word of the given values
    in a value. Without columns there is None.
    """
    found: set[int] | None = None
    for headers, values in columns:
        terms = {term_number(TOKEN, word) for text in headers for word in words(text)}
        terms |= {term_number(WORD, word) for text in values for word in words(text)}
        rows = index.given(
            "SELECT DISTINCT id FROM postings SEMI JOIN asked USING (term)",
            {"term": np.array(sorted(terms), np.uint64)},
        )
        these = set(rows["id"].tolist())
        found = these if found is None else found & these
    return found


def _filled(profile: Profile) -> Profile:
    """Leave out columns without values, as a delimiter at the end of every line makes them."""
    return replace(profile, columns=tuple(c for c in profile.columns if c.distinct))


def _scores(
    asked: SearchColumns, found: Mapping[int, SearchColumns], rarity: Rarity
) -> dict[int, float]:
    """Score all tables. The columns of all are compared at once, which is much faster."""
    together, starts = _together(list(found.values()))
    similarity = compare(asked, together, rarity).similarity()
    contexts = _contexts(asked, together, starts, rarity)
    scores = {}
    for i, number in enumerate(found):
        block = similarity[:, starts[i] : starts[i + 1]]
        aligned = block[_paired(block)].sum() / np.sqrt(max(block.size, 1))
        score = (1 - CONTEXT_WEIGHT) * aligned + CONTEXT_WEIGHT * contexts[i]
        scores[number] = round(float(np.clip(score, 0, 1)), DIGITS)
    return scores


def _paired(similarity: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair columns one to one so that the sum of their similarities is largest."""
    if min(similarity.shape) <= FEW_COLUMNS:
        return best_pairs(similarity)
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return rows, columns


def _together(tables: Sequence[SearchColumns]) -> tuple[SearchColumns, NDArray[np.int64]]:
    """Concatenate the columns of tables, and give the position at which each table starts."""
    starts = np.concatenate([[0], np.cumsum([len(table.columns) for table in tables])])
    places = [table.terms.places + start for table, start in zip(tables, starts, strict=False)]
    terms = Terms(
        np.concatenate(places),
        np.concatenate([table.terms.terms for table in tables]),
        np.concatenate([table.terms.weights for table in tables]),
    )
    return SearchColumns([column for table in tables for column in table.columns], terms), starts


def _contexts(
    asked: SearchColumns, together: SearchColumns, starts: NDArray[np.int64], rarity: Rarity
) -> NDArray[np.float64]:
    """How much the words of whole tables have in common, whichever columns they are in."""
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    ours = _bags(asked.terms, np.zeros(len(asked.columns), int))
    theirs = _bags(together.terms, owner)
    one, many = unit_vectors([(ours, 1), (theirs, len(starts) - 1)], rarity)
    contexts: NDArray[np.float64] = one.products(many)[0]
    return contexts


def _bags(terms: Terms, owner: NDArray[np.int64]) -> Terms:
    """Return the words of tables; the weight of a word grows with the log of the columns it is in."""
    chosen = terms.of_kind(WORD)
    known, codes = np.unique(chosen.terms, return_inverse=True)
    both, columns = np.unique(owner[chosen.places] * len(known) + codes, return_counts=True)
    owners, found = np.divmod(both, max(len(known), 1))
    return Terms(owners, known[found], 1 + np.log(columns))


def _matches(
    query: Sequence[ColumnProfile], table: Sequence[ColumnProfile], compared: Parts
) -> tuple[ColumnPair, ...]:
    similarity = compared.similarity()
    return tuple(
        ColumnPair(
            query=query[i].name,
            table=table[j].name,
            similarity=round(float(similarity[i, j]), DIGITS),
            why=_why(query[i], table[j], compared, (i, j)),
        )
        for i, j in zip(*_paired(similarity), strict=True)
        if similarity[i, j] >= _SHOWN
    )


def _why(one: ColumnProfile, other: ColumnProfile, compared: Parts, at: tuple[int, int]) -> str:
    reasons = []
    if compared.header[at] >= _NOTABLE:
        same = header_words(one.name) == header_words(other.name)
        reasons.append("same header" if same else f"similar header {compared.header[at]:.2f}")
    overlap = value_overlap(one, other)
    if not np.isnan(compared.numbers[at]):
        reasons.append(f"similar numbers {compared.numbers[at]:.2f}")
    elif overlap >= _SHOWN:
        reasons.append(f"values overlap {overlap:.2f}")
    elif not reasons or compared.words[at] >= _NOTABLE:
        reasons.append(f"similar words {compared.words[at]:.2f}")
    return ", ".join(reasons)
