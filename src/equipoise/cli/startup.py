"""Imports of the program, when no other code runs in its process."""

from __future__ import annotations

import importlib.abc
import sys

_program = False


def begin_program() -> None:
    """Note that this process runs the command line and nothing else."""
    global _program  # noqa: PLW0603 (one process is one program)
    _program = True


def spare_pandas() -> None:
    """Load pyarrow, and let it find that there is no pandas.

    With its first conversion pyarrow loads pandas, if that is installed, in order to recognize
    frames and series. A command has none, and loading pandas takes longer than most measurements.
    Code that imports pandas itself, such as ``to_pandas``, still works. Where other code runs in
    the same process this does nothing: it may have frames.
    """
    if not _program or "pandas" in sys.modules or "pyarrow" in sys.modules:
        return
    absent = _NoPandas()
    sys.meta_path.insert(0, absent)
    try:
        import pyarrow as pa

        pa.array([])  # after this pyarrow does not look again
    finally:
        sys.meta_path.remove(absent)


class _NoPandas(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse one package, and leave all others to other finders."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name)
