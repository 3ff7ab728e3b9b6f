"""Addresses: data named by a scheme, as in ``s3://bucket/people.csv``."""

from __future__ import annotations

import glob
import importlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from equipoise.credentials import scrubbed, secrets_of, without_password
from equipoise.errors import InputError, did_you_mean

__all__ = [
    "SCHEMES",
    "Scheme",
    "beside",
    "is_address",
    "local_path",
    "locator",
    "scheme_of",
    "scrubbed",
    "secrets_of",
    "split",
    "with_login",
    "without_password",
]

# Two letters at least: one is a drive of Windows. Two colons are file.duckdb::table.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+-]+):(?!:)")


@dataclass(frozen=True)
class Scheme:
    """A kind of address."""

    about: str
    """What it names, with an example."""

    module: str
    """The module whose ``locate(address, options)`` finds the source; loaded when it is needed."""

    places: str | None = None
    """The module that knows what is at a place of a lake, if it is another one."""


_OBJECTS = "equipoise.engines.stores.objects"

_SPARK = "equipoise.engines.spark.addresses", "equipoise.engines.spark.places"
_POSTGRES = "equipoise.engines.postgres.addresses", "equipoise.engines.postgres.places"

SCHEMES: Mapping[str, Scheme] = {
    "delta": Scheme(
        "a Delta table, as in delta:./tables/people or delta:s3://bucket/people?version=3",
        "equipoise.engines.stores.delta",
    ),
    "iceberg": Scheme(
        "an Iceberg table, as in iceberg:sqlite:///catalog.db?table=archive.people",
        "equipoise.engines.stores.iceberg",
    ),
    "s3": Scheme("files in Amazon S3 or a store like it, as in s3://bucket/people/*.csv", _OBJECTS),
    "gs": Scheme("files in Google Cloud Storage, as in gs://bucket/people.parquet", _OBJECTS),
    "gcs": Scheme("the same as gs", _OBJECTS),
    "az": Scheme("files in Azure Blob Storage, as in az://container/people.parquet", _OBJECTS),
    "abfs": Scheme("the same as az", _OBJECTS),
    "abfss": Scheme("the same as az", _OBJECTS),
    "http": Scheme("one file of a web server, as in http://host/people.csv", _OBJECTS),
    "https": Scheme("one file of a web server, as in https://host/people.csv", _OBJECTS),
    "memory": Scheme("files in the memory of this process, as in memory://people.csv", _OBJECTS),
    "postgresql": Scheme(
        "a table of PostgreSQL, as in postgresql://user@host/database?table=people", *_POSTGRES
    ),
    "postgres": Scheme("the same as postgresql", *_POSTGRES),
    "spark": Scheme("a table of the catalog of Spark, as in spark:warehouse.people", *_SPARK),
    "file": Scheme("files of this machine, as in file:///data/people.csv", _OBJECTS),
}
"""The known schemes. An entry here is all that a new one needs."""


def scheme_of(text: str) -> str | None:
    """Return the scheme of an address, in lower case; None if a text is a path.

    What exists as a path is one. An unknown scheme is refused.

    >>> (
    ...     scheme_of("s3://bucket/people.csv"),
    ...     scheme_of("people.duckdb::people"),
    ...     scheme_of("C:/a.csv"),
    ... )
    ('s3', None, None)
    """
    found = _SCHEME.match(text)
    if found is None or _is_path(text):
        return None
    scheme = found[1].lower()
    if scheme in SCHEMES:
        return scheme
    near = did_you_mean(scheme, SCHEMES)
    # Without a scheme, what looks like one may be a user, whose password comes next.
    shown = re.sub(r"(?<=:)(?!/)\S*@", "…@", without_password(text))
    raise InputError(
        f"{shown} begins with {found[0]!r}, which is not a known scheme, and no such file "
        f"exists; known are {', '.join(SCHEMES)}.{near}"
    )


def is_address(text: str) -> bool:
    """Whether a text begins with a known scheme; an unknown one may be the name of a new file.

    >>> is_address("s3://bucket/new.csv"), is_address("notes:new.csv")
    (True, False)
    """
    found = _SCHEME.match(text)
    return found is not None and found[1].lower() in SCHEMES and not _is_path(text)


def locator(scheme: str) -> Callable[[str, dict[str, Any]], Any]:
    """Return the function that finds the source of an address of a scheme."""
    found: Callable[[str, dict[str, Any]], Any]
    found = importlib.import_module(SCHEMES[scheme].module).locate
    return found


def beside(address: str, ending: str) -> str:
    """Return the address of the table of a database whose name has an ending more.

    >>> beside("spark:warehouse.people", "_ledger")
    'spark:warehouse.people_ledger'
    """
    module = importlib.import_module(SCHEMES[scheme_of(address) or ""].module)
    found: str = module.beside(address, ending)
    return found


def with_login(address: str, places: Iterable[str]) -> str:
    """Return an address that was recorded, with the password of a place of the same server, user and database.

    >>> with_login(
    ...     "postgresql://ann@host/db?table=people",
    ...     ["./files", "postgresql://ann:x@host/db?schema=archive"],
    ... )
    'postgresql://ann:x@host/db?table=people'
    """
    for place in filter(is_address, places):
        modules = {SCHEMES[scheme_of(text) or ""].module for text in (address, place)}
        lend = getattr(importlib.import_module(modules.pop()), "with_login", None)
        if lend is not None and not modules:
            found: str = lend(address, place)
            if found != address:
                return found
    return address


def local_path(address: str) -> str:
    """Return the path of an address of a file of this machine.

    >>> local_path("file:///data/my%20people.csv"), local_path("file:people.csv")
    ('/data/my people.csv', 'people.csv')
    """
    path = address.partition(":")[2]
    if path.startswith("//"):
        host, _, path = path[2:].partition("/")
        if host not in ("", "localhost"):
            raise InputError(
                f"{without_password(address)} names another machine; an address of a file begins with "
                "file:/// and its path."
            )
        path = f"/{path}"
    return unquote(path)


def split(address: str) -> tuple[str, dict[str, str]]:
    """Split an address into what stands before its last question mark, and its parameters.

    >>> split("delta:./tables/people?version=3")
    ('delta:./tables/people', {'version': '3'})
    """
    before, _, after = address.rpartition("?")
    if not before or "=" not in after:
        return address, {}
    return before, dict(parse_qsl(after, keep_blank_values=True))


def _is_path(text: str) -> bool:
    # os.path.exists returns False where Path.exists raises, such as for names that are too long.
    exists = os.path.exists(text.partition("::")[0] or text) or os.path.exists(text)  # noqa: PTH110
    return exists or ("://" not in text and glob.has_magic(text) and bool(glob.glob(text)))  # noqa: PTH207
