"""``equipoise demo``."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli import terminal

ATTRIBUTES = ["sex", "race"]
SEED = 2024


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
    """Run the main job end to end on embedded data: measure Adult, plan a repair, carry one out."""
    output.mkdir(parents=True, exist_ok=True)
    _measure(output)
    _plan(output)
    _apply(output)


def _measure(output: Path) -> None:
    from equipoise.api import measure, report
    from equipoise.reports.summarize import summarize
    from equipoise.reports.text import render_text

    _type("measure adult --sensitive sex,race --label income --favourable '>50K'")
    table = measure("adult", sensitive_features=ATTRIBUTES, label="income", favourable=">50K")
    summary = summarize(table.worst(), source="adult", top=12)
    click.echo(render_text(summary, colour=terminal.use_colour(), width=terminal.width()))
    page = output / "adult.html"
    report(table, page, source="adult")
    click.echo(f"\nThe page with the picture: {page}\n")


def _plan(output: Path) -> None:
    """Plan the repair of the whole table, whether or not such rows are to be had."""
    from equipoise import atomic
    from equipoise.api import plan
    from equipoise.reports.plan import write_plan

    file, page = output / "plan.json", output / "plan.html"
    _type(
        "plan adult --sensitive sex,race --label income --tolerance 0.05 --allow both "
        f"--min-group 100 -o {file}"
    )
    made = plan(
        "adult",
        sensitive_features=ATTRIBUTES,
        label="income",
        tolerance=0.05,
        allow="both",
        min_group=100,
    )
    click.echo(made.text(top=8))
    atomic.write_text(file, made.to_json(indent=2) + "\n")
    write_plan(made, page, source="adult")
    click.echo(f"\nThe plan: {file}, and as a page: {page}\n")


def _apply(output: Path) -> None:
    """Carry out a plan with real rows: one half of the table is repaired from the other."""
    from equipoise import atomic
    from equipoise.api import apply, measure, plan

    people, pool = _halves(output)
    file, repaired = output / "people-plan.json", output / "repaired.parquet"
    click.echo(
        "With real rows: Adult is cut at random into a table and a pool of rows to take from. The\n"
        "pool has the bias of the table, so it has few of the rows that are needed.\n"
    )
    _type(
        f"plan {people} --sensitive sex,race --label income --tolerance 0.05 --allow both "
        f"--available-from {pool} -o {file}"
    )
    made = plan(
        str(people),
        sensitive_features=ATTRIBUTES,
        label="income",
        tolerance=0.05,
        allow="both",
        available_from=str(pool),
    )
    click.echo("\n".join(made.explanation[:2]))
    atomic.write_text(file, made.to_json(indent=2) + "\n")
    click.echo()
    _type(f"apply {file} --to {people} --pool {pool} -o {repaired}")
    click.echo(apply(made, to=str(people), pool=str(pool), output=repaired).text())
    click.echo()
    _type(f"measure {repaired} --sensitive sex,race --label income")
    table = measure(repaired, sensitive_features=ATTRIBUTES, label="income")
    click.echo(f"{table.worst(4)}\n… the other {len(table) - 4} have a smaller |UB|")


def _halves(output: Path) -> tuple[Path, Path]:
    """Cut Adult into two tables by chance, the same on every machine."""
    import numpy as np
    import pyarrow.parquet as pq

    from equipoise import atomic, datasets

    rows = pq.read_table(datasets.path("adult"))
    first = np.random.default_rng(SEED).random(rows.num_rows) < 0.5
    paths = output / "people.parquet", output / "pool.parquet"
    for path, chosen in zip(paths, (first, ~first), strict=True):
        with atomic.atomic_path(path) as place:
            pq.write_table(rows.filter(chosen), place)
    return paths


def _type(line: str) -> None:
    click.echo(f"$ equipoise {line}\n")
