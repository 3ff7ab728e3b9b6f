"""Checking a repair whose tables and ledger are in a database, beside files or with both."""

from __future__ import annotations

import contextlib
import hmac
import json
import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import equipoise as eq
import servers
from equipoise.cli.app import run
from equipoise.counts import CountRequest, Counts
from equipoise.engines.base import Column, Part
from equipoise.engines.postgres import PostgresEngine
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import InputError, SourceNotFound
from equipoise.lake.lake import Lake
from equipoise.lake.repair.ledger import ledger_table, plain_place, stored_ledger
from equipoise.lake.verify import columns
from equipoise.lake.verify.tables import CheckedTable
from equipoise.lake.verify.views import ComparedRows, RowComparison
from held_values import VALUES, readings

ASKED = {"sensitive_features": ["sex"], "label": "hired"}
KINDS = {
    "number": pa.int64(),
    "sex": pa.string(),
    "hired": pa.string(),
    "pay": pa.float64(),
    "note": pa.string(),
}
SIZES = {("m", "yes"): 8, ("m", "no"): 4, ("w", "yes"): 2, ("w", "no"): 6}
PLAN = {
    "tolerance": 0.1,
    "allow": "both",
    "cost_add": {"sex=m": 5},
    "reference": "original",
}
TABLES = ("base", "repaired", "ledger")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def person(number, sex, hired):
    note = "same" if number % 4 else None
    return dict(zip(KINDS, (number, sex, hired, number / 7, note), strict=True))


def table_of(rows):
    return pa.Table.from_pylist(rows, pa.schema(list(KINDS.items())))


def md5s_of(table):
    none = Counts.from_mapping({}, sensitive=["sex"], label="hired")
    request = CountRequest(sensitive=("sex",), label="hired")
    found = shared_engine().rows(locate(table), request, none, rest=True, located=True)
    return found["md5"].to_pylist()


class Postgres:
    """Tables of PostgreSQL, made of frames."""

    scheme = "postgresql"

    def __init__(self, address):
        self.address_of_all = address

    def address(self, name, more=""):
        return f"{self.address_of_all}&table={name}{more}"

    def put(self, name, rows):
        kinds = {
            "int64": "bigint",
            "double": "double precision",
            "float": "real",
            "bool": "boolean",
        }
        columns = ", ".join(f"{f.name} {kinds.get(str(f.type), 'text')}" for f in rows.schema)
        with psycopg.connect(self.address_of_all) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {name}".encode())
            connection.execute(f"CREATE TABLE {name} ({columns})".encode())
            with connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copy:
                for line in rows.to_pylist():
                    copy.write_row(list(line.values()))


class Spark:
    """Tables of Spark's catalog, made of frames."""

    scheme = "spark"

    def __init__(self, session, schema):
        self.session, self.schema = session, schema

    def address(self, name, more=""):
        return f"spark:{self.schema}.{name}{more.replace('&', '?', 1)}"

    def put(self, name, rows):
        self.session.sql(f"DROP TABLE IF EXISTS {self.schema}.{name}")
        self.session.createDataFrame(rows).write.saveAsTable(f"{self.schema}.{name}")


@contextlib.contextmanager
def in_spark():
    session, schema = servers.spark_session(), f"verified_{uuid.uuid4().hex}"
    session.sql(f"CREATE DATABASE {schema}")
    try:
        yield Spark(session, schema)
    finally:
        session.sql(f"DROP DATABASE {schema} CASCADE")


@pytest.fixture
def postgres():
    with servers.new_database() as address:
        yield Postgres(address)


@pytest.fixture
def spark():
    with in_spark() as made:
        yield made


