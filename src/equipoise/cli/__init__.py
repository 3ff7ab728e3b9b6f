"""The command line: parses, calls, prints."""

from __future__ import annotations

from equipoise.cli.app import main

__all__ = ["main"]
