"""Plain sentences about a table: what differs, for whom, and how sure that is.

Sentences give numbers, limits and probabilities. They leave the judgement to people.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from equipoise.lattice import Group
from equipoise.measures.display import interval, number, percent, probability, whole
from equipoise.measures.measurement import SURE, Measurement
from equipoise.measures.pairs import Pairs
from equipoise.measures.registry import measure_named
from equipoise.measures.row import Note, Row
from equipoise.plain import counted, rows_text

if TYPE_CHECKING:
    from equipoise.counts import Counts
    from equipoise.values import Value

MISSING_ROWS = (
    "Missing rows are counted at the present group sizes and label frequencies. They are not the "
    "rows to add: adding rows changes both."
)
_TWO_LABELS = (
    "With two labels, a group that has fewer rows of one than its share has more of the other."
)


class Topic(TypedDict):
    """Sentences that belong together."""

    id: str
    title: str
    sentences: list[str]


def topics(pairs: Pairs) -> list[Topic]:
    """Describe what a table shows, topic by topic; topics with nothing to say are left out."""
    nothing = _nothing_to_compare(pairs)
    counts = pairs.measured.counts
    overview = [nothing] if nothing else _overview(pairs)
    said = [
        ("overview", "In short", [*overview, *counts.reading.sentences]),
        ("largest", "The largest differences", [] if nothing else _largest(pairs)),
        ("measures", "Further measures", [] if nothing else _further(pairs)),
        ("hidden", "Hidden groups", _hidden(pairs)),
        ("certainty", "How sure this is", [] if nothing else _certainty(pairs.measured)),
        ("missing", "Missing values, missing rows", _missing(counts)),
    ]
    return [Topic(id=i, title=t, sentences=s) for i, t, s in said if s]


_MANY_VALUES = 50
"""Hints are given about columns with more values than this."""


def hints(counts: Counts) -> list[str]:
    """Ask about values that often stand for a missing one, and about columns of many values."""
    said = [
        f"column {column!r} holds {value!r} in {rows_text(n)}; if it means a missing value, "
        f"name it with `na={[value]!r}`."
        for column, values in counts.suspects().items()
        for value, n in values.items()
    ]
    for axis in counts.axes:
        if len(axis) > _MANY_VALUES and axis.role == "label":
            said.append(
                f"the label {axis.name!r} has {len(axis):,} values; if it is a number, group it "
                f"first, as in `sql='SELECT *, {axis.name} > 20 AS high FROM input'`."
            )
        elif len(axis) > _MANY_VALUES:
            said.append(
                f"column {axis.name!r} has {len(axis):,} values; if it is a number, bin it, as in "
                f"`bins={{{axis.name!r}: [25, 45, 65]}}`."
            )
    return said


def row_sentence(measured: Measurement, row: Row) -> str:
    """Describe one row of a table: what differs, for whom, and how sure that is."""
    label = _label(measured, row.label)
    if math.isnan(row.ub):
        return f"{row.group} for {label}: {row.note or 'UB is undefined'}."
    return f"{_what(row, label)} ({_how_sure(measured, row)}): {_evidence(measured, row)}."


def _what(row: Row, label: str) -> str:
    if row.n_cell == 0:
        return f"{row.group} has no row with {label} at all"
    if round(abs(row.ub), 4) == 0:
        return f"{row.group} has its share of rows with {label}"
    if row.ub < -1:
        return f"{row.group} has {1 - row.ub:,.1f} times its share of the rows with {label}"
    more = "fewer" if row.ub > 0 else "more"
    return f"{row.group} has {percent(abs(row.ub))} {more} rows with {label} than its share of all rows"


def _how_sure(measured: Measurement, row: Row) -> str:
    parts = f"UB {number(row.ub)}"
    if math.isnan(row.ub_low):
        return parts
    parts += f", {measured.options.confidence:.0%} interval {interval(row)}"
    if row.ub_low <= 0 <= row.ub_high and row.ub != 0:
        parts += ", which contains 0"
    return f"{parts}; q {probability(row.q_value)}"


def _evidence(measured: Measurement, row: Row) -> str:
    if measured.counts.weights is not None:
        return f"{percent(row.rate)} of its weight, where {percent(row.overall_rate)} would be expected"
    rows = f"{whole(row.n_cell)} of {whole(row.n_group)}"
    return f"{rows}, where {_about(row.expected)} would be expected"


def _about(expected: float) -> str:
    return whole(expected) if expected >= 10 else f"{expected:.{1 if expected >= 0.1 else 3}f}"


# ----------------------------------------------------------------------------- overview


def _nothing_to_compare(pairs: Pairs) -> str | None:
    measured, counts = pairs.measured, pairs.measured.counts
    if counts.n == 0:
        return "There are no rows, so there is nothing to measure."
    present = np.flatnonzero(measured.n_label)
    if len(present) == 1:
        return f"All rows have {_label(measured, counts.label.values[present[0]])}, so nothing can differ."
    if not len(pairs.line):
        return "No group is left to show, so there is nothing to say."
    if (measured.n_group == counts.n).all():
        return "Every row is in the same group, so nothing can differ."
    return None


def _overview(pairs: Pairs) -> list[str]:
    said = [_how_many(pairs)]
    for note, text in _NOTED.items():
        n = int(pairs.noted(note).sum())
        words = {
            "pairs_are": _count(n, "pair is", "pairs are"),
            "pairs_rest": _count(n, "pair rests", "pairs rest"),
            "they_are": "It is" if n == 1 else "They are",
        }
        said += [text.format(**words)] if n else []
    if pairs.hidden.any():
        many = _count(int(pairs.hidden.sum()), "pair is", "pairs are")
        said.append(
            f"{many} hidden: outside the limit, while every group that fixes one attribute less is "
            "inside it."
        )
    return said


_NOTED: dict[Note, str] = {
    "too small to say": "{pairs_are} too small to say: no outcome in a group of that size could "
    "differ from the rest by more than chance. {they_are} not counted above.",
    "rests on one row": "{pairs_rest} on one row: without it the group would differ in the "
    "other direction. {they_are} not counted above.",
    "suppressed": "{pairs_are} suppressed: their numbers are small, or small ones could be derived "
    "from them, so that large groups may be among them.",
}


def _how_many(pairs: Pairs) -> str:
    limit = pairs.measured.options.limit
    groups, labels = len(np.unique(pairs.line)), len(np.unique(pairs.label))
    shown = f"{counted(groups, 'group')} and {counted(labels, 'label')} give {counted(len(pairs.line), 'pair')}"
    outside = int(pairs.outside.sum())
    if not pairs.telling.any():
        return f"{shown}; none is shown that is large enough to tell."
    if not outside:
        return f"{shown}; none that is large enough to tell has |UB| above the limit of {limit:g}."
    text = f"{shown}; {_count(outside, 'has', 'have')} |UB| above the limit of {limit:g}, that is, over {limit * 100:.10g}% fewer or more rows than {'its' if outside == 1 else 'their'} share"
    if pairs.measured.q_value is None:
        return f"{text}; how much of this may be chance was not computed."
    sure = int(pairs.sure.sum())
    which = "all" if sure == outside else "none" if not sure else f"{sure:,}"
    these = ("it" if sure else "no such pair") if outside == 1 else f"{which} of these"
    return f"{text}. q is below {SURE:g} for {these}."


# ------------------------------------------------------------------------- differences


def _largest(pairs: Pairs) -> list[str]:
    measured = pairs.measured
    mask = pairs.sure if measured.q_value is not None else pairs.outside
    if not mask.any():
        told = pairs.worst(pairs.evident, 1)
        which = "The largest |UB|" if told else "The largest |UB|, which may be chance"
        worst = told or pairs.worst(pairs.telling, 1)
        return [f"{which}: {row_sentence(measured, pairs.row(place))}" for place in worst]
    labels = pairs.leading_labels(mask)
    each = 2 if len(labels) == 1 else 1
    places = []
    for code in labels:
        here = mask & (pairs.label == code)
        places += pairs.worst(here & (pairs.orders == 1), each)
        places += pairs.worst(here & (pairs.orders > 1), each)
    mirrored = [_TWO_LABELS] if len(measured.counts.label) == 2 else []
    return [row_sentence(measured, pairs.row(place)) for place in places] + mirrored


def _further(pairs: Pairs) -> list[str]:
    # The best-founded difference there is serves as the example of every further measure.
    masks = (pairs.sure, pairs.outside & pairs.evident, pairs.evident, pairs.telling)
    mask = next((m for m in masks if m.any()), None)
    if mask is None:
        return []
    first = pairs.leading_labels(mask)[0]
    row = pairs.row(pairs.worst(mask & (pairs.label == first), 1)[0])
    return [_measure_sentence(pairs.measured, row, m) for m in pairs.measured.options.measures]


def _measure_sentence(measured: Measurement, row: Row, name: str) -> str:
    measure, label = measure_named(name), _label(measured, row.label)
    value = row.measures.get(name, math.nan)
    if not math.isfinite(value):
        return f"The {measure.title} of {row.group} for {label} is undefined."
    reference = {"rest": "the rest", "best": "the best-off group of the same attributes"}
    text = measure.sentence.format(
        group=row.group,
        label=label,
        value=whole(value) if abs(value) >= 100 else f"{value:.3f}".replace("-", "−"),
        reference=reference.get(measured.options.reference, measured.options.reference),
        percent=percent(abs(row.ub)),
        fewer="fewer" if row.ub > 0 else "more",
    )
    # A group keeps its spelling even at the beginning of a sentence.
    return text if measure.sentence.startswith("{") else text[:1].upper() + text[1:]


def _hidden(pairs: Pairs, most: int = 5) -> list[str]:
    places = pairs.worst(pairs.hidden)
    said = []
    for place in places[:most]:
        row = pairs.row(place)
        alone = (
            "each attribute alone is"
            if len(row.group) == 2
            else "every group that fixes one attribute less is"
        )
        said.append(
            f"The group {row.group} is outside the limit for {_label(pairs.measured, row.label)} "
            f"({_how_sure(pairs.measured, row)}) though {alone} inside."
        )
    if len(places) > most:
        said.append(
            f"{_count(len(places) - most, 'more pair is', 'more pairs are')} hidden in the same way."
        )
    unsure = int(pairs.perhaps_hidden.sum())
    if unsure:
        said.append(
            f"{_count(unsure, 'pair is', 'pairs are')} outside the limit with all such groups inside "
            f"it, but {'has' if unsure == 1 else 'have'} too few rows to tell."
        )
    return said


# -------------------------------------------------------------------------- certainty

_SAMPLING = {
    "rows": "The {level} intervals assume that rows were drawn at random, so that group sizes vary "
    "by chance too (sampling: rows).",
    "groups": "The {level} intervals assume that group sizes are fixed, so that only labels vary by "
    "chance (sampling: groups).",
}
_ADJUST = {
    "bh": "q corrects p for {pairs} comparisons by Benjamini–Hochberg, which is approximate here, "
    "since groups and labels depend on each other; Benjamini–Yekutieli is valid under any "
    "dependence.",
    "by": "q corrects p for {pairs} comparisons by Benjamini–Yekutieli, which is valid under any "
    "dependence between groups.",
}


def _certainty(measured: Measurement) -> list[str]:
    options = measured.options
    if measured.interval is None or measured.p_value is None:
        return ["Uncertainty was not computed: the numbers describe these rows only."]
    tested = int(np.isfinite(measured.p_value).sum())
    said = [
        _SAMPLING[options.sampling].format(level=f"{options.confidence:.0%}"),
        _ADJUST[options.adjust].format(pairs=f"{tested:,}"),
    ]
    if measured.counts.weights is not None:
        said.append(
            "Rows are weighted: rates and UB use the weights, intervals and p the effective sizes "
            "of groups, (Σw)²/Σw²."
        )
    return said


# ---------------------------------------------------------------------------- missing


def _missing(counts: Counts) -> list[str]:
    said = [f"{counts.skipped}."] if counts.skipped else []
    said += [_missing_values(counts, c, n) for c, n in counts.missing_values.items() if n]
    if counts.dropped:
        said.append(
            f"In all, {rows_text(counts.dropped)} were left out because of a missing value."
        )
    return [*said, MISSING_ROWS]


def _missing_values(counts: Counts, column: str, n: int) -> str:
    policy = counts.request.policy(column) if counts.request is not None else "group"
    absent = f"{column!r} has no value in {rows_text(n)}"
    option = "missing_label" if column == counts.label.name else "missing"
    if policy == "drop":
        return f"{absent}; they are left out ({option}: drop)."
    return f"{absent}; they count as a separate value, {column}=<missing> ({option}: group)."


# ------------------------------------------------------------------------------ words


def _label(measured: Measurement, value: Value) -> str:
    return str(Group({measured.counts.label.name: value}))


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
