"""The verbs over Spark."""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema

from equipoise.engines import sql
from equipoise.engines.base import MADE, Column, Identity, MadeTable, Part, has_changed
from equipoise.engines.choices import departed, rows_but
from equipoise.engines.column_names import refuse_duplicates
from equipoise.engines.column_types import family
from equipoise.engines.database import Database, require_comparable
from equipoise.engines.profiling import Profile
from equipoise.engines.sources import Source
from equipoise.engines.spark._dialect import DIALECT
from equipoise.engines.spark._errors import UNTOUCHED, explained, reason
from equipoise.engines.spark._profiles import profile_frame
from equipoise.engines.spark._session import find_session, was_stopped
from equipoise.engines.spark._spreading import ship_package, spread
from equipoise.engines.spark._types import common_type, in_utc, plain_columns
from equipoise.errors import (
    EquipoiseError,
    InputError,
    SourceNotFound,
    Unsupported,
    did_you_mean,
)
from equipoise.progress import Reporter, silent, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

_PADDED = "__CHAR_VARCHAR_TYPE_STRING"


class SparkEngine(Database):
    """The verbs over tables of Spark's catalog and over DataFrames, on Spark 4 or newer.

    Only counts and chosen rows come to the client. The session is the active one, or one that is
    started with the settings of the environment (``SPARK_CONF_DIR``, ``SPARK_REMOTE``); none of its
    settings are changed.
    """

    name: ClassVar[str] = "spark"
    dialect = DIALECT
    reads: ClassVar[Mapping[str, str]] = {
        "Spark table": "spark:catalog.schema.table, also a view",
        "Spark DataFrame": "in Python, on its own session",
        "ibis table": "of its backend pyspark, in Python",
        "frame": "pandas, polars, Arrow; sent to Spark",
        "SQL": "that of Spark, over a table called input",
    }
    writes: ClassVar[tuple[str, ...]] = ()
    ways: ClassVar[Mapping[str, str]] = {
        "rows are known by": "the columns that ?id= names, which must be a key, else by hash and occurrence",
        "tables are made": "only under a new name",
        "not comparable": "types other than numbers, text, booleans, dates and timestamps; collations",
    }

    def __init__(self, session: SparkSession | None = None, *, report: Reporter = silent) -> None:
        self._given = session
        self._report = report
        self._names = itertools.count()
        self._lock = threading.RLock()

    @property
    def session(self) -> SparkSession:
        """The session, found or started when it is first used."""
        if self._given is None or was_stopped(self._given):
            with _quiet():
                self._given = find_session()
        return self._given

    def close(self) -> None:
        """Leave the session to whoever started it; it ends with the program."""

    # ------------------------------------------------------------------ catalog

    def has_table(self, name: str) -> bool:
        """Whether the catalog has a table of a name."""
        with contextlib.suppress(PySparkException):
            return bool(self.session.catalog.tableExists(name))
        return False

    def stored_tables(self, schema: str) -> list[str]:
        """List the tables of a schema that are neither views nor results, with its name before theirs."""
        return _tables_beside(self.session, schema, views=False)

    def files_of(self, source: Source) -> list[str]:
        """List the files of a table; none if it does not consist of files."""
        with self._explaining(source):
            return sorted(
                self.session.sql(f"SELECT * FROM {self._table_text(source)}").inputFiles()
            )

    def full_name(self, source: Source) -> tuple[str, ...]:
        """Name a table in full, with its catalog and its schema."""
        with self._explaining(source):
            self._table_text(source)  # which refuses a table that does not exist
            known = self.session.catalog.getTable(source.table or "")
        return (known.catalog or "", *(known.namespace or ()), known.name)

    def new_name(self, target: Source) -> tuple[str, ...]:
        """Name a table that may not exist yet in full; most catalogs do not distinguish case."""
        if self.has_table(target.table or ""):
            return self.full_name(target)
        parts = _parts(target.table or "")
        with self._explaining(target):
            catalog = self.session.catalog
            above = [catalog.currentCatalog(), catalog.currentDatabase()]
        return tuple(part.casefold() for part in (*above[: max(0, 3 - len(parts))], *parts))

    # -------------------------------------------------------------------- verbs

    def tables(self, source: Source) -> tuple[str, ...]:
        """Names of the tables of a schema of the catalog."""
        if source.table is None or source.kind != "spark":
            return (source.name,)
        return tuple(_tables_beside(self.session, source.table))

    def profile(self, source: Source) -> Profile:
        """Profile the columns of a table; refuse a key that is not one."""
        with self._opened(source) as (table, columns):
            self._refuse_wrong_key(source, table, columns)
            # Spark cannot send columns to workers by names that have points or backticks.
            shown = ", ".join(f"{_shown(column)} AS c{i}" for i, column in enumerate(columns))
            ship_package(session := self._session_of(source))
            frame = session.sql(f"SELECT {shown} FROM {table} AS input")
            return profile_frame(frame, [(c.name, c.type) for c in columns])

    def spread(self, work: Callable[[P], R], pieces: Sequence[P], title: str) -> list[R]:
        """Do work for each of some pieces on the workers; return the results in their order."""
        try:
            with _quiet():
                ship_package(self.session)
                return self._watched(self.session, lambda s: spread(s, work, pieces), title)
        except PySparkException as error:
            raise InputError(
                f"the workers of Spark failed ({reason(str(error))}); they need a Python with duckdb, numpy and pyarrow, "
                "and what is done is kept for the next run."
            ) from None

    def require_free(self, target: Source, *, only: str = "") -> None:  # noqa: ARG002
        """Refuse a table that exists: were it overwritten, a failure would destroy its rows."""
        with self._explaining(target):
            exists = self.session.catalog.tableExists(target.table or "")
        if exists:
            raise InputError(
                f"{target.name} exists already, and a table of Spark is not replaced, since a failure would "
                "destroy it; write to a table of another name."
            )

    @contextlib.contextmanager
    def creating(
        self, target: Source, parts: Sequence[Part], comment: str = ""
    ) -> Iterator[MadeTable]:
        """Make a table that does not exist yet; see :class:`~equipoise.engines.base.Engine`.

        Its name is its own until it is whole, so that nothing which another run writes to the same
        table is overwritten or dropped.
        """
        self.require_free(target)
        own = _parts(target.table or "")
        name = _text([*own[:-1], f"{own[-1]}_equipoise_{uuid.uuid4().hex}"])
        said = f" COMMENT {_quoted(comment)}" if comment else ""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._dropping(name))
            stack.enter_context(self._explaining(target))
            columns, texts = self._texts(stack, parts)
            names = ", ".join(DIALECT.identifier(c.name) for c in columns)
            rows = " UNION ALL ".join(f"SELECT {names} FROM {text} AS typed" for text in texts)
            written = replace(target, data=None, table=name)
            self._run(target, f"CREATE TABLE {name}{said} AS {rows}", f"writing {target.name}")
            self._require_whole(written, parts)
            yield MadeTable(written, lambda: self._made(written, texts[-1], columns))
            self._put_in_place(name, target, said)

    def _require_whole(self, written: Source, parts: Sequence[Part]) -> None:
        """Refuse a table in which rows were to be left out that its source no longer has."""
        fewer = [part.source for part in parts if part.without and part.source.kind != "frame"]
        if fewer and self._number_of_rows(written, written.table or "") != sum(
            map(self._rows_left, parts)
        ):
            raise has_changed(fewer[0], "the rows to remove were chosen")

    def _rows_left(self, part: Part) -> int:
        if part.source.kind == "frame":
            return len(part.source.data) - len(part.without)
        with self._opened(part.source) as (table, _):
            return self._number_of_rows(part.source, table) - len(part.without)

    def _put_in_place(self, name: str, target: Source, said: str) -> None:
        """Give a whole table its name, which another run may have taken in the meantime."""
        self.require_free(target)
        final = _text(_parts(target.table or ""))
        try:
            self._run(target, f"ALTER TABLE {name} RENAME TO {final}", f"naming {target.name}")
        except InputError:
            self.require_free(target)
            # Some catalogs cannot rename tables.
            copied = f"CREATE TABLE {final}{said} AS SELECT * FROM {name}"
            self._run(target, copied, f"writing {target.name}")
            self.session.sql(f"DROP TABLE {name}")

    @contextlib.contextmanager
    def _dropping(self, name: str) -> Iterator[None]:
        """Drop a table that is not finished; if that is impossible, say that it may be there."""
        try:
            yield
        except BaseException as error:
            try:
                self.session.sql(f"DROP TABLE IF EXISTS {name}")
            except Exception:  # noqa: BLE001 (a session that has ended raises errors of many kinds)
                left = f"the table {name} may be left, and can be dropped"
                if not isinstance(error, EquipoiseError):
                    error.add_note(f"{left}.")
                    raise error from None
                told = str(error).replace(UNTOUCHED, left)
                error.args = (told if left in told else f"{told} Besides, {left}.",)
            raise

    def _made(self, written: Source, text: str, columns: Sequence[Column]) -> pa.Table:
        """Return rows that were sent as they are in a table, in their order, with their md5."""
        require_comparable(columns, written.name)
        return self._arrow(written, sql.in_order(DIALECT, text, columns), "reading rows")

    def _texts(
        self, stack: contextlib.ExitStack, parts: Sequence[Part]
    ) -> tuple[tuple[Column, ...], list[str]]:
        """Return the columns of the first part, and the rows of all in its types; frames have lines."""
        texts: list[str] = []
        first: tuple[Column, ...] = ()
        for part in parts:
            source, line = part.source, ""
            if source.kind == "frame":
                line = f"line{sql.mark_of([Column(n, '') for n in source.data.column_names])}"
                rows = rows_but(source.data, part.without)
                rows = rows.append_column(line, pa.array(range(len(rows)), pa.int64()))
                source = replace(source, data=rows)
            table, columns = stack.enter_context(self._opened(source))
            if part.without and not line:
                known = Identity(key=tuple(part.source.key))
                gone = stack.enter_context(self._registered(departed(part.without, known)))
                table = f"({sql.rows_without(DIALECT, table, columns, gone, known)})"
            first = first or tuple(c for c in columns if c.name != line)
            values = [
                f"CAST({DIALECT.identifier(c.name)} AS {DIALECT.type_name(c.type)}) AS "
                f"{DIALECT.identifier(c.name)}"
                for c in first
            ]
            values += [line] if line else []
            texts.append(f"(SELECT {', '.join(values)} FROM {table} AS given)")
        return first, texts

    def _run(self, source: Source, statement: str, title: str) -> None:
        with self._explaining(source):  # rather than one of the tables that the rows come from
            self._watched(self._session_of(source), lambda session: session.sql(statement), title)

    # ------------------------------------------------------------------ queries

    @contextlib.contextmanager
    def _opened(
        self, source: Source, *, carried: str = ""
    ) -> Iterator[tuple[str, tuple[Column, ...]]]:
        if source.kind not in ("spark", "frame"):
            raise Unsupported(
                f"the spark engine cannot read {source.kind} ({source.name}), only "
                f"{', '.join(self.reads)}; use the duckdb engine."
            )
        with (
            self._lock,
            self._explaining(source),
            self._input(source) as table,
            self._asked(source) as asked,
        ):
            text = table
            if source.sql is not None:
                text = sql.over(table, source.sql.strip().rstrip(";"))
            text, columns = self._with_common_types(source, text)
            text = self._restricted(source, text, columns)
            if source.view is not None:
                text = self._viewed_text(source, text, columns, carried, asked)
                text, columns = self._with_common_types(source, text)
            yield text, columns

    @contextlib.contextmanager
    def _input(self, source: Source) -> Iterator[str]:
        if source.kind == "spark" and source.data is None:
            yield self._table_text(source)
            return
        frame = source.data
        if source.kind == "frame":
            frame = self._frame(plain_columns(source.data, source.name))
        with self._viewed(frame) as name:
            yield name

    @contextlib.contextmanager
    def _viewed(self, frame: DataFrame) -> Iterator[str]:
        """Name a DataFrame so that queries can use it."""
        name = f"equipoise_{uuid.uuid4().hex}"
        frame.createOrReplaceTempView(name)
        try:
            yield name
        finally:
            frame.sparkSession.catalog.dropTempView(name)

    def _session_of(self, source: Source) -> SparkSession:
        given = source.data if source.kind == "spark" else None
        found: SparkSession = self.session if given is None else given.sparkSession
        return found

    def _with_common_types(self, source: Source, text: str) -> tuple[str, tuple[Column, ...]]:
        """Return the text of a table whose columns have types that all engines know."""
        fields = self._session_of(source).sql(f"SELECT * FROM {text} AS input").schema.fields
        refuse_duplicates([field.name for field in fields], source.name)
        columns, shown = [], []
        for field in fields:
            kind = field.dataType.simpleString()
            name = DIALECT.identifier(field.name)
            columns.append(Column(field.name, common_type(kind)))
            padded = str(field.metadata.get(_PADDED, "")).startswith("char")
            is_padded = padded or re.fullmatch(r"char\(\d+\)", kind)
            shown.append(f"rtrim({name})" if is_padded else name)
        if not columns:
            raise InputError(f"{source.name} has no columns; there is nothing to measure.")
        names = [DIALECT.identifier(c.name) for c in columns]
        if shown != names:
            listed = (f"{e} AS {name}" for e, name in zip(shown, names, strict=True))
            text = f"(SELECT {', '.join(listed)} FROM {text} AS stored)"
        return text, tuple(columns)

    def _table_text(self, source: Source) -> str:
        """Return the quoted name of a table; refuse one that does not exist, and list near names."""
        name = source.table or ""
        if not self.session.catalog.tableExists(name):
            raise _not_found(self.session, source)
        return _text(_parts(name))

    def _arrow(self, source: Source, query: str, title: str) -> pa.Table:
        found = self._watched(
            self._session_of(source), lambda session: session.sql(query).toArrow(), title
        )
        return in_utc(found)

    def _watched(self, session: SparkSession, work: Callable[[SparkSession], T], title: str) -> T:
        """Work in a thread, so that it can be interrupted."""
        tag = f"equipoise-{uuid.uuid4().hex}"

        def tagged() -> T:
            session.addTag(tag)
            try:
                return work(session)
            finally:
                session.removeTag(tag)

        def interrupt() -> None:
            session.interruptTag(tag)

        return watched(
            tagged,
            title=title,
            share=lambda: 0.0,
            interrupt=interrupt,
            report=self._report,
        )

    @contextlib.contextmanager
    def _registered(self, rows: pa.Table) -> Iterator[str]:
        # Spark does not know that these rows are few: it would send those of the table around instead.
        with self._viewed(self._frame(rows).hint("broadcast")) as name:
            yield name

    def _frame(self, rows: pa.Table) -> DataFrame:
        # By default Spark would take timestamps without a zone for ones of the session's zone.
        schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
        return self.session.createDataFrame(rows, schema)

    @contextlib.contextmanager
    def _explaining(self, source: Source) -> Iterator[None]:
        try:
            with _quiet():
                yield
        except Exception as error:
            if (said := explained(error, source)) is None:
                raise
            raise said from None


