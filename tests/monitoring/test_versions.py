"""By what a batch is known, and how it is corrected: ids, periods, tags, names, and what is told of it."""

from __future__ import annotations

import datetime
import json
import unicodedata

import pytest

import equipoise as eq
from equipoise.errors import EquipoiseError, InputError
from streams import START, counts, current, day, fill, people

HOW = {"sensitive_features": "sex", "label": "hired"}
DAY = datetime.timedelta(days=1)


@pytest.fixture
def monitor(address):
    with eq.Monitor(address) as opened:
        yield opened


# ------------------------------------------------------------------------- corrections


def test_a_correction_without_a_time_keeps_the_time_and_the_tags(monitor):
    monitor.add(day(), name="hires", at="2026-01-05", id="one", tags={"region": "north"})
    corrected = monitor.add(day(women=10), name="hires", id="one", replace=True)
    assert corrected.receipts[0].outcome == "corrected"
    assert corrected.batch.starts == datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
    assert corrected.batch.tags == {"region": "north"}
    monitor.add(day(women=11), name="hires", id="one", replace=True, tags={"region": "south"})
    (batch,) = current(monitor)
    assert (batch.starts.day, batch.tags) == (5, {"region": "south"})
    again = monitor.add(day(women=11), name="hires", id="one", replace=True)
    assert "already there. Nothing was changed." in again.sentences[0]


def test_a_time_or_tags_alone_are_corrected(monitor):
    monitor.add(day(), name="hires", at="2026-01-05", id="one", tags={"a": "b"})
    moved = monitor.add(day(), name="hires", at="2026-01-06", id="one", replace=True)
    assert moved.receipts[0].outcome == "corrected"
    assert (moved.batch.starts.day, moved.batch.tags) == (6, {"a": "b"})
    tagged = monitor.add(day(), name="hires", id="one", replace=True, tags=["a=c"])
    assert (tagged.batch.starts.day, tagged.batch.tags) == (6, {"a": "c"})
    for at in ("2026-01-06", None):
        same = monitor.add(day(), name="hires", at=at, id="one", replace=True, tags=["a=c"])
        assert same.receipts[0].outcome == "there"
    states = [b.state for b in monitor.batches("hires").batches]
    assert sorted(states) == ["current", "replaced", "replaced"]
    texts = [event.text for event in monitor.history("hires").events]
    assert "its time was 2026-01-05 and is 2026-01-06" in texts[0]
    assert "its tags were a=b and are a=c" in texts[1]
    assert monitor.counts("hires") == day()


def test_a_batch_that_was_withdrawn_comes_back_at_its_time(monitor):
    monitor.add(day(), name="hires", at="2026-01-05", id="one", tags={"a": "b"})
    monitor.withdraw("hires", id="one")
    monitor.add(day(), name="hires", id="one", replace=True)
    (batch,) = current(monitor)
    assert (batch.starts.day, batch.tags) == (5, {"a": "b"})


def test_a_time_with_replace_names_the_batch_to_correct(monitor):
    monitor.add(day(), name="hires", at="2026-01-05")
    monitor.add(day(women=10), name="hires", at="2026-01-05", replace=True)
    assert monitor.counts("hires") == day(women=10)
    # Without it, several batches may have the same time.
    monitor.add(day(women=11), name="hires", at="2026-01-05")
    assert monitor.counts("hires").n == 400


# ----------------------------------------------------------------------------- periods


def test_a_period_with_other_counts_is_refused_or_corrected(monitor):
    first = people("2026-01-01", "2026-01-01", "2026-01-02")
    monitor.add(first, name="hires", time_column="t", **HOW)
    more = people("2026-01-01", "2026-01-01", "2026-01-02", "2026-01-02", "2026-01-03")
    with pytest.raises(
        InputError,
        match=r"has the batch '\w+' of 2026-01-02 00:00 UTC with other counts; correct it with `replace`, or "
        "give this table an `id`",
    ):
        monitor.add(more, name="hires", time_column="t")
    assert monitor.counts("hires").n == 3  # the third day was not added either
    added = monitor.add(more, name="hires", time_column="t", replace=True)
    assert [r.outcome for r in added.receipts] == ["there", "corrected", "added"]
    assert added.sentences[0].startswith("Added 1 batch with 1 row to hires")
    assert added.sentences[1:] == ("Corrected 1 batch.", "Skipped 1 batch that was already there.")
    assert monitor.counts("hires").n == 5
    again = monitor.add(more, name="hires", time_column="t", replace=True)
    assert {r.outcome for r in again.receipts} == {"there"}
    # It is still known after it was corrected.
    back = monitor.add(first, name="hires", time_column="t", replace=True)
    assert [r.outcome for r in back.receipts] == ["there", "corrected"]
    assert [b.place for b in current(monitor)] == [1, 2, 4]


