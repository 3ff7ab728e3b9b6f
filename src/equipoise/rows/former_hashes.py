"""Hashes of rows as ledgers had them before floating-point numbers were hashed by their bits."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from equipoise.counts.columns import values_in
from equipoise.values import MISSING


def former_md5s(rows: pa.Table) -> list[str]:
    """Return the md5 of each row with floating-point numbers written as their shortest text.

    >>> former_md5s(pa.table({"x": [0.5]})) == [hashlib.md5(b"3:0.5").hexdigest()]
    True
    """
    if not any(pa.types.is_floating(kind) for kind in rows.schema.types):
        return [""] * len(rows)  # as they are now
    texts = zip(*(values_in(column) for column in rows.columns), strict=True)
    written = (",".join("-" if v is MISSING else f"{len(v)}:{v}" for v in row) for row in texts)
    return [hashlib.md5(row.encode(), usedforsecurity=False).hexdigest() for row in written]
