"""What the comparison and the simulation of missing values share: common groups, and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import CountRequest, Reading
from equipoise.errors import InputError
from equipoise.evaluation.missing.imputation import DONORS, METHODS, Method, Settings
from equipoise.evaluation.missing.rows import Codes, Floats, Rows
from equipoise.lattice import Group, format_value
from equipoise.measures.display import number, whole
from equipoise.measures.measurement import Measurement
from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import bias_table
from equipoise.plain import Grid, counted, in_words
from equipoise.results import Drawable, FlatTable
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

SCHEMA = "equipoise.missing/1"
_SHOWN = 20  # groups and labels listed in a terminal


# ------------------------------------------------------------------------------ measuring


def measured(rows: Rows, codes: Codes, method: Method, min_count: int) -> Measurement:
    """Measure rows after treatment by a method."""
    counts = rows.counts(codes, method.policy)
    return bias_table(counts, MeasureRequest(uncertainty=False, min_count=min_count)).measured


def frequencies(table: Measurement, labels: Sequence[Value]) -> Floats:
    """Return the share of each label; these labels are the first of the table's."""
    return np.asarray(table.margins.overall_rate[: len(labels)])


@dataclass(frozen=True, eq=False)
class CommonGroups:
    """The groups that several tables have in common."""

    groups: tuple[Group, ...]
    rows: NDArray[np.int64]  # tables × groups
    ub: Floats  # tables × groups × labels; undefined in all tables if it is undefined in one


def common_groups(tables: Sequence[Measurement], labels: Sequence[Value]) -> CommonGroups:
    """Find the groups that all tables have, and their UB for these labels."""
    # Groups with a missing value are never among them: only one method keeps such groups, and it
    # is never the only one.
    codes = tables[0].lattice.codes
    for table in tables[1:]:
        codes = codes[table.lattice.find(codes) >= 0]
    lines = [table.lattice.find(codes) for table in tables]
    ub = np.stack([t.ub[at, : len(labels)] for t, at in zip(tables, lines, strict=True)])
    ub[:, ~np.isfinite(ub).all(axis=0)] = np.nan
    if not np.isfinite(ub).any():
        raise InputError(
            f"no group without a missing value has {tables[0].options.min_count:,} rows under every "
            "method; compare smaller groups with a lower `min_count`."
        )
    rows = np.stack([t.n_group[at] for t, at in zip(tables, lines, strict=True)])
    return CommonGroups(tuple(tables[0].group(line) for line in lines[0].tolist()), rows, ub)


def away(reference: Floats, ub: Floats) -> float:
    """Compute the mean change of UB away from 0; negative if UB came closer to 0."""
    return float(np.nanmean(np.sign(reference) * (ub - reference)))


# -------------------------------------------------------------------------------- result


