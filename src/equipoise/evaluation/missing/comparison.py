"""Imputation methods compared on a table: how far each moves Uniform Bias."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import CountRequest
from equipoise.errors import InputError
from equipoise.evaluation.missing.imputation import METHODS, Method, Settings
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
    Codes,
    Floats,
    Rows,
    drawn,
    read_rows,
    require_values,
    with_label_policy,
)
from equipoise.lattice import Group, format_value
from equipoise.measures.display import number, percent, whole
from equipoise.plain import Grid, counted, in_words
from equipoise.progress import Reporter, silent
from equipoise.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.measures.measurement import Measurement

_BASELINE = "drop"


def compare_missing(
    table: pa.Table,
    request: CountRequest,
    *,
    treat_label: bool = False,
    without_label: int | None = None,
    progress: Reporter = silent,
    **settings: Any,
) -> MissingValues:
    """Measure a table with missing values under each method of treating them.

    If the table is a sample, ``without_label`` is how many rows of the whole one have no label. The
    other settings are those of :class:`~equipoise.evaluation.missing.imputation.Settings`. Methods are
    compared with ``drop`` or, without it, with the first one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table(
    ...     {"sex": ["m", "w", "m", "w", None] * 20, "y": ["1", "1", "0", "0", "0"] * 20}
    ... )
    >>> request = CountRequest(sensitive=("sex",), label="y")
    >>> found = compare_missing(people, request, methods=["drop", "group"], min_count=1)
    >>> found["drop"].dropped, round(found["group"].largest_change, 3)
    (20, 0.25)
    >>> print(found.sentences[3])
    group keeps all rows and moves UB by at most 0.250 (sex=m, y=1: 0.000 to −0.250), by 0.2083 on \
    average.
    """
    asked = Settings.of(**settings)
    chosen = asked.methods
    if len(chosen) < 2:
        raise InputError(
            "a comparison needs at least two methods of treating missing values, and only "
            f"{chosen[0].name} was given; add another one to `methods`: {', '.join(METHODS)}."
        )
    everything, without = read_rows(table, request), 0
    if not treat_label:
        everything, without = with_label_policy(everything)
        without = without if without_label is None else without_label
    rows = everything.take(drawn(np.arange(len(everything.codes)), asked.max_rows, asked.seed))
    require_values(rows)
    _require_missing(rows, without)
    codes, tables = [], []
    for done, method in enumerate(chosen):
        progress(f"treating missing values: {method.name}", done / len(chosen))
        codes.append(method.codes(rows, asked.seed))
        tables.append(measured(rows, codes[-1], method, asked.min_count))
    labels = rows.values[-1]
    common = common_groups(tables, labels)
    base = next((i for i, m in enumerate(chosen) if m.name == _BASELINE), 0)
    by_name = {m.name: common.ub[i] for i, m in enumerate(chosen)}
    return MissingValues(
        **shared_fields(table, rows, without, asked),
        groups=group_biases(common, labels, base, by_name),
        incomplete=int(rows.absent.any(axis=1).sum()),
        methods=tuple(
            _treated(method, rows, codes[i], tables[i], common.ub[base], common.ub[i])
            for i, method in enumerate(chosen)
        ),
        baseline=chosen[base].name,
        missing_values=dict(zip(request.columns, rows.absent.sum(axis=0).tolist(), strict=True)),
    )


def _require_missing(rows: Rows, without_label: int) -> None:
    if rows.absent.any():
        return
    request = rows.request
    if without_label:
        raise InputError(
            f"no value of {in_words(list(request.sensitive))} is missing in {len(rows.codes):,} rows; "
            f"{without_label:,} have no label {request.label!r} and are treated as "
            f"`missing_label={request.missing_label!r}` says. To compare methods of treating missing "
            "labels, set `treat_label=True`."
        )
    suspects = rows.counts(rows.codes, "group").suspects()
    texts = [f"{value!r} in {name}" for name, found in suspects.items() for value in found]
    hint = f" (as perhaps {in_words(texts)})" if texts else ""
    raise InputError(
        f"no value of {in_words(list(request.columns))} is missing in {len(rows.codes):,} rows, so "
        f"there is nothing to compare; declare texts that mean a missing value with `na`{hint}, or "
        "remove values in a simulation."
    )


def _treated(
    method: Method, rows: Rows, codes: Codes, table: Measurement, base: Floats, ub: Floats
) -> Treated:
    change = np.abs(ub - base)
    return Treated(
        method=method.name,
        rows=table.counts.n,
        dropped=len(rows.codes) - table.counts.n,
        imputed=int((codes != rows.codes).any(axis=1).sum()),
        label_frequencies=dict(
            zip(rows.values[-1], frequencies(table, rows.values[-1]).tolist(), strict=True)
        ),
        largest_change=float(np.nanmax(change)),
        mean_change=float(np.nanmean(change)),
        away_from_zero=away(base, ub),
    )


# -------------------------------------------------------------------------------- result


@dataclass(frozen=True, kw_only=True)
class Treated:
    """The result of one method on a table.

    Attributes
    ----------
    method
        Its name.
    rows, dropped, imputed
        Rows measured, rows left out, and rows with an imputed value.
    label_frequencies
        Share of each label; the rest to 1 are rows without a label.
    largest_change, mean_change
        Largest and mean |UB − UB under the baseline| over all groups and labels compared.
    away_from_zero
        Mean change of UB away from 0; negative if UB came closer to 0.
    """

    method: str
    rows: int
    dropped: int
    imputed: int
    label_frequencies: Mapping[Value, float]
    largest_change: float
    mean_change: float
    away_from_zero: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        frequencies = {str(label): share for label, share in self.label_frequencies.items()}
        return {**vars(self), "label_frequencies": frequencies}


@dataclass(frozen=True, eq=False, kw_only=True)
class MissingValues(MethodComparison):
    """UB of a table with missing values, under each method of treating them.

    The true values are not known, so these are differences between methods, not errors.

    Attributes
    ----------
    baseline
        Method that the others are compared with.
    missing_values
        Number of rows without a value, for each counted column.
    """

    methods: tuple[Treated, ...]
    baseline: str
    missing_values: Mapping[str, int]

    def __getitem__(self, name: str) -> Treated:
        return self.methods[self.names.index(name)]

    @property
    def reference_name(self) -> str:
        """What the methods are compared with: the baseline."""
        return self.baseline

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, in sentences."""
        lacks = [f"{name} in {n:,}" for name, n in self.missing_values.items() if n]
        share = percent(self.incomplete / self.n)
        lacking = f"{self.incomplete:,} of them ({share}) have a missing value: {in_words(lacks)}"
        unknown = "The true values are not known, so these are differences between methods and not errors."
        return (
            f"{self._rows_used()}; {lacking}.",
            *self._without_label(),
            f"UB of {self._compared()} is compared with UB under {self.baseline}.",
            *(self._told(treated) for treated in self.methods),
            *self._frequencies(),
            *self._filled_by(),
            unknown,
            *self.reading.sentences,
        )

    def _told(self, treated: Treated) -> str:
        did = "keeps all rows"
        if treated.dropped:
            share = percent(treated.dropped / self.n)
            did = f"leaves out {counted(treated.dropped, 'row')} ({share})"
        elif treated.imputed:
            did = f"imputes values in {counted(treated.imputed, 'row')}"
        if treated.method == self.baseline:
            return f"{treated.method} {did}; the others are compared with it."
        if not treated.largest_change:
            return f"{treated.method} {did} and moves no UB."
        most = max(self.groups, key=lambda entry: abs(entry.ub[treated.method] - entry.reference))
        where = Group({**most.group, self.request.label: most.label})
        return (
            f"{treated.method} {did} and moves UB by at most {treated.largest_change:.3f} ({where}: "
            f"{number(most.reference)} to {number(most.ub[treated.method])}), by "
            f"{treated.mean_change:.4f} on average{direction(treated.away_from_zero)}."
        )

    def _frequencies(self) -> Iterable[str]:
        """Name the label whose share differs most between methods."""
        ranges = {
            label: [t.label_frequencies[label] for t in self.methods] for label in self.labels
        }
        label = max(self.labels, key=lambda name: max(ranges[name]) - min(ranges[name]))
        found = ranges[label]
        low, high = (self.names[found.index(f(found))] for f in (min, max))
        if max(found) > min(found):
            cell = Group({self.request.label: label})
            yield (
                f"The share of {cell} is between {percent(min(found))} ({low}) and "
                f"{percent(max(found))} ({high})."
            )

    def methods_grid(self) -> Grid:
        """The methods, one per line."""
        rows = tuple(
            (
                t.method,
                whole(t.rows),
                whole(t.dropped),
                whole(t.imputed),
                f"{t.largest_change:.3f}",
                f"{t.mean_change:.4f}",
                number(t.away_from_zero, 4),
                *(percent(t.label_frequencies[label]) for label in self.labels),
            )
            for t in self.methods
        )
        rows_of = ("rows", "left out", "imputed")
        changes = ("largest |change|", "mean |change|", "away from 0")
        shares = (f"{self.request.label}={format_value(label)}" for label in self.labels)
        headers = ("method", *rows_of, *changes, *shares)
        return Grid(headers, rows, frozenset(range(1, len(headers))))

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        return {
            **self._to_dict("comparison", {"baseline": self.baseline}),
            "missing_values": dict(self.missing_values),
            "methods": [treated.to_dict() for treated in self.methods],
        }
