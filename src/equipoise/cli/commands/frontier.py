"""``equipoise frontier``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, options
from equipoise.cli.command import Command
from equipoise.cli.output import PICTURES, Output, output_options
from equipoise.options.plan import PlanOptions


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
@options.table
@options.option(
    "--tolerance",
    "tolerances",
    type=float,
    multiple=True,
    group="What is allowed",
    common=True,
    help="Tolerance to plan for. By default `points` of them. Repeatable.",
)
@options.option(
    "--points",
    type=click.IntRange(2, 10_000),
    default=50,
    show_default=True,
    group="What is allowed",
    common=True,
    help="Number of tolerances, up to the present bias.",
)
@options.request(
    PlanOptions,
    but=("tolerance", "rounding", "exact", "extra", "budget", "priority"),
    reference={
        "default": "original",
        "help": "Label frequencies that groups are compared with: the present ones (original) or "
        "those of the repaired table (new).",
    },
)
@options.available_from
@options.option(
    "--budget",
    type=float,
    multiple=True,
    group="Costs and limits",
    help="Budget for which to find the smallest tolerance. Repeatable.",
)
@output_options("text", "json", "csv", "markdown", "html", *PICTURES)
def command(data: str, output: Output, tolerances: tuple[float, ...], **given: Any) -> int:
    """Show the lowest cost of repairing DATA at each tolerance."""
    with arguments.library_arguments(data, given) as keywords:
        from equipoise.api.plans import frontier

        found = frontier(data, **keywords, tolerances=tolerances or None)
    arguments.report_skipped(data, keywords, quiet=output.quiet)
    return output.show(
        found,
        said=found.sentences,
        page={"source": data},
        csv=found.to_csv,
        markdown=lambda: "\n".join(found.sentences) + "\n\n" + found.grid().markdown(),
    )
