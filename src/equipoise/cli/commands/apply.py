"""``equipoise apply``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import terminal
from equipoise.cli.flags import Command


@click.command(
    "apply",
    cls=Command,
    epilog="""\b
Examples:
  equipoise apply plan.json --to people.parquet --pool more.parquet -o repaired.parquet
  equipoise apply plan.json --to people.csv --pool 'archive/*.csv' --seed 7 -o people.csv
  equipoise apply plan.json --to people.csv -o fewer.csv

The rows that stay keep their order and values; the added ones stand behind them. Every row
added or removed is listed in OUTPUT.changes.csv: where it is from, its place there, its md5.
A condition the plan was made with (--where) holds for the table and the pool.

Exit codes: 0 fine, 1 the pool is too small or the output not as planned, 2 bad input.""",
)
@click.argument("plan")
@click.option("--to", required=True, metavar="DATA", help="The table the plan was made for.")
@click.option("--pool", metavar="DATA", help="The table whose rows are added.")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="The repaired table; its ending says as what. It may be the table itself.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Which rows of a cell are taken: for the same seed the same, on any machine.",
)
@click.option("--force", is_flag=True, help="Also if the table has other counts than the plan's.")
@click.option("--partial", is_flag=True, help="Take what there is, if the pool is too small.")
@click.option(
    "--missing-columns",
    type=click.Choice(["refuse", "null"]),
    default="refuse",
    show_default=True,
    help="A pool that lacks columns of the table: refused, or their values left missing.",
)
@click.option(
    "--sidecar",
    type=click.Path(),
    metavar="FILE",
    help="The list of changes; else OUTPUT.changes.csv.",
)
@click.option(
    "--encoding",
    metavar="NAME",
    help="Of CSV files; of the table as when the plan was made unless given.",
)
@click.option(
    "--delimiter",
    metavar="CHARACTER",
    help="Of CSV files; of the table as when the plan was made unless given.",
)
@click.option("--threads", type=click.IntRange(1, 1024), help="How many cores to use.")
@click.option("--memory", metavar="SIZE", help="How much memory to use, as in 2GB.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(plan: str, quiet: bool, as_json: bool, **options: Any) -> int:
    """Carry out PLAN: write a table with rows removed, and real rows of a pool added.

    PLAN is a file that equipoise plan wrote. The output is counted again and compared with it.
    """
    from equipoise.api import apply

    with terminal.progress(quiet=quiet) as report:
        result = apply(plan, **options, progress=report)
    terminal.emit(
        result.to_json(indent=2) if as_json else result.text(), None, sentences=not as_json
    )
    return result.exit_code
