"""Every option, declared once as a field of a request.

The checks of a request, the flags of the command line, the keys of ``equipoise.toml``, the keywords
of the public functions and the tables of the documentation are derived from these declarations.
They import nothing heavy.
"""

from __future__ import annotations

from equipoise.options.declaration import (
    GROUPS,
    Option,
    describe_keywords,
    keyword_fields,
    keyword_type,
    options_of,
    take,
)

__all__ = [
    "GROUPS",
    "Option",
    "describe_keywords",
    "keyword_fields",
    "keyword_type",
    "options_of",
    "take",
]
