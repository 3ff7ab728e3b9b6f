"""``equipoise frontier``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, terminal
from equipoise.cli.command import Command
from equipoise.cli.options import (
    PICTURES,
    available_from_option,
    option,
    output_format,
    output_options,
    request_options,
    table_options,
)
from equipoise.options.plan import PlanOptions

FORMATS = ("text", "json", "csv", "markdown", "html", *PICTURES)


@click.command(
    "frontier",
    cls=Command,
    epilog="""\b
Examples:
  equipoise frontier adult --sensitive sex,race --label income -o frontier.html
  equipoise frontier adult -s sex,race -l income --allow both --tolerance 0.01 --tolerance 0.05
  equipoise frontier compas --allow both --budget 2000 --points 10

The cost is a step function of the tolerance. With the original label frequencies it is proved to
be the lowest cost at each tolerance. With --reference new it is the lowest cost found, with a lower bound.""",
)
@click.argument("data")
@table_options
@option(
    "--tolerance",
    "tolerances",
    type=float,
    multiple=True,
    group="What is allowed",
    common=True,
    help="Tolerance to plan for. By default `points` of them. Repeatable.",
)
@option(
    "--points",
    type=click.IntRange(2, 10_000),
    default=50,
    show_default=True,
    group="What is allowed",
    common=True,
    help="Number of tolerances, up to the present bias.",
)
@request_options(
    PlanOptions,
    but=("tolerance", "rounding", "extra", "budget", "priority"),
    reference={
        "default": "original",
        "help": "Label frequencies that groups are compared with: the present ones (original) or "
        "those of the repaired table (new).",
    },
)
@available_from_option
@option(
    "--budget",
    type=float,
    multiple=True,
    group="Costs and limits",
    help="Budget for which to find the smallest tolerance. Repeatable.",
)
@output_options(*FORMATS)
def command(
    data: str,
    format_: str | None,
    output: str | None,
    tolerances: tuple[float, ...],
    **options: Any,
) -> None:
    """Show the lowest cost of repairing DATA at each tolerance."""
    kind = output_format(format_, output, FORMATS)
    quiet = options["quiet"]
    with arguments.library_arguments(data, options) as given:
        from equipoise.api.plans import frontier

        found = frontier(data, **given, tolerances=tolerances or None)
    arguments.report_skipped(data, given, quiet=quiet)
    if terminal.write_view(found, kind, output, found.sentences, quiet=quiet, source=data):
        return
    if kind == "json":
        text = found.to_json(indent=2)
    elif kind == "csv":
        text = found.to_csv().rstrip("\n")
    elif kind == "markdown":
        text = "\n".join(found.sentences) + "\n\n" + found.grid().markdown()
    else:
        text = found.text()
    terminal.emit(text, output, quiet=quiet, sentences=kind == "text")
