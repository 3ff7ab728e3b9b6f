"""HiGHS, with standard output kept for results, one thread, and work counted instead of timed.

A :class:`LinearModel` is built once and solved again after changes: HiGHS starts from the basis of the
solution before. HiGHS writes stray lines past Python, straight to file descriptor 1, where they
would be in the middle of a result that is piped on.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.plans.cells import Real

Status: TypeAlias = Literal["optimal", "infeasible", "limit", "unknown"]

SEED = 0
EXACT = 1e-7
"""How far HiGHS may exceed a constraint. With 1e-9 it has returned wrong optima."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What HiGHS found: the columns, or None, their cost, and a lower bound of any cost.

    An infeasible model has an infinite bound. ``duals`` and ``reduced`` are the prices of the rows
    and columns of a model without integers.
    """

    status: Status
    columns: Real | None = None
    cost: float = math.inf
    bound: float = -math.inf
    duals: Real | None = None
    reduced: Real | None = None
    pivots: int = 0  # steps of the simplex method, which the time that it takes is in proportion to

    @property
    def optimal(self) -> bool:
        """Whether the model is solved."""
        return self.status == "optimal"


class LinearModel:
    """A linear model, possibly with whole numbers: least cost, bounds on columns and on rows.

    The cost must be bounded from below by the bounds of the columns, which may be infinite.

    >>> model = LinearModel([1.0, 2.0], low=[0, 0], high=[9, 9])
    >>> model.add_rows([0, 0], [0, 1], [2.0, 3.0], low=[7.0], high=[np.inf])
    >>> model.solve().columns.tolist()
    [3.5, 0.0]
    >>> model.whole([0, 1])
    >>> model.solve().cost
    4.0
    """

    def __init__(self, cost: Any, *, low: Any, high: Any) -> None:
        import highspy

        cost = np.asarray(cost, float)
        self.width, self.height, self.integer = len(cost), 0, False
        solver: Any = highspy.Highs  # its stubs lack some of what it can do
        self._highs = solver()
        for name, value in _FIXED.items():
            self._highs.setOptionValue(name, value)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.width, 0
        lp.col_cost_ = cost
        shape = cost.shape
        lp.col_lower_ = np.ascontiguousarray(np.broadcast_to(np.asarray(low, float), shape))
        lp.col_upper_ = np.ascontiguousarray(np.broadcast_to(np.asarray(high, float), shape))
        self._highs.passModel(lp)

    def whole(self, columns: Any, *, real: bool = False) -> None:
        """Let columns be whole numbers, or real ones again."""
        import highspy

        kind = highspy.HighsVarType
        which = np.asarray(columns, np.int32)
        self.integer = not real
        values = np.array([kind.kContinuous if real else kind.kInteger] * len(which))
        self._highs.changeColsIntegrality(len(which), which, values)

    def add_rows(self, i: Any, j: Any, value: Any, *, low: Any, high: Any) -> None:
        """Add constraints by their entries (row, column, value) and bounds.

        Rows are numbered from 0 among those that are added; entries of the same place are summed.
        """
        low, high = np.asarray(low, float), np.asarray(high, float)
        starts, columns, values = _by_row(i, j, value, len(low), self.width)
        self._highs.addRows(len(low), low, high, len(columns), starts, columns, values)
        self.height += len(low)

    def drop_rows(self, first: int) -> None:
        """Remove the rows from a number on."""
        gone = np.arange(first, self.height, dtype=np.int32)
        self._highs.deleteRows(len(gone), gone)
        self.height = first

    def bound_rows(self, rows: Any, low: Any, high: Any) -> None:
        """Change the bounds of rows."""
        which, low, high = _ranges(rows, low, high)
        self._highs.changeRowsBounds(len(which), which, low, high)

    def bound_columns(self, columns: Any, low: Any, high: Any) -> None:
        """Change the bounds of columns."""
        which, low, high = _ranges(columns, low, high)
        self._highs.changeColsBounds(len(which), which, low, high)

    def price(self, columns: Any, cost: Any) -> None:
        """Change the costs of columns."""
        which = np.asarray(columns, np.int32)
        cost = np.ascontiguousarray(np.broadcast_to(np.asarray(cost, float), which.shape))
        self._highs.changeColsCost(len(which), which, cost)

    def change(self, i: Any, j: Any, value: Any) -> None:
        """Change single coefficients; each must have been given when its row was added."""
        put = self._highs.changeCoeff
        for row, column, each in zip(i.tolist(), j.tolist(), value.tolist(), strict=True):
            put(row, column, each)

    def basis(self) -> Any:
        """The basis of the last solution, to resume from after rows were put in again."""
        return self._highs.getBasis()

    def resume(self, basis: Any) -> None:
        """Start the next solution from a basis, if it fits the model."""
        fits = len(basis.row_status) == self.height and len(basis.col_status) == self.width
        if basis.valid and fits:
            self._highs.setBasis(basis)

    def start(self, columns: Any, *, good: bool = False) -> None:
        """Give a solution of a model in whole numbers to start from.

        For a ``good`` one HiGHS looks for no better one except by branching, which is also where
        it looks at the clock.
        """
        import highspy

        if good:
            self._highs.setOptionValue("mip_heuristic_effort", 0.0)

        given = highspy.HighsSolution()
        given.col_value = np.asarray(columns, float).tolist()
        self._highs.setSolution(given)

    def solve(
        self,
        *,
        time_limit: float = math.inf,
        gap: float = 0.0,
        nodes: int | None = None,
        iterations: int | None = None,
        presolve: bool = True,
        primal: bool = False,
    ) -> Answer:
        """Solve the model, from the last solution if it has no whole numbers.

        ``gap`` is relative, and ``nodes`` and ``iterations`` limit the work, which makes the
        result the same on every machine; ``time_limit`` is for emergencies. The ``primal`` simplex
        method is the faster one if only costs have changed.
        """
        most = 2**31 - 1
        for name, value in (
            # HiGHS counts the seconds of all solutions of a model together.
            ("time_limit", self._highs.getRunTime() + max(time_limit, 0.001)),
            ("mip_rel_gap", gap),
            ("mip_max_nodes", most if nodes is None else nodes),
            ("simplex_iteration_limit", most if iterations is None else iterations),
            ("presolve", "choose" if presolve else "off"),
            ("simplex_strategy", 4 if primal else 1),
        ):
            self._highs.setOptionValue(name, value)
        quietly(self._highs.run)
        answer = self._read()
        if answer.status != "unknown" or self.integer:
            return answer
        self._highs.clearSolver()  # an old basis can lead a changed model astray
        quietly(self._highs.run)
        return self._read()

    def _read(self) -> Answer:
        highs = self._highs
        status, info = _status(highs.getModelStatus()), highs.getInfo()
        pivots = max(int(info.simplex_iteration_count), 0)
        if status == "infeasible":
            return Answer(status, bound=math.inf, pivots=pivots)
        found = highs.getSolution()
        held = found.value_valid and info.primal_solution_status == 2
        columns = (
            np.array(found.col_value) if held and (self.integer or status == "optimal") else None
        )
        cost = float(info.objective_function_value) if columns is not None else math.inf
        if self.integer:
            bound = float(info.mip_dual_bound)
            bound = bound if math.isfinite(bound) else -math.inf
            return Answer(status, columns, cost, bound, pivots=pivots)
        if status != "optimal" or not math.isfinite(cost):
            return Answer("unknown" if status == "optimal" else status, pivots=pivots)
        duals, reduced = np.array(found.row_dual), np.array(found.col_dual)
        return Answer(status, columns, cost, cost, duals, reduced, pivots)


_FIXED = {
    "output_flag": False,
    "log_to_console": False,
    "threads": 1,
    "random_seed": SEED,
    "mip_abs_gap": 1e-6,
    "primal_feasibility_tolerance": EXACT,
    "dual_feasibility_tolerance": EXACT,
    "mip_feasibility_tolerance": EXACT,
}


def _status(found: Any) -> Status:
    import highspy

    kind = highspy.HighsModelStatus
    if found in (kind.kOptimal, kind.kModelEmpty):
        return "optimal"
    if found in (kind.kInfeasible, kind.kUnboundedOrInfeasible):  # costs are bounded from below
        return "infeasible"
    limits = (kind.kTimeLimit, kind.kIterationLimit, kind.kSolutionLimit, kind.kInterrupt)
    return "limit" if found in limits else "unknown"


def _by_row(i: Any, j: Any, value: Any, height: int, width: int) -> tuple[Any, Any, Any]:
    """Entries as HiGHS reads them: where each row starts, the columns, and the values."""
    place = np.asarray(i, np.int64) * width + np.asarray(j, np.int64)
    value = np.asarray(value, float)
    order = np.argsort(place, kind="stable")
    place, value = place[order], value[order]
    fresh = np.ones(len(place), np.bool_)
    fresh[1:] = place[1:] != place[:-1]
    if not fresh.all():
        place, value = place[fresh], np.add.reduceat(value, np.flatnonzero(fresh))
    kept = value != 0
    place, value = place[kept], value[kept]
    starts = np.searchsorted(place, np.arange(height) * np.int64(width))
    return starts.astype(np.int32), (place % width).astype(np.int32), value


def _ranges(which: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    which = np.asarray(which, np.int32)
    low, high = (
        np.ascontiguousarray(np.broadcast_to(np.asarray(b, float), which.shape))
        for b in (low, high)
    )
    return which, low, high


def quietly(call: Callable[[], Any]) -> Any:
    """Call a solver.

    What it prints goes to standard error, for all threads until it is done. If either stream is
    closed, or ``sys.stdout`` is not a file, nothing is diverted.
    """
    with _DIVERSION:
        return call()


class _Diversion:
    """Standard output leads to standard error while any thread is inside."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.kept: int | None = None

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.kept = _divert()
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside and self.kept is not None:
                _restore(self.kept)


def _divert() -> int | None:
    """Lead file descriptor 1 to standard error, and give a copy of where it led."""
    try:
        sys.stdout.fileno()
        sys.stdout.flush()
        os.fstat(2)
        kept = os.dup(1)
    except (AttributeError, OSError, ValueError):  # none, closed, or only in memory
        return None
    os.dup2(2, 1)
    return kept


def _restore(kept: int) -> None:
    # Into a pipe C writes only when its buffer is full: what waits there must not come later.
    import ctypes

    ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None).fflush(None)
    os.dup2(kept, 1)
    os.close(kept)


_DIVERSION = _Diversion()
