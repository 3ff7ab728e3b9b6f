"""Words known to mean the same, from synonyms.toml, and what they say about values."""

from __future__ import annotations

import functools
import importlib.resources
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.lake.matching.values.spelling import (
    GENERIC_LEAD,
    IDEOGRAPH,
    ORDINAL,
    compact,
    normalise,
    quantities,
    without_numbering,
)


@dataclass(frozen=True)
class Letters:
    """Letters or codes that stand for words if all of ``needs`` occur."""

    needs: frozenset[str]
    alone: bool  # common enough to be read where neither table spells them out
    codes: Mapping[str, str]

    def cover(self, keys: Iterable[str]) -> bool:
        """Whether all of some texts are among the letters."""
        keys = set(keys)
        return self.needs <= keys <= self.codes.keys()


@dataclass(frozen=True)
class Context:
    """What else two tables must contain for a word to have its meaning."""

    present: frozenset[str]  # meanings both tables must have
    absent: frozenset[str]  # meanings neither may have


@dataclass(frozen=True)
class Concept:
    """Meanings that exclude each other, such as the sexes, with the spellings of each."""

    name: str
    generic: bool
    words: Mapping[str, str]  # spelling → meaning
    letters: tuple[Letters, ...]
    conditions: Mapping[str, Context]

    @classmethod
    def read(cls, name: str, stored: Mapping[str, Any]) -> Concept:
        """Read a concept as it is stored."""
        words = {
            compact(spelling): meaning
            for meaning, spellings in stored["words"].items()
            for spelling in spellings
        }
        letters = tuple(
            Letters(frozenset(s["needs"]), s.get("alone", False), s["codes"])
            for s in stored.get("letters", ())
        )
        conditions = {
            compact(spelling): Context(
                frozenset(c.get("with", ())), frozenset(c.get("without", ()))
            )
            for spelling, c in stored.get("only", {}).items()
        }
        return cls(name, stored.get("generic", False), words, letters, conditions)

    @functools.cached_property
    def spellings(self) -> frozenset[str]:
        """All words and letters."""
        return frozenset(self.words).union(*(letters.codes for letters in self.letters))

    def meanings(self, texts: Mapping[str, str], *, both_letters: bool) -> dict[str, str] | None:
        """The meaning of every value, or None if one has no meaning or more than one."""
        keys = {v: compact(text) for v, text in texts.items()}
        found = {v: self.words[key] for v, key in keys.items() if key in self.words}
        rest = {v: key for v, key in keys.items() if v not in found}
        if not rest:
            return found
        readings = [
            {v: letters.codes[key] for v, key in rest.items()}
            for letters in self.letters
            if letters.cover(rest.values()) and (letters.alone or not both_letters)
        ]
        if not readings or any(r != readings[0] for r in readings):
            return None
        return found | readings[0]

    def allows(self, pair: tuple[str, str], base: set[str], source: set[str]) -> bool:
        """Whether two spellings may be matched, given all meanings of either table."""
        for key in pair:
            condition = self.conditions.get(key)
            if condition is None or pair[0] == pair[1]:
                continue
            if not condition.present <= base & source or condition.absent & (base | source):
                return False
        return True


@functools.cache
def synonyms() -> dict[str, Any]:
    """The content of synonyms.toml."""
    file = importlib.resources.files("equipoise.lake.matching.values") / "synonyms.toml"
    return tomllib.loads(file.read_text("utf-8"))


@functools.cache
def concepts() -> tuple[Concept, ...]:
    """All concepts of synonyms.toml."""
    return tuple(Concept.read(name, stored) for name, stored in synonyms()["concepts"].items())


@functools.cache
def _missing_texts() -> frozenset[str]:
    return frozenset(compact(text) for text in synonyms()["missing"])


@functools.cache
def known_words() -> frozenset[str]:
    """Spellings that are words, whatever their meaning."""
    words = {key for concept in concepts() for key in concept.words}
    return frozenset(words | {compact(text) for text in synonyms()["real_words"]})


@functools.cache
def _generic_words() -> frozenset[str]:
    """Words that fit any column, such as yes and high."""
    return frozenset(key for concept in concepts() if concept.generic for key in concept.words)


@functools.cache
def whole_words() -> frozenset[str]:
    """Known words that are not short forms of another spelling, as `exec` is."""
    short = {
        key
        for concept in concepts()
        for key, meaning in concept.words.items()
        if len(key) <= 4
        for other, its in concept.words.items()
        if its == meaning and other.startswith(key) and len(other) > len(key) + 1
    }
    return known_words() - short


MARKS = "?-.–—_ "
"""A text of nothing but these characters means a missing value."""


@functools.lru_cache(maxsize=50_000)
def is_missing(text: str) -> bool:
    """Whether a text means a missing value in any column."""
    return (
        not text.strip(f"{MARKS}\t\r\n\u00a0")
        or text.strip() == r"\N"
        or compact(text) in _missing_texts()
    )


@functools.lru_cache(maxsize=50_000)
def is_code(text: str) -> bool:
    """Whether a text is a number, a letter or a short code, which means nothing by itself.

    Known short words (``no``, ``HS``), age bands and amounts with a sign are no codes.
    """
    plain = normalise(text)
    if compact(text) in known_words() or quantities(plain) or IDEOGRAPH.search(plain):
        return False
    bare = GENERIC_LEAD.sub("", plain).replace(" ", "")
    letters = "".join(c for c in bare if c.isalpha())
    if any(c.isdigit() for c in bare):
        return not ORDINAL.search(bare) and not re.search(r"[^\W\d_]{4}", bare)
    return len(letters) < 3 or bool(re.fullmatch(r"[b-df-hj-np-tv-xz]{3}|[ivx]+", letters))


def tells_meaning(values: Iterable[str]) -> bool:
    """Whether values show what their column is about; yes/no, high/low and codes do not."""
    texts = _present_texts(values)
    words = [text for text in texts if not is_code(text)]
    if any(compact(text) not in _generic_words() for text in words):
        return True
    keys = {compact(text) for text in texts}
    return not words and any(
        letters.alone and letters.cover(keys)
        for c in concepts()
        if not c.generic
        for letters in c.letters
    )


def _present_texts(values: Iterable[str]) -> list[str]:
    return list(without_numbering(v for v in values if not is_missing(v)).values())


_OF_ANY_PLACE = "direction"  # its words name regions as well as wards and shops


def tells_kind(values: Collection[str]) -> bool:
    """Whether values show what they are even without a header: words of one concept, or amounts.

    >>> tells_kind(["Male", "Female"]), tells_kind(["F", "M"]), tells_kind(["<=50K", ">50K"])
    (True, True, True)
    >>> tells_kind(["North", "South", "East"]), tells_kind(["yes", "no"]), tells_kind(["1", "2"])
    (False, False, False)
    """
    texts = _present_texts(values)
    if not tells_meaning(values):
        return False
    if all(quantities(normalise(text)) for text in texts):
        return True
    keys = [compact(text) for text in texts]
    kinds = [c for c in concepts() if not c.generic and c.name != _OF_ANY_PLACE]
    # Most values are enough: a table may have some that the lists do not hold.
    known = (sum(key in c.spellings for key in keys) for c in kinds)
    return max(known, default=0) > len(keys) / 2
