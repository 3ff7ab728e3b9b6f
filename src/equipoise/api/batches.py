"""Count the batches of a stream, each in the same way as the first one."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from pathlib import Path
from typing import Any, get_args

from equipoise import datasets
from equipoise.api.measurement import count
from equipoise.api.tables import require_named, take_engine
from equipoise.counts import CountRequest, Counts
from equipoise.counts.reading import Reading
from equipoise.datasets.lookup import locate
from equipoise.engines.base import require_rows
from equipoise.errors import InputError
from equipoise.measures.configuration import read_config
from equipoise.measures.policy import Policy
from equipoise.monitoring.check import Watched
from equipoise.monitoring.columns import Expected, answer
from equipoise.monitoring.moments import short
from equipoise.monitoring.names import batch_name, read_tags, require_encodable
from equipoise.monitoring.store.entries import Entry
from equipoise.monitoring.store.records import Periods, Stream
from equipoise.monitoring.times import (
    TIME,
    no_times,
    require_times,
    split_by_time,
    with_times,
    without_dropped,
)
from equipoise.options import take
from equipoise.options.count import ReadOptions
from equipoise.options.monitor import Every, WatchOptions
from equipoise.progress import Reporter
from equipoise.validate import one_of

DEFAULT_LIMIT = 0.1
"""Largest |UB| that is allowed where no rule says otherwise."""

_WEIGHTS = (
    "a stream contains numbers of rows, but these counts are weighted; leave out `weight`. If a column "
    "contains numbers of rows, name it with `count`. Nothing was added."
)


def watched_by(policy: Any, given: WatchOptions) -> Watched:
    """Say what is watched by a policy and options; without any rule, |UB| of at most 0.1."""
    data: Any = policy
    if isinstance(policy, (str, os.PathLike)):
        data = _limits_in(policy)
    elif policy is not None and not isinstance(policy, (Mapping, Policy)):
        raise InputError(
            f"`policy` must be a Policy, a mapping as in equipoise.toml, or the path of a file, not {policy!r}."
        )
    max_order, favourable = given.max_order, given.favourable
    if not isinstance(data, Policy):
        data = {k.replace("-", "_"): v for k, v in dict(data or {}).items()}
        max_order = max_order or data.get("max_order")
        favourable = data.get("favourable") if favourable is None else favourable
        data["favourable"] = favourable
        if given.min_count > 1:
            data["min_count"] = given.min_count
        limits = (given.max_abs_ub, data.get("max_abs_ub"), data.get("rules") or None)
        by_ratio = given.four_fifths or data.get("four_fifths")
        if not by_ratio and all(limit is None for limit in limits):
            data["max_abs_ub"] = DEFAULT_LIMIT
    found = Policy.of(data, max_abs_ub=given.max_abs_ub, four_fifths=given.four_fifths)
    rules = tuple(changed(r, min_count=max(r.min_count, given.min_count)) for r in found.rules)
    return Watched(
        rules=rules,
        alpha=given.alpha,
        alert_on=given.alert_on,
        max_order=max_order,
        favourable=None if favourable is None else str(favourable),
        tags=read_tags(given.only_tags),
    )


def require_batch(at: Any, time_column: Any, every: Any, id_: Any) -> None:
    """Refuse a time and an id that are none, or do not go together."""
    one_of("every", every, get_args(Every))
    if id_ is not None:
        batch_name(id_)
    if time_column is None and every != "day":
        raise InputError(
            "`every` sets the length of the batches of `time_column`; add `time_column`, or leave out `every`."
        )
    if time_column is not None and not isinstance(time_column, str):
        raise InputError(f"`time_column` must be the name of a column, not {short(time_column)}.")
    if time_column is not None and at is not None:
        raise InputError("`time_column` already sets the time of each batch; leave out `at`.")


def _limits_in(file: str | os.PathLike[str]) -> Any:
    """The table of limits of a file; a file that was named must have one."""
    config = read_config(file)
    if "check" not in config:
        there = f"it has {', '.join(map(str, config))}" if config else "it is empty"
        raise InputError(f"{os.fspath(file)} has no table [check] with limits; {there}.")
    return config["check"]


def count_batch(
    data: Any,
    name: str,
    known: Stream | None,
    columns: dict[str, Any],
    time_column: str | None,
    every: Every,
    options: dict[str, Any],
    progress: Reporter,
) -> tuple[Counts, Stream, tuple[str, ...]]:
    """Count a batch as its stream asks; a new stream is that of its first batch."""
    if isinstance(data, Counts):
        _refuse_weights(data)
        require_encodable(text for axis in data.axes for text in (axis.name, *axis.values))
        if time_column is not None:
            raise InputError("counts have no column of times; pass a table of rows, or use `at`.")
        if known is not None:
            require_same(known, data, None)
        return data, known or _new_stream(name, data, {}), ()
    asked_bins = dict(options.get("bins") or {})
    if options.get("weight") is not None:
        raise InputError(_WEIGHTS)
    remarks: tuple[str, ...] = ()
    expected = None
    if known is not None:
        _require_request(known, columns, options)
        columns, options, expected = _as_before(known, data, columns, options)
        remarks = () if expected is None else expected.remarks
    else:
        columns, options = _with_columns(data, columns, options)
    if time_column is not None:
        counts = _count_times(data, columns, options, time_column, every, progress)
    else:
        counts = count(data, **columns, progress=progress, **options)
    _refuse_weights(counts)
    if known is None:
        return counts, _new_stream(name, counts, asked_bins, time_column), remarks
    if columns["y"] is not None:
        require_same(known, counts, None)
    if expected is not None and (expected.renamed or expected.vanished):
        if time_column is not None:
            raise InputError(
                f"a table with `time_column` must have all columns of {name} ({' '.join(remarks)}); rename its "
                "columns, or add a separate table for each batch."
            )
        counts = expected.restore(counts, known.request)
    return counts, known, remarks


def _refuse_weights(counts: Counts) -> None:
    if counts.weights is not None:
        raise InputError(_WEIGHTS)


def _new_stream(
    name: str,
    counts: Counts,
    asked_bins: Mapping[str, Any],
    time_column: str | None = None,
) -> Stream:
    made_by = counts.request_for_rows()
    # Counts may be sums over attributes that were counted.
    kept = tuple(a.name for a in counts.sensitive if time_column is None or a.name != TIME)
    bins = {name: edges for name, edges in made_by.bins.items() if name in kept}
    column = None if counts.request is None else counts.request.count
    request = changed(made_by, sensitive=kept, bins=bins, count=column)
    return Stream(0, name, request, asked_bins, counts.reading.to_dict())


def require_same(stream: Stream, counts: Counts, time_column: str | None) -> None:
    """Refuse counts of other columns or bins."""
    names = tuple(a.name for a in counts.axes if time_column is None or a.name != TIME)
    if names != stream.columns:
        raise _other_columns(stream, names)
    mine = {n: b for n, b in stream.request.bins.items() if isinstance(b, tuple)}
    if mine != {n: tuple(b) for n, b in counts.bins.items()}:
        raise InputError(
            f"the batches of {stream.name} have the bins {mine}, not {dict(counts.bins)}; use the same bins. "
            "Nothing was added."
        )


def _other_columns(stream: Stream, names: Sequence[str]) -> InputError:
    *sensitive, label = names
    return InputError(
        f"the stream {stream.name} has the sensitive attributes {', '.join(stream.request.sensitive)} and "
        f"the label {stream.request.label}, not {', '.join(sensitive)} and {label}; use the same columns, or "
        "another stream name. Nothing was added."
    )


_AS_FIRST = ("missing", "missing_label", "na", "where", "sql")
_OWN = ("bins", "na", "missing", "missing_label")
"""What later batches have of the request of the first one, whatever they are made of."""


def _require_request(
    stream: Stream, columns: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Refuse a batch that is to be counted in another way than the first one."""
    sensitive, label = columns["sensitive_features"], columns["label"]
    if columns["y"] is None:
        named = (
            [sensitive]
            if isinstance(sensitive, str)
            else list(sensitive or stream.request.sensitive)
        )
        names = (*named, label or stream.request.label)
        if names != stream.columns:
            raise _other_columns(stream, names)
    bins = options.get("bins")
    if bins:
        edges = {n: tuple(b) if not isinstance(b, int) else b for n, b in bins.items()}
        if edges not in (dict(stream.asked_bins), dict(stream.request.bins)):
            there = dict(stream.request.bins)
            raise InputError(
                f"the batches of {stream.name} have {f'the bins {there}' if there else 'no bins'}; leave out "
                "`bins`. Nothing was added."
            )
    before = {**vars(stream.request), **stream.reading}
    for option in _AS_FIRST:
        if options.get(option) is not None and options[option] not in (before.get(option), ()):
            was = before.get(option)
            how = f"with {option} = {was!r}" if was else f"without `{option}`"
            raise InputError(
                f"the first batch of {stream.name} was counted {how}, and all batches must be counted in the same "
                f"way; leave out `{option}`. Nothing was added."
            )


