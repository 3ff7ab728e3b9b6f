"""``equipoise apply``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import terminal
from equipoise.cli.command import Command
from equipoise.cli.options import json_option, option, request_options, run_options
from equipoise.options.count import ReadOptions
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
@option("--to", required=True, metavar="DATA", common=True, help="Table the plan was made for.")
@option("--pool", metavar="DATA", common=True, help="Table whose rows are added.")
@option(
    "--output",
    "-o",
    required=True,
    type=click.Path(),
    metavar="FILE",
    common=True,
    help="Repaired table to write; the extension sets the format. It may be the table itself.",
)
@request_options(SearchRequest, only=("seed",))
@request_options(AcquisitionLimits, only=("force", "partial"))
@option(
    "--missing-columns",
    type=click.Choice(["refuse", "null"]),
    default="refuse",
    show_default=True,
    group="Data",
    help="Whether to refuse a pool that does not have all columns of the table, or to leave their "
    "values missing.",
)
@option(
    "--sidecar",
    type=click.Path(),
    metavar="FILE",
    group="Output",
    help="List of changes to write. By default OUTPUT.changes.csv.",
)
@request_options(
    ReadOptions,
    only=("encoding", "delimiter"),
    encoding={"help": "Encoding of CSV files. By default that of the plan, for the table."},
    delimiter={"help": "Delimiter of CSV files. By default that of the plan, for the table."},
)
@run_options
@json_option
def command(plan: str, quiet: bool, as_json: bool, **options: Any) -> int:
    """Carry out PLAN: write a table with rows removed, and with real rows from a pool added.

    PLAN is a file written by equipoise plan. The output is counted again and compared with it.
    """
    from equipoise.api.repairs import apply

    with terminal.progress(quiet=quiet) as report:
        result = apply(plan, **options, progress=report)
    terminal.emit(
        result.to_json(indent=2) if as_json else result.text(), None, sentences=not as_json
    )
    return result.exit_code
