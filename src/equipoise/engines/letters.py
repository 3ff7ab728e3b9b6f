"""Letters and blanks, as Arrow knows them, for databases that would take others for such."""

from __future__ import annotations

import functools

BLANKS = "".join(chr(i) for i in range(0x3001) if chr(i).isspace())
"""Characters that surround a text without meaning anything."""

_LAST = 0x20000  # there are no capital letters from here on


def is_settled(letter: str) -> bool:
    """Whether a letter is Latin, Greek, Cyrillic or Armenian, whose case no newer Unicode changes."""
    return letter < "\u0590" or "\u1e00" <= letter < "\u2000"


@functools.cache
def letters() -> tuple[str, str]:
    """Return all capital letters, and the small letter of each.

    >>> capital, small = letters()
    >>> [small[capital.index(letter)] for letter in "AÉΣЖ"]
    ['a', 'é', 'σ', 'ж']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    every = [chr(i) for i in range(1, _LAST) if not 0xD800 <= i < 0xE000]
    lower = pc.utf8_lower(pa.array(every)).to_pylist()
    pairs = [(a, b) for a, b in zip(every, lower, strict=True) if a != b]
    return "".join(a for a, _ in pairs), "".join(b for _, b in pairs)
