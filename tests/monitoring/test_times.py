"""Tables that are split by a column of times: the same batches on all engines, in any time zone."""

from __future__ import annotations

import datetime
import itertools
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
import servers
from equipoise.errors import ColumnNotFound, InputError
from equipoise.monitoring.moments import floor, read_moment, zone_named

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
_numbers = itertools.count()

# The last Sunday of October has two hours that begin at 02:00; the last of March has no 02:00.
INSTANTS = (
    "2026-03-28T23:30:00+01:00",
    "2026-03-29T01:59:59+01:00",
    "2026-03-29T03:00:00+02:00",
    "2026-10-24T23:59:00+02:00",
    "2026-10-25T02:10:00+02:00",
    "2026-10-25T02:10:00+01:00",
    "2026-10-25T02:50:00+01:00",
)
NAIVE = tuple(text[:19] for text in INSTANTS)


def typed_column(kind):
    """The times as a column of a type, in pandas."""
    import pandas as pd

    if kind == "instant":
        return pd.to_datetime(list(INSTANTS), utc=True).tz_convert("America/New_York")
    if kind == "timestamp":
        return pd.to_datetime(list(NAIVE))
    if kind == "date":
        return [datetime.date.fromisoformat(text[:10]) for text in NAIVE]
    return list(INSTANTS if kind == "text with offsets" else NAIVE)


KINDS = ("instant", "timestamp", "date", "text", "text with offsets")


def people(times):
    import pandas as pd

    sex = ["w", "m"] * len(times)
    return pd.DataFrame({"t": times, "sex": sex[: len(times)], "y": ["a"] * len(times)})


def as_pandas(frame, folder, kind):
    return frame


def as_polars(frame, folder, kind):
    import polars as pl

    return pl.from_pandas(frame)


def as_parquet(frame, folder, kind):
    frame.to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def as_csv(frame, folder, kind):
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def as_json(frame, folder, kind):
    frame.assign(t=frame.t.astype(str)).to_json(folder / "rows.jsonl", orient="records", lines=True)
    return folder / "rows.jsonl"


def as_postgres(frame, folder, kind):
    import psycopg

    types = {"instant": "timestamptz", "timestamp": "timestamp", "date": "date"}
    table = f"times_{next(_numbers)}"
    with psycopg.connect(servers.postgres_address(), autocommit=True) as connection:
        connection.execute("SET TimeZone = 'Asia/Kolkata'")
        connection.execute(
            f"CREATE TABLE {table} (t {types.get(kind, 'text')}, sex text, y text)".encode()
        )
        connection.cursor().executemany(
            f"INSERT INTO {table} VALUES (%s, %s, %s)".encode(),
            [(str(t), sex, y) for t, sex, y in frame.itertuples(index=False)],
        )
    return f"{servers.postgres_address()}&table={table}"


def as_spark(frame, folder, kind):
    session = servers.spark_session()
    types = {"instant": "timestamp", "timestamp": "timestamp_ntz", "date": "date"}
    rows = [(str(t), sex, y) for t, sex, y in frame.itertuples(index=False)]
    table = session.createDataFrame(rows, "t string, sex string, y string")
    return table.selectExpr(f"CAST(t AS {types.get(kind, 'string')}) AS t", "sex", "y")


PLACES = (
    *(as_pandas, as_polars, as_parquet, as_csv, as_json, as_postgres),
    pytest.param(as_spark, marks=pytest.mark.spark),
)


def batches(data, folder, every, zone):
    monitor = eq.Monitor(folder / f"{next(_numbers)}.sqlite")
    added = monitor.add(
        data,
        name="s",
        sensitive_features="sex",
        label="y",
        time_column="t",
        every=every,
        timezone=zone,
    )
    return [(r.batch.starts, r.batch.n) for r in added.receipts]


