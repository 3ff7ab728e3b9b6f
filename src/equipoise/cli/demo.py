"""``equipoise demo``."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli import terminal


@click.command("demo", epilog="Example: equipoise demo --output demo")
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="The folder to write to.",
)
def command(output: Path) -> None:
    """Run the main job end to end on embedded data: measure Adult, and write an HTML page."""
    from equipoise.api import measure, report
    from equipoise.reports.summarize import summarize
    from equipoise.reports.text import render_text

    click.echo(
        "$ equipoise measure adult --sensitive sex,race --label income --favourable '>50K'\n"
    )
    table = measure("adult", sensitive_features=["sex", "race"], label="income", favourable=">50K")
    summary = summarize(table.worst(), source="adult", top=12)
    colour, width = terminal.use_colour(), terminal.width()
    click.echo(render_text(summary, colour=colour, width=width))
    output.mkdir(parents=True, exist_ok=True)
    page = output / "adult.html"
    report(table, page, source="adult")
    click.echo(f"\nThe page with the picture: {page}")
