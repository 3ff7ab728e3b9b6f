"""Hypothesis strategies that several tests share."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

from equipoise.counts import Counts
from equipoise.values import ANY, MISSING

NASTY = (
    "",
    " ",
    "  lone  ",
    "*",
    "<missing>",
    "nan",
    "NaN",
    "NULL",
    "None",
    "-",
    "a,b",
    "a=b",
    "=",
    ",",
    "sex=Female, race=*",
    "'",
    '"',
    "''",
    "it's",
    '"quoted"',
    "\\",
    "\\'",
    '\\"',
    "\\u0041",
    "a\nb",
    "a\r\nb",
    "\t",
    "\x00",
    "\x1b[31mred\x1b[0m",
    "\x85",
    "\u2028",
    "\u00a0",
    "\u202egnirts",
    "\ufeff",
    "ענת",
    "مرحبا, بك",
    "👩‍👩‍👧",
    "é",
    "e\u0301",
    "ß",
    "İ",
    "01",
    "1",
    "1.0",
    "-0.0",
    "1e20",
    "0x1F",
    "2020-01-01",
    "'; DROP TABLE x; --",
    '"; DROP TABLE x; --',
    "1 OR 1=1",
    "$1 ? :name {curly} %s",
    "/* comment */ -- comment",
    "<b>&amp;</b>",
    "|;\t,",
)
"""Texts that other programs stumble over; each is a value like any other."""


def texts(*, min_size: int = 0) -> st.SearchStrategy[str]:
    """Any text, and often a nasty one."""
    nasty = st.sampled_from([t for t in NASTY if len(t) >= min_size])
    return nasty | st.text(min_size=min_size, max_size=8)


def values() -> st.SearchStrategy[object]:
    """What a cell of data holds: text or MISSING."""
    return texts() | st.just(MISSING)


def selectors() -> st.SearchStrategy[object]:
    """What a group says of an attribute."""
    return values() | st.just(ANY)


def column_names(count: int) -> st.SearchStrategy[list[str]]:
    """Different names, also to databases, which do not see case; Arrow ends a name at a NUL."""
    names = texts(min_size=1).filter(lambda name: "\x00" not in name)
    return st.lists(names, min_size=count, max_size=count, unique_by=lambda name: name.casefold())


@st.composite
def counts(
    draw: st.DrawFn,
    *,
    attributes: int | None = None,
    names: tuple[str, ...] | None = None,
    largest: int = 1000,
) -> Counts:
    """Counts over a few attributes with a few values each."""
    if names is None:
        width = draw(st.integers(1, 3)) if attributes is None else attributes
        names = tuple(draw(column_names(width + 1)))
    pools = [draw(st.lists(values(), min_size=1, max_size=4, unique=True)) for _ in names[:-1]]
    pools.append(draw(st.lists(texts(), min_size=1, max_size=3, unique=True)))  # label values
    cell = st.tuples(*(st.sampled_from(pool) for pool in pools))
    cells = draw(st.dictionaries(cell, st.integers(1, largest), min_size=1, max_size=12))
    return Counts.from_mapping(cells, sensitive=names[:-1], label=names[-1])


@st.composite
def text_tables(draw: st.DrawFn, *, max_rows: int = 12) -> pa.Table:
    """Tables of text, with missing values and repeated rows; the last column is the label."""
    names = draw(column_names(draw(st.integers(2, 4))))
    pools = [draw(st.lists(texts() | st.none(), min_size=1, max_size=3)) for _ in names]
    pools[-1] = [*pools[-1], "yes"]  # a label that is there
    row = st.tuples(*(st.sampled_from(pool) for pool in pools))
    rows = draw(st.lists(row, min_size=1, max_size=max_rows))
    rows.append(tuple(pool[-1] for pool in pools))
    columns = [pa.array([r[i] for r in rows], pa.string()) for i in range(len(names))]
    return pa.table(columns, names=names)
