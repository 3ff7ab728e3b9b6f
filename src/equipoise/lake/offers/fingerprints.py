"""Hashes of rows: equal for rows with the same meaning, whatever table they are in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.counts.columns import encode_arrow
from equipoise.progress import pulse
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa

Hashes = NDArray[np.uint64]
Rising = tuple[Hashes, NDArray[np.int64]]
_Kept = TypeVar("_Kept")

_MOST_KEPT, _MOST_SETS = 4_000_000, 32
"""Maximum number of cached hashes of whole rows, and of sets of columns they are cached for."""

_FEW = 100_000
"""Maximum number of rows whose hashes of single columns are cached, ready to be summed."""

_AT_ONCE = 20_000
"""Number of texts that are hashed before the work can be cancelled again."""

_NUMBER = r"^[+-]?((0|[1-9]\d{0,14})(\.\d*)?|\.\d+)(e[+-]?\d{1,2})?$"
"""Numbers without leading zeros, which may be part of a code."""
_LARGE = 1e15
"""Integers from here on are hashed by their digits, since a double cannot hold all of them."""


@dataclass(frozen=True, eq=False)
class RowHashes:
    """For every column of some rows, a hash of each value.

    Values are compared by their meaning: case, surrounding blanks, and the notation of numbers,
    dates, yes and no are ignored, unless a value is ambiguous. Texts are hashed by md5, and the
    hashes are the same on any machine.

    >>> import pyarrow as pa
    >>> ours = RowHashes.of(pa.table({"sex": ["Female"], "age": [39]}))
    >>> theirs = RowHashes.of(pa.table({"age": ["39.0"], "sex": [" female"]}))
    >>> bool(ours.over(["sex", "age"])[0] == theirs.over(["sex", "age"])[0])
    True
    """

    columns: Mapping[str, Hashes]
    length: int
    origin: RowHashes | None = field(default=None, repr=False)
    """The rows that these were taken from."""

    lines: NDArray[np.int64] | None = field(default=None, repr=False)
    """Which of those rows these are."""

    _parts: dict[str, Hashes] = field(default_factory=dict, repr=False)
    _whole: dict[frozenset[str], Hashes] = field(default_factory=dict, repr=False, compare=False)
    _rising: dict[frozenset[str], Rising] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, rows: pa.Table, names: Iterable[str] | None = None) -> RowHashes:
        """Hash the values of some columns, or of all."""
        chosen = rows.column_names if names is None else list(names)
        return cls({name: _hashed(rows[name]) for name in chosen}, len(rows))

    @classmethod
    def joined(cls, tables: Sequence[RowHashes]) -> RowHashes:
        """Concatenate the rows of tables with the same columns."""
        columns = {n: np.concatenate([t.columns[n] for t in tables]) for n in tables[0].columns}
        return cls(columns, sum(rows.length for rows in tables))

    def over(self, names: Sequence[str]) -> Hashes:
        """Hash rows over some columns, in whatever order these are given."""
        asked = frozenset(names)
        if asked not in self._whole:
            if self.origin is not None:
                found = self.origin.over(names)[self.lines]
            else:
                total = np.zeros(self.length, np.uint64)
                for name in asked:  # a sum, since sets have no order
                    total += self._mixed_column(name)
                found = _mixed(total)
            self._keep(self._whole, asked, found)
        return self._whole[asked]

    def _mixed_column(self, name: str) -> Hashes:
        """Hash the values of a column together with its name."""
        if name in self._parts:
            return self._parts[name]
        found = _mixed(self.columns[name] ^ np.uint64(_md5(name)))
        if self.length <= _FEW:
            self._parts[name] = found
        return found

    def rising_over(self, names: Sequence[str]) -> Rising:
        """Return the sorted hashes over some columns, and the row of each."""
        asked = frozenset(names)
        if asked not in self._rising:
            hashes = self.over(names)
            order = np.argsort(hashes, kind="stable")
            self._keep(self._rising, asked, (hashes[order], order))
        return self._rising[asked]

    def _keep(self, kept: dict[frozenset[str], _Kept], asked: frozenset[str], found: _Kept) -> None:
        """Cache the latest hashes, since most tables share the same few sets of columns."""
        many = len(kept) >= _MOST_SETS or self.length * (len(kept) + 1) > _MOST_KEPT
        if kept and many:
            del kept[next(iter(kept))]
        kept[asked] = found

    def take(self, places: NDArray[np.int64]) -> RowHashes:
        """Return some of the rows, which stay known as rows of these."""
        lines = places if self.lines is None else self.lines[places]
        return RowHashes(
            _Taken(self.columns, places), len(places), origin=self.origin or self, lines=lines
        )


class _Taken(Mapping[str, Hashes]):
    """Some rows of columns, copied when they are asked for: mostly only their names are."""

    def __init__(self, columns: Mapping[str, Hashes], places: NDArray[np.int64]) -> None:
        self._columns, self._places = columns, places

    def __getitem__(self, name: str) -> Hashes:
        return self._columns[name][self._places]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _hashed(column: pa.ChunkedArray) -> Hashes:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(column) or pa.types.is_null(column.type):
        return np.full(len(column), _MISSING)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        doubles = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        hashes = _of_numbers(doubles)
        large = np.abs(doubles) >= _LARGE
        if pa.types.is_integer(column.type) and large.any():
            hashes[large] = _of_texts(pc.cast(column, pa.string()).filter(pa.array(large)))
        return hashes
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        coded = pc.dictionary_encode(column).unify_dictionaries().combine_chunks()
        texts, codes = coded.dictionary, coded.indices.fill_null(len(coded.dictionary))
        numbers: NDArray[np.int32] = codes.to_numpy()
        return np.append(_of_texts(texts), _MISSING)[numbers]
    values, numbers = encode_arrow(column, None)
    texts = pa.array(["" if value is MISSING else value for value in values], pa.string())
    return _of_texts(texts)[numbers]


def _of_texts(texts: pa.Array) -> Hashes:
    """Hash texts, and numbers among them by their value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    is_number = pc.match_substring_regex(plain, _NUMBER).to_numpy(zero_copy_only=False)
    is_number = is_number.astype(bool)
    hashes = np.empty(len(plain), np.uint64)
    numbers = plain.filter(pa.array(is_number))
    hashes[is_number] = _of_numbers(
        pc.cast(pc.utf8_ltrim(numbers, "+"), pa.float64()).to_numpy(zero_copy_only=False)
    )
    others = plain.filter(pa.array(~is_number))
    parts = [np.empty(0, np.uint64)]
    for start in range(0, len(others), _AT_ONCE):
        if start:
            pulse()
        texts = others.slice(start, _AT_ONCE).to_pylist()
        parts.append(np.fromiter(map(_of_text, texts), np.uint64, len(texts)))
    hashes[~is_number] = np.concatenate(parts)
    return hashes


