"""A summary as one self-contained page: nothing is fetched, and all text is escaped."""

from __future__ import annotations

import os
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

from equipoise import atomic
from equipoise.errors import MissingDependency
from equipoise.reports.summarize import summarize

if TYPE_CHECKING:
    from equipoise.measures.table import BiasTable


LONGEST = 28
"""How many letters of a word stand together in a table."""


@dataclass(frozen=True)
class Section:
    """A part of the page: an id, a title (text) and its content (HTML, already escaped).

    >>> Section("plan", "Rows to add", "<p>none</p>").html()
    '<section id="plan"><h2>Rows to add</h2><p>none</p></section>'
    """

    id: str
    title: str
    content: str

    def html(self) -> str:
        """The section as HTML."""
        title, content = escape(self.title), self.content
        return f'<section id="{escape(self.id)}"><h2>{title}</h2>{content}</section>'


def write_report(
    table: BiasTable,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    top: int = 50,
) -> None:
    """Write the report of a table as a page; without the charts if they cannot be drawn.

    Parameters
    ----------
    table
        A measured table.
    path
        The file to write; it is whole or not there.
    source
        What was measured, as the reader knows it.
    top
        How many rows to show.
    """
    from equipoise.reports.charts import draw

    summary = summarize(table, source=source, top=top)
    try:
        charts = draw(summary)
    except MissingDependency as absent:
        charts = {"absent": f"<p>{escape(str(absent))}</p>"}
    atomic.write_text(path, render_html(summary, charts))


def render_html(
    summary: Mapping[str, Any],
    charts: Mapping[str, str] | None = None,
    *,
    sections: Sequence[Section] = (),
) -> str:
    """Write a summary as a page.

    Parameters
    ----------
    summary
        From :func:`equipoise.reports.summarize.summarize`.
    charts
        HTML fragments by name, from :func:`equipoise.reports.charts.draw`.
    sections
        Further sections, after those of the summary.

    Examples
    --------
    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> counts = Counts.from_mapping(
    ...     {("<b>", "hired"): 160, ("<b>", "not"): 290}, sensitive=["sex"], label="outcome"
    ... )
    >>> page = render_html(summarize(bias_table(counts)))
    >>> "&lt;b&gt;" in page, "<b>" in page
    (True, False)
    """
    return render_page(
        title=summary["title"],
        source=summary["source"] or summary["heading"],
        figures=summary["figures"],
        sections=[*_sections(summary, charts or {}), *sections],
        facts=[*summary["facts"], *summary["provenance"]],
    )


def render_page(
    *,
    title: str,
    source: str,
    figures: Sequence[Sequence[str]],
    sections: Sequence[Section],
    facts: Sequence[Sequence[str]],
) -> str:
    """Put sections into the page that all reports share.

    Parameters
    ----------
    title, source
        What the page is about, and of what.
    figures
        The few numbers at the top, each with its name.
    sections
        What the page says.
    facts
        Where it comes from: names and values, among them ``made by`` and ``time``.

    Examples
    --------
    >>> page = render_page(
    ...     title="A < B",
    ...     source="people.csv",
    ...     figures=[("12", "rows")],
    ...     sections=[Section("one", "One", "<p>two</p>")],
    ...     facts=[("made by", "equipoise"), ("time", "today")],
    ... )
    >>> "<h1>A &lt; B</h1>" in page, "<h2>Where this comes from</h2>" in page
    (True, True)
    """
    made = {fact[0]: fact[1] for fact in facts}
    template = resources.files("equipoise.reports").joinpath("page.html").read_text("utf-8")
    return string.Template(template).substitute(
        generator=escape(made["made by"]),
        title=escape(title),
        source=escape(source),
        figures="".join(_figure(value, name) for value, name in figures),
        sections="\n".join(part.html() for part in (*sections, _provenance(facts))),
        footer=escape(f"{made['made by']}, {made['time']}"),
    )


def _figure(value: str, name: str) -> str:
    return f"<div><strong>{escape(value)}</strong><span>{escape(name)}</span></div>"


# ---------------------------------------------------------------------------- sections


