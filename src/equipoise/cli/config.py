"""Defaults from ``equipoise.toml``, or ``[tool.equipoise]`` in ``pyproject.toml``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import click

_TABLES: Mapping[str, tuple[str, ...]] = {"check": ("rules",)}
"""Keys in the table of a command that are not options of it."""
_WHERE_REQUIRED: Mapping[str, tuple[str, ...]] = {"monitor": ("name",)}
"""Keys in the table of a family of commands that are defaults of those alone that cannot do without.

Where a name is optional, leaving it out means all, and there is no other way to say this.
"""


def load(path: str | None, commands: Collection[str]) -> dict[str, Any]:
    """Read the given file, or the nearest one in this folder or above; empty if there is none."""
    file = Path(path) if path is not None else _nearest()
    if file is None:
        return {}
    # Loaded only where there is a file, since it needs the parser of TOML.
    from equipoise.measures.configuration import read_config

    found = read_config(file)
    for table in found:
        if table not in commands:
            raise InputError(
                f"{file} has a table [{table}], which is not a command; there are: "
                f"{', '.join(commands)}.{did_you_mean(table, commands)}"
            )
    return found


def _nearest() -> Path | None:
    here = Path.cwd()
    for folder in (here, *here.parents):
        for name in ("equipoise.toml", "pyproject.toml"):
            file = folder / name
            # A project's pyproject.toml counts only if it has a table for Equipoise.
            if file.is_file() and (name == "equipoise.toml" or _has_table(file)):
                return file
    return None


def _has_table(file: Path) -> bool:
    try:
        return "[tool.equipoise" in file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def defaults(table: Any, name: str, command: click.Command) -> dict[str, Any]:
    """Read the table of a command as defaults of its options.

    The table of a family of commands has the options of all of them.
    """
    family = getattr(command, "commands", None)
    if family is None:
        return _defaults(table, name, command.params)
    known = [option for each in family.values() for option in each.params]
    _defaults(table, name, known)
    return {
        key: _defaults(_only(table, name, each.params), name, each.params)
        for key, each in family.items()
    }


def _only(table: Any, name: str, parameters: Sequence[click.Parameter]) -> dict[str, Any]:
    """The keys of the table of a family that are options of one command."""
    flags = {
        flag.removeprefix("--")
        for option in parameters
        for flag in option.opts
        if option.required or flag.removeprefix("--") not in _WHERE_REQUIRED.get(name, ())
    }
    listed = table.items() if isinstance(table, dict) else ()
    return {key: value for key, value in listed if key.replace("_", "-") in flags}


def _defaults(table: Any, name: str, parameters: Sequence[click.Parameter]) -> dict[str, Any]:
    known = {
        flag.removeprefix("--"): option
        for option in parameters
        for flag in option.opts
        if flag.startswith("--")
    }
    given: dict[str, Any] = {}
    for key, value in table.items() if isinstance(table, dict) else ():
        option = known.get(key.replace("_", "-"))
        if option is not None:
            # click would read a list as the text of one value.
            if isinstance(value, (list, dict)) and not getattr(option, "multiple", False):
                raise InputError(
                    f"{key} in [{name}] of the configuration takes one value, not {value}."
                )
            given[str(option.name)] = value
        elif key.replace("_", "-") not in _TABLES.get(name, ()):
            raise InputError(
                f"[{name}] in the configuration has no key {key!r}; it has: {', '.join(known)}."
                f"{did_you_mean(key.replace('_', '-'), known)}"
            )
    return given