def _as_before(
    stream: Stream, data: Any, columns: dict[str, Any], options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], Expected | None]:
    """Count a batch as the first one was; return also which of its columns differ."""
    reading = Reading.from_dict(stream.reading)
    request = stream.request
    read = {k: v for k, v in reading.options.items() if v is not None}
    if (y := columns["y"]) is not None:
        chosen = {k: v for k, v in read.items() if k in ("where", "sql")}
        own = {k: getattr(request, k) for k in _OWN}
        label = columns["label"] or getattr(y, "name", None) or request.label
        return {**columns, "label": label}, {**options, **chosen, **own}, None
    given = {k: v for k, v in options.items() if v is not None}
    merged = {**read, **given}
    how, left = take(ReadOptions, merged)
    engine, _ = take_engine(left)
    source = locate(data, **vars(how))
    names = [column.name for column in engine.schema(source)]
    uncounted = request.count if request.count not in names else None
    if "count" in given or uncounted is not None:
        request = changed(request, count=given.get("count"))
    found = answer(request, names, source.name)
    if uncounted is not None and request.count is None:
        found = changed(found, uncounted=uncounted)
    asked: CountRequest = found.request
    columns = {"sensitive_features": list(asked.sensitive), "label": asked.label, "y": None}
    own = {k: getattr(asked, k) for k in ("count", *_OWN)}
    return columns, {**merged, **own}, found


