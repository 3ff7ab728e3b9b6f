"""The version, read where it is declared once: in the package's metadata."""

from __future__ import annotations

import functools


@functools.cache
def version() -> str:
    """The version of the installed package.

    >>> version().count(".")
    2
    """
    from importlib import metadata

    return metadata.version("equipoise")
