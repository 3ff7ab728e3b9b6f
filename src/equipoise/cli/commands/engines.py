"""``equipoise engines``."""

from __future__ import annotations

import click

from equipoise.plain import Grid


@click.command("engines", epilog="Example: equipoise engines")
def command() -> None:
    """Show what each engine can read and write, as it declares itself."""
    from equipoise.engines import engines

    rows = [
        (name, "reads", what, how)
        for name, engine in engines().items()
        for what, how in engine.reads.items()
    ]
    rows += [(n, "writes", ", ".join(e.writes), "whole or not there") for n, e in engines().items()]
    rows.sort(key=lambda row: row[:2])
    click.echo(Grid(("engine", "", "what", "how"), tuple(rows)).text())
