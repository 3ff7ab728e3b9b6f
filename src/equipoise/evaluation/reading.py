"""The rows of a table that models and imputation methods work on: few columns, and of a database a sample."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.counts import CountRequest, Counts
from equipoise.engines.base import Engine, count_frame, require_names
from equipoise.engines.kinds import DATABASES
from equipoise.engines.sources import Source
from equipoise.errors import InputError
from equipoise.evaluation.training.splits import generator_for

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from equipoise.engines.dialect import Dialect

MOST_ROWS = 250_000
"""Tables of databases with more rows are sampled down to so many, unless a user names another number."""

_STREAM = 107  # keeps this random choice independent of the others


class ReadRows(NamedTuple):
    """Rows of a table, and how many it has."""

    rows: pa.Table
    given: int


@dataclass(frozen=True)
class _SomeColumns:
    names: Sequence[str]

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:
        return f"SELECT {', '.join(map(d.identifier, [*self.names, *carried]))} FROM input"


def read_rows(
    source: Source,
    counting: CountRequest,
    engine: Engine,
    *,
    drop: Collection[str] = (),
    needed: Collection[str] = (),
    max_rows: int | None = None,
    seed: int = 0,
) -> ReadRows:
    """Read the rows of a table without the columns to ``drop``, unless these are ``needed`` or counted.

    A table of a database has no order, and may be large. Its rows come in the order of a hash, and
    more than ``max_rows`` are sampled down where they are: the same rows on every engine.
    """
    given = counting.count or counting.weight
    if given is not None:
        raise InputError(
            "models and imputation methods work on individual rows; give the rows themselves, without "
            f"the column {given!r} of counts or weights."
        )
    there = [c.name for c in engine.schema(source)]
    require_names(there, tuple(drop), source.name)
    used = {*there} - {*drop} | {*there} & {*counting.columns, *needed}
    columns = [name for name in there if name in used]
    if source.kind in DATABASES:
        return _sampled_rows(source, counting, engine, columns, max_rows or MOST_ROWS, seed)
    rows = engine.read(source, None if columns == there else columns)
    count_frame(rows, counting, source.name)  # refuses columns and tables that cannot be counted
    return ReadRows(rows, len(rows))


def _sampled_rows(
    source: Source,
    counting: CountRequest,
    engine: Engine,
    columns: Sequence[str],
    most: int,
    seed: int,
) -> ReadRows:
    if "raise" in (counting.missing, counting.missing_label):
        engine.counts(
            source, counting
        )  # which refuses missing values, also of rows that are not drawn
    request = replace(counting, missing="group", missing_label="group")
    counts = engine.counts(source, request)
    take = sample_of_cells(counts, most, seed)
    some = replace(source, view=_SomeColumns(columns))
    rows = engine.rows(some, request, take, seed)
    count_frame(rows, counting, source.name)
    return ReadRows(rows, counts.n)


def sample_of_cells(counts: Counts, most: int, seed: int) -> Counts:
    """Draw how many rows of each cell are among as many rows of a table, drawn at random.

    >>> people = Counts.from_mapping(
    ...     {("w", "y"): 300, ("m", "y"): 700}, sensitive=["sex"], label="y"
    ... )
    >>> sample_of_cells(people, 100, seed=1).n, sample_of_cells(people, 2000, seed=1) == people
    (100, True)
    """
    if counts.n <= most:
        return counts
    drawn = _drawn(counts.rows, most, generator_for(seed, _STREAM))
    there = drawn > 0
    return replace(counts, codes=counts.codes[there], rows=drawn[there])


def _drawn(rows: NDArray[np.int64], most: int, generator: np.random.Generator) -> NDArray[np.int64]:
    total = int(rows.sum())
    if total < 10**9:  # the most that numpy can draw from without replacement
        return np.asarray(generator.multivariate_hypergeometric(rows, most), np.int64)
    return np.minimum(generator.multinomial(most, rows / total), rows)
