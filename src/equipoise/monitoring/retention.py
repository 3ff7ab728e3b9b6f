"""Older batches merged by week or month: totals stay the same, and so does the evidence."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.measures.rules import rule_from_dict
from equipoise.monitoring.check import Watched
from equipoise.monitoring.examination import kept_times, run_tests, tests_begin
from equipoise.monitoring.kept import dump
from equipoise.monitoring.moments import floor
from equipoise.monitoring.series import Series
from equipoise.monitoring.store.merges import KeptPolicy, evidence_of, merge_batches, policies_of
from equipoise.monitoring.store.records import Batch
from equipoise.monitoring.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray


def merge_older(
    store: Store,
    name: str,
    *,
    before: datetime.datetime,
    every: str,
    zone: datetime.tzinfo,
) -> tuple[int, int]:
    """Merge the batches before a time by hour, day, week or month; return how many, into how many.

    Batches are tested in the order of their arrival, so only those are merged that are older than
    the time together with all that arrived before them.
    """
    series = Series.read(store, name)
    end = next((i for i, b in enumerate(series.batches) if b.ends >= before), len(series))
    older = series.where(np.arange(len(series)) < end)
    merged = _parts(older, every, zone)
    if not merged:
        return 0, 0
    with store.reading():
        kept, policies = evidence_of(store, series.stream), policies_of(store, series.stream)
    evidence = _evidence(older, kept, policies)
    seen = [batch.arrival for batch in older.batches]
    merge_batches(store, series.stream, merged, evidence, seen)
    return sum(len(batches) for batches, _ in merged), len(merged)


def _evidence(
    older: Series,
    kept: Mapping[str, tuple[int, bytes | None]],
    policies: Mapping[str, dict[str, Any]],
) -> dict[str, KeptPolicy]:
    """The evidence of all policies since the tests began, by key, with what is kept already."""
    found: dict[str, KeptPolicy] = {}
    place, begin = older.batches[-1].place, tests_begin(older)
    for told in policies.values():
        watched = watched_from(told)
        key = watched.key(begin)
        merged_to, before = kept.get(key, (0, None))
        # What is merged again was tested before, and what was acknowledged is not tested.
        if merged_to < place and begin < place:
            tested = run_tests(older, watched, kept)
            left = tested.watch.kept(kept_times(tested))
            merged_to, before = place, dump(left, tested.watch.comparisons, watched.alpha)
        found[key] = KeptPolicy(told, merged_to, before)
    return found


def _parts(
    older: Series, every: str, zone: datetime.tzinfo
) -> list[tuple[Sequence[Batch], NDArray[np.int64]]]:
    """Batches of the same time and tags, and between the same acknowledgements, with the sums of their cells.

    A single one is among them if it is not yet marked as merged, since it cannot be corrected any more.
    """
    parts: dict[tuple[object, ...], list[int]] = {}
    ends = [event.place for event in older.events if event.kind == "acknowledged"]
    for i, batch in enumerate(older.batches):
        stretch = sum(end < batch.place for end in ends)
        key = stretch, floor(batch.starts, every, zone), tuple(sorted(batch.tags.items()))
        parts.setdefault(key, []).append(i)
    return [
        ([older.batches[i] for i in places], older.rows[:, places].sum(axis=1))
        for places in parts.values()
        if len(places) > 1 or older.batches[places[0]].state == "current"
    ]


def watched_from(told: dict[str, object]) -> Watched:
    """Read what was watched, as a store keeps it."""
    given = dict(told)
    rules = given.pop("rules")
    assert isinstance(rules, list)  # noqa: S101  written by to_dict
    return Watched(rules=tuple(rule_from_dict(rule, 1) for rule in rules), **given)  # type: ignore[arg-type]
