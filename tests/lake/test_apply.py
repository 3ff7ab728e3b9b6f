"""Carrying out a plan: real rows, each once, in order, whole or not at all."""

from __future__ import annotations

import collections
import csv
import datetime
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.counts import CountRequest, Counts
from equipoise.engines import engines
from equipoise.engines.sources import locate
from equipoise.errors import ColumnNotFound, CountsError, InputError, PoolTooSmall
from equipoise.lake.repair.apply import apply_plan
from equipoise.lattice import Group
from equipoise.values import MISSING, as_value
from strategies import NASTY
from written import write_rows

ENGINES = {name: engines()[name]() for name in ("duckdb", "memory")}
DUCKDB = ENGINES["duckdb"]
REQUEST = CountRequest(sensitive=("sex",), label="hired")


@dataclass(frozen=True)
class Plan:
    counts: Counts
    add: Counts
    delete: Counts


@pytest.fixture(params=list(ENGINES), scope="module")
def engine(request):
    return ENGINES[request.param]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def cells(request=REQUEST, **numbers):
    """Counts from ``w_yes=3``; ``none_yes`` is a missing value."""
    found = {tuple(None if v == "none" else v for v in k.split("_")): n for k, n in numbers.items()}
    return Counts.from_mapping(found, sensitive=request.sensitive, label=request.label)


def planned(base, add=None, delete=None, request=REQUEST):
    counts = DUCKDB.counts(locate(base), request)
    return Plan(counts, cells(request, **(add or {})), cells(request, **(delete or {})))


PEOPLE = pa.table(
    {
        "id": list(range(8)),
        "sex": ["m", "w", "w", "m", None, "w", "m", "m"],
        "hired": ["yes", "no", "no", "yes", "no", "yes", None, "no"],
    }
)
MORE = pa.table(
    {
        "beside": ["x"] * 40,
        "hired": ["yes", "no"] * 20,
        "sex": ["w", "w", "m", "m"] * 10,
        "id": list(range(100, 140)),
    }
)


def written(table, name):
    """Write a table by the engine that writes all."""
    write_rows(DUCKDB, table, name)
    return name


def rows_of(path):
    """All rows of a file in their order."""
    counts = cells(w_yes=0)
    request = CountRequest(sensitive=("sex",), label="hired", missing_label="group")
    return DUCKDB.rows(locate(path), request, counts, rest=True)


def changes(path):
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def carried_out(plan, base="people.csv", pool="more.csv", output="out.csv", **options):
    engine = options.pop("engine", DUCKDB)
    pool = None if pool is None else locate(pool)
    return apply_plan(plan, locate(base), pool, output, engine=engine, **options)


@pytest.fixture
def files():
    return written(PEOPLE, "people.csv"), written(MORE, "more.csv")


# ------------------------------------------------------------------------ what is written


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet", ".jsonl", ".ndjson"])
def test_base_rows_stay_in_order_and_added_ones_stand_behind(ending):
    base, pool = written(PEOPLE, f"people{ending}"), written(MORE, f"more{ending}")
    plan = planned(base, {"w_yes": 3}, {"m_yes": 1})
    result = carried_out(plan, base, pool, f"out{ending}")
    before, after = rows_of(base), rows_of(f"out{ending}")
    assert after.schema == before.schema
    ids = list(map(int, after["id"].to_pylist()))
    assert ids[:7] in ([1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 4, 5, 6, 7])
    assert after["sex"].to_pylist()[7:] == ["w", "w", "w"]
    assert after["hired"].to_pylist()[7:] == ["yes", "yes", "yes"]
    assert len(set(ids)) == 10
    assert (result.added, result.removed, result.n_rows, result.as_planned) == (3, 1, 10, True)
    assert result.after == DUCKDB.counts(locate(f"out{ending}"), REQUEST)
    assert result.after == plan.counts + plan.add - plan.delete
    assert result.exit_code == 0