def _with_columns(
    data: Any, columns: dict[str, Any], options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of a new stream; those of a bundled table are suggested by its card."""
    sensitive, label = columns["sensitive_features"], columns["label"]
    if columns["y"] is not None or (sensitive and label):
        return columns, options
    card = _bundled(data)
    if card is not None:
        named = {"sensitive_features": sensitive or card.sensitive, "label": label or card.label}
        return {**columns, **named}, {"count": card.count, **options}
    reading, _ = take(ReadOptions, options)
    require_named(data, sensitive, label, **vars(reading))
    return columns, options


def _bundled(data: Any) -> datasets.Card | None:
    """The card of a bundled table, if that is what a name means."""
    known = isinstance(data, str) and data in datasets.names() and not Path(data).exists()
    return datasets.card(data) if known else None


_MISSING = {"missing": "group", "missing_label": "drop"}
"""How missing values are treated by default."""


def _count_times(
    data: Any,
    columns: Mapping[str, Any],
    options: Mapping[str, Any],
    time_column: str,
    every: Every,
    progress: Reporter,
) -> Counts:
    """Count a table with the time of each row as one more attribute."""
    if columns["y"] is not None:
        raise InputError(
            "`time_column` is the name of a column in a table; use `data` instead of `y`."
        )
    how, left = take(ReadOptions, options)
    engine, left = take_engine(left, progress)
    na = options.get("na") or ()
    source = with_times(
        locate(data, **vars(how)),
        engine,
        time_column,
        hours=every == "hour",
        na=[na] if isinstance(na, str) else na,
    )
    card = _bundled(data)
    if card is not None and left.get("count") is None:
        left["count"] = card.count
    sensitive = columns["sensitive_features"]
    listed = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    # What is dropped is dropped after the split, so that each period tells how many rows it had.
    asked: dict[str, Any] = {
        name: left.pop(name, None) or policy for name, policy in _MISSING.items()
    }
    grouped = {name: "group" if policy == "drop" else policy for name, policy in asked.items()}
    counts = count(
        source,
        sensitive_features=[*listed, TIME],
        label=columns["label"],
        engine=engine,
        progress=progress,
        **{**left, **grouped},
    )
    assert counts.request is not None  # noqa: S101  rows were counted
    counts = changed(counts, request=changed(counts.request, **asked))
    kept = require_rows(without_dropped(counts), source.name)
    require_times(source, engine, time_column, kept)
    return counts


def require_split(stream: str, split: Periods, before: Periods, id_: str | None) -> None:
    """Refuse a split by which rows of earlier tables would be counted again; with an id it is a table of its own."""
    if id_ is None and split != before:
        raise InputError(
            f"the batches of {stream} were split by {before.every} in {before.zone}, not by {split.every} in "
            f"{split.zone}. Rows could be counted twice. Use the same `every` and `timezone`, or give this table an "
            "`id`. Nothing was added."
        )


def entries_of(
    batch: Entry, name: str, time_column: str | None, every: Every, zone: datetime.tzinfo
) -> tuple[int, list[Entry]]:
    """Split a batch by the times of its rows, if it has them; return the rows without one, and the parts."""
    left_out, entries = 0, [batch]
    if time_column is not None:
        left_out, parts = split_by_time(batch.counts, every, zone)
        if not parts:
            raise no_times(time_column)
        entries = [
            changed(
                batch,
                counts=counts,
                at=at,
                id=batch.id and batch_name(f"{batch.id} {_period(at, every, zone)}"),
                is_now=False,
                by_time=True,
                table=batch.id,
                remarks=() if i else batch.remarks,
            )
            for i, (at, counts) in enumerate(parts)
        ]
    if not all(entry.counts.n for entry in entries):
        raise InputError(f"the batch for {name} has no rows. Nothing was added.")
    return left_out, entries


def _period(at: datetime.datetime, every: Every, zone: datetime.tzinfo) -> str:
    local = at.astimezone(zone)
    if every != "hour":
        return f"{local:%Y-%m-%d}"
    offset = "" if zone is datetime.UTC else f"{local:%z}"
    return f"{local:%Y-%m-%d %H:%M}{offset}"
