"""What a store keeps: batches by id, corrections, withdrawals, drift, and refusals that lose nothing."""

from __future__ import annotations

import concurrent.futures
import contextlib
import datetime
import os
import pickle
import sqlite3

import pytest

import equipoise as eq
from equipoise.errors import InputError, SourceNotFound, UnknownName
from equipoise.monitoring.store import schema
from equipoise.monitoring.store.store import Store
from servers import new_database
from streams import START, counts, day, fill, quiet


@pytest.fixture
def monitor(address):
    with eq.Monitor(address) as opened:
        yield opened


def test_the_sum_of_all_batches_is_what_was_added(monitor):
    batches = quiet(12)
    fill(monitor, batches)
    total = batches[0]
    for batch in batches[1:]:
        total += batch
    assert monitor.counts("hires") == total
    assert monitor.counts("hires").request.columns == ("sex", "hired")


def test_a_batch_that_is_there_is_not_added_again(monitor):
    first = monitor.add(day(), name="hires", at="2026-01-01")
    again = monitor.add(day(), name="hires", at="2026-01-01")
    assert (first.added, again.added) == (1, 0)
    assert again.sentences == (
        f"The batch {first.batch.id} of hires is already there. Nothing was changed.",
    )
    assert monitor.counts("hires").n == 200
    other = monitor.add(day(), name="hires", at="2026-01-02")
    assert other.added == 1


def test_one_id_with_other_counts_is_refused_or_corrects(monitor):
    monitor.add(day(), name="hires", at="2026-01-01", id="one")
    with pytest.raises(
        InputError, match=r"has a batch 'one' with other counts.*Nothing was changed"
    ):
        monitor.add(day(women=10), name="hires", at="2026-01-01", id="one")
    assert monitor.counts("hires").of("sex=w, hired=yes") == 30
    corrected = monitor.add(day(women=10), name="hires", at="2026-01-01", id="one", replace=True)
    assert corrected.receipts[0].outcome == "corrected"
    assert monitor.counts("hires").of("sex=w, hired=yes") == 10
    states = [(b.id, b.state, b.place) for b in monitor.batches("hires").batches]
    assert sorted(states) == sorted([("one", "replaced", 1), ("one", "current", 1)])


def test_a_corrected_batch_keeps_its_place_in_the_tests(monitor):
    fill(monitor, [day(), day(women=20), day()])
    ids = [batch.id for batch in monitor.batches("hires").batches]
    monitor.add(
        day(women=25), name="hires", at=START + datetime.timedelta(days=1), id=ids[1], replace=True
    )
    with Store(monitor._address) as store:
        batches = store.batches(store.stream("hires"))
    assert [batch.id for batch in batches] == ids


def test_a_withdrawn_batch_is_kept_but_not_counted(monitor):
    fill(monitor, [day(), day(women=20)])
    wrong = monitor.batches("hires").batches[1].id
    monitor.withdraw("hires", id=wrong, reason="a test run")
    assert monitor.counts("hires") == day()
    assert [b.state for b in monitor.batches("hires").batches] == ["current", "withdrawn"]
    with pytest.raises(InputError, match="is already withdrawn; nothing was changed"):
        monitor.withdraw("hires", id=wrong)
    with pytest.raises(InputError, match="'none' of hires is not there"):
        monitor.withdraw("hires", id="none")
    events = monitor.history("hires").events
    assert [event.kind for event in events] == ["withdrawn"]
    assert "a test run" in events[0].text
    with pytest.raises(InputError, match="was withdrawn; add it again with `replace`"):
        monitor.add(day(women=20), name="hires", at=START + datetime.timedelta(days=1))
    monitor.add(day(women=20), name="hires", at=START + datetime.timedelta(days=1), replace=True)
    assert monitor.counts("hires").n == 400


def test_late_batches_are_added_and_told(monitor):
    fill(monitor, [day(), day(women=20)])
    late = monitor.add(day(women=25), name="hires", at="2025-12-24")
    assert late.added == 1
    assert "arrived after the batch of 2026-01-02" in late.receipts[0].remarks[0]
    assert [event.kind for event in monitor.history("hires").events] == ["late"]


def test_new_values_are_told_and_not_fatal(monitor):
    fill(monitor, [day()])
    more = counts({("w", "yes"): 3, ("x", "maybe"): 4})
    added = monitor.add(more, name="hires", at="2026-01-02")
    assert added.receipts[0].remarks == (
        "The attribute sex has a value that no earlier batch contains: x.",
        "The label hired has a value that no earlier batch contains: maybe.",
    )
    assert monitor.counts("hires").of("sex=x") == 4
    assert monitor.add(more, name="hires", at="2026-01-03").receipts[0].remarks == ()


