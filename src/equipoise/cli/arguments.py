"""From the options of a command to the keywords of the library."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from equipoise.cli import terminal

if TYPE_CHECKING:
    from equipoise.counts import Counts


@contextlib.contextmanager
def library_arguments(data: str, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the library's keywords for a command's options, and show progress meanwhile."""
    given = {name: value for name, value in options.items() if value != ()}  # () is not given
    quiet = given.pop("quiet")
    _suggest(data, given, quiet=quiet)
    with terminal.progress(quiet=quiet) as report:
        yield {**given, "progress": report}


def _suggest(data: str, given: dict[str, Any], *, quiet: bool) -> None:
    """Fill in columns that were not named, if the data set's card suggests some."""
    sensitive, label = given.get("sensitive_features"), given["label"]
    if sensitive and label:
        return
    from pathlib import Path

    from equipoise import datasets

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
        return
    from equipoise.datasets.lookup import locate
    from equipoise.engines.duckdb import shared_engine
    from equipoise.engines.sources import READING

    engine = shared_engine(*(given.get(k) for k in ("threads", "memory")), given["progress"])
    skipped = engine.skipped(locate(data, **{k: given.get(k) for k in READING}))
    if skipped:
        terminal.say(f"{skipped}.", quiet=quiet)
