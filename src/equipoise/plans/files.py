"""Small files a user writes for a plan: TOML, or JSON."""

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
        The file.
    what
        What it holds, for the message if it cannot be read.
    instead
        What to write instead of a file, for the message if there is none.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        data = json.loads(text) if str(path).endswith(".json") else tomllib.loads(text)
    except FileNotFoundError:
        raise SourceNotFound(
            f"there is no file {path} with {what}; write one, or {instead}."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"the {what} in {path} cannot be read: {error}.") from None
    if not isinstance(data, Mapping):
        raise InputError(f"the {what} in {path} must be keys with values.")
    return data