class Repair:
    """A repair written by hand, each of whose tables is in a database or a file."""

    def __init__(self, database, stored=TABLES, *, key=None, by="", others=0):
        self.database, self.stored, self.key, self.by = database, stored, key, by
        cells = [cell for cell, n in SIZES.items() for _ in range(n)]
        self.base = [person(i, *cell) for i, cell in enumerate(cells)]
        self.base += [self.base[5], self.base[5]]  # equal rows, unless they are known by a key
        if by:
            self.base = self.base[:-2]
        self.base += [person(1000 + i, None, "yes") for i in range(others)]
        self.put("base", table_of(self.base))
        counts = eq.count(table_of(self.base), **ASKED)
        eq.plan(counts, **PLAN).write("plan.json")
        self.fingerprint = counts.fingerprint
        self.gone, self.came = [], []
        for cell in json.loads(Path("plan.json").read_text())["cells"]:
            values = (cell["group"]["sex"], cell["label"])
            ours = [r for r in self.base if (r["sex"], r["hired"]) == values]
            self.gone += ours[::-1][: cell["delete"]]
            self.came += [person(100 + len(self.came) + i, *values) for i in range(cell["add"])]
        assert self.gone
        assert self.came
        self.rows = list(self.base)
        for row in self.gone:
            self.rows.remove(row)
        self.rows += self.came
        self.put("repaired", table_of(self.rows))
        self.lines = [*self.removals(), *self.additions()]
        self.put_ledger()

    def put(self, name, rows):
        if name in self.stored:
            self.database.put(name, rows)
        else:
            pq.write_table(rows, f"{name}.parquet")

    def put_ledger(self, **about):
        made = ledger_table(self.lines, {"base": "base", "counts": self.fingerprint, **about})
        self.put("ledger", stored_ledger(made) if "ledger" in self.stored else made)

    def line(self, action, row, place, md5, person):
        hashed = md5
        if self.key is not None:
            hashed = hmac.digest(self.key, md5.encode(), "sha256").hex()
        cell = {"sex": person["sex"], "hired": person["hired"]}
        same = {"snapshot": "0" * 64, "mapping": "{}", "cell": json.dumps(cell)}
        return same | {
            "action": action,
            "row": row,
            "source": "more.csv" if action == "add" else "base",
            "place": place,
            "source_hash": hashed,
            "hash": hashed,
        }

    def removals(self):
        md5s, seen = md5s_of(table_of(self.gone)), []
        for md5, row in zip(md5s, self.gone, strict=True):
            seen.append(md5)
            place = [i for i, r in enumerate(self.base) if r == row][seen.count(md5) - 1]
            if "base" in self.stored:
                place = str(row["number"]) if self.by else f"{md5}#{seen.count(md5)}"
            yield self.line("remove", None, place, md5, row)

    def additions(self):
        first = len(self.rows) - len(self.came)
        for i, (md5, row) in enumerate(zip(md5s_of(table_of(self.came)), self.came, strict=True)):
            at = None if "repaired" in self.stored else first + i
            yield self.line("add", at, i, md5, row)

    def named(self, name):
        if name not in self.stored:
            return f"{name}.parquet"
        return self.database.address(name, self.by if name == "base" else "")

    def verified(self, **options):
        return eq.verify(
            self.named("repaired"),
            base=self.named("base"),
            plan="plan.json",
            ledger=self.named("ledger"),
            hash_key=self.key,
            **options,
        )

    def change(self, name, rows):
        self.put(name, table_of(rows))
        return broken(self.verified())


def broken(found):
    return [f.name for f in found.findings if not f.holds]


def sentence(found, name):
    return next(f for f in found.findings if f.name == name).sentence


# ----------------------------------------------------------------------------- what is whole

MIXED = [
    TABLES,
    ("base",),
    ("repaired",),
    ("ledger",),
    ("base", "repaired"),
    ("repaired", "ledger"),
]


@pytest.mark.parametrize("stored", MIXED, ids="+".join)
def test_tables_and_ledger_may_be_in_a_database_or_in_files(postgres, stored):
    repair = Repair(postgres, stored)
    assert broken(repair.verified()) == []
    row = repair.rows[3]
    assert repair.change(
        "repaired", [row | {"pay": 77.0} if r is row else r for r in repair.rows]
    ) == [
        "kept",
        "added",
    ]


def test_rows_of_the_base_may_be_known_by_a_key(postgres):
    repair = Repair(postgres, by="&id=number")
    assert broken(repair.verified()) == []
    lost = repair.rows[0]
    assert "kept" in repair.change("repaired", repair.rows[1:])
    assert f"Row {lost['number']} of" in sentence(repair.verified(), "kept")
    repair.by = ""
    with pytest.raises(
        InputError, match=r"knows rows of the base by a key \(\d+\); name its column"
    ):
        repair.verified()


@pytest.mark.parametrize("stored", [TABLES, ("repaired",), ("base",)], ids="+".join)
def test_hashes_may_be_made_with_a_key(postgres, stored):
    repair = Repair(postgres, stored, key=b"secret")
    assert broken(repair.verified()) == []
    repair.key = b"other"
    assert broken(repair.verified()) == ["kept", "added"]
    repair.key = None
    with pytest.raises(InputError, match="were made with a key"):
        repair.verified()


