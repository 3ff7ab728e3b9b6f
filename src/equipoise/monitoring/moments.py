"""Times of batches: stored in UTC, read and shown in the time zone that a user asks for."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Any, overload

from equipoise.errors import InputError

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_SPAN = re.compile(r"\s*(\d+)\s*([a-z]+)\s*", re.IGNORECASE)
_UNITS = {
    "h": datetime.timedelta(hours=1),
    "d": datetime.timedelta(days=1),
    "w": datetime.timedelta(weeks=1),
}
_EARLIEST = datetime.datetime(1000, 1, 1, tzinfo=datetime.UTC)
_LATEST = datetime.datetime(9998, 12, 31, tzinfo=datetime.UTC)
"""The times that are read, far enough from the ends of the calendar for all zones, periods and spans."""
_LONGEST = datetime.timedelta(days=36_500)
"""Maximum length of a span."""
_SHOWN = 40
"""Maximum number of characters of a text that an error repeats."""


def zone_named(name: str | datetime.tzinfo) -> datetime.tzinfo:
    """Return the time zone of a name; a time zone itself is returned as it is.

    >>> zone_named("Europe/Berlin").utcoffset(datetime.datetime(2026, 7, 1))
    datetime.timedelta(seconds=7200)
    """
    if isinstance(name, datetime.tzinfo):
        of_pytz = getattr(name, "zone", None)  # whose offsets depend on how it is asked
        if not isinstance(of_pytz, str):
            return name
        name = of_pytz
    if not isinstance(name, str):
        raise InputError(
            f"a time zone must be a name such as Europe/Berlin, or a tzinfo, not {name!r}."
        )
    if name.upper() in ("UTC", "Z"):
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"there is no time zone {short(name)} on this machine; use a name such as Europe/Berlin or UTC, "
            "or install the package tzdata."
        ) from None


def zone_name(zone: datetime.tzinfo) -> str:
    """The name by which a time zone is compared with others.

    >>> zone_name(zone_named("Europe/Berlin")), zone_name(zone_named("Z"))
    ('Europe/Berlin', 'UTC')
    """
    if isinstance(zone, zoneinfo.ZoneInfo) and zone.key:
        return zone.key
    return re.sub(" at 0x[0-9a-fA-F]+", "", str(zone))  # an address is another one every day


def read_moment(given: Any, zone: datetime.tzinfo = datetime.UTC) -> datetime.datetime:
    """Read a time: a date, a datetime, or a text in ISO 8601; without an offset, in the zone.

    >>> read_moment("2026-11-15", zone_named("Europe/Berlin")).isoformat()
    '2026-11-14T23:00:00+00:00'
    >>> read_moment("2026-11-15T08:30:00+01:00").isoformat()
    '2026-11-15T07:30:00+00:00'
    """
    found = given
    if isinstance(given, str):
        try:
            found = datetime.datetime.fromisoformat(given.strip())
        except ValueError:
            raise InputError(
                f"{short(given)} is not a time; write it as 2026-11-15 or 2026-11-15T08:30:00+01:00."
            ) from None
    elif isinstance(given, datetime.date) and not isinstance(given, datetime.datetime):
        found = datetime.datetime.combine(given, datetime.time())
    # Pandas has a datetime that is none.
    if not isinstance(found, datetime.datetime) or found != found:
        raise InputError(f"a time must be a date, a datetime or a text, not {short(given)}.")
    try:
        placed = found if found.tzinfo is not None else found.replace(tzinfo=zone)
        moment = placed.astimezone(datetime.UTC)
    except (OverflowError, ValueError):
        raise _outside(given) from None
    if not _EARLIEST <= moment <= _LATEST:
        raise _outside(given)
    return moment


def _outside(given: Any) -> InputError:
    years = f"{_EARLIEST.year} to {_LATEST.year}"
    return InputError(f"the time {given!s} is out of range; the year must be in the range {years}.")


def earlier(moment: datetime.datetime, span: datetime.timedelta) -> datetime.datetime:
    """The time that is a span before another, or the earliest there is.

    >>> earlier(read_moment("1000-01-01"), read_span("90d")).year
    1000
    """
    return moment - span if moment - _EARLIEST > span else _EARLIEST


def read_span(given: Any) -> datetime.timedelta:
    """Read a span of time: a timedelta, or a text such as 12h, 30d or 4w.

    >>> read_span("30d"), read_span("2 weeks")
    (datetime.timedelta(days=30), datetime.timedelta(days=14))
    """
    found = given if isinstance(given, datetime.timedelta) else _span(given)
    if not datetime.timedelta() < found <= _LONGEST:
        raise InputError(f"a time span must be above 0 and at most 100 years, not {short(given)}.")
    return found


def _span(text: Any) -> datetime.timedelta:
    if not isinstance(text, str):
        raise InputError(f"a time span must be a text such as 12h, 30d or 4w, not {short(text)}.")
    found = _SPAN.fullmatch(text)
    unit = None if found is None else _UNITS.get(found[2][0].lower())
    words = ("h", "hour", "hours", "d", "day", "days", "w", "week", "weeks")
    if found is None or unit is None or found[2].lower() not in words:
        raise InputError(f"{short(text)} is not a time span; write it as 12h, 30d or 4w.")
    # A span may be too long to be one.
    return min(int(found[1][:12]), 10**7) * unit if len(found[1]) <= 12 else 2 * _LONGEST


def to_number(moment: datetime.datetime) -> int:
    """The microseconds since 1970, as a store keeps them."""
    return (moment - _EPOCH) // _MICROSECOND


def from_number(number: int) -> datetime.datetime:
    """The moment of a number of microseconds."""
    return _EPOCH + number * _MICROSECOND


@overload
def iso(moment: datetime.datetime, zone: datetime.tzinfo = ...) -> str: ...


@overload
def iso(moment: None, zone: datetime.tzinfo = ...) -> None: ...


def iso(moment: datetime.datetime | None, zone: datetime.tzinfo = datetime.UTC) -> str | None:
    """Write a time as files have it: in a zone, with its offset.

    >>> iso(read_moment("2026-11-15"), zone_named("Europe/Berlin"))
    '2026-11-15T01:00:00+01:00'
    """
    return None if moment is None else _local(moment, zone).isoformat()


def _local(moment: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):
        return moment  # older versions stored times at the ends of the calendar


def shown(moment: datetime.datetime, zone: datetime.tzinfo = datetime.UTC) -> str:
    """Write a time in a zone: a date alone where it is midnight, and its offset if not UTC.

    Parts of a second are not shown.

    >>> shown(read_moment("2026-11-15")), shown(read_moment("2026-11-15T08:30"))
    ('2026-11-15', '2026-11-15 08:30')
    >>> shown(read_moment("2026-11-15T08:30"), zone_named("Europe/Berlin"))
    '2026-11-15 09:30+01:00'
    """
    local = _local(moment, zone)
    if (local.hour, local.minute, local.second, local.microsecond) == (0, 0, 0, 0):
        return f"{local:%Y-%m-%d}"
    seconds = f":{local:%S}" if local.second else ""
    return f"{local:%Y-%m-%d %H:%M}{seconds}{_offset(local)}"


def _offset(local: datetime.datetime) -> str:
    text = local.strftime("%z")  # %:z came with Python 3.12
    return f"{text[:3]}:{text[3:5]}" if local.tzinfo is not datetime.UTC else ""


def floor(moment: datetime.datetime, unit: str, zone: datetime.tzinfo) -> datetime.datetime:
    """The beginning of the hour, day, week or month that a time is in, as the zone has them.

    >>> floor(read_moment("2026-11-19T12:00"), "week", datetime.UTC).isoformat()
    '2026-11-16T00:00:00+00:00'
    """
    try:
        local = moment.astimezone(zone).replace(minute=0, second=0, microsecond=0)
        if unit != "hour":
            local = local.replace(
                hour=0, fold=0
            )  # a day begins once, even where midnight is repeated
        if unit == "week":
            local -= datetime.timedelta(days=local.weekday())  # of the calendar, not of hours
        if unit == "month":
            local = local.replace(day=1)
        return local.astimezone(datetime.UTC)
    except (OverflowError, ValueError):
        raise _outside(moment) from None


def short(given: object) -> str:
    """Write what was given for an error, of which a long text is shortened.

    >>> short("2026"), len(short("x" * 5000))
    ("'2026'", 43)
    """
    if isinstance(given, str) and len(given) > _SHOWN:
        given = f"{given[:_SHOWN]}…"
    return repr(given)
