"""Which value of a table means which value of the base.

A wrong map silently swaps groups, so a map is used only if it is certain. The steps go from plain to
bold (exact, normalised, synonyms, prefix, fuzzy). A step is used only if it, together with those
before it, maps the whole vocabulary of the source one to one. Otherwise nothing is mapped: likely
meanings are proposed with their evidence, for a person to confirm in a mapping file. How often a
value occurs never decides anything, and codes mean nothing by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from equipoise.errors import InputError
from equipoise.lake.matching.values.concepts import is_code, is_missing
from equipoise.lake.matching.values.guesses import Proposal, guess_value
from equipoise.lake.matching.values.steps import (
    LARGEST,
    Step,
    Vocabularies,
    WholeMap,
    step_of,
    whole_map,
)


@dataclass(frozen=True)
class ValueMap:
    """What the values of a source mean in the base, and the evidence in one sentence."""

    values: Mapping[str, str]  # base value by source value; empty unless certain
    missing: tuple[str, ...]
    unmapped: tuple[str, ...]  # not certain, or not in the codebook
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
    """Decide which source value means which base value, if that is certain.

    The numbers of rows are shown as evidence, and decide nothing. A codebook is used as it is: it may
    join values, and values that it leaves out stay unmapped. With ``same_codes``, equal codes
    (``1``, ``A``) mean the same in both tables.

    >>> match_values({"Male": 7, "Female": 3}, {"F": 6, "M": 4, "?": 1}).values
    {'F': 'Female', 'M': 'Male'}
    """
    if codebook:
        _check_codebook(codebook, base)
        # It may be a codebook for other sources only; this one is then matched as without it.
        if not codebook.keys().isdisjoint(source):
            return _by_codebook(base, source, codebook)
    found = Vocabularies.of(base, source)
    if not found.source:
        return _open(found, "no value to map: all are missing", guess=False)
    for name, values in (("the source", found.source), ("the base", found.base)):
        if len(values) > LARGEST:
            why = f"{name} has {len(values):,} values, too many for a vocabulary of groups"
            return _open(found, f"{why} (at most {LARGEST})", guess=False)
    taken = whole_map(found, same_codes=same_codes)
    if taken is None:
        return _open(found, _why_open(found, same_codes=same_codes), guess=propose)
    values = {s: taken.pairs[s] for s in found.source if s in taken.pairs}
    missing = (*found.missing, *(s for s in found.source if s not in taken.pairs))
    return ValueMap(values, missing, (), {}, taken.step, certain=True, why=_why_taken(taken))


_REASONS: Mapping[Step, str] = {
    "exact": "are values of the base",
    "normalised": "are values of the base except for case, blanks and punctuation",
    "synonyms": "are known words for {about}",
    "prefix": "are the beginnings of one value of the base each",
    "fuzzy": "are values of the base except for one letter",
}


def _why_taken(taken: WholeMap) -> str:
    if len(taken.pairs) == 1:
        ((source, base),) = taken.pairs.items()
        return f"the only value, {source!r}, stands for {base!r} (step {taken.step})"
    reason = _REASONS[taken.step].format(about=taken.about)
    return f"all {len(taken.pairs)} values {reason}"


_SAID: Mapping[Step, str] = {
    "exact": "The base has the same value.",
    "normalised": "It is {base!r} except for case, blanks and punctuation.",
    "synonyms": "It is a known word for {base!r}.",
    "prefix": "It is short for {base!r}, and for no other value of the base.",
    "fuzzy": "It is {base!r} except for one letter.",
    "codebook": "The codebook says so.",
    "mapping": "The mapping file says so.",
}


def say_values(
    base: Mapping[str, int], source: Mapping[str, int], found: ValueMap
) -> dict[str, str]:
    """Say for each value of a source in a sentence what it means, or why that is not known.

    >>> base, source = {"Male": 7, "Female": 3}, {"F": 6, "M": 4, "?": 1}
    >>> for value, why in say_values(base, source, match_values(base, source)).items():
    ...     print(value, "-", why)
    F - It is a known word for 'Female'.
    M - It is a known word for 'Male'.
    ? - It is read as a missing value.
    """
    both = Vocabularies.of(base, source)
    said = {}
    for value in source:
        if value in found.values and found.step is not None:
            means = found.values[value]
            said[value] = _SAID[step_of(value, means, both, found.step)].format(base=means)
        elif value in found.missing:
            said[value] = "It is read as a missing value."
        elif value in found.proposals:
            guess = found.proposals[value]
            said[value] = f"It may mean {guess.value!r}, which is not certain: {guess.why}."
        elif is_code(both.source.get(value, value)) and not is_missing(value):
            said[value] = "A code means nothing by itself."
        else:
            said[value] = "No value of the base is known for it."
    return said


def _why_open(found: Vocabularies, *, same_codes: bool) -> str:
    codes = found.codes()
    if codes and not (same_codes and all(s in found.same for s in codes)):
        named = name_some(sorted(codes), 5)
        if len(codes) == 1:
            return f"the code {named} means nothing by itself; confirm it in the mapping file"
        return f"codes {named} mean nothing by themselves; confirm them in the mapping file"
    if len(found.source) == 1 and found.same:
        (value,) = found.source
        return f"the only value, {value!r}, does not show what it is a value of"
    strange = sorted(s for s in found.source if s not in found.same)
    if not strange:
        return "several values look like one value of the base; join them in the mapping file"
    named = name_some([repr(s) for s in strange], 5)
    return f"no step maps every value one to one; these are not in the base as written: {named}"


def name_some(texts: Sequence[str], most: int) -> str:
    """List the first of some texts, and show whether there are more."""
    return ", ".join(texts[:most]) + (", …" if len(texts) > most else "")


def _open(found: Vocabularies, why: str, *, guess: bool) -> ValueMap:
    guesses = {s: guess_value(s, found) for s in found.source} if guess else {}
    proposals = {s: p for s, p in guesses.items() if p is not None}
    return ValueMap({}, found.missing, tuple(found.source), proposals, None, certain=False, why=why)


def _check_codebook(codebook: Mapping[str, str], base: Mapping[str, int]) -> None:
    strange = sorted(set(codebook.values()) - base.keys())
    if strange:
        raise InputError(
            f"the codebook maps to {', '.join(map(repr, strange))}, which the base does not have; "
            f"its values are: {name_some(sorted(base), 20)}."
        )


def _by_codebook(
    base: Mapping[str, int], source: Mapping[str, int], codebook: Mapping[str, str]
) -> ValueMap:
    values = {s: codebook[s] for s in source if s in codebook}
    found = Vocabularies.of(base, {s: n for s, n in source.items() if s not in values})
    guess = max(len(found.source), len(found.base)) <= LARGEST
    why = f"the codebook maps {len(values)} of {len(source) - len(found.missing)} values"
    return replace(_open(found, why, guess=guess), values=values, step="codebook", certain=True)
