"""``equipoise diff``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, options, terminal
from equipoise.cli.command import Command
from equipoise.cli.output import Output, output_options
from equipoise.options.measure import MeasureOptions


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
@options.table
@options.request(MeasureOptions, but=("uncertainty", "favourable", "reference", "measures"))
@options.suppress
@options.top("rows", "20 in text")
@output_options("text", "json", "csv", "markdown")
def command(before: str, after: str, output: Output, top: int | None, **given: Any) -> int:
    """Compare the biases of two tables, BEFORE and AFTER, with the uncertainty of the change."""
    with arguments.library_arguments(before, given) as keywords:
        from equipoise.api.measurement import diff

        change = diff(before, after, **keywords)
    arguments.show_hints(change.before.counts, quiet=output.quiet)
    if change.after.counts.skipped:
        terminal.say(f"{after}: {change.after.counts.skipped}.", quiet=output.quiet)
    shown = change.top(top)
    return output.show(
        change,
        json=lambda: shown.to_json(indent=2),
        csv=shown.to_csv,
        markdown=lambda: f"{change.heading}\n\n{shown.grid().markdown()}\n\n{change.sentence}",
        text=lambda: change.text(20 if top is None else top),
    )
