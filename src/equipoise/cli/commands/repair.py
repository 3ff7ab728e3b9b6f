"""``equipoise repair``."""

from __future__ import annotations

import shlex
from typing import Any

import click

from equipoise.cli import arguments, lake_access, terminal
from equipoise.cli.command import Command
from equipoise.cli.options import (
    available_from_option,
    hash_key,
    hash_key_option,
    json_option,
    lake_options,
    option,
    repaired_options,
    request_options,
    require_output,
    table_options,
)
from equipoise.options.plan import PlanOptions
from equipoise.options.search import AcquisitionLimits, SearchRequest


@click.command(
    "repair",
    cls=Command,
    epilog="""\b
Examples:
  equipoise repair people.csv ./lake --sensitive sex,race --label income --tolerance 0.05 \\
      -o repaired.parquet --report repair.html
  equipoise repair people.csv ./lake -s sex -l hired --allow both --dry-run
  equipoise repair people.csv ./lake -s sex -l hired --where "year >= 2024" -o repaired.csv

With --where, the output contains only rows that satisfy the condition. Other rows of DATA are left
out, and only such rows of LAKE are added. If the lake lacks rows for the cheapest plan, a new plan
is made with the rows it has. If no plan reaches the tolerance, the closest one is carried out.

Exit codes: 0 success, 1 the tolerance was not reached or a check failed, 2 bad input.""",
)
@click.argument("data")
@click.argument("lake", nargs=-1, required=True)
@table_options
@request_options(PlanOptions, but=("reference", "rounding", "extra", "budget", "priority"))
@available_from_option
@repaired_options
@option(
    "--plan-file",
    type=click.Path(),
    metavar="FILE",
    group="Output",
    help="Plan to write. By default OUTPUT.plan.json.",
)
@option(
    "--report",
    type=click.Path(),
    metavar="FILE",
    group="Output",
    common=True,
    help="HTML page to write: before, plan, sources, after.",
)
@request_options(SearchRequest)
@request_options(AcquisitionLimits, but=("partial", "force"))
@hash_key_option
@lake_options
@json_option
def command(
    data: str,
    lake: tuple[str, ...],
    output: str | None,
    report: str | None,
    dry_run: bool,
    hash_key_file: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Plan the repair of DATA, find real rows for it in LAKE, add them, and verify the result."""
    require_output(output, dry_run=dry_run)
    key = hash_key(hash_key_file)
    opening = {name: options.pop(name) for name in ("index", "refresh")}
    opening |= {name: options[name] for name in ("threads", "memory", "quiet")}
    quiet = options["quiet"]
    with (
        arguments.library_arguments(data, options) as given,
        lake_access.open_lake(lake, opening) as opened,
    ):
        from equipoise.api.repairs import repair

        written = (output, report, given["ledger"], given["plan_file"])
        lake_access.refuse_overwriting(opened, *written, base=data)
        done = repair(data, opened, output, hash_key=key, **given)
    arguments.report_skipped(data, given, quiet=quiet)
    if report is not None:
        from equipoise.reports.pages import write_page

        write_page(done, report, source=data, lake=shlex.join(lake), plan_file=given["plan_file"])
        terminal.wrote(report, quiet=quiet)
    terminal.emit(done.to_json(indent=2) if as_json else done.text(), None, sentences=not as_json)
    return done.exit_code
