"""Sizes and dates of the files of a lake, found in the time it takes to ask for them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from equipoise.engines.kinds import EXTENSIONS

Stamps: TypeAlias = dict[str, tuple[int, int]]
"""By the name of a file its size, and its date in nanoseconds."""

_ENDINGS = tuple(ending for known in EXTENSIONS for ending in (known, f"{known}.gz"))


def digest_of(stamps: Mapping[str, tuple[int, int]]) -> str:
    """Hash what is known of all files, to compare it with what is there."""
    digest = hashlib.md5(usedforsecurity=False)
    for name in sorted(stamps):
        size, changed = stamps[name]
        digest.update(f"{name}\0{size}\0{changed}\n".encode(errors="replace"))
    return digest.hexdigest()


def quick_stamps(places: Sequence[str], index: Path) -> Stamps | None:
    """Return the stamps of the files in one folder, as the catalogue would find them.

    The catalogue describes every file and every reason why one cannot be read. To see that nothing
    has changed, names and dates are enough. Whatever is unusual (links, names that are not ASCII,
    files that are none, folders that cannot be opened, tables that are folders) is left to the catalogue:
    then there is None.
    """
    if len(places) != 1 or "://" in places[0] or not os.path.isdir(places[0]):  # noqa: PTH112
        return None
    found: Stamps = {}
    try:
        usual = _look_into(os.path.normpath(places[0]), "", index.name, found)
    except OSError:
        return None
    return found if usual else None


def _look_into(folder: str, below: str, index: str, found: Stamps) -> bool:
    """Add the stamps of the files of a folder; return whether there was nothing unusual."""
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith("_delta"):
                return False
            if name.startswith((".", "_")):
                continue
            if entry.is_symlink() or not name.isascii():
                return False
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif name.lower().endswith(_ENDINGS):
                if name == index:
                    return False
                about = entry.stat(follow_symlinks=False)
                # Permissions need no look: changing them changes the date.
                if not stat.S_ISREG(about.st_mode):
                    return False
                changed = max(about.st_mtime_ns, about.st_ctime_ns)
                found[below + name] = about.st_size, changed
    return all(_look_into(f"{folder}/{name}", f"{below}{name}/", index, found) for name in folders)
