"""``equipoise repair``."""

from __future__ import annotations

import shlex
from typing import Any

import click
from click.core import ParameterSource

from equipoise.cli import arguments, options, terminal
from equipoise.cli.command import Command
from equipoise.cli.output import print_result
from equipoise.options import options_of
from equipoise.options.count import CountRequest, ReadOptions
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
  equipoise repair people.csv ./lake --plan scenario.json -o repaired.parquet
  equipoise repair 'postgresql://ann@host/db?table=people' 'postgresql://ann@host/db?schema=archive' \\
      -s sex -l hired -o 'postgresql://ann@host/db?table=people_repaired'

With --where, the output contains only rows that satisfy the condition. Other rows of DATA are left
out, and only such rows of LAKE are added. If the lake has too few rows for the cheapest plan, a
new plan is made with the rows it has. If no plan reaches the tolerance, the closest one is carried
out. A plan that is given with --plan is carried out as it is, as far as the lake has its rows.
If DATA and OUTPUT are tables of one database, the rows of DATA do not leave it.

Exit codes: 0 success, 1 the tolerance was not reached or a check failed, 2 bad input.""",
)
@click.argument("data")
@click.argument("lake", nargs=-1, required=True)
@options.table
@options.request(PlanOptions, but=("reference", "rounding", "exact", "extra", "budget", "priority"))
@options.available_from
@options.file(
    "--plan",
    group="What is allowed",
    help="Plan to carry out instead of making one; it has the columns and the limits.",
)
@options.repaired
@options.file(
    "--plan-file",
    help="Plan to write. By default OUTPUT.plan.json, for a table in the working folder.",
)
@options.file(
    "--report",
    common=True,
    help="HTML page to write: before, plan, sources, after.",
)
@options.request(SearchRequest)
@options.request(AcquisitionLimits, but=("partial", "force"))
@options.hash_key
@options.lake
@options.json
def command(
    data: str,
    lake: tuple[str, ...],
    output: str | None,
    report: str | None,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Plan the repair of DATA, find real rows for it in LAKE, add them, and verify the result."""
    arguments.require_output(output, dry_run=dry_run)
    # Both the lake and the functions that count take what a run may use.
    opening = {name: given.pop(name) for name in ("index", "refresh")}
    opening |= {name: given[name] for name in ("threads", "memory", "quiet")}
    quiet = given["quiet"]
    if given["plan"] is not None:
        _drop_defaults(given)
    else:
        del given["plan"]
    with (
        arguments.library_arguments(data, given) as keywords,
        arguments.open_lake(lake, opening) as opened,
    ):
        from equipoise.api.repairs import repair

        arguments.require_free(opened, output, keywords["ledger"])
        written = (output, report, keywords["ledger"], keywords["plan_file"])
        arguments.refuse_overwriting(opened, *written, base=data)
        done = repair(data, opened, output, **keywords)
    arguments.report_skipped(data, keywords, quiet=quiet)
    if report is not None:
        from equipoise.reports.pages import write_page

        write_page(
            done, report, source=data, lake=shlex.join(lake), plan_file=keywords["plan_file"]
        )
        terminal.wrote(report, quiet=quiet)
    return print_result(done, as_json=as_json)


def _drop_defaults(given: dict[str, Any]) -> None:
    """Keep of the options that a plan settles only those typed, which the library then refuses."""
    context = click.get_current_context()
    for request in (PlanOptions, CountRequest, ReadOptions):
        for keyword in (option.keyword for option in options_of(request)):
            typed = context.get_parameter_source(keyword) is ParameterSource.COMMANDLINE
            if keyword in given and keyword != "time_limit" and not typed:
                del given[keyword]