@dataclass(frozen=True)
class GroupBias:
    """UB of one group and label."""

    group: Group
    label: Value
    rows: int  # of the group in the reference
    reference: float  # UB in the baseline, or the true UB
    ub: Mapping[str, float]  # by method; in a simulation the mean over repeats

    @property
    def largest(self) -> float:
        """Largest change of UB by a method."""
        return max(abs(ub - self.reference) for ub in self.ub.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        label = None if self.label is MISSING else self.label
        return {**vars(self), "group": dict(self.group), "label": label, "ub": dict(self.ub)}


def group_biases(
    common: CommonGroups, labels: Sequence[Value], base: int, ub: Mapping[str, Floats]
) -> tuple[GroupBias, ...]:
    """Return UB of every group and label by method and in the table ``base``, largest changes first."""
    rows, reference = common.rows[base], common.ub[base]
    found = [
        GroupBias(
            group,
            labels[y],
            int(rows[g]),
            float(reference[g, y]),
            {name: float(table[g, y]) for name, table in ub.items()},
        )
        for g, group in enumerate(common.groups)
        for y in np.flatnonzero(np.isfinite(reference[g])).tolist()
    ]
    return tuple(sorted(found, key=lambda entry: -entry.largest))


@dataclass(frozen=True, eq=False, kw_only=True)
class MethodComparison(Drawable):
    """What the comparison and the simulation of methods have in common.

    Attributes
    ----------
    methods
        Result of each method.
    request
        What was counted.
    labels
        Label values, with MISSING if rows without a label have a separate one.
    groups
        Groups and labels compared, the largest changes first.
    n, table_rows
        Rows used, and rows of the table.
    incomplete
        Rows with a missing counted value.
    without_label
        Rows of the table without a label, treated as the request says.
    min_count
        Minimum number of rows of a group under every method.
    looked_at, left_out
        Other columns that imputers used, and those they did not.
    seed, max_rows
        Seed, and maximum number of rows used.
    """

    methods: tuple[Any, ...]
    request: CountRequest
    labels: tuple[Value, ...]
    groups: tuple[GroupBias, ...]
    n: int
    table_rows: int
    incomplete: int
    without_label: int
    min_count: int
    looked_at: tuple[str, ...]
    left_out: tuple[str, ...]
    seed: int
    max_rows: int | None
    reading: Reading = field(default_factory=Reading)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the methods, in the requested order."""
        return tuple(found.method for found in self.methods)

    @property
    def reference_name(self) -> str:
        """What the methods are compared with."""
        raise NotImplementedError

    def methods_grid(self) -> Grid:
        """The methods, one per line."""
        raise NotImplementedError

    def groups_grid(self, top: int = _SHOWN) -> Grid:
        """UB under each method, of the groups and labels that are moved most."""
        names = [name for name in self.names if name != self.reference_name]
        rows = tuple(
            (
                str(entry.group),
                format_value(entry.label),
                whole(entry.rows),
                number(entry.reference),
                *(number(entry.ub[name]) for name in names),
            )
            for entry in self.groups[:top]
        )
        headers = ("group", self.request.label, "rows", self.reference_name, *names)
        return Grid(headers, rows, frozenset(range(2, len(headers))))

    def _table(self) -> FlatTable:
        own = ("group", "label", "rows", "reference")
        rows = [
            (str(e.group), e.label, e.rows, e.reference, *(e.ub[name] for name in self.names))
            for e in self.groups
        ]
        return (*own, *(f"ub_{name}" for name in self.names)), rows

    def _grids(self) -> list[Grid]:
        return [self.methods_grid(), self.groups_grid(len(self.groups))]

    def text(self, top: int = _SHOWN) -> str:
        """The sentences, a line each, and the tables."""
        parts = ["\n".join(self.sentences), self.methods_grid().text()]
        shown = self.groups_grid(top)
        left = len(self.groups) - len(shown.rows)
        more = f"\n… and {left:,} more groups and labels" if left else ""
        return "\n\n".join([*parts, shown.text() + more])

    def _to_dict(self, kind: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        own = {"methods": list(self.names), "min_count": self.min_count, "seed": self.seed}
        return {
            "schema": SCHEMA,
            "kind": kind,
            "sensitive": list(self.request.sensitive),
            "label": self.request.label,
            "labels": [None if label is MISSING else label for label in self.labels],
            "n": self.n,
            "table_rows": self.table_rows,
            "incomplete": self.incomplete,
            "without_label": self.without_label,
            "looked_at": list(self.looked_at),
            "left_out": list(self.left_out),
            "groups": [entry.to_dict() for entry in self.groups],
            "parameters": {
                **self.request.to_dict(),
                **own,
                "max_rows": self.max_rows,
                "donors": DONORS,
                **parameters,
            },
            "reading": self.reading.to_dict(),
            "sentences": list(self.sentences),
            "version": self.version,
            "time": self.time,
        }

    # ------------------------------------------------------------------- sentences

    def _rows_used(self) -> str:
        by = in_words(list(self.request.sensitive))
        drawn = "" if self.n == self.table_rows else f" of {self.table_rows:,}"
        return f"{self.n:,}{drawn} rows were counted by {by}, with the label {self.request.label}"

    def _without_label(self) -> list[str]:
        """Describe what happened to rows without a label, if there are any."""
        if not self.without_label:
            return []
        lack = f"{counted(self.without_label, 'row')} of the table without {self.request.label}"
        one = self.without_label == 1
        if self.request.missing_label == "group":
            return [f"{lack} {'counts' if one else 'count'} as rows with a separate label."]
        return [f"{lack} {'was' if one else 'were'} left out."]

    def _compared(self) -> str:
        groups = len({entry.group for entry in self.groups})
        return (
            f"{counted(groups, 'group')} without a missing value and with at least "
            f"{counted(self.min_count, 'row')} under every method"
        )

    def _filled_by(self) -> list[str]:
        """Name the columns that imputers used, if there were imputers."""
        if not any(METHODS[name].fill for name in self.names):
            return []
        columns = counted(len(self.looked_at), "other column")
        seen = columns if self.looked_at else "no other column"
        looked = (
            f"Imputers used {seen} in addition to the counted ones, and all except most_frequent learned "
            f"from at most {DONORS:,} complete rows."
        )
        said = [looked]
        if self.left_out:
            columns = in_words([repr(name) for name in self.left_out])
            said.append(f"They did not use {columns}, with a single value or too many.")
        return said


def shared_fields(
    table: pa.Table, rows: Rows, without_label: int, settings: Settings
) -> dict[str, Any]:
    """Return the fields of a result that follow from the rows and the settings."""
    return {
        "request": rows.request,
        "labels": rows.values[-1],
        "n": len(rows.codes),
        "table_rows": len(table),
        "without_label": without_label,
        "min_count": settings.min_count,
        "looked_at": rows.others.names,
        "left_out": rows.others.left_out,
        "seed": settings.seed,
        "max_rows": settings.max_rows,
    }


def direction(away: float) -> str:
    """Describe whether UB came closer to 0.

    Examples
    --------
    >>> direction(-0.01)
    '; overall UB is 0.0100 closer to 0'
    """
    if abs(away) < 0.00005:
        return ""
    where = "farther from" if away > 0 else "closer to"
    return f"; overall UB is {abs(away):.4f} {where} 0"
