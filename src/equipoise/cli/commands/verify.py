"""``equipoise verify``."""

from __future__ import annotations

import click

from equipoise.cli import terminal
from equipoise.cli.command import Command
from equipoise.cli.options import (
    base_options,
    hash_key,
    hash_key_option,
    json_option,
    option,
    quiet,
)


@click.command(
    "verify",
    cls=Command,
    epilog="""\b
Examples:
  equipoise verify repaired.parquet --base people.csv --plan plan.json --ledger ledger.parquet

Both tables are counted again. The base is read as it was when the plan was made, with the same
condition and encoding. No code of the planner or of the acquisition is used.

Exit codes: 0 all checks pass, 1 some fail, 2 bad input.""",
)
@click.argument("repaired")
@option("--base", required=True, metavar="DATA", common=True, help="Table that was repaired.")
@option("--plan", required=True, type=click.Path(), metavar="FILE", common=True, help="Plan file.")
@option(
    "--ledger",
    required=True,
    type=click.Path(),
    metavar="FILE",
    common=True,
    help="List of changes.",
)
@base_options
@hash_key_option
@quiet
@json_option
def command(
    repaired: str,
    base: str,
    plan: str,
    ledger: str,
    encoding: str | None,
    delimiter: str | None,
    hash_key_file: str | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Check that REPAIRED is its base with exactly the planned rows removed and added."""
    from equipoise.api.repairs import verify

    key = hash_key(hash_key_file)
    with terminal.progress(quiet=quiet) as report:
        found = verify(
            repaired,
            base=base,
            plan=plan,
            ledger=ledger,
            hash_key=key,
            encoding=encoding,
            delimiter=delimiter,
            progress=report,
        )
    terminal.emit(found.to_json(indent=2) if as_json else found.text(), None, sentences=not as_json)
    return found.exit_code
