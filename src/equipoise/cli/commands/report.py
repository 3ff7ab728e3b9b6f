"""``equipoise report``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import arguments, options, terminal
from equipoise.cli.command import Command
from equipoise.cli.output import PICTURES, Output, output_options
from equipoise.errors import InputError
from equipoise.options.audit import FORMS, SEARCHING, AuditOptions
from equipoise.options.count import CountRequest, ReadOptions
from equipoise.options.search import SearchRequest
from equipoise.plain import Grid

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

_LISTED = "\n".join(f"  {name:<22}{what}" for name, what in FORMS.items())


def _list(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        terminal.emit(Grid(("form", "what it is"), tuple(FORMS.items())).text(), None)
        ctx.exit()


@click.command(
    "report",
    cls=Command,
    epilog=f"""\b
Forms:
{_LISTED}

\b
Examples:
  equipoise report hires.csv --form local-law-144 --sex sex --race race --selected hired
  equipoise report hires.csv --form local-law-144 --sex sex --race race --score score -o audit.html
  equipoise report hires.csv --form uniform-guidelines --sex sex --selected hired --selected-value yes
  equipoise report people.csv --form eu-ai-act-article-10 -s sex,race -l income --lake ./lake
  equipoise report people.csv --form datasheet -s sex,race -l income -o datasheet.md

A form states numbers and what it does not cover. It contains no verdict.""",
)
@click.argument("data")
@options.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list,
    group="Output",
    help="List the forms.",
)
@options.request(AuditOptions, CountRequest, ReadOptions, but=("missing", "missing_label"))
@options.option(
    "--lake",
    cls=options.Repeatable,
    metavar="LAKE",
    group="Finding rows",
    help="Lake that is searched for rows that would fill gaps. Repeatable.",
)
@options.request(SearchRequest, only=("mapping",), mapping={"common": False})
@options.run
@output_options("text", "json", "csv", "markdown", "html", *PICTURES)
def command(data: str, output: Output, **given: Any) -> int:
    """Fill in a form of an audit from the counts of DATA.

    --sex and --race are sensitive attributes like those of --sensitive, and --selected is another
    name of --label.
    """
    columns = AuditOptions(
        sex=given["sex"], race=given["race"], selected=given["selected"], score=given["score"]
    )
    given["sensitive_features"] = columns.attributes(given["sensitive_features"])
    given["label"] = columns.outcome(given["label"])
    if given["form"] is None:
        raise InputError(f"--form is missing; there are: {', '.join(FORMS)}.")
    _take_lake(given, output.path)
    with arguments.library_arguments(data, given) as keywords:
        from equipoise.api.audits import audit

        made = audit(data, **keywords)
    arguments.show_hints(made.subject.counts, quiet=output.quiet)
    return _show(made, output, source=data)


def _take_lake(given: dict[str, Any], output: str | None) -> None:
    """Remove the options about a lake if there is none."""
    lake, mapping = given.pop("lake"), given.pop("mapping")
    if lake:
        if output is not None and given["form"] == SEARCHING:
            from equipoise.lake.lake import Lake

            arguments.refuse_overwriting(Lake(lake), output)
        given["lake"] = lake
        if mapping is not None:
            given["mapping"] = mapping
    elif mapping is not None:
        raise InputError("--mapping describes tables of a lake; name the lake with --lake.")


def _show(made: Audit, output: Output, *, source: str) -> int:
    return output.show(made, page={"source": source}, csv=made.to_csv, markdown=made.markdown)
