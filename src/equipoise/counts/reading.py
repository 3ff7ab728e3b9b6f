"""How a table was read before it was counted: which rows, by what query, in which encoding."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_TYPE = re.compile(r"[A-Za-z0-9_ ]+(\([0-9, ]+\))?")
"""Names of types that stand in SQL as they are: others, such as structures, are left alone."""

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
    """A condition on the rows of a table, and as what it compares the columns it names.

    Attributes
    ----------
    text
        The condition, in SQL.
    types
        By column that it names, the type its values are compared as; none before an engine has
        settled it (:meth:`~equipoise.engines.base.Engine.settled`). It is decided once, by the
        table it was given for, so that every other table is held to the same condition.
    """

    text: str
    types: Mapping[str, str] | None = field(default=None, hash=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it names."""
        return tuple(self.types or ())

    @property
    def one_line(self) -> str:
        """The condition as it stands in a sentence."""
        return " ".join(self.text.split())

    @property
    def compared(self) -> tuple[str, ...]:
        """As what the columns are compared, in words, where these are known."""
        known = (self.types or {}).items()
        return tuple(f"{name} as {_WORDS[kind]}" for name, kind in known if kind in _WORDS)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a table was read; what is not given was left to be found.

    >>> Reading(where=Condition("age > 30", {"age": "BIGINT"})).sentences
    ('Only rows where age > 30 are counted (age as whole numbers).',)
    >>> Reading.from_dict(None) == Reading()
    True

    Attributes
    ----------
    where
        The condition that all rows satisfy.
    sql
        The query whose result the table is.
    encoding, delimiter
        Of CSV files.
    header
        False if the first line of a CSV file or a sheet is a row, and names no columns.
    lenient
        True if lines of CSV files that are no rows are skipped.
    """

    where: Condition | None = None
    sql: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    lenient: bool | None = None

    @property
    def options(self) -> dict[str, Any]:
        """What to give to ``locate`` to read a table in the same way."""
        return dict(vars(self))

    def but(self, **given: str | bool | None) -> Reading:
        """The same with what is given of encoding, delimiter, header and lenient.

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
        """The same as names and values, with how files were read."""
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
            "sql": self.sql,
            "encoding": self.encoding,
            "delimiter": self.delimiter,
            "header": self.header,
            "lenient": self.lenient,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Reading:
        """Read what :meth:`to_dict` wrote; older files have no such record."""
        given = dict(data or {})
        text, types = given.pop("where", None), given.pop("where_types", None)
        for kind in (types or {}).values():
            if not isinstance(kind, str):
                raise TypeError(f"{kind!r} is no type")
        where = None if text is None else Condition(_text(text), None if types is None else types)
        known = {name: given.get(name) for name in ("sql", "encoding", "delimiter")}
        for value in known.values():
            if value is not None:
                _text(value)
        flags = {name: given.get(name) for name in ("header", "lenient")}
        for flag in flags.values():
            if flag is not None and not isinstance(flag, bool):
                raise TypeError(f"{flag!r} is not true or false")
        return cls(where=where, **known, **flags)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def is_plain_type(kind: str) -> bool:
    """Tell whether a type can be cast to by its name.

    >>> is_plain_type("DECIMAL(18,3)"), is_plain_type("STRUCT(a INTEGER)")
    (True, False)
    """
    return _TYPE.fullmatch(kind) is not None
