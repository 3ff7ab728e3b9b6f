"""Counts as plain data and as Arrow: what files hold of them, and how it is read back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts.axes import Axis
from equipoise.counts.cells import Lines, merge_lines
from equipoise.counts.columns import checked_counts
from equipoise.counts.reading import Reading
from equipoise.counts.skipped import Skipped
from equipoise.errors import CountsError
from equipoise.options.count import request_from_dict
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import os

    import pyarrow as pa
    from numpy.typing import NDArray

SCHEMA = "equipoise.counts/1"
_NUMBERS = ("n", "weight", "weight_squared")


def plain_axes(axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """Return axes as plain data, in which a missing value is None."""
    return [
        {"name": a.name, "role": a.role, "values": [None if v is MISSING else v for v in a.values]}
        for a in axes
    ]


def fingerprint(axes: Sequence[Axis], cells: Mapping[tuple[Value, ...], Sequence[float]]) -> str:
    """Hash cells by their values, in an order that does not depend on how they were made."""
    lines = sorted(
        json.dumps([[None if v is MISSING else v for v in cell], n, *(f"{w:.9g}" for w in ws)])
        for cell, (n, *ws) in cells.items()
    )
    names = json.dumps([[a.name, a.role] for a in axes])
    return hashlib.sha256("\n".join([names, *lines]).encode()).hexdigest()


def parse_json(text: str) -> Any:
    """Read a JSON document, or raise an error if it is not valid."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise CountsError(
            f"this is not a file of counts, because it is not JSON: {error}."
        ) from None


def fields_from(data: Any) -> dict[str, Any]:
    """Read the fields of counts from plain data, and refuse data that is damaged or of another kind."""
    schema = dict(data).get("schema") if hasattr(data, "keys") else None
    if schema != SCHEMA:
        raise CountsError(
            f"these counts have the schema {schema!r}, not {SCHEMA}; count the table again."
        )
    try:
        return _fields(data)
    except CountsError:
        raise
    except (LookupError, TypeError, ValueError) as error:
        raise CountsError(f"these counts are damaged ({error!r}); count again.") from None


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    axes = tuple(
        Axis(a["name"], tuple(MISSING if v is None else v for v in a["values"]), a["role"])
        for a in data["axes"]
    )
    codes = np.array(data["codes"], np.int32).reshape(-1, len(axes))
    if (codes < 0).any() or (codes >= [len(a) for a in axes]).any():
        raise IndexError("a cell names a value that is not there")
    weights = data["weights"]
    weights = None if weights is None else np.array(weights, np.float64).reshape(-1, 2)
    lines = merge_lines(axes, Lines(codes, checked_counts(data["rows"]), weights))
    return {
        "axes": axes,
        **lines._asdict(),
        "missing_values": dict(data["missing_values"]),
        "dropped": data["dropped"],
        "bins": {n: tuple(b) for n, b in data["bins"].items()},
        "request": request_from_dict(data["request"]),
        "reading": Reading.from_dict(data.get("reading")),
        "skipped": Skipped.from_dict(data.get("skipped")),
    }


def cells_to_arrow(axes: Sequence[Axis], lines: Lines, data: Mapping[str, Any]) -> pa.Table:
    """Return a table with a line per cell; ``data``, without the cells, is its metadata."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for position, axis in enumerate(axes):
        values = pa.array([None if v is MISSING else v for v in axis.values], pa.string())
        columns[axis.name] = values.take(pa.array(lines.codes[:, position]))
    numbers: list[NDArray[Any]] = [lines.rows]
    if lines.weights is not None:
        numbers += [lines.weights[:, 0], lines.weights[:, 1]]
    for name, column in zip(_NUMBERS, numbers, strict=False):
        free = name
        while free in columns:  # an attribute may be called n
            free += "_"
        columns[free] = pa.array(column)
    without_cells = {k: v for k, v in data.items() if k not in ("rows", "weights")}
    metadata = {"equipoise": json.dumps(without_cells, ensure_ascii=False)}
    return pa.table(columns).replace_schema_metadata(metadata)


def read_parquet(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the plain data of counts from a Parquet file of cells."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    metadata = (table.schema.metadata or {}).get(b"equipoise")
    if metadata is None:
        raise CountsError(f"{path} was not written by Counts.to_parquet; count it instead.")
    data: dict[str, Any] = json.loads(metadata)
    rows, *weights = table.columns[len(data["axes"]) :]
    data["rows"] = rows.to_pylist()
    sums = [w.to_pylist() for w in weights]
    data["weights"] = list(zip(*sums, strict=True)) if sums else None
    return data
