"""The result of verifying a repair: the outcome of each check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from equipoise.counts import Reading
from equipoise.plain import Grid
from equipoise.results import FlatTable, Result

_EXAMPLES = 10
"""Maximum number of examples of a check that does not hold."""


@dataclass(frozen=True)
class CheckOutcome:
    """Outcome of one check: whether it holds, in a sentence, with examples if not."""

    name: str
    holds: bool
    sentence: str
    examples: tuple[str, ...] = ()
    noted: bool = False
    """Whether it holds only because the user requested what was found."""

    @property
    def word(self) -> str:
        """Outcome in one word."""
        return "noted" if self.noted else "holds" if self.holds else "BROKEN"


def judge(name: str, wrong: Iterable[str], right: str, *, more: int = 0) -> CheckOutcome:
    """Make the outcome of a check from a list of errors, or from a sentence if there is none.

    There may be ``more`` errors that are not listed.

    >>> judge("kept", ["row 3 is lost", "row 5 is lost"], "All rows are kept.").sentence
    'Row 3 is lost, and 1 more.'
    """
    said = list(wrong)
    if not said:
        return CheckOutcome(name, holds=True, sentence=right)
    others = len(said) - 1 + more
    first = said[0] + (f", and {others:,} more." if others else ".")
    if first.startswith(("row ", "entry ", "the ")):  # the name of a file stays as it is
        first = first[0].upper() + first[1:]
    return CheckOutcome(name, holds=False, sentence=first, examples=tuple(said[:_EXAMPLES]))


@dataclass(frozen=True)
class Verification(Result):
    """Result of verifying a repair: always the same eight checks in the same order.

    >>> found = Verification((CheckOutcome("base", holds=False, sentence="It is another table."),))
    >>> found.ok, found.exit_code
    (False, 1)
    """

    findings: tuple[CheckOutcome, ...]
    reading: Reading = field(default_factory=Reading)

    @property
    def ok(self) -> bool:
        """Whether all checks hold."""
        return all(finding.holds for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """0, or 1 if a check does not hold."""
        return 0 if self.ok else 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """Outcomes in sentences, those that do not hold first."""
        broken = [f.sentence for f in self.findings if not f.holds]
        kept = [f.sentence for f in self.findings if f.holds]
        if broken:
            verdict = f"{len(broken)} of {len(self.findings)} checks do not hold."
        else:
            noted = " One is noted." if any(f.noted for f in self.findings) else ""
            verdict = f"All {len(kept)} checks hold.{noted}"
        return (verdict, *broken, *kept, *self.reading.sentences)

    def _table(self) -> FlatTable:
        names = ("name", "holds", "sentence", "examples")
        return names, [(f.name, f.holds, f.sentence, f.examples) for f in self.findings]

    def _said(self) -> tuple[str, ...]:
        return self.sentences[:1]

    def grid(self) -> Grid:
        """Table for people."""
        rows = ((f.name, f.word, f.sentence, "; ".join(f.examples)) for f in self.findings)
        return Grid(("check", "", "what was found", "examples"), tuple(rows))

    def text(self) -> str:
        """All outcomes, with examples of what does not hold."""
        lines = [self.sentences[0]]
        for finding in self.findings:
            lines.append(f"{finding.word:6}  {finding.sentence}")
            lines += [f"          {example}" for example in finding.examples]
        places = "Rows and the entries of a ledger are counted from 0."
        return "\n".join([*lines, *self.reading.sentences, places])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as ``--json`` prints it."""
        return {
            "schema": "equipoise.verify/1",
            "ok": self.ok,
            "findings": [{**vars(f), "examples": list(f.examples)} for f in self.findings],
            "reading": self.reading.to_dict(),
            "sentences": list(self.sentences),
            "version": self.version,
        }
