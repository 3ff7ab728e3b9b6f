"""Defaults from ``equipoise.toml``, or ``[tool.equipoise]`` in ``pyproject.toml``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import click

TABLES: Mapping[str, tuple[str, ...]] = {"check": ("rules",)}
"""Keys of a command's table that are no options of it."""


def load(path: str | None, commands: Collection[str]) -> dict[str, Any]:
    """Read the given file, or the nearest one in this folder or above; empty if there is none."""
    file = Path(path) if path is not None else _nearest()
    if file is None:
        return {}
    from equipoise.measures.configuration import read_config

    found = read_config(file)
    for table in found:
        if table not in commands:
            raise InputError(
                f"{file} has a table [{table}], which is no command; there are: "
                f"{', '.join(commands)}.{did_you_mean(table, commands)}"
            )
    return found


def _nearest() -> Path | None:
    here = Path.cwd()
    for folder in (here, *here.parents):
        for name in ("equipoise.toml", "pyproject.toml"):
            file = folder / name
            if file.is_file() and (name == "equipoise.toml" or _has_table(file)):
                return file
    return None


def _has_table(file: Path) -> bool:
    try:
        return "[tool.equipoise" in file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def defaults(table: Any, name: str, command: click.Command) -> dict[str, Any]:
    """A command's table as defaults of its options, whose names are the table's keys."""
    known = {
        flag.removeprefix("--"): option.name
        for option in command.params
        for flag in option.opts
        if flag.startswith("--")
    }
    single = {
        flag.removeprefix("--")
        for option in command.params
        for flag in option.opts
        if not getattr(option, "multiple", False)
    }
    given: dict[str, Any] = {}
    for key, value in table.items() if isinstance(table, dict) else ():
        option = key.replace("_", "-")
        if isinstance(value, (list, dict)) and option in single:
            raise InputError(
                f"{key} in [{name}] of the configuration takes one value, not {value}."
            )
        if option in known:
            given[str(known[option])] = value
        elif option not in TABLES.get(name, ()):
            raise InputError(
                f"[{name}] in the configuration has no key {key!r}; it has: {', '.join(known)}."
                f"{did_you_mean(option, known)}"
            )
    return given