def test_both_engines_write_the_same(files):
    plan = planned("people.csv", {"w_yes": 3, "m_no": 2}, {"m_yes": 1, "w_no": 1})
    for name, engine in ENGINES.items():
        carried_out(plan, output=f"{name}.csv", engine=engine, seed=3)
    assert Path("duckdb.csv").read_bytes() == Path("memory.csv").read_bytes()
    texts = {Path(f"{name}.csv.changes.csv").read_text("utf-8") for name in ENGINES}
    assert len(texts) == 1


def test_rows_without_a_label_stay(files, engine):
    everything = {"m_yes": 2, "w_no": 2, "w_yes": 1, "m_no": 1, "none_no": 1}
    del everything["m_no"]
    result = carried_out(planned("people.csv", {}, everything), pool=None, engine=engine)
    assert rows_of("out.csv")["id"].to_pylist() == ["6", "7"]
    assert (result.after.dropped, result.n_rows) == (1, 2)


def test_nothing_to_do_copies_the_table(files, engine):
    result = carried_out(planned("people.csv"), pool=None, engine=engine)
    assert Path("out.csv").read_bytes() == Path("people.csv").read_bytes()
    assert changes("out.csv.changes.csv") == []
    assert result.max_abs_ub_after == result.max_abs_ub_before


def test_values_of_csv_stay_as_they_are_written():
    Path("people.csv").write_text(
        'id,sex,hired,pay\n007,w,yes,1.50\n1e3,m,no," 2,5 "\n,w,no,NULL\n+4,m,yes,"say ""hi"""\n',
        "utf-8",
    )
    Path("more.csv").write_text("pay;hired;sex;id\n0.10;yes;w;00\n", "utf-8")
    carried_out(planned("people.csv", {"w_yes": 1}))
    assert Path("out.csv").read_text("utf-8") == (
        Path("people.csv").read_text("utf-8") + "00,w,yes,0.10\n"
    )


def test_a_typed_pool_becomes_text_in_a_table_of_text():
    Path("people.csv").write_text("sex,hired,age,pay,day\nw,no,30,1.5,\nm,yes,4,2.0,x\n", "utf-8")
    more = {
        "sex": ["w", "w"],
        "hired": ["yes", "yes"],
        "age": pa.array([31, None]),
        "pay": [1e20, float("nan")],
        "day": [datetime.date(2020, 1, 2)] * 2,
    }
    pq.write_table(pa.table(more), "more.parquet")
    carried_out(planned("people.csv", {"w_yes": 2}), pool="more.parquet")
    assert sorted(Path("out.csv").read_text("utf-8").splitlines()[3:]) == [
        "w,yes,,,2020-01-02",
        "w,yes,31,1e+20,2020-01-02",
    ]


def test_text_becomes_what_the_base_holds():
    base = {
        "sex": pa.array(["w", "m"]).dictionary_encode(),
        "hired": ["yes", "no"],
        "age": pa.array([1, 2], pa.int16()),
        "paid": pa.array([True, None]),
        "day": pa.array([datetime.date(2020, 1, 2), None]),
        "pay": [0.5, None],
    }
    pq.write_table(pa.table(base), "people.parquet")
    Path("more.csv").write_text("sex,hired,age,paid,day,pay\nw,no,007,false,2021-03-04,1e3\n")
    carried_out(planned("people.parquet", {"w_no": 1}), "people.parquet", output="out.parquet")
    found = pq.read_table("out.parquet")
    types = [str(t) for t in found.schema.types]
    assert types == ["string", "string", "int16", "bool", "date32[day]", "double"]
    day = datetime.date(2021, 3, 4)
    assert found.to_pylist()[-1] == dict(
        zip(found.column_names, ["w", "no", 7, False, day, 1000.0], strict=True)
    )