def test_a_period_is_known_by_its_tags_as_well(monitor):
    rows = people("2026-01-01", "2026-01-02")
    monitor.add(rows, name="hires", time_column="t", tags={"region": "north", "a": "b"}, **HOW)
    monitor.add(rows, name="hires", time_column="t", tags={"region": "south"})
    north = {"a": "b", "region": "north"}
    assert monitor.add(rows, name="hires", time_column="t", tags=north).added == 0
    assert monitor.counts("hires").n == 4


def test_a_batch_with_an_own_id_is_known_by_its_period(monitor):
    monitor.add(day(), name="hires", at="2026-01-01", id="first")
    rows = people("2026-01-01T08:00", "2026-01-01T09:00")
    with pytest.raises(InputError, match="has the batch 'first' of 2026-01-01"):
        monitor.add(rows, name="hires", time_column="t")
    monitor.add(rows, name="hires", time_column="t", replace=True)
    assert [(b.id, b.n) for b in current(monitor)] == [("first", 2)]


def test_several_batches_of_a_period_are_named(monitor):
    monitor.add(day(), name="hires", at="2026-01-01", id="a")
    monitor.add(day(), name="hires", at="2026-01-01", id="b")
    rows = people("2026-01-01")
    with pytest.raises(
        InputError,
        match="has 2 batches of 2026-01-01 00:00 UTC without tags: 'a', 'b'; correct one by",
    ):
        monitor.add(rows, name="hires", time_column="t", replace=True)
    monitor.withdraw("hires", id="b")
    monitor.add(rows, name="hires", time_column="t", replace=True)
    assert [b.id for b in current(monitor)] == ["a"]


def test_files_that_share_days_are_added_side_by_side(monitor):
    one, two = people("2026-01-01", "2026-01-02"), people("2026-01-02", "2026-01-02")
    monitor.add(one, name="hires", time_column="t", id="one.csv", **HOW)
    monitor.add(two, name="hires", time_column="t", id="two.csv")
    assert [b.id for b in current(monitor)] == [
        "one.csv 2026-01-01",
        "one.csv 2026-01-02",
        "two.csv 2026-01-02",
    ]
    for rows, name in ((one, "one.csv"), (two, "two.csv")):
        assert monitor.add(rows, name="hires", time_column="t", id=name).added == 0
    assert monitor.counts("hires").n == 4
    with pytest.raises(InputError, match=r"has a batch 'two\.csv 2026-01-02' with other counts"):
        monitor.add(people("2026-01-02"), name="hires", time_column="t", id="two.csv")
    monitor.add(people("2026-01-02"), name="hires", time_column="t", id="two.csv", replace=True)
    assert monitor.counts("hires").n == 3
    hours = people("2026-10-25T00:10Z", "2026-10-25T01:10Z")
    options = {"time_column": "t", "every": "hour", "timezone": "Europe/Berlin"}
    added = monitor.add(hours, name="hours", id="x", **options, **HOW)
    assert [r.batch.id for r in added.receipts] == [
        "x 2026-10-25 02:00+0200",
        "x 2026-10-25 02:00+0100",
    ]


