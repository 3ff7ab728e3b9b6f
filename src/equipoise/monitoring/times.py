"""The time of each row: how engines read it, and how counts are split by it."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts import Counts
from equipoise.engines.base import Column
from equipoise.engines.column_types import Family, family
from equipoise.engines.sql import mark_of, without_na
from equipoise.errors import ColumnNotFound, InputError
from equipoise.monitoring.moments import floor, read_moment
from equipoise.values import MISSING

if TYPE_CHECKING:
    from equipoise.engines.base import Engine
    from equipoise.engines.dialect import Dialect
    from equipoise.engines.sources import Source

TIME = "equipoise_time"
"""Name of the attribute that the time of each row is counted as."""
_STRANGE = "equipoise_strange_time"
"""Name of the column with the values that are no times."""
_ABSENT, _NO_TIME = "equipoise: none", "equipoise: strange"
"""What is counted for rows without a time, and for values that are none."""

_DAY = "[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}"
_CLOCK = "(T| +)[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]*)?)?"
_OFFSET = "(Z| UTC|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"
_BLANKS = " \t\r\n"


@dataclass(frozen=True)
class TimeView:
    """A view of a table with one more column: a text that tells the time of each row.

    A time with an offset is an instant. It is written in UTC to the quarter of an hour, since in all zones
    hours begin with one, so that Python can tell its day in any zone. Another time is written as it is, to
    the day or to the hour. The text does not depend on the time zone of a session.
    """

    columns: Sequence[Column]
    column: str
    hours: bool
    na: Sequence[str] = ()

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        mark, fence = mark_of(self.columns), d.fence
        given, naive, instant, moment = (
            f"{word}{mark}" for word in ("given", "naive", "instant", "moment")
        )
        read, texts = self._read(d, given), self._texts(d, naive, instant)
        minute, minutes = f"substr({moment}, 15, 2)", ("45", "30", "15")
        quarter = " ".join(f"WHEN {minute} >= '{start}' THEN '{start}'" for start in minutes)
        utc = f"substr({moment}, 1, 14) || CASE {quarter} ELSE '00' END || '+00:00'"
        # Neither infinite, nor before our era, nor after the year 9999.
        usual = f"substr({moment}, 5, 1) = '-' AND {moment} NOT LIKE '%(BC)%'"
        key = (
            f"CASE WHEN {given} IS NULL THEN '{_ABSENT}' WHEN {moment} IS NULL OR NOT ({usual}) "
            f"THEN '{_NO_TIME}' WHEN {moment} LIKE '%+00' THEN {utc} "
            f"ELSE substr({moment}, 1, {13 if self.hours else 10}) END"
        )
        names = [c.name for c in self.columns if c.name not in (TIME, _STRANGE)]
        shown = ", ".join(map(d.identifier, (*names, *carried)))
        # In steps, so that no database repeats the long expressions.
        return (
            f"SELECT {shown}, {TIME}, CASE WHEN {TIME} = '{_NO_TIME}' THEN {given} END AS {_STRANGE} "
            f"FROM (SELECT {shown}, {given}, {key} AS {TIME} "
            f"FROM (SELECT *, coalesce({', '.join(texts)}) AS {moment} "
            f"FROM (SELECT *, {read[0]} AS {naive}, {read[1]} AS {instant} "
            f"FROM (SELECT *, {self._given(d)} AS {given} FROM input{fence}) AS g{fence}) AS r{fence}) "
            f"AS m{fence}) AS k"
        )

    @property
    def type(self) -> str:
        """The type of the column of times."""
        return next(c.type for c in self.columns if c.name == self.column)

    @property
    def kind(self) -> Family:
        """What its values are."""
        return family(self.type)

    def _given(self, d: Dialect) -> str:
        """The value, or the text of it without blanks around it; null if there is none."""
        value = without_na(d, self.column, self.type, self.na)
        if self.kind != "text":
            return value
        bare = d.stripped_of(d.text(value, self.type), _BLANKS)
        for sign in ("+", "-", "Z"):
            bare = f"replace({bare}, ' {sign}', '{sign}')"
        return f"nullif({bare}, '')"

    def _read(self, d: Dialect, given: str) -> tuple[str, str]:
        """The time without an offset, and the instant; one of them, or both, are null."""
        kind = self.kind
        if kind != "text":
            nothing = "CAST(NULL AS {})".format
            if kind == "instant":
                return nothing(d.text_type), given
            return given, nothing(d.text_type)
        naive = f"{_DAY}({_CLOCK})?"
        placed, type_ = f"{_DAY}{_CLOCK}{_OFFSET}", "TIMESTAMP WITH TIME ZONE"
        return (
            f"CASE WHEN {d.matches(given, naive)} THEN {d.tried(given, 'TIMESTAMP')} END",
            f"CASE WHEN {d.matches(given, placed)} THEN {d.tried(given, type_)} END",
        )

    def _texts(self, d: Dialect, naive: str, instant: str) -> list[str]:
        kind = self.kind
        if kind == "instant":
            return [d.plain_text(instant, self.type, kind)]
        if kind != "text":
            return [d.plain_text(naive, self.type, kind)]
        return [
            d.plain_text(naive, "TIMESTAMP", "timestamp"),
            d.plain_text(instant, "TIMESTAMP WITH TIME ZONE", "instant"),
        ]


def with_times(
    source: Source, engine: Engine, column: str, *, hours: bool, na: Sequence[str]
) -> Source:
    """Add the time of each row to a table, as the attribute :data:`TIME`."""
    columns = engine.schema(source)
    names = [c.name for c in columns]
    if column not in names:
        raise ColumnNotFound(column, table=source.name, columns=names)
    view = TimeView(columns, column, hours, tuple(na))
    if view.type.strip('"').upper() in ("NULL", "VOID"):
        raise no_times(column)
    if view.kind not in ("text", "date", "timestamp", "instant"):
        raise InputError(
            f"the column {column} of {source.name} has the type {view.type}, which does not contain times; name a "
            "column of dates, times or texts. Nothing was added."
        )
    return replace(source, view=view)


def no_times(column: str) -> InputError:
    """The error about a column without any time."""
    return InputError(f"no row has a time in the column {column!r}; nothing was added.")


def require_times(source: Source, engine: Engine, column: str, counts: Counts) -> None:
    """Refuse a column of times that has other values, and name one."""
    axis = counts.axis(TIME)
    codes = counts.codes[:, counts.axes.index(axis)]
    if _NO_TIME not in axis.values or not (codes == axis.code(_NO_TIME)).any():
        return
    found = engine.distinct(source, _STRANGE, 2)
    strange = next((str(v) for v in found if v is not MISSING), "")
    shown = strange if len(strange) <= 40 else f"{strange[:40]}…"
    raise InputError(
        f"the column {column} of {source.name} has values that are not times, such as {shown!r}; write times "
        "as 2026-03-15 or 2026-03-15T08:30:00+01:00. Nothing was added."
    )


def without_dropped(counts: Counts) -> Counts:
    """Leave out the rows that the request of counts drops since they have a missing value."""
    return _settled(counts, counts.codes, counts.rows, [axis.name for axis in counts.sensitive])


def split_by_time(
    counts: Counts, every: str, zone: datetime.tzinfo
) -> tuple[int, list[tuple[datetime.datetime, Counts]]]:
    """Split counts by the attribute of times; return the rows without one, and a part for each period.

    The counts still have the rows that their request drops, so that each part tells how many it had.
    """
    axis, kept = counts.axis(TIME), without_dropped(counts)
    used = kept.axis(TIME)
    begins = {}
    for code, value in enumerate(axis.values):
        # Rows that are dropped may have any time.
        with contextlib.nullcontext() if value in used.codes else contextlib.suppress(InputError):
            if value != _ABSENT:
                begins[code] = floor(read_moment(value, zone), every, zone)
    periods = sorted({begin for code, begin in begins.items() if axis.values[code] in used.codes})
    number = {begin: i for i, begin in enumerate(periods)}
    number_of = {code: number[begin] for code, begin in begins.items() if begin in number}
    period = np.array([number_of.get(code, -1) for code in range(len(axis.values))])
    of_lines = period[counts.codes[:, counts.axes.index(axis)]]
    no_time = used.codes.get(_ABSENT, -1)
    left_out = int(kept.rows[kept.codes[:, kept.axes.index(used)] == no_time].sum())
    return left_out, list(zip(periods, _parts(counts, of_lines, len(periods)), strict=True))


def _parts(counts: Counts, period: np.ndarray, number: int) -> Iterator[Counts]:
    """The rows of each period, without the attribute of times."""
    order = np.argsort(period, kind="stable")
    starts = np.searchsorted(period[order], np.arange(number + 1))
    names = [a.name for a in counts.sensitive if a.name != TIME]
    for i in range(number):
        lines = order[starts[i] : starts[i + 1]]
        yield _settled(counts, counts.codes[lines], counts.rows[lines], names)


def _settled(counts: Counts, codes: np.ndarray, rows: np.ndarray, names: Sequence[str]) -> Counts:
    """Some lines of counts over some attributes, where missing values are treated as they are asked."""
    columns = (*names, counts.label.name)
    coded = {
        a.name: (a.values, codes[:, i]) for i, a in enumerate(counts.axes) if a.name in columns
    }
    request = replace(counts.request_for_rows(), sensitive=tuple(names))
    found = Counts.from_codes(coded, rows, None, request)
    asked = counts.request and replace(counts.request, sensitive=tuple(names))
    return replace(found, request=asked, reading=counts.reading, skipped=counts.skipped)
