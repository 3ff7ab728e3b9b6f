"""Spellings of values: one form for texts that mean the same."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable

_SIGNS = str.maketrans(
    {"≠": "!=", "≤": "<=", "≥": ">=", "⩽": "<=", "⩾": ">=", "¬": "!", "−": "-"}
    | dict.fromkeys("‐‑‒–—", "-")
    | dict.fromkeys("'’‘`´", "")
    | {"&": " and ", "_": " ", "$": " ", "\u00ad": "", "\u200b": "", "\ufeff": ""}
)
_CAMEL = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")
_ACCENTS = re.compile(r"[\u0300-\u0337\u0339-\u036f]")
_NUMBER = r"-?\d+(?:\.\d+)?"
ORDINAL = re.compile(r"\d(?:st|nd|rd|th)")
IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u1100-\u11ff]")
GENERIC_LEAD = re.compile(
    r"^(?:group|grp|class|category|cat|code|type|cluster|segment|value|val|option|item|arm|label) ?"
    r"(?=\S{1,2}$)"
)
_NUMBERING = re.compile(r"^\s*[\[(]?\d{1,3}[\])]?\s*[-–—.:=)]\s*(?=[^\W\d_]{2})")
NEGATIONS = frozenset(
    re.findall(
        r"\w+",
        "not no non never without none nor neither less except excluding un dis"
        " nicht kein keine ohne nie sans sin nao nem senza niet geen inte ikke ej ne",
    )
)


@functools.lru_cache(maxsize=4096)
def normalise(text: str) -> str:
    """Return a text without case, accents, and blanks and punctuation that carry no meaning.

    Comparison signs, negation, minus signs and decimal points carry meaning and stay.

    >>> normalise("  African-American. "), normalise("> $50,000"), normalise("<=50K.")
    ('african american', '>50000', '<=50000')
    """
    normal = _normalise_once(text)
    # Where a sign was dropped, what is left can be read as one number: "1 # -2" as a range.
    for _ in text:
        normal, before = _normalise_once(normal), normal
        if normal == before:
            break
    return normal


def _normalise_once(text: str) -> str:
    text = re.sub(r"(?<=\d)…(?=\d)", "-", text)  # a range, which has this sign once normalised
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
    # [1, 2) and (1, 2] are different intervals.
    if c in "[]()," and re.fullmatch(r"\s*[\[(][^\[\]()]*,[^\[\]()]*[\])]\s*", text):
        return c
    return " " if unicodedata.category(c)[0] in "PZC" else c


@functools.lru_cache(maxsize=4096)
def compact(text: str) -> str:
    """Return the normalised text without blanks.

    >>> compact("African-American"), compact("1 2")
    ('africanamerican', '1 2')
    """
    # Blanks between digits stay: "1 2" is not 12.
    return re.sub(r"(?<!\d) | (?!\d)", "", normalise(text))


_BEFORE = {
    ">": r">|gt|more than|greater than|higher than|older than|exceeding|exceeds|mehr als|plus de|mas de",
    ">=": r">=|gte|ge|at least|no less than|not less than|minimum|min"
    r"|(?:greater|more) than or equal(?: to)?|mindestens",
    "above": r"over|above|uber",
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
    for sign, words in _BEFORE.items()
]
_AFTER_NUMBER = [
    (sign, re.compile(rf"{_LEAD}({_NUMBER}){_TAIL} ?(?:{words}){_TAIL}"))
    for sign, words in _AFTER.items()
]
_INTERVAL = re.compile(rf"[\[(] ?{_NUMBER}, ?{_NUMBER} ?[\])]")
_RANGE = re.compile(rf"{_LEAD}({_NUMBER}) ?(?:…| and ) ?({_NUMBER}){_TAIL}")


@functools.lru_cache(maxsize=4096)
def quantities(plain: str) -> frozenset[str]:
    """Return a threshold or range in one spelling; two if the words leave open where equality belongs."""
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
    # Whether "50k+" and "over 50k" include the amount itself hardly ever matters, so either may be
    # meant. With ages it matters: one age is a whole year of people.
    return vague[sign] if number >= 1000 else vague[sign][:1]


def keys_of(text: str) -> frozenset[str]:
    """Return the spellings of a text for comparison: one, or two for some quantities."""
    return quantities(normalise(text)) or frozenset({compact(text)})


def without_numbering(values: Iterable[str]) -> dict[str, str]:
    """Remove numbers, as in ``1 - Male``, if all values have one and stay different without."""
    values = list(values)
    rest = {v: _NUMBERING.sub("", v) for v in values}
    numbered = len(values) > 1 and all(rest[v] != v for v in values)
    distinct = len({compact(text) for text in rest.values()}) == len(values)
    return rest if numbered and distinct else {v: v for v in values}


def negation(plain: str) -> tuple[str, ...]:
    """Return the words of a normalised text that negate it."""
    return tuple(w for w in plain.split() if w in NEGATIONS or w.startswith(("!", "non")))
