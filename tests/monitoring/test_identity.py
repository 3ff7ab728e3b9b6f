"""The same rows are one batch: by zone, id, time and tags, also when it was corrected or withdrawn."""

from __future__ import annotations

import datetime

import pytest

import equipoise as eq
from equipoise.errors import InputError
from equipoise.monitoring.moments import to_number
from equipoise.monitoring.store import cells as store_cells
from equipoise.monitoring.store.store import Store
from streams import START, current, day, fill, people, quiet

HOW = {"sensitive_features": "sex", "label": "hired"}


@pytest.fixture
def monitor(address):
    with eq.Monitor(address) as opened:
        yield opened


# ----------------------------------------------------------------------- what is replaced


def test_nothing_is_replaced_by_a_mistyped_id(monitor):
    monitor.add(day(), name="hires", at="2026-01-05", id="d0")
    with pytest.raises(
        InputError,
        match=r"hires has no batch 'd00' to replace; leave out `replace` to add it\. Did you mean 'd0'\? "
        r"Nothing was changed\.",
    ):
        monitor.add(day(women=10), name="hires", at="2026-01-05", id="d00", replace=True)
    with pytest.raises(InputError, match="name the batch to replace with `id` or `at`"):
        monitor.add(day(women=10), name="hires", replace=True)
    assert monitor.counts("hires") == day()


def test_a_time_alone_names_the_batch_that_is_replaced(monitor):
    monitor.add(day(), name="hires", at="2026-01-05", tags={"region": "north"})
    monitor.add(day(women=10), name="hires", at="2026-01-05", replace=True)
    (batch,) = current(monitor)
    assert (batch.n, batch.tags) == (200, {"region": "north"})
    assert monitor.counts("hires") == day(women=10)
    for at, tags, why in (
        ("2026-01-06", None, r"has no batch of 2026-01-06 00:00 UTC to replace; .* Nothing was"),
        (
            *("2026-01-05", ["region=south"]),
            r"with the tags region=south to replace; .* There is '\w+' \(region=north\); correct it by its",
        ),
    ):
        with pytest.raises(InputError, match=why):
            monitor.add(day(women=11), name="hires", at=at, tags=tags, replace=True)
    monitor.add(day(women=12), name="hires", at="2026-01-05", tags=["region=south"], id="s")
    with pytest.raises(
        InputError,
        match=r"has 2 batches of 2026-01-05 00:00 UTC: '\w+' \(region=north\), 's' \(region=south\); give its",
    ):
        monitor.add(day(women=13), name="hires", at="2026-01-05", replace=True)
    assert monitor.counts("hires").n == 400


def test_new_periods_are_added_while_others_are_replaced(monitor):
    monitor.add(people("2026-01-01"), name="hires", time_column="t", tags=["a=b"], **HOW)
    more = people("2026-01-01", "2026-01-01", "2026-01-02")
    added = monitor.add(more, name="hires", time_column="t", replace=True)
    assert [r.outcome for r in added.receipts] == ["corrected", "added"]
    assert [b.tags for b in current(monitor)] == [{"a": "b"}, {}]


def test_periods_of_a_table_that_is_not_there_are_not_replaced(monitor):
    how = {"name": "hires", "time_column": "t"}
    monitor.add(people("2026-01-01"), id="one.csv", **how, **HOW)
    rows = people("2026-01-01", "2026-01-01", "2026-01-02")
    with pytest.raises(
        InputError, match=r"no batches of a table 'onn\.csv' to .* mean 'one\.csv'\?"
    ):
        monitor.add(rows, id="onn.csv", replace=True, **how)
    added = monitor.add(rows, id="one.csv", replace=True, **how)
    assert [r.outcome for r in added.receipts] == ["corrected", "added"]


def test_a_withdrawn_period_does_not_come_back_by_itself(monitor):
    rows = people("2026-01-01", "2026-01-02", "2026-01-02")
    monitor.add(rows, name="hires", time_column="t", tags=["a=b"], **HOW)
    first = current(monitor)[0].id
    monitor.withdraw("hires", id=first)
    more = people("2026-01-01", "2026-01-02", "2026-01-02", "2026-01-01")
    with pytest.raises(InputError, match=f"the batch '{first}' of hires was withdrawn; add it"):
        monitor.add(more, name="hires", time_column="t", tags=["a=b"])
    assert monitor.counts("hires").n == 2
    monitor.add(more, name="hires", time_column="t", replace=True)
    assert monitor.counts("hires").n == 4
    assert {b.id: b.tags for b in current(monitor)}[first] == {"a": "b"}


def test_a_batch_that_moved_is_no_longer_known_by_its_old_time(monitor):
    monitor.add(day(), name="hires", at="2026-01-01", id="one")
    monitor.withdraw("hires", id="one")
    monitor.add(day(), name="hires", at="2026-01-03", id="one", replace=True)
    with pytest.raises(InputError, match="no batch of 2026-01-01"):
        monitor.add(day(women=10), name="hires", at="2026-01-01", replace=True)
    assert monitor.add(people("2026-01-01"), name="hires", time_column="t").added == 1


# --------------------------------------------------------------------------- one split


