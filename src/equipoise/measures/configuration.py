"""The configuration file of a project, ``equipoise.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError, SourceNotFound

if TYPE_CHECKING:
    import os


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read ``equipoise.toml``, or the ``[tool.equipoise]`` table of a pyproject file."""
    file = Path(path)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SourceNotFound(f"there is no file {file}.") from None
    except OSError as error:
        raise SourceNotFound(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise SourceNotFound(f"{file} cannot be read: {error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file} is not TOML: {error}.") from None
    tools = data.get("tool")
    if file.name == "pyproject.toml" or (isinstance(tools, dict) and "equipoise" in tools):
        ours = tools.get("equipoise", {}) if isinstance(tools, dict) else {}
        data = ours if isinstance(ours, dict) else {"equipoise": ours}
    if not all(isinstance(table, dict) for table in data.values()):
        raise InputError(f"{file} must contain tables such as [check], with options as keys.")
    return data
