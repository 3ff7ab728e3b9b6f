"""Groups, the patterns that name them, and the roll-up from cells to the whole lattice."""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import LatticeTooLarge, PatternError
from equipoise.values import ANY, MISSING, Selector, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

# --------------------------------------------------------------------------- patterns

_NEEDS_QUOTES = re.compile(r"""[,'"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|^\s|\s$""")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)


class Group(Mapping[str, Value]):
    """A group of rows: a value for some attributes, any value for the others.

    A group prints as a pattern and is parsed from one. Values that contain commas, quotes or
    control characters, and the texts ``*`` and ``<missing>`` themselves, are in single quotes.

    >>> Group({"sex": "Female", "race": ANY})
    Group('sex=Female')
    >>> Group.parse("sex=Female, income=>50K")["income"]
    '>50K'
    >>> Group.parse("sex='*', race=<missing>")
    Group("sex='*', race=<missing>")
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Selector] | None = None) -> None:
        self._values: dict[str, Value] = {
            name: value for name, value in (values or {}).items() if value is not ANY
        }

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, Group) else NotImplemented

    def __str__(self) -> str:
        return format_pattern(self._values)

    def __repr__(self) -> str:
        return f"Group({str(self)!r})"

    def matches(self, other: Mapping[str, Value]) -> bool:
        """Return whether every row of ``other`` is a row of this group."""
        return all(other.get(name, ANY) == value for name, value in self._values.items())

    @classmethod
    def parse(cls, pattern: str) -> Group:
        """Read a group from its pattern; ``*`` alone is the group of all rows."""
        return cls(parse_pattern(pattern))


def format_pattern(selectors: Mapping[str, Selector]) -> str:
    """Write selectors as a pattern, the inverse of :func:`parse_pattern`."""
    parts = (f"{_name_text(name)}={format_value(value)}" for name, value in selectors.items())
    return ", ".join(parts) or "*"


def format_value(value: Selector) -> str:
    """Write one value as in a pattern.

    >>> print(format_value("*"), format_value(ANY), format_value(MISSING), format_value("a=b"))
    '*' * <missing> a=b
    """
    if value is ANY or value is MISSING:
        return str(value)
    if value in ("", "*", "<missing>") or _NEEDS_QUOTES.search(str(value)):
        return _quote(str(value))
    return str(value)


def _name_text(name: str) -> str:
    return _quote(name) if "=" in name or not name or _NEEDS_QUOTES.search(name) else name


def _quote(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{escaped.translate(_CONTROLS)}'"


# json.dumps leaves these raw, and they would break a line or a terminal.
_CONTROLS = {
    c: f"\\u{c:04x}"
    for c in itertools.chain(range(0x7F, 0xA0), (0x2028, 0x2029), range(0xD800, 0xE000))
}


def parse_pattern(text: str) -> dict[str, Selector]:
    """Read ``name=value, name=value``; a value may be ``*`` (any) or ``<missing>``.

    >>> parse_pattern("sex=Female, race=*, income=<=50K")
    {'sex': 'Female', 'race': ANY, 'income': '<=50K'}
    """
    selectors: dict[str, Selector] = {}
    position = 0
    if text.strip() == "*":
        return selectors
    while position < len(text):
        name, position = _take_name(text, position)
        value, position = _take_value(text, position)
        if name in selectors:
            raise PatternError(f"the pattern {text!r} names {name!r} twice; give it one value.")
        selectors[name] = value
    if not selectors:
        raise PatternError(
            "an empty pattern names no group; write name=value, for example sex=Female, "
            "or * for all rows."
        )
    return selectors


def _take_name(text: str, position: int) -> tuple[str, int]:
    position = _skip_space(text, position)
    quoted = _QUOTED.match(text, position)
    if quoted:
        end = _skip_space(text, quoted.end())
        name = _unquote(quoted.group(1), text)
    else:
        end = text.find("=", position)
        name = text[position:end].strip()
    if (
        end < 0
        or text[end : end + 1] != "="
        or (not quoted and (not name or "," in name or name.startswith("'")))
    ):
        raise PatternError(
            f"{text!r} is not a pattern: near {text[position:]!r} a name=value is expected, "
            "as in sex=Female, race=*; a name with a comma or an equals sign needs single quotes."
        )
    return name, end + 1


def _take_value(text: str, position: int) -> tuple[Selector, int]:
    position = _skip_space(text, position)
    quoted = _QUOTED.match(text, position)
    if quoted:
        end = _skip_space(text, quoted.end())
        if end < len(text) and text[end] != ",":
            raise PatternError(
                f"{text!r} is not a pattern: after the quoted value {quoted.group()} a comma or "
                "the end is expected."
            )
        return _unquote(quoted.group(1), text), end + 1
    end = text.find(",", position)
    end = len(text) if end < 0 else end
    bare = text[position:end].strip()
    if not bare or bare.startswith("'"):
        raise PatternError(
            f"{text!r} is not a pattern: a value is missing or its quote is not closed; an empty "
            "value is written ''."
        )
    return {"*": ANY, "<missing>": MISSING}.get(bare, bare), end + 1


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _unquote(inner: str, text: str) -> str:
    escaped = re.sub(r'\\.|"', lambda m: {"\\'": "'", '"': '\\"'}.get(m[0], m[0]), inner)
    try:
        return str(json.loads(f'"{escaped}"', strict=False))
    except json.JSONDecodeError:
        raise PatternError(
            f"{text!r} is not a pattern: inside quotes a backslash starts an escape; "
            "write \\\\ for the backslash itself."
        ) from None


# ---------------------------------------------------------------------------- roll-up

DENSE_ENTRIES = 4_000_000
"""Cubes of at most this many entries are rolled up as dense arrays."""
_KEY_LIMIT = 2**62  # keys below it, and sums of two of them, fit in 64 bits


@dataclass(frozen=True, eq=False)
class Lattice:
    """All groups of a table that have rows, except for the group of all rows."""

    sizes: tuple[int, ...]
    """Number of values of each attribute."""
    codes: NDArray[np.int32]
    """A line per group, a column per attribute: the code of the value, or the size for any value."""
    columns: tuple[NDArray[Any], ...]
    """The sums of each array that was rolled up: a line per group, a column per label."""

    def __len__(self) -> int:
        return len(self.codes)

    @functools.cached_property
    def orders(self) -> NDArray[np.intp]:
        """Number of attributes that each group fixes."""
        return np.asarray(np.count_nonzero(self.codes != np.array(self.sizes), axis=1))

    @functools.cached_property
    def _index(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        keys = _keys(self.codes, self.sizes)
        order = np.argsort(keys)
        return keys[order], order

    def find(self, codes: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the line of each group, or −1 for a group that is not in the lattice."""
        if not len(self):
            return np.full(len(codes), -1)
        keys, order = self._index
        wanted = _keys(codes, self.sizes)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, order[at], -1)


