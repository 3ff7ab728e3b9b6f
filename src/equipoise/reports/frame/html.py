"""A summary as one self-contained page: nothing is fetched, and all text is escaped."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

from equipoise.plain import Grid

LONGEST = 28
"""How many letters of a word stand together in a table."""

_PARAMETER = re.compile(r"(?<!`)`([a-z][a-z0-9_]*(?:=[^`]*)?)`(?!`)")


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
    template = resources.files("equipoise.reports.frame").joinpath("page.html").read_text("utf-8")
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


def bullets(sentences: Sequence[str]) -> str:
    """Sentences as a list; the parameters they name in backquotes are set as code.

    >>> bullets(["a < b; see `gap=0.1`."])
    '<ul><li>a &lt; b; see <code>gap=0.1</code>.</li></ul>'
    """
    return "<ul>" + "".join(f"<li>{_with_code(s)}</li>" for s in sentences) + "</ul>"


def _with_code(sentence: str) -> str:
    # Splitting by a pattern with one group puts the parameters at the odd places.
    parts = enumerate(_PARAMETER.split(sentence))
    return "".join(f"<code>{breakable(p)}</code>" if i % 2 else breakable(p) for i, p in parts)


def html_table(
    table: Grid | Mapping[str, Any], *, marked: int | None = None, sides: Sequence[str] = ()
) -> str:
    """A table of ``headers``, ``rows`` and ``numbers``, the columns that are aligned right.

    Parameters
    ----------
    table
        A grid, or its plain data; ``line``, if it has one, says above which row a text divides it.
    marked, sides
        A column to colour, and the class of each row for it.
    """
    if isinstance(table, Grid):
        table = table.to_dict()
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


def figure(caption: str, picture: str) -> str:
    """A picture under its caption.

    >>> figure("a < b", "<svg></svg>")
    '<figure><figcaption>a &lt; b</figcaption><svg></svg></figure>'
    """
    return f"<figure><figcaption>{escape(caption)}</figcaption>{picture}</figure>"
