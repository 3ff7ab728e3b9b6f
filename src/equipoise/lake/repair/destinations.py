"""Where a repaired table and its ledger go: to files, or to tables of a database."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from equipoise.atomic import atomic_path
from equipoise.engines.addresses import beside, scheme_of
from equipoise.engines.base import MADE, Engine, Part, require_writable
from equipoise.engines.sources import Source, locate
from equipoise.engines.stores.states import is_replaced, is_same_target, may_read
from equipoise.errors import InputError
from equipoise.lake.repair.ledger import stored_ledger, write_ledger
from equipoise.lake.repair.output import (
    TABLES,
    as_written,
    place_named,
    repaired_comment,
    typed_for,
    written_file,
)

LEDGER = f"{MADE}: a ledger"
"""How the comment on the table of a ledger begins."""


@dataclass(frozen=True)
class WrittenTable:
    """A repaired table that is written, and not yet in place."""

    source: Source
    md5s: Sequence[str]
    """The md5 of each added row, in the order of these."""

    rows: Sequence[int | None]
    """The number of each added row; a table of a database has none."""

    lost: dict[str, int]
    """How many values of added rows each column cannot hold, which are missing therefore."""

    numbered: tuple[str, ...] = ()
    """Columns in which the database numbered the added rows."""

    generated: tuple[str, ...] = ()
    """Columns that the database computed of the others."""

    completed: tuple[str, ...] = ()
    """Columns in which the database gave missing values of added rows its default."""

    @property
    def own(self) -> frozenset[str]:
        """Columns whose values are those of the database, whatever the sources have."""
        return frozenset([*self.numbered, *self.generated])


class Destination(Protocol):
    """A file or a table of a database that is written."""

    @property
    def name(self) -> str:
        """How it is shown, without a password."""

    @property
    def public_name(self) -> str:
        """How it is recorded, also without the folders of this machine."""

    @property
    def source(self) -> Source:
        """What is written, once it is in place."""

    def require_free(self, engine: Engine, *, only: str) -> None:
        """Refuse a place that cannot be written, or a table that must stay."""

    def writing(
        self,
        stay: Part,
        kept: int,
        added: pa.Table,
        engine: Engine,
        lacking: Mapping[str, Sequence[range]] | None = None,
    ) -> contextlib.AbstractContextManager[WrittenTable]:
        """Write the rows of a base that stay, as many as are ``kept``, and those that are added.

        ``lacking`` tells which of these come from sources without a column, as :class:`Part` does.
        They are in place when the block ends; after an error nothing has changed.
        """

    def listing(self, stack: contextlib.ExitStack, engine: Engine) -> Callable[[pa.Table], None]:
        """Return a function that takes the ledger, which is in place when the stack ends."""


@dataclass(frozen=True)
class FileDestination:
    """A file; its extension sets the format."""

    path: Path

    @property
    def name(self) -> str:
        """The path as it was given."""
        return str(self.path)

    @property
    def public_name(self) -> str:
        """The name of the file."""
        return self.path.name

    @property
    def source(self) -> Source:
        """The file, read as it was written."""
        return as_written(self.path)

    def require_free(self, engine: Engine, *, only: str) -> None:  # noqa: ARG002 (files are replaced)
        """Refuse a file of a format that cannot be written."""
        require_writable(self.path, engine.writes)

    @contextlib.contextmanager
    def writing(
        self,
        stay: Part,
        kept: int,
        added: pa.Table,
        engine: Engine,
        lacking: Mapping[str, Sequence[range]] | None = None,  # noqa: ARG002 (files have no defaults)
    ) -> Iterator[WrittenTable]:
        """Write the file beside its place, and move it there in the end."""
        types, typed = typed_for(self.path, stay.source, added, engine, added_decide=False)
        parts = [stay, Part(locate(typed))]
        with written_file(parts, types, self.path, engine) as source:
            rows = range(kept, kept + len(added))
            md5s = engine.fetch(source, rows).columns[-1].to_pylist() if rows else []
            yield WrittenTable(source, md5s, rows, _lost(added, typed))

    def listing(self, stack: contextlib.ExitStack, engine: Engine) -> Callable[[pa.Table], None]:
        """Reserve the place of the ledger, which is then written beside it."""
        listed = stack.enter_context(atomic_path(self.path))
        extension = require_writable(self.path, engine.writes)
        return lambda lines: write_ledger(lines, listed, engine, extension)


@dataclass(frozen=True)
class TableDestination:
    """A table of a database."""

    table: Source

    @property
    def name(self) -> str:
        """Its address without a password."""
        return self.table.name

    @property
    def public_name(self) -> str:
        """Its address without a password."""
        return self.table.public_name

    @property
    def source(self) -> Source:
        """The table."""
        return self.table

    def require_free(self, engine: Engine, *, only: str) -> None:
        """Refuse a name that cannot be given to a new table."""
        engine.require_free(self.table, only=only)

    @contextlib.contextmanager
    def writing(
        self,
        stay: Part,
        kept: int,  # noqa: ARG002 (rows have no numbers)
        added: pa.Table,
        engine: Engine,
        lacking: Mapping[str, Sequence[range]] | None = None,
    ) -> Iterator[WrittenTable]:
        """Make the table; the rows of a base in the same database do not leave it."""
        parts = [stay, Part(locate(added), foreign=True, lacking=lacking)]
        with engine.creating(self.table, parts, repaired_comment(stay.source)) as made:
            last = made.last()
            source = replace(made.source, name=self.table.name)
            sent = added.drop_columns([*made.numbered, *made.generated])
            yield WrittenTable(
                source,
                last.columns[-1].to_pylist(),
                [None] * len(added),
                _lost(sent, last),
                made.numbered,
                made.generated,
                tuple(_lost(last.select(sent.column_names), sent)),
            )

    def listing(self, stack: contextlib.ExitStack, engine: Engine) -> Callable[[pa.Table], None]:
        """Return a function that makes the table of the ledger, in the transaction of the first one."""
        comment = f"{LEDGER}, with a line for each row that was removed or added."

        def listed(lines: pa.Table) -> None:
            parts = [Part(locate(stored_ledger(lines)))]
            # Somebody may have made a table of that name since it was looked for.
            engine.require_free(self.table, only=LEDGER)
            stack.enter_context(engine.creating(self.table, parts, comment))

        return listed


def _lost(added: pa.Table, written: pa.Table) -> dict[str, int]:
    """Count the values of each column that are missing in the same rows, as they were written."""
    gone = {
        name: pc.sum(pc.and_(pc.is_valid(added[name]), pc.is_null(written[name]))).as_py()
        for name in added.column_names
    }
    return {name: n for name, n in gone.items() if n}


# ------------------------------------------------------------------------------- names


class Destinations(NamedTuple):
    """Where a repaired table and its ledger go."""

    output: Destination
    ledger: Destination

    @property
    def files(self) -> list[Path]:
        """Those that are files."""
        return [place.path for place in self if isinstance(place, FileDestination)]

    @property
    def tables(self) -> list[Source]:
        """Those that are tables of a database."""
        return [place.table for place in self if isinstance(place, TableDestination)]


@contextlib.contextmanager
def telling_what_is_written(places: Destinations | None) -> Iterator[None]:
    """Say of work that is interrupted after the result has been written that it is there."""
    try:
        yield
    except KeyboardInterrupt as error:
        if places is None or error.args:
            raise
        done = f"{places.output.name} and {places.ledger.name} were written, but not verified"
        raise KeyboardInterrupt(f"{done}; check them with equipoise verify") from None


def named_places(
    output: str | os.PathLike[str], ledger: str | os.PathLike[str] | None, engine: Engine
) -> Destinations:
    """Return where a repaired table and its ledger go; refuse what cannot be written.

    The ledger is beside the table unless it is named: ``OUTPUT.ledger.parquet``, or the table
    ``…_ledger`` of the same database.
    """
    listed = ledger if ledger is not None else ledger_beside(output)
    places = Destinations(*(_destination(name, engine) for name in (output, listed)))
    places.output.require_free(engine, only="")
    # A table of one's own may have such a name by chance, and a ledger is not worth its rows.
    places.ledger.require_free(engine, only=LEDGER)
    if places.output.name == places.ledger.name or (
        len(places.tables) == 2 and is_same_target(*places.tables)
    ):
        raise InputError(
            f"the table and its ledger cannot both be {places.ledger.name}; rename one of them."
        )
    return places


def _destination(name: str | os.PathLike[str], engine: Engine) -> Destination:
    place = place_named(name, engine)
    return FileDestination(place) if isinstance(place, Path) else TableDestination(place)


def ledger_beside(output: str | os.PathLike[str]) -> str:
    """Name the ledger of an output.

    >>> ledger_beside("repaired.csv"), ledger_beside("spark:warehouse.repaired")
    ('repaired.csv.ledger.parquet', 'spark:warehouse.repaired_ledger')
    """
    text = os.fspath(output)
    return beside(text, "_ledger") if scheme_of(text) in TABLES else f"{text}.ledger.parquet"


def plan_beside(output: str | os.PathLike[str]) -> Path:
    """Name the file of the plan of an output; that of a table is in the working folder.

    >>> plan_beside("data/repaired.csv").as_posix()
    'data/repaired.csv.plan.json'
    >>> plan_beside("postgresql://ann@host/db?table=public.repaired").as_posix()
    'repaired.plan.json'
    """
    text = os.fspath(output)
    if scheme_of(text) in TABLES:
        table = (locate(text).table or "").rpartition(".")[2]
        plain = re.sub(r"[^\w-]+", "_", table).strip("_")
        return Path(f"{plain}.plan.json")
    return Path(f"{text}.plan.json")


def require_other_tables(
    tables: Sequence[Source], read: Sequence[tuple[str, Source]], engine: Engine
) -> None:
    """Refuse to replace a table of a database that is read, or that a query may read."""
    for table in tables:
        for name, source in read:
            if is_replaced(source, table):
                raise InputError(
                    f"{table.name} is {name}, which must not change; write to another table."
                )
            require_unread(table, source, engine)


def require_unread(table: Source, source: Source, engine: Engine) -> None:
    """Refuse to replace a table of one's own that a query may read; nobody knows which it reads."""
    if may_read(source, table):
        engine.require_free(table, only=MADE)
