"""The parts of a page as HTML: nothing is fetched, and all text is escaped."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any, TypeAlias

from equipoise.errors import MissingDependency
from equipoise.plain import Grid
from equipoise.reports.charts.vega import CaptionedChart

_FIRST, _MOST = 20, 500
"""Numbers of rows of a long table that are shown, and that can be unfolded."""
_WRAPPED = 16
"""Number of letters from which a text gets room beside columns that are not broken."""
_LONGEST = 28
"""Maximum number of letters of a word in a table before it may be broken."""

_PARAMETER = re.compile(r"(?<!`)`([a-z][a-z0-9_]*(?:=[^`]*)?)`(?!`)")

Part: TypeAlias = str | CaptionedChart
"""What a section is made of: HTML, already escaped, and charts."""


@dataclass(frozen=True)
class Section:
    """A part of the page, with an id and a title (text).

    >>> Section("plan", "Rows to add", ["<p>none</p>"]).html()
    '<section id="plan"><h2>Rows to add</h2><p>none</p></section>'
    """

    id: str
    title: str
    content: Sequence[Part]

    def html(self, *, charts: bool = True) -> str:
        """The section as HTML; empty if it has no content."""
        parts = [
            part if isinstance(part, str) else part.html()
            for part in self.content
            if charts or isinstance(part, str)
        ]
        head = f'<section id="{escape(self.id)}"><h2>{escape(self.title)}</h2>'
        return f"{head}{''.join(parts)}</section>" if parts else ""


def render_page(
    *,
    title: str,
    source: str,
    figures: Sequence[Sequence[str]],
    sections: Sequence[Section],
    facts: Sequence[Sequence[str]],
) -> str:
    """Put sections into the page that all reports share.

    ``figures`` are a few numbers for the top, each with its name, and ``facts`` are names and
    values, among them ``made by`` and ``time``.

    >>> page = render_page(
    ...     title="A < B",
    ...     source="people.csv",
    ...     figures=[("12", "rows")],
    ...     sections=[Section("one", "One", ["<p>two</p>"])],
    ...     facts=[("made by", "equipoise"), ("time", "today")],
    ... )
    >>> "<h1>A &lt; B</h1>" in page, "<h2>Provenance</h2>" in page
    (True, True)
    """
    made = {fact[0]: fact[1] for fact in facts}
    template = resources.files("equipoise.reports.frame").joinpath("page.html").read_text("utf-8")
    return string.Template(template).substitute(
        generator=escape(made["made by"]),
        title=escape(title),
        source=escape(source),
        figures="".join(_figure(value, name) for value, name in figures),
        sections="\n".join(_rendered([*sections, _provenance(facts)])),
        footer=escape(f"{made['made by']}, {made['time']}"),
    )


def _rendered(sections: Sequence[Section]) -> list[str]:
    try:
        return [section.html() for section in sections]
    except MissingDependency as missing:
        # Charts are an extra: without it the page has everything else and says how to get them.
        note = Section("without-charts", "Charts", [paragraph(str(missing))])
        return [section.html(charts=False) for section in (note, *sections)]


def _figure(value: str, name: str) -> str:
    return f"<div><strong>{escape(value)}</strong><span>{escape(name)}</span></div>"


def _provenance(facts: Sequence[Sequence[str]]) -> Section:
    content = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return Section("provenance", "Provenance", [f"<dl>{content}</dl>"])


# ------------------------------------------------------------------------------- parts


def paragraph(text: str) -> str:
    """A text as a paragraph."""
    return f"<p>{escape(text)}</p>"


def note(text: str) -> str:
    """A line of text about the table above it."""
    return f'<p class="after">{escape(text)}</p>'


def bullets(sentences: Sequence[str]) -> str:
    """Sentences as a list; parameters that they name in backquotes are set as code.

    >>> bullets(["a < b; see `gap=0.1`."])
    '<ul><li>a &lt; b; see <code>gap=0.1</code>.</li></ul>'
    """
    return "<ul>" + "".join(f"<li>{_with_code(s)}</li>" for s in sentences) + "</ul>"


def _with_code(sentence: str) -> str:
    # Splitting by a pattern with one group puts the parameters at the odd places.
    parts = enumerate(_PARAMETER.split(sentence))
    return "".join(f"<code>{breakable(p)}</code>" if i % 2 else breakable(p) for i, p in parts)


def folded(title: str, content: str) -> str:
    """Content that a reader can unfold under its title."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def more(n: int, noun: str = "rows") -> str:
    """A line about rows of a table that are not shown.

    >>> more(1200, "cells"), more(0)
    ('… and 1,200 more cells.', '')
    """
    return f"… and {n:,} more {noun}." if n else ""


