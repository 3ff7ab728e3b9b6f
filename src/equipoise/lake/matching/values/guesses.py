"""Guesses at the meaning of values that are not certain, with the evidence, for a person to judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from equipoise.lake.matching.values.concepts import concepts, is_code, is_missing, whole_words
from equipoise.lake.matching.values.spelling import (
    NEGATIONS,
    compact,
    negation,
    normalise,
    quantities,
)
from equipoise.lake.matching.values.steps import Vocabularies, likeness


@dataclass(frozen=True)
class Proposal:
    """The base value that a source value may mean, and the evidence in words."""

    value: str
    why: str


def guess_value(s: str, found: Vocabularies) -> Proposal | None:
    """Guess what a value of the source means, if there is any evidence."""
    text = found.source[s]
    if is_code(text) and not is_missing(s):
        if s in found.same:
            why = "the same code, which may mean something else in the other table"
            return Proposal(found.same[s], why)
        return next(_guesses_by_word(text, found), None)
    if s in found.same:
        return _with_shares(Proposal(found.same[s], "the same text"), s, found)
    guesses = (_guesses_by_word, _guesses_by_polarity, _guesses_by_likeness)
    first = next((p for guess in guesses for p in guess(text, found)), None)
    return None if first is None else _with_shares(first, s, found)


def _with_shares(proposal: Proposal, s: str, found: Vocabularies) -> Proposal:
    base, source = found.rows
    here = base[proposal.value] / max(sum(base.values()), 1)
    there = source[s] / max(sum(source.values()), 1)
    shares = f"{there:.0%} of the rows there, {here:.0%} of the base"
    return Proposal(proposal.value, f"{proposal.why} ({shares})")


def _guesses_by_word(text: str, found: Vocabularies) -> Iterator[Proposal]:
    key = compact(text)
    there = {compact(other) for other in found.source.values()}
    for concept in concepts():
        letters = (known.codes for known in concept.letters if known.needs <= there)
        readings = [concept.words, *letters]
        for meaning in dict.fromkeys(r[key] for r in readings if key in r):
            same = [b for b, t in found.base.items() if concept.words.get(compact(t)) == meaning]
            if len(same) == 1:
                yield Proposal(same[0], f"both can mean {meaning!r} of {concept.name}")


def _guesses_by_polarity(text: str, found: Vocabularies) -> Iterator[Proposal]:
    (truth,) = (concept for concept in concepts() if concept.name == "truth")
    ways: dict[str | None, Literal[0, 1]] = {"yes": 0, "no": 1}
    way = ways.get(truth.words.get(compact(text)))
    opposites = _opposites(list(found.base))
    if way is not None and opposites:
        why = f"{opposites[0]!r} and {opposites[1]!r} are opposites, but what {text!r} means"
        yield Proposal(opposites[way], f"{why} depends on the column's meaning")
    sign = {"high": ">", "low": "<"}.get(compact(text))
    over = [b for b in found.base if sign and any(q[0] == sign for q in quantities(normalise(b)))]
    if len(over) == 1:
        yield Proposal(over[0], f"{text!r} may be this, but depends on its threshold")


def _opposites(base: list[str]) -> tuple[str, str] | None:
    if len(base) != 2:
        return None
    for yes, no in (base, base[::-1]):
        a, b = compact(yes), compact(no)
        if b.endswith(a) and b.removesuffix(a) in NEGATIONS | {"!"}:
            return yes, no
    return None


def _guesses_by_likeness(text: str, found: Vocabularies) -> Iterator[Proposal]:
    plain = normalise(text)
    if any(c.isdigit() for c in plain) or compact(text) in whole_words():
        return
    others = {b: normalise(other) for b, other in found.base.items()}
    near = sorted(
        (
            (likeness(plain, other), b)
            for b, other in others.items()
            if other[:1] == plain[:1] and negation(other) == negation(plain)
            if not any(c.isdigit() for c in other)
        ),
        reverse=True,
    )
    begun = [b for _, b in near if len(plain) >= 3 and others[b].startswith(plain)]
    if len(begun) == 1:
        yield Proposal(begun[0], "the only value of the base that begins like this")
    if near and near[0][0] >= 0.75 and (len(near) == 1 or near[1][0] < near[0][0]):
        yield Proposal(near[0][1], f"similar spelling ({near[0][0]:.2f} of 1)")
