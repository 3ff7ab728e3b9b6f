"""A batch that is to be added, what became of it, and what is told of it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from equipoise.counts import Counts
from equipoise.monitoring.moments import shown
from equipoise.monitoring.store.records import Batch, batch_id

Outcome: TypeAlias = Literal["added", "there", "corrected"]
_AHEAD = datetime.timedelta(days=1)
"""How far the time of a batch may be after that of the clock without a remark."""


@dataclass(frozen=True)
class Entry:
    """A batch to be added."""

    counts: Counts
    at: datetime.datetime
    id: str | None
    given_tags: Mapping[str, str] | None = None
    """Its tags; None if none were given, so that a correction keeps the old ones."""
    is_now: bool = False
    """Whether the time is that of the clock."""
    by_time: bool = False
    """Whether it is known by its time and tags, since it is one of the periods of a table."""
    table: str | None = None
    """What its id begins with, if it is one of the periods of a table with an id."""
    remarks: tuple[str, ...] = ()
    """What differs in its columns from other batches, in sentences."""

    @property
    def tags(self) -> Mapping[str, str]:
        """Its tags."""
        return self.given_tags or {}

    @property
    def own_id(self) -> str:
        """Its id, as given or made of its content."""
        return self.id or batch_id(self.counts, self.at, self.tags)

    def correcting(self, there: Batch) -> Entry:
        """The same batch with the time and the tags of the one that it corrects, if none were given."""
        tags = there.tags if self.given_tags is None else self.given_tags
        at = there.starts if self.is_now else self.at
        return replace(self, at=at, given_tags=tags, is_now=False)

    def is_as(self, there: Batch) -> bool:
        """Whether a batch has the same counts, time and tags."""
        same = self.counts.fingerprint == there.fingerprint
        return same and self.at == there.starts and dict(self.tags) == dict(there.tags)

    def ahead(self, now: datetime.datetime) -> list[str]:
        """What is told of a time in the future."""
        if self.at <= now + _AHEAD:
            return []
        return [
            (
                f"The time of the batch {self.own_id}, {self.at:%Y-%m-%d %H:%M}, is more than one day ahead of the "
                f"clock of this machine ({now:%Y-%m-%d %H:%M} UTC)."
            )
        ]


@dataclass(frozen=True)
class Receipt:
    """What became of a batch that was to be added."""

    outcome: Outcome
    batch: Batch
    remarks: tuple[str, ...] = ()


def correction(batch: Batch, before: Batch) -> str:
    """Tell how a batch differs from the version before."""
    if before.state == "withdrawn":
        again = "was added again"
        return f"The batch {batch.id} {again}: {before.n:,} rows before, {batch.n:,} after."
    said = []
    if batch.fingerprint != before.fingerprint:
        said.append(f"{before.n:,} rows before, {batch.n:,} after")
    if batch.starts != before.starts:
        said.append(f"its time was {shown(before.starts)} and is {shown(batch.starts)} (UTC)")
    if dict(batch.tags) != dict(before.tags):
        said.append(f"its tags were {listed(before.tags)} and are {listed(batch.tags)}")
    return f"The batch {batch.id} was corrected: {'; '.join(said)}."


def listed(tags: Mapping[str, str]) -> str:
    """Write tags for a sentence."""
    return ", ".join(f"{name}={value}" for name, value in tags.items()) or "none"
