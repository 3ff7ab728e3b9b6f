"""``equipoise find``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import lake_access, terminal
from equipoise.cli.command import Command
from equipoise.cli.options import (
    json_option,
    lake_options,
    option,
    plan_base_options,
    request_options,
    run_options,
)
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
@plan_base_options
@option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    group="Output",
    help="Maximum number of tables to show.",
)
@request_options(SearchRequest, but=("other_columns",))
@lake_options
@run_options
@json_option
def command(plan: str, lake: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Rank the tables of LAKE by how many of the rows that PLAN needs they offer per unit of cost."""
    with lake_access.open_lake(lake, options) as opened:
        found = opened.find(plan, **options)
    terminal.emit(found.to_json(indent=2) if as_json else found.text(), None, sentences=not as_json)
    return found.exit_code
