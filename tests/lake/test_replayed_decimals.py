"""Rows whose numbers were rounded to the decimals of the base are replayed as they were written."""

from __future__ import annotations

import json
from decimal import Decimal

import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import equipoise as eq
import servers

ASKED = {"sensitive_features": ["sex"], "label": "hired", "dedupe": "multiset"}
MORE = [f"{i * 1.505:.3f}" for i in range(200)]
"""Amounts with more decimals than the base has; half of them are half-way between two."""

AMOUNTS = {
    "text": pa.array(MORE),
    "double": pa.array([float(text) for text in MORE]),
    "decimal": pa.array([Decimal(text) for text in MORE], pa.decimal128(8, 3)),
}


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    """Plans of outputs in databases are written to the working folder."""
    monkeypatch.chdir(tmp_path)


def base_rows() -> pa.Table:
    sex = ["Female" if i % 2 else "Male" for i in range(80)]
    hired = ["yes" if i % 8 < (2 if i % 2 else 5) else "no" for i in range(80)]
    amounts = pa.array([Decimal(i) * Decimal("3.75") for i in range(80)], pa.decimal128(6, 2))
    return pa.table({"sex": sex, "hired": hired, "amount": amounts})


@pytest.fixture(params=list(AMOUNTS))
def lake(request, tmp_path):
    """A lake with one table, whose amounts are texts of a CSV file, doubles, or other decimals."""
    folder = tmp_path / "lake"
    folder.mkdir()
    sex = ["Female" if i % 2 else "Male" for i in range(200)]
    hired = ["yes" if i % 3 else "no" for i in range(200)]
    rows = pa.table({"sex": sex, "hired": hired, "amount": AMOUNTS[request.param]})
    if request.param == "text":
        pa.csv.write_csv(rows, folder / "others.csv")
    else:
        pq.write_table(rows, folder / "others.parquet")
    return eq.Lake(folder, index=tmp_path / "index.duckdb")


def require_replayed(lake: eq.Lake, base, output) -> eq.Repaired:
    done = eq.repair(base, lake, output, **ASKED)
    assert done.acquired.added == 40
    assert done.verification.ok, done.verification.text()
    again = lake.replay(done.acquired.ledger, repaired=output)
    assert again.ok, again.text()
    return done


@pytest.mark.slow
@pytest.mark.parametrize("extension", ["parquet", "csv"])
def test_rounded_amounts_of_a_file(lake, tmp_path, extension):
    base, output = tmp_path / "base.parquet", tmp_path / f"repaired.{extension}"
    pq.write_table(base_rows(), base)
    require_replayed(lake, base, output)
    added = pq.read_table(output) if extension == "parquet" else pa.csv.read_csv(output)
    amounts = {f"{Decimal(str(a)):.2f}" for a in added["amount"].to_pylist()[80:]}
    assert amounts <= {str(Decimal(a).quantize(Decimal("0.01"), "ROUND_HALF_UP")) for a in MORE}


@pytest.mark.slow
def test_rounded_amounts_of_a_table_in_postgres(lake):
    with servers.new_database() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE base (sex text, hired text, amount numeric(6,2))")
            with connection.cursor() as cursor, cursor.copy("COPY base FROM STDIN") as copy:
                for row in base_rows().to_pylist():
                    copy.write_row(tuple(row.values()))
        require_replayed(lake, f"{address}&table=base", f"{address}&table=repaired")


@pytest.mark.slow
def test_a_changed_amount_and_a_ledger_without_types(lake, tmp_path):
    base, output = tmp_path / "base.parquet", tmp_path / "repaired.parquet"
    pq.write_table(base_rows(), base)
    ledger = require_replayed(lake, base, output).acquired.ledger
    listed = pq.read_table(ledger)

    def with_types(types: dict[str, str] | None) -> str:
        """Write the ledger as an earlier version wrote it, or with other types; replay it."""
        mappings = [json.loads(text) for text in listed["mapping"].to_pylist()]
        for mapping in mappings:
            mapping.pop("types")
            mapping.update({} if types is None else {"types": types})
        at = listed.column_names.index("mapping")
        texts = pa.array([json.dumps(mapping) for mapping in mappings])
        pq.write_table(listed.set_column(at, "mapping", texts), ledger)
        return lake.replay(ledger, repaired=output).text()

    assert "match the ledger" in with_types(None)
    assert "cannot be right" in with_types({"amount": "INTEGER) FROM input; --"})
    assert "rows of" in with_types({"amount": "DECIMAL(6,1)"})
    rows = pq.read_table(output)
    amounts = rows["amount"].to_pylist()
    amounts[-1] += Decimal("0.01")
    pq.write_table(rows.set_column(2, "amount", pa.array(amounts, pa.decimal128(6, 2))), output)
    assert with_types(None).startswith("1 of 40 rows")
