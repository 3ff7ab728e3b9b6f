"""``equipoise find``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, options
from equipoise.cli.command import Command
from equipoise.cli.output import print_result
from equipoise.options.search import SearchRequest


@click.command(
    "find",
    cls=Command,
    epilog="""\b
Examples:
  equipoise find plan.json ./lake
  equipoise find plan.json ./lake --base people.csv --mapping mapping.toml --json

Tables are ranked by their rows of the needed cells that the base does not have yet, in relation to
their cost. Tables whose meaning is uncertain are used only after you have confirmed them with
equipoise lake mapping.

Exit codes: 0 success, 1 the lake has too few rows, 2 bad input.""",
)
@click.argument("plan")
@click.argument("lake", nargs=-1, required=True)
@options.plan_base
@options.top("tables", default=10, show_default=True)
@options.request(SearchRequest, but=("other_columns",))
@options.lake
@options.run
@options.json
def command(plan: str, lake: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Rank the tables of LAKE by how many of the rows that PLAN needs they offer per unit of cost."""
    with arguments.open_lake(lake, given) as opened:
        found = opened.find(plan, **given)
    return print_result(found, as_json=as_json)
