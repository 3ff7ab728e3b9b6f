"""``equipoise diff``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, terminal
from equipoise.cli.command import Command
from equipoise.cli.options import (
    output_format,
    output_options,
    request_options,
    suppress_option,
    table_options,
    top_option,
)
from equipoise.options.measure import MeasureOptions

FORMATS = ("text", "json", "csv", "markdown")


@click.command(
    "diff",
    cls=Command,
    epilog="""\b
Examples:
  equipoise diff january.csv february.csv --sensitive sex,race --label income
  equipoise diff before.parquet after.parquet -s sex -l income --json -o change.json

The interval treats the two tables as independent samples. If one table contains the rows of the
other, the change itself is exact, and the interval is too wide.""",
)
@click.argument("before")
@click.argument("after")
@table_options
@request_options(MeasureOptions, but=("uncertainty", "favourable", "reference", "measures"))
@suppress_option
@top_option("rows", "20 in text")
@output_options(*FORMATS)
def command(
    before: str,
    after: str,
    format_: str | None,
    output: str | None,
    top: int | None,
    **options: Any,
) -> None:
    """Compare the biases of two tables, BEFORE and AFTER, with the uncertainty of the change."""
    kind = output_format(format_, output, FORMATS)
    quiet = options["quiet"]
    with arguments.library_arguments(before, options) as given:
        from equipoise.api.measurement import diff

        change = diff(before, after, **given)
    arguments.show_hints(change.before.counts, quiet=quiet)
    if change.after.counts.skipped:
        terminal.say(f"{after}: {change.after.counts.skipped}.", quiet=quiet)
    if kind == "json":
        text = change.top(top).to_json(indent=2)
    elif kind == "csv":
        text = change.top(top).to_csv().rstrip("\n")
    elif kind == "markdown":
        table = change.top(top).grid().markdown()
        text = f"{change.heading}\n\n{table}\n\n{change.sentence}"
    else:
        text = change.text(20 if top is None else top)
    terminal.emit(text, output, quiet=quiet, sentences=kind == "text")
