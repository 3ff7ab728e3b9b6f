"""Profiles of tables of Spark, gathered by its workers part by part."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from equipoise.counts.columns import values_in
from equipoise.engines.profiling import Profile, Profiler
from equipoise.values import MISSING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PART = 1 << 40
"""Numbers between the first rows of two parts, more than a part has rows."""


def profile_frame(frame: DataFrame, columns: Sequence[tuple[str, str]]) -> Profile:
    """Profile a DataFrame: each worker returns what it gathered, and here it is merged."""
    gather = gather_parts([name for name, _ in columns], [kind for _, kind in columns])
    found = frame.mapInArrow(gather, "part INT, state BINARY").toArrow()
    states = sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))
    whole = Profiler([name for name, _ in columns], [kind for _, kind in columns])
    for _, state in states:
        whole.merge(pickle.loads(state))  # noqa: S301 - made by our own workers
    return whole.profile()


def gather_parts(
    names: list[str], types: list[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that gathers a profile from the batches of one part."""

    def gather(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        profiler = Profiler(names, types, start=part * _PART)
        for batch in batches:
            profiler.add([_texts(column) for column in batch.columns])
        state = pa.array([pickle.dumps(profiler)], pa.binary())
        yield pa.RecordBatch.from_arrays([pa.array([part], pa.int32()), state], ["part", "state"])

    return gather


def _texts(column: pa.Array) -> pa.Array:
    """Write values as the texts that all engines use."""
    if pa.types.is_string(column.type):
        return column
    coded = column.dictionary_encode()
    known = [None if value is MISSING else value for value in values_in(coded.dictionary)]
    return pa.array(known, pa.string()).take(coded.indices)
