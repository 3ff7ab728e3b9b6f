"""The conditions under which rows of a source can be used: cost, licence and consent."""

from __future__ import annotations

import fnmatch
import functools
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from equipoise.errors import InputError, did_you_mean

FILE_NAME = "sources.toml"
"""Name of the file of conditions in a lake's folder."""


@dataclass(frozen=True)
class Conditions:
    """The conditions of one source."""

    # A table costs 1 and a row nothing, so that by default the cheapest choice is the one that uses
    # the fewest tables.
    table_cost: float = 1.0
    row_cost: float = 0.0
    licence: str | None = None
    consent: bool | None = None  # of the people in the table to this use; None if unknown


@dataclass(frozen=True)
class Sources:
    """The conditions of all sources: by name or glob, with defaults for the others."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    default: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def _globs(self) -> tuple[str, ...]:
        """The names that may match others; of a thousand tables, each may have its own line."""
        return tuple(key for key in self.tables if any(sign in key for sign in "*?["))

    def of(self, name: str) -> Conditions:
        """The conditions of a table; a name overrides globs, and a later glob an earlier one."""
        matching = [key for key in self._globs if key != name and fnmatch.fnmatchcase(name, key)]
        found = Conditions(**self.default)
        for key in (*matching, *([name] if name in self.tables else [])):
            found = replace(found, **self.tables[key])
        return found


def read_sources(path: str | os.PathLike[str] | None, folder: Path) -> Sources:
    """Read a file of conditions: the one given or, by default, the one in the lake's folder."""
    file = Path(path) if path is not None else folder / FILE_NAME
    if path is None and not file.exists():
        return Sources()
    raw = read_toml(file)
    default, tables = raw.pop("default", {}), raw.pop("tables", {})
    if raw or not isinstance(default, dict) or not isinstance(tables, dict):
        strange = next(iter(raw), "default or tables")
        raise InputError(
            f"{file} has {strange!r}; only [default] and [tables.NAME] sections are allowed."
        )
    for name, given in (("default", default), *tables.items()):
        _require_conditions(file, name, given)
    return Sources(tables, default)


def read_toml(file: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not valid TOML: {error}.") from None
    return parse_toml(text, str(file))


def parse_toml(text: str, file: str) -> dict[str, Any]:
    """Parse the text of a TOML file."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if "overwrite" in str(error):
            raise InputError(
                f"{file} sets a key twice, such as a value that is mapped to two values: {error}."
            ) from None
        raise InputError(f"{file} is not valid TOML: {error}.") from None


def _require_conditions(file: Path, name: str, given: object) -> None:
    if not isinstance(given, dict):
        raise InputError(f"{name} in {file} must be a section; write [tables.{name!r}].")
    allowed = [f.name for f in fields(Conditions)]
    for key, value in given.items():
        if key not in allowed:
            raise InputError(
                f"{name} in {file} has an unknown key {key!r}; allowed are: {', '.join(allowed)}."
                f"{did_you_mean(key, allowed)}"
            )
        is_good, kind = _KINDS.get(key, (_is_cost, "a number of at least 0"))
        if not is_good(value):
            raise InputError(f"{key} of {name} in {file} is {value!r}, but must be {kind}.")


def _is_cost(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):  # a bool is an int to Python
        return False
    return 0 <= value < float("inf")


_KINDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "licence": (lambda value: isinstance(value, str), "a text"),
    "consent": (lambda value: isinstance(value, bool), "true or false"),
}


def is_denied(name: str, conditions: Conditions, deny: Sequence[str]) -> str | None:
    """Return why no rows may be taken from a source, or None if they may."""
    for pattern in deny:
        if name == pattern or fnmatch.fnmatchcase(name, pattern):
            return f"it is denied by {pattern!r}"
    return "the people in it gave no consent" if conditions.consent is False else None