def test_windows_are_sums_of_batches(monitor):
    batches = quiet(40)
    fill(monitor, batches)
    last = batches[-30]
    for batch in batches[-29:]:
        last += batch
    assert monitor.counts("hires", window="30d") == last
    assert monitor.counts("hires", since="2026-01-02", until="2026-01-03") == batches[1]
    with pytest.raises(InputError, match="no batch in this time range"):
        monitor.counts("hires", since="2030-01-01")
    with pytest.raises(InputError, match="no batch of hires has the tag region=north; its batches"):
        monitor.counts("hires", tags=["region=north"])
    with pytest.raises(InputError, match="either `window` or `since`"):
        monitor.counts("hires", since="2026-01-01", window="3d")


def test_tags_choose_batches(monitor):
    monitor.add(day(), name="hires", at="2026-01-01", tags={"region": "north"})
    monitor.add(day(women=10), name="hires", at="2026-01-01", tags=["region=south"])
    assert monitor.counts("hires", tags=["region=south"]) == day(women=10)
    assert monitor.check("hires", tags={"region": "north"}).batches == 1
    with pytest.raises(
        InputError, match=r"has the tag region=east; its tags are region=north, region"
    ):
        monitor.check("hires", tags={"region": "east"})
    with pytest.raises(InputError, match="a tag must be written as name=value"):
        monitor.counts("hires", tags=["north"])


def test_other_columns_are_refused_and_nothing_is_lost(monitor):
    fill(monitor, [day()])
    other = counts({("w", "b", "yes"): 3}, sensitive=("sex", "race"))
    with pytest.raises(
        InputError, match=r"has the sensitive attributes sex and the label hired, not sex, race"
    ):
        monitor.add(other, name="hires", at="2026-01-02")
    people = {"sex": ["w"], "race": ["b"], "hired": ["yes"]}
    with pytest.raises(InputError, match="Nothing was added"):
        monitor.add(
            people, name="hires", sensitive_features=["race"], label="hired", at="2026-01-02"
        )
    assert monitor.counts("hires") == day()


def test_names_that_differ_only_in_case_are_refused(monitor):
    fill(monitor, [day()])
    with pytest.raises(
        InputError,
        match="there is already a stream 'hires', and names must not differ only in case",
    ):
        monitor.add(day(), name="Hires", at="2026-01-02")
    with pytest.raises(InputError, match="differ only in case"):
        monitor.check("HIRES")
    with pytest.raises(
        UnknownName, match=r"unknown stream 'hire'; there are: hires. Did you mean 'hires'"
    ):
        monitor.check("hire")


def test_weights_and_empty_batches_are_refused(monitor):
    frame = {"sex": ["w", "m"], "hired": ["yes", "no"], "weight": [1.5, 2.0]}
    how = {"sensitive_features": ["sex"], "label": "hired"}
    with pytest.raises(InputError, match="these counts are weighted; leave out `weight`"):
        monitor.add(frame, name="hires", weight="weight", **how)
    weighted = eq.count(frame, weight="weight", **how)
    with pytest.raises(InputError, match="these counts are weighted"):
        monitor.add(weighted, name="hires")
    fill(monitor, [day()])
    with pytest.raises(InputError, match="has no rows"):
        monitor.add(day() - day(), name="hires", at="2026-01-02")
    assert monitor.counts("hires") == day()


def test_times_are_kept_in_utc_and_shown_as_asked(monitor):
    added = monitor.add(day(), name="hires", at="2026-07-01T09:00", timezone="Europe/Berlin")
    assert added.batch.starts == datetime.datetime(2026, 7, 1, 7, tzinfo=datetime.UTC)
    assert "2026-07-01 09:00+02:00" in added.sentences[0]
    assert "2026-07-01 07:00" in monitor.check("hires").heading
    assert "2026-07-01 03:00-04:00" in monitor.check("hires", timezone="America/New_York").heading
    # The same moment, written in another zone, is the same batch.
    assert monitor.add(day(), name="hires", at="2026-07-01T07:00Z").added == 0


def test_a_clock_that_goes_back_is_refused_unless_the_time_is_given(address):
    now = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)

    def clock():
        return now

    with eq.Monitor(address) as monitor:
        monitor._clock = clock
        monitor.add(day(), name="hires")
        now -= datetime.timedelta(days=3)
        with pytest.raises(
            InputError, match=r"the clock of this machine says 2026-04-28 00:00 UTC, but the last"
        ):
            monitor.add(day(women=20), name="hires")
        monitor.add(day(women=20), name="hires", at="2026-04-28")
        assert monitor.counts("hires").n == 400