def roll_up(
    codes: NDArray[np.int32],
    sizes: Sequence[int],
    columns: Sequence[NDArray[Any]],
    *,
    min_count: int = 1,
    max_order: int | None = None,
    memory: int | None = None,
) -> Lattice:
    """Sum the finest groups that have rows up to every group of the lattice.

    The first of `columns` holds numbers of rows, by finest group and label. Groups with fewer than
    `min_count` rows, or that fix more than `max_order` attributes, are left out. A lattice that
    would take more than `memory` bytes raises :class:`~equipoise.errors.LatticeTooLarge`.
    """
    sizes = tuple(int(d) for d in sizes)
    limit = _Limit(sizes, columns, memory)
    order = len(sizes) if max_order is None else max_order
    cube = math.prod(d + 1 for d in sizes)
    pruned = min_count > 1 or order < len(sizes)
    if cube * columns[0].shape[1] <= DENSE_ENTRIES:
        lattice = _dense(codes, sizes, columns)
    elif pruned or cube >= _KEY_LIMIT:
        return _refine(codes, sizes, columns, min_count, order, limit)
    else:
        return _sparse(codes, sizes, columns, limit)
    if not pruned:
        return lattice
    kept = (lattice.columns[0].sum(axis=1) >= min_count) & (lattice.orders <= order)
    return Lattice(sizes, lattice.codes[kept], tuple(c[kept] for c in lattice.columns))


def _dense(
    codes: NDArray[np.int32], sizes: tuple[int, ...], columns: Sequence[NDArray[Any]]
) -> Lattice:
    shape = tuple(d + 1 for d in sizes)
    flat = np.ravel_multi_index(tuple(codes.T), shape) if len(codes) else np.zeros(0, np.int64)
    cubes = []
    for column in columns:
        cube: NDArray[Any] = np.zeros((math.prod(shape), column.shape[1]), column.dtype)
        cube[flat] = column
        cube = cube.reshape(*shape, column.shape[1])
        for axis, size in enumerate(sizes):
            inside, margin = [slice(None)] * len(shape), [slice(None)] * len(shape)
            inside[axis], margin[axis] = slice(0, size), slice(size, None)
            cube[tuple(margin)] = cube[tuple(inside)].sum(axis=axis, keepdims=True)
        cubes.append(cube.reshape(-1, column.shape[1]))
    present = np.flatnonzero(np.any(cubes[0], axis=1)[:-1])  # the last entry is all rows
    found = np.stack(np.unravel_index(present, shape), axis=1).astype(np.int32)
    return Lattice(sizes, found, tuple(cube[present] for cube in cubes))


