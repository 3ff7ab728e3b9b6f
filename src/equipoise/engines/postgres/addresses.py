"""Addresses of PostgreSQL, as in ``postgresql://ann@host/db?table=public.people``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from equipoise.engines.addresses import without_password
from equipoise.engines.sources import Source
from equipoise.errors import InputError

_OURS = ("table", "schema", "id")


def locate(address: str, options: Mapping[str, Any]) -> Source:
    """Find the table that an address names; all its other parameters are for the driver.

    ``id`` names the columns that rows are known by, with commas between them.

    >>> source = locate("postgresql://ann:x@host/db?table=people&id=number&sslmode=require", {})
    >>> source.name, source.table, source.key
    ('postgresql://ann@host/db?table=people&id=number&sslmode=require', 'people', ('number',))
    """
    server, ours = split(address)
    if not ours.get("table"):
        raise InputError(
            "the address of a table of PostgreSQL names it, as in "
            f"{table_address(public(address), 'people', _OURS)}, or table=schema.people."
        )
    key = tuple(name for name in ours.get("id", "").split(",") if name)
    found = {**options, "key": key} if key else dict(options)
    name = _with_known_scheme(address)
    return Source(name=name, kind="postgres", address=server, table=ours["table"], **found)


def split(address: str) -> tuple[str, dict[str, str]]:
    """Split an address into that of the server, and the parameters that say which table is meant."""
    login, rest, after = _parts(address)
    if not login:
        raise InputError(
            f"{public(address)} is no address of PostgreSQL; it begins with postgresql://, as in "
            "postgresql://user@host/database?table=people."
        )
    if _parts(public(address))[1] != rest:
        raise InputError(
            f"{public(address)} has a password or a database that can be misread; write @ in it as %40, and "
            "/ as %2F."
        )
    given = parse_qsl(after, keep_blank_values=True)
    for name in _OURS:
        if sum(name == one for one, _ in given) > 1:
            raise InputError(f"{public(address)} has the parameter {name!r} twice; give one.")
    ours = {name: value for name, value in given if name in _OURS}
    theirs = urlencode([(n, v) for n, v in given if n not in _OURS], quote_via=quote)
    return f"{login}{rest}?{theirs}" if theirs else f"{login}{rest}", ours


def _parts(address: str) -> tuple[str, str, str]:
    """Split an address into scheme and login, server, and parameters, as the driver does.

    The login ends at the first @, unless there is a / before. Everything else may be in a password.
    """
    address = _with_known_scheme(address)
    found = re.match(r"[^:/?]*://(?:[^/@]*@)?", address)
    login = found[0] if found else ""
    rest, _, after = address[len(login) :].partition("?")
    return login, rest, after


def _with_known_scheme(address: str) -> str:
    """Write the scheme of an address as the driver knows it, in lower case."""
    scheme, colon, rest = address.partition(":")
    return f"{scheme.lower()}{colon}{rest}"


def table_address(place: str, table: str, but: Collection[str] = ("table", "schema")) -> str:
    """Return the address of a table of a place, without some parameters of the place.

    >>> table_address("postgresql://ann@host/db?schema=archive&sslmode=require", "archive.people")
    'postgresql://ann@host/db?sslmode=require&table=archive.people'
    """
    login, rest, after = _parts(place)
    kept = [p for p in after.split("&") if p and p.partition("=")[0] not in but]
    named = f"table={quote(table, safe='.')}"
    return f"{login}{rest}?{'&'.join([*kept, named])}"


def with_login(address: str, place: str) -> str:
    """Return an address with the password of a place, if both are of one server, user and database.

    >>> with_login(
    ...     "postgresql://ann@host/db?table=people", "postgresql://bob:x@host/db?schema=archive"
    ... )
    'postgresql://ann@host/db?table=people'
    """
    server, ours = split(address)
    theirs = split(place)[0]
    if without_password(theirs) != server:
        return address
    login, rest, after = _parts(theirs)
    named = urlencode(ours, quote_via=quote, safe=".,")
    return f"{login}{rest}?{'&'.join(filter(None, [after, named]))}"


def beside(address: str, ending: str) -> str:
    """Return the address of the table whose name has an ending more.

    >>> beside("postgresql://ann@host/db?table=people&id=number&sslmode=require", "_ledger")
    'postgresql://ann@host/db?sslmode=require&table=people_ledger'
    >>> beside('postgresql://ann@host/db?table="My schema"."a.b"', "_ledger")
    'postgresql://ann@host/db?table=%22My%20schema%22.%22a.b_ledger%22'
    """
    name = split(address)[1]["table"]
    named = f'{name[:-1]}{ending}"' if name.endswith('"') else f"{name}{ending}"
    return table_address(address, named, _OURS)


def possible_names(name: str) -> list[tuple[str, str]]:
    """List what the name of a table may mean: a schema, which may be empty, and a name.

    Names are written as they are, and may have points in them. Each part may also be quoted as in SQL.

    >>> possible_names("archive.people"), possible_names('"My own"."a.b"')[-1]
    ([('', 'archive.people'), ('archive', 'people')], ('My own', 'a.b'))
    >>> possible_names('public."People"')[-1]
    ('public', 'People')
    """
    points = [i for i, sign in enumerate(name) if sign == "."]
    found = [("", name), *((name[:i], name[i + 1 :]) for i in points)]
    quoted = _quoted_name(name)
    return found if quoted is None else [*found, quoted]


def name_of_new(name: str) -> tuple[str, str]:
    """Return the schema, which may be empty, and the name of a table that is to be made.

    >>> name_of_new("archive.people"), name_of_new('"a ""b"" c"')
    (('archive', 'people'), ('', 'a "b" c'))
    """
    if '"' in name and _quoted_name(name) is None:
        raise InputError(
            f"{name} is no name of a new table, since a part of it is only partly quoted; quote the whole part "
            'as in SQL, as in public."People", and write a quotation mark in it twice.'
        )
    return possible_names(name)[-1]


def _quoted_name(name: str) -> tuple[str, str] | None:
    """Return schema and name if one of them is quoted, and nothing is quoted in part."""
    part = r'"(?:[^"]|"")+"|[^"]+'
    found = re.fullmatch(rf"(?:({part})\.)?({part})", name) if '"' in name else None
    if found is None:
        return None
    schema, table = (
        text[1:-1].replace('""', '"') if text.startswith('"') else text
        for text in found.groups(default="")
    )
    return schema, table


def public(address: str) -> str:
    """Return an address as it is shown."""
    return Source(name=address, kind="postgres", address=address).name
