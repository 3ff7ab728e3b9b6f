"""Which value of a found table means which value of the base table.

A wrong map swaps groups and nobody sees it, so a map is taken only when it is certain. The steps
go from plain to bold (exact, normalised, synonyms, prefix, fuzzy); one is taken only if it, with
those before it, maps the whole vocabulary of the source one to one. Else nothing is mapped:
what looks likely is proposed with its evidence, for a person to confirm in a mapping file. How
often a value occurs never decides anything, and bare codes say nothing by themselves.
"""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from equipoise.errors import InputError

Step = Literal["exact", "normalised", "synonyms", "prefix", "fuzzy", "codebook", "mapping"]

LARGEST = 200
"""Vocabularies with more values are not compared: they are names or numbers, not groups."""

ALIKE = 0.92
"""How alike two words must be to be one word and a slip of the pen."""


@dataclass(frozen=True)
class Proposal:
    """A base value a source value may mean, and the evidence in words."""

    value: str
    why: str


@dataclass(frozen=True)
class ValueMap:
    """What the values of a source mean in the base.

    Attributes
    ----------
    values
        Source value → base value, only what is settled; empty unless ``certain``.
    missing
        Source values read as missing.
    unmapped
        Source values without a base value: open, or left out of the codebook.
    proposals
        For unmapped values, a guess where there is one.
    step
        What settled the map, or None.
    certain
        Whether ``values`` may be used without asking.
    why
        One sentence of evidence.
    """

    values: Mapping[str, str]
    missing: tuple[str, ...]
    unmapped: tuple[str, ...]
    proposals: Mapping[str, Proposal]
    step: Step | None
    certain: bool
    why: str


def match_values(
    base: Mapping[str, int],
    source: Mapping[str, int],
    *,
    codebook: Mapping[str, str] | None = None,
    same_codes: bool = False,
    propose: bool = True,
) -> ValueMap:
    """Decide which source value means which base value, or leave it open.

    Parameters
    ----------
    base, source
        Values and how many rows have them. The numbers are shown as evidence and decide nothing.
    codebook
        Source value → base value as the user gives it. It is taken as it is, may join values, and
        what it leaves out stays unmapped. A codebook that names no value of this source says
        nothing about it.
    same_codes
        The user's word that equal codes (``1``, ``A``) mean the same in both tables.
    propose
        Whether to guess at values that stay open; what is certain does not depend on it.

    Returns
    -------
    ValueMap

    Raises
    ------
    InputError
        If the codebook names values that are not in the base.

    Examples
    --------
    >>> match_values({"Male": 7, "Female": 3}, {"F": 6, "M": 4, "?": 1}).values
    {'F': 'Female', 'M': 'Male'}
    >>> found = match_values({"1": 7, "2": 3}, {"1": 6, "2": 4})
    >>> found.certain, found.why
    (False, 'codes 1, 2 say nothing by themselves; confirm them in the mapping file')
    """
    if codebook:
        _check_codebook(codebook, base)
        if not codebook.keys().isdisjoint(source):
            return _by_codebook(base, source, codebook)
    found = _Vocabularies.of(base, source)
    if not found.source:
        return _open(found, "no value to map: all are missing", guess=False)
    for name, values in (("the source", found.source), ("the base", found.base)):
        if len(values) > LARGEST:
            why = f"{name} has {len(values):,} values, too many for a vocabulary of groups"
            return _open(found, f"{why} (at most {LARGEST})", guess=False)
    taken = _whole_map(found, same_codes=same_codes)
    if taken is None:
        return _open(found, _why_open(found, same_codes=same_codes), guess=propose)
    values = {s: taken.pairs[s] for s in found.source if s in taken.pairs}
    missing = (*found.missing, *(s for s in found.source if s not in taken.pairs))
    return ValueMap(values, missing, (), {}, taken.step, certain=True, why=_why_taken(taken))


def is_missing(text: str) -> bool:
    """Whether a text stands for no value, in whatever column.

    >>> [is_missing(text) for text in ("", "?", "n/a", "Prefer not to say", "no", "0")]
    [True, True, True, True, False, False]
    """
    return (
        not text.strip("?-.–—_ \t\r\n\u00a0")
        or text.strip() == r"\N"
        or _compact(text) in _missing_texts()
    )


