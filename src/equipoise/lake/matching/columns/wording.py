"""Whether two headers mean the same, judged strictly: one additional word is a doubt.

`headers` measures how similar two headers are, to find possible matches. This module decides whether
they leave a doubt: `income` and `household_income` are similar, but not the same.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from equipoise.lake.matching.columns.headers import (
    is_shortened,
    listed,
    other_referent,
    same_words,
    stored,
    word_similarity,
)
from equipoise.lake.tables.headers import is_opaque, words


class Level(IntEnum):
    """How closely the meanings of two headers agree, from the closest on."""

    SAME = 0  # the same words, in any order and spelling
    SYNONYMS = 1  # words that always mean the same, or one more for the people the table is about
    LOOSE = 2  # words that mostly mean the same, abbreviations, units, or words such as "code"
    SILENT = 3  # one of the headers says nothing
    OTHER = 4  # one of the headers has a word that the other does not have


@dataclass(frozen=True)
class Wording:
    """How closely the meanings of two headers agree, and the words in which they differ.

    ``further`` tells whether one header only adds words to the other, none of which is known to
    refer to someone else, another time or another quantity.
    """

    level: Level
    words: tuple[str, ...] = ()
    further: bool = False


# Similarities of words from which on one may be short for the other, and both mean the same.
_SHORTENED, _MEANT = 0.8, 0.95
_SEVERAL, _MOST = 4, 2 / 3  # number and share of a table's headers that must begin with a prefix


@functools.lru_cache(maxsize=200_000)
def compare_headers(a: str, b: str) -> Wording:
    """Compare the meanings of two headers.

    >>> compare_headers("interview_date", "Date of interview").level.name
    'SAME'
    >>> compare_headers("birth date", "DOB").level.name, compare_headers("sex", "gender").level.name
    ('SYNONYMS', 'SYNONYMS')
    >>> compare_headers("int_rate", "interest rate").level.name
    'LOOSE'
    >>> compare_headers("income", "household_income").words, compare_headers("sex", "c7").level.name
    (('household',), 'SILENT')
    """
    if a == b or same_words(a, b):
        return Wording(Level.SAME)
    if _is_contracted(a, b) or _is_contracted(b, a):
        return Wording(Level.LOOSE)
    if is_opaque(a) or is_opaque(b):
        return Wording(Level.SILENT)
    if _numbers(a) != _numbers(b):
        return Wording(Level.OTHER, tuple(sorted(_numbers(a) ^ _numbers(b))))
    ours, theirs = _bag(words(a)), _bag(words(b))
    if ours == theirs:
        return Wording(Level.SAME)
    for kind, level in (("same", Level.SYNONYMS), ("mostly", Level.LOOSE)):
        if _in_one_word(ours, kind) == _in_one_word(theirs, kind):
            return Wording(level)
    if (word := other_referent(a, b)) is not None:
        return Wording(Level.OTHER, (word,))
    ours, theirs = _in_one_word(ours), _in_one_word(theirs)
    left = (ours ^ theirs) - listed("flags")
    added = left <= _subjects() and not (left & ours and left & theirs)
    if ours == theirs or (added and _tells(ours & theirs)):
        return Wording(Level.SYNONYMS)
    found = _compare_loosely(ours, theirs)
    as_written = {_stem(word): word for word in (*words(a), *words(b))}
    told = tuple(as_written.get(word, word) for word in found.words)
    return Wording(found.level, told, found.further)


def _compare_loosely(ours: frozenset[str], theirs: frozenset[str]) -> Wording:
    """Look for a counterpart of every word that only one header has."""
    common, swapped, left = ours & theirs, [], []
    for own, other in ((ours, theirs), (theirs, ours)):
        about_all = not other & _subjects()
        for word in sorted(own - other):
            partner = max((_alike(word, o) for o in other - own), default=0.0)
            repeated = max((_alike(word, o) for o in other & own), default=0.0)
            if word in _added() or (about_all and word in _subjects()):
                continue
            if partner >= _SHORTENED or repeated >= _MEANT:
                common |= {word}
                short = any(is_shortened(*sorted((word, o), key=len)) for o in other - own)
                swapped += [] if short else [word]
            else:
                left.append(word)
    if left or not _tells(common):
        one_sided = ours.isdisjoint(left) or theirs.isdisjoint(left)
        further = one_sided and _tells(common) and (listed("figures") | _others()).isdisjoint(left)
        return Wording(Level.OTHER, tuple(left) or tuple(sorted(ours ^ theirs)), further)
    return Wording(Level.LOOSE, tuple(swapped))


def _is_contracted(short: str, long: str) -> bool:
    """Whether a header of one word consists of the beginnings of the other's words, in order."""
    one, several = words(short), words(long)
    if len(one) != 1 or len(several) < 2 or len(one[0]) < 3 or one[0] in _known():
        return False
    kept = tuple(word for word in several if word not in listed("empty"))
    initials = "".join(word[0] for word in several)
    if len(several) > 2 and one[0] == initials:
        return True
    return len(kept) > 1 and _is_made_of(one[0], kept)


def _is_made_of(text: str, parts: tuple[str, ...]) -> bool:
    """Whether a text consists of short forms of two letters or more of every part, in order."""
    if not parts:
        return not text
    sizes = range(2, min(len(text), len(parts[0])) + 1)
    return any(
        is_shortened(text[:size], parts[0]) and _is_made_of(text[size:], parts[1:])
        for size in sizes
    )


