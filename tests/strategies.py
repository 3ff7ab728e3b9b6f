"""Hypothesis strategies that several tests share."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
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


# --- plans: small tables, and what they are, from the definitions alone ---------------------------


def rows_of(counts: Counts) -> dict[tuple[object, ...], int]:
    """The rows of each cell, by one value per attribute and the label."""
    return {
        tuple(axis.values[code] for axis, code in zip(counts.axes, line, strict=True)): int(rows)
        for line, rows in zip(counts.codes.tolist(), counts.rows.tolist(), strict=True)
    }


def lattice_of(
    cells: dict[tuple[object, ...], int],
) -> dict[tuple[object, ...], dict[object, int]]:
    """Every group but that of all rows, ANY where it says nothing, with its rows by label."""
    groups: dict[tuple[object, ...], dict[object, int]] = {}
    for (*values, label), rows in cells.items():
        for chosen in itertools.product(*((value, ANY) for value in values)):
            if rows and any(value is not ANY for value in chosen):
                inside = groups.setdefault(chosen, {})
                inside[label] = inside.get(label, 0) + rows
    return groups


def label_rates(cells: dict[tuple[object, ...], int]) -> dict[object, Fraction]:
    """The label frequencies as fractions."""
    totals: dict[object, int] = {}
    for (*_, label), rows in cells.items():
        totals[label] = totals.get(label, 0) + rows
    n = sum(totals.values())
    return {label: Fraction(rows, n) for label, rows in totals.items()}


def biases(
    cells: dict[tuple[object, ...], int],
    *,
    on: str = "ub",
    rates: dict[object, Fraction] | None = None,
) -> dict[tuple[tuple[object, ...], object], Fraction]:
    """How far each group's rate of each label is off, exactly: UB, or the difference of rates.

    Against the table's own label frequencies, unless others are given.
    """
    rates = label_rates(cells) if rates is None else rates
    found = {}
    for group, labels in lattice_of(cells).items():
        size = sum(labels.values())
        for label, rate in rates.items():
            got = Fraction(labels.get(label, 0), size)
            found[group, label] = 1 - got / rate if on == "ub" else rate - got
    return found


def largest_bias(cells: dict[tuple[object, ...], int], **how: object) -> Fraction:
    """The largest of them, as it is without its sign."""
    return max(abs(b) for b in biases(cells, **how).values())


@st.composite
def repairable(
    draw: st.DrawFn,
    *,
    shape: tuple[int, ...] = (2, 2),
    labels: int = 2,
    largest: int = 9,
    empty: bool = True,
) -> Counts:
    """Small tables over attributes ``a``, ``b``, … and the label ``y``, each label with rows."""
    names = "abc"[: len(shape)]
    groups = list(itertools.product(*(range(size) for size in shape)))
    least = 0 if empty else 1
    cells = {
        (*(f"{n}{v}" for n, v in zip(names, group, strict=True)), f"y{label}"): draw(
            st.integers(least, largest)
        )
        for group in groups
        for label in range(labels)
    }
    for label in range(labels):
        if not any(rows for (*_, name), rows in cells.items() if name == f"y{label}"):
            cells[(*(f"{n}0" for n in names), f"y{label}")] = draw(st.integers(1, largest))
    cells = {cell: rows for cell, rows in cells.items() if rows}
    return Counts.from_mapping(cells, sensitive=list(names), label="y")


def exact(tolerance: float) -> Fraction:
    """A tolerance as it was written."""
    return Fraction(repr(tolerance))


def kept(
    before: dict[tuple[object, ...], int],
    after: dict[tuple[object, ...], int],
    tolerance: float,
    on: str = "ub",
) -> bool:
    """Whether no label frequency moved by more than the tolerance."""
    old, new = label_rates(before), label_rates(after)
    limit = exact(tolerance)
    return all(
        abs(new.get(y, Fraction(0)) - f) <= (limit * f if on == "ub" else limit)
        for y, f in old.items()
    )


def enumerated(counts: Counts, tolerance: float, labels: str, more: int) -> int | None:
    """The least number of changes of all tables with up to so many rows more in a cell."""
    before = rows_of(counts)
    cells = [(*g, y) for g in sorted({c[:-1] for c in before}) for y in counts.label.values]
    have = np.array([before.get(c, 0) for c in cells])
    grids = np.meshgrid(*(np.arange(int(n) + more + 1) for n in have))
    tables = np.stack([g.ravel() for g in grids], axis=1)
    cost = np.abs(tables - have).sum(axis=1)
    for place in np.argsort(cost, kind="stable"):
        after = dict(zip(cells, tables[place].tolist(), strict=True))
        groups = {c[:-1] for c in cells}
        if any(not sum(after[(*g, y)] for y in counts.label.values) for g in groups):
            continue
        rates = label_rates(after)
        if not all(rates.values()) or largest_bias(after) > exact(tolerance):
            continue
        if labels == "free" or kept(before, after, tolerance):
            return int(cost[place])
    return None


SEX_AND_RACE = {
    ("m", "x", "h"): 30,
    ("m", "x", "n"): 50,
    ("m", "z", "h"): 20,
    ("m", "z", "n"): 60,
    ("w", "x", "h"): 10,
    ("w", "x", "n"): 40,
    ("w", "z", "h"): 5,
    ("w", "z", "n"): 45,
}
"""Two sexes, two races and two labels: a table small enough to plan by hand."""
