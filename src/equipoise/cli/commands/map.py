"""``equipoise map``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from equipoise.cli import arguments, options, terminal
from equipoise.cli.command import Command
from equipoise.cli.output import PICTURES, Output, output_options
from equipoise.credentials import without_password
from equipoise.options.map import MapOptions


@click.command(
    "map",
    cls=Command,
    epilog="""\b
Examples:
  equipoise map adult --sensitive sex --label income \\
    --x 'add sex=Male, income=<=50K' --y 'add sex=Female, income=>50K' \\
    --limit 'x<=4500' --limit 'y<=3000' --limit 'n>=30000' -o map.html
  equipoise map people.csv -s sex,race -l hired --x 'delete sex=m' --y 'add sex=w, hired=yes' \\
    --cost-y 2.5 --tolerance 0.05 --json
  equipoise map people.csv -s sex -l hired --x 'add sex=w' --y 'delete hired=no' \\
    --group sex=w --label-value yes
  equipoise map adult -s sex -l income --x 'add sex=Male, income=<=50K' \\
    --y 'add sex=Female, income=>50K' --at 163 3000 -o plan.json

\b
Limits compare sums of x, y, n (the number of rows after both moves), cost and numbers:
  'x<=4500'   'n>=30000'   '2*x + y <= 9000'   'cost<=7500'

The map shows what the moves do to all groups at its best point, or at the point of --at. With --at, a
.json file is the plan of that point, which can be compared and carried out like any other plan;
--json prints the map.

Exit codes: 0 the tolerance can be reached inside the limits, 1 it cannot, 2 bad input.""",
)
@click.argument("data")
@options.table
@options.request(MapOptions)
@options.option(
    "--at",
    type=(int, int),
    metavar="X Y",
    group="Output",
    common=True,
    help="Point of the map, in whole rows: show what it does to all groups, and write it as a plan "
    "with -o plan.json.",
)
@output_options("text", "json", "html", *PICTURES)
def command(data: str, output: Output, **given: Any) -> int:
    """Map the Uniform Bias of one group and label of DATA over two moves.

    A move adds or deletes rows of a pattern. The map shows where UB is 0, what the limits
    allow, and which point within them is the cheapest.
    """
    with arguments.library_arguments(data, given) as keywords:
        from equipoise.api.plans import policy_map

        made = policy_map(data, **keywords)
    arguments.show_hints(made.counts, quiet=output.quiet)
    if made.at is not None and output.kind == "json" and output.path is not None:
        plan = replace(made.scenario(), source=None if data == "-" else without_password(data))
        output.show(plan)
        terminal.say(plan.explain(), quiet=output.quiet)
        return plan.exit_code
    said = () if output.kind == "html" else made.sentences
    output.show(made, said=said, page={"source": data})
    return 0 if made.reached else 1
