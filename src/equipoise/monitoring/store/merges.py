"""Batches merged into one, and the evidence that is kept of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.monitoring.moments import to_number
from equipoise.monitoring.store.records import PAIR, Batch, Stream, plain_text, tags_text
from equipoise.monitoring.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray


def evidence_of(store: Store, stream: Stream) -> dict[str, tuple[int, bytes | None]]:
    """By policy, up to which place evidence was kept when batches were merged, and this."""
    lines = store.database.run(
        "SELECT policy, place, evidence FROM equipoise_policy WHERE stream = ?", [stream.number]
    )
    return {key: (place, None if kept is None else bytes(kept)) for key, place, kept in lines}


def policies_of(store: Store, stream: Stream) -> dict[str, dict[str, Any]]:
    """The policies that a stream was checked against, by key."""
    lines = store.database.run(
        "SELECT policy, rules FROM equipoise_policy WHERE stream = ?", [stream.number]
    )
    read = store.read_all(lambda key, rules: (key, json.loads(rules)), lines)
    return dict(read)


def remember_policy(store: Store, stream: Stream, policy: str, rules: Mapping[str, Any]) -> None:
    """Keep a policy, so that its evidence is kept when batches are merged."""
    with store.database.writing():
        store.database.run(
            "INSERT INTO equipoise_policy (stream, policy, rules, place) VALUES (?, ?, ?, 0) "
            "ON CONFLICT (stream, policy) DO NOTHING",
            [stream.number, policy, plain_text(rules)],
        )


@dataclass(frozen=True)
class KeptPolicy:
    """A policy that a stream was checked against, and the evidence up to a place."""

    rules: Mapping[str, Any]
    place: int
    evidence: bytes | None


def merge_batches(
    store: Store,
    stream: Stream,
    merged: Sequence[tuple[Sequence[Batch], NDArray[np.int64]]],
    evidence: Mapping[str, KeptPolicy],
    seen: Sequence[int],
) -> None:
    """Put one batch in the place of several, and keep the evidence that they leave.

    ``seen`` are the arrivals of all batches when the evidence was computed; if there are others
    by now among those that are tested before the last merged one, nothing is changed.
    """
    with store.database.writing():
        known = [b.arrival for b in store.batches(stream)]
        if known[: len(seen)] != list(seen):
            raise InputError(
                f"another program changed batches of {stream.name} during the merge. Nothing was merged. "
                "Try again."
            )
        for batches, rows in merged:
            _merge_one(store, stream, batches, rows)
        # Those of tests that were acknowledged are never asked for again.
        store.database.run("DELETE FROM equipoise_policy WHERE stream = ?", [stream.number])
        store.database.run_many(
            "INSERT INTO equipoise_policy (stream, policy, rules, place, evidence) VALUES (?, ?, ?, ?, ?)",
            [
                (stream.number, policy, plain_text(kept.rules), kept.place, kept.evidence)
                for policy, kept in evidence.items()
            ],
        )
        count = sum(len(batches) for batches, _ in merged)
        last = max(b.ends for batches, _ in merged for b in batches)
        were = "batches up to {} were" if count != 1 else "batch up to {} was"
        said = f"{count:,} {were.format(f'{last:%Y-%m-%d}')} merged into {len(merged):,}."
        store.note(stream, store.last_place(stream), "merged", {"text": said})


def _merge_one(
    store: Store, stream: Stream, batches: Sequence[Batch], rows: NDArray[np.int64]
) -> None:
    used = np.flatnonzero(rows)
    pairs = np.zeros(len(used), PAIR)
    pairs["cell"], pairs["rows"] = used, rows[used]
    place = max(batch.place for batch in batches)
    singles = [batch for batch in batches if batch.state == "current"]
    store.database.run_many(
        "INSERT INTO equipoise_former (stream, id, fingerprint, place, starts, tags) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                *(stream.number, b.id, b.fingerprint, place, to_number(b.starts)),
                tags_text(b.tags),
            )
            for b in singles
        ],
    )
    for batch in batches:
        store.database.run("DELETE FROM equipoise_batch WHERE arrival = ?", [batch.arrival])
        # Versions that were corrected or withdrawn go with it.
        store.database.run(
            "DELETE FROM equipoise_batch WHERE stream = ? AND place = ? AND state <> 'current' "
            "AND state <> 'merged'",
            [stream.number, batch.place],
        )
    starts, ends = min(b.starts for b in batches), max(b.ends for b in batches)
    store.database.run(
        "INSERT INTO equipoise_batch (stream, place, id, starts, ends, added, state, tags, "
        "fingerprint, n, merged, about, cells) VALUES (?, ?, ?, ?, ?, ?, 'merged', ?, '', ?, ?, ?, ?)",
        [
            *(stream.number, place, f"merged {starts:%Y-%m-%d} {place}"),
            *(to_number(starts), to_number(ends), to_number(max(b.added for b in batches))),
            *(plain_text(dict(batches[0].tags)), int(rows.sum()), sum(b.merged for b in batches)),
            *(plain_text(_about_all(batches)), pairs.tobytes()),
        ],
    )


def _about_all(batches: Sequence[Batch]) -> dict[str, Any]:
    """Missing values and dropped rows of several batches together."""
    absent: dict[str, int] = {}
    for batch in batches:
        for name, n in batch.about.get("missing_values", {}).items():
            absent[name] = absent.get(name, 0) + n
    told: dict[str, Any] = {"missing_values": absent} if absent else {}
    dropped = sum(batch.about.get("dropped", 0) for batch in batches)
    return {**told, "dropped": dropped} if dropped else told
