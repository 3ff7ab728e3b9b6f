"""Work that the workers of Spark do piece by piece."""

from __future__ import annotations

import pickle
import uuid
import weakref
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from equipoise.scratch import ScratchFolder, make_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = TypeVar("P")
R = TypeVar("R")


def spread(session: SparkSession, work: Callable[[P], R], pieces: Sequence[P]) -> list[R]:
    """Do work for each of some pieces, each in a task of its own; return the results in their order."""
    rows = pa.table(
        {
            "number": pa.array(range(len(pieces)), pa.int32()),
            "piece": pa.array([pickle.dumps(piece) for piece in pieces], pa.binary()),
        }
    )
    # From one part rows are dealt out evenly; from several, some tasks could get more than one.
    frame = session.createDataFrame(rows).coalesce(1).repartition(len(pieces))
    found = frame.mapInArrow(_working(work), "number INT, result BINARY").toArrow()
    results = sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))
    return [pickle.loads(result) for _, result in results]  # noqa: S301 - made by our own workers


def _working(
    work: Callable[[P], R],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that does the pieces of one part."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, piece in zip(
                *(column.to_pylist() for column in batch.columns), strict=True
            ):
                result = pickle.dumps(work(pickle.loads(piece)))  # noqa: S301 - sent by our own client
                yield pa.RecordBatch.from_arrays(
                    [pa.array([number], pa.int32()), pa.array([result], pa.binary())],
                    ["number", "result"],
                )

    return run


_shipped: weakref.WeakKeyDictionary[SparkSession, ScratchFolder] = weakref.WeakKeyDictionary()
"""By session, the folder of the package that its workers were given, which they may fetch later."""


def ship_package(session: SparkSession) -> None:
    """Give this package to the workers of Spark, which need not have it."""
    if session in _shipped:
        return
    package, folder = Path(__file__).parents[2], make_folder()
    # Spark refuses a second file of the same name.
    archive = folder.path / f"equipoise_{uuid.uuid4().hex}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for path in sorted(package.rglob("*.py")):
            written.write(path, path.relative_to(package.parent))
    session.addArtifacts(str(archive), pyfile=True)
    _shipped[session] = folder