def test_tables_are_counted_like_the_first_batch(monitor, tmp_path):
    first, later = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("sex,age,hired\nw,30,yes\nw,50,no\nm,40,?\n", encoding="utf-8")
    later.write_text("hired;age;sex;more\nyes;20;m;1\n?;70;w;2\n", encoding="utf-8")
    monitor.add(
        first,
        name="hires",
        at="2026-01-01",
        sensitive_features=["sex", "age"],
        label="hired",
        bins={"age": [35, 45]},
        na=["?"],
    )
    monitor.add(later, name="hires", at="2026-01-02")
    total = monitor.counts("hires")
    assert total.n == 3
    assert total.of("age=<35") == 2
    assert total.missing_values["hired"] == 2
    with pytest.raises(InputError, match="leave out `bins`"):
        monitor.add(later, name="hires", at="2026-01-03", bins={"age": [50]})
    with pytest.raises(InputError, match="leave out `missing`"):
        monitor.add(later, name="hires", at="2026-01-03", missing="drop")


def test_a_condition_is_that_of_the_first_batch(monitor):
    people = {"sex": ["w", "m", "m"], "age": [20, 30, 40], "hired": ["y", "n", "y"]}
    monitor.add(people, name="adults", sensitive_features=["sex"], label="hired", where="age > 25")
    added = monitor.add({**people, "age": [50, 60, 10]}, name="adults", at="2020-01-01")
    assert added.batch.n == 2
    assert monitor.counts("adults").reading.where.text == "age > 25"


def test_columns_may_be_renamed_or_vanish(monitor):
    rows = {"sex": ["w", "m"], "race": ["a", "b"], "hired": ["y", "n"]}
    how = {"sensitive_features": ["sex", "race"], "label": "hired"}
    monitor.add(rows, name="s", at="2026-01-01", **how)
    renamed = {"Sex": ["w"], "RACE": ["a"], "hired": ["y"]}
    added = monitor.add(renamed, name="s", at="2026-01-02")
    assert "The column 'sex' is called 'Sex' in this table" in added.receipts[0].remarks[0]
    gone = monitor.add({"sex": ["w", "w"], "hired": ["y", "n"]}, name="s", at="2026-01-03")
    assert gone.receipts[0].remarks[0].startswith("The column 'race' is missing")
    total = monitor.counts("s")
    assert (total.of("sex=w"), total.of("race=a"), total.of("race=<missing>")) == (4, 2, 2)
    assert total.missing_values["race"] == 2
    with pytest.raises(InputError, match="column 'hired' not found"):
        monitor.add({"sex": ["w"], "race": ["a"]}, name="s", at="2026-01-04")
    assert [event.kind for event in monitor.history("s").events] == ["drift"] * 4


def test_a_table_is_split_by_its_times(monitor):
    rows = {
        "sex": ["w", "m", "w", "m"],
        "hired": ["y", "n", "n", "y"],
        "when": ["2026-03-01", "2026-03-01", "2026-03-09", None],
    }
    how = {"sensitive_features": ["sex"], "label": "hired"}
    added = monitor.add(rows, name="s", time_column="when", **how)
    assert (added.added, added.left_out) == (2, 1)
    assert [b.starts.date().isoformat() for b in monitor.batches("s").batches] == [
        "2026-03-01",
        "2026-03-09",
    ]
    assert monitor.add(rows, name="s", time_column="when").added == 0
    weekly = monitor.add(
        rows, name="weekly", time_column="when", every="week", timezone="Europe/Berlin", **how
    )
    assert [r.batch.starts.isoformat() for r in weekly.receipts] == [
        "2026-02-22T23:00:00+00:00",
        "2026-03-08T23:00:00+00:00",
    ]
    with pytest.raises(InputError, match="leave out `at`"):
        monitor.add(rows, name="s", time_column="when", at="2026-01-01")
    with pytest.raises(InputError, match="no row has a time"):
        monitor.add({**rows, "when": [None] * 4}, name="s", time_column="when")


def test_hours_are_batches_as_well(monitor):
    rows = {
        "sex": ["w", "m", "w"],
        "hired": ["y", "n", "n"],
        "when": ["2026-03-01 08:10:00", "2026-03-01 08:50:00", "2026-03-01 10:00:00"],
    }
    added = monitor.add(
        rows, name="s", time_column="when", every="hour", sensitive_features="sex", label="hired"
    )
    assert [r.batch.n for r in added.receipts] == [2, 1]
    assert added.receipts[1].batch.starts.hour == 10


