"""What the explorer was started with."""

from __future__ import annotations

import hashlib
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from equipoise.errors import InputError
from equipoise.scratch import cache_folder

MEGABYTE = 1_000_000
UNNAMED = "~"
"""How names of work begin that nobody asked for by a name."""


@dataclass(frozen=True, kw_only=True)
class ExplorerSettings:
    """What the explorer was started with.

    Attributes
    ----------
    root
        Folder below which files can be read.
    home
        Folder of uploads and results.
    tokens
        One secret for each user; users do not see each other's uploads and work.
    data, lake, store
        Table, lake and store of batches to open, relative to the root.
    read_only
        Whether everything that writes is left out.
    time_limit
        Seconds that one piece of work may take.
    memory
        Maximum number of bytes of one worker process.
    workers
        Number of processes that answer requests.
    upload_limit
        Maximum number of bytes of an uploaded file.
    """

    root: Path
    home: Path
    tokens: tuple[str, ...] = field(default_factory=lambda: (new_token(),))
    data: str | None = None
    lake: str | None = None
    store: str | None = None
    read_only: bool = False
    time_limit: float = 300.0
    memory: int = 4_000 * MEGABYTE
    workers: int = field(default_factory=lambda: max(2, min(8, os.cpu_count() or 2)))
    upload_limit: int = 200 * MEGABYTE

    def __post_init__(self) -> None:
        if not self.root.is_dir():
            raise InputError(f"{self.root} is not a folder; name the folder of your tables.")
        if not self.tokens or len(set(self.tokens)) != len(self.tokens):
            raise InputError("there must be at least one token, and no token twice.")


def new_token() -> str:
    """Make a random secret."""
    return secrets.token_urlsafe(24)


def default_home(root: Path) -> Path:
    """The folder of uploads and results for a root: a folder of its own in the user's cache."""
    name = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]
    return cache_folder() / "explore" / f"{root.resolve().name or 'root'}-{name}"


def too_large(most: int) -> str:
    """Say that what was sent is too large, and what to do."""
    return (
        f"the file is larger than {most / 1e6:,.0f} MB; put it below the folder that the explorer was "
        "started in, and open it from there."
    )
