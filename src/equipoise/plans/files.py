"""Small files that users write for a plan, in TOML or JSON."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError, SourceNotFound

if TYPE_CHECKING:
    import os


def read_mapping(path: str | os.PathLike[str], what: str, instead: str) -> Mapping[str, Any]:
    """Read a TOML or JSON file of keys and values.

    Parameters
    ----------
    path
        Path of the file.
    what
        Name of its contents, for error messages.
    instead
        What the user can give instead of a file, for the error message if there is none.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        data = json.loads(text) if str(path).endswith(".json") else tomllib.loads(text)
    except FileNotFoundError:
        raise SourceNotFound(
            f"there is no file {path} with {what}; write one, or give {instead}."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"the {what} in {path} cannot be read: {error}.") from None
    if not isinstance(data, Mapping):
        raise InputError(f"the {what} in {path} must be a table of keys and values.")
    return data
