"""``equipoise apply``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import options, terminal
from equipoise.cli.command import Command
from equipoise.cli.output import print_result
from equipoise.options.search import AcquisitionLimits, SearchRequest


@click.command(
    "apply",
    cls=Command,
    epilog="""\b
Examples:
  equipoise apply plan.json --to people.parquet --pool more.parquet -o repaired.parquet
  equipoise apply plan.json --to people.csv --pool 'archive/*.csv' --seed 7 -o people.csv
  equipoise apply plan.json --to people.csv -o fewer.csv

The remaining rows keep their order and values, and the added rows follow them. OUTPUT.changes.csv
lists every row that was added or removed, with its source, its position there and its MD5 hash. If
the plan was made with --where, the condition also applies to the table and the pool.

Exit codes: 0 success, 1 the pool is too small or the output is not as planned, 2 bad input.""",
)
@click.argument("plan")
@options.option(
    "--to", required=True, metavar="DATA", common=True, help="Table the plan was made for."
)
@options.option("--pool", metavar="DATA", common=True, help="Table whose rows are added.")
@options.file(
    "--output",
    "-o",
    required=True,
    common=True,
    help="Repaired table to write: a file, whose extension sets the format, or the address of a table of "
    "PostgreSQL or Spark. It may be the table itself. An existing table of that name is replaced in "
    "PostgreSQL, unless it is the pool, and refused in Spark.",
)
@options.request(SearchRequest, only=("seed",))
@options.request(AcquisitionLimits, only=("force", "partial"))
@options.option(
    "--missing-columns",
    type=click.Choice(["refuse", "null"]),
    default="refuse",
    show_default=True,
    group="Data",
    help="Whether to refuse a pool that does not have all columns of the table, or to leave their "
    "values missing.",
)
@options.file(
    "--sidecar",
    help="List of changes to write. By default OUTPUT.changes.csv.",
)
@options.reading(of="CSV files", usual="that of the plan, for the table")
@options.run
@options.json
def command(plan: str, quiet: bool, as_json: bool, **given: Any) -> int:
    """Carry out PLAN: write a table with rows removed, and with real rows from a pool added.

    PLAN is a file written by equipoise plan. The output is counted again and compared with it.
    """
    from equipoise.api.repairs import apply

    with terminal.progress(quiet=quiet) as report:
        result = apply(plan, **given, progress=report)
    return print_result(result, as_json=as_json)
