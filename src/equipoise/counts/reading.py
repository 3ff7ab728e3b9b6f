"""How a table was read before it was counted: which rows, by what query, in which encoding."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_TYPE = re.compile(r"[A-Za-z0-9_ ]+(\([0-9, ]+\))?")
"""Types that can be written in SQL by their name; others, such as structures, cannot."""

_WORDS = {
    "VARCHAR": "text",
    "BIGINT": "whole numbers",
    "HUGEINT": "whole numbers",
    "DOUBLE": "numbers",
    "DATE": "dates",
    "TIMESTAMP": "times",
    "BOOLEAN": "truth values",
}


@dataclass(frozen=True)
class Condition:
    """A condition on the rows of a table, in SQL, and the types that it compares columns as."""

    text: str
    types: Mapping[str, str] | None = field(default=None, hash=False)
    """For each column that the condition names, the type that values are compared as; None until an
    engine has settled it (:meth:`~equipoise.engines.base.Engine.settled`). The table that the
    condition was given for decides, so that it means the same for every other table."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it names."""
        return tuple(self.types or ())

    @property
    def one_line(self) -> str:
        """The condition on one line, for sentences."""
        return " ".join(self.text.split())

    @property
    def compared(self) -> tuple[str, ...]:
        """The types that columns are compared as, in words, where these are known."""
        known = (self.types or {}).items()
        return tuple(f"{name} as {_WORDS[kind]}" for name, kind in known if kind in _WORDS)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a table was read; what is None was detected.

    >>> Reading(where=Condition("age > 30", {"age": "BIGINT"})).sentences
    ('Only rows where age > 30 are counted (age as whole numbers).',)
    >>> Reading.from_dict(None) == Reading()
    True
    """

    where: Condition | None = None
    sql: str | None = None
    """The query whose result the table is."""
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    """False if the first line of a CSV file or a sheet is a row, and names no columns."""
    lenient: bool | None = None
    """True if malformed lines of CSV files are skipped."""

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of ``locate`` that read a table in the same way."""
        return dict(vars(self))

    def but(self, **given: str | bool | None) -> Reading:
        """The same reading, with those of the given options that are not None.

        >>> read = Reading(encoding="latin-1", delimiter=";").but(encoding="utf-8", delimiter=None)
        >>> read.encoding, read.delimiter
        ('utf-8', ';')
        """
        return replace(self, **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which rows were counted, in sentences, if not all rows of the table as it is."""
        said = []
        if self.sql is not None:
            said.append(f"The table is the result of a query: {' '.join(self.sql.split())}")
        if self.where is not None:
            compared = ", ".join(self.where.compared)
            told = f" ({compared})" if compared else ""
            said.append(f"Only rows where {self.where.one_line} are counted{told}.")
        return tuple(said)

    @property
    def facts(self) -> list[list[str]]:
        """The same as names and values, and how files were read."""
        where = None if self.where is None else self.where.one_line
        sql = None if self.sql is None else " ".join(self.sql.split())
        named = {"only rows where": where, "query": sql, "encoding": self.encoding}
        named["delimiter"] = None if self.delimiter is None else repr(self.delimiter)
        named["header"] = "none; columns are numbered" if self.header is False else None
        named["broken lines"] = "skipped" if self.lenient else None
        return [[name, value] for name, value in named.items() if value is not None]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; :meth:`from_dict` reads it back."""
        types = None if self.where is None or self.where.types is None else dict(self.where.types)
        return {
            "where": None if self.where is None else self.where.text,
            "where_types": types,
            **{name: value for name, value in vars(self).items() if name != "where"},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Reading:
        """Read what :meth:`to_dict` wrote; older files have no record of it."""
        given = dict(data or {})
        text, types = given.pop("where", None), given.pop("where_types", None)
        texts = {name: given.get(name) for name in ("sql", "encoding", "delimiter")}
        for value in (text, *(types or {}).values(), *texts.values()):
            if not isinstance(value, str | None):
                raise TypeError(f"{value!r} is not text")
        flags = {name: given.get(name) for name in ("header", "lenient")}
        for flag in flags.values():
            if not isinstance(flag, bool | None):
                raise TypeError(f"{flag!r} is not true or false")
        return cls(where=None if text is None else Condition(text, types), **texts, **flags)


def is_plain_type(kind: str) -> bool:
    """Return whether a type can be cast to by its name.

    >>> is_plain_type("DECIMAL(18,3)"), is_plain_type("STRUCT(a INTEGER)")
    (True, False)
    """
    return _TYPE.fullmatch(kind) is not None