@pytest.mark.parametrize(
    ("kind", "bad", "shown"),
    [
        (pa.int64(), "many", "'many', which cannot be converted to int64"),
        (pa.int8(), 300, "'300', which cannot be converted to int8"),
        (pa.int64(), 2.5, "'2.5', which cannot be converted to int64"),
        (pa.bool_(), 2, "'2', which cannot be converted to bool"),
        (pa.date32(), "soon", "'soon', which cannot be converted to date32"),
    ],
)
def test_a_value_that_cannot_be_cast_is_named_and_nothing_written(kind, bad, shown):
    base = pa.table({"sex": ["w", "m"], "hired": ["yes", "no"], "x": pa.nulls(2, kind)})
    pq.write_table(base, "people.parquet")
    good = "1" if isinstance(bad, str) and kind == pa.int64() else None
    more = pa.table({"sex": ["w"] * 9, "hired": ["no"] * 9, "x": [good] * 6 + [bad] + [good] * 2})
    pq.write_table(more, "more.parquet")
    plan = planned("people.parquet", {"w_no": 9})
    with pytest.raises(InputError, match=r"column 'x' of more\.parquet holds") as caught:
        carried_out(plan, "people.parquet", "more.parquet", "out.parquet")
    assert shown in str(caught.value)
    assert sorted(p.name for p in Path().iterdir()) == ["more.parquet", "people.parquet"]


def test_a_frame_can_be_repaired_from_a_frame(engine):
    result = apply_plan(
        planned(PEOPLE, {"w_yes": 2}), locate(PEOPLE), locate(MORE), "out.csv", engine=engine
    )
    assert result.as_planned
    assert {line["source"] for line in changes("out.csv.changes.csv")} == {"the frame"}


def test_the_table_itself_may_be_replaced(files, engine):
    plan = planned("people.csv", {"w_yes": 2}, {"m_yes": 1})
    carried_out(plan, output="people.csv", engine=engine)
    assert DUCKDB.counts(locate("people.csv"), REQUEST) == plan.counts + plan.add - plan.delete
    with pytest.raises(InputError, match="differ from those the plan was made for"):
        carried_out(plan, output="people.csv", engine=engine)


def test_rows_of_bins():
    ages = pa.table({"age": list(range(20)), "hired": ["yes", "no"] * 10})
    pq.write_table(ages, "people.parquet")
    pq.write_table(pa.table({"age": [3, 9, 15, 16, 99], "hired": ["yes"] * 5}), "more.parquet")
    request = CountRequest(sensitive=("age",), label="hired", bins={"age": 2})
    counts = DUCKDB.counts(locate("people.parquet"), request)
    top = counts.axis("age").values[-1]
    add = Counts.from_mapping({(top, "yes"): 4}, sensitive=["age"], label="hired")
    plan = Plan(counts, add, counts - counts)
    result = carried_out(plan, "people.parquet", "more.parquet", "out.parquet")
    assert result.as_planned
    added = pq.read_table("out.parquet")["age"].to_pylist()[20:]
    assert sorted(added) == [9, 15, 16, 99]
    assert {line["age"] for line in changes("out.parquet.changes.csv")} == {top}


def test_missing_values_are_cells_like_others(engine):
    Path("people.csv").write_text("sex,hired\n,yes\nw,no\n?,no\nm,yes\n", "utf-8")
    Path("more.csv").write_text("sex,hired\n?,yes\n,yes\nw,yes\n", "utf-8")
    request = CountRequest(sensitive=("sex",), label="hired", na=("?",))
    plan = planned("people.csv", {"none_yes": 2}, {"none_no": 1}, request)
    carried_out(plan, engine=engine)
    lines = Path("out.csv").read_text("utf-8").splitlines()
    assert lines[:4] == ["sex,hired", ",yes", "w,no", "m,yes"]
    assert sorted(lines[4:]) == [",yes", "?,yes"]
    assert [c["sex"] for c in changes("out.csv.changes.csv")] == ["", "", ""]


