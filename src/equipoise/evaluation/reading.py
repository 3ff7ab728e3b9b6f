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
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from equipoise.engines.dialect import Dialect

MOST_ROWS = 250_000
"""Tables of databases with more rows are sampled down to so many, unless a user names another number."""

_STREAM = 107  # keeps this random choice independent of the others
_SHARE = 108


class ReadRows(NamedTuple):
    """Rows of a table, how many it has, and of a database how many of these lack a value."""

    rows: pa.Table
    given: int
    without_label: int | None = None
    incomplete: int | None = None
    """Rows without a sensitive value, but for those that lack a label and are left out therefore."""


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
    present: Collection[str] = (),
) -> ReadRows:
    """Read the rows of a table without the columns to ``drop``, unless these are ``needed`` or counted.

    A table of a database has no order, and may be large. Its rows come in the order of a hash, and
    more than ``max_rows`` are sampled down where they are: the same rows on every engine. Only rows with
    values of the counted columns in ``present`` are drawn, if there are any; of a file all rows are read.
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
        most = max_rows or MOST_ROWS
        return _sampled_rows(source, counting, engine, columns, most, seed, present)
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
    present: Collection[str] = (),
) -> ReadRows:
    if "raise" in (counting.missing, counting.missing_label):
        engine.counts(
            source, counting
        )  # which refuses missing values, also of rows that are not drawn
    request = replace(counting, missing="group", missing_label="group")
    counts = engine.counts(source, request)
    drawn_from = counts
    if (there := ~_lacks(counts, present)).any():
        drawn_from = replace(counts, codes=counts.codes[there], rows=counts.rows[there])
    take = sample_of_cells(drawn_from, most, seed)
    some = replace(source, view=_SomeColumns(columns))
    rows = engine.rows(some, request, take, seed)
    count_frame(rows, counting, source.name)
    lacking = _lacks(counts, counting.sensitive)
    unlabelled = _lacks(counts, [counting.label])
    if counting.missing_label == "drop":
        lacking &= ~unlabelled
    return ReadRows(rows, counts.n, *(int(counts.rows[m].sum()) for m in (unlabelled, lacking)))


def _lacks(counts: Counts, columns: Collection[str]) -> NDArray[np.bool_]:
    """Whether the rows of each cell lack a value of one of some columns."""
    lacks = np.zeros(len(counts.codes), np.bool_)
    for axis, codes in zip(counts.axes, counts.codes.T, strict=True):
        if axis.name in columns and MISSING in axis.values:
            lacks |= codes == axis.values.index(MISSING)
    return lacks


def in_proportion(tables: Sequence[ReadRows], seed: int) -> list[pa.Table]:
    """Return the rows of tables that are compared, the same share of each as of the one least read.

    >>> import pyarrow as pa
    >>> large, small = pa.table({"a": range(50)}), pa.table({"a": range(20)})
    >>> [len(t) for t in in_proportion([ReadRows(large, 100), ReadRows(small, 20)], seed=1)]
    [50, 10]
    """
    share = min(len(table.rows) / table.given for table in tables)
    taken = []
    for i, table in enumerate(tables):
        wanted = round(share * table.given)
        rows = table.rows
        if wanted < len(rows):
            places = generator_for(seed, _SHARE, i).choice(len(rows), wanted, replace=False)
            rows = rows.take(np.sort(places))
        taken.append(rows)
    return taken


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
