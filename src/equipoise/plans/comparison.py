"""Plans for the same table, side by side."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError
from equipoise.lattice import Group, format_value
from equipoise.measures.display import number
from equipoise.plain import Grid, csv_text, in_words, rows_text
from equipoise.plans.plan import SCENARIO, Plan
from equipoise.plans.planned_biases import PlannedBiases, planned_biases
from equipoise.results import Drawable, FlatTable, column_names
from equipoise.values import Value, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from equipoise.counts import Counts

SCHEMA = "equipoise.comparison/1"
SHOWN = 20
"""Number of groups and of cells that the text shows."""
NAMED = 3
"""Number of cells that a sentence names."""
NOW = "now"


@dataclass(frozen=True)
class ComparedCell:
    """A cell that some plan changes: the rows that each adds, or deletes if they are negative."""

    group: Group
    label: Value
    before: int
    changes: tuple[int, ...]

    @property
    def pattern(self) -> str:
        """The cell in words."""
        return f"{self.group}, {format_value(self.label)}"

    def is_only(self, plan: int) -> bool:
        """Whether no other plan changes the cell in the same direction as one does."""
        own = self.changes[plan]
        return bool(own) and not any(
            own * other > 0 for i, other in enumerate(self.changes) if i != plan
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "group": {name: plain(value) for name, value in self.group.items()},
            "label": plain(self.label),
            "before": self.before,
            "changes": list(self.changes),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanComparison(Drawable):
    """Plans for the same table, side by side.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> drawn = eq.scenario(counts, add={"sex=w, outcome=hired": 10})
    >>> both = eq.compare({"best": eq.plan(counts), "by hand": drawn})
    >>> print(both.totals().text())
    plan     add  delete  rows after  cost  label drift  largest |UB|  where         request
    ───────  ───  ──────  ──────────  ────  ───────────  ────────────  ────────────  ─────────────────
    now                          600                            0.200  sex=w, hired
    best      45       0         645    45        0.000         0.000  sex=m, hired  zero bias reached
    by hand   10       0         610    10        0.011         0.092  sex=w, hired  no tolerance

    Attributes
    ----------
    names, plans
        The plans, and a name for each.
    """

    names: tuple[str, ...]
    plans: tuple[Plan, ...]

    @property
    def counts(self) -> Counts:
        """The table of all plans."""
        return self.plans[0].counts

    @property
    def heading(self) -> str:
        """One-line title."""
        return f"{len(self.plans)} plans for {rows_text(self.counts.n)}, side by side"

    @functools.cached_property
    def biases(self) -> PlannedBiases:
        """UB of every group and label now and after each plan."""
        tables = [plan.after() for plan in self.plans]
        return planned_biases(self.counts, tables, plan_missing=self._plans_missing)

    @property
    def _plans_missing(self) -> bool:
        return any(plan.request.plan_missing for plan in self.plans)

    @functools.cached_property
    def cells(self) -> tuple[ComparedCell, ...]:
        """The cells that some plan changes, those on which plans differ most first."""
        found: dict[tuple[Group, Value], list[int]] = {}
        before: dict[tuple[Group, Value], int] = {}
        for place, plan in enumerate(self.plans):
            for cell in plan.moves:
                key = (cell.group, cell.label)
                before[key] = cell.before
                changes = found.setdefault(key, [0] * len(self.plans))
                changes[place] = cell.add - cell.delete
        cells = [ComparedCell(*key, before[key], tuple(n)) for key, n in found.items()]
        return tuple(sorted(cells, key=lambda c: (min(c.changes) - max(c.changes), c.pattern)))

    def only(self, plan: int) -> tuple[ComparedCell, ...]:
        """The cells that only one of the plans adds to, or only it deletes from."""
        alone = [cell for cell in self.cells if cell.is_only(plan)]
        return tuple(sorted(alone, key=lambda c: -abs(c.changes[plan])))

    # -------------------------------------------------------------------------- in words

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the plans have in common, and what each does that the others do not."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        yield from self._extremes()
        same = [cell for cell in self.cells if len(set(cell.changes)) == 1]
        if same and len(self.plans) > 1:
            yield f"All plans make the same change to {_cells_text(len(same))}."
        for place, name in enumerate(self.names):
            if len(self.plans) > 1:
                yield self._alone(place, name)
        drawn = [
            f"“{name}”"
            for name, plan in zip(self.names, self.plans, strict=True)
            if plan.method == SCENARIO
        ]
        if drawn:
            made = "was" if len(drawn) == 1 else "were"
            yield f"{in_words(drawn)} {made} made by hand, not optimised."
        yield from self._cautions()

    def _extremes(self) -> Iterator[str]:
        if len(self.plans) < 2:
            return
        ub, best = self._least([plan.certificate.max_abs_ub_after for plan in self.plans])
        now = self.plans[0].certificate.max_abs_ub_before
        yield f"The largest |UB| is smallest after {best}: {ub:.3g}; now it is {now:.3g}."
        if self._is_priced_alike:
            cost, cheapest = self._least([plan.cost for plan in self.plans])
            yield f"The lowest cost is that of {cheapest}: {cost:,.6g}."

    def _least(self, values: Sequence[float]) -> tuple[float, str]:
        """The least of a number of each plan, and the plans that have it."""
        least = min(values)
        return least, in_words(
            [f"“{n}”" for n, v in zip(self.names, values, strict=True) if v == least]
        )

    def _alone(self, place: int, name: str) -> str:
        alone = self.only(place)
        if not alone:
            return f"“{name}” changes no cell that no other plan changes in the same direction."
        said = []
        for word, sign in (("adds", 1), ("deletes", -1)):
            some = [
                f"{rows_text(abs(c.changes[place]))} of {c.pattern}"
                for c in alone[:NAMED]
                if sign * c.changes[place] > 0
            ]
            said += [f"{word} {in_words(some)}"] * bool(some)
        left = len(alone[NAMED:])
        more = f"; and so on for {_cells_text(left)} more" if left else ""
        return f"Only “{name}” {' and '.join(said)}{more}."

    @property
    def _is_priced_alike(self) -> bool:
        prices = {(plan.request.cost_add, plan.request.cost_delete) for plan in self.plans}
        return len(prices) == 1

    def _cautions(self) -> Iterator[str]:
        if not self._is_priced_alike:
            yield "The plans have different costs of a row, so only their rows can be compared, not their costs."
        held = [
            f"“{name}”"
            for name, plan in zip(self.names, self.plans, strict=True)
            if plan.certificate.reference == "original" and plan.certificate.has_tolerance
        ]
        if held:
            keeps = "keeps" if len(held) == 1 else "keep"
            yield (
                f"{in_words(held)} {keeps} the tolerance against the original label frequencies; "
                "every UB here is against those of the repaired table."
            )
        if len({plan.request.plan_missing for plan in self.plans}) > 1:
            yield (
                "Some plans treat missing values as values and others leave such rows out; here every "
                "group is measured with them as values."
            )
        if not self.biases.is_complete:
            yield "The lattice is too large, so only the finest groups are measured."
        yield from self.counts.reading.sentences

    # -------------------------------------------------------------------------- as tables

    def totals(self) -> Grid:
        """A line for each plan: its rows, its cost, and what it leads to."""
        first = self.plans[0].certificate
        where = "" if first.worst_before is None else str(first.worst_before)
        n, now = f"{first.n_before:,}", f"{first.max_abs_ub_before:.3f}"
        rows = [(NOW, "", "", n, "", "", now, where, "")]
        for name, plan in zip(self.names, self.plans, strict=True):
            c = plan.certificate
            rows.append(
                (
                    name,
                    f"{plan.additions:,}",
                    f"{plan.deletions:,}",
                    f"{c.n_after:,}",
                    f"{plan.cost:,.6g}",
                    f"{c.label_drift:.3f}",
                    f"{c.max_abs_ub_after:.3f}",
                    "" if c.worst_after is None else str(c.worst_after),
                    _outcome(plan),
                )
            )
        headers = ("plan", "add", "delete", "rows after", "cost", "label drift", "largest |UB|")
        return Grid((*headers, "where", "request"), tuple(rows), frozenset(range(1, 7)))

    def grid(self, top: int | None = None) -> Grid:
        """UB of each group now and after each plan, the largest differences first."""
        rows = tuple(
            (str(r.group), format_value(r.label), number(r.before), *map(number, r.after))
            for r in self.biases.telling(top)
        )
        headers = ("UB of group", self.counts.label.name, NOW, *self.names)
        return Grid(headers, rows, frozenset(range(2, len(headers))))

    def changes(self, top: int | None = None) -> Grid:
        """The cells that change, with the rows that each plan adds or deletes."""
        rows = tuple(
            (str(c.group), format_value(c.label), f"{c.before:,}", *map(_signed, c.changes))
            for c in self.cells[:top]
        )
        headers = ("rows of group", self.counts.label.name, "before", *self.names)
        return Grid(headers, rows, frozenset(range(2, len(headers))))

    def text(self, top: int | None = SHOWN) -> str:
        """The comparison as text."""
        parts = ["\n".join([self.heading, *self.sentences]), self.totals().text()]
        for grid, n in (
            (self.grid(top), len(self.biases)),
            (self.changes(top), len(self.cells)),
        ):
            left = n - len(grid.rows)
            parts.append(grid.text() + (f"\n… and {left:,} more" if left else ""))
        return "\n\n".join(parts)

    def markdown(self, top: int | None = None) -> str:
        """The comparison as Markdown."""
        said = "\n".join(f"- {sentence}" for sentence in self._said())
        return "\n\n".join([said, *(grid.markdown() for grid in self._grids(top))])

    def _grids(self, top: int | None = None) -> list[Grid]:
        return [self.totals(), self.grid(top), self.changes(top)]

    def to_csv(self, top: int | None = None) -> str:
        """UB of each group and label now and after each plan as CSV, in full precision."""
        names, rows = self._table()
        return csv_text(names, list(rows)[:top])

    def _table(self) -> FlatTable:
        own = (NOW, *self.names)
        data = column_names(own, [a.name for a in self.counts.axes])
        attributes = [a.name for a in self.counts.sensitive]
        rows = [
            [
                *(plain(r.group[a]) if a in r.group else "*" for a in attributes),
                plain(r.label),
                *(plain(ub) for ub in (r.before, *r.after)),
            ]
            for r in self.biases.rows
        ]
        return [*data, *own], rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON."""
        return {
            "schema": SCHEMA,
            "version": self.version,
            "time": self.time,
            "names": list(self.names),
            "fingerprint": self.counts.fingerprint,
            "n": self.plans[0].certificate.n_before,
            "max_abs_ub": self.plans[0].certificate.max_abs_ub_before,
            "plans": [self._described(place) for place in range(len(self.plans))],
            "groups": [row.to_dict() for row in self.biases.rows],
            "cells": [cell.to_dict() for cell in self.cells],
            "sentences": list(self.sentences),
        }

    def _described(self, place: int) -> dict[str, Any]:
        plan = self.plans[place]
        c = plan.certificate
        return {
            "name": self.names[place],
            "method": plan.method,
            "source": plan.source,
            "created": plan.time,
            "additions": plan.additions,
            "deletions": plan.deletions,
            "n_after": c.n_after,
            "cost": plan.cost,
            "label_drift": c.label_drift,
            "max_abs_ub": c.max_abs_ub_after,
            "worst": None if c.worst_after is None else c.worst_after.to_dict(),
            "tolerance": c.tolerance if c.has_tolerance else None,
            "reached": c.reached,
            "only": [cell.to_dict() for cell in self.only(place)],
        }

    def __repr__(self) -> str:
        return f"<PlanComparison of {in_words(self.names)}>"

    __str__ = __repr__  # printing stays short; :meth:`text` has everything