def is_code(text: str) -> bool:
    """Whether a text is a number, a letter or a short code, and means nothing by itself.

    Words that are short but known (``no``, ``HS``), age bands and amounts with a sign are not.

    >>> [is_code(text) for text in ("1", "-1", "A", "X2", "group B", "no", "<5", "25-34", "Low")]
    [True, True, True, True, True, False, False, False, False]
    """
    plain = normalise(text)
    if _compact(text) in _known() or _quantities(plain) or _IDEOGRAPH.search(plain):
        return False
    bare = _GENERIC_LEAD.sub("", plain).replace(" ", "")
    letters = "".join(c for c in bare if c.isalpha())
    if any(c.isdigit() for c in bare):
        return not _ORDINAL.search(bare) and not re.search(r"[^\W\d_]{4}", bare)
    return len(letters) < 3 or bool(re.fullmatch(r"[b-df-hj-np-tv-xz]{3}|[ivx]+", letters))


def tells_meaning(values: Iterable[str]) -> bool:
    """Whether these values say what column they are of; yes/no, high/low and codes do not.

    >>> tells_meaning(["Male", "Female"]), tells_meaning(["M", "F"])
    (True, True)
    >>> tells_meaning(["yes", "no"]), tells_meaning(["0", "1"]), tells_meaning(["A", "B"])
    (False, False, False)
    """
    present = [v for v in values if not is_missing(v)]
    texts = _without_numbering(present)
    words = [v for v in present if not is_code(texts[v])]
    if any(_compact(texts[v]) not in _generic_words() for v in words):
        return True
    keys = {_compact(texts[v]) for v in present}
    return not words and any(
        letters.alone and letters.cover(keys)
        for c in _concepts()
        if not c.generic
        for letters in c.letters
    )


# --- texts ------------------------------------------------------------------------------------

_SIGNS = str.maketrans(
    {"≠": "!=", "≤": "<=", "≥": ">=", "⩽": "<=", "⩾": ">=", "¬": "!", "−": "-"}
    | dict.fromkeys("‐‑‒–—", "-")
    | dict.fromkeys("'’‘`´", "")
    | {"&": " and ", "_": " ", "$": " ", "\u00ad": "", "\u200b": "", "\ufeff": ""}
)
_CAMEL = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")
_ACCENTS = re.compile(r"[\u0300-\u0337\u0339-\u036f]")
_NUMBER = r"-?\d+(?:\.\d+)?"
_ORDINAL = re.compile(r"\d(?:st|nd|rd|th)")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u1100-\u11ff]")
_GENERIC_LEAD = re.compile(
    r"^(?:group|grp|class|category|cat|code|type|cluster|segment|value|val|option|item|arm|label) ?"
    r"(?=\S{1,2}$)"
)
_NUMBERING = re.compile(r"^\s*[\[(]?\d{1,3}[\])]?\s*[-–—.:=)]\s*(?=[^\W\d_]{2})")
_NEGATIONS = frozenset(
    re.findall(
        r"\w+",
        "not no non never without none nor neither less except excluding un dis"
        " nicht kein keine ohne nie sans sin nao nem senza niet geen inte ikke ej ne",
    )
)


@functools.lru_cache(maxsize=4096)
def normalise(text: str) -> str:
    """The text without case, accents, odd blanks and punctuation that mean nothing.

    Comparison signs, negation, minus signs and decimal points mean something and stay.

    >>> normalise("  African-American. "), normalise("> $50,000"), normalise("<=50K.")
    ('african american', '>50000', '<=50000')
    """
    plain = _CAMEL.sub(" ", text.translate(_SIGNS)).casefold()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", plain)).casefold()
    plain = re.sub(r"(?<!\w)(?:[^\W\d_]\.){2,}", lambda m: m[0].replace(".", ""), plain)
    plain = _plain_numbers(plain)
    kept = "".join(_kept(plain, i) for i in range(len(plain)))
    kept = re.sub(r"(?<=[<>=!]) | (?=[<>=])", "", " ".join(kept.split()))
    kept = kept.replace("=<", "<=").replace("=>", ">=")
    return kept or text.strip().casefold()