def test_periods_that_were_merged_are_known(monitor):
    rows = people(*(f"2026-01-{n:02}" for n in (1, 2, 3, 20)))
    monitor.add(rows, name="hires", time_column="t", **HOW)
    monitor.merge("hires", older_than="7d", every="week")
    assert monitor.add(rows, name="hires", time_column="t").added == 0
    other = people("2026-01-02", "2026-01-02")
    for replace in (False, True):
        with pytest.raises(
            InputError, match="was merged with others and can no longer be corrected"
        ):
            monitor.add(other, name="hires", time_column="t", replace=replace)
    assert monitor.counts("hires").n == 4
    monitor.add(other, name="hires", time_column="t", id="late")
    assert monitor.counts("hires").n == 6


# -------------------------------------------------------------------------------- times


def test_equal_batches_within_a_second_are_two(monitor):
    now = datetime.datetime(2026, 5, 1, 12, 0, 7, 100, tzinfo=datetime.UTC)
    monitor._clock = lambda: now
    first = monitor.add(day(), name="hires")
    now += datetime.timedelta(milliseconds=3)
    second = monitor.add(day(), name="hires")
    assert (first.added, second.added) == (1, 1)
    assert monitor.counts("hires").n == 400
    assert "of 2026-05-01 12:00:07 with" in second.sentences[0]
    assert ".00" not in monitor.batches("hires").text()


def test_a_time_in_the_future_is_told(monitor):
    now = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
    monitor._clock = lambda: now
    assert monitor.add(day(), name="hires", at=now + DAY).receipts[0].remarks == ()
    added = monitor.add(day(), name="hires", at="2062-05-01", id="x")
    said = "The time of the batch x, 2062-05-01 00:00, is more than one day ahead of the clock"
    assert added.sentences[1].startswith(said)
    assert [e.kind for e in monitor.history("hires").events] == ["ahead"]
    # It is mended by its id, and nothing is to be told any more.
    mended = monitor.add(day(), name="hires", at="2026-05-01", id="x", replace=True)
    assert len(mended.sentences) == 1


# ----------------------------------------------------------------------- names and tags


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", "must not be empty"),
        (" hires", "must not begin or end with a space"),
        ("hires ", "must not begin or end with a space"),
        ("hi\nres", "must contain only printable characters"),
        ("\ud800", "must contain only printable characters"),
        ("x" * 5000, r"must have at most 200 characters, but 'x{40}…' has 5,000"),
        (None, "must be a text, not None"),
        (b"hires", "must be a text"),
        (7, "must be a text, not 7"),
    ],
)
def test_names_and_ids_that_cannot_be_used_are_refused(name, rule, tmp_path):
    monitor = eq.Monitor(tmp_path / "a.sqlite")
    with pytest.raises(InputError, match=f"the name of a stream {rule}") as found:
        monitor.add(day(), name=name, at="2026-01-01")
    assert len(str(found.value)) < 200
    assert not (tmp_path / "a.sqlite").exists()
    fill(monitor, [day()])
    with pytest.raises(InputError, match=rule):
        monitor.check(name)
    if name is not None:
        with pytest.raises(InputError, match=f"the id of a batch {rule}"):
            monitor.add(day(), name="hires", at="2026-01-01", id=name)
    with pytest.raises(InputError, match=f"the id of a batch {rule}"):
        monitor.withdraw("hires", id=name)


def test_names_are_compared_in_composed_unicode(monitor):
    name = "Prüfung"
    monitor.add(day(), name=unicodedata.normalize("NFD", name), at="2026-01-01")
    assert monitor.check(name).batches == 1
    assert monitor.add(day(), name=name, at="2026-01-01").added == 0
    with pytest.raises(InputError, match="names must not differ only in case"):
        monitor.check(unicodedata.normalize("NFD", "PRÜFUNG"))


@pytest.mark.parametrize(
    "tags",
    [
        *(5, b"a=b", [("a", "b")], ["a"], ["=b"], {"": "b"}, {" ": "b"}, {"a": None}, {1: "b"}),
        *({"a\n": "b"}, {"a": "b\n"}, {"a": "\ud800"}, {"\ud800": "b"}, {"a=b": "c"}, {"a": ["b"]}),
        ["a=b", "a=c"],
    ],
)
def test_tags_that_cannot_be_used_are_refused(tags, tmp_path):
    monitor = eq.Monitor(tmp_path / "a.sqlite")
    with pytest.raises(InputError, match="tag"):
        monitor.add(day(), name="hires", at="2026-01-01", tags=tags)
    fill(monitor, [day()])
    with pytest.raises(InputError, match="tag"):
        monitor.counts("hires", tags=tags)


