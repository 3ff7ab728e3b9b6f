"""The contents of a lake: its tables as they are read, and the index of what is in them."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from equipoise.engines.addresses import without_password
from equipoise.engines.base import Engine
from equipoise.engines.profiling import Profile
from equipoise.errors import InputError
from equipoise.lake.tables import catalog
from equipoise.lake.tables.conditions import FILE_NAME
from equipoise.lake.tables.index import (
    Index,
    Refreshed,
    Table,
    Workers,
    open_current,
    refresh,
    sweep,
)
from equipoise.options.search import ProfiledBy
from equipoise.progress import Reporter, silent
from equipoise.scratch import cache_folder

INDEX_NAME = ".equipoise-index.duckdb"


class Contents:
    """The tables of a lake, its index, and the engine that reads them.

    Everything that works on a lake takes its contents; :class:`~equipoise.lake.lake.Lake` adds
    what people call. The parameters are described there.
    """

    def __init__(
        self,
        places: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        index: str | os.PathLike[str] | None = None,
        engine: Engine | Callable[[], Engine] | None = None,
        by: ProfiledBy = "client",
        refresh: bool = True,
        progress: Reporter = silent,
        waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self.places = catalog.as_places(places)
        self._engine = engine
        self._by = by
        self.index_path = Path(index) if index is not None else _index_path(self.places)
        self._progress, self._waiting = progress, waiting
        self._refresh_first = refresh
        self.last_survey: tuple[Any, Any] | None = None
        """The last survey of these tables, after what it was made for; a refresh forgets it."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(map(without_password, self.places))}>"

    @functools.cached_property
    def engine(self) -> Engine:
        """The engine that reads the tables, loaded when it is first used: a search may need none."""
        if self._engine is None:
            from equipoise.engines.routing import shared_engine

            return shared_engine()
        return self._engine() if callable(self._engine) else self._engine

    def refresh(self) -> Refreshed:
        """Profile tables that are new or have changed, and forget those that are gone."""
        self.__dict__.pop("index", None)
        self.__dict__.pop("tables", None)
        self.last_survey = None
        done = refresh(
            self.index_path,
            self.places,
            engine=lambda: self.engine,
            workers=_spark if self._by == "spark" else None,
            progress=self._progress,
            waiting=self._waiting,
        )
        self._refresh_first = False  # after an error the index may tell of tables that have gone
        return done

    @functools.cached_property
    def index(self) -> Index:
        """The index of the tables, brought up to date when it is first used."""
        if self._refresh_first or not self.index_path.exists():
            current = open_current(self.index_path, self.places, self._progress)
            if current is not None:
                self._refresh_first = False
                return current[0]
            self.refresh()
        else:
            sweep(self.index_path)
        return Index(self.index_path, self.places)

    @functools.cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables in the index, including those that cannot be read."""
        return tuple(self.index.tables())

    def profiles(self, tables: Sequence[Table]) -> dict[int, Profile]:
        """The profiles of some tables, by the numbers of the tables."""
        return self.index.profiles(table.id for table in tables)

    def files(self) -> list[tuple[str, Path]]:
        """The files the lake is made of, with the names that messages use for them."""
        own = [("the file of conditions", catalog.root(self.places) / FILE_NAME)]
        own.append(("the index", self.index_path))
        return own + [(t.name, path) for t in self.tables for path in t.source.paths]

    def require_outside(self, paths: Sequence[Path]) -> None:
        """Refuse to write a table into the lake, where it would become one of its tables."""
        for place in (Path(place.removeprefix("delta:")) for place in self.places):
            if not place.is_dir():
                continue
            for path in paths:
                if place.resolve() in path.resolve().parents:
                    raise InputError(
                        f"{path} is inside the lake and would become one of its tables; write it "
                        "somewhere else."
                    )


def _spark() -> Workers:
    """Return the workers of Spark."""
    from equipoise.engines.routing import make_engine

    return cast("Workers", make_engine("spark"))


def _index_path(places: Sequence[str]) -> Path:
    alone = Path(places[0])
    is_delta = (alone / catalog.DELTA_LOG).is_dir()
    if len(places) == 1 and alone.is_dir() and not is_delta and os.access(alone, os.W_OK):
        return Path(places[0]) / INDEX_NAME
    names = "\n".join(str(Path(without_password(place)).absolute()) for place in places)
    digest = hashlib.md5(names.encode(), usedforsecurity=False).hexdigest()[:16]
    folder = cache_folder() / "lakes"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be created ({error.strerror}); choose a file for the `index`."
        ) from None
    return folder / f"{digest}.duckdb"
