"""Profiles of the tables of a lake, including files that are badly written."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from equipoise.engines.base import Engine
from equipoise.engines.csv.dialects import csv_dialect
from equipoise.engines.csv.encodings import guess_encoding
from equipoise.engines.csv.records import NULL, padded_records, refuse_long_end
from equipoise.engines.profiling import Profile, Profiler
from equipoise.engines.sources import Source
from equipoise.engines.stores.states import snapshot_of
from equipoise.errors import EquipoiseError, InputError, NotATable
from equipoise.lake.tables.catalog import CatalogEntry, opened, public

_BATCH = 10_000
_SMALL = 1 << 20  # bytes; starting a query takes longer than parsing this much in Python


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """A table of a lake with its profile, and why it or its rows cannot be read."""

    entry: CatalogEntry
    source: Source  # with the encoding that was found, and lenient if necessary
    snapshot: str = ""  # SHA-256 of the file, or the state of a table that has a name
    profile: Profile | None = None
    # Profile that a search uses. For a small file it includes lines that are not valid rows; in a
    # large file the rows say enough.
    about: Profile | None = None
    problem: str | None = None


def profile_table(entry: CatalogEntry, engine: Engine, snapshot: str | None = None) -> Profiled:
    """Profile one table. Problems are reported in the result, never raised.

    A CSV file with broken lines or duplicate column names is read leniently: broken lines are skipped
    and counted, and duplicate columns are numbered. If it still cannot be read as a table, the
    profile describes its text, so that a search can find it.
    """
    import pyarrow as pa

    source = entry.source
    if entry.problem is not None:
        return Profiled(entry=entry, source=source, problem=entry.problem)
    known, is_small = snapshot or "", entry.size <= _SMALL
    profile: Profile | None
    try:
        known = known or snapshot_of(source)
        source = opened(entry)
        source, profile = _read(source, engine, is_small=is_small)
    except (EquipoiseError, OSError, pa.ArrowException) as error:
        problem: str | None = public(_sentence(error, source), source)
        profile = about = _padded(source)
    else:
        problem = None if profile.rows else f"{entry.name} has no rows."
        about = _about(source, profile) if is_small else profile
    return Profiled(
        entry=entry, source=source, snapshot=known, profile=profile, about=about, problem=problem
    )


def merged_profile(entry: CatalogEntry, snapshot: str, parts: Sequence[Profiler]) -> Profiled:
    """Make the profile of a table of those that were gathered of its parts, in their order."""
    whole, *later = parts
    for part in later:
        whole.merge(part)
    profile = whole.profile()
    return Profiled(
        entry=entry, source=entry.source, snapshot=snapshot, profile=profile, about=profile
    )


def _read(source: Source, engine: Engine, *, is_small: bool) -> tuple[Source, Profile]:
    """Profile a table; if single lines make that fail, without these lines."""
    import pyarrow as pa

    try:
        return _profile(source, engine, is_small=is_small)
    except InputError as error:
        if source.kind != "csv":
            raise
        try:
            return _profile(replace(source, lenient=True), engine, is_small=is_small)
        except (EquipoiseError, OSError, pa.ArrowException) as other:
            # The first error says more, unless most lines of the file are broken.
            raise (other if isinstance(other, NotATable) else error) from None


def _profile(source: Source, engine: Engine, *, is_small: bool) -> tuple[Source, Profile]:
    """Profile a table; if its encoding was guessed wrongly from the first megabyte, guess again."""
    import pyarrow as pa

    if source.kind == "csv" and not is_small:
        refuse_long_end(source.files[0])
    try:
        quick = _quick(source) if is_small and not source.lenient else None
        return source, quick or engine.profile(source)
    except (EquipoiseError, OSError, pa.ArrowException):
        if is_small or source.kind != "csv" or source.encoding != "utf-8":
            raise
        encoding = guess_encoding(source.files[0], whole=True)
        if encoding == source.encoding:
            raise
        source = replace(source, encoding=encoding)
        return source, engine.profile(source)


def quick_profile(source: Source) -> Profile | None:
    """Profile a whole CSV file without the engine, if it is small, simple and plainly read."""
    if source.kind != "csv" or len(source.paths) != 1 or source.lenient:
        return None
    is_whole = source.sql is None and source.where is None
    path = source.paths[0]
    try:
        return _quick(source) if is_whole and path.stat().st_size <= _SMALL else None
    except (EquipoiseError, OSError):
        return None  # which the engine explains


def _quick(source: Source) -> Profile | None:
    """Profile a small and simple CSV file without the engine, which would take longer to start.

    Whatever could be read in more than one way is left to the engine: quotes, empty lines, lines of
    another width.
    """
    path = source.files[0] if source.files else Path()
    if source.kind != "csv" or path.name.lower().endswith(".gz"):
        return None
    dialect = csv_dialect(path, encoding=source.encoding, delimiter=source.delimiter)
    try:
        text = path.read_bytes().decode(source.encoding).removeprefix("\ufeff")
    except UnicodeError:
        return None
    lines = text.split(dialect.line_end or "\n")
    if not lines[-1]:
        lines.pop()
    apart = text if dialect.line_end == "\n" else text.replace(dialect.line_end, "")
    strange = '"\r\0' if dialect.line_end == "\n" else '"\r\n\0'
    if any(sign in apart for sign in strange) or not all(lines):
        return None
    records = [line.split(dialect.delimiter) for line in lines[1:]]
    if any(len(record) != len(dialect.columns) for record in records):
        return None
    profiler = Profiler(dialect.columns, ["VARCHAR"] * len(dialect.columns))
    _add(profiler, records)
    return profiler.profile()


def _add(profiler: Profiler, records: Sequence[Sequence[str]]) -> None:
    columns = zip(*records, strict=True)
    profiler.add_texts(
        [[None if field in ("", NULL) else field for field in column] for column in columns]
    )


def _sentence(error: Exception, source: Source) -> str:
    if isinstance(error, EquipoiseError):
        return str(error)
    reason = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0].rstrip(".")
    return f"{source.name} cannot be read: {reason}."


def _about(source: Source, profile: Profile) -> Profile:
    """Include the lines that were skipped: their words also say what the table is about."""
    every = _padded(source) if profile.skipped.lines else None
    names = [column.name for column in profile.columns]
    if every is None or [column.name for column in every.columns] != names:
        return profile
    return every


def _padded(source: Source) -> Profile | None:
    if source.kind != "csv":
        return None
    try:
        names, records = padded_records(source.files[0], source.encoding)
        profiler = Profiler(names, ["VARCHAR"] * len(names))
        while batch := list(itertools.islice(records, _BATCH)):
            _add(profiler, batch)
    except (EquipoiseError, OSError, csv.Error, UnicodeError):
        return None
    return profiler.profile()
