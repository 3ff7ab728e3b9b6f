"""Files that are written atomically: complete, or not there at all.

A file is written under a temporary name beside its target, and then moved. A program that is
killed leaves the temporary file; the next one that writes to the same target removes it, once it
is a day old and no running program holds its lock.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from equipoise.credentials import without_password
from equipoise.errors import InputError
from equipoise.scratch import is_old, take_lock


def require_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a file to write whose folder does not exist, or which is no file of this machine."""
    place = Path(path)
    if place.absolute().parent.is_dir():
        return
    if re.fullmatch(r"[A-Za-z][\w+.-]+:", place.parts[0]):
        address = re.sub("(?<=:)/+", "//", os.fspath(path), count=1)  # a path has lost a slash
        raise InputError(
            f"{without_password(address)} cannot be written, since addresses are only read; name a file of "
            "this machine."
        )
    raise InputError(f"the folder {place.parent} does not exist; create it first.")


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str], *, alike: bool = True) -> Iterator[Path]:
    """Yield a temporary path, and move it to ``path`` if the block ends without an error.

    It is ``alike`` if it has the extension of ``path``, by which some libraries choose a format.
    """
    target = Path(os.path.realpath(path))  # what a link points to, not the link, is replaced
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise InputError(f"{path} is not a regular file; leave it out to print to stdout.")
    if target.is_dir():
        raise InputError(f"{target} is a folder; give the name of a file to write.")
    for place in (path, target):
        require_folder(place)
    _sweep_beside(target)
    try:
        descriptor, name = tempfile.mkstemp(
            dir=target.parent,
            prefix=f".{target.name}.",
            suffix=f".tmp{target.suffix if alike else ''}",
        )
    except PermissionError:
        raise InputError(f"{target.parent} cannot be written to; choose another folder.") from None
    temporary = Path(name)
    try:
        with _held(descriptor):
            yield temporary
            _permit_as_usual(temporary)
            _to_disk(temporary)
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def folder_beside(temporary: Path) -> Iterator[Path]:
    """Yield a folder beside a file of :func:`atomic_path`, and remove it when the block ends."""
    folder = _folder_of(temporary)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _folder_of(temporary: Path) -> Path:
    return temporary.with_name(f"{temporary.name}.folder")


@contextlib.contextmanager
def _held(descriptor: int) -> Iterator[None]:
    """Keep a temporary file locked while it is in use."""
    if sys.platform == "win32":  # where an open file can be neither replaced nor removed
        os.close(descriptor)
        yield
        return
    try:
        with contextlib.suppress(OSError):  # some network drives support no locks
            take_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _sweep_beside(target: Path) -> None:
    """Remove the temporary files that killed programs left when they wrote to a target."""
    if sys.platform == "win32":
        return
    name, suffix = re.escape(target.name), re.escape(target.suffix)
    left = re.compile(
        rf"\.{name}\.[a-z0-9_]{{8}}\.tmp(?:{suffix})?"
    )  # as tempfile.mkstemp names files
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if left.fullmatch(entry.name) and is_old(entry.stat(follow_symlinks=False)):
                with contextlib.suppress(OSError):
                    _remove_unlocked(Path(entry.path))


def _remove_unlocked(temporary: Path) -> None:
    descriptor = os.open(temporary, os.O_RDWR | os.O_NOFOLLOW)
    try:
        take_lock(descriptor)
        shutil.rmtree(_folder_of(temporary), ignore_errors=True)
        temporary.unlink()
    finally:
        os.close(descriptor)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically.

    The temporary file has another extension, since programs may read all files of one in a folder.
    """
    with atomic_path(path, alike=False) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _permit_as_usual(path: Path) -> None:
    # mkstemp makes files only their owner can read; other files obey the umask.
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def _to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
