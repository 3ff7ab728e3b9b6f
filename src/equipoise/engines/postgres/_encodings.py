"""Databases of PostgreSQL that do not store texts as UTF-8."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from equipoise.engines.letters import letters
from equipoise.engines.postgres._dialect import DIALECT, PostgresDialect

_CODECS: Mapping[str, str] = {
    **{
        f"LATIN{i}": f"iso8859-{part}"
        for i, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15, 16), 1)
    },
    **{f"ISO_8859_{i}": f"iso8859-{i}" for i in (5, 6, 7, 8)},
    **{f"WIN{i}": f"cp{i}" for i in (866, 874, *range(1250, 1259))},
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
    "EUC_CN": "gb2312",
    "EUC_JP": "euc-jp",
    "EUC_KR": "euc-kr",
}
"""Encodings of servers each of whose characters is one of Unicode, and what Python calls them."""


class EncodedDialect(PostgresDialect):
    """The SQL of a database with another encoding, where hashes and order are those of UTF-8 all the same.

    A query cannot even mention a character that the encoding does not have.
    """

    def __init__(self, codec: str) -> None:
        self._codec = codec

    def can_hold(self, text: str) -> bool:
        """Whether the encoding has all characters of a text."""
        try:
            text.encode(self._codec)
        except UnicodeEncodeError:
            return False
        return True

    def texts(self, texts: Iterable[str]) -> str:
        """List texts, as after IN, without those that no value can equal."""
        return super().texts(filter(self.can_hold, texts))

    def in_lower_case(self, text: str) -> str:
        """Write the letters that the encoding has in lower case."""
        capital, small = map(self.literal, self._letters)
        own = f'{text} COLLATE "C"'
        return (
            f"CASE WHEN {self.is_ascii(text)} THEN lower({own}) "
            f"ELSE translate({own}, {capital}, {small}) END"
        )

    @functools.cached_property
    def _letters(self) -> tuple[str, str]:
        pairs = [pair for pair in zip(*letters(), strict=True) if self.can_hold("".join(pair))]
        return "".join(a for a, _ in pairs), "".join(b for _, b in pairs)

    def cased(self, name: str, text: str) -> str:
        """Write a text in lower or upper case; null if it has other letters than those of ASCII."""
        return f'CASE WHEN {self.is_ascii(text)} THEN {name}({text} COLLATE "C") END'

    def stripped_of(self, text: str, characters: str) -> str:
        """Read a text without some surrounding characters."""
        return super().stripped_of(text, "".join(filter(self.can_hold, characters)))

    def is_ascii(self, text: str) -> str:
        """Whether a text has ASCII characters only; here others may have one byte, too."""
        return f"octet_length({self._utf8(text)}) = length({text})"

    def md5(self, text: str) -> str:
        """Write the MD5 of a text in UTF-8."""
        return f"md5({self._utf8(text)})"

    def by_bytes(self, text: str) -> str:
        """Write a text so that it is ordered by its bytes in UTF-8."""
        return self._utf8(text)

    def _utf8(self, text: str) -> str:
        return f"convert_to({text}, 'UTF8')"


@functools.cache
def dialect_of(encoding: str) -> PostgresDialect:
    """Return the SQL of databases of an encoding."""
    codec = _CODECS.get(encoding)
    return DIALECT if codec is None else EncodedDialect(codec)


def is_known(encoding: str) -> bool:
    """Whether texts of an encoding can be compared with those of other databases.

    In ``SQL_ASCII`` a server does not know what its bytes mean, and a few characters of some others are
    two of Unicode.

    >>> is_known("UTF8"), is_known("WIN1251"), is_known("SQL_ASCII")
    (True, True, False)
    """
    return encoding == "UTF8" or encoding in _CODECS
