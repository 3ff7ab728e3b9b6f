"""Repairs to files of tables in PostgreSQL with dates and times that Arrow does not have."""

from __future__ import annotations

import datetime

import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import equipoise as eq
import servers
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.postgres import PostgresEngine
from equipoise.engines.sources import locate

ASKED = {"sensitive_features": ["sex"], "label": "hired"}
PEOPLE = """
CREATE TABLE people (sex text, hired text, born date, at timestamp, moment timestamptz, clock time);
INSERT INTO people SELECT CASE i % 2 WHEN 0 THEN 'Female' ELSE 'Male' END,
    CASE WHEN i % 8 < (CASE i % 2 WHEN 0 THEN 2 ELSE 5 END) THEN 'yes' ELSE 'no' END,
    date '1990-01-01' + i, timestamp '1990-01-01 10:00:00.5' + i * interval '1 day',
    timestamptz '1990-01-01 10:00Z' + i * interval '1 day', time '10:00' + i * interval '1 minute'
FROM generate_series(1, 80) AS t(i);
UPDATE people SET {} WHERE extract(day FROM born) < 8;
"""
BEFORE = "born = '0044-03-15 BC', at = '0044-03-15 11:00 BC', moment = '0044-03-15 11:00Z BC'"
INFINITE = "born = 'infinity', at = '-infinity', moment = 'infinity', clock = '24:00'"
FAR = "born = '12345-01-01', at = '12345-01-01 11:00', moment = '12345-01-01 11:00Z'"
USUAL = "born = '0001-01-01', at = '9999-12-31 11:00', clock = NULL"
TEXTS = {BEFORE: 3, INFINITE: 4, FAR: 3, USUAL: 0}
"""How many columns must be texts in a file."""


@pytest.fixture(params=list(TEXTS), ids=["before", "infinite", "far", "usual"])
def people(request):
    with servers.new_database() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(PEOPLE.format(request.param).encode())
        yield f"{address}&table=people", request.param


@pytest.fixture
def lake(tmp_path):
    (tmp_path / "lake").mkdir()
    born = [datetime.date(1990, 1, 1) + datetime.timedelta(i) for i in range(200)]
    sex = ["Female" if i % 2 else "Male" for i in range(200)]
    hired = ["yes" if i % 3 else "no" for i in range(200)]
    rows = pa.table({"sex": sex, "hired": hired, "born": born})
    pq.write_table(rows, tmp_path / "lake" / "others.parquet")
    return eq.Lake(tmp_path / "lake", index=tmp_path / "index.duckdb")


@pytest.mark.slow
@pytest.mark.parametrize("allow", ["add", "delete"])
@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_a_repair_to_a_file_is_verified(people, lake, tmp_path, allow, extension):
    address, change = people
    output = tmp_path / f"repaired.{extension}"
    done = eq.repair(address, lake, output, **ASKED, allow=allow, dedupe="multiset")
    assert done.acquired.added + done.acquired.removed
    assert done.verification.ok, done.verification.text()
    if extension == "parquet":
        moments = pq.read_table(output).select(["born", "at", "moment", "clock"]).schema
        assert sum(pa.types.is_string(field.type) for field in moments) == TEXTS[change]


def test_rows_that_are_read_have_the_hashes_that_the_database_gives_them(people):
    address, _ = people
    counts = eq.count(address, **ASKED)
    request = counts.request_for_rows()
    engine = PostgresEngine()
    rows = engine.rows(locate(address), request, counts, located=True)
    engine.close()
    sent = locate(rows.select(rows.column_names[:-2]))
    again = DuckDBEngine(in_place=0).rows(sent, request, counts, located=True)
    assert rows["md5"].to_pylist() == again["md5"].to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("people", [BEFORE, USUAL], indirect=True)
@pytest.mark.parametrize("strange", ["1990-01-05", "long ago"])
def test_dates_are_texts_only_where_they_must_be(people, lake, tmp_path, strange):
    address, change = people
    output = tmp_path / "repaired.parquet"
    done = eq.repair(address, lake, output, **ASKED, dedupe="multiset")
    rows = pq.read_table(output)
    texts = [strange if i == 99 else v and str(v) for i, v in enumerate(rows["born"].to_pylist())]
    pq.write_table(rows.set_column(2, "born", pa.array(texts)), output)
    told = eq.verify(
        output, base=address, plan=f"{output}.plan.json", ledger=done.acquired.ledger
    ).text()
    is_right = change == BEFORE and strange != "long ago"
    assert ("The column 'born' is dates in" in told) is not is_right


@pytest.mark.slow
@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_types_that_files_do_not_have_are_texts_there(lake, tmp_path, extension):
    with servers.new_database() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(PEOPLE.format(USUAL).encode())
            connection.execute(
                "ALTER TABLE people ADD about jsonb DEFAULT '{\"a\": [1]}', ADD tags text[] DEFAULT ARRAY['x', NULL], "
                "ADD long interval DEFAULT '1 year 2 days', ADD number uuid DEFAULT gen_random_uuid()"
            )
        output = tmp_path / f"repaired.{extension}"
        done = eq.repair(f"{address}&table=people", lake, output, **ASKED, dedupe="multiset")
    assert done.acquired.added
    assert done.verification.ok, done.verification.text()
