"""Plans made by hand: rows added to and deleted from patterns, measured but not optimised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.plain import rows_text
from equipoise.plans.certificate import certify
from equipoise.plans.moves import Kind, Move
from equipoise.plans.patterns import group_of
from equipoise.plans.plan import SCENARIO, Plan, moves_as_counts
from equipoise.plans.problem import Problem, pose
from equipoise.plans.request import PlanRequest
from equipoise.plans.sentences import explain_moves, explain_scenario
from equipoise.plans.solution import Solution
from equipoise.validate import a_number
from equipoise.values import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from equipoise.counts import Counts
    from equipoise.plans.cells import Real, Whole

Cell: TypeAlias = tuple[int, ...]
"""The codes of a cell."""
MOST_ROWS = 10**12
"""Maximum number of rows of one move."""


def make_scenario(
    counts: Counts,
    add: Mapping[str, int] | Iterable[tuple[str, int]] = (),
    delete: Mapping[str, int] | Iterable[tuple[str, int]] = (),
    options: Mapping[str, Any] | None = None,
) -> Plan:
    """Make the plan that adds and deletes the given rows, and measure it.

    ``options`` are those of a request. If they name no tolerance, the plan has none; what they do
    not limit is free.
    """
    given = {name: value for name, value in (options or {}).items() if value is not None}
    request = PlanRequest(**{"allow": "both", "labels": "free", **given})
    listed: dict[Kind, Any] = {"add": add, "delete": delete}
    moves = [
        (_read(kind, pattern, rows, counts, request), int(rows))
        for kind, some in listed.items()
        for pattern, rows in (some.items() if isinstance(some, Mapping) else some)
    ]
    if not moves:
        raise InputError(
            "a scenario needs at least one move: rows to add to a pattern, or to delete from one."
        )
    added, gone = _cells(moves, "add"), _cells(moves, "delete")
    _refuse_conflicts(counts, added, gone)
    problem = pose(counts, request, added=_as_counts(counts, added))
    rows = _rows_after(problem, added, gone)
    has_tolerance = "tolerance" in given
    certificate = certify(problem, _as_solution(problem, rows), rows, has_tolerance=has_tolerance)
    reasons = explain_moves(problem, rows)
    kept = [move for move, _ in moves]
    return Plan(
        counts=counts,
        request=request,
        add=moves_as_counts(problem, (rows - problem.have).clip(0)),
        delete=moves_as_counts(problem, (problem.have - rows).clip(0)),
        cost=problem.cells.total_cost(rows),
        bound=0.0,
        method=SCENARIO,
        timed_out=False,
        certificate=certificate,
        explanation=explain_scenario(problem, rows, certificate, kept, reasons),
        reasons=reasons,
    )


def _read(kind: Kind, pattern: Any, rows: Any, counts: Counts, request: PlanRequest) -> Move:
    """Read a move, and refuse one that cannot be made."""
    text = str(pattern)
    a_number(f"the rows of “{kind} {text}”", rows, whole=True, at_least=1, at_most=MOST_ROWS)
    if MISSING in Group.parse(text).values() and not request.plan_missing:
        raise InputError(
            f"“{kind} {text}” names rows with a missing value, which stay unchanged; use "
            "`plan_missing=True` to plan for them."
        )
    move = Move.of(kind, text, counts, missing=request.plan_missing)
    there = int(move.parts.sum())
    if kind == "delete" and rows > there:
        whole = counts.of(move.pattern)
        but = "" if whole == there else f", without {whole - there:,} with a missing value"
        raise InputError(
            f"“delete {text}” deletes {rows_text(int(rows))}, but the table has only {there:,} of "
            f"them{but}; delete at most {there:,}."
        )
    return move


def _cells(moves: Sequence[tuple[Move, int]], kind: Kind) -> dict[Cell, int]:
    """The whole rows of each cell that all moves of a kind come to."""
    found: dict[Cell, int] = {}
    for move, rows in moves:
        if move.kind != kind:
            continue
        for cell, part in zip(move.codes.tolist(), move.whole(rows).tolist(), strict=True):
            if part:
                found[tuple(cell)] = found.get(tuple(cell), 0) + part
    return found


def _refuse_conflicts(counts: Counts, added: Mapping[Cell, int], gone: Mapping[Cell, int]) -> None:
    both = next((cell for cell in added if cell in gone), None)
    if both is not None:
        raise InputError(
            f"the moves contradict each other: {rows_text(added[both])} of "
            f"{group_of(counts.axes, both)} would be added and {gone[both]:,} deleted; name cells "
            "that do not overlap, or only the difference."
        )
    have = dict(zip(map(tuple, counts.codes.tolist()), counts.rows.tolist(), strict=True))
    over = next((cell for cell, rows in gone.items() if rows > have[cell]), None)
    if over is not None:
        raise InputError(
            f"together, the moves delete {rows_text(gone[over])} of {group_of(counts.axes, over)}, "
            f"but the table has only {have[over]:,}; delete fewer, or name cells that do not overlap."
        )


def _as_counts(counts: Counts, cells: Mapping[Cell, int]) -> Counts:
    codes = np.array(list(cells), np.int32).reshape(-1, len(counts.axes))
    return replace(counts, codes=codes, rows=np.array(list(cells.values()), np.int64))


def _rows_after(problem: Problem, added: Mapping[Cell, int], gone: Mapping[Cell, int]) -> Whole:
    rows = problem.have.copy()
    place = {tuple(line): i for i, line in enumerate(problem.codes.tolist())}
    for cells, sign in ((added, 1), (gone, -1)):
        for (*group, label), n in cells.items():
            rows[place[tuple(group)], label] += sign * n
    if not rows.sum():
        raise InputError(
            "the scenario deletes every row, so nothing is left to measure; delete fewer."
        )
    return rows


def _as_solution(problem: Problem, rows: Whole) -> Solution:
    """The scenario as a certificate takes it, with the label frequencies to hold it against."""
    request = problem.request
    base: Real = problem.base
    is_free = request.labels == "free" and request.label_drift is None
    if is_free and problem.reference == "new" and not request.tolerance:
        base = rows.sum(axis=0) / rows.sum()  # it comes with the frequencies it leads to
    # Nothing was rounded: at zero tolerance each group is held to its target at its own size.
    held = None if request.tolerance else problem.judged_rows(rows).sum(axis=1).astype(float)
    return Solution(rows, 0.0, "solver", base, tolerance=request.tolerance, held=held)