def _of_text(text: str) -> int:
    """Hash a text that is not a plain number by its meaning, unless it is ambiguous."""
    if text in _TRUTHS:
        return _md5(_TRUTHS[text])
    if not text or not (text[0].isdigit() or text[0] in "+-"):
        return _md5(text)
    if (number := _foreign_number(text)) is not None:
        return int(_of_numbers(np.array([number]))[0])
    return _md5(_day(text) or text)


_TRUTHS = {"y": "yes", "yes": "yes", "true": "yes", "n": "no", "no": "no", "false": "no"}
_COMMA = re.compile(r"[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?(\d+|[1-9]\d{0,2}(,\d{3})+)(\.\d+)?", re.ASCII)
_DATE = re.compile(
    r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})"
    r"(?:[ t](\d{1,2}):(\d{2})(?::(\d{2})(?:\.0+)?)?(?: ?([ap])m)?)?",
    re.ASCII,
)


def _foreign_number(text: str) -> float | None:
    """Read a number with a decimal comma or with commas between thousands, unless ambiguous."""
    comma, grouped = _COMMA.fullmatch(text), _GROUPED.fullmatch(text)
    if bool(comma) == bool(grouped):  # neither fits, or both do
        return None
    bare = text.replace(".", "").replace(",", ".") if comma else text.replace(",", "")
    return float(bare)


def _day(text: str) -> str | None:
    """Write a date with the year first, unless day and month are ambiguous."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    first, _, second, third, hour, minute, seconds, half = found.groups()
    if len(first) == 4 and len(third) <= 2:
        year, month, day = first, int(second), int(third)
    elif len(third) == 4 and len(first) <= 2:
        a, b = int(first), int(second)
        if a <= 12 and b <= 12 and a != b:
            return None
        year, month, day = third, min(a, b), max(a, b)
    else:
        return None
    return f"{year}-{month:02}-{day:02}{_time(hour, minute, seconds, half)}"


def _time(hour: str | None, minute: str | None, seconds: str | None, half: str | None) -> str:
    """Format the time after a date; midnight counts as no time."""
    hours = int(hour or 0) % 12 + 12 * (half == "p") if half else int(hour or 0)
    time = f" {hours:02}:{minute or '00'}:{seconds or '00'}"
    return "" if time == " 00:00:00" else time


def loosely(name: str) -> str:
    """Name the hashes of a column whose values can be read in several ways."""
    return f"{name}\0loosely"


def loose_hashes(column: pa.ChunkedArray) -> Hashes:
    """Hash dates in any order of day and month, and numbers whatever their separators mean.

    >>> import pyarrow as pa
    >>> texts = pa.chunked_array([["2021-03-04", "04/03/2021", "3.4.21", "1,500", "1.5", "2"]])
    >>> len(np.unique(loose_hashes(texts)))
    3
    """
    values, numbers = encode_arrow(column, None)
    texts = ("" if value is MISSING else value.strip().lower() for value in values)
    return np.array([_md5(_loose(text)) for text in texts], np.uint64)[numbers]


def _loose(text: str) -> str:
    found = _DATE.fullmatch(text)
    if found is not None:
        parts = sorted(int(found[i][-2:]) for i in (1, 3, 4))
        return f"{parts}{_time(*found.groups()[4:])}"
    digits = re.sub("[^0-9]", "", text)
    return digits.strip("0") if digits else text


def _of_numbers(numbers: NDArray[np.float64]) -> Hashes:
    exact = np.where(np.isnan(numbers), 0.0, numbers) + 0.0  # −0.0 is 0.0
    return np.where(np.isnan(numbers), _MISSING, _mixed(exact.view(np.uint64)))


def _md5(text: str) -> int:
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big")


_MISSING = np.uint64(_md5(""))
"""Hash of missing values and of empty texts, which not every file format tells apart."""


def _mixed(numbers: Hashes) -> Hashes:
    """Spread the bits, so that sums of hashes do not cancel."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