def expected(kind, every, zone):
    """The batches that Python makes of the times."""
    if kind in ("instant", "text with offsets"):
        moments = [datetime.datetime.fromisoformat(text) for text in INSTANTS]
    else:
        size = 10 if kind == "date" else 19
        moments = [
            datetime.datetime.fromisoformat(text[:size]).replace(tzinfo=zone) for text in NAIVE
        ]
    found: dict[datetime.datetime, int] = {}
    for moment in moments:
        begin = moment.astimezone(zone)
        begin = begin.replace(minute=0, second=0)
        if every != "hour":
            begin = begin.replace(hour=0, fold=0)
        if every == "week":
            begin -= datetime.timedelta(days=begin.weekday())
        if every == "month":
            begin = begin.replace(day=1)
        begin = begin.astimezone(datetime.UTC)
        found[begin] = found.get(begin, 0) + 1
    return sorted(found.items())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_times_are_the_same_on_all_engines(place, kind, tmp_path):
    data = place(people(typed_column(kind)), tmp_path, kind)
    for every, zone in (("hour", "Europe/Berlin"), ("day", "Asia/Kathmandu")):
        there = zoneinfo.ZoneInfo(zone)
        assert batches(data, tmp_path, every, zone) == expected(kind, every, there), (every, zone)


@pytest.mark.parametrize("every", ["day", "week", "month"])
@pytest.mark.parametrize("kind", ["instant", "text"])
def test_longer_periods_begin_at_midnight_of_the_zone(every, kind, tmp_path):
    found = batches(people(typed_column(kind)), tmp_path, every, "Europe/Berlin")
    assert found == expected(kind, every, BERLIN)
    assert all(begin.astimezone(BERLIN).hour == 0 for begin, _ in found)


