"""On what conditions a source's rows may be had: cost, licence, consent."""

from __future__ import annotations

import fnmatch
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from equipoise.errors import InputError, did_you_mean

FILE_NAME = "sources.toml"
"""Is read if it lies in the lake's folder."""


@dataclass(frozen=True)
class Conditions:
    """The conditions of one source.

    Attributes
    ----------
    table_cost, row_cost
        What it costs to open the table once, and to take a row of it.
    licence
        Under which its rows come.
    consent
        Whether the people in it agreed to this use; unknown if not given. Without consent no
        row is taken.
    """

    table_cost: float = 1.0
    row_cost: float = 0.0
    licence: str | None = None
    consent: bool | None = None


@dataclass(frozen=True)
class Sources:
    """The conditions of all sources: of some by name or glob, of the others by default.

    >>> sources = Sources({"hr/*.csv": {"row_cost": 2.0}}, default={"table_cost": 10.0})
    >>> sources.of("hr/2024.csv")
    Conditions(table_cost=10.0, row_cost=2.0, licence=None, consent=None)
    """

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    default: Mapping[str, Any] = field(default_factory=dict)

    def of(self, name: str) -> Conditions:
        """The conditions of a table; a name counts more than a glob, a later glob more."""
        matching = [key for key in self.tables if key != name and fnmatch.fnmatchcase(name, key)]
        found = Conditions(**self.default)
        for key in (*matching, *([name] if name in self.tables else [])):
            found = replace(found, **self.tables[key])
        return found


def read_sources(path: str | os.PathLike[str] | None, folder: Path) -> Sources:
    """Read a file of conditions: the one named, or the one that lies in the lake's folder."""
    file = Path(path) if path is not None else folder / FILE_NAME
    if path is None and not file.exists():
        return Sources()
    raw = read_toml(file)
    default, tables = raw.pop("default", {}), raw.pop("tables", {})
    if raw or not isinstance(default, dict) or not isinstance(tables, dict):
        strange = next(iter(raw), "default or tables")
        raise InputError(
            f"{file} may have [default] and [tables.NAME] sections, and {strange!r} is none."
        )
    for name, given in (("default", default), *tables.items()):
        _require_conditions(file, name, given)
    return Sources(tables, default)


def read_codebook(path: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Read a codebook: by attribute, which value of a source means which of the base.

    It is a TOML file with a section for each attribute, such as ``[sex]`` with ``"1" = "Male"``.
    """
    file = Path(path)
    raw = read_toml(file)
    for name, values in raw.items():
        if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
            raise InputError(
                f"{name} in {file} is not a section of texts; write [{name}] and below it lines "
                'such as "1" = "Male".'
            )
    return raw


def read_toml(file: Path) -> dict[str, Any]:
    """Read a TOML file, or say in a sentence why it cannot be."""
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if "overwrite" in str(error):
            raise InputError(
                f"{file} says one thing twice, such as a value that is mapped to two: {error}."
            ) from None
        raise InputError(f"{file} is not valid TOML: {error}.") from None


def _require_conditions(file: Path, name: str, given: object) -> None:
    if not isinstance(given, dict):
        raise InputError(f"{name} in {file} is not a section; write [tables.{name!r}].")
    allowed = [f.name for f in fields(Conditions)]
    for key, value in given.items():
        if key not in allowed:
            raise InputError(
                f"{name} in {file} has {key!r}; there are: {', '.join(allowed)}."
                f"{did_you_mean(key, allowed)}"
            )
        good = {
            "licence": isinstance(value, str),
            "consent": isinstance(value, bool),
        }.get(key, _is_cost(value))
        if not good:
            kind = {"licence": "a text", "consent": "true or false"}.get(
                key, "a number of at least 0"
            )
            raise InputError(f"{key} of {name} in {file} is {value!r}, and must be {kind}.")


def _is_cost(value: object) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 0 <= float(value) < float("inf")  # type: ignore[arg-type]


def is_denied(name: str, conditions: Conditions, deny: Sequence[str]) -> str | None:
    """Say why no rows may be taken from a source, if so."""
    for pattern in deny:
        if name == pattern or fnmatch.fnmatchcase(name, pattern):
            return f"it is denied by {pattern!r}"
    return "the people in it gave no consent" if conditions.consent is False else None
