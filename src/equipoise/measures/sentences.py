"""Plain sentences about a table: what differs, for whom, and how sure that is.

No sentence passes judgement: they give numbers, limits and chance, and people judge.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from equipoise.lattice import Group
from equipoise.measures.display import interval, number, percent, probability, whole
from equipoise.measures.measurement import SURE
from equipoise.measures.pairs import MeasuredTable, Pairs
from equipoise.measures.registry import measure_named

if TYPE_CHECKING:
    from equipoise.counts import Counts
    from equipoise.measures.row import Row
    from equipoise.values import Value

MISSING_ROWS = (
    "Missing rows are counted at the present group sizes and label frequencies. They are not the "
    "rows to add: adding rows changes both."
)
TWO_LABELS = "With two labels, what a group lacks of one it has over its share of the other."


class Topic(TypedDict):
    """Sentences that belong together."""

    id: str
    title: str
    sentences: list[str]


def topics(table: MeasuredTable) -> list[Topic]:
    """Say what a table shows, topic by topic; topics with nothing to say are left out.

    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> counts = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> [topic["id"] for topic in topics(bias_table(counts))]
    ['overview', 'largest', 'certainty', 'missing']
    """
    tally = Pairs(table)
    said = [
        ("overview", "In short", [*_overview(tally), *table.counts.reading.sentences]),
        ("largest", "The largest differences", _largest(tally)),
        ("measures", "Further measures", _further(tally)),
        ("hidden", "Hidden groups", _hidden(tally)),
        ("certainty", "How sure this is", _certainty(table)),
        ("missing", "Missing values, missing rows", _missing(table)),
    ]
    return [Topic(id=i, title=t, sentences=s) for i, t, s in said if s]


def sentences(table: MeasuredTable) -> list[str]:
    """All that :func:`topics` says, as one list.

    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> one = Counts.from_mapping({("m", "hired"): 7}, sensitive=["sex"], label="outcome")
    >>> sentences(bias_table(one))[0]
    'All rows have outcome=hired, so nothing can differ.'
    """
    return [s for topic in topics(table) for s in topic["sentences"]]


MANY_VALUES = 50
"""Columns of more values are asked about."""


def hints(counts: Counts) -> list[str]:
    """Ask about values that often stand for a missing one, and about columns of many values.

    >>> from equipoise.counts import Counts
    >>> c = Counts.from_mapping({("?", "y"): 1836, ("a", "n"): 9}, sensitive=["job"], label="l")
    >>> hints(c)
    ["column 'job' holds '?' in 1,836 rows; if it means a missing value, name it with `na=['?']`."]
    """
    said = [
        f"column {column!r} holds {value!r} in {_rows(n)}; if it means a missing value, "
        f"name it with `na={[value]!r}`."
        for column, values in counts.suspects().items()
        for value, n in values.items()
    ]
    for axis in counts.axes:
        if len(axis) > MANY_VALUES and axis.role == "label":
            said.append(
                f"the label {axis.name!r} has {len(axis):,} values; if it is a number, group it "
                f"first, as in `sql='SELECT *, {axis.name} > 20 AS high FROM input'`."
            )
        elif len(axis) > MANY_VALUES:
            said.append(
                f"column {axis.name!r} has {len(axis):,} values; if it is a number, bin it, as in "
                f"`bins={{{axis.name!r}: [25, 45, 65]}}`."
            )
    return said


def row_sentence(table: MeasuredTable, row: Row) -> str:
    """Say one row of a table: what, for whom, how sure.

    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> counts = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> table = bias_table(counts)
    >>> print(row_sentence(table, table["sex=w", "hired"]))
    sex=w has 20.0% fewer rows with outcome=hired than its share of all rows
    (UB +0.200, 95% interval +0.004 … +0.375; q 0.046): 40 of 150, where 50 would be expected.
    """
    label = _label(table, row.label)
    if math.isnan(row.ub):
        return f"{row.group} for {label}: {row.note or 'UB is undefined'}."
    return f"{_what(row, label)} ({_how_sure(table, row)}): {_evidence(table, row)}."


def _what(row: Row, label: str) -> str:
    if row.n_cell == 0:
        return f"{row.group} has no row with {label} at all"
    if round(abs(row.ub), 4) == 0:
        return f"{row.group} has its share of rows with {label}"
    if row.ub < -1:
        return f"{row.group} has {1 - row.ub:,.1f} times its share of the rows with {label}"
    more = "fewer" if row.ub > 0 else "more"
    return f"{row.group} has {percent(abs(row.ub))} {more} rows with {label} than its share of all rows"


def _how_sure(table: MeasuredTable, row: Row) -> str:
    parts = f"UB {number(row.ub)}"
    if math.isnan(row.ub_low):
        return parts
    parts += f", {table.options.confidence:.0%} interval {interval(row)}"
    if row.ub_low <= 0 <= row.ub_high and row.ub != 0:
        parts += ", which holds 0"
    return f"{parts}; q {probability(row.q_value)}"


def _evidence(table: MeasuredTable, row: Row) -> str:
    if table.counts.weights is not None:
        return f"{percent(row.rate)} of its weight, where {percent(row.overall_rate)} would be expected"
    rows = f"{whole(row.n_cell)} of {whole(row.n_group)}"
    return f"{rows}, where {_about(row.expected)} would be expected"


def _about(expected: float) -> str:
    return whole(expected) if expected >= 10 else f"{expected:.{1 if expected >= 0.1 else 3}f}"


# ----------------------------------------------------------------------------- overview


def _overview(tally: Pairs) -> list[str]:
    nothing = _nothing_to_compare(tally.table)
    if nothing:
        return [nothing]
    said = [_how_many(tally), *_too_small(tally), *_on_one_row(tally), *_suppressed(tally)]
    if tally.hidden.any():
        many = int(tally.hidden.sum())
        said.append(
            f"{_count(many, 'pair is', 'pairs are')} hidden: outside the limit, while every "
            "group that fixes one attribute less is inside it."
        )
    return said


def _on_one_row(tally: Pairs) -> list[str]:
    many = int(tally.noted("rests on one row").sum())
    if not many:
        return []
    text = (
        f"{_count(many, 'pair rests', 'pairs rest')} on one row: without it the group would differ "
        f"to the other side. {'It is' if many == 1 else 'They are'} not counted above."
    )
    return [text]


def _nothing_to_compare(table: MeasuredTable) -> str | None:
    counts = table.counts
    if counts.n == 0:
        return "There are no rows, so there is nothing to measure."
    present = np.flatnonzero(table.measured.n_label)
    if len(present) == 1:
        return f"All rows have {_label(table, counts.label.values[present[0]])}, so nothing can differ."
    if not len(table):
        return "No group is left to show, so there is nothing to say."
    if (table.measured.n_group == counts.n).all():
        return "Every row is in the same group, so nothing can differ."
    return None


def _how_many(tally: Pairs) -> str:
    table, limit = tally.table, tally.table.options.limit
    groups, labels = len(set(tally.line.tolist())), len(set(tally.label.tolist()))
    pairs = f"{_count(groups, 'group', 'groups')} and {_count(labels, 'label', 'labels')} give {_count(len(table), 'pair', 'pairs')}"
    outside = int(tally.outside.sum())
    if not tally.telling.any():
        return f"{pairs}; none is shown that is large enough to tell."
    if not outside:
        return f"{pairs}; none that is large enough to tell has |UB| above the limit of {limit:g}."
    text = f"{pairs}; {_count(outside, 'has', 'have')} |UB| above the limit of {limit:g}, that is, over {_short_percent(limit)} fewer or more rows than {'its' if outside == 1 else 'their'} share"
    if table.measured.q_value is None:
        return f"{text}; how much of this may be chance was not computed."
    sure = int(tally.sure.sum())
    which = "all" if sure == outside else "none" if not sure else f"{sure:,}"
    these = ("it" if sure else "no such pair") if outside == 1 else f"{which} of these"
    return f"{text}. q is below {SURE:g} for {these}."


def _too_small(tally: Pairs) -> list[str]:
    small = int(tally.noted("too small to say").sum())
    if not small:
        return []
    many = _count(small, "pair is", "pairs are")
    text = (
        f"{many} too small to say: no outcome in a group of that size could differ from the rest "
        f"by more than chance. {'It is' if small == 1 else 'They are'} not counted above."
    )
    return [text]


def _suppressed(tally: Pairs) -> list[str]:
    many = int(tally.noted("suppressed").sum())
    if not many:
        return []
    pairs = _count(many, "pair is", "pairs are")
    why = "their numbers are small, or small ones could be derived from them"
    return [f"{pairs} suppressed: {why}, so that large groups may be among them."]


# ------------------------------------------------------------------------- differences


def _largest(tally: Pairs) -> list[str]:
    table = tally.table
    if _nothing_to_compare(table):
        return []
    mask = tally.sure if table.measured.q_value is not None else tally.outside
    if not mask.any():
        told = tally.worst(tally.evident, 1)
        which = "The largest |UB|" if told else "The largest |UB|, which may be chance"
        worst = told or tally.worst(tally.telling, 1)
        return [f"{which}: {row_sentence(table, _row(tally, p))}" for p in worst]
    labels = tally.leading_labels(mask)
    each = 2 if len(labels) == 1 else 1
    places = []
    for code in labels:
        here = mask & (tally.label == code)
        places += tally.worst(here & (tally.orders == 1), each)
        places += tally.worst(here & (tally.orders > 1), each)
    mirrored = [TWO_LABELS] if len(table.counts.label) == 2 else []
    return [row_sentence(table, _row(tally, place)) for place in places] + mirrored


def _row(tally: Pairs, place: int) -> Row:
    return tally.table[tally.group(place), tally.label_value(place)]


def _further(tally: Pairs) -> list[str]:
    table = tally.table
    if not table.options.measures or _nothing_to_compare(table):
        return []
    masks = (tally.sure, tally.outside & tally.evident, tally.evident, tally.telling)
    mask = next((m for m in masks if m.any()), None)
    if mask is None:
        return []
    first = tally.leading_labels(mask)[0]
    row = _row(tally, tally.worst(mask & (tally.label == first), 1)[0])
    return [_measure_sentence(table, row, name) for name in table.options.measures]


def _measure_sentence(table: MeasuredTable, row: Row, name: str) -> str:
    measure = measure_named(name)
    value = row.measures.get(name, math.nan)
    if not math.isfinite(value):
        return f"The {measure.title} of {row.group} for {_label(table, row.label)} is undefined."
    reference = {"rest": "the rest", "best": "the best-off group of the same attributes"}
    text = measure.sentence.format(
        group=row.group,
        label=_label(table, row.label),
        value=_measure_value(value),
        reference=reference.get(table.options.reference, table.options.reference),
        percent=percent(abs(row.ub)),
        fewer="fewer" if row.ub > 0 else "more",
    )
    return text if measure.sentence.startswith("{") else text[:1].upper() + text[1:]


def _measure_value(value: float) -> str:
    return whole(value) if abs(value) >= 100 else f"{value:.3f}".replace("-", "−")


def _hidden(tally: Pairs, most: int = 5) -> list[str]:
    places = tally.worst(tally.hidden)
    said = []
    for place in places[:most]:
        row = _row(tally, place)
        alone = (
            "each attribute alone is"
            if len(row.group) == 2
            else "every group that fixes one attribute less is"
        )
        said.append(
            f"The group {row.group} is outside the limit for {_label(tally.table, row.label)} "
            f"({_how_sure(tally.table, row)}) though {alone} inside."
        )
    if len(places) > most:
        said.append(f"{_count(len(places) - most, 'more pair is', 'more pairs are')} hidden so.")
    unsure = int(tally.perhaps_hidden.sum())
    if unsure:
        pairs = _count(unsure, "pair is", "pairs are")
        said.append(
            f"{pairs} outside the limit with all such groups inside it, but {'has' if unsure == 1 else 'have'} "
            "too few rows to tell."
        )
    return said


# -------------------------------------------------------------------------- certainty

_SAMPLING = {
    "rows": "The {level} intervals take the rows as drawn at random, so that the sizes of groups "
    "vary by chance too (sampling: rows).",
    "groups": "The {level} intervals take the sizes of groups as fixed, so that only their labels "
    "vary by chance (sampling: groups).",
}
_ADJUST = {
    "bh": "q corrects p for {pairs} comparisons by Benjamini–Hochberg, which is approximate here, "
    "since groups and labels depend on each other; Benjamini–Yekutieli is valid under any "
    "dependence.",
    "by": "q corrects p for {pairs} comparisons by Benjamini–Yekutieli, which is valid under any "
    "dependence between groups.",
}


def _certainty(table: MeasuredTable) -> list[str]:
    options = table.options
    if _nothing_to_compare(table):
        return []
    if table.measured.interval is None:
        return ["Uncertainty was not asked for: the numbers describe these rows only."]
    said = [_SAMPLING[options.sampling].format(level=f"{options.confidence:.0%}")]
    if table.measured.p_value is not None:
        tested = int(np.isfinite(table.measured.p_value).sum())
        said.append(_ADJUST[options.adjust].format(pairs=f"{tested:,}"))
    if table.counts.weights is not None:
        said.append(
            "Rows are weighted: rates and UB use the weights, intervals and p the effective sizes "
            "of groups, (Σw)²/Σw²."
        )
    return said


# ---------------------------------------------------------------------------- missing


def _missing(table: MeasuredTable) -> list[str]:
    counts = table.counts
    said = [f"{counts.skipped}."] if counts.skipped else []
    said += [_missing_values(counts, c, n) for c, n in counts.missing_values.items() if n]
    if counts.dropped:
        said.append(f"In all, {_rows(counts.dropped)} were left out for a missing value.")
    said.append(MISSING_ROWS)
    return said


def _missing_values(counts: Counts, column: str, n: int) -> str:
    policy = counts.request.policy(column) if counts.request is not None else "group"
    lacks = f"{column!r} has no value in {_rows(n)}"
    option = "missing_label" if column == counts.label.name else "missing"
    if policy == "drop":
        return f"{lacks}; they are left out ({option}: drop)."
    return f"{lacks}; they count as a value of their own, {column}=<missing> ({option}: group)."


# ------------------------------------------------------------------------------ words


def _label(table: MeasuredTable, value: Value) -> str:
    return str(Group({table.counts.label.name: value}))


def _rows(n: int) -> str:
    return _count(n, "row", "rows")


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _short_percent(share: float) -> str:
    return f"{share * 100:.10g}%"
