"""``equipoise acquire``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import lake_access, terminal
from equipoise.cli.command import Command
from equipoise.cli.options import (
    hash_key,
    hash_key_option,
    json_option,
    lake_options,
    plan_base_options,
    repaired_options,
    request_options,
    require_output,
    run_options,
)
from equipoise.options.search import AcquisitionLimits, SearchRequest


@click.command(
    "acquire",
    cls=Command,
    epilog="""\b
Examples:
  equipoise acquire plan.json ./lake -o repaired.parquet --ledger ledger.parquet
  equipoise acquire plan.json ./lake --mapping mapping.toml --deny 'drafts/*' -o repaired.csv
  equipoise acquire plan.json ./lake --dry-run

The base itself is never changed. The output is counted again before it is moved into place,
and the ledger lists the source of each added row.

Exit codes: 0 success, 1 the lake has too few rows or its rows differ too much, 2 bad input.""",
)
@click.argument("plan")
@click.argument("lake", nargs=-1, required=True)
@plan_base_options
@repaired_options
@request_options(SearchRequest, AcquisitionLimits)
@hash_key_option
@lake_options
@run_options
@json_option
def command(
    plan: str,
    lake: tuple[str, ...],
    output: str | None,
    dry_run: bool,
    hash_key_file: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Carry out PLAN with real rows from LAKE: write the repaired table and a ledger."""
    require_output(output, dry_run=dry_run)
    key = hash_key(hash_key_file)
    with lake_access.open_lake(lake, options) as opened:
        done = opened.acquire(plan, output, hash_key=key, **options)
    terminal.emit(done.to_json(indent=2) if as_json else done.text(), None, sentences=not as_json)
    return done.exit_code
