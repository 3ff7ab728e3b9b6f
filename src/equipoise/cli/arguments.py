"""From the options of a command to the keywords and objects of the library."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.cli import terminal
from equipoise.errors import InputError

if TYPE_CHECKING:
    from equipoise.counts import Counts
    from equipoise.engines.base import Engine
    from equipoise.lake.lake import Lake


@contextlib.contextmanager
def library_arguments(data: str, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the library's keywords for a command's options, and show progress meanwhile."""
    # An empty list was not given: the library then uses its own default.
    given = {name: value for name, value in options.items() if value != ()}
    quiet = given.pop("quiet")
    if given.get("plan") is None:  # a plan knows the columns it was made for
        _suggest(data, given, quiet=quiet)
    with terminal.progress(quiet=quiet) as report:
        yield {**given, "progress": report}


def _suggest(data: str, given: dict[str, Any], *, quiet: bool) -> None:
    """Fill in columns that were not named, if the data set's card suggests some."""
    sensitive, label = given.get("sensitive_features"), given["label"]
    if sensitive and label:
        return
    from equipoise import datasets

    # A file takes precedence over a data set of the same name.
    if data not in datasets.names() or Path(data).exists():
        from equipoise.api.tables import require_named

        reading = {k: given.get(k) for k in ("sql", "encoding", "delimiter")}
        require_named(data, sensitive, label, **reading)
        return
    card = datasets.card(data)
    given["sensitive_features"] = sensitive or tuple(card.sensitive)
    given["label"] = label or card.label
    given["count"] = given["count"] or card.count
    columns = ",".join(given["sensitive_features"])
    terminal.say(f"measuring --sensitive {columns} --label {given['label']}", quiet=quiet)


def show_hints(counts: Counts, *, quiet: bool) -> None:
    """Report on stderr skipped lines, and counted values that look like missing ones."""
    from equipoise.measures.sentences import hints

    if counts.skipped:
        terminal.say(f"{counts.skipped}.", quiet=quiet)
    for sentence in hints(counts):
        terminal.say(f"hint: {sentence}", quiet=quiet)


def report_skipped(data: str, given: dict[str, Any], *, quiet: bool) -> None:
    """Report skipped lines on stderr, for results that do not list them."""
    if quiet or not given.get("lenient"):
        return  # lines are only skipped if that was requested
    from equipoise.datasets.lookup import locate
    from equipoise.engines.routing import shared_engine
    from equipoise.engines.sources import READING

    engine = shared_engine(*(given.get(k) for k in ("threads", "memory")), given["progress"])
    skipped = engine.skipped(locate(data, **{k: given.get(k) for k in READING}))
    if skipped:
        terminal.say(f"{skipped}.", quiet=quiet)


@contextlib.contextmanager
def open_lake(places: Sequence[str], options: dict[str, Any]) -> Iterator[Lake]:
    """Return the lake that a command's options name, and show progress meanwhile."""
    index, refresh = options.pop("index"), options.pop("refresh")
    threads, memory = options.pop("threads"), options.pop("memory")
    quiet, by = options.pop("quiet"), options.pop("by", "client")
    from equipoise.lake.lake import Lake

    def engine() -> Engine:
        from equipoise.engines.routing import shared_engine

        return shared_engine(threads, memory)

    with terminal.progress(quiet=quiet) as report:
        yield Lake(
            places,
            index=index,
            engine=engine,
            by=by,
            refresh=refresh,
            progress=report,
            waiting=lambda: terminal.say("another run is indexing this lake; waiting", quiet=quiet),
        )


def require_free(lake: Lake, output: str | None, ledger: str | None) -> None:
    """Refuse an output that cannot be written, before the lake is even looked at."""
    if output is not None:
        from equipoise.lake.repair.destinations import named_places

        named_places(output, ledger, lake.engine)


def refuse_overwriting(lake: Lake, *outputs: str | None, base: str | None = None) -> None:
    """Refuse to write over the base or a file of the lake, before any work is done."""
    from equipoise.engines.addresses import is_address
    from equipoise.lake.repair.output import require_apart

    read = [] if base is None else [("the base", Path(base))]
    written = [Path(output) for output in outputs if output is not None and not is_address(output)]
    require_apart(written, read + lake.files())


def require_output(output: str | None, *, dry_run: bool) -> None:
    """Refuse to do nothing, or to write in a dry run."""
    if (output is None) != dry_run:
        raise InputError("give either --output or --dry-run.")
