"""The result of an audit: a form that is filled in, section by section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise.audits.subject import Subject
from equipoise.plain import Grid, csv_text
from equipoise.results import Drawable, FlatTable

if TYPE_CHECKING:
    from equipoise.measures.selection import SelectionTable
    from equipoise.measures.table import BiasTable

SCHEMA = "equipoise.audit/1"
TO_FILL_IN = "To be filled in"
"""What stands before a question that only people can answer."""
JUDGEMENT = (
    "This form states numbers and how they were made. What follows from them, under this source or "
    "any other, is for people to judge."
)


@dataclass(frozen=True)
class AuditSection:
    """A part of a form: sentences, then tables."""

    id: str
    title: str
    sentences: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "id": self.id,
            "title": self.title,
            "sentences": list(self.sentences),
            "tables": [grid.to_dict() for grid in self.grids],
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Audit(Drawable):
    """A form of an audit, filled in from counts. It contains no verdict.

    >>> import equipoise as eq
    >>> hires = {
    ...     "sex": ["w"] * 50 + ["m"] * 50,
    ...     "hired": ["yes"] * 20 + ["no"] * 30 + ["yes"] * 30 + ["no"] * 20,
    ... }
    >>> form = eq.audit(hires, form="local-law-144", sex="sex", selected="hired")
    >>> form.to_pandas()[["category", "selected", "impact_ratio"]].round(3).values.tolist()
    [['sex=m', 30, 1.0], ['sex=w', 20, 0.667]]

    Attributes
    ----------
    form
        Name of the form.
    title, rule
        What it is, and the law, guideline or practice that it follows.
    subject
        The counts it is made from, and its options.
    sections
        Its parts.
    not_covered
        What it does not cover.
    tables
        The categories that are compared with each other, for forms about selections.
    biases
        The biases that are shown, for forms about data.
    numbers
        The numbers of the sections, as plain data.
    """

    form: str
    title: str
    rule: str
    subject: Subject
    sections: tuple[AuditSection, ...]
    not_covered: tuple[str, ...]
    columns: tuple[str, ...] = ()
    lines: tuple[tuple[Any, ...], ...] = ()
    tables: tuple[SelectionTable, ...] = ()
    biases: BiasTable | None = None
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """What the form is about, in one line."""
        label = self.subject.counts.label.name
        return f"{self.title}: {label}, {self.subject.counts.n:,} rows"

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences of the form."""
        return tuple(sentence for part in self.all_sections for sentence in part.sentences)

    @property
    def all_sections(self) -> tuple[AuditSection, ...]:
        """The sections, with the source before and what is not covered after them."""
        first = AuditSection("source", "Source", (self.rule, JUDGEMENT))
        last = AuditSection("not-covered", "What this form does not cover", self.not_covered)
        return (first, *self.sections, last)

    @property
    def questions(self) -> tuple[str, ...]:
        """What only people can answer."""
        return tuple(s for s in self.sentences if s.startswith(TO_FILL_IN))

    def section(self, name: str) -> AuditSection:
        """The section of an id."""
        return next(part for part in self.all_sections if part.id == name)

    def _grids(self) -> list[Grid]:
        return [grid for part in self.sections for grid in part.grids]

    def _table(self) -> FlatTable:
        return self.columns, self.lines

    def text(self) -> str:
        """The form as text."""
        parts = [self.heading]
        for section in self.all_sections:
            said = "\n".join(f"- {sentence}" for sentence in section.sentences)
            parts.append("\n".join(filter(None, (section.title, said))))
            parts += [grid.text() for grid in section.grids if grid.rows]
        return "\n\n".join(parts)

    def markdown(self) -> str:
        """The form as Markdown, with a heading for each section."""
        parts = [f"# {_marked(self.heading)}"]
        for section in self.all_sections:
            parts.append(f"## {_marked(section.title)}")
            if section.sentences:
                parts.append("\n".join(f"- {_marked(sentence)}" for sentence in section.sentences))
            parts += [grid.markdown().replace("<", r"\<") for grid in section.grids if grid.rows]
        made = f"Made by equipoise {self.version}, {self.time}."
        return "\n\n".join([*parts, made]) + "\n"

    def to_csv(self) -> str:
        """The numbers of the form as CSV, in full precision."""
        return csv_text(*self._table())

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON."""
        subject = self.subject
        table = subject.table.about()
        kept = ("n", "sensitive", "label", "labels", "missing_values", "dropped", "skipped", "bins")
        return {
            "schema": SCHEMA,
            "form": self.form,
            "title": self.title,
            "rule": self.rule,
            "source": subject.source,
            **{name: table[name] for name in kept},
            "reading": table["reading"],
            "sections": [part.to_dict() for part in self.all_sections],
            "not_covered": list(self.not_covered),
            "questions": list(self.questions),
            "numbers": dict(self.numbers),
            "parameters": {**vars(subject.options), "unknown": list(subject.options.unknown)},
            "fingerprint": table["fingerprint"],
            "version": self.version,
            "time": self.time,
        }


def _marked(text: str) -> str:
    r"""Escape what Markdown would take for tags, links or emphasis.

    >>> print(_marked("<b> [x](y) *z*"))
    \<b> \[x](y) \*z\*
    """
    for mark in ("\\", "<", "[", "*"):
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def to_fill_in(questions: Sequence[str]) -> tuple[str, ...]:
    """Mark questions that only people can answer."""
    return tuple(f"{TO_FILL_IN}: {question}" for question in questions)