def compare_plans(plans: Mapping[str, Plan] | Sequence[tuple[str, Plan]]) -> PlanComparison:
    """Put named plans for the same counts side by side."""
    pairs = list(plans.items() if isinstance(plans, Mapping) else plans)
    if not pairs:
        raise InputError("there is no plan to compare; name at least one.")
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1 or name == NOW:
            taken = f"stands for the table as it is {NOW}" if name == NOW else "is given twice"
            raise InputError(f"the name {name!r} {taken}; give each plan a name of its own.")
    first_name, first = pairs[0]
    for name, plan in pairs[1:]:
        if plan.counts.fingerprint != first.counts.fingerprint:
            raise InputError(
                f"{first_name} and {name} are plans for different counts: {_told(first)}, and "
                f"{_told(plan)}; compare plans that were made for the same table and columns."
            )
    return PlanComparison(names=tuple(names), plans=tuple(plan for _, plan in pairs))


def _told(plan: Plan) -> str:
    counts = plan.counts
    columns = ", ".join(axis.name for axis in counts.axes)
    return f"{rows_text(counts.n)} by {columns} (fingerprint {counts.fingerprint[:12]})"


def _outcome(plan: Plan) -> str:
    c = plan.certificate
    if not c.has_tolerance:
        return "no tolerance" if c.reached else "a limit is BROKEN"
    goal = f"{c.tolerance:g}" if c.tolerance else "zero bias"
    return f"{goal} {'reached' if c.reached else 'NOT reached'}"


def _signed(n: int) -> str:
    return f"{n:+,}".replace("-", "−") if n else ""


def _cells_text(n: int) -> str:
    return f"{n:,} cell{'' if n == 1 else 's'}"
