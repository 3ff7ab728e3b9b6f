"""``equipoise measure``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, terminal
from equipoise.cli.command import Command
from equipoise.cli.options import (
    PICTURES,
    Repeatable,
    option,
    output_format,
    output_options,
    request_options,
    suppress_option,
    table_options,
    top_option,
)
from equipoise.options.measure import MeasureOptions

FORMATS = ("text", "json", "csv", "markdown", "html", *PICTURES)


@click.command(
    "measure",
    cls=Command,
    epilog="""\b
Examples:
  equipoise measure people.csv --sensitive sex,race --label income
  equipoise measure s.parquet -s sex,age --bin age=25,45,65 -l risk --min-count 30 --json
  equipoise measure cells.csv -s sex,race -l risk --count n
  equipoise measure adult -s sex,race -l income --favourable '>50K' -o adult.html
  equipoise measure 'parts/*.csv.gz' -s sex -l hired --where "year = 2025 AND dept <> 'Sales'"

A positive UB means that the group has fewer such rows than its share: 0.2 means 20 % fewer.""",
)
@click.argument("data")
@table_options
@request_options(MeasureOptions)
@option(
    "--sort",
    type=click.Choice(["worst", "ub", "group", "n", "p"]),
    default="worst",
    show_default=True,
    group="Output",
    help="Order of the rows. By worst, groups with too few rows to be conclusive come last.",
)
@top_option("rows", "20 in text and Markdown, 50 in HTML, all in JSON and CSV")
@option(
    "--label-value",
    cls=Repeatable,
    metavar="VALUE",
    group="Which groups",
    help="Show only this label value. Repeatable.",
)
@option(
    "--group",
    metavar="PATTERN",
    group="Which groups",
    help="Show only groups inside this one. Example: sex=Female.",
)
@option(
    "--hidden",
    is_flag=True,
    group="Which groups",
    help="Show only groups outside `limit` whose parents are all inside.",
)
@suppress_option
@output_options(*FORMATS)
def command(data: str, format_: str | None, output: str | None, **options: Any) -> None:
    """Measure the Uniform Bias of every group and label of DATA.

    DATA is a CSV, TSV, Parquet or JSON lines file (gzipped or not), a folder or glob of
    them, file.duckdb::table, file.sqlite::table, book.xlsx::sheet, - for standard input, or
    the name of a bundled data set (equipoise data list).
    """
    kind = output_format(format_, output, FORMATS)
    shown = {k: options.pop(k) for k in ("sort", "top", "label_value", "group", "hidden")}
    below, quiet = options.pop("suppress_below"), options["quiet"]
    with arguments.library_arguments(data, options) as given:
        from equipoise.api.measurement import measure

        table = measure(data, **given)
    arguments.show_hints(table.counts, quiet=quiet)
    if below is not None:
        from equipoise.measures.suppression import suppress

        table = suppress(table, below)
    if shown["hidden"] and kind == "text" and not table.measured.hidden.any():
        limit = f"|UB| up to {options['limit']:g}"
        terminal.emit(
            f"No group is hidden: outside the limit ({limit}) with all parents inside.", output
        )
        return
    chosen = table.filter(
        label_value=list(shown["label_value"]) or None,
        group=shown["group"],
        hidden=shown["hidden"],
    )
    _give(chosen.sort(shown["sort"]), kind, output, source=data, top=shown["top"], quiet=quiet)


def _give(
    table: Any, kind: str, output: str | None, *, source: str, top: int | None, quiet: bool
) -> None:
    """Render the table as asked; people get 20 rows unless they ask for more."""
    if kind == "json":
        terminal.emit(table.top(top).to_json(indent=2), output, quiet=quiet)
        return
    page: dict[str, Any] = {"source": source, "top": 50 if top is None else top}
    if terminal.write_view(table, kind, output, quiet=quiet, **page):
        return
    if kind == "csv":
        from equipoise.reports.bias.text import render_csv

        terminal.emit(render_csv(table.top(top)).rstrip("\n"), output, quiet=quiet)
        return
    from equipoise.reports.bias.data import summarize

    summary = summarize(table, source=source, top=20 if top is None else top)
    if kind == "markdown":
        from equipoise.reports.bias.markdown import render_markdown

        terminal.emit(render_markdown(summary), output, quiet=quiet)
    else:
        from equipoise.reports.bias.text import render_text

        colour = output is None and terminal.use_colour()
        text = render_text(summary, colour=colour, width=None if output else terminal.width())
        terminal.emit(text, output, quiet=quiet)
