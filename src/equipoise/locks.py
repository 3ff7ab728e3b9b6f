"""Locks on open files, which the system releases when their process ends, however it ends."""

from __future__ import annotations


def take_lock(descriptor: int) -> None:
    """Lock an open file, or raise ``BlockingIOError`` or ``PermissionError`` at once.

    >>> import os, tempfile
    >>> descriptor, name = tempfile.mkstemp()
    >>> take_lock(descriptor)
    >>> other = os.open(name, os.O_RDWR)
    >>> try:
    ...     take_lock(other)
    ... except OSError as error:
    ...     print(type(error).__name__)
    BlockingIOError
    """
    try:
        import fcntl
    except ImportError:  # on Windows
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
