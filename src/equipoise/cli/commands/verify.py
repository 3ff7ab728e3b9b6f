"""``equipoise verify``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import options, terminal
from equipoise.cli.command import Command
from equipoise.cli.output import print_result


@click.command(
    "verify",
    cls=Command,
    epilog="""\b
Examples:
  equipoise verify repaired.parquet --base people.csv --plan plan.json --ledger ledger.parquet
  equipoise verify 'postgresql://ann@host/db?table=people_repaired' --plan people_repaired.plan.json \\
    --base 'postgresql://ann@host/db?table=people' \\
    --ledger 'postgresql://ann@host/db?table=people_repaired_ledger'

Both tables are counted again, and their rows compared, where they are: the rows of a database stay there, but for
those that the ledger lists. The base is read as it was when the plan was made, with the same condition and encoding. No
code of the planner or of the acquisition is used.

Exit codes: 0 all checks pass, 1 some fail, 2 bad input.""",
)
@click.argument("repaired")
@options.option(
    "--base", required=True, metavar="DATA", common=True, help="Table that was repaired."
)
@options.file("--plan", required=True, common=True, help="Plan file.")
@options.option(
    "--ledger",
    required=True,
    metavar="DATA",
    common=True,
    help="List of changes: a file, or a table of a database.",
)
@options.base
@options.hash_key
@options.quiet
@options.json
def command(repaired: str, quiet: bool, as_json: bool, **given: Any) -> int:
    """Check that REPAIRED is its base with exactly the planned rows removed and added."""
    from equipoise.api.repairs import verify

    with terminal.progress(quiet=quiet) as report:
        found = verify(repaired, **given, progress=report)
    return print_result(found, as_json=as_json)
