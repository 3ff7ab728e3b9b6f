"""What a user can ask for: every option is declared once, as a field of a request.

The declarations import nothing heavy. From them come the checks of a request, the flags of the
command line, the keys of ``equipoise.toml``, the keywords of the public functions and the tables
of the documentation.
"""

from __future__ import annotations

from equipoise.options.declaration import GROUPS, Option, check, declared, option, options_of, take

__all__ = ["GROUPS", "Option", "check", "declared", "option", "options_of", "take"]
