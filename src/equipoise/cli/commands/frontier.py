"""``equipoise frontier``."""

from __future__ import annotations

from typing import Any, get_args

import click

from equipoise.cli import arguments, options
from equipoise.cli.command import Command
from equipoise.cli.output import PICTURES, Output, output_options
from equipoise.errors import InputError
from equipoise.options.plan import PlanOptions, SweepKind


@click.command(
    "frontier",
    cls=Command,
    epilog="""\b
Examples:
  equipoise frontier adult --sensitive sex,race --label income -o frontier.html
  equipoise frontier adult -s sex,race -l income --allow both --tolerance 0.01 --tolerance 0.05
  equipoise frontier compas --allow both --budget 2000 --points 10
  equipoise frontier compas --allow both --tolerance 0.05 --sweep label-drift
  equipoise frontier compas --tolerance 0.05 --sweep coverage --value 5000 --value 10000

The cost is a step function of the tolerance. With the original label frequencies it is proved to
be the lowest cost at each tolerance. With --reference new it is the lowest cost found, with a lower bound.""",
)
@click.argument("data")
@options.table
@options.option(
    "--sweep",
    type=click.Choice(get_args(SweepKind)),
    default="tolerance",
    show_default=True,
    group="What is allowed",
    common=True,
    help="What varies: the tolerance, the minimum rows of every group (coverage), the budget, the cost "
    "of deletions relative to additions (cost-ratio), or the change of label frequencies (label-drift).",
)
@options.option(
    "--value",
    "values",
    type=float,
    multiple=True,
    group="What is allowed",
    common=True,
    help="Value of `sweep` to plan for. By default some that show the range. Repeatable.",
)
@options.option(
    "--tolerance",
    "tolerances",
    type=float,
    multiple=True,
    group="What is allowed",
    common=True,
    help="Tolerance to plan for. By default `points` of them. Repeatable, unless something else varies.",
)
@options.option(
    "--points",
    type=click.IntRange(2, 10_000),
    group="What is allowed",
    common=True,
    help="Number of tolerances, up to the present bias; by default 50. Of other values by default 10.",
)
@options.request(
    PlanOptions,
    but=("tolerance", "policy", "rounding", "exact", "extra", "budget", "priority", "objective"),
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
def command(
    data: str, output: Output, tolerances: tuple[float, ...], sweep: SweepKind, **given: Any
) -> int:
    """Show the lowest cost of repairing DATA at each tolerance, or at each value of another option."""
    if sweep != "tolerance" and len(tolerances) > 1:
        raise InputError(f"a sweep of the {sweep} has one tolerance; give --tolerance once.")
    with arguments.library_arguments(data, given) as keywords:
        from equipoise.api.plans import frontier

        if sweep == "tolerance":
            keywords["tolerances"] = tolerances or None
        elif tolerances:
            keywords["tolerance"] = tolerances[0]
        found = frontier(data, **keywords, sweep=sweep)
    arguments.report_skipped(data, keywords, quiet=output.quiet)
    return output.show(
        found,
        said=found.sentences,
        page={"source": data},
        csv=found.to_csv,
        markdown=lambda: "\n".join(found.sentences) + "\n\n" + found.grid().markdown(),
    )
