"""The composition of a table and its biases: what the forms about data share."""

from __future__ import annotations

from typing import Any

from equipoise.audits.audit import AuditSection
from equipoise.audits.subject import Subject
from equipoise.lattice import Group, format_value
from equipoise.measures.display import UNKNOWN, percent, rows_grid, whole
from equipoise.measures.sentences import topics
from equipoise.measures.table import BiasTable
from equipoise.plain import Grid, counted
from equipoise.values import plain

SHOWN = 20
"""Maximum number of groups and labels in the table of biases."""
_VALUES = 50
COLUMNS = (
    *("group", "label", "n_group", "n_cell", "rate", "overall_rate", "ub", "ub_low", "ub_high"),
    *("q", "evident", "hidden", "note"),
)


def composition(subject: Subject) -> Grid:
    """The rows of each value of each sensitive attribute, and of each label."""
    rows = []
    for axis in subject.counts.sensitive:
        values = axis.values[:_VALUES]
        rows += [
            (axis.name, format_value(v), *_size(subject, Group({axis.name: v}))) for v in values
        ]
        if len(axis) > _VALUES:
            rows.append((axis.name, f"… and {len(axis) - _VALUES:,} more values", "", ""))
    measured, label = subject.table.measured, subject.counts.label
    for value, n in list(zip(label.values, measured.n_label.tolist(), strict=True))[:_VALUES]:
        rows.append((label.name, format_value(value), whole(n), percent(n / measured.counts.n)))
    return Grid(("column", "value", "rows", "share"), tuple(rows), frozenset({2, 3}))


def _size(subject: Subject, group: Group) -> tuple[str, str]:
    measured = subject.table.measured
    line = measured.line(group) if subject.counts.of(group) else -1
    if line < 0:
        return "0", "0.0%"
    if measured.suppressed is not None and measured.suppressed[line].any():
        return UNKNOWN, UNKNOWN
    n = int(measured.n_group[line])
    return whole(n), percent(n / measured.counts.n)


def bias_section(subject: Subject, title: str) -> AuditSection:
    """The groups that differ most, with their intervals, and how sure that is."""
    table = subject.table
    said = [
        sentence
        for topic in topics(table.pairs)
        if topic["id"] in ("overview", "largest", "hidden", "certainty")
        for sentence in topic["sentences"]
    ]
    shown = table.worst(SHOWN)
    if len(table) > len(shown):
        said.append(
            f"The table shows {len(shown):,} of {len(table):,} pairs of a group and a label, the largest "
            "|UB| with enough rows to tell first."
        )
    grid = rows_grid(shown, shown.measured, shown.inconclusive_from)
    return AuditSection("biases", title, tuple(said), (grid,))


def examined(subject: Subject) -> list[str]:
    """Which groups were measured, and how many of them have enough rows."""
    table, counts = subject.table, subject.counts
    groups = len(table.measured.lattice)
    pairs = table.pairs
    untold = int(pairs.untold.sum())
    labels = len(counts.label)
    return [
        (
            f"Every combination of values of these attributes was examined, with every attribute left out in "
            f"turn: {counted(groups, 'group')} and {counted(labels, 'label')} of {counts.label.name!r}, "
            f"{counted(len(table), 'pair')} in all."
        ),
        (
            f"{counted(untold, 'pair')} {'has' if untold == 1 else 'have'} too few rows to tell a difference "
            "from chance."
        ),
        (
            "UB, the Uniform Bias of a group and a label, is 1 minus the rate of the label in the group over "
            "its rate in the whole table: 0.2 means 20 % fewer such rows than the group's share."
        ),
    ]


def bias_lines(table: BiasTable) -> tuple[tuple[Any, ...], ...]:
    """All groups and labels with their numbers, the worst first."""
    return tuple(
        (
            str(row.group),
            plain(row.label),
            row.n_group,
            row.n_cell,
            *map(plain, (row.rate, row.overall_rate, row.ub, row.ub_low, row.ub_high, row.q_value)),
            row.evident,
            row.hidden,
            row.note,
        )
        for row in table.worst()
    )
