"""What belongs to a table of PostgreSQL beside its columns, constraints and rows, and how a copy keeps it."""

from __future__ import annotations

from typing import NamedTuple

from equipoise.engines.postgres._dialect import DIALECT
from equipoise.engines.postgres._session import Session
from equipoise.engines.postgres._standing import Standing, refuse_loss

# Of a key to a table with partitions, the server has further ones to each of these by itself.
_FOREIGN_KEYS = (
    "SELECT c.conname, pg_get_constraintdef(c.oid), "
    "CASE WHEN c.confrelid = c.conrelid THEN c.confrelid::regclass::text END FROM pg_constraint AS c "
    "WHERE c.conrelid = %s::regclass AND c.contype = 'f' AND NOT EXISTS (SELECT FROM pg_constraint AS p "
    "WHERE p.oid = c.conparentid AND p.conrelid = c.conrelid) ORDER BY 1"
)
_GRANTS = (
    "SELECT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END, "
    "g.privilege_type, g.is_grantable, '' FROM pg_class AS c, "
    "aclexplode(coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's'::\"char\" ELSE 'r' END, c.relowner))) AS g "
    "WHERE c.oid = %s::regclass UNION "
    "SELECT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END, "
    "g.privilege_type, g.is_grantable, ' (' || quote_ident(a.attname) || ')' "
    "FROM pg_attribute AS a, aclexplode(a.attacl) AS g WHERE a.attrelid = %s::regclass AND NOT a.attisdropped"
)
_OWNER = (
    "SELECT format('ALTER TABLE %%s OWNER TO %%I', %s::text, pg_get_userbyid(relowner)) "
    "FROM pg_class WHERE oid = %s AND pg_get_userbyid(relowner) <> current_user"
)
_MORE = """
    SELECT 1, format('ALTER TABLE %%s SET (%%s)', t.name, array_to_string(c.reloptions, ', '))
    FROM asked AS t JOIN pg_class AS c ON c.oid = t.oid WHERE c.reloptions IS NOT NULL
    UNION ALL
    SELECT 2, format('CREATE POLICY %%I ON %%s AS %%s FOR %%s TO %%s', p.polname, t.name,
        CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
        CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE'
            ELSE 'ALL' END,
        (SELECT string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r)) END, ', ')
            FROM unnest(p.polroles) AS r))
        || coalesce(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', '')
        || coalesce(' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '')
    FROM asked AS t JOIN pg_policy AS p ON p.polrelid = t.oid
    UNION ALL
    SELECT 3, format('COMMENT ON POLICY %%I ON %%s IS %%L', p.polname, t.name, d.description)
    FROM asked AS t JOIN pg_policy AS p ON p.polrelid = t.oid
    JOIN pg_description AS d ON d.objoid = p.oid AND d.classoid = 'pg_policy'::regclass
    UNION ALL
    SELECT 4, pg_get_triggerdef(g.oid) FROM asked AS t JOIN pg_trigger AS g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal
    UNION ALL
    SELECT 5, format('ALTER TABLE %%s %%s TRIGGER %%I', t.name,
        CASE g.tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, g.tgname)
    FROM asked AS t JOIN pg_trigger AS g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal AND g.tgenabled <> 'O'
    UNION ALL
    SELECT 6, format('COMMENT ON TRIGGER %%I ON %%s IS %%L', g.tgname, t.name, d.description)
    FROM asked AS t JOIN pg_trigger AS g ON g.tgrelid = t.oid
    JOIN pg_description AS d ON d.objoid = g.oid AND d.classoid = 'pg_trigger'::regclass
    UNION ALL
    SELECT 7, format('ALTER TABLE %%s ENABLE ROW LEVEL SECURITY', t.name)
    FROM asked AS t JOIN pg_class AS c ON c.oid = t.oid WHERE c.relrowsecurity
    UNION ALL
    SELECT 8, format('ALTER TABLE %%s FORCE ROW LEVEL SECURITY', t.name)
    FROM asked AS t JOIN pg_class AS c ON c.oid = t.oid WHERE c.relforcerowsecurity
    ORDER BY 1
"""
_OWN = """
    SELECT 'row-level security' FROM asked AS t JOIN pg_class AS c ON c.oid = t.oid WHERE c.relrowsecurity
    UNION ALL
    SELECT 'the policy ' || p.polname FROM asked AS t JOIN pg_policy AS p ON p.polrelid = t.oid
    UNION ALL
    SELECT 'the trigger ' || g.tgname FROM asked AS t JOIN pg_trigger AS g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal
    UNION ALL
    SELECT 'grants on the column ' || a.attname FROM asked AS t JOIN pg_attribute AS a ON a.attrelid = t.oid
    WHERE a.attacl IS NOT NULL AND NOT a.attisdropped
"""
_INDEXES = (
    "SELECT c.relname, concat_ws(' ', i.indisunique, i.indisprimary, substring(pg_get_indexdef(c.oid) FROM ' USING .*')) "
    "FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE i.indrelid = %s::regclass ORDER BY c.oid"
)
# What is said of them between their own name and that of the table.
_STATISTICS = (
    "SELECT s.stxname, substr(left(said, -length(s.stxrelid::regclass::text)), length(format('%%I.%%I', n.nspname, s.stxname)) + 19) "
    "FROM pg_statistic_ext AS s JOIN pg_namespace AS n ON n.oid = s.stxnamespace, pg_get_statisticsobjdef(s.oid) AS said "
    "WHERE s.stxrelid = %s::regclass ORDER BY s.oid"
)


