"""Which batch an entry is a version of: that with its id, or that with its time and tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from equipoise.errors import InputError, did_you_mean
from equipoise.monitoring.moments import to_number
from equipoise.monitoring.store.entries import Entry, listed
from equipoise.monitoring.store.records import Batch, Stream, read_plain, tags_text

if TYPE_CHECKING:
    from equipoise.monitoring.store.database import StoreDatabase

_PERIOD = re.compile(r" \d{4}-\d\d-\d\d( \d\d:\d\d([+-]\d{4})?)?$")
"""What follows the name of a table in the ids of its periods."""
_NAMED = 5
"""Maximum number of batches that an error names."""


@dataclass(frozen=True)
class _Version:
    """The newest version of a batch of some time; a batch that was merged with others is a former one."""

    id: str
    fingerprint: str
    state: str
    tags: str

    @property
    def named(self) -> str:
        """Its id, and its tags if it has any."""
        tags = listed(read_plain(self.tags))
        return repr(self.id) if self.tags == "{}" else f"{self.id!r} ({tags})"


@dataclass(frozen=True)
class Recognition:
    """Finds the batches of a stream that entries are versions of."""

    database: StoreDatabase
    stream: Stream
    newest: Callable[[Stream, str], Batch | None]

    def find(self, entry: Entry, *, to_replace: bool) -> Entry:
        """The entry with the id of the batch that it is a version of, and what it keeps of it."""
        if entry.id is not None:
            return self._of_its_id(entry, entry.id) if to_replace else entry
        if not entry.by_time and not to_replace:
            return entry
        if entry.is_now:
            raise InputError("name the batch to replace with `id` or `at`. Nothing was changed.")
        return self._replaced(entry) if to_replace else self._of_its_time(entry)

    def _of_its_id(self, entry: Entry, id_: str) -> Entry:
        there = self.newest(self.stream, id_)
        if there is not None:
            return entry.correcting(there)
        ids = self._ids()
        # A part of a table may be of a new period, if others of the table are there.
        table = id_ if entry.table is None else entry.table
        begin = id_ if entry.table is None else f"{table} "
        if id_ in ids or (entry.table is not None and any(i.startswith(begin) for i in ids)):
            return entry
        near = ids if entry.table is None else [_PERIOD.sub("", known) for known in ids]
        what = f"batch {id_!r}" if entry.table is None else f"batches of a table {table!r}"
        raise InputError(
            f"{self.stream.name} has no {what} to replace; leave out `replace` to add it."
            f"{did_you_mean(table, near)} Nothing was changed."
        )

    def _ids(self) -> list[str]:
        """All ids, also those of batches that were merged."""
        lines = self.database.run(
            "SELECT id FROM equipoise_batch WHERE stream = ? AND state <> 'merged' "
            "UNION SELECT id FROM equipoise_former WHERE stream = ?",
            [self.stream.number] * 2,
        )
        return sorted(id_ for (id_,) in lines)

    def _versions(self, entry: Entry) -> list[_Version]:
        """The newest versions of all batches that have the time of an entry, in the order of arrival."""
        at = [self.stream.number, to_number(entry.at)]
        lines = self.database.run(
            "SELECT id, fingerprint, state, tags FROM equipoise_batch b WHERE stream = ? AND starts = ? "
            "AND state IN ('current', 'withdrawn') AND arrival = (SELECT max(arrival) "
            "FROM equipoise_batch v WHERE v.stream = b.stream AND v.id = b.id AND v.state <> 'merged') "
            "ORDER BY arrival",
            at,
        )
        former = self.database.run(
            "SELECT id, fingerprint, 'former', tags FROM equipoise_former WHERE stream = ? AND starts = ?",
            at,
        )
        return [_Version(*line) for line in (*lines, *former)]

    def _of_its_time(self, entry: Entry) -> Entry:
        """Give an entry the id of the batch that has its time and tags, if there is one."""
        tags = tags_text(entry.tags)
        found = [each for each in self._versions(entry) if each.tags == tags]
        same = _same(entry, found)
        if same is not None:
            return replace(entry, id=same.id)
        current = [each for each in found if each.state == "current"]
        if current:
            raise self._other_counts(entry, current)
        if not found:
            return entry
        former = [each for each in found if each.state == "former"]
        return replace(entry, id=(former or found)[-1].id)

    def _replaced(self, entry: Entry) -> Entry:
        """The entry as a version of the one batch of its time, with its tags if some were given."""
        versions, tags = self._versions(entry), tags_text(entry.tags)
        found = [each for each in versions if each.tags == tags]
        if not found and entry.given_tags is None:
            found = versions
        if not found:
            if entry.by_time:
                return entry
            raise self._none_there(entry, versions)
        same = _same(entry, found)
        if same is None:
            kinds = ("current", "former", "withdrawn")
            of_state = ([each for each in found if each.state == kind] for kind in kinds)
            fitting = next(each for each in of_state if each)
            if len(fitting) > 1 and fitting[0].state != "former":
                raise self._several(entry, fitting)
            same = fitting[0]
        return replace(entry, id=same.id, given_tags=read_plain(same.tags))

    def _other_counts(self, entry: Entry, found: Sequence[_Version]) -> InputError:
        return InputError(
            f"{self.stream.name} already has the batch {', '.join(repr(each.id) for each in found)} of "
            f"{_when(entry)} with other counts; correct it with `replace`, or give this table an `id`. "
            "Nothing was changed."
        )

    def _several(self, entry: Entry, found: Sequence[_Version]) -> InputError:
        tagged = any(each.tags != "{}" for each in found)
        have = "" if tagged else " without tags"
        hint = "give its tags, or correct" if tagged and entry.given_tags is None else "correct"
        return InputError(
            f"{self.stream.name} has {len(found):,} batches of {_when(entry)}{have}: {_named(found)}; "
            f"{hint} one by its `id`, or withdraw those that are wrong. Nothing was changed."
        )

    def _none_there(self, entry: Entry, others: Sequence[_Version]) -> InputError:
        tags = f" with the tags {listed(entry.tags)}" if entry.tags else ""
        there = f" There is {_named(others)}; correct it by its `id`." if others else ""
        return InputError(
            f"{self.stream.name} has no batch of {_when(entry)}{tags} to replace; leave out `replace` to add "
            f"it.{there} Nothing was changed."
        )


def _same(entry: Entry, found: Sequence[_Version]) -> _Version | None:
    """The batch that has the counts of an entry; one that was withdrawn only if none is current."""
    same = [each for each in found if each.fingerprint == entry.counts.fingerprint]
    used = [each for each in same if each.state != "withdrawn"]
    if used:
        return used[0]
    return same[-1] if same and all(each.state != "current" for each in found) else None


def _when(entry: Entry) -> str:
    return f"{entry.at:%Y-%m-%d %H:%M} UTC"


def _named(found: Sequence[_Version]) -> str:
    more = ", …" if len(found) > _NAMED else ""
    return ", ".join(each.named for each in found[:_NAMED]) + more
