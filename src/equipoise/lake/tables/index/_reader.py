"""The reader of an index."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from equipoise.engines.profiling import Profile
from equipoise.errors import InputError
from equipoise.lake.tables.index import _records
from equipoise.lake.tables.index._records import Table
from equipoise.lake.tables.index._working_copy import open_index, reason_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class Index:
    """Reader of an index; :func:`refresh` writes it."""

    def __init__(self, path: Path, places: Sequence[str]) -> None:
        self._path, self._places = path, tuple(places)
        with self._explained():
            self._connection = open_index(path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def tables(self) -> list[Table]:
        """All tables in the order of their names, including those that cannot be read."""
        with self._explained():
            return _records.read_tables(self._connection, self._places)

    def profiles(self, ids: Iterable[int]) -> dict[int, Profile]:
        """The profiles of some tables, by number."""
        with self._explained():
            return _records.read_profiles(self._connection, list(ids))

    def tables_by_id(self, ids: Iterable[int]) -> dict[int, Table]:
        """Some tables, by number."""
        with self._explained():
            found = _records.read_tables(self._connection, self._places, ids=list(ids))
        return {table.id: table for table in found}

    @functools.cached_property
    def frequencies(self) -> tuple[int, NDArray[np.uint64], NDArray[np.int64]]:
        """The number of columns; all terms in ascending order, and how many columns have each."""
        ((columns,),) = self.query("SELECT count(*) FROM columns")
        rows = self.arrow("SELECT term, count(*) AS n FROM terms GROUP BY term ORDER BY term")
        return columns, rows["term"].to_numpy(), rows["n"].to_numpy()

    def arrow(self, text: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """Run a query whose result has many rows."""
        with self._explained():
            return self._connection.sql(text, params=list(parameters)).to_arrow_table()

    def query(self, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query."""
        with self._explained():
            return self._connection.execute(text, parameters).fetchall()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise InputError(
                f"{self._path} cannot be read as an index ({reason_of(error)}); remove it, or set "
                "`index` to another file."
            ) from None