@functools.lru_cache(maxsize=50_000)
def _alike(a: str, b: str) -> float:
    """The similarity of two stems; the word lists may hold their plural."""
    return max(word_similarity(x, y) for x in (a, f"{a}s") for y in (b, f"{b}s"))


def without_prefix(headers: Sequence[str]) -> tuple[str, ...]:
    """Return the headers of a table without the first word that most of them have.

    >>> without_prefix(["src_age", "src_sex", "SRC_INCOME", "src_job_title", "note"])
    ('age', 'sex', 'INCOME', 'job_title', 'note')
    >>> without_prefix(["spouse_age", "spouse_sex", "spouse_income", "spouse_job"])[0]
    'spouse_age'
    """
    firsts = Counter(tokens[0] for header in headers if len(tokens := words(header)) > 1)
    first, most = max(firsts.items(), key=lambda item: item[1], default=("", 0))
    # A word for people or for a quantity says whose values the columns hold.
    kept = _others() | _subjects() | listed("figures")
    if most < max(_SEVERAL, _MOST * len(headers)) or first in kept:
        return tuple(headers)
    return tuple(_without(first, header) for header in headers)


def _without(first: str, header: str) -> str:
    """Remove a word from the beginning of a header, unless nothing would be left."""
    bare = header[len(first) :].lstrip("_-. ")
    return bare if words(header)[:1] == (first,) and words(bare) else header


def is_generic(header: str) -> bool:
    """Whether a header does not say what a column is about.

    >>> [is_generic(h) for h in ("status", "Result Code", "id", "y", "patient_status", "income")]
    [True, True, True, True, False, False]
    """
    return is_opaque(header) or not (_bag(words(header)) - listed("neutral") - listed("generic"))


def names_key(header: str) -> bool:
    """Whether a header is that of an identifier of rows.

    >>> names_key("patient_id"), names_key("Policy No"), names_key("age")
    (True, True, False)
    """
    return not listed("keys").isdisjoint(words(header))


def says_whose(header: str) -> str | None:
    """Return a word by which a header refers to someone else, another time or place, if any.

    >>> says_whose("mother_education"), says_whose("education")
    ('mother', None)
    """
    return min(set(words(header)) & _others(), default=None)


def _tells(some: Iterable[str]) -> bool:
    """Whether some of the words say what a column is about."""
    return bool(set(some) - _subjects() - _added() - listed("generic"))


@functools.cache
def _subjects() -> frozenset[str]:
    """Words for the people a table is about."""
    return listed("subjects") | listed("persons")


@functools.cache
def _others() -> frozenset[str]:
    """Words by which a header refers to someone else, another time or place."""
    return listed("others") | listed("wider") | listed("elsewhere")


@functools.cache
def _added() -> frozenset[str]:
    """Words that may be added without changing the meaning, if the values agree."""
    some = listed("neutral") | listed("units") | listed("mild") | {"in"}
    return some | frozenset(map(_stem, some))


def _numbers(header: str) -> frozenset[str]:
    return frozenset(str(int(w)) for w in words(header) if w.isdigit())


def _bag(tokens: Iterable[str]) -> frozenset[str]:
    """The words of a header in the singular, without those that say nothing."""
    told = [t for t in tokens if not t.isdigit() and t not in listed("empty")]
    return frozenset(map(_stem, told)) or frozenset(tokens)


def _stem(word: str) -> str:
    """Return the singular of a word, and the common stem of "collected" and "collection".

    >>> [_stem(word) for word in ("units", "status", "collected", "collection", "bed", "education")]
    ['unit', 'status', 'collect', 'collect', 'bed', 'education']
    """
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if re.fullmatch(r"\w{3,}[^aeiou](ed|ion)", word) and word not in _known():
        return word.removesuffix("ed").removesuffix("ion")
    return word


@functools.cache
def _known() -> frozenset[str]:
    """Words that the lists hold as they are, so that they must not be shortened."""
    lines = (*stored()["meanings"], *stored()["same"])
    return listed("neutral") | {word for line in lines for text in line for word in words(text)}


@functools.lru_cache(maxsize=50_000)
def _in_one_word(bag: frozenset[str], kind: str = "same") -> frozenset[str]:
    """Replace each phrase of the lists by the first phrase of the same meaning."""
    bag = bag if kind == "same" else _in_one_word(bag)
    for first, phrase in _phrases(kind):
        if phrase <= bag and not first <= bag:
            bag = bag - phrase | first
    return bag


@functools.cache
def _phrases(kind: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Every phrase of a list and its replacement, the longest first."""
    found = []
    for line in stored()[kind]:
        bags = [_bag(words(phrase)) for phrase in line]
        first, *others = bags if kind == "same" else map(_in_one_word, bags)
        found += [(first, other) for other in others]
    return tuple(sorted(found, key=lambda pair: -len(pair[1])))


def is_said_by(a: str, b: str) -> bool:
    """Whether two headers are about the same thing, apart from words that fit anything."""
    if other_referent(a, b) is not None:
        return False
    ours, theirs = ({w for w in _in_one_word(_bag(words(h))) if _tells([w])} for h in (a, b))
    pairs = ((ours, theirs), (theirs, ours))
    return bool(ours and theirs) and all(
        any(_alike(word, o) >= _SHORTENED for o in other) for own, other in pairs for word in own
    )
