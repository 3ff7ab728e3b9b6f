"""Ways to treat missing values, held against the truth: values that are known are taken away."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.counts import CountRequest
from equipoise.errors import ColumnNotFound, InputError
from equipoise.evaluation.missing.imputation import METHODS, Method, choose_methods
from equipoise.evaluation.missing.mechanisms import MECHANISMS, TIMES, Loss, Mechanism, loss_of
from equipoise.evaluation.missing.results import (
    MIN_COUNT,
    SHOWN,
    Estimate,
    MethodComparison,
    away,
    direction,
    frequencies,
    group_biases,
    line_up,
    measured,
)
from equipoise.evaluation.missing.rows import (
    ABSENT,
    Floats,
    Rows,
    drawn,
    read_rows,
    require_rows_of_people,
    require_settings,
    require_values,
    with_label_policy,
)
from equipoise.lattice import Group
from equipoise.measures.display import UNKNOWN, number, percent
from equipoise.plain import Grid
from equipoise.progress import Reporter, silent
from equipoise.validate import at_least, between, one_of
from equipoise.values import MISSING, Value, plain

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.measures.measurement import Measurement

MAX_ROWS = 10_000


def simulate_missing(
    table: pa.Table,
    request: CountRequest,
    *,
    column: str | None = None,
    share: float = 0.2,
    mechanism: Mechanism = "random",
    repeats: int = 5,
    methods: str | Iterable[str] = "all",
    min_count: int = MIN_COUNT,
    seed: int = 0,
    max_rows: int | None = MAX_ROWS,
    progress: Reporter = silent,
) -> MissingSimulation:
    """Take values away that are known, and see how far each method is from the truth.

    Rows that lack a counted value are set aside, and of the others ``max_rows`` are drawn once.
    Rows without a label are treated as the request says: set aside too, refused, or kept as rows
    with a label of their own.
    The intervals are about which values were taken away from them, not about other rows.

    Parameters
    ----------
    table
        The rows, with all columns that may tell what is missing.
    request
        What is counted, and which texts mean a missing value.
    column
        A sensitive attribute, or the label; the first sensitive attribute unless given.
    share
        From how many of the rows its value is taken away.
    mechanism
        ``"random"``: completely at random. ``"by_label"``: rows of the second most frequent
        label lose the value three times as often as others. ``"by_value"``: so do rows of the
        column's own second most frequent value, which no method can see.
    repeats
        How often this is done.
    methods
        Names of :data:`~equipoise.evaluation.missing.imputation.METHODS`.
    min_count
        The least rows of a group, in truth and under every method.
    seed
        Of all that chance decides.
    max_rows
        At most so many rows are used; all for ``None``.
    progress
        Is told what is at work, and the share of all that is done.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table(
    ...     {"sex": ["m", "m", "m", "w", "w"] * 40, "y": ["1", "1", "0", "0", "0"] * 40}
    ... )
    >>> request = CountRequest(sensitive=("sex",), label="y")
    >>> found = simulate_missing(people, request, mechanism="by_value", methods=["drop", "group"])
    >>> found.taken, str(found.chosen)
    (40, 'sex=w')
    >>> found["group"].mean_abs_error.mean < found["drop"].mean_abs_error.mean
    True
    """
    require_rows_of_people(request)
    require_settings(min_count, seed, max_rows)
    one_of("mechanism", mechanism, MECHANISMS)
    between("share", share, 0, 1)
    at_least("repeats", repeats, 1, whole=True)
    repeats, min_count, seed = int(repeats), int(min_count), int(seed)
    chosen = choose_methods(methods)
    everything, without = with_label_policy(read_rows(table, request))
    position = _position(request, column)
    _require_known_label(everything, position)
    require_values(everything)
    known = np.flatnonzero(~everything.absent.any(axis=1))
    rows = everything.take(drawn(known, max_rows, seed))
    require_values(rows)
    loss = loss_of(rows, position, share, mechanism)
    runs = _run(rows, position, loss, chosen, repeats, min_count, seed, progress)
    labels = rows.values[-1]
    every = [runs.truth, *(table for tables in runs.tables for table in tables)]
    lined = line_up(every, labels)
    true, ub = lined.ub[0], lined.ub[1:].reshape(repeats, len(chosen), *lined.ub.shape[1:])
    means = {m.name: ub[:, i].mean(axis=0) for i, m in enumerate(chosen)}
    return MissingSimulation(
        request=rows.request,
        labels=labels,
        groups=group_biases(lined, labels, lined.rows[0], true, means),
        n=len(rows.codes),
        table_rows=len(table),
        incomplete=len(everything.codes) - len(known),
        without_label=without,
        min_count=min_count,
        looked_at=rows.others.names,
        left_out=rows.others.left_out,
        seed=seed,
        max_rows=max_rows,
        methods=tuple(
            _simulated(method, labels, true, ub[:, i], runs, i) for i, method in enumerate(chosen)
        ),
        column=request.columns[position],
        share=share,
        mechanism=mechanism,
        chosen=loss.group,
        taken=loss.often + loss.seldom,
        repeats=repeats,
    )


def _position(request: CountRequest, column: str | None) -> int:
    if column is None:
        return 0
    if column not in request.columns:
        raise ColumnNotFound(column, table="what is counted", columns=request.columns)
    return request.columns.index(column)


def _require_known_label(rows: Rows, position: int) -> None:
    if position == len(rows.values) - 1 and MISSING in rows.values[-1]:
        raise InputError(
            f"{rows.request.label!r} is to be taken away, so rows without it cannot have a label of "
            "their own; use --missing-label drop, or take another column away."
        )


class _Runs(NamedTuple):
    """The true table, and by repeat and method the tables and the share filled right."""

    truth: Measurement
    tables: list[list[Measurement]]
    right: list[list[float]]


def _run(
    rows: Rows,
    position: int,
    loss: Loss,
    methods: Sequence[Method],
    repeats: int,
    min_count: int,
    seed: int,
    progress: Reporter,
) -> _Runs:
    runs = _Runs(measured(rows, rows.codes, METHODS["drop"], min_count), [], [])
    for repeat in range(repeats):
        chance = np.random.default_rng([seed, 4, repeat])
        lost = loss.draw(chance)
        holed = rows.codes.copy()
        holed[lost, position] = ABSENT
        own, tables, right = int(chance.integers(2**31)), [], []
        for done, method in enumerate(methods):
            told = f"treating missing values: {method.name}, {repeat + 1} of {repeats}"
            progress(told, (repeat + done / len(methods)) / repeats)
            codes = method.codes(replace(rows, codes=holed), own)
            tables.append(measured(rows, codes, method, min_count))
            same = float((codes[lost, position] == rows.codes[lost, position]).mean())
            right.append(same if method.fill else math.nan)
        runs.tables.append(tables)
        runs.right.append(right)
    return runs


def _simulated(
    method: Method, labels: Sequence[Value], true: Floats, ub: Floats, runs: _Runs, place: int
) -> Simulated:
    errors = [found - true for found in ub]
    shares = np.mean([frequencies(tables[place], labels) for tables in runs.tables], axis=0)
    return Simulated(
        method=method.name,
        mean_error=Estimate.of([float(np.nanmean(e)) for e in errors]),
        mean_abs_error=Estimate.of([float(np.nanmean(np.abs(e))) for e in errors], least=0),
        largest_error=Estimate.of([float(np.nanmax(np.abs(e))) for e in errors], least=0),
        away_from_zero=Estimate.of([away(true, found) for found in ub]),
        right=math.fsum(right[place] for right in runs.right) / len(runs.right),
        label_frequencies=dict(zip(labels, shares.tolist(), strict=True)),
    )


# -------------------------------------------------------------------------------- result


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """How far one method is from the truth, over groups and labels and then over repeats.

    Attributes
    ----------
    method
        Its name.
    mean_error
        UB − true UB. Groups that lose make up for groups that gain, so it is near 0 even where
        single errors are not.
    mean_abs_error, largest_error
        The mean and the largest of its absolute value.
    away_from_zero
        The mean error away from 0; below 0 the method draws UB towards 0.
    right
        The share of the values taken away that were filled with the true one; nan if none are.
    label_frequencies
        The share of each label, the mean over repeats.
    """

    method: str
    mean_error: Estimate
    mean_abs_error: Estimate
    largest_error: Estimate
    away_from_zero: Estimate
    right: float
    label_frequencies: Mapping[Value, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        told = {k: v.to_dict() if isinstance(v, Estimate) else v for k, v in vars(self).items()}
        frequencies = {str(label): share for label, share in self.label_frequencies.items()}
        return {**told, "right": plain(self.right), "label_frequencies": frequencies}


@dataclass(frozen=True, eq=False, kw_only=True)
class MissingSimulation(MethodComparison):
    """How far each way to treat missing values is from the truth, where that is known.

    Attributes
    ----------
    methods
        How far each is off.
    column, share, mechanism
        What was taken away, from how many rows, and from whom.
    chosen
        The label or the value whose rows lose theirs more often, if any.
    taken
        How many rows lose their value, in each repeat.
    repeats
        How often values were taken away.
    """

    methods: tuple[Simulated, ...]
    column: str
    share: float
    mechanism: Mechanism
    chosen: Group | None
    taken: int
    repeats: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the methods, in the order asked for."""
        return tuple(simulated.method for simulated in self.methods)

    def __getitem__(self, name: str) -> Simulated:
        return next(simulated for simulated in self.methods if simulated.method == name)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, in sentences."""
        again = f"{self.repeats:,} times" if self.repeats > 1 else "Once"
        aside = f"; rows that lack one ({self.incomplete:,}) were set aside"
        left = aside if self.incomplete else ""
        taken = f"{self.taken:,} of them ({percent(self.taken / self.n)})"
        over = ", with 95% intervals over the repeats" if self.repeats > 1 else ""
        caution = (
            "Errors hold for values taken away in this way; those that are missing in truth may be "
            "missing in another."
        )
        return (
            f"{self._rows_used()}, all with their values{left}.",
            *self._without_label(),
            f"{again}, {self.column} was taken away from {taken}, {self._from_whom()}.",
            f"Errors are UB less the true UB, of {self._compared()}{over}.",
            *(self._told(simulated) for simulated in self.methods),
            *self._filled_by(),
            caution,
            *self.reading.sentences,
        )

    def _from_whom(self) -> str:
        if self.chosen is None:
            return "completely at random"
        what = "label" if self.mechanism == "by_label" else "value"
        return (
            f"from rows with {self.chosen}, the second most frequent {what}, {TIMES} times as often "
            "as from others"
        )

    def _told(self, simulated: Simulated) -> str:
        error, moved = simulated.mean_abs_error, simulated.away_from_zero
        sure = moved.low > 0 or moved.high < 0
        right = ""
        if not math.isnan(simulated.right):
            right = f"; {percent(simulated.right)} of the values it filled in are the true ones"
        return (
            f"{simulated.method} is off by {error.mean:.4f} on average{_between(error)} and by "
            f"{simulated.largest_error.mean:.3f} at most{direction(moved.mean) if sure else ''}{right}."
        )

    def methods_grid(self) -> Grid:
        """A line a method."""
        rows = tuple(
            (
                s.method,
                number(s.mean_error.mean, 4),
                f"{s.mean_abs_error.mean:.4f}",
                _interval(s.mean_abs_error),
                f"{s.largest_error.mean:.3f}",
                number(s.away_from_zero.mean, 4),
                _interval(s.away_from_zero),
                percent(s.right),
            )
            for s in self.methods
        )
        errors = ("mean error", "mean |error|", "95% interval", "largest |error|")
        headers = ("method", *errors, "away from 0", "95% interval", "filled right")
        return Grid(headers, rows, frozenset(range(1, len(headers))))

    def groups_grid(self, top: int = SHOWN) -> Grid:
        """UB under each method, of the groups and labels that are moved most."""
        return self._grid("truth", self.names, top)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        own = ("column", "share", "mechanism", "repeats")
        return {
            **self._to_dict("simulation", {name: getattr(self, name) for name in own}),
            "chosen": None if self.chosen is None else dict(self.chosen),
            "taken": self.taken,
            "methods": [simulated.to_dict() for simulated in self.methods],
        }


def _between(estimate: Estimate) -> str:
    return "" if math.isnan(estimate.low) else f" ({estimate.low:.4f} to {estimate.high:.4f})"


def _interval(estimate: Estimate) -> str:
    if math.isnan(estimate.low):
        return UNKNOWN
    return f"{number(estimate.low, 4)} … {number(estimate.high, 4)}"
