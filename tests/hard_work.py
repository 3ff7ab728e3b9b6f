"""Tasks that workers cannot do: too long, too large, or fatal. Workers import this module."""

from __future__ import annotations

import os
import time
from dataclasses import replace

from equipoise.errors import ColumnNotFound


def sleep(seconds, *, progress):
    progress("sleeping", 0.5)
    time.sleep(seconds)
    return seconds


def spin(*, progress):
    """Keep the interpreter to itself, in one long call."""
    sum(range(10**11))


def crash(*, progress):

    os.abort()


def fill_numpy(*, progress):
    import numpy as np

    return [np.ones(10**8) for _ in range(100)] and None


def fill_arrow(*, progress):
    import pyarrow as pa

    kept = [pa.array(range(1000)) for _ in range(3)]
    kept += [pa.allocate_buffer(500_000_000) for _ in range(100)]
    for buffer in kept[3:]:
        memoryview(buffer)[:] = b"1" * len(buffer)


def fill_text(*, progress):
    kept = []
    while True:
        kept.append("x" * 10**7 + str(len(kept)))


def fill_duckdb(folder, *, progress):
    from equipoise.engines.sources import locate
    from equipoise.web.places import Places
    from equipoise.web.rooms.room import engine_of

    engine = engine_of(Places(folder, folder / "home" / "one"), 600_000_000)
    engine.local._session.connection.execute("SET max_temp_directory_size = '10MB'")
    path = folder / "people.csv"
    path.write_text("sex,hired\nw,yes\nm,no\n")
    long = "SELECT list(a.range || ' ' || b.range || repeat('x', 1000)) AS n FROM range(30000) a, range(300) b"
    return len(engine.read(replace(locate(path), sql=long)))


def load_numpy():
    import numpy as np

    return float(np.ones(1)[0]) == 1.0


def raise_column_not_found():
    raise ColumnNotFound("a", table="t", columns=["b"])
