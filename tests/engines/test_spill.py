"""A table several times larger than the memory allowed: DuckDB spills to disk and is right."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path
from typing import Self

import duckdb
import pytest

from equipoise.counts import CountRequest, Counts
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.sources import locate
from equipoise.errors import InputError

ROWS = 3_000_000
STEP = 1_999_993  # has no factor in common with ROWS: id takes every number below it once


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Write a file whose every row has an ``id`` of its own, in no order."""
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT range * {STEP} % {ROWS} AS id, "
            "CASE WHEN id % 3 = 0 THEN 'w' ELSE 'm' END AS sex, "
            "CASE WHEN id % 2 = 0 THEN 'yes' ELSE 'no' END AS hired, "
            "sha256(id::VARCHAR) || sha256('x' || id) AS padding "
            f"FROM range({ROWS})) TO '{path}' (FORMAT parquet, COMPRESSION uncompressed)"
        )
    assert path.stat().st_size > 400_000_000
    yield path
    path.unlink()


class Watch:
    """Looks at how large a folder grows while work goes on."""

    def __init__(self, folder: str) -> None:
        self.folder, self.largest, self.stop = Path(folder), 0, threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self) -> None:
        while not self.stop.is_set():
            sizes = []
            for path in self.folder.rglob("*"):
                try:
                    sizes.append(path.stat().st_size)
                except FileNotFoundError:
                    continue
            self.largest = max(self.largest, sum(sizes))
            time.sleep(0.01)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()


@pytest.mark.slow
def test_quantiles_of_more_numbers_than_fit(table):
    engine = DuckDBEngine(threads=2, memory="60MB")
    request = CountRequest(sensitive=("id", "sex"), label="hired", bins={"id": 4})
    with Watch(engine._session.folder) as watch:
        counts = engine.counts(locate(table), request)
    assert watch.largest > 0
    quarter = ROWS // 4
    assert counts.bins == {"id": tuple(float(quarter * i - 1) for i in (1, 2, 3))}
    assert counts.n == ROWS
    assert counts.of("sex=w") == -(-ROWS // 3)
    assert counts.of("sex=w, hired=yes") == -(-ROWS // 6)
    assert counts.of(f"id=<{quarter - 1}") == quarter - 1
    # And it did need the disk: without, the same count fails.
    engine._session.connection.execute("SET max_temp_directory_size = '1KB'")
    with pytest.raises(InputError, match="needs more memory than allowed"):
        engine.counts(locate(table), request)
    engine.close()
    assert not engine._session.folder.exists()


@pytest.mark.slow
def test_choosing_among_more_rows_than_fit(table):
    engine = DuckDBEngine(threads=1, memory="100MB")
    request = CountRequest(sensitive=("sex",), label="hired")
    take = Counts.from_mapping(
        {("w", "yes"): 5, ("m", "no"): 7}, sensitive=request.sensitive, label=request.label
    )
    some = "SELECT * FROM input WHERE id < 800000"  # each of some 350 bytes with its text
    with Watch(engine._session.folder) as watch:
        rows = engine.rows(locate(table, sql=some), request, take)
    assert watch.largest > 0
    assert rows["sex"].to_pylist() == ["w"] * 5 + ["m"] * 7
    ids = list(map(int, rows["id"].to_pylist()))
    assert all(i % 3 == 0 and i % 2 == 0 for i in ids[:5])
    assert all(i % 3 != 0 and i % 2 == 1 for i in ids[5:])
    assert len(set(ids)) == 12
    assert max(ids) < 800_000
    engine.close()
    assert not engine._session.folder.exists()


def test_the_folder_goes_also_after_an_error(table):
    engine = DuckDBEngine(threads=2, memory="20MB")
    folder = engine._session.folder
    request = CountRequest(sensitive=("padding",), label="hired")
    with pytest.raises(InputError, match="needs more memory than allowed; raise `memory`"):
        engine.counts(locate(table), request)
    assert folder.exists()
    del engine  # nobody closes it
    gc.collect()
    assert not folder.exists()