def test_an_added_row_that_equals_a_removed_one_is_found_with_a_key(postgres):
    repair = Repair(postgres, key=b"secret")
    again = repair.gone[0]
    repair.rows.append(again)
    repair.put("repaired", table_of(repair.rows))
    (md5,) = md5s_of(table_of([again]))
    repair.lines.append(repair.line("add", None, 999, md5, again))
    repair.put_ledger()
    assert broken(repair.verified()) == ["cells", "certificate"]  # which the plan does not add


def test_a_base_in_postgres_and_a_repaired_csv_file_are_compared_by_what_they_say(postgres):
    repair = Repair(postgres, ("base",))
    shared_engine().write("repaired.csv", [Part(locate(table_of(repair.rows)))])
    md5s = md5s_of("repaired.csv")
    for line in repair.lines:
        if line["action"] == "add":
            line["hash"] = md5s[line["row"]]
    repair.put_ledger()
    files = {"base": repair.named("base"), "plan": "plan.json", "ledger": "ledger.parquet"}
    assert broken(eq.verify("repaired.csv", **files)) == []
    text = Path("repaired.csv").read_text()
    assert "0.14285714285714285" in text
    for was, becomes in [("0.14285714285714285", "0.1428571428571428"), ("same", "other")]:
        Path("repaired.csv").write_text(text.replace(was, becomes, 1))
        assert broken(eq.verify("repaired.csv", **files)) == ["kept", "added"]


# ---------------------------------------------------------------------------- what is changed


def tampered(repair):
    """Each kind of change, and the checks that must not hold."""
    rows = repair.rows
    first, came = rows[0], repair.came[0]
    yield "a value of a row that stayed", [first | {"note": "x"}, *rows[1:]], {"kept", "added"}
    yield "a value that is missing", [first | {"pay": None}, *rows[1:]], {"kept", "added"}
    yield "an added row twice", [*rows, came], {"added", "cells"}
    yield "a row that stayed twice", [*rows, first], {"added", "cells"}
    yield "a row missing", rows[1:], {"kept", "cells"}
    yield "an added row missing", [r for r in rows if r is not came], {"added", "cells"}
    changed = [r | {"pay": 1.5} if r is came else r for r in rows]
    yield "a value of an added row", changed, {"added"}
    other = next(r for r in rows if r["note"] != first["note"])
    swap = {first["number"]: other["note"], other["number"]: first["note"]}
    swapped = [r | {"note": swap.get(r["number"], r["note"])} for r in rows]
    yield "two values swapped", swapped, {"kept", "added"}


def require_found(repair, changes):
    for what, rows, names in changes:
        assert names <= set(repair.change("repaired", rows)), what
    assert repair.change("repaired", repair.rows) == []


def test_whatever_is_changed_in_the_repaired_table_is_found(postgres):
    repair = Repair(postgres)
    require_found(repair, tampered(repair))


def test_a_changed_base_is_found(postgres):
    repair = Repair(postgres)
    base = repair.base
    assert repair.change("base", [base[0] | {"pay": 3.25}, *base[1:]]) == ["kept", "added"]
    gone = repair.gone[0]
    without = list(base)
    without.remove(gone)
    assert {"base", "kept"} <= set(repair.change("base", without))
    assert "base" in repair.change("base", [*base, person(500, "w", "no")])


@pytest.mark.parametrize(
    ("action", "change", "names"),
    [
        ("add", {"hash": "f" * 32}, {"added"}),
        ("add", {"cell": '{"sex": "w", "hired": "maybe"}'}, {"cells"}),
        ("add", {"source": None}, {"sources"}),
        ("remove", {"hash": "f" * 32}, {"kept"}),
        ("remove", {"place": f"{'f' * 32}#1"}, {"kept"}),
        ("remove", {"cell": '{"sex": "x", "hired": "yes"}'}, {"cells"}),
    ],
)
def test_a_changed_line_of_the_ledger_is_found(postgres, action, change, names):
    repair = Repair(postgres)
    line = next(line for line in repair.lines if line["action"] == action)
    line |= change
    repair.put_ledger()
    assert names <= set(broken(repair.verified()))
    repair.lines.remove(line)
    repair.put_ledger()
    assert {"kept" if action == "remove" else "added"} <= set(broken(repair.verified()))
    repair.lines += [line, line]
    repair.put_ledger()
    assert broken(repair.verified())