def test_a_pool_may_lack_labels_where_the_base_may_not():
    written(PEOPLE.slice(0, 4), "people.csv")
    written(PEOPLE.slice(4), "more.csv")
    request = CountRequest(
        sensitive=("sex",), label="hired", missing="raise", missing_label="raise"
    )
    assert carried_out(planned("people.csv", {"w_yes": 1}, request=request)).as_planned


# -------------------------------------------------------------------- which rows, how often


def test_the_same_seed_gives_the_same_rows_and_another_gives_others(files):
    plan = planned("people.csv", {"w_yes": 4})
    texts = []
    for i, seed in enumerate((0, 0, 1, 2)):
        carried_out(plan, output=f"out{i}.csv", seed=seed)
        texts.append(Path(f"out{i}.csv").read_text("utf-8"))
    assert texts[0] == texts[1]
    assert len(set(texts)) == 3


def test_equal_rows_are_added_as_often_as_they_are_there(engine):
    Path("people.csv").write_text("sex,hired\nw,no\nw,no\nw,no\nm,yes\n", "utf-8")
    Path("more.csv").write_text("sex,hired\n" + "w,yes\n" * 3, "utf-8")
    plan = planned("people.csv", {"w_yes": 3}, {"w_no": 2})
    result = carried_out(plan, engine=engine)
    lines = Path("out.csv").read_text("utf-8").splitlines()
    assert lines == ["sex,hired", "w,no", "m,yes", "w,yes", "w,yes", "w,yes"]
    assert result.as_planned
    places = collections.Counter(
        (c["action"], c["source"], c["row"]) for c in changes("out.csv.changes.csv")
    )
    assert set(places.values()) == {1}  # no row twice
    assert {p for a, _, p in places if a == "add"} == {"0", "1", "2"}
    with pytest.raises(PoolTooSmall):
        carried_out(planned("people.csv", {"w_yes": 4}), engine=engine)


def test_the_list_of_changes_names_every_row(files, engine):
    plan = planned("people.csv", {"w_yes": 2, "m_no": 1}, {"w_no": 1, "m_yes": 2})
    result = carried_out(plan, engine=engine, seed=5)
    listed = changes(result.sidecar)
    assert list(listed[0]) == ["action", "source", "row", "md5", "sex", "hired"]
    actions = [(c["action"], c["source"], c["sex"], c["hired"]) for c in listed]
    assert collections.Counter(actions) == {
        ("remove", "people.csv", "w", "no"): 1,
        ("remove", "people.csv", "m", "yes"): 2,
        ("add", "more.csv", "w", "yes"): 2,
        ("add", "more.csv", "m", "no"): 1,
    }
    places = {"people.csv": rows_of("people.csv"), "more.csv": rows_of("more.csv")}
    for line in listed:
        row = places[line["source"]].slice(int(line["row"]), 1).to_pylist()[0]
        assert (row["sex"], row["hired"]) == (line["sex"], line["hired"])
        text = ",".join(f"{len(v)}:{v}" for v in row.values())
        assert line["md5"] == hashlib.md5(text.encode()).hexdigest()
    gone = {int(c["row"]) for c in listed if c["action"] == "remove"}
    stays = [i for i in range(8) if i not in gone]
    out = rows_of("out.csv")["id"].to_pylist()
    assert out[: len(stays)] == list(map(str, stays))
    added = [
        places["more.csv"]["id"][int(c["row"])].as_py() for c in listed if c["action"] == "add"
    ]
    assert out[len(stays) :] == added


def test_the_list_names_no_folder_of_the_machine(files, tmp_path):
    plan = planned("people.csv", {"w_yes": 1}, {"w_no": 1})
    carried_out(plan, tmp_path / "people.csv", tmp_path / "more.csv", sidecar="list.csv")
    assert {c["source"] for c in changes("list.csv")} == {"people.csv", "more.csv"}
    assert str(tmp_path) not in Path("list.csv").read_text("utf-8")
    assert not Path("out.csv.changes.csv").exists()