def test_a_table_is_not_split_again_in_another_way(monitor):
    how = {"name": "hires", "time_column": "t"}
    rows = people("2026-01-01T23:00Z", "2026-01-02T01:00Z")
    monitor.add(rows, **how, **HOW)
    berlin = {"timezone": "Europe/Berlin"}
    for other, told in ((berlin, "day in Europe/Berlin"), ({"every": "week"}, "week in UTC")):
        with pytest.raises(
            InputError,
            match=f"batches of hires were split by day in UTC, not by {told}. .* Use the same `every`",
        ):
            monitor.add(rows, **how, **other)
    assert monitor.counts("hires").n == 2
    assert monitor.add(rows, **how).added == 0
    assert monitor.add(people("2026-01-05T23:30Z"), id="x", **how, **berlin).added == 1
    assert monitor.counts("hires").n == 3


def test_the_split_is_that_of_the_first_table_with_times(monitor):
    monitor.add(day(), name="hires", at="2026-01-01")
    zone = datetime.timezone(datetime.timedelta(hours=1))
    rows, how = people("2026-02-01T12:00Z"), {"name": "hires", "time_column": "t"}
    monitor.add(rows, timezone=zone, **how)
    assert monitor.add(rows, timezone=zone, **how).added == 0
    with pytest.raises(InputError, match=r"split by day in UTC\+01:00"):
        monitor.add(rows, **how)


def test_a_split_that_was_wrong_is_withdrawn_and_made_anew(monitor):
    rows, how = people("2026-01-01T23:30Z"), {"name": "hires", "time_column": "t"}
    monitor.add(rows, **how, **HOW)
    monitor.withdraw("hires", id=current(monitor)[0].id)
    monitor.add(rows, timezone="Europe/Berlin", **how)
    assert monitor.counts("hires").n == 1
    with pytest.raises(InputError, match="split by day in Europe/Berlin"):
        monitor.add(rows, **how)


# ------------------------------------------------------------------ times and merged batches


@pytest.fixture
def merged(monitor):
    fill(monitor, quiet(60))
    monitor.merge("hires", older_than="20d", every="month")
    return monitor


@pytest.mark.parametrize("option", ["since", "until"])
def test_a_time_inside_merged_batches_is_refused(merged, option):
    assert [b.starts.day for b in merged.batches("hires").batches[:3]] == [1, 1, 2]
    with pytest.raises(
        InputError,
        match="2026-01-10 is inside merged batches, which cover 2026-01-01 to 2026-01-31; use 2026-01-01 or "
        "2026-02-01",
    ):
        merged.counts("hires", **{option: "2026-01-10"})
    with pytest.raises(
        InputError, match=r"which cover 2026-01-01 01:00\+01:00 to 2026-01-31 01:00\+01:00"
    ):
        merged.counts("hires", **{option: "2026-01-10"}, timezone="Europe/Berlin")


def test_times_that_cut_no_batch_are_exact(merged):
    assert merged.counts("hires", since="2026-01-01").n == 6000
    assert merged.counts("hires", since="2026-02-01").n == 2900
    assert merged.counts("hires", until="2026-02-01").n == 3100
    assert merged.counts("hires", since="2025-01-01", until="2026-01-31T01:00").n == 3100


def test_a_window_that_cuts_merged_batches_names_the_next_one(merged):
    assert merged.counts("hires", window="29d").n == 2900
    with pytest.raises(
        InputError,
        match="the window begins at 2026-01-20, inside merged batches, which cover 2026-01-01 to 2026-01-31; "
        "the next possible window is 60d",
    ):
        merged.counts("hires", window="40d")
    assert merged.counts("hires", window="60d").n == 6000


def test_merged_batches_that_overlap_are_one_stretch(monitor):
    for i, batch in enumerate(quiet(60)):
        region = {"region": "north" if i % 2 else "south"}
        at = START + datetime.timedelta(hours=12 * i + (i % 5))
        monitor.add(batch, name="hires", at=at, tags=region)
    monitor.merge("hires", older_than="5d", every="week")
    total = monitor.counts("hires").n
    refused = 0
    for hours in range(1, 24 * 31, 7):
        bound = START + datetime.timedelta(hours=hours)
        parts = [rows_or_why(monitor, **{option: bound}) for option in ("since", "until")]
        assert sum(parts) == total if isinstance(parts[0], int) else "inside" in parts[0]
        found = rows_or_why(monitor, window=f"{hours}h")
        if isinstance(found, str):
            refused += 1
            window = found.rsplit(" ", 1)[1].rstrip(".")
            assert isinstance(rows_or_why(monitor, window=window), int)
    assert refused > 20


def rows_or_why(monitor, **options):
    try:
        return monitor.counts("hires", **options).n
    except InputError as error:
        return 0 if "no batch" in str(error) else str(error)


# ------------------------------------------------------------------ the ends of the calendar