def _plain_numbers(text: str) -> str:
    text = re.sub(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?!\d)", lambda m: m[0].replace(",", ""), text)
    text = re.sub(r"(\d)\.0+(?!\d)", r"\1", text)
    text = re.sub(
        r"(?<![\d.])(\d{1,6}(?:\.\d+)?) ?(?:k|thousand)(?!\w)",
        lambda m: f"{float(m[1]) * 1000:.10g}",
        text,
    )
    return re.sub(r"(\d)\s*(?:-|\bto\b)\s*(?=\d)", r"\1…", text)


def _kept(text: str, i: int) -> str:
    c, before, after = text[i], text[i - 1 : i], text[i + 1 : i + 2]
    if c in "…%":
        return c
    if c == "." and before.isdigit() and after.isdigit():
        return c
    # A minus is a sign before a number, and after a short grade or blood group (A-).
    if c == "-" and after.isdigit() and not before.isalnum():
        return c
    if c == "-" and not after and re.fullmatch(r"\s*[a-z]{1,2}", text[:i]):
        return c
    if c == "!" and (after == "=" or (after.isalnum() and not before.isalnum())):
        return c
    # An interval that is half open is another one than its mirror image.
    if c in "[]()," and re.fullmatch(r"\s*[\[(][^\[\]()]*,[^\[\]()]*[\])]\s*", text):
        return c
    return " " if unicodedata.category(c)[0] in "PZC" else c


@functools.lru_cache(maxsize=4096)
def _compact(text: str) -> str:
    # Blanks between digits stay: "1 2" is not 12.
    return re.sub(r"(?<!\d) | (?!\d)", "", normalise(text))


_ABOVE = {
    ">": r">|gt|more than|greater than|higher than|older than|exceeding|exceeds|mehr als|plus de|mas de",
    ">=": r">=|gte|ge|at least|no less than|not less than|minimum|min"
    r"|(?:greater|more) than or equal(?: to)?|mindestens",
    "above": r"over|above|uber",
}
_BELOW = {
    "<": r"<|lt|less than|fewer than|lower than|younger than|weniger als|moins de|menos de",
    "<=": r"<=|lte|le|up to|at most|no more than|not more than|maximum|max"
    r"|(?:less|fewer) than or equal(?: to)?|hochstens|bis zu",
    "below": r"under|below|unter",
}
_AFTER = {
    ">=": r"(?:and|or) (?:over|above|older|more|up|higher|greater)|years? and over",
    "<=": r"(?:and|or) (?:under|below|younger|less|lower|fewer)",
    "plus": r"\+|plus",
}
_LEAD = r"(?:(?:aged?|income|salary|earns|earning|earnings|between) ?)?"
_TAIL = r"(?: ?(?:years?|yrs?|yo|years? old|years? of age|usd|dollars|per year|a year|annually))?"
_BEFORE_NUMBER = [
    (sign, re.compile(rf"{_LEAD}(?:{words}) ?({_NUMBER}){_TAIL}"))
    for sign, words in (_ABOVE | _BELOW).items()
]
_AFTER_NUMBER = [
    (sign, re.compile(rf"{_LEAD}({_NUMBER}){_TAIL} ?(?:{words}){_TAIL}"))
    for sign, words in _AFTER.items()
]
_INTERVAL = re.compile(rf"[\[(] ?{_NUMBER}, ?{_NUMBER} ?[\])]")
_RANGE = re.compile(rf"{_LEAD}({_NUMBER}) ?(?:…| and ) ?({_NUMBER}){_TAIL}")


@functools.lru_cache(maxsize=4096)
def _quantities(plain: str) -> frozenset[str]:
    """A threshold or range in one spelling; two for words that do not say where equality goes."""
    if _INTERVAL.fullmatch(plain):
        return frozenset({plain.replace(" ", "")})
    if found := _RANGE.fullmatch(plain):
        return frozenset({f"{found[1]}…{found[2]}"})
    for sign, pattern in (*_BEFORE_NUMBER, *_AFTER_NUMBER):
        if found := pattern.fullmatch(plain):
            return frozenset(f"{s}{found[1]}" for s in _strict_signs(sign, float(found[1])))
    return frozenset()


