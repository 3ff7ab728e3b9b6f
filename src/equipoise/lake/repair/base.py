"""The table to repair: whether a plan was made for it, and how the plan changes its counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from equipoise.counts import Condition, CountRequest, Counts, Reading
from equipoise.counts.rows import cells_of_rows
from equipoise.engines.base import Engine
from equipoise.engines.kinds import DATABASES
from equipoise.engines.sources import Source
from equipoise.errors import CountsError, InputError
from equipoise.lake.offers.need import Planned
from equipoise.measures.table import largest_ub
from equipoise.plain import rows_text, ub_text
from equipoise.plans.problem import known_rows
from equipoise.results import FlatTable, Result, column_names
from equipoise.values import Value, plain

if TYPE_CHECKING:
    import pyarrow as pa


LocatedRow: TypeAlias = tuple[Any, str, tuple[Value, ...]]
"""Place of a row in its table (a number, a key, or a hash), its md5, and its cell."""


@dataclass(frozen=True)
class PlannedChange:
    """A plan and the base it is carried out on: the counts before, and the rows to add and delete."""

    plan: Planned
    base: Source
    request: CountRequest
    before: Counts
    add: Counts
    delete: Counts

    @classmethod
    def of(cls, plan: Planned, base: Source, counts: Counts, *, force: bool) -> PlannedChange:
        """Check that a plan can be carried out on a base with these counts."""
        request = plan.counts.request_for_rows()
        edges = {n: b for n, b in request.bins.items() if isinstance(b, tuple)}
        # Counts combine only if they have the same bins, and both or none have weights.
        bare: dict[str, Any] = {"bins": edges, "weights": None, "missing_values": {}, "dropped": 0}
        add, delete = (replace(c, request=request, **bare) for c in (plan.add, plan.delete))
        change = cls(plan, base, request, replace(counts, reading=base.reading), add, delete)
        if not force:
            change._require_same_base()
        change._require_deletable()
        return change

    def _require_same_base(self) -> None:
        base, planned = self.base, self.plan.counts
        ours, theirs = base.where, planned.reading.where
        if (ours and ours.text) != (theirs and theirs.text):
            raise InputError(
                f"the plan was made for {_restricted(theirs)}, but would be applied to "
                f"{_restricted(ours)} of {base.name}; make a new plan for these."
            )
        expected = replace(planned, weights=None)
        if self.before.fingerprint != expected.fingerprint:
            raise InputError(
                f"the counts of {base.name} differ from those the plan was made for: "
                f"{difference(self.before, expected)}. Make a new plan for this table, or set "
                "`force` to apply the plan as far as the cells allow."
            )

    def _require_deletable(self) -> None:
        there = self.before.cells()
        for cell, n in self.delete.cells().items():
            if n > there.get(cell, 0):
                raise CountsError(
                    f"the plan deletes {rows_text(n)} of {self.delete.pattern(cell)}, but "
                    f"{self.base.name} has only {there.get(cell, 0):,}; make a new plan for this "
                    "table."
                )

    def measured(self, after: Counts) -> dict[str, Any]:
        """Return the fields of :class:`CarriedOut` that follow from the counts."""
        return {
            "base": self.base.name,
            "removed": self.delete.n,
            "before": self.before,
            "after": after,
            "planned": self.before + self.add - self.delete,
            "max_abs_ub_before": self._largest_ub(self.before),
            "max_abs_ub_after": self._largest_ub(after),
        }

    def _largest_ub(self, counts: Counts) -> float:
        """Return the largest |UB| among the rows that are planned, usually without missing values."""
        asked = getattr(self.plan, "request", None)
        known, _ = known_rows(counts, plan_missing=asked is not None and asked.plan_missing)
        return largest_ub(known)


@dataclass(frozen=True, eq=False, kw_only=True)
class CarriedOut(Result):
    """Common part of the results of plans that were carried out."""

    base: str
    removed: int
    before: Counts
    after: Counts
    planned: Counts
    max_abs_ub_before: float
    max_abs_ub_after: float
    seed: int

    @property
    def as_planned(self) -> bool:
        """Whether the written file has exactly the planned counts."""
        return self.after == self.planned

    @property
    def n_rows(self) -> int:
        """Number of rows of the written file, including those that are not counted."""
        return self.after.n + self.after.dropped

    @property
    def exit_code(self) -> int:
        """0, or 1 if the file is not as planned."""
        return 0 if self.as_planned else 1

    def _say_bias(self, output: str | None) -> list[str]:
        """Describe how the largest |UB| changes, and the condition on the rows if there is one."""
        where = f"in {output}, as counted there" if output else "after it"
        return [
            (
                f"The largest |UB| was {ub_text(self.max_abs_ub_before)} in {self.base} and is "
                f"{ub_text(self.max_abs_ub_after)} {where}."
            ),
            *say_restricted(self.before.reading, self.base),
        ]

    def _measured(self) -> dict[str, Any]:
        return {
            "n_before": self.before.n,
            "n_after": self.after.n,
            "max_abs_ub_before": plain(self.max_abs_ub_before),
            "max_abs_ub_after": plain(self.max_abs_ub_after),
            "fingerprint_before": self.before.fingerprint,
            "fingerprint_after": self.after.fingerprint,
        }

    def _made(self) -> dict[str, Any]:
        said = list(self.sentences)
        return {"sentences": said, "version": self.version, "time": self.time}


def has_order(base: Source) -> bool:
    """Whether the rows of a table have the same places each time it is read.

    A view or a query may return them in another order. Rows of a database have no numbers at all.
    """
    is_fixed = base.sql is None and base.kind not in ("duckdb", "relation")
    return is_fixed or base.kind in DATABASES


def with_order(base: Source, rows: pa.Table) -> Source:
    """Return the rows that were read from a table in place of it."""
    return replace(base, kind="frame", data=rows, sql=None, where=None, table=None)


def choose_removed(engine: Engine, change: PlannedChange, seed: int) -> list[LocatedRow]:
    """Choose the rows of the base that a plan deletes."""
    if not change.delete.n:
        return []
    return choose_located(engine, change.base, change.request, change.delete, seed)[1]


def choose_located(
    engine: Engine, source: Source, request: CountRequest, take: Counts, seed: int
) -> tuple[pa.Table, list[LocatedRow]]:
    """Choose rows of a source; return them, and the place, md5 and cell of each."""
    found = engine.rows(source, request, take, seed, located=True)
    place, md5 = (column.to_pylist() for column in found.columns[-2:])
    values = [
        tuple(axis.values[code] for axis, code in zip(take.axes, codes, strict=True))
        for codes in take.codes.tolist()
    ]
    cells = [values[i] for i in cells_of_rows(found, take)]
    return found.select(found.column_names[:-2]), list(zip(place, md5, cells, strict=True))


def _restricted(where: Condition | None) -> str:
    return "all rows" if where is None else f"the rows where {where.one_line}"


def difference(found: Counts, expected: Counts) -> str:
    """Describe how counts differ: the number of rows, and the first cell that differs."""
    rows = f"{found.n:,} rows instead of {expected.n:,}"
    here, there = found.cells(), expected.cells()
    for cell in {**there, **here}:
        a, b = here.get(cell, 0), there.get(cell, 0)
        if a != b:
            return f"{rows}, and {expected.pattern(cell)} has {a:,} instead of {b:,}"
    return rows


def say_restricted(reading: Reading, base: str) -> list[str]:
    """Describe the condition that restricts a repaired table, if there is one.

    >>> say_restricted(Reading(where=Condition("age > 30")), "people.csv")
    ['Only rows where age > 30 are in the result; the other rows of people.csv are left out.']
    """
    if reading.where is None:
        return []
    others = f"the other rows of {base} are left out"
    return [f"Only rows where {reading.where.one_line} are in the result; {others}."]


def cell_table(counted: Mapping[str, Counts]) -> FlatTable:
    """Put several counts over the same columns side by side, with a column for each.

    >>> before = Counts.from_mapping({("w", "yes"): 3}, sensitive=["sex"], label="hired")
    >>> after = before + Counts.from_mapping({("w", "no"): 1}, sensitive=["sex"], label="hired")
    >>> cell_table({"before": before, "after": after})
    (['sex', 'hired', 'before', 'after'], [['w', 'yes', 3, 3], ['w', 'no', 0, 1]])
    """
    cells = {name: counts.cells() for name, counts in counted.items()}
    axes = next(iter(counted.values())).axes
    names = column_names(list(counted), [axis.name for axis in axes])
    every = dict.fromkeys(cell for found in cells.values() for cell in found)
    rows = [
        [*map(plain, cell), *(found.get(cell, 0) for found in cells.values())] for cell in every
    ]
    return [*names, *counted], rows
