"""Standard input, copied to a file because a table is often read more than once."""

from __future__ import annotations

import atexit
import contextlib
import functools
import shutil
import sys
import zlib
from pathlib import Path

from equipoise.engines.kinds import Kind, kind_of_bytes
from equipoise.errors import InputError
from equipoise.scratch import ScratchFolder, make_folder

NAME = "standard input"
_LOOKED_AT = 1 << 16


@functools.lru_cache(maxsize=1)
def _folder() -> ScratchFolder:
    """Make a temporary folder that is removed at the end of the program."""
    folder = make_folder()
    atexit.register(folder.remove)
    return folder


@functools.lru_cache(maxsize=1)
def copy_input() -> tuple[Path, Kind]:
    """Copy standard input to a temporary file, once; recognize its kind by the first bytes."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or sys.stdin.closed:
        raise InputError("there is no standard input to read; give a file instead of '-'.")
    if sys.stdin.isatty():
        raise InputError(
            "'-' reads standard input, which is the terminal; pipe a table into the command, as in "
            "zcat people.csv.gz | equipoise measure - …, or give a file."
        )
    path = _folder().path / "input"
    try:
        with path.open("wb") as copy:
            shutil.copyfileobj(stream, copy, 1 << 20)
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise InputError(f"standard input cannot be read: {error.strerror}.") from None
    with path.open("rb") as file:
        head = file.read(_LOOKED_AT)
    packed = head.startswith(b"\x1f\x8b")
    if packed:
        with contextlib.suppress(zlib.error):
            head = zlib.decompressobj(wbits=31).decompress(head)
    kind = kind_of_bytes(head)
    ending = ".gz" if packed else ".xlsx" if kind == "excel" else ""
    return (path.rename(path.with_name(f"{path.name}{ending}")) if ending else path), kind