def _strict_signs(sign: str, number: float) -> tuple[str, ...]:
    vague = {"above": (">", ">="), "below": ("<", "<="), "plus": (">=", ">")}
    if sign not in vague:
        return (sign,)
    # "50k+" and "over 50k" are said of amounts without a thought for the one on the line; an age
    # on the line is a whole year of people.
    return vague[sign] if number >= 1000 else vague[sign][:1]


def _keys(text: str) -> frozenset[str]:
    return _quantities(normalise(text)) or frozenset({_compact(text)})


def _without_numbering(values: Iterable[str]) -> dict[str, str]:
    """``1 - Male`` is Male, when all values are written like that and stay different."""
    values = list(values)
    rest = {v: _NUMBERING.sub("", v) for v in values}
    numbered = len(values) > 1 and all(rest[v] != v for v in values)
    distinct = len({_compact(text) for text in rest.values()}) == len(values)
    return rest if numbered and distinct else {v: v for v in values}


def _negation(plain: str) -> tuple[str, ...]:
    return tuple(w for w in plain.split() if w in _NEGATIONS or w.startswith(("!", "non")))


# --- known words ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Letters:
    needs: frozenset[str]
    alone: bool  # known well enough to be read where neither table spells it out
    codes: Mapping[str, str]

    def cover(self, keys: Iterable[str]) -> bool:
        keys = set(keys)
        return self.needs <= keys <= self.codes.keys()


@dataclass(frozen=True)
class _Condition:
    present: frozenset[str]  # meanings both tables must have
    absent: frozenset[str]  # meanings neither may have


@dataclass(frozen=True)
class _Concept:
    name: str
    generic: bool
    words: Mapping[str, str]  # spelling → meaning
    letters: tuple[_Letters, ...]
    conditions: Mapping[str, _Condition]

    @classmethod
    def read(cls, name: str, stored: Mapping[str, Any]) -> _Concept:
        words = {
            _compact(spelling): meaning
            for meaning, spellings in stored["words"].items()
            for spelling in spellings
        }
        letters = tuple(
            _Letters(frozenset(s["needs"]), s.get("alone", False), s["codes"])
            for s in stored.get("letters", ())
        )
        conditions = {
            _compact(spelling): _Condition(
                frozenset(c.get("with", ())), frozenset(c.get("without", ()))
            )
            for spelling, c in stored.get("only", {}).items()
        }
        return cls(name, stored.get("generic", False), words, letters, conditions)

    @functools.cached_property
    def spellings(self) -> frozenset[str]:
        return frozenset(self.words).union(*(letters.codes for letters in self.letters))

    def meanings(self, texts: Mapping[str, str], *, both_letters: bool) -> dict[str, str] | None:
        """The meaning of every value, or None if one has none or it is not clear."""
        keys = {v: _compact(text) for v, text in texts.items()}
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
        for key in pair:
            condition = self.conditions.get(key)
            if condition is None or pair[0] == pair[1]:
                continue
            if not condition.present <= base & source or condition.absent & (base | source):
                return False
        return True


@functools.cache
def _stored() -> dict[str, Any]:
    text = (
        importlib.resources.files("equipoise.lake.matching")
        .joinpath("synonyms.toml")
        .read_text("utf-8")
    )
    return tomllib.loads(text)


@functools.cache
def _concepts() -> tuple[_Concept, ...]:
    return tuple(_Concept.read(name, stored) for name, stored in _stored()["concepts"].items())


@functools.cache
def _missing_texts() -> frozenset[str]:
    return frozenset(_compact(text) for text in _stored()["missing"])


@functools.cache
def _known() -> frozenset[str]:
    words = {key for concept in _concepts() for key in concept.words}
    return frozenset(words | {_compact(text) for text in _stored()["real_words"]})


@functools.cache
def _generic_words() -> frozenset[str]:
    return frozenset(key for concept in _concepts() if concept.generic for key in concept.words)


