"""Defaults from ``equipoise.toml``, or ``[tool.equipoise]`` in ``pyproject.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def load(path: str | None) -> dict[str, Any]:
    """Read the file named, or the nearest one from here upward; nothing if there is none."""
    file = Path(path) if path is not None else _nearest()
    if file is None:
        return {}
    from equipoise.measures.policy import read_config

    return read_config(file)


def _nearest() -> Path | None:
    here = Path.cwd()
    for folder in (here, *here.parents):
        for name in ("equipoise.toml", "pyproject.toml"):
            file = folder / name
            if file.is_file() and (name == "equipoise.toml" or _has_table(file)):
                return file
    return None


def _has_table(file: Path) -> bool:
    try:
        return "[tool.equipoise" in file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def defaults(found: dict[str, Any]) -> dict[str, Any]:
    """Each command's table as defaults of its options."""
    return {
        command: {key.replace("-", "_"): value for key, value in table.items()}
        for command, table in found.items()
        if isinstance(table, dict)
    }