def _sections(summary: Mapping[str, Any], charts: Mapping[str, str]) -> list[Section]:
    said = {
        t["id"]: Section(t["id"], t["title"], bullets(t["sentences"])) for t in summary["topics"]
    }
    rule = said.pop("four-fifths", None)
    parts = [said.pop("overview"), _pictures(summary, charts)]
    parts += [said.pop(name) for name in ("largest", "hidden", "measures") if name in said]
    parts.append(_table(summary))
    if rule is not None:
        parts.append(_four_fifths(summary["four_fifths"], rule))
    parts += said.values()
    if summary["hints"]:
        parts.append(Section("hints", "Hints", bullets(summary["hints"])))
    return parts


def bullets(sentences: Sequence[str]) -> str:
    """Sentences as a list.

    >>> bullets(["a < b"])
    '<ul><li>a &lt; b</li></ul>'
    """
    return "<ul>" + "".join(f"<li>{breakable(s)}</li>" for s in sentences) + "</ul>"


def _pictures(summary: Mapping[str, Any], charts: Mapping[str, str]) -> Section:
    captions = summary["captions"]
    drawn = [
        f"<figure><figcaption>{escape(captions.get(name, ''))}</figcaption>{fragment}</figure>"
        for name, fragment in charts.items()
    ]
    absent = (
        "<p>This page was made without charts; install them with: "
        "<code>pip install 'equipoise[charts]'</code></p>"
    )
    return Section("charts", "The picture", "".join(drawn) or absent)


def _table(summary: Mapping[str, Any]) -> Section:
    table = summary["table"]
    more = table["more"]
    after = f'<p class="after">{escape(more)}.</p>' if more else ""
    content = html_table(table, marked=table["ub"], sides=table["sides"])
    return Section("table", "All numbers" if not more else "The numbers", content + after)


def _four_fifths(rule: Mapping[str, Any], said: Section) -> Section:
    more = rule["total"] - len(rule["table"]["rows"])
    after = f'<p class="after">… and {more:,} more groups.</p>' if more else ""
    return Section(said.id, said.title, said.content + html_table(rule["table"]) + after)


def html_table(
    table: Mapping[str, Any], *, marked: int | None = None, sides: Sequence[str] = ()
) -> str:
    """A table of ``headers``, ``rows`` and ``numbers``, the columns that are aligned right.

    Parameters
    ----------
    table
        Plain data; ``line``, if it has one, says above which row a text divides it.
    marked, sides
        A column to colour, and the class of each row for it.
    """
    kinds = ["number" if i in table["numbers"] else "text" for i in range(len(table["headers"]))]
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(header)}</th>'
        for header, kind in zip(table["headers"], kinds, strict=True)
    )
    lines = []
    for place, row in enumerate(table["rows"]):
        here = kinds.copy()
        if marked is not None:
            here[marked] += f" {sides[place]}"
        cells = zip(row, here, strict=True)
        lines.append("".join(f'<td class="{kind}">{breakable(cell)}</td>' for cell, kind in cells))
    body = [f"<tr>{line}</tr>" for line in lines]
    if table.get("line") is not None:
        place, text = table["line"]
        wide = f'<th colspan="{len(kinds)}" class="line">{escape(text)}</th>'
        body.insert(place, f"<tr>{wide}</tr>")
    table_html = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f'<div class="wide">{table_html}</div>'


def breakable(text: str) -> str:
    """A text as HTML that may go on in the next line: between words, and inside very long ones.

    Very long words are broken after a mark such as ``_`` or ``/`` if they have one.

    >>> breakable("two words"), breakable("a<b")
    ('two words', 'a&lt;b')
    >>> breakable("a_word_of_very_many_letters_that_are_joined")
    'a_word_of_very_many_letters_<wbr>that_are_joined'
    """
    return " ".join("<wbr>".join(map(escape, _pieces(word))) for word in text.split(" "))


def _pieces(word: str) -> list[str]:
    """A word in pieces of at most :data:`LONGEST` letters."""
    pieces = []
    while len(word) > LONGEST:
        marks = [i for i, letter in enumerate(word[:LONGEST], start=1) if letter in "_-/.|:=,;"]
        end = next((i for i in reversed(marks) if i >= LONGEST // 3), LONGEST)
        pieces.append(word[:end])
        word = word[end:]
    return [*pieces, word]


def _provenance(facts: Sequence[Sequence[str]]) -> Section:
    content = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return Section("provenance", "Where this comes from", f"<dl>{content}</dl>")
