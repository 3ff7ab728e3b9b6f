"""HiGHS, through SciPy, with standard output kept for results.

HiGHS writes stray lines past Python, straight to file descriptor 1, where they would be in
the middle of a result that is piped on.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any


def solve_milp(*model: Any, **options: Any) -> Any:
    """Solve a mixed integer model with ``scipy.optimize.milp``.

    What the solver prints goes to standard error, for all threads until it is done. If either
    stream is closed, or ``sys.stdout`` is not a file, nothing is diverted.
    """
    from scipy.optimize import milp

    with _DIVERSION:
        return milp(*model, **options)


class _Diversion:
    """Standard output leads to standard error while any thread is inside."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.kept: int | None = None

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.kept = _divert()
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside and self.kept is not None:
                _restore(self.kept)


def _divert() -> int | None:
    """Lead file descriptor 1 to standard error, and give a copy of where it led."""
    try:
        sys.stdout.fileno()
        sys.stdout.flush()
        os.fstat(2)
        kept = os.dup(1)
    except (AttributeError, OSError, ValueError):  # none, closed, or only in memory
        return None
    os.dup2(2, 1)
    return kept


def _restore(kept: int) -> None:
    # Into a pipe C writes only when its buffer is full: what waits there must not come later.
    import ctypes

    ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None).fflush(None)
    os.dup2(kept, 1)
    os.close(kept)


_DIVERSION = _Diversion()
