"""``equipoise engines``."""

from __future__ import annotations

import click

from equipoise.plain import Grid


@click.command("engines", epilog="Example: equipoise engines")
def command() -> None:
    """Show what each engine can read and write, and how, as it declares itself."""
    from equipoise.engines import declarations

    click.echo(Grid(("engine", "", "what", "how"), tuple(declarations())).text())