def test_attributes_may_be_called_like_columns_of_the_list():
    Path("people.csv").write_text("row,md5\na,1\nb,2\n", "utf-8")
    Path("more.csv").write_text("row,md5\na,2\n", "utf-8")
    request = CountRequest(sensitive=("row",), label="md5")
    carried_out(planned("people.csv", {"a_2": 1}, request=request))
    header = Path("out.csv.changes.csv").read_text("utf-8").splitlines()[0]
    assert header == "action,source,row_,md5_,row,md5"


# ----------------------------------------------------------------------------- refusals


def refused(kind, match, plan, *args, **options):
    there = {p: p.read_bytes() for p in Path().iterdir()}
    with pytest.raises(kind, match=match) as caught:
        carried_out(plan, *args, **options)
    assert {p: p.read_bytes() for p in Path().iterdir()} == there
    assert str(caught.value)[-1] in ".?"


def test_other_counts_are_refused_and_forced(files, engine):
    plan = planned("people.csv", {"w_yes": 2})
    written(PEOPLE.slice(1), "people.csv")
    refused(
        InputError,
        r"6 rows instead of 7, and sex=m, hired=yes has 1 instead of 2\. .* `force`",
        plan,
        engine=engine,
    )
    result = carried_out(plan, engine=engine, force=True)
    assert result.as_planned
    assert result.n_rows == 9


def test_a_cell_cannot_lose_more_rows_than_it_has(files):
    plan = planned("people.csv", {}, {"m_yes": 2})
    written(PEOPLE.slice(1), "people.csv")
    match = "deletes 2 rows of sex=m, hired=yes, but people.csv has only 1"
    refused(CountsError, match, plan, pool=None, force=True)


def test_a_pool_that_is_too_small(files, engine):
    plan = planned("people.csv", {"w_yes": 12, "m_no": 30, "m_yes": 1})
    match = (
        "more.csv has too few rows for the plan: sex=m, hired=no needs 30 and has 10 and "
        "sex=w, hired=yes needs 12 and has 10; plan again with `available_from='more.csv'`, or set "
        "`partial` to take what there is"
    )
    refused(PoolTooSmall, match, plan, engine=engine)
    result = carried_out(plan, engine=engine, partial=True)
    assert (result.added, result.as_planned, result.exit_code) == (21, False, 1)
    assert result.shortfall == (
        (Group({"sex": "m", "hired": "no"}), 30, 10),
        (Group({"sex": "w", "hired": "yes"}), 12, 10),
    )
    assert result.after.of("sex=w, hired=yes") == 11
    text = result.text()
    assert "more.csv has too few rows: sex=m, hired=no needs 30 and has 10" in text
    assert "out.csv is not as planned: 28 rows instead of 50" in text
    assert len(changes("out.csv.changes.csv")) == 21


def test_many_cells_that_lack_rows_are_not_all_named():
    names = [f"g{i}" for i in range(9)]
    table = pa.table({"sex": names, "hired": ["yes"] * 9})
    written(table, "people.csv")
    written(table.slice(0, 1), "more.csv")
    plan = planned("people.csv", {f"g{i}_yes": i + 1 for i in range(9)})
    refused(PoolTooSmall, "g8, hired=yes needs 9 and has 0, .* and so on for 3 more cells", plan)


def test_a_pool_of_fewer_columns(files):
    plan = planned("people.csv", {"w_yes": 2})
    written(MORE.drop_columns(["id"]), "more.csv")
    refused(
        InputError, "more.csv does not have 'id' of people.csv; it has: beside, hired, sex", plan
    )
    carried_out(plan, missing_columns="null")
    assert rows_of("out.csv")["id"].to_pylist()[8:] == [None, None]
    written(MORE.drop_columns(["sex"]), "more.csv")
    for policy in ("refuse", "null"):
        refused(ColumnNotFound, "'sex' not found in more.csv", plan, missing_columns=policy)
    refused(InputError, "`missing_columns` must be one of", plan, missing_columns="nul")