def test_a_column_of_another_type_is_found(postgres):
    repair = Repair(postgres)
    rows = table_of(repair.rows)
    at = rows.column_names.index("number")
    repair.put("repaired", rows.set_column(at, "number", rows["number"].cast(pa.string())))
    found = repair.verified()
    assert "columns" in broken(found)
    assert "'number' is whole numbers in" in sentence(found, "columns")
    repair.put("repaired", rows.drop_columns("note"))
    found = repair.verified()
    assert {"kept", "added"} <= set(broken(found))
    assert "only one of them has 'note', and" in sentence(found, "kept")


# ---------------------------------------------------------------------------------- bad input


def test_a_ledger_that_is_not_there_is_named_with_near_ones(postgres, capsys):
    repair = Repair(postgres)
    arguments = ["verify", repair.named("repaired"), "--base", repair.named("base"), "--plan"]
    arguments += ["plan.json", "--ledger"]
    assert run([*arguments, postgres.address("legder")]) == 2
    assert "Did you mean 'ledger'" in capsys.readouterr().err
    assert run([*arguments, postgres.address("base")]) == 2
    assert "column 'action' not found in the ledger" in capsys.readouterr().err
    assert run([*arguments, repair.named("ledger")]) == 0
    assert "All 8 checks hold." in capsys.readouterr().out


def test_the_ledger_of_another_repair_is_refused(postgres):
    repair = Repair(postgres)
    repair.put_ledger(counts="of another table", output="others")
    with pytest.raises(InputError, match=r"is the ledger of another repair \(others\)"):
        repair.verified()


def test_tables_that_are_not_there_are_named(postgres):
    repair = Repair(postgres)
    with pytest.raises(SourceNotFound, match=r"no table 'repared'.*Did you mean 'repaired'"):
        eq.verify(
            postgres.address("repared"),
            base=repair.named("base"),
            plan="plan.json",
            ledger=repair.named("ledger"),
        )


# ------------------------------------------------------------------------------- what travels


@pytest.mark.slow
def test_the_base_does_not_travel(postgres):
    repair = Repair(postgres, others=20_000)
    engine = PostgresEngine()
    found = repair.verified(engine=engine)
    assert broken(found) == []
    (session,) = engine._sessions.values()
    whole = table_of(repair.base).nbytes
    assert 0 < session.fetched < whole / 50
    changed = [repair.rows[0] | {"pay": 77.0}, *repair.rows[1:]]
    repair.put("repaired", table_of(changed))
    assert broken(repair.verified(engine=engine)) == ["kept", "added"]
    assert session.fetched < whole / 10  # hashes of a few rows more, to name the one that differs
    engine.close()


# -------------------------------------------------------------------------------------- Spark


@pytest.mark.spark
def test_a_repair_is_verified_in_spark(spark):
    repair = Repair(spark)
    assert broken(repair.verified()) == []
    line = next(line for line in repair.lines if line["action"] == "remove")
    line["place"] = f"{'f' * 32}#1"
    repair.put_ledger()
    first, *others = repair.rows
    repair.put("repaired", table_of([first | {"note": "x"}, *others, repair.came[0]]))
    found = repair.verified()
    assert broken(found) == ["kept", "added", "cells"]
    md5s = md5s_of(table_of([first, first | {"note": "x"}]))
    for name, md5 in zip(("kept", "added"), md5s, strict=True):
        finding = next(f for f in found.findings if f.name == name)
        assert any(said.startswith(f"row {md5} of") for said in finding.examples)


@pytest.mark.spark
def test_a_repair_of_spark_and_files_is_verified(spark):
    repair = Repair(spark, ("base",), by="&id=number")
    assert broken(repair.verified()) == []
    other = [repair.rows[0] | {"pay": 77.0}, *repair.rows[1:]]
    assert repair.change("repaired", other) == ["kept", "added"]


# ------------------------------------------------------------------------- made and replayed


def changed(postgres, query):
    with psycopg.connect(postgres.address_of_all) as connection:
        connection.execute(query.encode())


