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

DIGITS = 16
"""Number of hexadecimal digits of a hash."""

_FEW = 2_000
"""Maximum number of rows whose hashes of single columns are cached, ready to be summed."""

_MOST_TEXTS, _SHORT = 200_000, 80
"""Maximum number of texts whose hashes are remembered, and of characters of each."""

_AT_ONCE = 20_000
"""Number of texts that are hashed before the work can be cancelled again."""

# Databases read these patterns, too (meanings.py), so they hold only what all of these understand.
NUMBER = "[+-]?((0|[1-9][0-9]{0,14})([.][0-9]*)?|[.][0-9]+)(e[+-]?[0-9]{1,2})?"
"""Numbers without leading zeros, which may be part of a code."""

COMMA = "[+-]?([0-9]+|[1-9][0-9]{0,2}([.][0-9]{3})+)(,[0-9]+)?"
"""Numbers with a decimal comma."""

GROUPED = "[+-]?([0-9]+|[1-9][0-9]{0,2}(,[0-9]{3})+)([.][0-9]+)?"
"""Numbers with commas between thousands."""

DATE = (
    "([0-9]{1,4})([-/.])([0-9]{1,2})([-/.])([0-9]{1,4})"
    "(?:[ t]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.]0+)?)?(?: ?([ap])m)?)?"
)
"""Dates with or without a time, if both separators are the same."""

TRUTHS = {"y": "yes", "yes": "yes", "true": "yes", "n": "no", "no": "no", "false": "no"}

LARGE = 10**15
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
    _digests: dict[frozenset[str], Hashes] = field(default_factory=dict, repr=False, compare=False)
    _rising: dict[frozenset[str], Rising] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, rows: pa.Table, names: Iterable[str] | None = None) -> RowHashes:
        """Hash the values of some columns, or of all."""
        chosen = rows.column_names if names is None else list(names)
        return cls({name: value_hashes(rows[name]) for name in chosen}, len(rows))

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

    def count_equal(self, rows: RowHashes, names: Sequence[str]) -> NDArray[np.int64]:
        """Count the rows here that equal each of some others in some columns."""
        (rising, _), digests = self.rising_over(names), rows.over(names)
        first = np.searchsorted(rising, digests, "left")
        return np.searchsorted(rising, digests, "right") - first

    def digests(self, names: Sequence[str]) -> Hashes:
        """Hash rows over some columns as databases can: by md5, in the order of the names."""
        asked = frozenset(names)
        if asked not in self._digests:
            if self.origin is not None:
                found = self.origin.digests(names)[self.lines]
            else:
                found = self._digested(sorted(asked))
            self._keep(self._digests, asked, found)
        return self._digests[asked]

    def _digested(self, names: Sequence[str]) -> Hashes:
        _, first, number = np.unique(self.over(names), return_index=True, return_inverse=True)
        columns = [self.columns[name][first] for name in names]
        texts = np.column_stack(columns).astype(">u8").tobytes().hex()
        width = DIGITS * len(columns)
        found = (_md5(texts[i : i + width]) for i in range(0, len(texts), width))
        return np.fromiter(found, np.uint64, len(first))[number]

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


def value_hashes(column: pa.ChunkedArray) -> Hashes:
    """Hash values by their meaning: numbers by their bits, and texts by md5."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(column) or pa.types.is_null(column.type):
        return np.full(len(column), _MISSING)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        doubles = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        hashes = _of_numbers(doubles)
        large = np.abs(doubles) >= LARGE
        if pa.types.is_integer(column.type) and large.any():
            hashes[large] = _of_texts(pc.cast(column, pa.string()).filter(pa.array(large)))
        return hashes
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        if len(column) <= _FEW:
            return _of_few_texts(column.to_pylist())
        coded = pc.dictionary_encode(column).unify_dictionaries().combine_chunks()
        texts, codes = coded.dictionary, coded.indices.fill_null(len(coded.dictionary))
        numbers: NDArray[np.int32] = codes.to_numpy()
        return np.append(_of_texts(texts), _MISSING)[numbers]
    values, numbers = encode_arrow(column, None)
    texts = pa.array(["" if value is MISSING else value for value in values], pa.string())
    return _of_texts(texts)[numbers]


def _of_few_texts(texts: Sequence[str | None]) -> Hashes:
    """Hash the texts of a small table, most of which earlier tables had, too."""
    import pyarrow as pa

    different = [text for text in dict.fromkeys(texts) if text is not None]
    known = {t: digest for t in different if (digest := _remembered.get(t)) is not None}
    fresh = [text for text in different if text not in known]
    if fresh:
        found = dict(zip(fresh, _of_texts(pa.array(fresh, pa.string())).tolist(), strict=True))
        if len(_remembered) + len(found) > _MOST_TEXTS:
            _remembered.clear()
        _remembered.update({text: found[text] for text in fresh if len(text) <= _SHORT})
        known |= found
    missing = int(_MISSING)
    return np.fromiter((missing if t is None else known[t] for t in texts), np.uint64, len(texts))


def _of_texts(texts: pa.Array) -> Hashes:
    """Hash texts, and numbers among them by their value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = _plain(texts)
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


