"""Which value of a found table means which value of the base table.

A wrong map swaps groups and nobody sees it, so a map is taken only when it is certain. The steps
go from plain to bold (exact, normalised, synonyms, prefix, fuzzy); one is taken only if it, with
those before it, maps the whole vocabulary of the source one to one. Else nothing is mapped:
what looks likely is proposed with its evidence, for a person to confirm in a mapping file. How
often a value occurs never decides anything, and bare codes say nothing by themselves.
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
    "normalised": "are values of the base but for case, blanks and punctuation",
    "synonyms": "are known words for values of the base",
    "prefix": "begin one value of the base each",
    "fuzzy": "are values of the base but for a letter",
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
            f"the codebook maps to {', '.join(map(repr, strange))}, not among the values of the "
            f"base; it has: {shown}; name these only."
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
