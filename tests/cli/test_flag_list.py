"""The flags of every command, as users and their scripts know them."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from equipoise.cli.app import cli

PINNED = json.loads(Path(__file__).with_name("flags.json").read_text(encoding="utf-8"))


def commands(command, path="equipoise"):
    yield path, command
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                yield from commands(command.get_command(context, name), f"{path} {name}")


def flags(command):
    """Spell each parameter with its default, how often it may be given, and what it may be."""
    with click.Context(command) as context:
        return {" ".join((*p.opts, *p.secondary_opts)): shape(p, context) for p in command.params}


def shape(parameter, context):
    kind = parameter.type
    words = ["pair" if kind.is_composite else kind.name.removesuffix(" range")]
    if isinstance(kind, click.Choice):
        words.append("|".join(sorted(kind.choices)))
    if parameter.required:
        words.append("required")
    if getattr(parameter, "multiple", False) or parameter.nargs == -1:
        words.append("repeatable")
    default = parameter.get_default(context)
    if isinstance(default, (str, float)) or type(default) is int:
        words.append(f"default {default}")
    return ", ".join(words)


FOUND = {path: flags(command) for path, command in commands(cli)}


def test_the_commands_are_the_pinned_ones():
    assert sorted(FOUND) == sorted(PINNED)


@pytest.mark.parametrize("command", sorted(PINNED))
def test_a_command_has_the_flags_it_had(command):
    assert FOUND[command] == PINNED[command]
