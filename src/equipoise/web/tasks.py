"""What workers do: functions that can be imported, given plain data, and report their progress."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from equipoise.progress import Reporter, silent
from equipoise.web.rooms.room import SHARED, Ask, engine_of, pack

if TYPE_CHECKING:
    from equipoise.web.places import Places

_MODULES = {"frontier": ("plan", "FRONTIER")}
"""Rooms that share a module with another."""


def room_named(name: str) -> Any:
    """The room of a name."""
    module, constant = _MODULES.get(name, (name, "ROOM"))
    return getattr(importlib.import_module(f"equipoise.web.rooms.{module}"), constant)


def count(ask: Ask, *, progress: Reporter = silent) -> bytes:
    """Count a table; the counts are packed, since only workers look into them."""
    from equipoise.api.measurement import count as count_rows

    return pack(count_rows(ask.path, engine=ask.engine, progress=progress, **ask.table))


def answer(name: str, ask: Ask, form: str, *, progress: Reporter = silent) -> bytes:
    """Compute what a room shows, as JSON or as a part of its page."""
    room = room_named(name)
    shown = room.compute(replace(ask, progress=progress))
    if form == "json":
        text = json.dumps(shown, ensure_ascii=False, allow_nan=False)
        return ask.places.without_paths(text).encode()
    from equipoise.web.pages import address, render
    from equipoise.web.twins import write_twins

    pairs = list(ask.pairs)
    page = render(
        f"parts/{name}.html",
        shown=shown,
        room=room,
        pairs=pairs,
        shared=[pair for pair in pairs if pair[0] in SHARED],
        files=[(kind.upper(), address(f"/api/{name}/file.{kind}", pairs)) for kind in room.files],
        twin=write_twins(room.twin(ask, shown)),
        read_only=ask.read_only,
        **room.present(ask, shown),
    )
    return ask.places.without_paths(page).encode()


def open_table(places: Places, name: str, memory: int, *, progress: Reporter = silent) -> list[str]:
    """Read the columns of a table, or fail as it would later."""
    from equipoise.datasets.lookup import locate

    progress("reading the table", 0.0)
    engine = engine_of(places, memory)
    source = locate(places.resolve(name))
    columns = [column.name for column in engine.schema(source)]
    engine.profile(replace(source, sql="SELECT * FROM input LIMIT 1000"))
    return columns


def file(name: str, ask: Ask, kind: str, *, progress: Reporter = silent) -> bytes:
    """Write what a room shows as a file."""
    from equipoise.web import exports

    text = exports.write(name, replace(ask, progress=progress), kind)
    return ask.places.without_paths(text).encode()


def build_example(folder: str, *, progress: Reporter = silent) -> None:
    """Write the example, unless it is there."""
    from pathlib import Path

    from equipoise.datasets.example import build_example as build

    place = Path(folder)
    if not (place / "lake" / "sources.toml").exists():
        progress("writing the example", 0.0)
        build(place / "adult.parquet", place / "lake")


def lake_index(ask: Ask, *, progress: Reporter = silent) -> dict[str, Any]:
    """Index a lake."""
    from equipoise.web.rooms import lake

    return lake.index(replace(ask, progress=progress))


def lake_answer(ask: Ask, answers: list[dict[str, Any]], *, progress: Reporter = silent) -> str:
    """Write answers into a mapping file."""
    from equipoise.web.rooms import lake

    return lake.answer(replace(ask, progress=progress), answers)


def lake_repair(ask: Ask, output: str, *, progress: Reporter = silent) -> dict[str, Any]:
    """Repair a table with rows of a lake."""
    from equipoise.web.rooms import lake

    return lake.repair(replace(ask, progress=progress), output)


def evaluate(
    ask: Ask, options: dict[str, Any], output: str, *, progress: Reporter = silent
) -> dict[str, Any]:
    """Train and test models on a table, or on two."""
    from equipoise.web.rooms import compare

    return compare.evaluate(replace(ask, progress=progress), options, output)