@functools.cache
def _whole_words() -> frozenset[str]:
    """Known words that are not short for another spelling of theirs, as `exec` is."""
    short = {
        key
        for concept in _concepts()
        for key, meaning in concept.words.items()
        if len(key) <= 4
        for other, its in concept.words.items()
        if its == meaning and other.startswith(key) and len(other) > len(key) + 1
    }
    return _known() - short


# --- two vocabularies -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Vocabularies:
    """Values that count on either side, as they are and as they read."""

    base: dict[str, str]
    source: dict[str, str]
    missing: tuple[str, ...]
    rows: tuple[Mapping[str, int], Mapping[str, int]]

    @classmethod
    def of(cls, base: Mapping[str, int], source: Mapping[str, int]) -> _Vocabularies:
        if max(len(base), len(source)) > 2 * LARGEST:  # not worth reading
            return cls({b: b for b in base}, {s: s for s in source}, (), (base, source))
        said = {_compact(b) for b in base}
        left = [s for s in source if s not in base and is_missing(s) and _compact(s) not in said]
        missing = dict.fromkeys(left)
        present = [s for s in source if s not in missing]
        shared = {_compact(s) for s in present}
        wanted = [b for b in base if not is_missing(b) or b in source or _compact(b) in shared]
        texts = _without_numbering(wanted), _without_numbering(present)
        # Where both tables number their values, the numbers are part of what they say.
        if all(any(v != text for v, text in side.items()) for side in texts):
            texts = {b: b for b in wanted}, {s: s for s in present}
        return cls(*texts, tuple(missing), (base, source))

    def codes(self) -> list[str]:
        return [s for s, text in self.source.items() if is_code(text) and not is_missing(s)]

    @functools.cached_property
    def same(self) -> dict[str, str]:
        """Pairs that are one text, exact or normalised."""
        keys = {b: _keys(text) for b, text in self.base.items()}
        found = {}
        for s, text in self.source.items():
            mine = _keys(text)
            near = [b for b, key in keys.items() if mine & key]
            if s in self.base:
                found[s] = s
            elif len(near) == 1:
                found[s] = near[0]
        return found


@dataclass(frozen=True)
class _Taken:
    """A map of the whole vocabulary, and what it rests on."""

    step: Step
    pairs: Mapping[str, str]
    about: str = ""


def _whole_map(found: _Vocabularies, *, same_codes: bool) -> _Taken | None:
    codes = set(found.codes())
    alone = len(found.source) == 1
    if alone and not (same_codes and codes) and not tells_meaning(found.source):
        return None
    if (same_codes or not codes) and _is_whole(found.same, found):
        return _Taken(_plain_step(found.same), found.same)
    settled = {s: b for s, b in found.same.items() if same_codes or s not in codes}
    if not _is_one_to_one(settled):
        return None
    for step, find in _BOLDER[: 1 if alone else None]:
        settled |= find(found, settled)
        if _is_whole(settled, found):
            return _Taken(step, settled)
        if (known := _by_synonyms(found, settled)) is not None:
            about, pairs = known
            plain = all(found.same.get(s) == b for s, b in pairs.items())
            return _Taken(_plain_step(pairs) if plain else step, pairs, about)
    return None


def _plain_step(pairs: Mapping[str, str]) -> Step:
    return "exact" if all(s == b for s, b in pairs.items()) else "normalised"


def _is_one_to_one(pairs: Mapping[str, str]) -> bool:
    return len(set(pairs.values())) == len(pairs)


def _is_whole(pairs: Mapping[str, str], found: _Vocabularies) -> bool:
    return pairs.keys() == found.source.keys() and _is_one_to_one(pairs)


def _by_synonyms(
    found: _Vocabularies, settled: Mapping[str, str]
) -> tuple[str, dict[str, str]] | None:
    """The map all concepts agree on that know every value; None if none knows, or two differ."""
    open_keys = {_compact(text) for s, text in found.source.items() if s not in settled}
    maps = [
        (concept.name.replace("_", " "), outside | pairs)
        for concept in _concepts()
        if open_keys <= concept.spellings  # most concepts are out at once
        for outside in [_outside(concept, found, settled)]
        if (pairs := _by_concept(concept, found, outside)) is not None
    ]
    if not maps or any(pairs != maps[0][1] for _, pairs in maps):
        return None
    return maps[0] if _is_one_to_one(maps[0][1]) else None


