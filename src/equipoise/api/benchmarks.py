"""Read tables of targets, such as a census: label rates of groups, and shares of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.api.measurement import count
from equipoise.api.tables import name_of, take_engine
from equipoise.counts import Counts
from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.plain import in_words
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    from equipoise.plans.request import PlanRequest

_ALL = "all rows"  # stands for a label in a table that has none


def with_benchmarks(
    request: PlanRequest, counts: Counts, counting: Mapping[str, Any]
) -> PlanRequest:
    """The request with its tables of targets read, by the columns of the counted table."""
    from equipoise.plans.benchmark import TargetRates, TargetShares

    rates, shares = request.target_rates, request.target_shares
    weight = request.target_count
    if weight is not None and rates is None and shares is None:
        raise InputError(
            "`target_count` is a column of `target_rates` or `target_shares`; give one of them."
        )
    how = {k: counting[k] for k in ("na", "engine", "threads", "memory") if k in counting}
    if rates is not None and not isinstance(rates, TargetRates):
        table = _counted(rates, counts, weight, how, labelled=True)
        rates = TargetRates(tuple(_rates(table)), name_of(rates))
    if shares is not None and not isinstance(shares, TargetShares):
        table = _counted(shares, counts, weight, how, labelled=False)
        shares = TargetShares(tuple(_shares(table)), name_of(shares))
    return request.but(target_rates=rates, target_shares=shares, target_count=None)


def _counted(
    data: Any, counts: Counts, weight: str | None, how: dict[str, Any], *, labelled: bool
) -> Counts:
    """Count another table by the attributes of ours that it has, and by the label."""
    if isinstance(data, Counts):
        have = [axis.name for axis in data.axes]
        names = _common(counts, have, "the counts")
        if labelled and data.label.name != counts.label.name:
            raise InputError(
                f"the target rates are counted by the label {data.label.name!r}, and the table by "
                f"{counts.label.name!r}."
            )
        return data.marginal(*names)
    from equipoise.datasets.lookup import locate

    engine, _ = take_engine(how)
    source = engine.settled(locate(data))
    columns = [column.name for column in engine.schema(source)]
    names, label = _common(counts, columns, source.name), counts.label.name
    for wanted in [label] * labelled + [weight] * (weight is not None):
        if wanted not in columns:
            raise InputError(
                f"{source.name} has no column {wanted!r}; it has: {', '.join(columns)}."
            )
    if not labelled:
        used = [*names, *([weight] if weight else [])]
        table = engine.read(source, used)
        label = _ALL
        data = table.append_column(label, [[label] * len(table)])
    bins = {name: edges for name, edges in dict(counts.bins).items() if name in names}
    return count(
        data,
        sensitive_features=names,
        label=label,
        weight=weight,
        bins=bins or None,
        missing="drop",
        missing_label="drop",
        **how,
    )


def _common(counts: Counts, columns: list[str], table: str) -> list[str]:
    names = [axis.name for axis in counts.sensitive if axis.name in columns]
    if not names:
        ours = in_words([axis.name for axis in counts.sensitive])
        raise InputError(
            f"{table} has none of the sensitive attributes {ours}; it has: {', '.join(columns)}."
        )
    return names


def _rows(table: Counts) -> dict[Group, dict[Value, float]]:
    """The rows, or the sums of weights, of each group by label."""
    numbers = table.rows.astype(float) if table.weights is None else table.weights[:, 0]
    found: dict[Group, dict[Value, float]] = {}
    for codes, number in zip(table.codes.tolist(), numbers.tolist(), strict=True):
        values = [a.values[code] for a, code in zip(table.axes, codes, strict=True)]
        if MISSING in values:
            continue
        names = [axis.name for axis in table.sensitive]
        group = Group(dict(zip(names, values[:-1], strict=True)))
        found.setdefault(group, {})[values[-1]] = number
    return found


def _rates(table: Counts) -> list[tuple[Group, tuple[tuple[Value, float], ...]]]:
    rows = _rows(table)
    _refuse_merged_rates(table, rows)
    labels = [value for value in table.label.values if value is not MISSING]
    rates: list[tuple[Group, tuple[tuple[Value, float], ...]]] = []
    for group, by_label in rows.items():
        total = sum(by_label.values())
        if total > 0:
            rates.append((group, tuple((y, by_label.get(y, 0.0) / total) for y in labels)))
    return rates


def _refuse_merged_rates(table: Counts, rows: dict[Group, dict[Value, float]]) -> None:
    """Refuse rates of finer groups, whose sums are not the rates of the groups they make up."""
    if table.weights is None or not (table.rows > 1).any():
        return
    sums = np.array([sum(each.values()) for each in rows.values()])
    numbers = np.array([number for each in rows.values() for number in each.values()])
    lines = np.array([table.rows.max()])
    whole = np.abs(sums - np.rint(sums)).max() < 1e-6 and sums.max() <= lines.max() + 1e-6
    if whole and (np.abs(numbers - np.rint(numbers)) > 1e-6).any():
        raise InputError(
            "`target_rates` seems to hold rates of finer groups, which cannot be merged without their "
            "sizes; give numbers of rows, or one rate for each group and label."
        )


def _shares(table: Counts) -> list[tuple[Group, float]]:
    rows = _rows(table)
    sizes = {group: sum(by_label.values()) for group, by_label in rows.items()}
    total = sum(sizes.values())
    return [(group, size / total) for group, size in sizes.items() if size > 0]
