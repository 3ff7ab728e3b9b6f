"""Tables that are lists of Parquet files: how their columns are found in the files."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.engines.stored import FilePath


@dataclass(frozen=True)
class ListedColumn:
    """A column of a table, and where its values are.

    In the files it is found by its name there, or by the number of its field. ``constants`` has a
    text for each file that holds one value for all its rows, and does not repeat it in each of them.
    ``default`` is the value of rows that are older than the column.
    """

    name: str
    type: str
    key: str | int | None
    constants: tuple[str | None, ...] | None = None
    default: str | None = None


@dataclass(frozen=True)
class FileList:
    """The files of one state of a table, in the order in which its rows are numbered."""

    files: tuple[FilePath, ...]
    columns: tuple[ListedColumn, ...]
    snapshot: str
    """Which state of which table this is, wherever the table is moved to."""
    size: int
    """Bytes of all files."""


def constant_text(value: Any) -> str | None:
    r"""Write a value that all rows of a file share, so that a database can read it.

    >>> constant_text(True), constant_text(datetime.date(2024, 5, 1)), constant_text(None)
    ('true', '2024-05-01', None)
    >>> print(constant_text(b"a\xff"))
    \x61\xFF
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return "".join(f"\\x{byte:02X}" for byte in value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


def struct_type(fields: Sequence[tuple[str, str]]) -> str:
    """Write the type of a structure.

    >>> struct_type([("a", "BIGINT")])
    'STRUCT("a" BIGINT)'
    """
    quoted = ['"' + name.replace('"', '""') + f'" {kind}' for name, kind in fields]
    return f"STRUCT({', '.join(quoted)})"
