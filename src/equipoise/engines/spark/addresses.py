"""Addresses of Spark, as in ``spark:warehouse.people``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.engines.addresses import split
from equipoise.engines.sources import Source
from equipoise.errors import InputError


def locate(address: str, options: Mapping[str, Any]) -> Source:
    """Find the table of a Spark catalog that an address names.

    >>> source = locate("spark:warehouse.people?id=number", {})
    >>> source.name, source.table, source.key
    ('spark:warehouse.people?id=number', 'warehouse.people', ('number',))
    """
    before, ours = split(address)
    table = before.partition(":")[2].strip("/")
    if not table:
        raise InputError("the address of a table of Spark names it, as in spark:warehouse.people.")
    if others := [name for name in ours if name != "id"]:
        raise InputError(
            f"{address} has the parameter {others[0]!r}; the address of a table of Spark takes only id, as in "
            "spark:warehouse.people?id=number."
        )
    key = tuple(name for name in ours.get("id", "").split(",") if name)
    found = {**options, "key": key} if key else dict(options)
    return Source(name=address, kind="spark", address=address, table=table, **found)


def beside(address: str, ending: str) -> str:
    """Return the address of the table whose name has an ending more.

    >>> beside("spark:warehouse.people?id=number", "_ledger")
    'spark:warehouse.people_ledger'
    """
    name = split(address)[0]
    return f"{name[:-1]}{ending}`" if name.endswith("`") else f"{name}{ending}"
