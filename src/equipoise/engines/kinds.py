"""Kinds of data that engines read, recognized by the extension or first bytes of a file."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Literal, TypeAlias

from equipoise.errors import InputError

Kind: TypeAlias = Literal[
    "csv",
    "parquet",
    "json",
    "duckdb",
    "sqlite",
    "excel",
    "delta",
    "iceberg",
    "postgres",
    "spark",
    "frame",
    "relation",
]
CONTAINERS: frozenset[Kind] = frozenset({"duckdb", "sqlite", "excel"})
"""Files that hold several tables, each with a name: ``file::table``."""

DATABASES: tuple[Kind, ...] = ("postgres", "spark")
"""Tables whose rows stay where they are, and have no numbers; only the rows tell their state."""

EXTENSIONS: Mapping[str, Kind] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".duckdb": "duckdb",
    ".db": "duckdb",  # unless its first bytes are those of SQLite
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".xlsx": "excel",
    ".xlsm": "excel",
}

_SQLITE = b"SQLite format 3\0"
_BEGINNINGS: Mapping[bytes, Kind] = {
    b"PAR1": "parquet",
    _SQLITE: "sqlite",
    b"PK\x03\x04": "excel",  # a workbook is a ZIP archive
}
_JSON = re.compile(rb"""(\xef\xbb\xbf)?\s*(\{\s*["}]|\[\s*\{)""")


def extension(path: PurePath) -> str:
    """Return the extension of a file in lower case, without that of its compression.

    >>> extension(Path("People.CSV.gz"))
    '.csv'
    """
    return PurePath(path.name.lower().removesuffix(".gz")).suffix


def kind_of(path: Path) -> Kind:
    """Recognize the kind of a file by its extension, or of a ``.db`` file by its first bytes."""
    if extension(path) == ".db" and _is_sqlite(path):
        return "sqlite"
    try:
        return EXTENSIONS[extension(path)]
    except KeyError:
        raise InputError(
            f"{path} has an unknown extension; supported are {', '.join(EXTENSIONS)} (and .gz)."
        ) from None


def kind_of_container(path: Path) -> Kind:
    """Recognize the kind of a file with several tables; a database may have any extension."""
    if _is_sqlite(path):
        return "sqlite"
    kind = EXTENSIONS.get(extension(path), "duckdb")
    return kind if kind in CONTAINERS else "duckdb"


def kind_of_bytes(head: bytes) -> Kind:
    """Recognize the kind of a file by its first bytes."""
    for beginning, kind in _BEGINNINGS.items():
        if head.startswith(beginning):
            return kind
    if head[8:12] == b"DUCK":  # behind a checksum
        return "duckdb"
    return "json" if _JSON.match(head) else "csv"


def _is_sqlite(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
    return False