class Grant(NamedTuple):
    """A right that somebody has."""

    who: str
    right: str
    is_grantable: bool
    column: str
    """The column in brackets if it is a right to one, or empty."""


class Belongings(NamedTuple):
    """What a new table takes over from the one that it replaces."""

    statements: tuple[str, ...]
    grants: frozenset[Grant]
    comment: str
    indexes: tuple[tuple[str, str], ...]
    """The name of each index and each object of statistics, and its definition without the name."""

    sequences: dict[str, tuple[str, frozenset[Grant]]]
    """By column that a sequence numbers, the own name of that, and the rights to it."""


def add_foreign_keys(session: Session, like: str, new: str) -> None:
    """Give a new table the foreign keys of another one; those of that to itself are to the new one itself."""
    for name, definition, itself in session.lines(_FOREIGN_KEYS, like):
        text = definition
        if itself is not None:
            text = definition.replace(f" REFERENCES {itself}(", f" REFERENCES {new}(", 1)
        session.run(f"ALTER TABLE {new} ADD CONSTRAINT {DIALECT.identifier(name)} {text}")


def take_over(
    session: Session, standing: Standing, counters: dict[str, str], *, is_copy: bool
) -> Belongings:
    """Collect what a new table takes over from a standing one, which it may be a copy of.

    A table that is made of another one keeps only the owner and the rights; if there is more, it is
    refused. ``counters`` are the sequences that number columns of a copied table.
    """
    asked = "WITH asked AS (SELECT %s::oid AS oid, %s::text AS name) "
    if not is_copy:
        own = [what for (what,) in session.lines(asked + _OWN, standing.number, standing.text)]
        refuse_loss(standing, own)
    statements = [line for (line,) in session.lines(_OWNER, standing.text, standing.number)]
    if is_copy:
        found = session.lines(asked + _MORE, standing.number, standing.text)
        statements += [line for _, line in found]
    return Belongings(
        tuple(statements),
        _grants(session, standing.text),
        standing.comment if is_copy else "",
        tuple(_named(session, standing.text)) if is_copy else (),
        {
            column: (_own_name(session, sequence), _grants(session, sequence))
            for column, sequence in counters.items()
            if is_copy
        },
    )


def hand_over(session: Session, table: str, kept: Belongings) -> None:
    """Give a table that is in place what it takes over."""
    for statement in kept.statements:
        session.execute(statement)
    _grant(session, "TABLE", table, kept.grants)
    for column, (_, grants) in kept.sequences.items():
        ((sequence,),) = session.lines("SELECT pg_get_serial_sequence(%s, %s)", table, column)
        _grant(session, "SEQUENCE", sequence, grants)


def former_names(session: Session, table: str, kept: Belongings) -> dict[str, str]:
    """Return the names that indexes, statistics and sequences of a new table had in the one that it replaces."""
    names = {}
    former = list(kept.indexes)
    for name, definition in _named(session, table):
        same = next((line for line in former if line[1] == definition), None)
        if same is not None:
            former.remove(same)
            names[name] = same[0]
    for column, (name, _) in kept.sequences.items():
        ((sequence,),) = session.lines("SELECT pg_get_serial_sequence(%s, %s)", table, column)
        names[_own_name(session, sequence)] = name
    return names


def _named(session: Session, table: str) -> list[tuple[str, str]]:
    """List the indexes and the statistics of a table, and what each of them is but for its name."""
    found = (session.lines(query, table) for query in (_INDEXES, _STATISTICS))
    return [(name, definition) for lines in found for name, definition in lines]


def _own_name(session: Session, relation: str) -> str:
    ((name,),) = session.lines("SELECT relname FROM pg_class WHERE oid = %s::regclass", relation)
    return str(name)


def _grants(session: Session, relation: str) -> frozenset[Grant]:
    return frozenset(Grant(*line) for line in session.lines(_GRANTS, relation, relation))


def _grant(session: Session, kind: str, relation: str, grants: frozenset[Grant]) -> None:
    """Give a relation exactly these rights, whatever new ones have by default."""
    given = _grants(session, relation)
    if given == grants:
        return
    for who in sorted({grant.who for grant in given}):
        session.execute(f"REVOKE ALL ON {kind} {relation} FROM {who}")
    for grant in sorted(grants):
        further = " WITH GRANT OPTION" if grant.is_grantable else ""
        session.execute(
            f"GRANT {grant.right}{grant.column} ON {kind} {relation} TO {grant.who}{further}"
        )
