"""Plans: additions and deletions per cell, with a certificate and an explanation."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import Counts
from equipoise.errors import CountsError, InputError, SourceNotFound
from equipoise.lattice import Group, format_value
from equipoise.plain import Grid, alike, csv_text
from equipoise.plans.budget import Step
from equipoise.plans.certificate import Certificate, certify
from equipoise.plans.judgement import within_a_row
from equipoise.plans.patterns import group_of
from equipoise.plans.problem import Problem, pose
from equipoise.plans.request import PlanRequest, request_from_dict
from equipoise.plans.solution import Solution, solve
from equipoise.results import Drawable, FlatTable, column_names
from equipoise.values import MISSING, Value, plain

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from equipoise.plans.cells import Real, Whole

SCHEMA = "equipoise.plan/1"
SCENARIO = "scenario"
"""The method of plans that were made by hand."""


@dataclass(frozen=True)
class PlanCell:
    """The changes of one cell."""

    group: Group
    label: Value
    before: int
    add: int
    delete: int

    @property
    def after(self) -> int:
        """Number of rows after the repair."""
        return self.before + self.add - self.delete

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "group": {name: plain(value) for name, value in self.group.items()},
            "label": plain(self.label),
            "before": self.before,
            "add": self.add,
            "delete": self.delete,
            "after": self.after,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan(Drawable):
    """The number of rows to add to and delete from every cell, with a certificate.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> plan = eq.plan(counts)
    >>> plan.additions, plan.deletions, plan.certificate.reached
    (45, 0, True)
    >>> [str(cell.group) for cell in plan.moves]
    ['sex=m', 'sex=w']

    Attributes
    ----------
    counts, request
        The table and the request that the plan was made for.
    add, delete
        Rows to add and to delete, per cell.
    cost, bound
        Cost of the plan, and a lower bound of the cost of any plan for the same request.
    method
        Method that found it: ``"closed form"``, ``"separated"``, ``"solver"`` or ``"centre"``; or
        ``"scenario"`` if it was made by hand, for which ``bound`` is 0.
    timed_out
        Whether the time limit ended the search before the plan was proved to be the cheapest.
    stopped
        What ended the search for the cheapest plan: ``"gap"`` (the requested gap is reached),
        ``"work"`` or ``"time"`` (a limit is reached), or None if no search is needed.
    certificate
        The measured result of the plan.
    explanation
        The plan in sentences, with the reasons for the largest changes.
    reasons
        A sentence on every group that changes, the largest changes first.
    steps
        How much of each priority the budget paid for.
    price
        The cost with the label frequencies kept and with them free.
    prices
        The cost of a plan without each of ``target_rates``, ``group_shares`` and
        ``at_least_each``, by name.
    optimum
        For an objective other than the cost: its name, the value of the plan, and a lower bound of
        the value of any plan. Then ``bound`` is about plans of this value.
    source
        Name of the table, if it has one.
    """

    counts: Counts
    request: PlanRequest
    add: Counts
    delete: Counts
    cost: float
    bound: float
    method: str
    timed_out: bool
    certificate: Certificate
    explanation: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    price: Mapping[str, float] | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    optimum: Mapping[str, Any] | None = None
    stopped: str | None = None
    source: str | None = None

    @property
    def additions(self) -> int:
        """Number of rows added."""
        return self.add.n

    @property
    def deletions(self) -> int:
        """Number of rows deleted."""
        return self.delete.n

    @property
    def reached(self) -> bool:
        """Whether the plan meets the request."""
        return self.certificate.reached

    @property
    def gap(self) -> float:
        """The share of the cost by which another plan could be cheaper."""
        return max(self.cost - self.bound, 0.0) / self.cost if self.cost > 0 else 0.0

    @property
    def exit_code(self) -> int:
        """The exit code of the command line: 0, or 1 if the tolerance is not reached."""
        return 0 if self.reached else 1

    @functools.cached_property
    def cells(self) -> tuple[PlanCell, ...]:
        """The cells with rows before or after the plan."""
        tables = [
            dict(zip(map(tuple, c.codes.tolist()), c.rows.tolist(), strict=True))
            for c in (self.counts, self.add, self.delete)
        ]
        found = []
        for line in sorted(set().union(*tables)):
            group = group_of(self.counts.sensitive, line[:-1])
            label = self.counts.label.values[line[-1]]
            found.append(PlanCell(group, label, *(rows.get(line, 0) for rows in tables)))
        return tuple(found)

    @functools.cached_property
    def lacking(self) -> dict[str, tuple[Group, ...]]:
        """The groups that a table of targets lacks, so that they have no target."""
        found = pose(self.counts, self.request).lacking
        return {each.option: (*each.ours, *each.zero) for each in found}

    @property
    def moves(self) -> tuple[PlanCell, ...]:
        """The cells that change, those with the most changes first."""
        changed = [c for c in self.cells if c.add or c.delete]
        return tuple(sorted(changed, key=lambda c: -(c.add + c.delete)))

    def after(self, counts: Counts | None = None, *, force: bool = False) -> Counts:
        """The counts after the plan.

        Parameters
        ----------
        counts
            Counts to apply the plan to. By default those it was made for.
        force
            Whether to apply it to other counts as well.
        """
        base = self.counts if counts is None else counts
        if counts is not None and not force and counts.fingerprint != self.counts.fingerprint:
            raise CountsError(
                f"this plan was made for other counts: {self.counts.n:,} rows with the fingerprint "
                f"{self.counts.fingerprint[:12]}, not {counts.n:,} with {counts.fingerprint[:12]}; "
                "plan again, or apply it anyway with `force=True`."
            )
        return base + self.add - self.delete

    @property
    def created(self) -> str:
        """Time at which the plan was made, the same as ``time``."""
        return self.time

    @property
    def sentences(self) -> tuple[str, ...]:
        """The plan in sentences, the same as ``explanation``."""
        return self.explanation

    def explain(self) -> str:
        """The plan in sentences."""
        return "\n".join(self.explanation)

    def grid(self, top: int | None = None) -> Grid:
        """The cells that change, as a table."""
        headers = ("group", self.counts.label.name, "before", "add", "delete", "after")
        rows = tuple(
            (
                str(c.group),
                format_value(c.label),
                f"{c.before:,}",
                f"{c.add:,}" if c.add else "",
                f"{c.delete:,}" if c.delete else "",
                f"{c.after:,}",
            )
            for c in self.moves[:top]
        )
        return Grid(headers, rows, frozenset({2, 3, 4, 5}))

    def text(self, top: int | None = 20) -> str:
        """The plan as text: the sentences, the largest changes, and the certificate."""
        moves, *others, certificate = self._grids(top)
        parts = [self.explain()]
        if moves.rows:
            left = len(self.moves) - len(moves.rows)
            parts.append(moves.text() + (f"\n… and {left:,} more" if left else ""))
        parts += [grid.text() for grid in others]
        return "\n\n".join([*parts, "Certificate\n" + certificate.text()])

    def markdown(self, top: int | None = None) -> str:
        """The plan as Markdown."""
        sentences = "\n".join(f"- {s}" for s in self.explanation)
        return "\n\n".join([sentences, *(grid.markdown() for grid in self._grids(top))])

    def to_csv(self, top: int | None = None) -> str:
        """The cells that change as CSV, one line each."""
        return csv_text(*self._table(top))

    def _table(self, top: int | None = None) -> FlatTable:
        own = ("before", "add", "delete", "after")
        names = column_names(own, [a.name for a in self.counts.axes])
        lines = [
            [*map(plain, (*c.group.values(), c.label)), *(getattr(c, name) for name in own)]
            for c in self.moves[:top]
        ]
        return [*names, *own], lines

    def __repr__(self) -> str:
        reached = "reaches" if self.reached else "does not reach"
        goal = f"; {reached} tolerance {self.request.tolerance:g}"
        if self.certificate.policy:
            goal = f"; {'keeps' if self.reached else 'does not keep'} the policy"
        return (
            f"<Plan: add {self.additions:,}, delete {self.deletions:,} of {self.counts.n:,} rows, "
            f"cost {self.cost:,g}{goal if self.certificate.has_tolerance else ', made by hand'}>"
        )

    __str__ = __repr__  # printing stays short; :meth:`text` has everything

    def _grids(self, top: int | None = None) -> list[Grid]:
        steps = [steps_grid(self.steps)] if self.steps else []
        return [self.grid(top), *steps, self.certificate.grid()]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; :meth:`from_dict` reads it back."""
        return {
            "schema": SCHEMA,
            "version": self.version,
            "created": self.time,
            "source": self.source,
            "additions": self.additions,
            "deletions": self.deletions,
            "cost": self.cost,
            "lower_bound": self.bound,
            "gap": self.gap,
            "method": self.method,
            "timed_out": self.timed_out,
            "stopped": self.stopped,
            "n_before": self.certificate.n_before,
            "n_after": self.certificate.n_after,
            "certificate": self.certificate.to_dict(),
            "explanation": list(self.explanation),
            "reasons": list(self.reasons),
            "steps": [s.to_dict() for s in self.steps],
            "price_of_labels": None if self.price is None else dict(self.price),
            "prices": dict(self.prices),
            "optimum": None if self.optimum is None else dict(self.optimum),
            "lacking": {name: [str(g) for g in groups] for name, groups in self.lacking.items()},
            "request": self.request.to_dict(),
            "fingerprint": self.counts.fingerprint,
            "cells": [c.to_dict() for c in self.cells],
            "counts": self.counts.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Read what :meth:`to_dict` wrote; a plan that was edited by hand is rejected."""
        schema = dict(data).get("schema") if hasattr(data, "keys") else None
        if schema != SCHEMA:
            raise InputError(
                f"this is not a plan of the schema {SCHEMA} but {schema!r}; make one with "
                "equipoise plan … -o plan.json."
            )
        try:
            return cls._from_dict(data)
        except InputError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"this plan is damaged ({error!r}); make it again.") from None

    @classmethod
    def _from_dict(cls, data: Mapping[str, Any]) -> Plan:
        counts = Counts.from_dict(data["counts"])
        parts = [field.name for field in fields(Step)]
        steps = tuple(Step(*(step[name] for name in parts)) for step in data["steps"])
        plan = cls(
            counts=counts,
            request=request_from_dict(data["request"]),
            add=_read_moves(counts, data["cells"], "add"),
            delete=_read_moves(counts, data["cells"], "delete"),
            cost=data["cost"],
            bound=data["lower_bound"],
            method=data["method"],
            timed_out=data["timed_out"],
            certificate=Certificate.from_dict(data["certificate"]),
            explanation=tuple(data["explanation"]),
            reasons=tuple(data.get("reasons", ())),
            steps=steps,
            price=data["price_of_labels"],
            prices=data.get("prices", {}),
            optimum=data.get("optimum"),
            stopped=data.get("stopped"),
            source=data.get("source"),
            time=data["created"],
            version=data["version"],
        )
        for part in _contradictions(plan, data):
            raise InputError(
                f"the {part} of this plan does not match the rest of it; the plan was edited after it was "
                "made, so make it again."
            )
        return plan

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read what :meth:`to_json` wrote."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"this is not a plan, because it is not JSON: {error}.") from None
        return cls.from_dict(data)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON; the file is written atomically."""
        from equipoise.atomic import write_text

        write_text(path, self.to_json(indent=2) + "\n")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan from a file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise SourceNotFound(
                f"there is no plan {path}; make one with equipoise plan … -o {path}."
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the plan {path} cannot be read: {error}.") from None
        try:
            return cls.from_json(text)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def _contradictions(plan: Plan, data: Mapping[str, Any]) -> Iterator[str]:
    """The parts of a written plan that differ from what its cells and counts lead to."""
    if data["fingerprint"] != plan.counts.fingerprint:
        yield "counts"
    if data["cells"] != [cell.to_dict() for cell in plan.cells]:
        yield "cells"
    problem = pose(plan.counts, plan.request, added=plan.add)
    rows = rows_after(problem, plan)
    written = plan.certificate
    # Only a plan made by hand can be without a tolerance.
    has_tolerance = written.has_tolerance or plan.method != SCENARIO or plan.request.tolerance > 0
    base, at = np.array(written.labels_planned), written.planned_at
    held = np.array(written.sizes) if written.sizes else _sizes_again(problem, plan, rows)
    solution = Solution(rows, plan.bound, "solver", base, tolerance=at, held=held)
    proved = certify(
        problem, solution, rows, cut_short=written.cut_short, has_tolerance=has_tolerance
    )
    if not written.sizes:
        proved = replace(proved, sizes=())
    if not alike(written.to_dict(), proved.to_dict()):
        yield "certificate"
    totals = {
        "additions": plan.additions,
        "deletions": plan.deletions,
        "n_before": proved.n_before,
        "n_after": proved.n_after,
        "cost": problem.cells.total_cost(rows),
    }
    for name, value in totals.items():
        if not alike(data[name], value):
            yield name.replace("_", " ")


def _sizes_again(problem: Problem, plan: Plan, rows: Whole) -> Real | None:
    """The sizes before rounding, for a plan of a version that did not write them."""
    written = plan.certificate
    exactly = plan.request.exact or plan.request.tolerance or not written.reached
    if exactly or written.off_after == 0 or plan.method == SCENARIO:
        return None
    found = solve(problem)
    alike = np.allclose(found.base, written.labels_planned, atol=1e-9)
    if found.held is not None and alike and within_a_row(problem, rows, found.base, found.held):
        return found.held
    raise InputError(
        "this plan for zero bias is of an earlier version, which rounded by another rule and did not "
        "write the sizes that it rounded; make it again."
    )


def rows_after(problem: Problem, plan: Plan) -> Whole:
    """The rows of each cell of a problem after a plan."""
    rows = problem.have.copy()
    place = {tuple(line): i for i, line in enumerate(problem.codes.tolist())}
    for counts, sign in ((plan.add, 1), (plan.delete, -1)):
        moves = counts.with_axes(problem.counts)
        for (*group, label), n in zip(moves.codes.tolist(), moves.rows.tolist(), strict=True):
            if tuple(group) in place:
                rows[place[tuple(group)], label] += sign * n
    return rows


def moves_as_counts(problem: Problem, rows: Whole) -> Counts:
    """Rows per cell as counts on the axes of the table."""
    lines, labels = np.nonzero(rows)
    codes = np.concatenate([problem.codes[lines], labels[:, None]], axis=1)
    return _on_axes(problem.counts, codes, rows[lines, labels])


def _read_moves(counts: Counts, cells: Any, name: str) -> Counts:
    codes, rows = [], []
    for cell in cells:
        if not cell[name]:
            continue
        if not isinstance(cell[name], int) or cell[name] < 0:
            raise InputError(
                f"numbers of rows in a plan must be whole numbers, not {name}: {cell[name]!r}."
            )
        values = [cell["group"][a.name] for a in counts.sensitive] + [cell["label"]]
        codes.append(
            [a.code(MISSING if v is None else v) for a, v in zip(counts.axes, values, strict=True)]
        )
        rows.append(cell[name])
    return _on_axes(counts, codes, rows)


def _on_axes(counts: Counts, codes: Any, rows: Any) -> Counts:
    return Counts(
        axes=counts.axes,
        codes=np.array(codes, np.int32).reshape(-1, len(counts.axes)),
        rows=np.array(rows, np.int64),
        bins=counts.bins,
        request=counts.request,
    )


def steps_grid(steps: tuple[Step, ...]) -> Grid:
    """The priorities as a table: how much of each the budget paid for."""
    rows = []
    for s in steps:
        needed, served, missing = (f"{n:,}" for n in (s.needed, s.served, s.missing))
        rows.append((s.pattern, needed, f"{s.cost:,g}", served, missing, f"{s.left:,g}"))
    headers = ("priority", "needed", "cost", "served", "missing", "budget left")
    return Grid(headers, tuple(rows), frozenset({1, 2, 3, 4, 5}))
