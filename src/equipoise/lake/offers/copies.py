"""Copies of the tables of a lake, so that each table is read once."""

from __future__ import annotations

import re
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.engines.base import Engine
from equipoise.engines.column_types import is_text, is_whole
from equipoise.engines.memory import MemoryEngine
from equipoise.engines.sources import Source
from equipoise.scratch import ScratchFolder, make_folder

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.lake.offers.survey import Candidate

LARGE = 250_000
"""Number of rows above which a table is not copied, but queried where it is."""

_MOST_VALUES = 3_000_000
"""Rows times columns of all tables that are copied; further tables are queried where they are.

A value takes about 40 bytes: in the copy, as the base has it, and as a hash.
"""

_SMALL = 5_000
"""Number of rows up to which a query takes longer to be planned than to run."""

_ROOM = {"ample": (1, 1 / 3), "tight": (1 / 3, 0)}
"""Shares of the room that small tables and others may fill."""

_IN_MEMORY = 64_000_000
"""Bytes of copies in memory; further copies are in files that are mapped into it."""

_SAME_TYPE = re.compile(
    r"VARCHAR|BOOLEAN|U?(TINYINT|SMALLINT|INTEGER|BIGINT)|FLOAT|DOUBLE|DATE|TIMESTAMP|DECIMAL\(.*\)"
)
"""Types whose values, and their texts, are the same in a copy."""


@dataclass
class RowFiles:
    """Temporary files of rows, which are removed with this object."""

    _folder: ScratchFolder | None = None
    _written: int = 0

    def write(self, rows: pa.Table) -> Path:
        """Write rows to a file of their own."""
        import pyarrow as pa

        if self._folder is None:
            self._folder = make_folder()
            weakref.finalize(self, self._folder.remove)
        self._written += 1
        path = self._folder.path / f"{self._written}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
        return path


def map_rows(path: Path) -> pa.Table:
    """Map the rows of a file into memory."""
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def read_rows(path: Path) -> pa.Table:
    """Read the rows of a file."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


@dataclass
class TableCopies:
    """Tables as they were read the first time; see :data:`LARGE` for those that are not copied."""

    engine: Engine
    is_tight: bool = False
    """Whether memory is needed for the rows of a large base."""

    _sources: dict[str, Source] = field(default_factory=dict)
    _held: dict[str, bool] = field(default_factory=dict)
    _values: int = 0
    _bytes: int = 0
    _files: RowFiles = field(default_factory=RowFiles)

    def holds(self, candidate: Candidate) -> bool:
        """Whether a table is copied, and not queried where it is: the first ones are that there is room for."""
        if candidate.name not in self._held:
            profile = candidate.profile
            types = [column.type.upper() for column in profile.columns]
            values = profile.rows * len(types)
            share = _ROOM["tight" if self.is_tight else "ample"][profile.rows > _SMALL]
            # Databases keep their rows to themselves.
            held = (
                candidate.table.source.kind not in ("postgres", "spark")
                and profile.rows <= LARGE
                and self._values + values <= share * _MOST_VALUES
                and all(_SAME_TYPE.fullmatch(kind) for kind in types)
            )
            self._values += values if held else 0
            self._held[candidate.name] = held
        return self._held[candidate.name]

    def of(self, candidate: Candidate) -> Source:
        """Return the copy of a table, which is made the first time, or the table itself."""
        candidate.require_unchanged()
        if not self.holds(candidate):
            return candidate.table.source
        if not self.has(candidate):
            self.keep(candidate, self.engine.read(candidate.table.source))
        return self._sources[candidate.name]

    def has(self, candidate: Candidate) -> bool:
        """Whether there is a copy of a table already."""
        return candidate.name in self._sources

    def keep(self, candidate: Candidate, rows: pa.Table) -> None:
        """Keep all rows of a table, as they were read."""
        if self._bytes + rows.nbytes > _IN_MEMORY:
            rows = map_rows(self._files.write(rows))
        self._bytes += rows.nbytes
        self._sources[candidate.name] = replace(
            candidate.table.source, kind="frame", data=rows, paths=(), table=None
        )

    def fetch(self, candidate: Candidate, places: Sequence[int]) -> pa.Table:
        """Fetch the rows at some places, located as by the verb of engines."""
        source = self.of(candidate)
        kinds = (column.type.upper() for column in candidate.profile.columns)
        is_plain = all(is_text(kind) or is_whole(kind) for kind in kinds)
        # A query takes longer than hashing the few rows that are chosen of a table.
        engine = MemoryEngine() if source.kind == "frame" and is_plain else self.engine
        return engine.fetch(source, places)
