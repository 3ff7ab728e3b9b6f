"""``equipoise compare``."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli import options
from equipoise.cli.command import Command
from equipoise.cli.output import PICTURES, Output, output_options
from equipoise.errors import InputError


@click.command(
    "compare",
    cls=Command,
    epilog="""\b
Examples:
  equipoise compare cheapest.json scenario.json
  equipoise compare cheapest.json scenario.json -o comparison.html
  equipoise compare a/plan.json b/plan.json --name north --name south --json

The plans must be for the same counts. UB is measured against each repaired table's own label
frequencies. Plans are made with equipoise plan … -o plan.json, by search or by hand (--move).""",
)
@click.argument("plans", nargs=-1, required=True)
@options.option(
    "--name",
    "names",
    cls=options.Repeatable,
    metavar="NAME",
    group="Output",
    help="Name of each plan, in order. By default the name of its file. Repeatable.",
)
@options.top("groups and cells", "20 in text, 50 in HTML")
@options.quiet
@output_options("text", "json", "csv", "markdown", "html", *PICTURES)
def command(
    plans: tuple[str, ...],
    names: tuple[str, ...],
    output: Output,
    top: int | None,
    quiet: bool,  # noqa: ARG001 - the output asks the context for it
) -> int:
    """Put PLANS for the same table side by side: rows, cost, label drift, and UB of every group."""
    if output.path is not None and Path(output.path).resolve() in [
        Path(p).resolve() for p in plans
    ]:
        raise InputError(f"{output.path} is one of the plans, and would be replaced.")
    from equipoise.api.plans import compare

    both = compare(plans, names=names or None)
    return output.show(
        both,
        said=both.sentences,
        page={"top": 50 if top is None else top},
        csv=lambda: both.to_csv(top),
        markdown=lambda: both.markdown(top),
        text=lambda: both.text(20 if top is None else top),
    )
