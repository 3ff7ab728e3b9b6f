"""Which value of a table means which value of the base.

A wrong map silently swaps groups, so a map is used only if it is certain. The steps go from plain to
bold (exact, normalised, synonyms, prefix, fuzzy). A step is used only if it, together with those
before it, maps the whole vocabulary of the source one to one. Otherwise nothing is mapped: likely
meanings are proposed with their evidence, for a person to confirm in a mapping file. How often a
value occurs never decides anything, and codes mean nothing by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from equipoise.errors import InputError
from equipoise.lake.matching.values.guesses import Proposal, guess_value
from equipoise.lake.matching.values.steps import LARGEST, Step, Vocabularies, WholeMap, whole_map


@dataclass(frozen=True)
class ValueMap:
    """What the values of a source mean in the base.

    Attributes
    ----------
    values
        Base value by source value; empty unless ``certain``.
    missing
        Source values that are read as missing.
    unmapped
        Source values without a base value: not certain, or not in the codebook.
    proposals
        Guesses at the meaning of unmapped values.
    step
        Step that completed the map; None if there is none.
    certain
        Whether ``values`` may be used without asking a person.
    why
        The evidence in one sentence.
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
    """Decide which source value means which base value, if that is certain.

    Parameters
    ----------
    base, source
        Number of rows of each value. The numbers are shown as evidence, and decide nothing.
    codebook
        Base value by source value, as the user gives it. It is used as it is, and may join values;
        values that it leaves out stay unmapped. A codebook without any value of this source is
        ignored.
    same_codes
        Whether equal codes (``1``, ``A``) mean the same in both tables.
    propose
        Whether to guess at values that are not certain; the map does not depend on it.

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
    (False, 'codes 1, 2 mean nothing by themselves; confirm them in the mapping file')
    """
    if codebook:
        _check_codebook(codebook, base)
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
    "synonyms": "are known words for values of the base",
    "prefix": "are the beginnings of one value of the base each",
    "fuzzy": "are values of the base except for one letter",
    "codebook": "are given by the codebook",
}


def _why_taken(taken: WholeMap) -> str:
    if len(taken.pairs) == 1:
        ((source, base),) = taken.pairs.items()
        return f"the only value, {source!r}, stands for {base!r} (step {taken.step})"
    reason = _REASONS[taken.step]
    if taken.step == "synonyms":
        reason = f"are known words for {taken.about}"
    return f"all {len(taken.pairs)} values {reason}"


def _why_open(found: Vocabularies, *, same_codes: bool) -> str:
    codes = found.codes()
    if codes and not (same_codes and all(s in found.same for s in codes)):
        named = ", ".join(sorted(codes)[:5]) + (", …" if len(codes) > 5 else "")
        if len(codes) == 1:
            return f"the code {named} means nothing by itself; confirm it in the mapping file"
        return f"codes {named} mean nothing by themselves; confirm them in the mapping file"
    if len(found.source) == 1 and found.same:
        (value,) = found.source
        return f"the only value, {value!r}, does not show what it is a value of"
    strange = sorted(s for s in found.source if s not in found.same)
    if not strange:
        return "several values look like one value of the base; join them in the mapping file"
    named = ", ".join(map(repr, strange[:5])) + (", …" if len(strange) > 5 else "")
    return f"no step maps every value one to one; these are not in the base as written: {named}"


def _open(found: Vocabularies, why: str, *, guess: bool = True) -> ValueMap:
    guesses = {s: guess_value(s, found) for s in found.source} if guess else {}
    proposals = {s: p for s, p in guesses.items() if p is not None}
    return ValueMap({}, found.missing, tuple(found.source), proposals, None, certain=False, why=why)


def _check_codebook(codebook: Mapping[str, str], base: Mapping[str, int]) -> None:
    strange = sorted(set(codebook.values()) - base.keys())
    if strange:
        there = sorted(base)
        shown = ", ".join(there[:20]) + (", …" if len(there) > 20 else "")
        raise InputError(
            f"the codebook maps to {', '.join(map(repr, strange))}, which the base does not have; "
            f"its values are: {shown}."
        )


def _by_codebook(
    base: Mapping[str, int], source: Mapping[str, int], codebook: Mapping[str, str]
) -> ValueMap:
    values = {s: codebook[s] for s in source if s in codebook}
    found = Vocabularies.of(base, {s: n for s, n in source.items() if s not in values})
    guess = max(len(found.source), len(found.base)) <= LARGEST
    rest = _open(found, "", guess=guess)
    why = f"the codebook gives {len(values)} of {len(source) - len(rest.missing)} values"
    return ValueMap(
        values, rest.missing, rest.unmapped, rest.proposals, "codebook", certain=True, why=why
    )
