"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from equipoise.errors import InputError


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path; move it to ``path`` when the block ends without an error.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with atomic_path(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("whole")
    >>> [p.name for p in folder.iterdir()]
    ['a.txt']
    """
    target = Path(os.path.realpath(path))  # what a link points to, not the link, is replaced
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise InputError(f"{path} is no ordinary file; leave it out to print to stdout.")
    if target.is_dir():
        raise InputError(f"{target} is a folder; give the name of a file to write.")
    if not target.parent.is_dir():
        raise InputError(f"the folder {target.parent} does not exist; make it first.")
    try:
        descriptor, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=f".tmp{target.suffix}"
        )
    except PermissionError:
        raise InputError(f"{target.parent} cannot be written to; choose another folder.") from None
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        _permit_as_usual(temporary)
        _to_disk(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file that is whole or not there."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _permit_as_usual(path: Path) -> None:
    # mkstemp makes files only their owner can read; other files obey the umask.
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def _to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
