"""Adult resampled to any number of rows, as Parquet files in `benchmarks/.cache`.

Rows are drawn with replacement under a fixed seed, one row group at a time, so
that a file of 100 million rows is made in the memory of one row group.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

# Arrow and NumPy are imported where they are used: the workers that measure memory
# import this module for its names, and must not carry what the library may not need.
if TYPE_CHECKING:
    import pyarrow as pa

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
BUNDLED = HERE.parent / "src" / "equipoise" / "datasets" / "adult.parquet"
ROW_GROUP = 122_880  # DuckDB's own default: what most files in the wild look like
SEED = 20_240_607

LABEL = "income"
AGE_EDGES = [20, 30, 40, 50, 60, 70, 80, 90]
ATTRIBUTES = {
    "A2": ["sex", "race"],
    "A4": ["sex", "race", "marital-status", "age"],
    "A6": ["sex", "race", "marital-status", "age", "education", "workclass"],
    "A8": [
        "sex",
        "race",
        "marital-status",
        "age",
        "education",
        "workclass",
        "occupation",
        "relationship",
    ],
}


def adult() -> pa.Table:
    """The 32,561 rows with all their columns, strings dictionary-encoded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(BUNDLED)
    return pa.table({name: _encoded(table[name]) for name in table.column_names})


def resampled(rows: int) -> Path:
    """Path of the Parquet file with that many rows; made on first use."""
    path = CACHE / f"adult-{rows}.parquet"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        partial = path.with_suffix(".partial")
        _write(rows, partial)
        partial.replace(path)  # an interrupted run leaves no half file
    return path


def warm(path: Path) -> None:
    """Read the file once, so that the first contestant does not pay for the disk."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def _write(rows: int, path: Path) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = adult().combine_chunks()
    rng = np.random.default_rng(SEED)
    plain = pa.schema([(f.name, _plain(f.type)) for f in source.schema])
    with pq.ParquetWriter(path, plain, compression="snappy") as writer:
        for start in range(0, rows, ROW_GROUP):
            drawn = rng.integers(0, source.num_rows, min(ROW_GROUP, rows - start))
            writer.write_table(source.take(pa.array(drawn)).cast(plain), row_group_size=ROW_GROUP)


def _encoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return column.dictionary_encode() if pa.types.is_string(column.type) else column


def _plain(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    # Parquet's own dictionary encoding, not an Arrow type noted in the file's metadata.
    return kind.value_type if pa.types.is_dictionary(kind) else kind