@pytest.fixture
def repaired(postgres):
    """A table of PostgreSQL, repaired with rows of a file and of another table."""
    sizes = {("Male", "yes"): 30, ("Male", "no"): 10, ("Female", "yes"): 10, ("Female", "no"): 30}
    cells = [cell for cell, n in sizes.items() for _ in range(n)]
    postgres.put("people", table_of([person(i, *cell) for i, cell in enumerate(cells)]))
    more = [cell for cell in sizes for _ in range(8)]
    Path("lake").mkdir()
    pq.write_table(
        table_of([person(1000 + i, *cell) for i, cell in enumerate(more)]), "lake/more.parquet"
    )
    changed(postgres, "CREATE SCHEMA archive")
    postgres.put("archive.old", table_of([person(2000 + i, *cell) for i, cell in enumerate(more)]))
    lake = ["lake", f"{postgres.address_of_all}&schema=archive"]
    how = {
        "tolerance": 0.1,
        "allow": "both",
        "cost_delete": {"sex=Male": 0.3},
        "max_share_per_source": 0.6,
    }
    done = eq.repair(
        postgres.address("people"), Lake(lake), postgres.address("out"), **ASKED, **how
    )
    assert done.verification.ok, done.verification.text()
    assert done.plan.delete.n
    assert {share.name[-3:] for share in done.acquired.shares} == {"uet", "old"}
    return postgres, lake


@pytest.mark.slow
def test_a_repair_in_a_database_is_verified_and_replayed_from_the_shell(repaired, capsys):
    postgres, lake = repaired
    out, ledger = postgres.address("out"), postgres.address("out_ledger")
    files = ["--base", postgres.address("people"), "--plan", "out.plan.json", "--ledger", ledger]
    assert run(["verify", out, *files]) == 0
    assert run(["lake", "replay", ledger, *lake, "--repaired", out]) == 0
    assert "from 2 tables, and match the ledger" in capsys.readouterr().out
    changed(postgres, "UPDATE out SET pay = pay + 1 WHERE number BETWEEN 1000 AND 1999")
    assert run(["verify", out, *files]) == 1
    assert run(["lake", "replay", ledger, *lake, "--repaired", out]) == 1
    assert (
        "does not have all rows that the ledger lists from more.parquet" in capsys.readouterr().out
    )


@pytest.mark.slow
def test_a_source_in_a_database_that_changed_or_has_gone_is_told(repaired):
    postgres, lake = repaired
    ledger = postgres.address("out_ledger")
    changed(postgres, "INSERT INTO archive.old SELECT 9, 'w', 'yes', 1, 'new'")
    (said,) = Lake(lake).replay(ledger).problems
    assert "has changed since, but the" in said
    changed(postgres, "UPDATE archive.old SET pay = -1")
    (said,) = Lake(lake).replay(ledger).problems
    assert "differ from the ledger" in said
    assert "which does not exist" in said
    (said,) = Lake(lake[:1]).replay(ledger).problems
    assert "is no longer in the lake" in said
    with pytest.raises(SourceNotFound, match="Did you mean 'out_ledger'"):
        Lake(lake[:1]).replay(postgres.address("out_legder"))
    with pytest.raises(InputError, match="is not a ledger: it has no column 'action'"):
        Lake(lake[:1]).replay(postgres.address("people"))


@pytest.mark.slow
def test_a_condition_and_keys_of_rows_and_hashes_hold_together(postgres):
    sizes = {("Male", "yes"): 9, ("Male", "no"): 3, ("Female", "yes"): 3, ("Female", "no"): 9}
    cells = [cell for cell, n in sizes.items() for _ in range(n)]
    rows = [person(i, *cell) for i, cell in enumerate(cells)]
    postgres.put("people", table_of([*rows, person(500, "Male", "no")]))
    Path("lake").mkdir()
    more = table_of([person(100 + i, *cell) for i, cell in enumerate(cells)])
    pq.write_table(more, "lake/more.parquet")
    base, key = postgres.address("people", "&id=number"), b"secret"
    how = {"tolerance": 0.1, "allow": "both", "cost_delete": {"sex=Male": 0.3}, "where": "pay < 60"}
    out = postgres.address("out")
    done = eq.repair(base, Lake("lake"), out, **ASKED, **how, hash_key=key)
    assert done.verification.ok, done.verification.text()
    assert done.plan.delete.n
    assert done.acquired.added
    files = {"plan": "out.plan.json", "ledger": postgres.address("out_ledger"), "hash_key": key}
    assert Lake("lake").replay(files["ledger"], hash_key=key).ok
    with pytest.raises(InputError, match="made with a key; leave out the repaired table"):
        Lake("lake").replay(files["ledger"], repaired=out, hash_key=key)
    changed(postgres, "INSERT INTO out SELECT * FROM people WHERE number = 500")
    assert "does not satisfy the condition" in eq.verify(out, base=base, **files).text()
    changed(postgres, "DELETE FROM out WHERE number IN (500, (SELECT min(number) FROM out))")
    assert "kept" in broken(eq.verify(out, base=base, **files))


