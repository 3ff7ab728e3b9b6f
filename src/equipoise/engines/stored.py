"""Files in a store, such as S3: opened through fsspec, with what readers use of a path."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from equipoise.engines.addresses import SCHEMES, scrubbed, without_password
from equipoise.errors import InputError, MissingDependency, SourceNotFound

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}
_MARKS = ("ETag", "etag", "version_id", "generation", "md5Hash", "content_md5")
"""What stores call the mark of a file's content, which changes with it."""
_DATES = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")


class Status(NamedTuple):
    """What a store says of a file; named as for a local one."""

    st_size: int
    st_mtime_ns: int
    st_ino: str
    """The mark of its content, or nothing."""


@dataclass(frozen=True)
class StoredFile:
    """A file in a store. Its text is its address without secrets.

    >>> print(StoredFile("https://host/people.csv?sig=abc"))
    https://host/people.csv
    """

    address: str = field(repr=False)
    listed: Status | None = field(default=None, repr=False, compare=False)
    """What the store said of it when it was listed."""

    def __str__(self) -> str:
        return without_password(self.address)

    def __fspath__(self) -> str:
        raise TypeError(f"{self} is not a file of this machine")

    @property
    def name(self) -> str:
        """The name of the file, without its folders and parameters."""
        has_parameters = self.address.startswith(("http:", "https:"))
        path = unquote(urlsplit(self.address).path) if has_parameters else self.address
        return path.rstrip("/").rpartition("/")[2]

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open the file for reading, by ranges as they are asked for."""
        with explained(self.address):
            fs, path = filesystem(self.address)
            # Readers ask for large ranges; a store would otherwise send many megabytes ahead.
            return cast("IO[bytes]", fs.open(path, mode, cache_type="none"))

    def read_bytes(self) -> bytes:
        """Read the whole file."""
        with self.open() as file:
            return file.read()

    @functools.cached_property
    def known_status(self) -> Status:
        """What the store said of it when it was listed, or says now."""
        return self.listed or self.stat()

    def stat(self) -> Status:
        """Ask the store for the size, the date and the mark of the file."""
        with explained(self.address):
            fs, path = filesystem(self.address)
            fs.invalidate_cache()
            return status_of(fs.info(path))


FilePath: TypeAlias = Path | StoredFile
"""A file, wherever it is."""


def filesystem(address: str) -> tuple[AbstractFileSystem, str]:
    """Return the store of an address, and the path in it."""
    scheme = address.partition(":")[0].lower()
    try:
        from fsspec.core import url_to_fs

        return cast("tuple[AbstractFileSystem, str]", url_to_fs(address))
    except ImportError:
        package = _PACKAGES.get(scheme, "adlfs" if scheme.startswith("a") else "fsspec")
        raise MissingDependency(
            package, extra="storage", purpose=f"reading {SCHEMES[scheme].about.partition(',')[0]}"
        ) from None


def status_of(info: Mapping[str, Any]) -> Status:
    """Read what a store says of a file."""
    mark = next((str(info[name]) for name in _MARKS if info.get(name)), "")
    date = next((info[name] for name in _DATES if info.get(name)), 0)
    return Status(int(info.get("size") or 0), _nanoseconds(date), mark.strip('"'))


def stamp(text: str) -> int:
    """Return a whole number that stands for a text, where the index keeps a date.

    >>> stamp("version 3") == stamp("version 3") != stamp("version 4")
    True
    """
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


@contextmanager
def explained(address: str) -> Iterator[None]:
    """Turn errors of a store into sentences without the secrets of an address."""
    try:
        yield
    except (InputError, MissingDependency):
        raise
    except FileNotFoundError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
            # fsspec also says so of a server that it did not reach.
            raise SourceNotFound(
                f"{without_password(address)} cannot be read, since its server cannot be reached: "
                f"{reason_of(cause, address)}."
            ) from None
        raise SourceNotFound(
            f"{without_password(address)} does not exist; check its name."
        ) from None
    except Exception as error:  # noqa: BLE001 (stores raise errors of many libraries)
        raise SourceNotFound(
            f"{without_password(address)} cannot be read: {reason_of(error, address)}."
        ) from None


def reason_of(error: BaseException, address: str) -> str:
    r"""Return the first line of an error without the secrets of an address, as a part of a sentence.

    >>> reason_of(
    ...     ValueError("Validation failed:\nInvalid bucket name 'a@b'.\nMore"), "s3://a@b/c.csv"
    ... )
    "Validation failed: Invalid bucket name 'a@b'"
    """
    lines = scrubbed(str(error).strip() or type(error).__name__, [address]).splitlines()
    said = " ".join(map(str.strip, lines[:2])) if lines[0].endswith(":") else lines[0]
    return said.rstrip(".!?: ")


def _nanoseconds(date: Any) -> int:
    if isinstance(date, datetime):
        return int(date.timestamp() * 1_000_000) * 1000
    if isinstance(date, (int, float)):
        return int(date * 1_000_000_000)
    return stamp(str(date)) if date else 0