def test_no_pool_but_rows_to_add(files):
    plan = planned("people.csv", {"w_yes": 2})
    refused(InputError, "the plan adds 2 rows; name the table that has them", plan, pool=None)


def test_a_pool_that_is_not_needed_is_not_read(files):
    Path("more.csv").write_text("not even a table", "utf-8")
    assert carried_out(planned("people.csv", {}, {"m_yes": 1})).removed == 1


@pytest.mark.parametrize("name", ["people.csv", "./people.csv", "link.csv", "hard.csv", "*.csv"])
def test_a_table_is_not_its_own_pool(name):
    written(PEOPLE, "people.csv")
    if name == "link.csv":
        Path(name).symlink_to("people.csv")
    if name == "hard.csv":
        os.link("people.csv", name)
    refused(InputError, "its rows would occur twice", planned("people.csv"), pool=name)


def test_a_frame_is_not_its_own_pool():
    with pytest.raises(InputError, match="its rows would occur twice"):
        apply_plan(planned(PEOPLE), locate(PEOPLE), locate(PEOPLE), "out.csv", engine=DUCKDB)


def test_tables_of_one_database(engine):
    import duckdb

    with duckdb.connect("data.duckdb") as connection:
        for name, table in (("people", PEOPLE), ("more", MORE)):
            connection.register("rows", table)
            connection.execute(f"CREATE TABLE {name} AS FROM rows")
    plan = planned("data.duckdb::people", {"w_yes": 2})
    for pool in ("data.duckdb::people", "data.duckdb::main.people"):
        refused(InputError, "would occur twice", plan, "data.duckdb::people", pool)
    assert carried_out(plan, "data.duckdb::people", "data.duckdb::more").as_planned
    assert {c["source"] for c in changes("out.csv.changes.csv")} == {"data.duckdb::more"}


def test_what_may_not_be_written_over(files):
    plan = planned("people.csv", {"w_yes": 1})
    refused(InputError, "more.csv is the pool", plan, output="more.csv")
    for sidecar in ("out.csv", "people.csv", "more.csv"):
        refused(InputError, "list of changes cannot be written to", plan, sidecar=sidecar)
    refused(InputError, "extension that cannot be written", plan, output="out.xlsx")
    refused(InputError, "does not exist; create it first", plan, output="no/out.csv")
    refused(InputError, "does not exist; create it first", plan, sidecar="no/list.csv")


def test_a_part_of_the_base_is_not_written_over(files):
    plan = planned("p*.csv", {"w_yes": 1})
    written(PEOPLE, "p2.csv")
    refused(InputError, "p2.csv is only a part", plan, "p*.csv", output="p2.csv", force=True)


def test_an_attribute_that_is_named_like_nothing_in_the_base(files):
    plan = planned("people.csv", {"w_yes": 1})
    written(PEOPLE.rename_columns(["id", "gender", "hired"]), "people.csv")
    refused(ColumnNotFound, "'sex' not found in people.csv", plan)


# -------------------------------------------------------------------- whole or not at all