def first_rows(table: Grid, *, whole: Collection[str] = ()) -> str:
    """The first rows of a table; as many as a page can hold of the others can be unfolded.

    >>> page = first_rows(Grid(("n",), tuple((str(i),) for i in range(3442))))
    >>> "<summary>and 3,422 more</summary>" in page, "… and 2,922 more rows." in page
    (True, True)
    """

    def part(rows: Sequence[tuple[str, ...]], after: str = "") -> str:
        return html_table(Grid(table.headers, tuple(rows), table.numbers), after, whole=whole)

    rest = table.rows[_FIRST:]
    shown = part(table.rows[:_FIRST])
    if not rest:
        return shown
    return shown + folded(f"and {len(rest):,} more", part(rest[:_MOST], more(len(rest[_MOST:]))))


def html_table(
    table: Grid | Mapping[str, Any], after: str = "", *, whole: Collection[str] = ()
) -> str:
    """A table, and a line of text after it; columns named in ``whole`` have lines without breaks.

    The plain data of a grid may also have ``marked``, the number of a column to colour, and
    ``sides``, the class of each row in it.
    """
    if isinstance(table, Grid):
        table = table.to_dict()
    kinds = ["number" if i in table["numbers"] else "text" for i in range(len(table["headers"]))]
    if whole:  # beside such columns, texts would have little room
        kinds = [kind + _room(table, i, whole) for i, kind in enumerate(kinds)]
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(header)}</th>'
        for header, kind in zip(table["headers"], kinds, strict=True)
    )
    body = []
    for place, row in enumerate(table["rows"]):
        here = kinds.copy()
        if "marked" in table:
            here[table["marked"]] += f" {table['sides'][place]}"
        cells = zip(row, here, strict=True)
        line = "".join(f'<td class="{kind}">{breakable(cell)}</td>' for cell, kind in cells)
        body.append(f"<tr>{line}</tr>")
    if table.get("line") is not None:
        place, text = table["line"]
        wide = f'<th colspan="{len(kinds)}" class="line">{escape(text)}</th>'
        body.insert(place, f"<tr>{wide}</tr>")
    rows = f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    return f'<div class="wide"><table>{rows}</table></div>{note(after) if after else ""}'


def _room(table: Mapping[str, Any], column: int, whole: Collection[str]) -> str:
    if table["headers"][column] in whole:
        return " whole"
    longest = max((len(row[column]) for row in table["rows"]), default=0)
    if column in table["numbers"]:
        return ""
    return " long" if longest > _WRAPPED else " short"


def breakable(text: str) -> str:
    """A text as HTML that may be broken between words, and inside very long ones.

    Very long words are broken after a mark such as ``_`` or ``/`` if they have one.

    >>> breakable("two words"), breakable("a<b")
    ('two words', 'a&lt;b')
    >>> breakable("a_word_of_very_many_letters_that_are_joined")
    'a_word_of_very_many_letters_<wbr>that_are_joined'
    """
    return " ".join("<wbr>".join(map(escape, _pieces(word))) for word in text.split(" "))


def _pieces(word: str) -> list[str]:
    pieces = []
    while len(word) > _LONGEST:
        marks = [i for i, letter in enumerate(word[:_LONGEST], start=1) if letter in "_-/.|:=,;"]
        # A mark near the beginning would leave a line of a few letters.
        end = next((i for i in reversed(marks) if i >= _LONGEST // 3), _LONGEST)
        pieces.append(word[:end])
        word = word[end:]
    return [*pieces, word]