def _sparse(
    codes: NDArray[np.int32],
    sizes: tuple[int, ...],
    columns: Sequence[NDArray[Any]],
    limit: _Limit,
) -> Lattice:
    keys, sums = _keys(codes, sizes), list(columns)
    stride = math.prod(d + 1 for d in sizes)
    for size in sizes:
        stride //= size + 1
        limit.check(2 * len(keys))
        digit = keys // stride % (size + 1)
        margin_keys, margins = _sum_by(keys + (size - digit) * stride, sums)
        keys = np.concatenate([keys, margin_keys])
        sums = [np.concatenate(pair) for pair in zip(sums, margins, strict=True)]
    order = np.argsort(keys)[:-1]  # the largest key is the group of all rows
    shape = [size + 1 for size in sizes]
    found = np.stack(np.unravel_index(keys[order], shape), axis=1).astype(np.int32)
    return Lattice(sizes, found, tuple(s[order] for s in sums))


def _refine(
    codes: NDArray[np.int32],
    sizes: tuple[int, ...],
    columns: Sequence[NDArray[Any]],
    min_count: int,
    max_order: int,
    limit: _Limit,
) -> Lattice:
    """Go from coarse to fine, and never into a group below the minimum size."""
    found: list[NDArray[np.int32]] = []
    summed: list[list[NDArray[Any]]] = []

    def visit(
        first: int, cells: NDArray[np.intp], ids: NDArray[np.int64], fixed: list[int]
    ) -> None:
        for axis in range(first, len(sizes)):
            finer, sums = _sum_by(
                ids * sizes[axis] + codes[cells, axis], [c[cells] for c in columns]
            )
            wanted = np.searchsorted(finer, ids * sizes[axis] + codes[cells, axis])
            large = sums[0].sum(axis=1) >= min_count
            example = np.zeros(len(finer), np.intp)
            example[wanted] = cells
            lines = np.array(sizes, np.int32) + np.zeros((int(large.sum()), 1), np.int32)
            lines[:, [*fixed, axis]] = codes[example[large]][:, [*fixed, axis]]
            found.append(lines)
            summed.append([s[large] for s in sums])
            limit.add(len(lines))
            inside = large[wanted]
            if len(fixed) + 1 < max_order and inside.any():
                visit(axis + 1, cells[inside], wanted[inside], [*fixed, axis])

    if max_order > 0 and len(codes):
        visit(0, np.arange(len(codes)), np.zeros(len(codes), np.int64), [])
    lines = np.concatenate([np.zeros((0, len(sizes)), np.int32), *found])
    sums = [np.concatenate([c[:0], *(s[i] for s in summed)]) for i, c in enumerate(columns)]
    order = np.lexsort(lines.T[::-1])
    return Lattice(sizes, lines[order], tuple(s[order] for s in sums))


def _sum_by(
    keys: NDArray[np.int64], columns: Sequence[NDArray[Any]]
) -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
    if not len(keys):
        return keys, list(columns)
    order = np.argsort(keys)
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[starts], [np.add.reduceat(c[order], starts, axis=0) for c in columns]


def _keys(codes: NDArray[np.int32], sizes: Sequence[int]) -> NDArray[np.int64]:
    # Keys of very many attributes exceed 64 bits. Python's integers are slow, but have no limit.
    wide = math.prod(d + 1 for d in sizes) >= _KEY_LIMIT
    keys: NDArray[Any] = np.zeros(len(codes), dtype=object if wide else np.int64)
    for axis, size in enumerate(sizes):
        keys = keys * (size + 1) + codes[:, axis]
    return keys


class _Limit:
    """Stops a roll-up before it fills the memory."""

    def __init__(
        self, sizes: tuple[int, ...], columns: Sequence[NDArray[Any]], memory: int | None
    ) -> None:
        width = sum(c.shape[1] for c in columns)
        # keys and codes of a group, its sums twice while sorting, its measures after.
        self.bytes_a_group = 8 + 4 * len(sizes) + 16 * width + 80 * columns[0].shape[1]
        self.memory, self.sizes, self.groups = memory, sizes, 0

    def add(self, groups: int) -> None:
        self.groups += groups
        self.check(self.groups)

    def check(self, groups: int) -> None:
        if self.memory is None or groups * self.bytes_a_group <= self.memory:
            return
        raise LatticeTooLarge(
            f"the lattice of {len(self.sizes)} attributes with {' × '.join(map(str, self.sizes))} "
            f"values has more than {groups // 2:,} groups, "
            f"about {groups * self.bytes_a_group / 1e9:.1f} GB, and {self.memory / 1e9:.1f} GB may "
            "be used; measure fewer groups, as with `max_order=2` or `min_count=30`."
        )
