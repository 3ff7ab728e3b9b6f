"""From the options of a command to a lake."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.cli import terminal

if TYPE_CHECKING:
    from equipoise.lake.lake import Lake


@contextlib.contextmanager
def open_lake(places: Sequence[str], options: dict[str, Any]) -> Iterator[Lake]:
    """Give the lake that a command's options name, and show progress meanwhile."""
    index, refresh = options.pop("index"), options.pop("refresh")
    threads, memory = options.pop("threads"), options.pop("memory")
    quiet = options.pop("quiet")
    from equipoise.engines.duckdb import shared_engine
    from equipoise.lake.lake import Lake

    with terminal.progress(quiet=quiet) as report:
        yield Lake(
            places,
            index=index,
            engine=shared_engine(threads, memory),
            refresh=refresh,
            progress=report,
            waiting=lambda: terminal.say("another run is indexing this lake; waiting", quiet=quiet),
        )


def refuse_overwriting(lake: Lake, *outputs: str | None, base: str | None = None) -> None:
    """Refuse to write over the base or a file of the lake, before any work is done."""
    from pathlib import Path

    from equipoise.lake.repair.output import require_apart

    read = [] if base is None else [("the base", Path(base))]
    written = [Path(output) for output in outputs if output is not None]
    require_apart(written, read + lake.files())
