"""``equipoise engines``."""

from __future__ import annotations

import click

from equipoise.plain import Grid


@click.command("engines", epilog="Example: equipoise engines")
def command() -> None:
    """Show which formats each engine can read and write."""
    from equipoise.engines import engines

    rows = [
        (name, "reads", what, how)
        for name, engine in engines().items()
        for what, how in engine.reads.items()
    ]
    rows += [(n, "writes", ", ".join(e.writes), "written atomically") for n, e in engines().items()]
    rows.sort(key=lambda row: row[:2])
    click.echo(Grid(("engine", "", "what", "how"), tuple(rows)).text())
