"""Files of rows, written by an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.engines.base import Engine, Part
from equipoise.engines.sources import locate

if TYPE_CHECKING:
    import os

    import pyarrow as pa


def write_rows(engine: Engine, rows: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write rows to a file."""
    engine.write(path, [Part(locate(rows))])
