"""``equipoise acquire``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import lake_access, terminal
from equipoise.cli.flags import Command
from equipoise.cli.options import (
    base_options,
    hash_key,
    hash_key_option,
    lake_options,
    limit_options,
    looking_options,
    other_columns_option,
    require_output,
    writing_options,
)


@click.command(
    "acquire",
    cls=Command,
    epilog="""\b
Examples:
  equipoise acquire plan.json ./lake -o repaired.parquet --ledger ledger.parquet
  equipoise acquire plan.json ./lake --mapping mapping.toml --deny 'drafts/*' -o repaired.csv
  equipoise acquire plan.json ./lake --dry-run

The base itself is never touched. The output is counted again before it is moved into place,
and the ledger says for each added row from where it came.

Exit codes: 0 fine, 1 the lake has too few rows or too different ones, 2 bad input.""",
)
@click.argument("plan")
@click.argument("lake", nargs=-1, required=True)
@click.option("--base", metavar="DATA", help="The table of the plan; else the one it names.")
@base_options
@writing_options
@looking_options
@other_columns_option
@limit_options
@click.option("--partial", is_flag=True, help="Take what there is, if the lake has too few rows.")
@click.option("--force", is_flag=True, help="Also if the base has other counts than the plan's.")
@hash_key_option
@lake_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    plan: str,
    lake: tuple[str, ...],
    output: str | None,
    dry_run: bool,
    hash_key_file: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Carry out PLAN with real rows of LAKE: write the repaired table, and a ledger."""
    require_output(output, dry_run=dry_run)
    key = hash_key(hash_key_file)
    with lake_access.open_lake(lake, options) as opened:
        done = opened.acquire(plan, output, hash_key=key, **options)
    terminal.emit(done.to_json(indent=2) if as_json else done.text(), None, sentences=not as_json)
    return done.exit_code
