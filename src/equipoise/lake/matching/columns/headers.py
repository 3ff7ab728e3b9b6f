"""How similar the headers of two columns are, to find what may be a match."""

from __future__ import annotations

import functools
import importlib.resources
import tomllib
from collections.abc import Sequence
from typing import Any

from equipoise.lake.tables.headers import is_opaque, words

SAME_WORDS, SAME_MEANING, _OTHER_THING = 0.97, 0.93, 0.6
"""Similarities of the same words in another spelling, of words with the same meaning, and of words
about someone else; `evidence` turns them into log-odds."""

_SHARED = 0.6  # similarity from which on an added word such as "family" changes the meaning


@functools.lru_cache(maxsize=200_000)
def header_similarity(a: str, b: str) -> float:
    """Return the similarity of two headers, from 0 to 1."""
    if a == b:
        return 1.0
    ours, theirs = words(a), words(b)
    if not ours or not theirs:
        return 0.0
    if same_words(a, b):
        return SAME_WORDS
    alike = _alike(_core(ours), _core(theirs))
    numbers = [[int(t) for t in tokens if t.isdigit()] for tokens in (ours, theirs)]
    if numbers[0] != numbers[1]:  # bill_1 is not bill_2
        return 0.3 * alike
    if other_referent(a, b) is not None:
        return min(alike, _OTHER_THING)
    return min(alike, SAME_MEANING)


def same_words(a: str, b: str) -> bool:
    """Whether two headers differ only in case, blanks and punctuation."""
    ours = "".join(words(a))
    return bool(ours) and ours == "".join(words(b))


@functools.lru_cache(maxsize=200_000)
def other_referent(a: str, b: str) -> str | None:
    """Return a word by which one of two headers is about someone else or another time, if any."""
    ours, theirs = words(a), words(b)
    others = (set(ours) ^ set(theirs)) & listed("others")
    if others:
        return min(others)
    added = (set(ours) ^ set(theirs)) & listed("wider")
    if added and _alike(_core(ours), _core(theirs)) >= _SHARED:
        return min(added)
    subjects = [set(side) & listed("subjects") for side in (ours, theirs)]
    if all(subjects) and subjects[0].isdisjoint(subjects[1]) and _differ(*subjects):
        return min(subjects[1])
    return None


def _differ(ours: set[str], theirs: set[str]) -> bool:
    """Whether no two of the words mean the same, as customer and client do."""
    return all(word_similarity(a, b) < 0.95 for a in ours for b in theirs)


def ordinal(header: str) -> tuple[str, int] | None:
    """Split a header with one number or month into its other words and the number; else None."""
    if is_opaque(header):
        return None
    tokens = words(header)
    numbers = [int(t) if t.isdigit() else _MONTHS[t] for t in tokens if t.isdigit() or t in _MONTHS]
    if len(numbers) != 1 or len(tokens) == 1:
        return None
    return " ".join(t for t in tokens if not t.isdigit() and t not in _MONTHS), numbers[0]


# Not those of the calendar module, which depend on the locale of the process.
_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTHS = {"sept": 9} | {
    name: number
    for number, month in enumerate(_MONTH_NAMES, start=1)
    for name in (month, month[:3])
}


def _core(tokens: Sequence[str]) -> list[str]:
    """The words that say what a column holds, without those that any header may have."""
    letters = [t for t in tokens if not t.isdigit()]
    bare = [t for t in letters if t not in listed("fillers") and len(t) > 1]
    core = [t for t in bare if t not in listed("neutral") and t not in listed("subjects")]
    return core or bare or letters


def _alike(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """The share of words that have a counterpart."""
    if not ours or not theirs:
        return 0.0
    partners = [[word_similarity(a, b) for b in theirs] for a in ours]
    forth: float = sum(max(row) for row in partners) / len(ours)
    back: float = sum(max(column) for column in zip(*partners, strict=True)) / len(theirs)
    # The side with more words left over counts more: what it says in addition may matter.
    return max(0.35 * max(forth, back) + 0.65 * min(forth, back), _run_together(ours, theirs))


def _run_together(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """Compare words that may be written as one, by their trigrams."""
    a, b = _trigrams("".join(ours)), _trigrams("".join(theirs))
    return 2 * len(a & b) / (len(a) + len(b)) if a and b else 0.0


def _trigrams(text: str) -> set[str]:
    padded = f" {text} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}


@functools.lru_cache(maxsize=100_000)
def word_similarity(a: str, b: str) -> float:
    """Return the similarity of two words, from 0 to 1.

    >>> word_similarity("sex", "gender"), word_similarity("int", "interest")
    (0.95, 0.9)
    """
    if a == b:
        return 1.0
    meanings = _meanings()
    if a in meanings and meanings[a] == meanings.get(b):
        return 0.95
    short, long = sorted((a, b), key=len)
    if len(short) >= 3 and long.startswith(short):
        return 0.9
    if len(short) >= 3 and is_shortened(short, long):
        return 0.8
    alike = _run_together([a], [b])
    return alike if alike >= 0.6 else 0.0


def is_shortened(short: str, long: str) -> bool:
    """Whether a text is the beginning of a word, or the word with letters left out.

    >>> is_shortened("cap", "capital"), is_shortened("wgt", "weight"), is_shortened("sex", "age")
    (True, True, False)
    """
    if long.startswith(short):
        return True
    # Such short forms keep the first letter, and no vowels after it.
    if short[0] != long[0] or set(short[1:]) & set("aeiou"):
        return False
    rest = iter(long)
    return all(letter in rest for letter in short)


@functools.cache
def stored() -> dict[str, Any]:
    """Read ``headers.toml``."""
    file = importlib.resources.files("equipoise.lake.matching.columns") / "headers.toml"
    return tomllib.loads(file.read_text("utf-8"))


@functools.cache
def _meanings() -> dict[str, int]:
    return {word: i for i, line in enumerate(stored()["meanings"]) for word in line}


@functools.cache
def listed(kind: str) -> frozenset[str]:
    """Return the words of one of the lists in ``headers.toml``."""
    return frozenset(stored()[kind])