@pytest.mark.parametrize("at", ["0001-01-01", "0999-12-31", "9999-01-01", "9999-12-31T23:00"])
def test_times_at_the_ends_of_the_calendar_are_refused(at, tmp_path):
    monitor = eq.Monitor(tmp_path / "a.sqlite")
    with pytest.raises(
        InputError, match="is out of range; the year must be in the range 1000 to 9998"
    ):
        monitor.add(day(), name="hires", at=at)
    with pytest.raises(InputError, match="is out of range"):
        monitor.add(people(at), name="hires", time_column="t", **HOW)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "UTC"])
def test_the_first_and_the_last_time_are_usual_ones(zone, monitor):
    for at in ("1000-01-01", "9998-12-31"):
        monitor.add(day(), name="hires", at=f"{at}T00:00Z")
        assert monitor.batches("hires", timezone=zone).text()
        assert monitor.check("hires", timezone=zone).text()
        assert monitor.counts("hires", window="36500d").n == 200
        assert monitor.merge("hires", older_than="36500d", every="month", timezone=zone) == (0, 0)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("time", ["0001-01-01T00:00+00:00", "9999-12-31T23:00+00:00"])
def test_a_store_that_has_such_times_is_read(time, zone, tmp_path):
    monitor = eq.Monitor(tmp_path / "a.sqlite")
    monitor.add(day(), name="hires", at="2026-01-01")
    with Store(str(tmp_path / "a.sqlite"), write=True) as store, store.writing():
        number = to_number(datetime.datetime.fromisoformat(time))
        store.database.run("UPDATE equipoise_batch SET starts = ?, ends = ?", [number] * 2)
    assert monitor.batches("hires", timezone=zone).to_dict()["batches"][0]["at"]
    assert monitor.streams(timezone=zone).text()
    assert monitor.check("hires", timezone=zone).text()
    assert monitor.counts("hires", window="36500d").n == 200


# ------------------------------------------------------------------------------------ tags


def test_tags_are_the_same_with_and_without_blanks(monitor):
    for i, tags in enumerate(({"region ": " north "}, ["region = north"], {"region": "north"})):
        monitor.add(day(women=20 + i), name="hires", at=f"2026-01-0{i + 1}", tags=tags)
    for tags in ({" region": "north "}, ["region=north"]):
        assert monitor.counts("hires", tags=tags).n == 600
        assert monitor.check("hires", tags=tags).batches == 3
    for tags in ({"region": " "}, {"region": ""}, ["region="], {"a": "b", "a ": "c"}):
        with pytest.raises(InputError, match="tag"):
            monitor.add(day(), name="hires", at="2026-01-01", tags=tags)


# ------------------------------------------------------------------------- many batches


def test_the_values_of_cells_are_read_once_for_a_table(monitor, monkeypatch):
    monitor.add(day(), name="hires", at="2025-01-01")
    read = []
    reads = store_cells.cell_values
    monkeypatch.setattr(store_cells, "cell_values", lambda text: read.append(text) or reads(text))
    times = [f"2026-{month:02}-{d:02}" for month in (1, 2, 3) for d in range(1, 29)]
    rows = {"sex": ["w", "m", "x"] * 28, "hired": ["yes"] * 84, "t": times}
    added = monitor.add(rows, name="hires", time_column="t")
    assert len(read) == 4
    # A value is told of the first period that has it.
    said = [r.remarks for r in added.receipts]
    assert said[2] == ("The attribute sex has a value that no earlier batch contains: x.",)
    assert not any((*said[:2], *said[3:]))


# ---------------------------------------------------------- missing values of the periods


def test_periods_have_their_own_missing_values(monitor):
    rows = {
        "sex": ["w", None, "m", "w", None, "m", "w", "m"],
        "hired": ["yes", "no", None, "no", None, "yes", None, "no"],
        "t": [*["2026-01-01T08:00Z"] * 2, "2026-01-01T19:10Z", *["2026-01-02"] * 3, "total", None],
    }
    added = monitor.add(rows, name="split", time_column="t", **HOW)
    told = [b.about for b in current(monitor, "split")]
    assert told == [
        {"missing_values": {"sex": 1, "hired": 1}, "dropped": 1},
        {"missing_values": {"sex": 1, "hired": 1}, "dropped": 1},
    ]
    assert (added.dropped, added.left_out) == (3, 1)
    assert monitor.counts("split").dropped == 2
    assert dict(monitor.counts("split").missing_values) == {"sex": 2, "hired": 2}
    first = {name: column[:3] for name, column in rows.items()}
    monitor.add(first, name="whole", at="2026-01-01", **HOW)
    ours, theirs = (monitor.counts(name, until="2026-01-02") for name in ("split", "whole"))
    assert ours == theirs
    assert (ours.dropped, ours.missing_values) == (theirs.dropped, theirs.missing_values)
    strict = {**HOW, "missing": "drop"}
    monitor.add(rows, name="strict", time_column="t", **strict)
    assert [(b.n, b.about["dropped"]) for b in current(monitor, "strict")] == [(1, 2), (2, 1)]
    assert monitor.counts("strict").request.missing == "drop"


def test_a_table_without_any_label_says_so(monitor):
    rows = people("2026-01-01", "2026-01-02", hired=None)
    with pytest.raises(InputError, match=r"every row of .* has a missing value .* was left out"):
        monitor.add(rows, name="hires", time_column="t", **HOW)
