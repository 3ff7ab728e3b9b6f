"""An index of a million made-up profiles: what it takes to load, to search and to bring up to date.

Only the records of the index are made up, not the tables: as many files would take hours to write and to
read. The records are written as Parquet and loaded as those of a job on a cluster would be.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timing import peak_memory_mb

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 20_000
TOPICS = 5_000
WORDS = 400_000
OF_TOPIC, WIDTH, WORDS_OF_COLUMN = 16, 8, 12  # columns and words
SYLLABLES = ("ba", "co", "di", "fu", "ge", "ho", "ka", "li", "mo", "nu", "pe", "ra", "si", "to")
QUERIES = 100
CHANGED = 100


def make_records(folder: Path, tables: int) -> None:
    """Write the records of tables about some topics; tables of one topic share columns and words."""
    import pyarrow.parquet as pq

    for kind in ("tables", "columns"):
        (folder / kind).mkdir(parents=True)
    for start in range(0, tables, BATCH):
        numbers = range(start, min(start + BATCH, tables))
        for kind, rows in zip(("tables", "columns"), records(numbers), strict=True):
            pq.write_table(rows, folder / kind / f"{start:08d}.parquet")


def name_of(number: int) -> str:
    """The name of a table."""
    return f"{number % 1000:03d}/table{number:07d}.csv"


@functools.cache
def _word_terms() -> Any:
    import numpy as np

    from equipoise.lake.tables._terms import WORD, term_number

    return np.array([term_number(WORD, word(k)) for k in range(WORDS)], np.uint64)


@functools.cache
def _header_terms() -> tuple[Any, Any]:
    """The terms of every header one after the other, and where those of each start."""
    import numpy as np

    from equipoise.lake.tables._terms import column_terms

    found = [list(column_terms(profile_of(c, {}, None))) for c in range(TOPICS * OF_TOPIC)]
    starts = np.concatenate([[0], np.cumsum([len(terms) for terms in found])])
    return np.array([term for terms in found for term in terms], np.uint64), starts


def word(number: int) -> str:
    """A word that values may have."""
    return f"w{number}q"


def header(column: int) -> str:
    """Two of some words; columns of one topic share the first."""
    one, other = divmod(column, OF_TOPIC)
    return f"{_letters(one)}_{_letters(977 * other + one % 97)}"


def _letters(number: int) -> str:
    return "".join(SYLLABLES[number // len(SYLLABLES) ** k % len(SYLLABLES)] for k in range(4))


def profile_of(column: int, values: dict[str, int], quantiles: Any) -> Any:
    """The profile of a column."""
    from equipoise.engines.profiling import ColumnProfile

    numeric = float(column % 3 == 0)
    return ColumnProfile(
        header(column), "VARCHAR", 0, 12, values, (), numeric, quantiles, ("some", "value")
    )


def _contents(columns: Any, draw: Any) -> tuple[Any, Any]:
    """The numbers of the words of each column, in ascending order, and its quantiles."""
    import numpy as np

    own = columns[:, None] * 31 % WORDS + np.arange(WORDS_OF_COLUMN)
    anywhere = (WORDS * draw.random(own.shape) ** 3).astype(np.int64)
    words = np.sort(np.where(draw.random(own.shape) < 0.7, own % WORDS, anywhere), axis=1)
    quantiles = np.sort(draw.normal(columns[:, None] % 977, 5, (len(columns), 21)), axis=1)
    return words, quantiles


def _columns(topics: Any, draw: Any) -> Any:
    """Some columns of each of some topics."""
    import numpy as np

    chosen = (np.arange(WIDTH) * 2 + draw.integers(0, 2, (len(topics), WIDTH))) % OF_TOPIC
    return (topics[:, None] * OF_TOPIC + chosen).ravel()


def records(numbers: Any) -> tuple[pa.Table, pa.Table]:
    """Make up the records of some tables, as `records_of` would write them."""
    import numpy as np
    import pyarrow as pa

    from equipoise.lake.tables.headers import is_opaque
    from equipoise.lake.tables.index import table_id

    many = len(numbers)
    draw = np.random.default_rng(numbers[0])
    ids = np.array([table_id(name_of(i)) for i in numbers], np.int64)
    column = _columns(draw.integers(0, TOPICS, many), draw)
    owner = np.repeat(np.arange(many), WIDTH)
    numeric = column % 3 == 0
    words, quantiles = _contents(column, draw)
    terms, lengths = _terms(column, words, numeric)
    names = [header(c) for c in column.tolist()]
    columns = {
        "id": ids[owner],
        "place": np.tile(np.arange(WIDTH, dtype=np.int32), many),
        "name": pa.array(names),
        "type": pa.array(["VARCHAR"] * len(owner)),
        "nulls": np.zeros(len(owner), np.int64),
        "distinct": np.full(len(owner), 12),
        "values": pa.nulls(len(owner), pa.list_(pa.string())),
        "counts": pa.nulls(len(owner), pa.list_(pa.int64())),
        "sketch": _lists(np.sort(draw.integers(0, 2**63, (len(owner), 32)), axis=1).astype("u8")),
        "numeric": numeric.astype(float),
        "quantiles": pa.array(
            [q if known else None for q, known in zip(quantiles.tolist(), numeric, strict=True)],
            pa.list_(pa.float64()),
        ),
        "sample": pa.array([["some", "value"]] * len(owner)),
        "opaque": np.array([is_opaque(name) for name in names], bool),
        "terms": pa.ListArray.from_arrays(_offsets(lengths), pa.array(terms)),
        "weights": pa.ListArray.from_arrays(
            _offsets(lengths), pa.array(np.ones(len(terms), np.float32))
        ),
    }
    called = [name_of(i) for i in numbers]
    text = pa.nulls(many, pa.string())
    tables = {
        "id": ids,
        "name": pa.array(called),
        "file": pa.array(called),
        "inner_name": text,
        "kind": pa.array(["csv"] * many),
        "encoding": pa.array(["utf-8"] * many),
        "size": np.full(many, 4000),
        "changed": np.arange(many),
        "snapshot": pa.array([f"{i * 0x9E3779B97F4A7C15 % 2**256:064x}" for i in numbers]),
        "rows": np.full(many, 100),
        "problem": text,
        "profiled": np.ones(many, bool),
        "lenient": np.zeros(many, bool),
        "skipped": np.zeros(many, np.int64),
        "first_skipped": pa.array([[]] * many, pa.list_(pa.string())),
        "terms": lengths.reshape(many, WIDTH).sum(axis=1),
    }
    return pa.table(tables), pa.table(columns)


def _terms(column: Any, words: Any, numeric: Any) -> tuple[Any, Any]:
    """The terms of columns one after the other, those of the header first, and their numbers."""
    import numpy as np

    known, starts = _header_terms()
    wide = np.diff(starts)[column]
    distinct = np.column_stack([np.ones(len(words), bool), words[:, 1:] != words[:, :-1]])
    distinct &= ~numeric[:, None]
    lengths = wide + distinct.sum(axis=1)
    ends = np.cumsum(lengths)
    terms = np.empty(ends[-1], np.uint64)
    from_header = np.concatenate([np.arange(w) for w in wide.tolist()])
    first = np.repeat(ends - lengths, wide) + from_header
    terms[first] = known[np.repeat(starts[column], wide) + from_header]
    rest = np.ones(len(terms), bool)
    rest[first] = False
    terms[rest] = _word_terms()[words[distinct]]
    return terms, lengths


def query(seed: int) -> Any:
    """The profile of one more table."""
    import numpy as np

    from equipoise.engines.profiling import Profile

    draw = np.random.default_rng([seed, 1])
    columns = _columns(draw.integers(0, TOPICS, 1), draw)
    words, quantiles = _contents(columns, draw)
    return Profile(
        100,
        tuple(
            profile_of(c, {word(k): 1 for k in some}, tuple(cuts) if c % 3 == 0 else None)
            for c, some, cuts in zip(
                columns.tolist(), words.tolist(), quantiles.tolist(), strict=True
            )
        ),
    )


def _offsets(lengths: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def _lists(rows: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    return pa.ListArray.from_arrays(
        _offsets(np.full(len(rows), rows.shape[1])), pa.array(rows.ravel())
    )


# --- in the worker ------------------------------------------------------------------------------


def load_worker(case: dict[str, Any]) -> dict[str, Any]:
    """Load the records."""
    from equipoise.lake.tables.index import load

    folder, index = Path(case["records"]), Path(case["index"])
    start = time.perf_counter()
    load(index, str(folder / "tables/*.parquet"), str(folder / "columns/*.parquet"))
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "memory": peak_memory_mb(), "size": size_of(index)}


def size_of(index: Path) -> int:
    """Bytes of all files of an index."""
    return sum(path.stat().st_size for path in index.parent.glob(f"{index.name}*"))


def search_worker(case: dict[str, Any]) -> dict[str, Any]:
    """Search for tables like others of the same topics."""
    from equipoise.lake.tables.index import Index
    from equipoise.lake.tables.search import search

    seconds, right = [], 0
    start = time.perf_counter()
    with contextlib.closing(Index(Path(case["index"]), [case["records"]])) as index:
        opened = time.perf_counter() - start
        for i in range(QUERIES):
            asked = query(i)
            start = time.perf_counter()
            hits = search(index, asked, top=10)
            seconds.append(time.perf_counter() - start)
            topic = asked.columns[0].name.partition("_")[0]
            right += sum(hit.columns[0].table.startswith(topic) for hit in hits)
    memory = peak_memory_mb()
    return {"seconds": sorted(seconds), "opened": opened, "memory": memory, "right": right}


def update_worker(case: dict[str, Any]) -> dict[str, Any]:
    """Replace some tables, as a refresh does once it has profiled them."""
    from equipoise.lake.tables.index import _records
    from equipoise.lake.tables.index._segments import Fresh, open_index, publish
    from equipoise.lake.tables.index._working_copy import gathering, remove_leftovers, working_file

    index, seconds = Path(case["index"]), []
    for round_ in range(3):
        numbers = range(round_ * 1000, round_ * 1000 + CHANGED)
        tables, columns = records(numbers)
        start = time.perf_counter()
        with contextlib.closing(open_index(index)) as opened:
            stamp, last = opened.stamp, opened.segments[-1].last
        with gathering(index, stamp, last, CHANGED) as fresh:
            _records.insert(fresh, "tables", tables)
            _records.insert(fresh, "columns", columns)
        changed = Fresh(working_file(index), [name_of(i) for i in numbers], "")
        publish(index, changed, from_scratch=False)
        remove_leftovers(index)
        seconds.append(time.perf_counter() - start)
    return {"seconds": sorted(seconds)[1], "memory": peak_memory_mb(), "size": size_of(index)}


WORKERS = {"load": load_worker, "search": search_worker, "update": update_worker}


def measure(tables: int) -> dict[str, Any]:
    """Make the records up, and run each worker in a process of its own."""
    from timing import in_fresh_process

    with tempfile.TemporaryDirectory() as scratch:
        case = {
            "records": f"{scratch}/records",
            "index": f"{scratch}/index.duckdb",
            "tables": tables,
        }
        make_records(Path(case["records"]), tables)
        return {
            what: in_fresh_process(Path(__file__), {"what": what, **case}) for what in WORKERS
        } | {"again": in_fresh_process(Path(__file__), {"what": "search", **case})}


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(WORKERS[asked["what"]](asked)))