def _outside(concept: _Concept, found: _Vocabularies, settled: Mapping[str, str]) -> dict[str, str]:
    """Pairs settled before that the concept does not know: it need not."""
    return {s: b for s, b in settled.items() if _compact(found.source[s]) not in concept.words}


def _by_concept(
    concept: _Concept, found: _Vocabularies, settled: Mapping[str, str]
) -> dict[str, str] | None:
    taken = set(settled.values())
    base_texts = {b: text for b, text in found.base.items() if b not in taken}
    source_texts = {s: text for s, text in found.source.items() if s not in settled}
    both = all(
        any(_compact(text) not in concept.words for text in texts.values())
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
    spelled = [(_compact(found.source[s]), _compact(found.base[b])) for s, b in pairs.items()]
    sides = set(base.values()), set(source.values())
    if not all(concept.allows(pair, *sides) for pair in spelled):
        return None
    return pairs if pairs and _letters_are_clear(found, pairs | dict(settled)) else None


def _letters_are_clear(found: _Vocabularies, pairs: Mapping[str, str]) -> bool:
    """No letter is the initial of two base values, whatever the other letters are."""
    letters = {normalise(found.source[s]) for s in pairs}
    begun = [normalise(text)[:1] for text in found.base.values()]
    return not any(begun.count(letter) > 1 for letter in letters if len(letter) == 1)


_NEUTRAL = frozenset(
    {"risk", "degree", "level", "status", "category", "race", "origin", "descent", "alone", "only"}
    | {"income", "score", "rating", "education", "person", "persons", "people", "household"}
)


# Lehrer is not short for Lehrerin, nor home for homeless, nor Asia for Asian.
_ENDINGS = re.compile(
    r"(?:e|es|a|as|s|ess|esses|ette|in|innen|er|r|ee|less|free|ne|nes|n|ns|an|ans|ian|ians|ese|ish)(?: .*)?"
)


def _prefixes(found: _Vocabularies, settled: Mapping[str, str]) -> dict[str, str]:
    return _only_once(found, settled, _abbreviates)


def _slips(found: _Vocabularies, settled: Mapping[str, str]) -> dict[str, str]:
    return _only_once(found, settled, _is_slip_of)


def _nothing(found: _Vocabularies, settled: Mapping[str, str]) -> dict[str, str]:
    del found, settled
    return {}


_BOLDER: tuple[tuple[Step, Callable[[_Vocabularies, Mapping[str, str]], dict[str, str]]], ...] = (
    ("synonyms", _nothing),  # every step tries the synonyms, for what its own finds leave
    ("prefix", _prefixes),
    ("fuzzy", _slips),
)


def _only_once(
    found: _Vocabularies, settled: Mapping[str, str], fits: Callable[[str, str], bool]
) -> dict[str, str]:
    """Pairs that fit, each value in one pair only."""
    taken = set(settled.values())
    near = {
        s: [b for b, whole in found.base.items() if fits(normalise(text), normalise(whole))]
        for s, text in found.source.items()
        if s not in settled
    }
    pairs = {s: fitting[0] for s, fitting in near.items() if len(fitting) == 1}
    wanted = [b for fitting in near.values() for b in fitting]
    return {s: b for s, b in pairs.items() if b not in taken and wanted.count(b) == 1}


def _abbreviates(short: str, whole: str) -> bool:
    if short == whole or short.replace(" ", "") == whole.replace(" ", ""):
        return False
    for a, b in ((short, whole), (whole, short)):
        if b.startswith(f"{a} ") and set(b[len(a) :].split()) <= _NEUTRAL:
            return len(a) >= 3
        if b == f"{a}s" and a[-4:].isalpha():
            return len(a) >= 4
    # A word that means something whole is not short for something narrower.
    if not whole.startswith(short) or short.replace(" ", "") in _whole_words():
        return False
    if _ENDINGS.fullmatch(whole, len(short)):
        return False
    letters = sum(c.isalpha() for c in short)
    wordy = all(c.isalpha() or c == " " for c in short + whole)
    return letters >= 3 and wordy and _negation(short) == _negation(whole)


def _is_slip_of(wrong: str, right: str) -> bool:
    pairs = list(zip(wrong.split(), right.split(), strict=False))
    if len(wrong.split()) != len(right.split()) or wrong.replace(" ", "") in _known():
        return False
    differing = [(a, b) for a, b in pairs if a != b]
    return len(differing) == 1 and _is_slip_of_word(*differing[0])


def _is_slip_of_word(wrong: str, right: str) -> bool:
    """A letter too many or too few inside a long word.

    Beginnings and ends carry negation and sex (``atypical``, ``fiancée``), so they must be equal.
    """
    if not (wrong.isalpha() and right.isalpha()) or min(len(wrong), len(right)) < 6:
        return False
    if wrong in _known() or wrong[:2] != right[:2]:
        return False
    ends = wrong.removesuffix("s")[-1] == right.removesuffix("s")[-1]
    return ends and _likeness(wrong, right) >= ALIKE


def _likeness(a: str, b: str) -> float:
    # The ratio depends on the order, and a map must not.
    first, second = sorted((a, b))
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio()


# --- the answer -------------------------------------------------------------------------------


_REASONS: Mapping[Step, str] = {
    "exact": "are values of the base",
    "normalised": "are values of the base but for case, blanks and punctuation",
    "synonyms": "are known words for values of the base",
    "prefix": "begin one value of the base each",
    "fuzzy": "are values of the base but for a letter",
    "codebook": "are given by the codebook",
}


def _why_taken(taken: _Taken) -> str:
    if len(taken.pairs) == 1:
        ((source, base),) = taken.pairs.items()
        return f"the only value, {source!r}, stands for {base!r} (step {taken.step})"
    reason = _REASONS[taken.step]
    if taken.step == "synonyms":
        reason = f"are known words for {taken.about}"
    return f"all {len(taken.pairs)} values {reason}"


def _why_open(found: _Vocabularies, *, same_codes: bool) -> str:
    codes = found.codes()
    if codes and not (same_codes and all(s in found.same for s in codes)):
        named = ", ".join(sorted(codes)[:5]) + (", …" if len(codes) > 5 else "")
        if len(codes) == 1:
            return f"the code {named} says nothing by itself; confirm it in the mapping file"
        return f"codes {named} say nothing by themselves; confirm them in the mapping file"
    if len(found.source) == 1 and found.same:
        (value,) = found.source
        return f"the only value, {value!r}, does not say what it is a value of"
    strange = sorted(s for s in found.source if s not in found.same)
    if not strange:
        return "several values read like one value of the base; join them in the mapping file"
    named = ", ".join(map(repr, strange[:5])) + (", …" if len(strange) > 5 else "")
    return f"no single step maps every value one to one; not in the base as they are: {named}"


def _open(found: _Vocabularies, why: str, *, guess: bool = True) -> ValueMap:
    guesses = {s: _guess(s, found) for s in found.source} if guess else {}
    proposals = {s: p for s, p in guesses.items() if p is not None}
    return ValueMap({}, found.missing, tuple(found.source), proposals, None, certain=False, why=why)


def _check_codebook(codebook: Mapping[str, str], base: Mapping[str, int]) -> None:
    strange = sorted(set(codebook.values()) - base.keys())
    if strange:
        there = sorted(base)
        shown = ", ".join(there[:20]) + (", …" if len(there) > 20 else "")
        raise InputError(
            f"the codebook maps to {', '.join(map(repr, strange))}, not among the values of the "
            f"base; it has: {shown}; name these only."
        )


def _by_codebook(
    base: Mapping[str, int], source: Mapping[str, int], codebook: Mapping[str, str]
) -> ValueMap:
    values = {s: codebook[s] for s in source if s in codebook}
    found = _Vocabularies.of(base, {s: n for s, n in source.items() if s not in values})
    guess = max(len(found.source), len(found.base)) <= LARGEST
    rest = _open(found, "", guess=guess)
    why = f"the codebook gives {len(values)} of {len(source) - len(rest.missing)} values"
    return ValueMap(
        values, rest.missing, rest.unmapped, rest.proposals, "codebook", certain=True, why=why
    )


# --- guesses for what stays open --------------------------------------------------------------


def _guess(s: str, found: _Vocabularies) -> Proposal | None:
    text = found.source[s]
    if is_code(text) and not is_missing(s):
        if s in found.same:
            why = "the same code, which need not mean the same in both tables"
            return Proposal(found.same[s], why)
        return next(_guesses_by_word(text, found), None)
    if s in found.same:
        return _with_shares(Proposal(found.same[s], "the same text"), s, found)
    guesses = (_guesses_by_word, _guesses_by_polarity, _guesses_by_likeness)
    first = next((p for guess in guesses for p in guess(text, found)), None)
    return None if first is None else _with_shares(first, s, found)


def _with_shares(proposal: Proposal, s: str, found: _Vocabularies) -> Proposal:
    base, source = found.rows
    here = base[proposal.value] / max(sum(base.values()), 1)
    there = source[s] / max(sum(source.values()), 1)
    shares = f"{there:.0%} of the rows there, {here:.0%} of the base"
    return Proposal(proposal.value, f"{proposal.why} ({shares})")


def _guesses_by_word(text: str, found: _Vocabularies) -> Iterator[Proposal]:
    key = _compact(text)
    there = {_compact(other) for other in found.source.values()}
    for concept in _concepts():
        letters = (known.codes for known in concept.letters if known.needs <= there)
        readings = [concept.words, *letters]
        for meaning in dict.fromkeys(r[key] for r in readings if key in r):
            same = [b for b, t in found.base.items() if concept.words.get(_compact(t)) == meaning]
            if len(same) == 1:
                yield Proposal(same[0], f"both can mean {meaning!r} of {concept.name}")


def _guesses_by_polarity(text: str, found: _Vocabularies) -> Iterator[Proposal]:
    (truth,) = (concept for concept in _concepts() if concept.name == "truth")
    ways: dict[str | None, Literal[0, 1]] = {"yes": 0, "no": 1}
    way = ways.get(truth.words.get(_compact(text)))
    opposites = _opposites(list(found.base))
    if way is not None and opposites:
        why = f"{opposites[0]!r} and {opposites[1]!r} are opposites, but what {text!r} means"
        yield Proposal(opposites[way], f"{why} depends on the column's meaning")
    sign = {"high": ">", "low": "<"}.get(_compact(text))
    over = [b for b in found.base if sign and any(q[0] == sign for q in _quantities(normalise(b)))]
    if len(over) == 1:
        yield Proposal(over[0], f"{text!r} may be this, but depends on its threshold")


def _opposites(base: list[str]) -> tuple[str, str] | None:
    if len(base) != 2:
        return None
    for yes, no in (base, base[::-1]):
        a, b = _compact(yes), _compact(no)
        if b.endswith(a) and b.removesuffix(a) in _NEGATIONS | {"!"}:
            return yes, no
    return None


def _guesses_by_likeness(text: str, found: _Vocabularies) -> Iterator[Proposal]:
    plain = normalise(text)
    if any(c.isdigit() for c in plain) or _compact(text) in _whole_words():
        return
    others = {b: normalise(other) for b, other in found.base.items()}
    near = sorted(
        (
            (_likeness(plain, other), b)
            for b, other in others.items()
            if other[:1] == plain[:1] and _negation(other) == _negation(plain)
            if not any(c.isdigit() for c in other)
        ),
        reverse=True,
    )
    begun = [b for _, b in near if len(plain) >= 3 and others[b].startswith(plain)]
    if len(begun) == 1:
        yield Proposal(begun[0], "the only value of the base that begins so")
    if near and near[0][0] >= 0.75 and (len(near) == 1 or near[1][0] < near[0][0]):
        yield Proposal(near[0][1], f"spelled alike ({near[0][0]:.2f} of 1)")