@pytest.mark.parametrize("failing", ["engine.write", "engine.counts", "replace", "listing"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_what_fails_on_the_way_leaves_nothing(files, monkeypatch, failing, error):
    plan = planned("people.csv", {"w_yes": 2}, {"m_yes": 1})
    Path("out.csv").write_text("old", "utf-8")
    there = {p: p.read_bytes() for p in Path().iterdir()}
    engine = engines()["duckdb"]()

    def fail(*_, **__):
        raise error("no room")

    count = engine.counts

    def last(source, request):
        return fail() if source.name == "out.csv" else count(source, request)

    what = {
        "engine.write": (engine, "write", fail),
        "engine.counts": (engine, "counts", last),
        "replace": (Path, "replace", fail),
        "listing": (Path, "write_text", fail),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*what[failing])
        with pytest.raises(error):
            carried_out(plan, engine=engine)
    assert {p: p.read_bytes() for p in Path().iterdir()} == there


PROGRAM = """
    import sys, time
    sys.path.insert(0, {tests!r})
    from test_apply import DUCKDB, cells, locate, planned, apply_plan

    write = DUCKDB.write
    def slow(*given):
        write(*given)
        print("writing", flush=True)
        time.sleep(30)
    DUCKDB.write = slow
    plan = planned("people.csv", {{"w_yes": 2}}, {{"m_yes": 1}})
    apply_plan(plan, locate("people.csv"), locate("more.csv"), "people.csv", engine=DUCKDB)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_while_writing_the_table_is_as_it_was(files, how):
    before = Path("people.csv").read_bytes()
    here = str(Path(__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM).format(tests=here)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(here).parent)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    time.sleep(0.1)
    process.send_signal(how)
    process.communicate(timeout=20)
    assert Path("people.csv").read_bytes() == before
    # Only who is killed outright leaves temporary files, and these are hidden.
    left = [p.name for p in Path().iterdir() if how == signal.SIGINT or p.name[0] != "."]
    assert sorted(left) == ["more.csv", "people.csv"]


def test_a_file_that_reads_otherwise_is_not_as_planned():
    base = pa.table({"sex": ["", "w", "m"], "hired": ["yes", "no", "yes"]})
    pq.write_table(base, "people.parquet")
    plan = planned("people.parquet", {}, {"w_no": 1})
    result = carried_out(plan, "people.parquet", None, "out.csv")  # CSV has no empty text
    assert not result.as_planned
    assert (
        "out.csv is not as planned: 2 rows instead of 2, and sex='', hired=yes has 0 instead of 1"
        in (result.text())
    )


# ------------------------------------------------------------------------------ results


def test_what_is_reported(files):
    plan = planned("people.csv", {"w_yes": 2}, {"w_no": 1})
    steps = []
    result = carried_out(plan, seed=4, progress=lambda *step: steps.append(step))
    assert [title.split()[0] for title, _ in steps] == (
        ["counting", "counting", "choosing", "reading", "writing", "counting"]
    )
    assert [share for _, share in steps] == sorted(share for _, share in steps)
    assert result.text() == str(result) == "\n".join(result.sentences)
    first, second, last = result.sentences
    assert first == (
        "Wrote out.csv: people.csv with 2 rows added from more.csv and 1 row removed, 9 rows in all."
    )
    assert second == (
        "The largest |UB| was 0.333 in people.csv and is 0.167 in out.csv, as counted there."
    )
    assert last == "Every row added or removed is listed in out.csv.changes.csv."
    data = json.loads(result.to_json())
    assert data == result.to_dict()
    assert data["schema"] == "equipoise.apply/1"
    wanted = {"output": "out.csv", "added": 2, "removed": 1, "seed": 4, "as_planned": True}
    assert wanted.items() <= data.items()
    assert (data["n_before"], data["n_after"], data["shortfall"]) == (7, 8, [])


def test_the_function_people_call(files):
    plan = planned("people.csv", {"w_yes": 2}, {"w_no": 1})
    shares = []
    result = eq.apply(
        plan,
        to="people.csv",
        pool=MORE,
        output="out.parquet",
        progress=lambda _, share: shares.append(share),
    )
    assert isinstance(result, eq.Applied)
    assert (result.pool, result.as_planned) == ("the frame", True)
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    with pytest.raises(InputError, match="does not exist"):
        eq.apply(plan, to="people.csv", pool="no.csv", output="out.parquet")


def test_other_encodings_are_read_and_utf8_is_written():
    for name, text in (
        ("people.csv", "sex;hired\nfrü;ja\nm;nein\n"),
        ("more.csv", "sex;hired\nm;ja"),
    ):
        Path(name).write_text(text, "latin-1")
    counts = eq.count("people.csv", sensitive_features="sex", label="hired", encoding="latin-1")
    plan = Plan(counts, cells(m_ja=1), counts - counts)
    eq.apply(plan, to="people.csv", pool="more.csv", output="out.csv", encoding="latin-1")
    assert Path("out.csv").read_text("utf-8") == "sex,hired\nfrü,ja\nm,nein\nm,ja\n"


def test_a_base_of_several_files(files):
    Path("parts").mkdir()
    for i in range(3):
        written(PEOPLE, f"parts/{i}.csv")
    plan = planned("parts", {"w_yes": 2}, {"m_no": 2})
    result = carried_out(plan, "parts")
    assert result.n_rows == 24
    stays = [i for i in range(24) if i not in {int(c["row"]) for c in changes(result.sidecar)[:2]}]
    assert rows_of("out.csv")["id"].to_pylist()[:22] == [str(i % 8) for i in stays]


# --------------------------------------------------------------------------- properties

VALUES = [t for t in NASTY if t and "\x00" not in t][:12]
BITS = st.tuples(
    st.sampled_from([*VALUES[:3], None]), st.sampled_from(["yes", "no"]), st.sampled_from(VALUES)
)


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("name", list(ENGINES))
def test_after_is_before_and_what_was_added_less_what_was_deleted(tmp_path_factory, name, data):
    engine = ENGINES[name]
    base, pool = (
        table_of(data.draw(st.lists(BITS, min_size=1, max_size=10)), ["sex", "hired", "x"]),
        table_of(data.draw(st.lists(BITS, min_size=1, max_size=10)), ["sex", "hired", "x"]),
    )
    base = pa.concat_tables([base, table_of([("w", "yes", "end")], base.column_names)])
    before, there = (engine.counts(locate(t), REQUEST) for t in (base, pool))
    plan = Plan(before, drawn_part(data, there), drawn_part(data, before))
    folder = tmp_path_factory.mktemp("applied")
    files = []
    for stem, table in (("base", base), ("pool", pool)):
        files.append(folder / f"{stem}.csv")
        write_rows(engine, table, files[-1])
    if not (before - plan.delete + plan.add).n:
        return
    result = apply_plan(plan, *map(locate, files), folder / "out.csv", engine=engine, seed=3)
    assert result.as_planned
    assert result.after == before + plan.add - plan.delete
    assert engine.counts(locate(folder / "out.csv", delimiter=","), REQUEST) == result.after
    out = lines_of(engine, folder / "out.csv")
    stay, added = out[: len(out) - plan.add.n], out[len(out) - plan.add.n :]
    assert collections.Counter(stay) <= collections.Counter(lines_of(engine, files[0]))
    assert collections.Counter(added) <= collections.Counter(lines_of(engine, files[1]))
    rest = iter(lines_of(engine, files[0]))
    assert all(line in rest for line in stay)  # in the order of the base
    listed = changes(folder / "out.csv.changes.csv")
    assert len(listed) == plan.add.n + plan.delete.n
    assert len({(c["source"], c["row"]) for c in listed}) == len(listed)


def table_of(rows, names):
    return pa.table([pa.array(c, pa.string()) for c in zip(*rows, strict=True)], names=names)


def drawn_part(data, counts):
    """Some of the rows of counts."""
    found = {c: data.draw(st.integers(0, n)) for c, (n,) in counts._cells().items()}
    return Counts.from_mapping(found, sensitive=["sex"], label="hired")


def lines_of(engine, path):
    nothing = cells(w_yes=0)
    found = engine.rows(locate(path, delimiter=","), REQUEST, nothing, rest=True)
    return list(zip(*(map(as_value, c.to_pylist()) for c in found.columns), strict=True))


def test_missing_is_an_object_here_too():
    assert cells(none_yes=1).axis("sex").values == (MISSING,)
