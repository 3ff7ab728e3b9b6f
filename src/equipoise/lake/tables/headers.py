"""The words of a column's header, and whether they say what the column holds."""

from __future__ import annotations

import functools
import re
import unicodedata


@functools.lru_cache(maxsize=100_000)
def words(header: str) -> tuple[str, ...]:
    """Split a header into its words and numbers, in lower case and without accents.

    >>> words("HoursPerWeek"), words("pay_amt1")
    (('hours', 'per', 'week'), ('pay', 'amt', '1'))
    """
    plain = unicodedata.normalize("NFKD", header)
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", plain)
    return tuple(re.findall(r"[^\W\d_]+|\d+", apart.casefold()))


@functools.lru_cache(maxsize=100_000)
def is_opaque(header: str) -> bool:
    """Whether a header says nothing: a letter or placeholder, with or without a number.

    >>> [is_opaque(h) for h in ("c7", "col_07", "X", "V1", "sex", "column3")]
    [True, True, True, True, False, True]
    """
    bare = re.sub(r"[\W\d_]+", "", header).casefold()
    return len(bare) <= 1 or bare in {"col", "column", "var", "field", "attr", "feature", "unnamed"}