def _shown(column: Column) -> str:
    """Select a value in a type that workers in Python write as all engines do."""
    name = DIALECT.identifier(column.name)
    kind = family(column.type)
    if kind in ("date", "timestamp", "instant"):
        return DIALECT.text(name, column.type)
    return f"CAST({name} AS STRING)" if kind == "other" else name


def _quoted(text: str) -> str:
    r"""Quote a text of a statement that takes no expression.

    >>> print(_quoted("Ann's table"))
    'Ann\u0027s table'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\u0027") + "'"


def _parts(name: str) -> list[str]:
    """Split the name of a table at its points, which may be inside of backticks."""
    found = re.findall(r"`((?:[^`]|``)+)`|([^.`]+)", name)
    return [(quoted or bare).replace("``", "`") for quoted, bare in found]


def _text(parts: Sequence[str]) -> str:
    return ".".join(map(DIALECT.identifier, parts))


def _not_found(session: SparkSession, source: Source) -> SourceNotFound:
    """Say that a table is not there, and which tables or schemas are."""
    name = source.table or ""
    schema = name.rpartition(".")[0]
    known, what = _tables_beside(session, schema), "tables"
    wanted = name
    if not known and schema:
        known, what = [found.name for found in session.catalog.listDatabases()], "schemas"
        wanted = schema
    listed = f"; there are the {what} {', '.join(known[:20])}" if known else ""
    return SourceNotFound(
        f"{source.name} does not exist in the catalog of Spark{listed}.{did_you_mean(wanted, known)}"
    )


def _tables_beside(session: SparkSession, schema: str, *, views: bool = True) -> list[str]:
    """List the tables of a schema of the catalog, with its name before theirs."""
    with contextlib.suppress(PySparkException):
        listed = session.catalog.listTables(schema) if schema else session.catalog.listTables()
        before = f"{schema}." if schema else ""
        return sorted(
            f"{before}{table.name}"
            for table in listed
            if not table.isTemporary
            and (views or table.tableType != "VIEW")
            and (views or not (table.description or "").startswith(MADE))
        )
    return []


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Spark from printing hundreds of lines about every error, which is explained elsewhere.

    It also warns of a version of pandas, which nothing here uses.
    """
    logger = logging.getLogger("SQLQueryContextLogger")
    logged, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="pyspark")
            warnings.filterwarnings("ignore", message="PySpark does not yet")
            yield
    finally:
        logger.disabled = logged
