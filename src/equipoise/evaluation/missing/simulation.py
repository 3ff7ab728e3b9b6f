"""Imputation methods compared with the truth, by removing values that are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.counts import CountRequest
from equipoise.errors import ColumnNotFound, InputError
from equipoise.evaluation.intervals import Mean
from equipoise.evaluation.missing.imputation import METHODS, Method, Settings
from equipoise.evaluation.missing.mechanisms import MECHANISMS, TIMES, Loss, Mechanism, loss_of
from equipoise.evaluation.missing.results import (
    MethodComparison,
    away,
    common_groups,
    direction,
    frequencies,
    group_biases,
    measured,
    shared_fields,
)
from equipoise.evaluation.missing.rows import (
    ABSENT,
    Floats,
    Rows,
    drawn,
    read_rows,
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


def simulate_missing(
    table: pa.Table,
    request: CountRequest,
    *,
    column: str | None = None,
    share: float = 0.2,
    mechanism: Mechanism = "random",
    repeats: int = 5,
    max_rows: int | None = 10_000,
    without_label: int | None = None,
    incomplete: int | None = None,
    progress: Reporter = silent,
    **settings: Any,
) -> MissingSimulation:
    """Remove known values, and measure how far each method is from the truth.

    Rows with a missing counted value are set aside, and ``max_rows`` of the others are drawn once.
    Rows without a label are treated as the request says: set aside, refused, or kept with a
    separate label. The intervals reflect which values were removed, not which rows were drawn. If
    the table is a sample, ``without_label`` and ``incomplete`` are how many rows of the whole one have
    no label, and how many of the others were set aside.

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
    one_of("mechanism", mechanism, MECHANISMS)
    between("share", share, 0, 1)
    at_least("repeats", repeats, 1, whole=True)
    asked, repeats = Settings.of(max_rows=max_rows, **settings), int(repeats)
    everything, without = with_label_policy(read_rows(table, request))
    position = _position(request, column)
    _require_known_label(everything, position)
    require_values(everything)
    # Only rows with all counted values have a true UB to compare with.
    known = np.flatnonzero(~everything.absent.any(axis=1))
    rows = everything.take(drawn(known, max_rows, asked.seed))
    require_values(rows)
    loss = loss_of(rows, position, share, mechanism)
    runs = _run(rows, position, loss, asked, repeats, progress)
    labels = rows.values[-1]
    every = [runs.truth, *(table for tables in runs.tables for table in tables)]
    common = common_groups(every, labels)
    ub = common.ub[1:].reshape(repeats, len(asked.methods), *common.ub.shape[1:])
    means = {m.name: ub[:, i].mean(axis=0) for i, m in enumerate(asked.methods)}
    return MissingSimulation(
        **shared_fields(table, rows, without if without_label is None else without_label, asked),
        groups=group_biases(common, labels, 0, means),
        incomplete=len(everything.codes) - len(known) if incomplete is None else incomplete,
        methods=tuple(
            _simulated(method, labels, common.ub[0], ub[:, i], runs, i)
            for i, method in enumerate(asked.methods)
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
        raise ColumnNotFound(column, table="the counted columns", columns=request.columns)
    return request.columns.index(column)


def _require_known_label(rows: Rows, position: int) -> None:
    if position == len(rows.values) - 1 and MISSING in rows.values[-1]:
        raise InputError(
            f"values of {rows.request.label!r} are removed, so rows without it cannot have a "
            "separate label; set `missing_label='drop'`, or remove values of another `column`."
        )


class _Runs(NamedTuple):
    """The true table, and by repeat and method the tables and the share imputed correctly."""

    truth: Measurement
    tables: list[list[Measurement]]
    right: list[list[float]]


def _run(
    rows: Rows, position: int, loss: Loss, asked: Settings, repeats: int, progress: Reporter
) -> _Runs:
    runs = _Runs(measured(rows, rows.codes, METHODS["drop"], asked.min_count), [], [])
    for repeat in range(repeats):
        chance = np.random.default_rng([asked.seed, 4, repeat])
        lost = loss.draw(chance)
        holed = rows.codes.copy()
        holed[lost, position] = ABSENT
        # Every method gets the same seed, so that methods differ by what they do and not by chance.
        own, tables, right = int(chance.integers(2**31)), [], []
        for done, method in enumerate(asked.methods):
            told = f"treating missing values: {method.name}, {repeat + 1} of {repeats}"
            progress(told, (repeat + done / len(asked.methods)) / repeats)
            codes = method.codes(replace(rows, codes=holed), own)
            tables.append(measured(rows, codes, method, asked.min_count))
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
        mean_error=Mean.of([float(np.nanmean(e)) for e in errors]),
        mean_abs_error=Mean.of([float(np.nanmean(np.abs(e))) for e in errors], least=0),
        largest_error=Mean.of([float(np.nanmax(np.abs(e))) for e in errors], least=0),
        away_from_zero=Mean.of([away(true, found) for found in ub]),
        right=math.fsum(right[place] for right in runs.right) / len(runs.right),
        label_frequencies=dict(zip(labels, shares.tolist(), strict=True)),
    )


# -------------------------------------------------------------------------------- result


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """How far one method is from the truth: means over groups and labels, then over repeats.

    Attributes
    ----------
    method
        Its name.
    mean_error
        UB − true UB. Errors of opposite sign cancel, so it can be near 0 where single errors are
        large.
    mean_abs_error, largest_error
        Mean and largest absolute error.
    away_from_zero
        Mean error away from 0; negative if the method moves UB towards 0.
    right
        Share of the removed values that were imputed correctly; nan if none are imputed.
    label_frequencies
        Share of each label, as a mean over repeats.
    """

    method: str
    mean_error: Mean
    mean_abs_error: Mean
    largest_error: Mean
    away_from_zero: Mean
    right: float
    label_frequencies: Mapping[Value, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        told = {
            name: {k: plain(x) for k, x in v._asdict().items()} if isinstance(v, Mean) else v
            for name, v in vars(self).items()
        }
        frequencies = {str(label): share for label, share in self.label_frequencies.items()}
        return {**told, "right": plain(self.right), "label_frequencies": frequencies}


@dataclass(frozen=True, eq=False, kw_only=True)
class MissingSimulation(MethodComparison):
    """How far each method of treating missing values is from the known truth.

    Attributes
    ----------
    column, share, mechanism
        Column that loses values, share of the rows, and mechanism.
    chosen
        Label or value whose rows lose theirs more often, if any.
    taken
        Number of rows that lose their value in each repeat.
    repeats
        Number of repeats.
    """

    methods: tuple[Simulated, ...]
    column: str
    share: float
    mechanism: Mechanism
    chosen: Group | None
    taken: int
    repeats: int

    def __getitem__(self, name: str) -> Simulated:
        return self.methods[self.names.index(name)]

    @property
    def reference_name(self) -> str:
        """What the methods are compared with."""
        return "truth"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, in sentences."""
        again = f"{self.repeats:,} times" if self.repeats > 1 else "Once"
        aside = f"; rows with a missing value ({self.incomplete:,}) were set aside"
        left = aside if self.incomplete else ""
        taken = f"{self.taken:,} of them ({percent(self.taken / self.n)})"
        over = ", with 95% intervals over the repeats" if self.repeats > 1 else ""
        caution = (
            "The errors hold for values removed in this way; values that are really missing may be "
            "missing for other reasons."
        )
        return (
            f"{self._rows_used()}, all without missing values{left}.",
            *self._without_label(),
            f"{again}, {self.column} was removed from {taken}, {self._from_whom()}.",
            f"Errors are UB minus the true UB, of {self._compared()}{over}.",
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
            right = f"; {percent(simulated.right)} of the values it imputed are correct"
        return (
            f"{simulated.method} is off by {error.mean:.4f} on average{_between(error)} and by "
            f"{simulated.largest_error.mean:.3f} at most{direction(moved.mean) if sure else ''}{right}."
        )

    def methods_grid(self) -> Grid:
        """The methods, one per line."""
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
        headers = ("method", *errors, "away from 0", "95% interval", "imputed correctly")
        return Grid(headers, rows, frozenset(range(1, len(headers))))

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        own = ("column", "share", "mechanism", "repeats")
        return {
            **self._to_dict("simulation", {name: getattr(self, name) for name in own}),
            "chosen": None if self.chosen is None else dict(self.chosen),
            "taken": self.taken,
            "methods": [simulated.to_dict() for simulated in self.methods],
        }


def _between(estimate: Mean) -> str:
    return "" if math.isnan(estimate.low) else f" ({estimate.low:.4f} to {estimate.high:.4f})"


def _interval(estimate: Mean) -> str:
    if math.isnan(estimate.low):
        return UNKNOWN
    return f"{number(estimate.low, 4)} … {number(estimate.high, 4)}"
