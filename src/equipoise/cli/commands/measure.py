"""``equipoise measure``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import arguments, options, terminal
from equipoise.cli.command import Command
from equipoise.cli.output import PICTURES, Output, output_options
from equipoise.credentials import without_password
from equipoise.options.measure import MeasureOptions

if TYPE_CHECKING:
    from equipoise.measures.table import BiasTable


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
@options.table
@options.request(MeasureOptions)
@options.option(
    "--sort",
    type=click.Choice(["worst", "ub", "group", "n", "p"]),
    default="worst",
    show_default=True,
    group="Output",
    help="Order of the rows. By worst, groups with too few rows to be conclusive come last.",
)
@options.top("rows", "20 in text and Markdown, 50 in HTML, all in JSON and CSV")
@options.option(
    "--label-value",
    cls=options.Repeatable,
    metavar="VALUE",
    group="Which groups",
    help="Show only this label value. Repeatable.",
)
@options.option(
    "--group",
    metavar="PATTERN",
    group="Which groups",
    help="Show only groups inside this one. Example: sex=Female.",
)
@options.option(
    "--hidden",
    is_flag=True,
    group="Which groups",
    help="Show only groups outside `limit` whose parents are all inside.",
)
@options.option(
    "--worse",
    is_flag=True,
    group="Which groups",
    help="Show only intersections whose |UB| is larger than that of each of their parents.",
)
@options.option(
    "--evident",
    is_flag=True,
    group="Which groups",
    help="Show only groups with enough rows to be conclusive.",
)
@options.option(
    "--attributes",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    group="Which groups",
    help="Show only groups of this many attributes.",
)
@options.option(
    "--search",
    metavar="WORDS",
    group="Which groups",
    help="Show only groups whose pattern contains these words. Example: 'female black'.",
)
@options.suppress
@output_options("text", "json", "csv", "markdown", "html", *PICTURES)
def command(data: str, output: Output, **given: Any) -> int:
    """Measure the Uniform Bias of every group and label of DATA.

    DATA is a CSV, TSV, Parquet or JSON lines file (gzipped or not), a folder or glob of
    them, file.duckdb::table, file.sqlite::table, book.xlsx::sheet, an address such as
    delta:PATH or s3://BUCKET/FILE, - for standard input, or the name of a bundled data set
    (equipoise data list).
    """
    shown = {k: given.pop(k) for k in ("sort", "top", *_CHOSEN)}
    below = given.pop("suppress_below")
    with arguments.library_arguments(data, given) as keywords:
        from equipoise.api.measurement import measure

        table = measure(data, **keywords)
    arguments.show_hints(table.counts, quiet=output.quiet)
    if below is not None:
        from equipoise.measures.suppression import suppress

        table = suppress(table, below)
    if shown["hidden"] and output.kind == "text" and not table.measured.hidden.any():
        limit = f"|UB| up to {given['limit']:g}"
        terminal.emit(
            f"No group is hidden: outside the limit ({limit}) with all parents inside.", output.path
        )
        return 0
    chosen = table.filter(
        **{name: shown[name] for name in _CHOSEN}
        | {"label_value": list(shown["label_value"]) or None}
    )
    return _show(
        chosen.sort(shown["sort"]), output, source=without_password(data), top=shown["top"]
    )


_CHOSEN = ("label_value", "group", "hidden", "worse", "evident", "attributes", "search")
"""How rows are chosen."""


def _show(table: BiasTable, output: Output, *, source: str, top: int | None) -> int:
    """Show the table as requested; text and Markdown have at most 20 rows by default."""

    def csv() -> str:
        from equipoise.reports.bias.text import render_csv

        return render_csv(table.top(top))

    def summary() -> dict[str, Any]:
        from equipoise.reports.bias.data import summarize

        return summarize(table, source=source, top=20 if top is None else top)

    def markdown() -> str:
        from equipoise.reports.bias.markdown import render_markdown

        return render_markdown(summary())

    def text() -> str:
        from equipoise.reports.bias.text import render_text

        is_printed = output.path is None
        width = terminal.width() if is_printed else None
        return render_text(summary(), colour=is_printed and terminal.use_colour(), width=width)

    return output.show(
        table,
        page={"source": source, "top": 50 if top is None else top},
        prose=False,  # it is as wide as the terminal already
        json=lambda: table.top(top).to_json(indent=2),
        csv=csv,
        markdown=markdown,
        text=text,
    )
