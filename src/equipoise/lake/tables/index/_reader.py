"""The reader of an index."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import duckdb

from equipoise.engines.profiling import Profile
from equipoise.errors import InputError
from equipoise.lake.tables.index import _records
from equipoise.lake.tables.index._records import Table
from equipoise.lake.tables.index._segments import OpenIndex, open_index, reason_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Index:
    """Reader of an index; :func:`refresh` writes it."""

    def __init__(self, path: Path, places: Sequence[str], opened: OpenIndex | None = None) -> None:
        self._path, self._places = path, tuple(places)
        with self._explained():
            self._connection = (opened or open_index(path)).connection

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def tables(self) -> list[Table]:
        """All tables in the order of their names, including those that cannot be read."""
        with self._explained():
            return _records.read_tables(self._connection, self._places)

    def remarked(self) -> list[Table]:
        """The tables that cannot be read, or only without some lines, in the order of their names."""
        with self._explained():
            return _records.read_tables(self._connection, self._places, remarked=True)

    @functools.cached_property
    def rows(self) -> int:
        """The number of rows of all tables."""
        ((rows,),) = self.query("SELECT coalesce(sum(rows), 0)::BIGINT FROM tables")
        return int(rows)

    def profiles(self, ids: Iterable[int]) -> dict[int, Profile]:
        """The profiles of some tables, by number."""
        with self._explained():
            return _records.read_profiles(self._connection, self._among(list(ids)))

    def _among(self, ids: Sequence[int]) -> _records.Chosen:
        return _records.among(ids, self.counts[0])

    def tables_by_id(self, ids: Iterable[int]) -> dict[int, Table]:
        """Some tables, by number."""
        with self._explained():
            found = _records.read_tables(
                self._connection, self._places, chosen=self._among(list(ids))
            )
        return {table.id: table for table in found}

    @functools.cached_property
    def counts(self) -> tuple[int, int]:
        """The numbers of tables and of columns."""
        ((tables, columns),) = self.query("SELECT tables, columns FROM about")
        return tables, columns

    def frequencies(
        self, terms: NDArray[np.uint64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Which of some terms the lake has, in ascending order, and how many columns have each."""
        found = self.given(
            "SELECT term, sum(n)::BIGINT AS n FROM frequencies SEMI JOIN asked USING (term) "
            "GROUP BY term HAVING sum(n) > 0 ORDER BY term",
            {"term": terms},
        )
        return found["term"], found["n"]

    def columns(self, ids: Sequence[int], fields: str) -> dict[str, NDArray[Any]]:
        """Read some fields of the columns of some tables that have values, by number and place."""
        chosen, given = self._among(ids)
        return self.given(
            f'SELECT {fields} FROM columns WHERE {chosen} AND "distinct" > 0 ORDER BY id, place',
            {},
            given,
        )

    def given(
        self,
        text: str,
        asked: Mapping[str, NDArray[Any]],
        parameters: Sequence[Any] = (),
    ) -> dict[str, NDArray[Any]]:
        """Run a query over the index and a table ``asked``; return the columns of its result."""
        with self._explained():
            if asked:
                self._connection.register("asked", dict(asked))
            try:
                found = self._connection.execute(text, parameters).fetchnumpy()
            finally:
                self._connection.unregister("asked")
        return {name: _plain(column) for name, column in found.items()}

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


def _plain(column: Any) -> NDArray[Any]:
    """Replace the mask of a column by None where its values are missing."""
    if not hasattr(column, "mask"):
        return cast("NDArray[Any]", column)
    found = column.data.astype(object)
    found[column.mask] = None
    return cast("NDArray[Any]", found)
