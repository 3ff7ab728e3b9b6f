"""The command line: parses, calls, prints."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the program and exit with its code."""
    try:
        from equipoise.cli.app import run
        from equipoise.cli.startup import begin_program

        begin_program()
        code = run()
    except KeyboardInterrupt:  # while the program was still being loaded
        sys.stderr.write("error: interrupted; nothing was written.\n")
        code = 130
    sys.exit(code)


__all__ = ["main"]
