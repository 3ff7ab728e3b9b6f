"""Tables of PostgreSQL that new ones replace: whether they can be replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from equipoise.engines.postgres._dialect import DIALECT
from equipoise.engines.postgres._session import Session
from equipoise.engines.postgres.addresses import name_of_new
from equipoise.engines.sources import Source
from equipoise.errors import InputError
from equipoise.plain import in_words

LENGTH = 63
"""Maximum length of a name in PostgreSQL."""

_STANDING = (
    "SELECT c.oid, n.nspname, c.relname, c.relkind::text, coalesce(obj_description(c.oid, 'pg_class'), ''), "
    "(SELECT min(inhparent::regclass::text) FROM pg_inherits WHERE inhrelid = c.oid), "
    "pg_has_role(c.relowner, 'USAGE'), row_security_active(c.oid) "
    "FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s"
)


# What the server refuses to drop a table for, or what would silently go with it.
_BOUND = """
    WITH asked AS (SELECT %s::oid AS oid)
    SELECT 'the foreign key ' || f.conname || ' of ' || f.conrelid::regclass FROM asked AS t
    JOIN pg_constraint AS f ON f.confrelid = t.oid WHERE f.contype = 'f' AND f.conrelid <> t.oid
    UNION
    SELECT 'the view ' || r.ev_class::regclass FROM asked AS t JOIN pg_depend AS d ON d.refobjid = t.oid
    AND d.refclassid = 'pg_class'::regclass AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite AS r ON r.oid = d.objid WHERE r.ev_class <> t.oid
    UNION
    SELECT 'the table ' || i.inhrelid::regclass || ', which inherits from it,' FROM asked AS t
    JOIN pg_inherits AS i ON i.inhparent = t.oid
    UNION
    SELECT 'the rule ' || r.rulename FROM asked AS t JOIN pg_rewrite AS r ON r.ev_class = t.oid
    UNION
    SELECT 'its place in the publication ' || p.pubname FROM asked AS t JOIN pg_publication_rel AS r ON r.prrelid = t.oid
    JOIN pg_publication AS p ON p.oid = r.prpubid
    UNION
    SELECT CASE WHEN c.relreplident <> 'd' THEN 'its replica identity' WHEN c.reltablespace <> 0 THEN 'its tablespace'
    ELSE 'its type' END FROM asked AS t JOIN pg_class AS c ON c.oid = t.oid
    WHERE c.relreplident <> 'd' OR c.reltablespace <> 0 OR c.reloftype <> 0
    ORDER BY 1
"""


class Standing(NamedTuple):
    """A table that has the name of a new one."""

    number: int
    schema: str
    name: str
    kind: str
    comment: str
    whole: str | None
    """The table that it is a part of, if there is one."""

    is_owned: bool
    is_secured: bool
    """Whether row-level security may hide rows of it from the user."""

    @property
    def text(self) -> str:
        """The name in SQL."""
        return name_text(self.schema, self.name)


def name_text(schema: str, name: str) -> str:
    """Write the name of a table in SQL."""
    return f"{DIALECT.identifier(schema)}.{DIALECT.identifier(name)}"


def split_name(session: Session, name: str) -> tuple[str, str]:
    """Split the name of a table that need not exist into its schema and its own name."""
    schema, table = name_of_new(name)
    if schema:
        return schema, table
    ((current,),) = session.execute("SELECT current_schema()")
    if current is None:
        raise InputError(
            f"the search_path of this connection has no schema for a new table {name!r}; name one, as in "
            f"table=public.{name}."
        )
    return current, table


def find_standing(session: Session, target: Source) -> Standing | None:
    """Find the table that has the name of a new one."""
    found = session.lines(_STANDING, *split_name(session, target.table or ""))
    return Standing(*found[0]) if found else None


def require_free(session: Session, target: Source, *, only: str) -> Standing | None:
    """Refuse a name that cannot be given to a new table; return the table that has it."""
    schema, table = split_name(session, target.table or "")
    known = session.lines(
        "SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = %s", schema
    )
    if not known:
        raise InputError(f"{target.name} has no schema {schema!r}; create it first.")
    if session.execute("SHOW transaction_read_only") == [("on",)]:
        raise InputError(
            f"{target.name} cannot be made, because this database only lets you read (transaction_read_only); write "
            "to another place."
        )
    if known != [(True,)]:
        raise InputError(
            f"{target.name} cannot be made: you have no right to make tables in the schema {schema!r}; ask its owner "
            "for it, or write to another schema."
        )
    if len(table.encode()) > LENGTH:
        raise InputError(
            f"{table!r} is longer than the {LENGTH} bytes that a name has in PostgreSQL; choose a shorter name."
        )
    standing = find_standing(session, target)
    if standing is not None:
        _require_replaceable(standing, target, only)
        refuse_loss(standing, [what for (what,) in session.lines(_BOUND, standing.number)])
    return standing


def _require_replaceable(standing: Standing, target: Source, only: str) -> None:
    name = f"{standing.schema}.{standing.name}"
    if standing.kind != "r":
        raise InputError(
            f"{name} exists and is not a plain table; write to a table of another name."
        )
    if standing.whole is not None:  # a partition, or a table that inherits from another
        raise InputError(
            f"{name} is a part of {standing.whole}, which would lose its rows; write to a table of another name."
        )
    if not standing.comment.startswith(only):
        raise InputError(
            f"{target.name} exists and its comment does not begin with {only!r}, so it is not replaced; "
            "write to a table of another name."
        )
    if standing.is_secured:
        raise InputError(
            f"{name} has row-level security, and rows of it that you cannot see would be lost; write to a table "
            "of another name, or as a user who sees all rows."
        )
    if not standing.is_owned:
        raise InputError(
            f"{name} exists, and only its owner may replace it; write to a table of another name."
        )


def refuse_loss(standing: Standing, lost: Sequence[str]) -> None:
    """Refuse to replace a table if something would be lost with it."""
    if lost:
        raise InputError(
            f"{standing.schema}.{standing.name} is not replaced, because {in_words(lost)} would be lost or broken; "
            "write to a table of another name."
        )


def lock_standing(session: Session, target: Source, locked: str) -> Standing | None:
    """Return the table that will be replaced, which nobody else can change until the transaction ends.

    ``locked`` is the name that was locked when the transaction began, or empty. A table that got
    the name since, or in place of the one that this transaction sees, is refused.
    """
    standing = require_free(session, target, only="")
    text = name_text(*split_name(session, target.table or ""))
    # The server tells what has the name now, which the transaction need not see.
    ((now,),) = session.lines("SELECT to_regclass(%s)::oid", text)
    if now != (standing and standing.number) or bool(locked) != (now is not None):
        raise name_taken(target)
    return standing


def name_taken(target: Source) -> InputError:
    """Return the error that somebody else made, replaced or dropped a table in the meantime."""
    return InputError(
        f"somebody else has made or replaced {target.name} in the meantime; nothing was written. Try again."
    )
