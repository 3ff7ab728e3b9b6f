"""Folders of the user's cache, and temporary ones that do not pile up, even if the programs that made them were killed.

A folder holds a lock file that its process keeps locked. The system releases the lock when the
process ends, so a folder that is older than a day and not locked is abandoned, and the next
program that needs a folder removes it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PREFIX = "equipoise-"
LOCK = ".in-use"
ABANDONED_AFTER = 24 * 60 * 60
"""Seconds. A day leaves time to look at what a killed program left behind."""

_NAME = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")  # as tempfile.mkdtemp names folders


@dataclass
class ScratchFolder:
    """A temporary folder in use; see :func:`make_folder`."""

    path: Path
    _descriptor: int | None

    def remove(self) -> None:
        """Remove the folder and its contents."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
        shutil.rmtree(self.path, ignore_errors=True)


def cache_folder() -> Path:
    """Return the folder of what may be made again, which need not exist."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(chosen) if Path(chosen).is_absolute() else Path.home() / ".cache"
    return home / "equipoise"


def make_folder() -> ScratchFolder:
    """Make a temporary folder, after removing those that killed programs left behind."""
    _sweep_once(tempfile.gettempdir())
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.suppress(OSError):  # some network drives support no locks
        take_lock(descriptor)
    return ScratchFolder(path, descriptor)


@functools.cache
def _sweep_once(directory: str) -> None:
    sweep(Path(directory))


def sweep(directory: Path) -> None:
    """Remove the abandoned temporary folders of this user in a directory."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(entry)


def _remove_if_abandoned(entry: os.DirEntry[str]) -> None:
    about = entry.stat(follow_symlinks=False)
    is_ours = not hasattr(os, "getuid") or about.st_uid == os.getuid()
    if not is_ours or not is_old(about):
        return
    lock = Path(entry.path, LOCK)
    if not lock.exists():
        # Another program's folder with a similar name, or one of ours that was killed at once:
        # only the latter is empty, and rmdir removes nothing else.
        Path(entry.path).rmdir()
        return
    if not is_old(lock.lstat()):
        return
    descriptor = os.open(lock, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        take_lock(descriptor)
    finally:
        os.close(descriptor)
    shutil.rmtree(entry.path, ignore_errors=True)


def is_old(about: os.stat_result) -> bool:
    """Return whether a file or folder was last changed long enough ago to be abandoned."""
    return time.time() - about.st_mtime > ABANDONED_AFTER


def take_lock(descriptor: int) -> None:
    """Lock an open file, or raise ``BlockingIOError`` or ``PermissionError`` at once.

    The system releases the lock when the process ends, however it ends.
    """
    try:
        import fcntl
    except ImportError:  # on Windows
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
