"""What a monitor that stays open never does: write elsewhere, or lose what it has acknowledged."""

from __future__ import annotations

import contextlib
from urllib.parse import quote

import psycopg
import pytest

import equipoise as eq
from equipoise.errors import EquipoiseError
from servers import new_database
from streams import day, fill


@pytest.mark.parametrize("schema", ["monitoring", 'Odd "name", \\ of\' $user'])
def test_a_lost_connection_is_made_again_in_the_same_schema(schema):
    with new_database() as address, psycopg.connect(address, autocommit=True) as owner:
        quoted = psycopg.sql.Identifier(schema)
        owner.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(quoted))
        with eq.Monitor(address) as public:
            fill(public, [day(1)])
        place = psycopg.conninfo.conninfo_to_dict(address)
        named = f"{address}{'&' if '?' in address else '?'}schema={quote(schema, safe='')}"
        with eq.Monitor(named) as monitor:
            fill(monitor, [day(), day(20)])
            _end_connections(owner, place["dbname"])
            with pytest.raises(EquipoiseError, match="connection to the database was lost"):
                monitor.batches("hires")
            assert len(monitor.batches("hires").batches) == 2
            monitor.add(day(25), name="hires", at="2026-02-01")
            assert len(monitor.batches("hires").batches) == 3
        with eq.Monitor(address) as public:
            assert public.counts("hires") == day(1)


def test_a_connection_that_is_lost_in_a_transaction_writes_nothing_of_it():
    from equipoise.engines.postgres.records import RecordConnection

    with new_database() as address, psycopg.connect(address, autocommit=True) as owner:
        owner.execute("CREATE TABLE kept (number INT)")
        name = psycopg.conninfo.conninfo_to_dict(address)["dbname"]
        records = RecordConnection(address)

        def work():
            with records.transaction(write=True):
                records.run("INSERT INTO kept VALUES (1)")
                _end_connections(owner, name)
                with contextlib.suppress(EquipoiseError):
                    records.run("INSERT INTO kept VALUES (2)")
                records.run("INSERT INTO kept VALUES (3)")

        with pytest.raises(EquipoiseError, match="lost in a transaction"):
            work()
        assert owner.execute("SELECT * FROM kept").fetchall() == []
        records.run("INSERT INTO kept VALUES (4)")
        assert owner.execute("SELECT * FROM kept").fetchall() == [(4,)]
        records.close()


def _end_connections(owner, database):
    ended = owner.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = %s AND pid <> pg_backend_pid()",
        [database],
    ).fetchall()
    assert ended