def _plain(texts: pa.Array) -> pa.Array:
    """Write texts without surrounding blanks, in lower case."""
    import pyarrow.compute as pc

    return pc.utf8_lower(pc.utf8_trim_whitespace(texts))


def _of_text(text: str) -> int:
    """Hash a text that is not a plain number by its meaning, unless it is ambiguous."""
    if text in TRUTHS:
        return _md5(TRUTHS[text])
    if not text or not (text[0].isdigit() or text[0] in "+-"):
        return _md5(text)
    if (number := _foreign_number(text)) is not None:
        return int(_of_numbers(np.array([number]))[0])
    return _md5(_day(text) or text)


_NUMBER = f"^(?:{NUMBER})$"
_COMMA, _GROUPED, _DATE = map(re.compile, (COMMA, GROUPED, DATE))


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
    if found is None or found[2] != found[4]:
        return None
    first, _, second, _, third, hour, minute, seconds, half = found.groups()
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
    import pyarrow as pa

    values, numbers = encode_arrow(column, None)
    texts = pa.array(["" if value is MISSING else value for value in values], pa.string())
    return np.array([_md5(_loose(text)) for text in _plain(texts).to_pylist()], np.uint64)[numbers]


def _loose(text: str) -> str:
    found = _DATE.fullmatch(text)
    if found is not None and found[2] == found[4]:
        parts = sorted(found[i][-2:].zfill(2) for i in (1, 3, 5))
        return f"{'-'.join(parts)}{_time(*found.groups()[5:])}"
    digits = re.sub("[^0-9]", "", text)
    return digits.strip("0") if digits else text


def _of_numbers(numbers: NDArray[np.float64]) -> Hashes:
    """Return the bits of numbers, which are mixed only when rows are hashed: databases cannot mix."""
    exact = np.where(np.isnan(numbers), 0.0, numbers) + 0.0  # −0.0 is 0.0
    return np.where(np.isnan(numbers), _MISSING, exact.view(np.uint64))


def _md5(text: str) -> int:
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big")


def hash_text(text: str) -> str:
    """Write the hash of a text as databases do."""
    return f"{_md5(text):0{DIGITS}x}"


def as_texts(hashes: Hashes) -> pa.Array:
    """Write hashes as databases do, without a Python object for each.

    >>> as_texts(np.array([255, 16], np.uint64)).to_pylist()
    ['00000000000000ff', '0000000000000010']
    """
    import pyarrow as pa

    digits = hashes.astype(">u8").tobytes().hex().encode()
    ends = np.arange(len(hashes) + 1, dtype=np.int32) * DIGITS
    return pa.StringArray.from_buffers(len(hashes), pa.py_buffer(ends), pa.py_buffer(digits))


def from_texts(texts: pa.ChunkedArray) -> Hashes:
    """Read hashes that databases wrote.

    >>> import pyarrow as pa
    >>> from_texts(pa.chunked_array([as_texts(np.array([255, 16], np.uint64))])).tolist()
    [255, 16]
    """
    digits = bytes.fromhex("".join(texts.to_pylist()))
    return np.frombuffer(digits, ">u8").astype(np.uint64)


_MISSING = np.uint64(_md5(""))
"""Hash of missing values and of empty texts, which not every file format tells apart."""

_remembered: dict[str, int] = {}
"""Hashes of texts of small tables."""


def _mixed(numbers: Hashes) -> Hashes:
    """Spread the bits, so that sums of hashes do not cancel."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
