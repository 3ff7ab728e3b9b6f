"""``equipoise find``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import lake_access, terminal
from equipoise.cli.flags import Command
from equipoise.cli.options import base_options, lake_options, looking_options


@click.command(
    "find",
    cls=Command,
    epilog="""\b
Examples:
  equipoise find plan.json ./lake
  equipoise find plan.json ./lake --base people.csv --mapping mapping.toml --json

A table counts with the rows of each needed cell that the base does not have already, per what
it costs. Tables whose meaning is not certain are not used until you confirm them: equipoise
lake mapping.

Exit codes: 0 fine, 1 the lake has too few rows, 2 bad input.""",
)
@click.argument("plan")
@click.argument("lake", nargs=-1, required=True)
@click.option("--base", metavar="DATA", help="The table of the plan; else the one it names.")
@base_options
@click.option(
    "--top", type=click.IntRange(min=1), default=10, show_default=True, help="Show so many tables."
)
@looking_options
@lake_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(plan: str, lake: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Rank the tables of LAKE by how many of the rows PLAN needs they offer per cost."""
    with lake_access.open_lake(lake, options) as opened:
        found = opened.find(plan, **options)
    terminal.emit(found.to_json(indent=2) if as_json else found.text(), None, sentences=not as_json)
    return found.exit_code
