"""The terms by which tables are searched: words of headers and values, stored as hashes."""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.lake.tables import headers

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD, TOKEN, GRAM = 0, 1, 2
"""Kinds of terms, in the last two bits of each hash: a word of the header or of a value, a word of
the header alone, a trigram of the header."""

MOST_WORDS = 200
"""Maximum number of words per column, the most frequent ones: it bounds the size of the index."""

NUMERIC = 0.5
"""Columns with at least this share of numbers are compared by their numbers."""

_WORDS = re.compile(r"[^\W_]+")
_KIND_BITS = 3


@dataclass(frozen=True)
class Terms:
    """The terms of some columns, as three parallel arrays."""

    places: NDArray[np.int64]  # of the column, counted from 0
    terms: NDArray[np.uint64]  # hashes, see term_number
    weights: NDArray[np.float64]

    def of_kind(self, kind: int) -> Terms:
        """The terms of one kind."""
        chosen = (self.terms & np.uint64(_KIND_BITS)) == kind
        return Terms(self.places[chosen], self.terms[chosen], self.weights[chosen])


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case and in the singular."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return [_singular(word) for word in _WORDS.findall(plain)]


def header_words(name: str) -> list[str]:
    """Return the words of a header, splitting camel case; no words if it says nothing.

    >>> header_words("birthDate"), header_words("unnamed_3"), header_words("V12")
    (['birth', 'date'], [], [])
    """
    return [] if headers.is_opaque(name) else [_singular(word) for word in headers.words(name)]


@functools.lru_cache(maxsize=1 << 16)
def term_number(kind: int, text: str) -> int:
    """Hash a term, to the same number on every machine; the last two bits are the kind.

    >>> term_number(TOKEN, "age") % 4 == TOKEN
    True
    """
    digest = hashlib.md5(text.encode(errors="replace"), usedforsecurity=False).digest()
    return (int.from_bytes(digest[:8], "big") & ~_KIND_BITS) | kind


def column_terms(column: ColumnProfile) -> dict[int, float]:
    """Return the terms of a column with their weights, in an order that is the same in every process.

    The weight of a word is its count in the header, plus one if some value has it. The number of rows
    it is in is ignored: it says more about the size of the table than about its subject.
    """
    header = header_words(column.name)
    tokens = Counter(header)
    bag = tokens + Counter(_value_words(column))
    found = {term_number(WORD, word): float(n) for word, n in bag.items()}
    found |= {term_number(TOKEN, word): float(n) for word, n in tokens.items()}
    spaced = f" {' '.join(header)} "
    grams = {spaced[i : i + 3] for i in range(len(spaced) - 2)} if header else set()
    found |= {term_number(GRAM, gram): 1.0 for gram in grams}
    return dict(sorted(found.items()))


def terms_of(profile: Profile) -> Terms:
    """Return the terms of all columns of a table.

    >>> from equipoise.engines.profiling import Profiler
    >>> profiler = Profiler(["Plant", "V1"], ["VARCHAR", "VARCHAR"])
    >>> profiler.add_texts([["apple", "pear"], ["fig", "fig"]])
    >>> terms_of(profiler.profile()).of_kind(WORD).places.tolist()
    [0, 0, 0, 1]
    """
    columns = [column_terms(column) for column in profile.columns]
    lengths = [len(column) for column in columns]
    return Terms(
        np.repeat(np.arange(len(columns)), lengths),
        np.fromiter((term for column in columns for term in column), np.uint64),
        np.fromiter((weight for column in columns for weight in column.values()), float),
    )


def _value_words(column: ColumnProfile) -> set[str]:
    """The words of the values; none for numbers, since digits say little."""
    if column.numeric >= NUMERIC:
        return set()
    counts: Counter[str] = Counter()
    known = column.values
    if known is None:
        known = dict.fromkeys((text for text in column.sample if text is not None), 1)
    for value, rows in known.items():
        for word in words(value):
            counts[word] += rows
    if len(counts) <= MOST_WORDS:
        return set(counts)
    # Ties are broken by hash and not by the order of rows, which means nothing.
    ranked = sorted(counts, key=lambda word: (-counts[word], term_number(WORD, word)))
    return set(ranked[:MOST_WORDS])


def _singular(word: str) -> str:
    if len(word) > len("ies") and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > len("ies") and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word
