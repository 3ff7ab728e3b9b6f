"""A lake: tables nobody has described, and what is known of them."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.engines.base import Engine
from equipoise.engines.profiling import Profile
from equipoise.engines.sources import Source
from equipoise.errors import InputError, did_you_mean
from equipoise.lake.tables import catalog
from equipoise.lake.tables.index import Index, Refreshed, Table, refresh, sweep
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from equipoise.lake.offers.find import Found
    from equipoise.lake.repair.acquisition import Acquired
    from equipoise.lake.repair.ledger import Replayed
    from equipoise.lake.tables.hits import Hits
    from equipoise.options.search import AcquisitionLimits, SearchRequest
    from equipoise.plans.plan import Plan

INDEX_NAME = ".equipoise-index.duckdb"


class Lake:
    r"""Folders, globs, files and databases of tables, with an index of what is in them.

    Parameters
    ----------
    places
        A folder, a file, a glob, or a list of these.
    index
        The file of the index; unless given it lies in the lake's folder, or, if that cannot be
        written to or the lake is no single folder, in the user's cache.
    engine
        Reads the tables; DuckDB, unless given.
    refresh
        Whether the index is brought up to date when it is first used.
    progress
        Is told how far long work is.
    waiting
        Is called once if another run is writing the index.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "staff.csv").write_text("gender,hired\nF,yes\nM,no\n")
    >>> lake = Lake(folder)
    >>> [(table.name, table.rows) for table in lake.tables]
    [('staff.csv', 2)]
    >>> people = {"sex": ["Female", "Male"], "hired": ["no", "yes"]}
    >>> [hit.table.name for hit in lake.search(people).hits]
    ['staff.csv']
    """

    def __init__(
        self,
        places: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        index: str | os.PathLike[str] | None = None,
        engine: Engine | None = None,
        refresh: bool = True,
        progress: Reporter = silent,
        waiting: Callable[[], None] = lambda: None,
    ) -> None:
        if engine is None:
            from equipoise.engines.duckdb import shared_engine

            engine = shared_engine()
        self.places = catalog.as_places(places)
        self.engine = engine
        self.index_path = Path(index) if index is not None else _index_path(self.places)
        self._progress, self._waiting = progress, waiting
        self._refresh_first = refresh

    def __repr__(self) -> str:
        return f"<Lake of {', '.join(self.places)}>"

    def refresh(self) -> Refreshed:
        """Look at tables that are new or have changed, and forget those that are gone."""
        self.__dict__.pop("index", None)
        self.__dict__.pop("tables", None)
        self._refresh_first = False
        return refresh(
            self.index_path,
            self.places,
            engine=self.engine,
            progress=self._progress,
            waiting=self._waiting,
        )

    @functools.cached_property
    def index(self) -> Index:
        """What is known of the tables, brought up to date when it is first used."""
        if self._refresh_first or not self.index_path.exists():
            self.refresh()
        else:
            sweep(self.index_path)
        return Index(self.index_path, self.places)

    @functools.cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables the index knows, those that cannot be read among them."""
        return tuple(self.index.tables())

    def profiles(self, tables: Sequence[Table]) -> dict[int, Profile]:
        """What is known of some tables, by their numbers."""
        return self.index.profiles(table.id for table in tables)

    def files(self) -> list[tuple[str, Path]]:
        """The files the lake is made of, with what messages call them."""
        from equipoise.lake.tables.conditions import FILE_NAME

        own = [("the file of conditions", catalog.root(self.places) / FILE_NAME)]
        own.append(("the index", self.index_path))
        return own + [(t.name, path) for t in self.tables for path in t.source.paths]

    def require_outside(self, paths: Sequence[Path]) -> None:
        """Refuse to write a table among those of the lake, of which it would be one."""
        for place in map(Path, self.places):
            if not place.is_dir():
                continue
            for path in paths:
                if place.resolve() in path.resolve().parents:
                    raise InputError(
                        f"{path} lies in the lake, and would be one of its tables; write elsewhere."
                    )

    # ------------------------------------------------------------------- using

    def search(
        self,
        data: Any,
        *,
        top: int = 10,
        encoding: str | None = None,
        delimiter: str | None = None,
    ) -> Hits:
        """Find the tables whose rows could be put below those of a table.

        Parameters
        ----------
        data
            A path, the name of a bundled data set, or a frame.
        top
            How many to give.
        encoding, delimiter
            How the table is read if it is a CSV file.
        """
        from equipoise.datasets.lookup import locate
        from equipoise.lake.tables.hits import search_lake

        query = locate(data, encoding=encoding, delimiter=delimiter)
        return search_lake(self.index, self.engine, query, top=top)

    def find(
        self,
        plan: Plan | str | os.PathLike[str],
        *,
        base: Any = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        top: int = 10,
        **looking: Any,
    ) -> Found:
        """Rank the tables by how many of the rows a plan needs they offer per cost.

        Parameters
        ----------
        plan
            A plan, or the file of one.
        base
            The table it was made for; unless given the one it names, if that is there. It is read
            as when the plan was made: only rows of its condition, in its encoding.
        encoding, delimiter
            How the base is read if it is a CSV file, if otherwise than when the plan was made.
        top
            How many tables to give.
        **looking
            How to look; see :class:`~equipoise.options.search.SearchRequest`.
        """
        from equipoise.lake.offers.find import find

        made = read_plan(plan)
        return find(
            made,
            self,
            base=_base(made, base, encoding, delimiter),
            looking=_options(looking)[0],
            top=top,
            progress=self._progress,
        )

    def mapping(
        self,
        plan: Plan | str | os.PathLike[str],
        *,
        base: Any = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        file: str = "mapping.toml",
        **looking: Any,
    ) -> str:
        """Propose how columns and values of tables become the base's: the text of a mapping file.

        Parameters are those of :meth:`find`; ``file`` is the name the text calls itself.
        """
        from equipoise.lake.offers.proposals import propose

        made = read_plan(plan)
        located = _base(made, base, encoding, delimiter)
        how = _options(looking)[0]
        return propose(made.counts, self, located, how, file=file, progress=self._progress)

    def acquire(
        self,
        plan: Plan | str | os.PathLike[str],
        output: str | os.PathLike[str] | None,
        *,
        base: Any = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        ledger: str | os.PathLike[str] | None = None,
        hash_key: bytes | None = None,
        **options: Any,
    ) -> Acquired:
        """Take the rows a plan needs, and write the repaired table and the ledger.

        Parameters
        ----------
        plan, base, encoding, delimiter
            As in :meth:`find`; the base must be there.
        output
            The file to write; without one it is a dry run.
        ledger
            The list of changes; ``OUTPUT.ledger.parquet`` unless given.
        hash_key
            Makes the ledger's hashes such that rows cannot be guessed from them.
        **options
            How to look, see :class:`~equipoise.options.search.SearchRequest`, and within what to take
            rows, see :class:`~equipoise.options.search.AcquisitionLimits`.
        """
        from equipoise.lake.repair.acquire import acquire

        made = read_plan(plan)
        located = _base(made, base, encoding, delimiter)
        if located is None:
            named = f" ({made.source} is not there)" if made.source else ""
            raise InputError(f"name the table the plan was made for with --base{named}.")
        looking, limits = _options(options)
        return acquire(
            made,
            located,
            self,
            output,
            ledger=ledger,
            looking=looking,
            limits=limits,
            hash_key=hash_key,
            progress=self._progress,
        )

    def replay(
        self,
        ledger: str | os.PathLike[str],
        *,
        repaired: Any = None,
        hash_key: bytes | None = None,
    ) -> Replayed:
        """Fetch every added row again from its source, and compare it with the ledger.

        Parameters
        ----------
        ledger
            The file.
        repaired
            The repaired table, to compare its rows as well.
        hash_key
            The key, if the ledger's hashes are keyed.
        """
        from equipoise.datasets.lookup import locate
        from equipoise.lake.repair.ledger import replay

        located = None if repaired is None else locate(repaired)
        return replay(ledger, self, repaired=located, hash_key=hash_key, progress=self._progress)


