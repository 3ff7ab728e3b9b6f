"""The steps that can map a whole vocabulary, from the plainest to the boldest; see `vocabulary`."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from equipoise.lake.matching.values.concepts import (
    Concept,
    concepts,
    is_code,
    is_missing,
    known_words,
    tells_meaning,
    whole_words,
)
from equipoise.lake.matching.values.spelling import (
    compact,
    keys_of,
    negation,
    normalise,
    without_numbering,
)

Step = Literal["exact", "normalised", "synonyms", "prefix", "fuzzy", "codebook", "mapping"]

LARGEST = 200
"""Larger vocabularies are not compared: they are names or numbers, not groups."""

_ALIKE = 0.92  # minimum similarity of two words that differ by a typing error


@dataclass(frozen=True)
class Vocabularies:
    """The values of both sides that are not missing, with the texts they are read as."""

    base: dict[str, str]
    source: dict[str, str]
    missing: tuple[str, ...]
    rows: tuple[Mapping[str, int], Mapping[str, int]]

    @classmethod
    def of(cls, base: Mapping[str, int], source: Mapping[str, int]) -> Vocabularies:
        """Read the vocabularies of the base and the source."""
        if max(len(base), len(source)) > 2 * LARGEST:  # too large to be compared anyway
            return cls({b: b for b in base}, {s: s for s in source}, (), (base, source))
        said = {compact(b) for b in base}
        left = [s for s in source if s not in base and is_missing(s) and compact(s) not in said]
        missing = dict.fromkeys(left)
        present = [s for s in source if s not in missing]
        shared = {compact(s) for s in present}
        wanted = [b for b in base if not is_missing(b) or b in source or compact(b) in shared]
        texts = without_numbering(wanted), without_numbering(present)
        # If both tables number their values, the numbers may carry meaning.
        if all(any(v != text for v, text in side.items()) for side in texts):
            texts = {b: b for b in wanted}, {s: s for s in present}
        return cls(*texts, tuple(missing), (base, source))

    def codes(self) -> list[str]:
        """Values of the source that are codes, which mean nothing by themselves."""
        return [s for s, text in self.source.items() if is_code(text) and not is_missing(s)]

    @functools.cached_property
    def same(self) -> dict[str, str]:
        """Pairs with the same text, exactly or normalised."""
        keys = {b: keys_of(text) for b, text in self.base.items()}
        found = {}
        for s, text in self.source.items():
            mine = keys_of(text)
            near = [b for b, key in keys.items() if mine & key]
            if s in self.base:
                found[s] = s
            elif len(near) == 1:
                found[s] = near[0]
        return found


@dataclass(frozen=True)
class WholeMap:
    """A map of the whole vocabulary, the step that completed it, and the concept it is about."""

    step: Step
    pairs: Mapping[str, str]
    about: str = ""


def whole_map(found: Vocabularies, *, same_codes: bool) -> WholeMap | None:
    """Map every value of the source one to one by the plainest step that can; else None."""
    codes = set(found.codes())
    alone = len(found.source) == 1
    if alone and not (same_codes and codes) and not tells_meaning(found.source):
        return None
    if (same_codes or not codes) and _is_whole(found.same, found):
        return WholeMap(_plain_step(found.same), found.same)
    settled = {s: b for s, b in found.same.items() if same_codes or s not in codes}
    if not _is_one_to_one(settled):
        return None
    for step, fits in _BOLDER[: 1 if alone else None]:
        settled |= _only_once(found, settled, fits) if fits else {}
        if _is_whole(settled, found):
            return WholeMap(step, settled)
        if (known := _by_synonyms(found, settled)) is not None:
            about, pairs = known
            plain = all(found.same.get(s) == b for s, b in pairs.items())
            return WholeMap(_plain_step(pairs) if plain else step, pairs, about)
    return None


def step_of(s: str, b: str, found: Vocabularies, taken: Step) -> Step:
    """Return the plainest step that maps one value, given the step that completed the whole map."""
    if s not in found.source or b not in found.base or taken in ("codebook", "mapping"):
        return taken
    if found.same.get(s) == b:
        return "exact" if s == b else "normalised"
    texts = normalise(found.source[s]), normalise(found.base[b])
    fits = {step: fit for step, fit in _BOLDER if fit is not None}
    tried = [step for step in fits if taken in ("fuzzy", step)]
    return next((step for step in tried if fits[step](*texts)), "synonyms")


def _plain_step(pairs: Mapping[str, str]) -> Step:
    return "exact" if all(s == b for s, b in pairs.items()) else "normalised"


def _is_one_to_one(pairs: Mapping[str, str]) -> bool:
    return len(set(pairs.values())) == len(pairs)


def _is_whole(pairs: Mapping[str, str], found: Vocabularies) -> bool:
    return pairs.keys() == found.source.keys() and _is_one_to_one(pairs)


def _by_synonyms(
    found: Vocabularies, settled: Mapping[str, str]
) -> tuple[str, dict[str, str]] | None:
    """The map that all concepts which know every value agree on; None if there is no such map."""
    open_keys = {compact(text) for s, text in found.source.items() if s not in settled}
    maps = [
        (concept.name.replace("_", " "), outside | pairs)
        for concept in concepts()
        if open_keys <= concept.spellings  # rules most concepts out quickly
        for outside in [_outside(concept, found, settled)]
        if (pairs := _by_concept(concept, found, outside)) is not None
    ]
    if not maps or any(pairs != maps[0][1] for _, pairs in maps):
        return None
    return maps[0] if _is_one_to_one(maps[0][1]) else None


def _outside(concept: Concept, found: Vocabularies, settled: Mapping[str, str]) -> dict[str, str]:
    """Pairs settled before that the concept does not know, and does not have to."""
    return {s: b for s, b in settled.items() if compact(found.source[s]) not in concept.words}


def _by_concept(
    concept: Concept, found: Vocabularies, settled: Mapping[str, str]
) -> dict[str, str] | None:
    taken = set(settled.values())
    base_texts = {b: text for b, text in found.base.items() if b not in taken}
    source_texts = {s: text for s, text in found.source.items() if s not in settled}
    both = all(
        any(compact(text) not in concept.words for text in texts.values())
        for texts in (base_texts, source_texts)
    )
    base = concept.meanings(base_texts, both_letters=both)
    source = concept.meanings(source_texts, both_letters=both)
    if not base or not source:
        return None
    pairs: dict[str, str] = {}
    for s, meaning in source.items():
        same = [b for b, m in base.items() if m == meaning]
        if meaning == "missing" and not same:
            continue
        if len(same) != 1:
            return None
        pairs[s] = same[0]
    spelled = [(compact(found.source[s]), compact(found.base[b])) for s, b in pairs.items()]
    sides = set(base.values()), set(source.values())
    if not all(concept.allows(pair, *sides) for pair in spelled):
        return None
    return pairs if pairs and _letters_are_clear(found, pairs | dict(settled)) else None


def _letters_are_clear(found: Vocabularies, pairs: Mapping[str, str]) -> bool:
    """Whether no single letter is the initial of two values of the base."""
    letters = {normalise(found.source[s]) for s in pairs}
    begun = [normalise(text)[:1] for text in found.base.values()]
    return not any(begun.count(letter) > 1 for letter in letters if len(letter) == 1)


# Words that may follow a value without changing it: "high risk" is "high".
_NEUTRAL = frozenset(
    {"risk", "degree", "level", "status", "category", "race", "origin", "descent", "alone", "only"}
    | {"income", "score", "rating", "education", "person", "persons", "people", "household"}
)

# Lehrer is not short for Lehrerin, nor home for homeless, nor Asia for Asian.
_ENDINGS = re.compile(
    r"(?:e|es|a|as|s|ess|esses|ette|in|innen|er|r|ee|less|free|ne|nes|n|ns|an|ans|ian|ians|ese|ish)(?: .*)?"
)


def _only_once(
    found: Vocabularies, settled: Mapping[str, str], fits: Callable[[str, str], bool]
) -> dict[str, str]:
    """Pairs that fit, where each value is in one pair only."""
    taken = set(settled.values())
    near = {
        s: [b for b, whole in found.base.items() if fits(normalise(text), normalise(whole))]
        for s, text in found.source.items()
        if s not in settled
    }
    pairs = {s: fitting[0] for s, fitting in near.items() if len(fitting) == 1}
    wanted = [b for fitting in near.values() for b in fitting]
    return {s: b for s, b in pairs.items() if b not in taken and wanted.count(b) == 1}


@functools.lru_cache(maxsize=50_000)
def _abbreviates(short: str, whole: str) -> bool:
    if short == whole or short.replace(" ", "") == whole.replace(" ", ""):
        return False
    for a, b in ((short, whole), (whole, short)):
        if b.startswith(f"{a} ") and set(b[len(a) :].split()) <= _NEUTRAL:
            return len(a) >= 3
        if b == f"{a}s" and a[-4:].isalpha():
            return len(a) >= 4
    # A whole word is not short for a narrower one: "other" is not short for "other race".
    if not whole.startswith(short) or short.replace(" ", "") in whole_words():
        return False
    if _ENDINGS.fullmatch(whole, len(short)):
        return False
    letters = sum(c.isalpha() for c in short)
    wordy = all(c.isalpha() or c == " " for c in short + whole)
    return letters >= 3 and wordy and negation(short) == negation(whole)


@functools.lru_cache(maxsize=50_000)
def _is_slip_of(wrong: str, right: str) -> bool:
    ours, theirs = wrong.split(), right.split()
    if len(ours) != len(theirs) or wrong.replace(" ", "") in known_words():
        return False
    differing = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    return len(differing) == 1 and _is_slip_of_word(*differing[0])


def _is_slip_of_word(wrong: str, right: str) -> bool:
    """Whether a long word has a letter too many or too few in its middle.

    Beginnings and ends carry negation and gender (``atypical``, ``fiancée``), so they must be equal.
    """
    if not (wrong.isalpha() and right.isalpha()) or min(len(wrong), len(right)) < 6:
        return False
    if wrong in known_words() or wrong[:2] != right[:2]:
        return False
    ends = wrong.removesuffix("s")[-1] == right.removesuffix("s")[-1]
    return ends and likeness(wrong, right) >= _ALIKE


def likeness(a: str, b: str) -> float:
    """Return the similarity of two texts, from 0 to 1."""
    # The ratio of difflib depends on the order of the texts, and a map must not.
    first, second = sorted((a, b))
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio()


# Every step tries the synonyms for the values it leaves open, the first nothing but these.
_BOLDER: tuple[tuple[Step, Callable[[str, str], bool] | None], ...] = (
    ("synonyms", None),
    ("prefix", _abbreviates),
    ("fuzzy", _is_slip_of),
)
