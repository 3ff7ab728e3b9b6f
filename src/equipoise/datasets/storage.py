"""Locations of data files: in the package, or in the user's data directory."""

from __future__ import annotations

import importlib.resources
import os
import sys
from pathlib import Path

from equipoise.datasets.cards import Card, card
from equipoise.errors import SourceNotFound


def data_directory() -> Path:
    """Return the directory of downloaded data sets, which need not exist.

    It is ``EQUIPOISE_DATA`` if that is set. Otherwise it is ``equipoise`` in ``XDG_DATA_HOME`` or in
    the platform's directory for user data.
    """
    if chosen := os.environ.get("EQUIPOISE_DATA"):
        return Path(chosen).expanduser().absolute()
    return _user_data_home() / "equipoise"


def _user_data_home() -> Path:
    xdg = os.environ.get("XDG_DATA_HOME", "")
    if Path(xdg).is_absolute():  # the XDG specification says to ignore relative ones
        return Path(xdg)
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path.home() / ".local" / "share"


def is_available(name: str) -> bool:
    """Whether a data set is bundled or was downloaded before."""
    return _location(card(name)).is_file()


def path(name: str) -> Path:
    """Return the path of a data set; it is an error if it was not downloaded yet."""
    wanted = card(name)
    location = _location(wanted)
    if location.is_file():
        return location
    if wanted.is_bundled:
        message = f"{location} is missing from this installation of Equipoise; install it again"
    else:
        message = (
            f"data set {name!r} is not bundled, and not yet at {location}; "
            f"download it with: equipoise data fetch {name}"
        )
    raise SourceNotFound(message)


def _location(wanted: Card) -> Path:
    if wanted.is_bundled:
        return Path(str(importlib.resources.files(__package__) / wanted.file))
    return data_directory() / wanted.file
