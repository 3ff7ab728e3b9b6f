"""Encodings of text files, plain or compressed."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import re
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from equipoise.engines.stored import FilePath
from equipoise.errors import InputError, SourceNotFound

_BLOCK = 1 << 20
_NOT_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # the bytes that cp1252 leaves undefined


@contextlib.contextmanager
def open_bytes(path: FilePath) -> Iterator[IO[bytes]]:
    """Open a file, compressed or not; explain why if it cannot be read."""
    try:
        with path.open("rb") as file:
            if path.name.lower().endswith(".gz"):
                with gzip.open(file) as content:
                    yield cast("IO[bytes]", content)
            else:
                yield file
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceNotFound(f"{path} cannot be read: {reason}.") from None


def marked_encoding(path: FilePath, encoding: str) -> str:
    """Return the encoding of the byte-order mark, unless one without such marks is requested."""
    if not encoding.startswith(("utf-8", "utf-16", "utf-32")):
        return encoding
    with open_bytes(path) as file:
        return _by_mark(file.read(4)) or encoding


def guess_encoding(path: FilePath, *, whole: bool = False) -> str:
    r"""Guess the encoding of a text file from its first megabyte, or from all of it.

    A byte-order mark decides. Otherwise, text with every other byte zero is UTF-16, and text that
    is not UTF-8 is in the Windows code page, in which nearly every byte is a character.
    """
    with open_bytes(path) as file:
        raw = file.read(_BLOCK)
        if (marked := _by_mark(raw)) is not None:
            return marked
        if b"\0" in raw:
            # In UTF-16, nearly every other byte of text in Latin letters is zero.
            zeros = [raw[i::2].count(0) * 2 / len(raw) for i in (0, 1)]
            return "utf-16-be" if zeros[0] > 0.4 else "utf-16-le" if zeros[1] > 0.4 else "utf-8"
        decoder, is_utf8, strange = codecs.getincrementaldecoder("utf-8")(), True, False
        while raw:
            try:
                decoder.decode(raw)
            except UnicodeError:
                is_utf8 = False
                decoder.reset()
            strange = strange or bool(_NOT_CP1252.search(raw))
            raw = file.read(_BLOCK) if whole else b""
    return "utf-8" if is_utf8 else "latin-1" if strange else "cp1252"


def _by_mark(raw: bytes) -> str | None:
    # The mark of UTF-32 begins like that of UTF-16.
    if raw.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    return "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def as_utf8(path: FilePath, encoding: str, folder: str) -> Path:
    """Copy a text file as UTF-8, since DuckDB supports few other encodings."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with open_bytes(path) as file, tempfile.NamedTemporaryFile(dir=folder, delete=False) as copy:
        try:
            while block := file.read(_BLOCK):
                copy.write(decoder.decode(block).encode())
            copy.write(decoder.decode(b"", final=True).encode())
        except UnicodeError:
            raise not_encoded(path, encoding) from None
    return Path(copy.name)


def not_encoded(path: object, encoding: str) -> InputError:
    """Make the error for a file that is not in the expected encoding."""
    return InputError(
        f"{path} is not {encoding.upper()} text; if it is in another encoding, name it, as in "
        "`encoding='cp1252'` (or latin-1, utf-16)."
    )