def as_lake(
    lake: Lake | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    progress: Reporter = silent,
) -> Lake:
    """Give a lake, or what a user calls one as a lake."""
    return lake if isinstance(lake, Lake) else Lake(lake, progress=progress)


def read_plan(plan: Plan | str | os.PathLike[str]) -> Plan:
    """Give a plan, or read the file of one."""
    from equipoise.plans.plan import Plan

    return Plan.read(plan) if isinstance(plan, (str, os.PathLike)) else plan


def _base(plan: Plan, base: Any, encoding: str | None, delimiter: str | None) -> Source | None:
    """Find the table a plan was made for, read as then: the one given, or the one it names."""
    from equipoise.datasets import names
    from equipoise.datasets.lookup import locate
    from equipoise.lake.matching.restriction import refuse_sql

    reading = plan.counts.reading.but(encoding=encoding, delimiter=delimiter)
    refuse_sql(reading.sql)
    if base is not None:
        return locate(base, **reading.options)
    if plan.source is None:
        return None
    there = Path(plan.source.partition("::")[0]).exists() or plan.source in names()
    return locate(plan.source, **reading.options) if there else None


def take_options(options: dict[str, Any]) -> tuple[SearchRequest, AcquisitionLimits]:
    """Take how to look, and within what to take rows, out of some options."""
    from equipoise.lake.matching.mapping import read_codebook
    from equipoise.options.search import AcquisitionLimits, SearchRequest

    codebook = options.pop("codebook", None)
    if codebook is not None:
        is_file = isinstance(codebook, (str, os.PathLike))
        options["codebook"] = read_codebook(codebook) if is_file else codebook
    parts = []
    for kind in (SearchRequest, AcquisitionLimits):
        names = [f.name for f in fields(kind)]
        # A time limit is one of the plan, too.
        chosen = {n: options[n] for n in names if n in options}
        for name in chosen:
            if name != "time_limit":
                del options[name]
        parts.append(kind(**chosen))
    looking, limits = parts
    return looking, limits  # type: ignore[return-value]


def _options(options: dict[str, Any]) -> tuple[SearchRequest, AcquisitionLimits]:
    from equipoise.options.search import AcquisitionLimits, SearchRequest

    taken = take_options(options)
    options.pop("time_limit", None)
    known = [f.name for kind in (SearchRequest, AcquisitionLimits) for f in fields(kind)]
    for name in options:
        raise TypeError(f"there is no option {name!r}.{did_you_mean(name, known)}")
    return taken


def _index_path(places: Sequence[str]) -> Path:
    if len(places) == 1 and Path(places[0]).is_dir() and os.access(places[0], os.W_OK):
        return Path(places[0]) / INDEX_NAME
    names = "\n".join(str(Path(place).absolute()) for place in places)
    digest = hashlib.md5(names.encode(), usedforsecurity=False).hexdigest()[:16]
    folder = _cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be made ({error.strerror}); say where the index goes with --index."
        ) from None
    return folder / f"{digest}.duckdb"


def _cache_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
    return home / "equipoise" / "lakes"
