"""``equipoise acquire``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, options
from equipoise.cli.command import Command
from equipoise.cli.output import print_result
from equipoise.options.search import AcquisitionLimits, SearchRequest


@click.command(
    "acquire",
    cls=Command,
    epilog="""\b
Examples:
  equipoise acquire plan.json ./lake -o repaired.parquet --ledger ledger.parquet
  equipoise acquire plan.json ./lake --mapping mapping.toml --deny 'drafts/*' -o repaired.csv
  equipoise acquire plan.json ./lake -o 'postgresql://ann@host/db?table=people_repaired'
  equipoise acquire plan.json ./lake --dry-run

The base itself is never changed. The output is counted again before it is moved into place,
and the ledger lists the source of each added row.

Exit codes: 0 success, 1 the lake has too few rows or its rows differ too much, 2 bad input.""",
)
@click.argument("plan")
@click.argument("lake", nargs=-1, required=True)
@options.plan_base
@options.repaired
@options.request(SearchRequest, AcquisitionLimits)
@options.hash_key
@options.lake
@options.run
@options.json
def command(
    plan: str,
    lake: tuple[str, ...],
    output: str | None,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Carry out PLAN with real rows from LAKE: write the repaired table and a ledger."""
    arguments.require_output(output, dry_run=dry_run)
    with arguments.open_lake(lake, given) as opened:
        done = opened.acquire(plan, output, **given)
    return print_result(done, as_json=as_json)