def test_no_tags_are_none(monitor):
    for tags in (None, (), {}):
        monitor.add(day(), name="hires", at="2026-01-01", tags=tags)
    assert monitor.counts("hires", tags=None) == day()
    assert monitor.check("hires", tags=None).batches == 1
    with pytest.raises(InputError, match="`tags` must be a list of texts, not 5"):
        monitor.check("hires", tags=5)


@pytest.mark.parametrize(
    "given",
    [
        *({"at": 5}, {"at": b"2026-01-01"}, {"at": "\ud800"}, {"at": ["2026-01-01"]}),
        *({"timezone": None}, {"timezone": 1}, {"timezone": "\ud800"}),
        *({"every": "year"}, {"every": None}, {"every": 1}, {"every": "week"}),
        *({"time_column": 5}, {"time_column": "t", "at": "2026-01-01"}),
    ],
)
def test_wrong_types_are_told_in_a_sentence(given, tmp_path):
    with pytest.raises(InputError) as found:
        eq.Monitor(tmp_path / "a.sqlite").add(people("2026-01-01"), name="hires", **HOW, **given)
    assert str(found.value).endswith((".", "?"))


def test_a_period_that_is_none_is_suggested(monitor):
    rows = people("2026-01-01")
    with pytest.raises(InputError, match=r"`every` must be one of 'hour', .*Did you mean 'week'\?"):
        monitor.add(rows, name="hires", time_column="t", every="Week", **HOW)
    monitor.add(rows, name="hires", time_column="t", **HOW)
    with pytest.raises(InputError, match=r"`every` must be one of .*not 'year'"):
        monitor.merge("hires", every="year")
    with pytest.raises(InputError, match="a time span must be a text"):
        monitor.merge("hires", older_than=5)


@pytest.mark.parametrize("half", ["\ud800", "a\udfff"])
def test_half_a_character_is_told(half, monitor):
    for cells, sensitive in (({(half, "yes"): 1}, "sex"), ({("w", "yes"): 1}, half)):
        with pytest.raises(EquipoiseError, match="cannot be encoded as UTF-8"):
            monitor.add(counts(cells, sensitive=(sensitive,)), name="other", at="2026-01-01")
    with pytest.raises(EquipoiseError):
        monitor.add({"sex": [half], "hired": ["yes"]}, name="other", at="2026-01-01", **HOW)
    fill(monitor, [day()])
    with pytest.raises(InputError, match="`reason` must be a text"):
        monitor.acknowledge("hires", reason=half)
    assert [each.stream.name for each in monitor.streams().streams] == ["hires"]


# ------------------------------------------------------------------ how tables are counted


def test_a_column_of_counts_may_come_and_go(monitor):
    lines = {"sex": ["w", "m"], "hired": ["yes", "no"]}
    how = {"name": "hires", "label": "hired", "sensitive_features": ["sex"]}
    monitor.add({**lines, "n": [10, 20]}, count="n", at="2026-01-01", **how)
    assert monitor.add({**lines, "n": [1, 2]}, name="hires", at="2026-01-02").batch.n == 3
    other = monitor.add({**lines, "many": [5, 6]}, name="hires", at="2026-01-03", count="many")
    assert (other.batch.n, other.receipts[0].remarks) == (11, ())
    both = {**lines, "n": [1, 1], "many": [7, 8]}
    assert monitor.add(both, name="hires", at="2026-01-04", count="many").batch.n == 15
    bare = monitor.add(lines, name="hires", at="2026-01-05")
    assert bare.batch.n == 2
    (remark,) = bare.receipts[0].remarks
    assert remark.startswith(
        "The column 'n', which contained numbers of rows, is missing. Each line"
    )
    with pytest.raises(InputError, match="column 'few' not found"):
        monitor.add({**lines, "n": [1, 2]}, name="hires", at="2026-01-06", count="few")