def test_an_offset_in_a_text_is_not_dropped(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("t,sex,y\n2026-03-27T22:00:00-08:00,F,a\n", encoding="utf-8")
    assert batches(file, tmp_path, "hour", "Z") == [
        (datetime.datetime(2026, 3, 28, 6, tzinfo=datetime.UTC), 1)
    ]


SPELLINGS = {
    "2026-03-27T22:00:00Z": 22,
    "2026-03-27 22:00 UTC": 22,
    "2026-03-27 22:59:59.999999999+00": 22,
    "2026-03-27T22:00:00+0530": 16,
    "2026-03-27 22:00:00 +02:00": 20,
    " 2026-03-27 22:00:00 ": 22,
    "2026/3/27 9:30": 9,
    "2026-03-27": 0,
}


@pytest.mark.parametrize(
    "place", [as_csv, as_postgres, pytest.param(as_spark, marks=pytest.mark.spark)]
)
def test_usual_spellings_are_read_alike(place, tmp_path):
    data = place(people(list(SPELLINGS)), tmp_path, "text")
    expected: dict[int, int] = {}
    for hour in SPELLINGS.values():
        expected[hour] = expected.get(hour, 0) + 1
    found = batches(data, tmp_path, "hour", "UTC")
    assert [(at.hour, n) for at, n in found] == sorted(expected.items())
    assert {at.date() for at, _ in found} == {datetime.date(2026, 3, 27)}


STRANGE = (
    "15.03.2026",
    "2026-02-30",
    "1773532800",
    "now",
    "2026-03-15T25:00",
    "2026-03-15T08:00+99:00",
)


@pytest.mark.parametrize(
    ("place", "strange"),
    [
        *itertools.product([as_csv, as_postgres], STRANGE),
        *(pytest.param(as_spark, text, marks=pytest.mark.spark) for text in STRANGE[:2]),
    ],
)
def test_a_value_that_is_no_time_is_named(place, strange, tmp_path):
    data = place(people(["2026-03-15", strange, ""]), tmp_path, "text")
    with pytest.raises(
        InputError,
        match=r"the column t of .* has values that are not times, such as '.*write times as 2026",
    ) as found:
        batches(data, tmp_path, "day", "UTC")
    assert repr(strange) in str(found.value)


def test_missing_times_are_left_out_and_told(tmp_path):
    monitor = eq.Monitor(tmp_path / "a.sqlite")
    how = {"sensitive_features": "sex", "label": "y", "time_column": "t", "missing": "drop"}
    rows = people(["2026-03-15", "", "?", None])
    added = monitor.add(rows, name="s", na=["?"], **how)
    assert (added.added, added.left_out) == (1, 3)
    assert added.sentences[1] == "3 rows without a time were left out."
    # A second table is read with the same missing values, and the column is one of it.
    again = monitor.add(people(["2026-03-15", "?"]), name="s", time_column="t")
    assert (again.added, again.left_out) == (0, 1)
    assert again.sentences[1] == "1 row without a time was left out."


def test_a_column_of_times_that_is_not_there_is_suggested(tmp_path):
    frame = people(["2026-03-15"])
    with pytest.raises(
        ColumnNotFound, match=r"column 'nope' not found in the frame; it has: t, sex, y"
    ):
        eq.Monitor(tmp_path / "a.sqlite").add(
            frame, name="s", sensitive_features="sex", label="y", time_column="nope"
        )
    with pytest.raises(InputError, match="has the type BIGINT, which does not contain times"):
        batches(people([1, 2]), tmp_path, "day", "UTC")


def test_a_condition_and_a_query_apply_before_the_split(tmp_path):
    monitor = eq.Monitor(tmp_path / "a.sqlite")
    rows = people(["2026-03-15", "2026-03-15", "2026-03-16", "2026-03-17"])
    how = {"sensitive_features": "sex", "label": "y", "time_column": "moment"}
    query = "SELECT *, t AS moment FROM input;"
    added = monitor.add(rows, name="s", sql=query, where="moment < '2026-03-17'", **how)
    assert [r.batch.n for r in added.receipts] == [2, 1]
    # They are those of the stream, without the column of times.
    assert monitor.counts("s").reading.sql == query
    again = monitor.add(rows, name="s", time_column="moment")
    assert again.sentences[-1] == "Skipped 2 batches that were already there."


ZONES = ("Europe/Berlin", "America/Havana", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Cairo")


@given(
    st.integers(631_152_000, 2_208_988_800),  # 1990 to 2040
    st.sampled_from(ZONES),
    st.sampled_from(["day", "week", "month"]),
)
def test_a_period_has_one_beginning_which_is_its_own(seconds, name, unit):
    zone, moment = zone_named(name), datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    begin = floor(moment, unit, zone)
    assert begin <= moment
    assert floor(begin, unit, zone) == begin
    local = moment.astimezone(zone)
    first = local.replace(tzinfo=None, fold=0).date()
    if unit == "week":
        first -= datetime.timedelta(days=first.weekday())
    if unit == "month":
        first = first.replace(day=1)
    assert begin.astimezone(zone).date() == first


def test_a_midnight_that_is_repeated_begins_one_day():
    # In Havana clocks go back from 1:00 to 0:00.
    zone = zone_named("America/Havana")
    first = read_moment("2026-11-01T00:30:00-04:00")
    second = read_moment("2026-11-01T00:30:00-05:00")
    assert first != second
    assert floor(first, "day", zone) == floor(second, "day", zone)
    assert floor(first, "hour", zone) != floor(second, "hour", zone)


def test_time_zones_may_be_objects(tmp_path):
    rows = people(["2026-03-15T23:30:00Z"])
    for zone in (datetime.timezone(datetime.timedelta(hours=1)), BERLIN, "Europe/Berlin"):
        ((begin, _),) = batches(rows, tmp_path, "day", zone)
        assert begin == datetime.datetime(2026, 3, 15, 23, tzinfo=datetime.UTC)
    for zone in (None, 1, "Mars/Olympus"):
        with pytest.raises(InputError, match="time zone"):
            batches(rows, tmp_path, "day", zone)