def test_a_newer_store_is_refused_politely_and_an_older_one_is_migrated(address, monkeypatch):
    with eq.Monitor(address) as monitor:
        fill(monitor, [day()])
    later = ("ALTER TABLE equipoise_batch ADD COLUMN extra BIGINT NOT NULL DEFAULT 7",)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, later))
    with Store(address) as store:  # who may write and only looks migrates, too
        assert store.database.run("SELECT extra FROM equipoise_batch") == [(7,)]
    monkeypatch.undo()
    with pytest.raises(
        InputError, match=r"written by a newer version of Equipoise \(its format is 2"
    ):
        eq.Monitor(address).check("hires")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, later))
    with eq.Monitor(address) as monitor:
        assert monitor.counts("hires") == day()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_no_store_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a pipe or a device"):
        eq.Monitor(tmp_path / "pipe").add(day(), name="hires")


def test_a_store_that_is_not_there_or_none_is_told(tmp_path):
    with pytest.raises(SourceNotFound, match="there is no store"):
        eq.Monitor(tmp_path / "none.sqlite").check("hires")
    text = tmp_path / "text.sqlite"
    text.write_text("this is a text, and a long one, of no database at all" * 30, encoding="utf-8")
    other = tmp_path / "other.sqlite"
    with contextlib.closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE people (sex TEXT)")
    for path, why in (
        (text, "is not a store"),
        (other, "not a store of equipoise monitor"),
        (tmp_path, "is a folder"),
    ):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(InputError, match=why):
            eq.Monitor(path).add(day(), name="hires")
        assert path.is_dir() or path.read_bytes() == before


def test_a_schema_of_postgres_holds_a_store():
    import psycopg

    with new_database() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA watched")
        joined = "&" if "?" in address else "?"
        with eq.Monitor(f"{address}{joined}schema=watched") as monitor:
            fill(monitor, [day()])
            assert monitor.counts("hires") == day()
        with psycopg.connect(address) as connection:
            assert connection.execute(
                "SELECT count(*) FROM watched.equipoise_batch"
            ).fetchone() == (1,)
        with pytest.raises(SourceNotFound, match="there is no store in"):
            eq.Monitor(address).check("hires")
        with pytest.raises(InputError, match="there is no schema 'nowhere'"):
            eq.Monitor(f"{address}{joined}schema=nowhere").check("hires")
        with pytest.raises(InputError, match="leave out table="):
            eq.Monitor(f"{address}{joined}table=people").check("hires")


def test_a_locked_store_is_told_and_nothing_is_lost(tmp_path, monkeypatch):
    from equipoise.monitoring.store import sqlite

    monkeypatch.setattr(sqlite, "WAIT", 0.1)
    path = tmp_path / "bias.sqlite"
    with eq.Monitor(path) as monitor:
        fill(monitor, [day()])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match=r"in use by another program.*nothing was changed"):
            eq.Monitor(path).add(day(women=10), name="hires", at="2026-01-02")
        assert eq.Monitor(path).counts("hires") == day()  # readers need not wait
    assert eq.Monitor(path).add(day(women=10), name="hires", at="2026-01-02").added == 1


def test_threads_share_a_monitor(monitor):
    batches = quiet(24)
    days = [START + datetime.timedelta(days=i) for i in range(24)]

    def work(number):
        monitor.add(batches[number], name="hires", at=days[number])
        return monitor.check("hires").batches + monitor.counts("hires").n

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(24)))
    assert sum(batches[1:], batches[0]) == monitor.counts("hires")


def test_a_monitor_can_be_sent_to_another_process(monitor):
    fill(monitor, quiet(3))
    with pickle.loads(pickle.dumps(monitor)) as sent:
        assert sent.counts("hires") == monitor.counts("hires")


@pytest.mark.parametrize(
    ("store", "why"),
    [
        (None, "a store must be a path or an address of PostgreSQL, not None"),
        (b"x", "an address of PostgreSQL, not b'x'"),
        ("", "must not be empty"),
        (" ", "must not be empty"),
        (":memory:", "a SQLite file or a PostgreSQL database"),
        ("file:x.sqlite?mode=ro", "not 'file:x.sqlite"),
        ("mysql://user:secret@host/db", "not 'mysql://user@host/db'"),
    ],
)
def test_a_store_is_a_file_or_a_database_of_postgres(store, why):
    with pytest.raises(InputError, match=why):
        eq.Monitor(store)


def test_a_batch_in_the_future_does_not_make_others_old(monitor):
    fill(monitor, quiet(10))
    added = monitor.add(day(), name="hires", at="2062-01-01")
    assert any("2062" in text for text in added.sentences)
    assert monitor.merge("hires", older_than="90d") == (0, 0)