def test_counts_may_come_later(monitor):
    lines = {"sex": ["w", "m"], "hired": ["yes", "no"], "t": ["2026-01-01", "2026-01-02"]}
    monitor.add(lines, name="hires", at="2025-12-31", **HOW)
    options = {"name": "hires", "count": "n", "time_column": "t"}
    added = monitor.add({**lines, "n": [10, 20]}, **options)
    assert [r.batch.n for r in added.receipts] == [10, 20]


def test_rows_without_a_label_are_told(monitor):
    rows = {"sex": ["w", "m", None, "w"], "hired": ["yes", None, "yes", None]}
    added = monitor.add(rows, name="hires", at="2026-01-01", **HOW)
    assert added.sentences[1] == "2 rows without a label were left out."
    assert (added.dropped, added.to_dict()["dropped"]) == (2, 2)
    strict = monitor.add(rows, name="strict", at="2026-01-01", missing="drop", **HOW)
    assert strict.sentences[1] == "3 rows without a value were left out."
    split = monitor.add(
        {"sex": ["w", "m"], "hired": ["yes", None], "t": ["2026-01-01"] * 2},
        name="split",
        time_column="t",
        **HOW,
    )
    assert split.sentences[1] == "1 row without a label was left out."
    again = monitor.add(rows, name="hires", at="2026-01-01")
    assert len(again.sentences) == 1
    json.dumps(again.to_dict())


def test_a_table_without_any_attribute_of_the_stream_is_refused(monitor):
    monitor.add({"sex": ["w"], "hired": ["yes"]}, name="hires", at="2026-01-01", **HOW)
    with pytest.raises(
        InputError,
        match=r"the frame does not have the sensitive attribute of the stream \(sex\)",
    ):
        monitor.add({"age": [1], "hired": ["yes"]}, name="hires", at="2026-01-02")


def test_one_batch_of_one_row_is_written_so(monitor):
    monitor.add({"sex": ["w"], "hired": ["yes"]}, name="hires", at=START, **HOW)
    assert monitor.check("hires").heading == "hires: 1 batch with 1 row, 2026-01-01 to 2026-01-01"


def test_columns_beside_y_are_those_of_the_stream(monitor):
    sexes, races = ["m", "w"] * 4, ["x", "x", "y", "y"] * 2
    hired = ["yes", "no", "no", "yes"] * 2
    how = {"name": "hires", "y": hired}
    monitor.add(sensitive_features={"sex": sexes, "race": races}, label="hired", at=START, **how)
    for features in ({"race": races, "sex": sexes}, {"sex": sexes}):
        with pytest.raises(InputError, match=r"has the sensitive attributes sex, race .* Nothing"):
            monitor.add(sensitive_features=features, **how)
    # A list has no name, and is taken for the label.
    monitor.add(sensitive_features={"sex": sexes, "race": races}, at="2026-01-02", **how)
    found = monitor.counts("hires")
    assert (found.n, found.axis("sex").values) == (16, ("m", "w"))


def test_columns_beside_y_are_counted_like_the_first(monitor):
    how = {"name": "hires", "label": "hired", "y": ["yes", "no", None]}
    features = {"sex": ["m", None, "w"]}
    first = {"missing": "drop", "missing_label": "group", "where": "sex = 'm' OR hired IS NULL"}
    for at, options in (("2026-01-01", first), ("2026-01-02", {})):
        monitor.add(sensitive_features=features, at=at, **how, **options)
    assert [batch.n for batch in monitor.batches("hires").batches] == [2, 2]


def test_a_batch_that_is_to_be_counted_in_another_way_is_refused(monitor):
    rows = {"sex": ["w"], "hired": ["yes"], "age": [30]}
    monitor.add(rows, name="hires", at="2026-01-01", **HOW)
    for given, why in (
        ({"where": "age > 20"}, "was counted without `where`, and"),
        ({"missing": "drop"}, "was counted with missing = 'group', and"),
        ({"bins": {"sex": 2}}, "have no bins; leave out `bins`"),
    ):
        with pytest.raises(InputError, match=why):
            monitor.add(rows, name="hires", at="2026-01-02", **given)
