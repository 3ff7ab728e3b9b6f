"""``equipoise data``."""

from __future__ import annotations

import json
import re
from typing import Any

import click

from equipoise import datasets
from equipoise.cli import terminal
from equipoise.cli.command import CommandGroup
from equipoise.plain import Grid


@click.group("data", cls=CommandGroup)
def command() -> None:
    """List, show and fetch data sets. Each has a card with its source, licence and known harms.

    Every command accepts the name of a data set as a table, as in equipoise measure adult.
    """


@command.command("list", epilog="Example: equipoise data list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List the available data sets."""
    cards = [datasets.card(name) for name in datasets.names()]
    if as_json:
        click.echo(json.dumps([c.to_dict() for c in cards], ensure_ascii=False, indent=2))
        return
    rows = tuple((c.name, f"{c.rows:,}", _where(c), _licence(c), c.title) for c in cards)
    click.echo(Grid(("name", "rows", "where", "licence", "title"), rows, frozenset({1})).text())


def _licence(card: datasets.Card) -> str:
    return re.split(r" \(|[:,;]", card.licence)[0]


def _where(card: datasets.Card) -> str:
    if card.is_bundled:
        return "bundled"
    return "fetched" if datasets.is_available(card.name) else "to fetch"


@command.command(epilog="Example: equipoise data show adult")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, as_json: bool) -> None:
    """Show the card of a data set."""
    card = datasets.card(name)
    if as_json:
        click.echo(json.dumps(card.to_dict(), ensure_ascii=False, indent=2))
        return
    for key, value in card.to_dict().items():
        if value is not None:
            click.echo(f"{key.replace('_', ' ')}: {_text(value)}")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(f"\n  {k}: {v}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        long = any(len(str(v)) > 30 for v in value)
        return "".join(f"\n  - {v}" for v in value) if long else ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@command.command(epilog="Example: duckdb -c \"FROM '$(equipoise data path adult)'\"")
@click.argument("name")
def path(name: str) -> None:
    """Print the path of a data set."""
    click.echo(datasets.path(name))


@command.command(epilog="Example: equipoise data fetch compas-two-years")
@click.argument("name")
@click.option("--force", is_flag=True, help="Download again even if it is present.")
@click.option("--quiet", "-q", is_flag=True, help="Print only the path.")
def fetch(name: str, force: bool, quiet: bool) -> None:
    """Download a data set that is not bundled. No other command uses the network."""
    said = None if quiet else terminal.say
    click.echo(datasets.fetch(name, force=force, progress=said))