@pytest.mark.slow
def test_a_key_hides_the_hashes_that_rows_of_databases_are_known_by(postgres):
    sizes = {("Male", "yes"): 9, ("Male", "no"): 3, ("Female", "yes"): 3, ("Female", "no"): 9}
    cells = [cell for cell, n in sizes.items() for _ in range(n)]
    tables = {"people": 0, "more": 100}
    for name, first in tables.items():
        postgres.put(name, table_of([person(first + i, *c) for i, c in enumerate(cells)]))
    base, key = postgres.address("people"), b"secret"
    md5s = set()
    for name in tables:
        source = locate(postgres.address(name))
        counts = eq.count(source.name, **ASKED)
        rows = shared_engine().rows(source, counts.request_for_rows(), counts, located=True)
        md5s |= set(rows["md5"].to_pylist())
    assert len(md5s) == 2 * len(cells)
    lake = Lake(postgres.address("more"))
    how = {"tolerance": 0.1, "allow": "both", "cost_delete": {"sex=Male": 0.3}}
    done = eq.repair(base, lake, "out.parquet", **ASKED, **how, hash_key=key)
    assert done.verification.ok, done.verification.text()
    assert done.plan.delete.n
    assert done.acquired.added
    ledger = pq.read_table(done.acquired.ledger)
    assert not [md5 for md5 in md5s if md5 in str(ledger.to_pylist())]
    assert lake.replay(done.acquired.ledger, repaired="out.parquet", hash_key=key).ok
    assert "does not exist" in lake.replay(done.acquired.ledger, hash_key=b"other").text()
    files = {"plan": "out.parquet.plan.json", "ledger": done.acquired.ledger, "hash_key": key}
    assert eq.verify("out.parquet", base=base, **files).ok
    # Earlier versions wrote the hashes as they are.
    plain = [plain_place(n["place"], n["source_hash"], key) for n in ledger.to_pylist()]
    assert {place.partition("#")[0] for place in plain} <= md5s
    at = ledger.column_names.index("place")
    pq.write_table(ledger.set_column(at, "place", pa.array(plain)), done.acquired.ledger)
    assert eq.verify("out.parquet", base=base, **files).ok
    assert lake.replay(done.acquired.ledger, hash_key=key).ok


def require_readings(database, monkeypatch, names):
    values = VALUES.select(names)
    database.put("texts", values)
    engine, files = shared_engine(), locate(values)
    there = locate(database.address("texts"))
    kinds = []
    for source, most in ((files, 1000), (there, 0)):
        monkeypatch.setattr(columns, "_MANY", most)
        schema = engine.schema(source)
        table = CheckedTable("texts", source, engine, schema, None, None, "", None)
        kinds.append({c.name: readings(columns.HeldValues(table, c)) for c in schema})
    assert kinds[0] == kinds[1]


def test_values_of_a_database_are_read_as_those_of_files(postgres, monkeypatch):
    require_readings(postgres, monkeypatch, VALUES.column_names)


@pytest.mark.spark
def test_values_of_spark_are_read_as_those_of_files(spark, monkeypatch):
    require_readings(spark, monkeypatch, ["comma", "moments", "words"])


def require_meanings(database):
    """Texts, and what other types mean, are hashed alike on every engine."""
    texts = [
        "39",
        "39.0",
        "+39",
        "3.9e1",
        "0.1",
        "1e-1",
        "",
        "nan",
        "inf",
        "-0.0",
        "x",
        "1.50",
        "-007.250",
        "5.",
        f"0.{'3' * 30}0",
        f"{'9' * 30}.10",
        "-0",
        "+00.0",
        None,
    ]
    database.put("texts", pa.table({"x": pa.array(texts, pa.string())}))
    engine = shared_engine()
    there, here = locate(database.address("texts")), locate(pa.table({"x": texts}))
    for other in ("BIGINT", "DOUBLE", "FLOAT", "DECIMAL", "DECIMAL(9,2)", "VARCHAR", "DATE"):
        view = ComparedRows(RowComparison((Column("x", "VARCHAR"),), {"x": other}))
        found = [
            Counter(engine.read(replace(source, view=view))["compared"].to_pylist())
            for source in (there, here)
        ]
        assert found[0] == found[1], other


def test_meanings_are_those_of_files(postgres):
    require_meanings(postgres)


@pytest.mark.spark
def test_meanings_in_spark_are_those_of_files(spark):
    require_meanings(spark)
