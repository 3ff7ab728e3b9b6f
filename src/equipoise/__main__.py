"""``python -m equipoise`` is the command line."""

from __future__ import annotations

from equipoise.cli import main

if __name__ == "__main__":
    main()
