"""Bounds of times that are inside merged batches, of which only the sum is kept."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from equipoise.errors import InputError
from equipoise.monitoring.moments import from_number, shown, to_number
from equipoise.monitoring.store.records import Batch

_HOUR, _DAY = 3_600_000_000, 86_400_000_000


def require_uncut(
    batches: Sequence[Batch], bound: datetime.datetime, zone: datetime.tzinfo
) -> None:
    """Refuse a bound, from which or before which batches are used, that is inside a merged one."""
    number = to_number(bound)
    if _cut(batches, number) is None:
        return
    first, last = _around(batches, number)
    later = min((t for b in batches if (t := to_number(b.starts)) > last), default=None)
    other = f"a time after {_shown(last, zone)}" if later is None else _shown(later, zone)
    raise InputError(
        f"{shown(bound, zone)} is inside merged batches, which cover {_shown(first, zone)} to "
        f"{_shown(last, zone)}; use {_shown(first, zone)} or {other}."
    )


def require_window(
    batches: Sequence[Batch], span: datetime.timedelta, zone: datetime.tzinfo
) -> None:
    """Refuse a window that begins inside a merged batch, and name the next one that does not."""
    end = max(to_number(b.ends) for b in batches)
    # A window has the batches after its begin, as a time has those from it on.
    begin = end - span // datetime.timedelta(microseconds=1) + 1
    if _cut(batches, begin) is None:
        return
    first, last = _around(batches, begin)
    raise InputError(
        f"the window begins at {_shown(begin - 1, zone)}, inside merged batches, which cover "
        f"{_shown(first, zone)} to {_shown(last, zone)}; the next possible window is {_next(batches, end, first)}."
    )


def _next(batches: Sequence[Batch], end: int, first: int) -> str:
    """The shortest window of whole days, or of hours if none of days will do, with all from a time on."""
    while True:
        for unit, letter in ((_DAY, "d"), (_HOUR, "h")):
            number = (end - first) // unit + 1
            begin = end - number * unit + 1
            if _cut(batches, begin) is None:
                return f"{number}{letter}"
        first, _ = _around(batches, begin)


def _cut(batches: Sequence[Batch], bound: int) -> Batch | None:
    """A merged batch that has rows before a bound, and others from it on."""
    return next((b for b in batches if to_number(b.starts) < bound <= to_number(b.ends)), None)


def _around(batches: Sequence[Batch], bound: int) -> tuple[int, int]:
    """The first and the last time of the merged batches around a bound, and of those that overlap with them."""
    first, last = bound, bound - 1
    while True:
        cut = [b for b in batches if to_number(b.starts) < first <= to_number(b.ends)]
        cut += [b for b in batches if to_number(b.starts) <= last < to_number(b.ends)]
        if not cut:
            return first, last
        first = min(first, *(to_number(b.starts) for b in cut))
        last = max(last, *(to_number(b.ends) for b in cut))


def _shown(number: int, zone: datetime.tzinfo) -> str:
    return shown(from_number(number), zone)
