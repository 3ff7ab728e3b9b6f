"""Imports of the program, when no other code runs in its process."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def begin_program() -> None:
    """Let pyarrow find that there is no pandas, in a process that runs one command and nothing else.

    With its first conversion pyarrow loads pandas, if that is installed, in order to recognize
    frames and series. A command has none, and loading pandas takes longer than most measurements.
    Code that imports pandas itself, such as ``to_pandas``, still works.
    """
    if "pandas" not in sys.modules and "pyarrow" not in sys.modules:
        sys.meta_path.insert(0, _Pyarrow())


class _Pyarrow(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads pyarrow as usual whenever it is needed, and then lets it look for pandas once."""

    own: Any = None

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find pyarrow, and leave all else to other finders."""
        del path, target
        if name != "pyarrow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            self.own, spec.loader = spec.loader, self
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Load pyarrow."""
        if module.__spec__ is not None:
            module.__spec__.loader = self.own
        module.__loader__ = self.own
        self.own.exec_module(module)
        with _no_pandas():
            module.array([])  # after this pyarrow does not look again


@contextlib.contextmanager
def _no_pandas() -> Iterator[None]:
    absent = _NoPandas()
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)


class _NoPandas(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse one package, and leave all others to other finders."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name)
