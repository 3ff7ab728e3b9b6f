"""The tables of a store, and how a store of an older version becomes one of this version."""

from __future__ import annotations

APPLICATION = 0x45514253
"""Marks a SQLite file as a store."""

_FIRST = (
    """CREATE TABLE equipoise_stream (
        stream {serial},
        name TEXT NOT NULL,
        folded TEXT NOT NULL UNIQUE,
        definition TEXT NOT NULL,
        created BIGINT NOT NULL
    )""",
    # The cells of a stream are numbered, so that a batch is pairs of numbers.
    """CREATE TABLE equipoise_cell (
        stream BIGINT NOT NULL,
        cell BIGINT NOT NULL,
        cell_values TEXT NOT NULL,
        PRIMARY KEY (stream, cell)
    )""",
    # A corrected batch keeps the place of the first version, whatever the order of arrival.
    """CREATE TABLE equipoise_batch (
        arrival {serial},
        stream BIGINT NOT NULL,
        place BIGINT NOT NULL,
        id TEXT NOT NULL,
        starts BIGINT NOT NULL,
        ends BIGINT NOT NULL,
        added BIGINT NOT NULL,
        state TEXT NOT NULL,
        tags TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        n BIGINT NOT NULL,
        merged BIGINT NOT NULL,
        about TEXT NOT NULL,
        cells {blob} NOT NULL
    )""",
    "CREATE UNIQUE INDEX equipoise_batch_id ON equipoise_batch (stream, id) WHERE state = 'current'",
    "CREATE INDEX equipoise_batch_place ON equipoise_batch (stream, state, place)",
    "CREATE INDEX equipoise_batch_versions ON equipoise_batch (stream, id, arrival)",
    "CREATE INDEX equipoise_batch_time ON equipoise_batch (stream, starts)",
    # Batches that were merged are still known, so that adding one again changes nothing.
    """CREATE TABLE equipoise_former (
        stream BIGINT NOT NULL,
        id TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        place BIGINT NOT NULL,
        starts BIGINT NOT NULL,
        tags TEXT NOT NULL,
        PRIMARY KEY (stream, id)
    )""",
    "CREATE INDEX equipoise_former_time ON equipoise_former (stream, starts)",
    """CREATE TABLE equipoise_event (
        event {serial},
        stream BIGINT NOT NULL,
        place BIGINT NOT NULL,
        noted BIGINT NOT NULL,
        kind TEXT NOT NULL,
        about TEXT NOT NULL
    )""",
    "CREATE INDEX equipoise_event_stream ON equipoise_event (stream, event)",
    # Policies that a stream was checked against, and the evidence that merged batches left.
    """CREATE TABLE equipoise_policy (
        stream BIGINT NOT NULL,
        policy TEXT NOT NULL,
        rules TEXT NOT NULL,
        place BIGINT NOT NULL,
        evidence {blob},
        PRIMARY KEY (stream, policy)
    )""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST,)
"""The statements that lead from each version to the next; version 0 is an empty database."""

KINDS = {
    "sqlite": {"serial": "INTEGER PRIMARY KEY AUTOINCREMENT", "blob": "BLOB"},
    "postgres": {"serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "blob": "BYTEA"},
}
"""What databases write differently."""


def statements(kind: str, version: int) -> list[str]:
    """List the statements that bring a store of a version to the present one."""
    later = [statement for step in MIGRATIONS[version:] for statement in step]
    return [statement.format(**KINDS[kind]) for statement in later]


def present() -> int:
    """The version of stores that this program writes."""
    return len(MIGRATIONS)


def too_old(store: str) -> str:
    """Say that a store must be brought to the present version before it can only be read."""
    return (
        f"{store} was written by an older version of Equipoise. To update it, run equipoise monitor list once as a "
        "user with write access. Nothing was changed."
    )
