"""Tables of selection rates: what the forms about selections share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from equipoise.audits.subject import Subject
from equipoise.lattice import format_value
from equipoise.measures.display import UNKNOWN, percent
from equipoise.measures.selection import Eligible, SelectionTable
from equipoise.plain import counted, in_words, rows_text
from equipoise.values import MISSING, plain


def selection_tables(subject: Subject, eligible: Eligible) -> tuple[SelectionTable, ...]:
    """The categories of each attribute, and of their intersections."""
    measured = subject.selection.measured
    return tuple(
        SelectionTable.of(
            measured,
            subject.code,
            names,
            exclude_below=subject.options.exclude_below,
            eligible=eligible,
        )
        for names in subject.families
    )


def outcome_sentences(subject: Subject) -> list[str]:
    """What counts as selected."""
    counts = subject.counts
    above = int(counts.rows[counts.codes[:, -1] == subject.code].sum())
    if subject.median is not None:
        return [
            subject.median.sentence,
            f"{above:,} of the {counts.n:,} rows ({percent(above / counts.n)}) are above the median.",
        ]
    value = format_value(subject.selected)
    said = [
        (
            f"Selected are the rows with {counts.label.name}={value}: {above:,} of {counts.n:,} "
            f"({percent(above / counts.n)})."
        )
    ]
    others = [v for v in counts.label.values if v not in (subject.selected, MISSING)]
    if len(others) != 1:
        listed = in_words([format_value(v) for v in others[:10]]) if others else "none"
        more = " and others" if len(others) > 10 else ""
        said.append(f"Other values, which count as not selected: {listed}{more}.")
    return said


def title_of(table: SelectionTable) -> str:
    """The title of the section of a table."""
    return f"By {in_words(table.attributes)}"


def id_of(number: int) -> str:
    """The id of the section of a table, by its number."""
    return f"table-{number}"


def table_sentences(table: SelectionTable, rate: str) -> list[str]:
    """What a table compares with what, and what it leaves out."""
    names = in_words(table.attributes)
    known = f"{'a known value' if len(table.attributes) == 1 else 'known values'} of {names}"
    if not len(table):
        return [f"No row has {known}, so that there is nothing to compare."]
    said = [_compared(table, rate)]
    if table.unknown is None:
        said.append(f"The number of rows without {known} is hidden.")
    elif table.unknown:
        verb = "is" if table.unknown == 1 else "are"
        said.append(f"Unknown: {rows_text(table.unknown)} without {known} {verb} in no category.")
    else:
        said.append(f"Unknown: every row has {known}.")
    hidden = int(table.suppressed.sum())
    if hidden:
        said.append(
            f"{_categories(hidden)} hidden, because {'its' if hidden == 1 else 'their'} counts are small or "
            "small ones could be derived from them. The highest rate is that of the categories shown."
        )
    return [*said, *_small(table), *_absent(table)]


def _compared(table: SelectionTable, rate: str) -> str:
    shown = int((~table.suppressed).sum())
    if table.best < 0:
        return "No category can be shown, so that there is nothing to compare."
    best, highest = name_of(table, table.best), percent(float(table.rate[table.best]))
    if not table.rate[table.best] > 0:
        return f"The highest {rate} is 0, so that no category has an impact ratio."
    if shown == 1:
        only = "the only category" + (" shown" if len(table) > 1 else "")
        return f"{best} is {only} ({rate} {highest}), so that there is nothing to compare."
    which = "" if table.eligible == "all" else " among categories that are large enough"
    return (
        f"The highest {rate}{which} is that of {best}: {highest}. Impact ratios are relative to it."
    )


def _small(table: SelectionTable) -> list[str]:
    small = [i for i in range(len(table)) if table.small[i]]
    if not small:
        return []
    listed = in_words([name_of(table, i) for i in small[:5]])
    more = f" and {len(small) - 5:,} more" if len(small) > 5 else ""
    return [
        (
            f"{counted(len(small), 'category').replace('categorys', 'categories')} with less than "
            f"{share_text(table.exclude_below)} of all {table.measured.counts.n:,} rows: {listed}{more}."
        )
    ]


def _absent(table: SelectionTable) -> list[str]:
    if len(table.attributes) < 2:
        return []
    axes = [table.measured.counts.axis(name) for name in table.attributes]
    possible = math.prod(sum(value is not MISSING for value in axis.values) for axis in axes)
    absent = possible - len(table)
    if not absent:
        return []
    return [f"{_combinations(absent)} of these values no rows, and no category."]


def _categories(n: int) -> str:
    return "1 category is" if n == 1 else f"{n:,} categories are"


def _combinations(n: int) -> str:
    return "1 combination has" if n == 1 else f"{n:,} combinations have"


def share_text(share: float) -> str:
    """Write a share that was given as an option.

    >>> share_text(0.02), share_text(0.125)
    ('2%', '12.5%')
    """
    return f"{100 * share:.6g}%"


def name_of(table: SelectionTable, place: int) -> str:
    """A category as its pattern."""
    return str(table.group(place))


def ratio_text(value: float) -> str:
    """Write an impact ratio, or a dash where there is none.

    >>> ratio_text(0.8), ratio_text(float("nan"))
    ('0.800', '–')
    """
    return f"{value:.3f}" if math.isfinite(value) else UNKNOWN


def interval_text(table: SelectionTable, place: int) -> str:
    """Write the interval of an impact ratio."""
    interval = table.interval
    if interval is None or math.isnan(interval.low[place]):
        return UNKNOWN
    if interval.low[place] == interval.high[place] == 1:  # of the category itself
        return UNKNOWN
    high = float(interval.high[place])
    return f"{interval.low[place]:.3f} … {'∞' if math.isinf(high) else f'{high:.3f}'}"


def count_text(table: SelectionTable, place: int, number: Any) -> str:
    """Write a number of rows, or a dash where it is hidden."""
    return UNKNOWN if table.suppressed[place] else f"{int(number):,}"


def heading_of(table: SelectionTable) -> str:
    """The header of the column of categories."""
    return ", ".join(table.attributes)


def category_text(table: SelectionTable, place: int) -> str:
    """Write the values of a category, in the order of the header."""
    group = table.group(place)
    return ", ".join(format_value(group[name]) for name in table.attributes)


CATEGORY = (
    *("table", "category", "n", "selected", "rate", "share", "below_share", "impact_ratio"),
    *("impact_ratio_low", "impact_ratio_high", "impact_ratio_without_small", "suppressed"),
)
"""Names of the numbers of a category."""


def category(table: SelectionTable, place: int) -> dict[str, Any]:
    """The numbers of a category as plain data, None where they are hidden or undefined."""
    hidden = bool(table.suppressed[place])
    low, high = (None, None) if table.interval is None else (x[place] for x in table.interval)
    numbers = (
        " × ".join(table.attributes),
        name_of(table, place),
        None if hidden else int(table.n[place]),
        None if hidden else int(table.selected[place]),
        table.rate[place],
        table.share[place],
        None if hidden else bool(table.small[place]),
        table.ratio[place],
        low,
        high,
        table.ratio_without_small[place],
        hidden,
    )
    return dict(zip(CATEGORY, map(_plain, numbers), strict=True))


def _plain(value: Any) -> Any:
    return plain(float(value)) if isinstance(value, float) else value


def plain_tables(
    tables: Sequence[SelectionTable], rows: Sequence[Sequence[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """The tables as plain data, with the rows of each."""
    return [
        {
            "attributes": list(table.attributes),
            "unknown": table.unknown,
            "best": None if table.best < 0 else name_of(table, table.best),
            "categories": list(lines),
        }
        for table, lines in zip(tables, rows, strict=True)
    ]
