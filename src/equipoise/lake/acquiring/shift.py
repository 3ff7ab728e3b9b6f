"""Whether added rows look like the base rows of their cells on the columns nobody planned for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from equipoise.counts.columns import as_number, encode_arrow
from equipoise.errors import ColumnNotFound, InputError
from equipoise.lattice import format_value
from equipoise.plain import Grid
from equipoise.plain import sentences as in_words
from equipoise.values import MISSING, Value, plain

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Whole: TypeAlias = NDArray[np.int64]
    Real: TypeAlias = NDArray[np.float64]

Kind: TypeAlias = Literal["number", "category", "missing", "skipped"]
"""How a column is compared: by its order, by its values, or not, since it is empty or says
nothing."""

SCHEMA = "equipoise.shift/1"
NUMERIC_SHARE = 0.95
"""From which share of numbers on a column of text is one of numbers."""

IDENTIFIER_SHARE = 0.9
"""From which share of different texts on a column names rows."""

FEW = 50
"""Up to so many different values a column of dates is one of categories."""

MOST_SENTENCES = 5
MOST_PERMUTED = 20_000
"""Up to so many rows chance is found by permutation, beyond it by a formula."""

PERMUTATIONS = 100
MOST_CELLS = 1000
"""Of so many cells at most, those with the most added rows, the worst is looked for."""

_UNSEEN = 0.05
"""From which share of added rows on values that the base has nowhere are told of."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


@dataclass(frozen=True, kw_only=True)
class ColumnShift:
    """How far added rows are from base rows of the same cells on one column.

    Attributes
    ----------
    column, kind
        Its name, and how it was compared.
    distance
        From 0 (alike) to 1 (apart): the Kolmogorov–Smirnov distance of numbers, the total
        variation distance of categories; none where nothing could be compared.
    by_chance
        The distance that rows drawn alike stay below in 99 of 100 cases.
    notable
        Whether the distance, or the difference in missing values, is beyond chance.
    base_text, added_text
        The two sides in a word: the means, or the share of the value that differs most.
    base_missing, added_missing
        The share of missing values.
    mean_difference
        Of numbers: the difference of the means in standard deviations.
    value
        Of categories: the one whose share differs most.
    unseen
        Of categories: the share of added rows whose value no base row has.
    worst_cell, worst_distance
        The cell that is furthest beyond chance by itself, if any has enough added rows.
    reason
        Why a column was skipped.
    """

    column: str
    kind: Kind
    distance: float | None = None
    by_chance: float | None = None
    notable: bool = False
    base_text: str = ""
    added_text: str = ""
    base_missing: float = 0.0
    added_missing: float = 0.0
    mean_difference: float | None = None
    value: str | None = None
    unseen: float = 0.0
    worst_cell: int | None = None
    worst_distance: float | None = None
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The difference in plain words.

        >>> ColumnShift(column="age", kind="missing").sentence
        'age is missing in all added rows.'
        """
        if self.kind == "skipped":
            return f"{self.column} was not compared: {self.reason}."
        if self.kind == "missing":
            return f"{self.column} is missing in all added rows."
        if self.kind == "number":
            what = f"added rows have {self.column} of {self.added_text} on average against"
            measure = "KS distance"
        else:
            what = f"{self.added_text} of the added rows have {self.column}={self.value} against"
            measure = "total variation distance"
        said = f"Of the same cells, {what} {self.base_text} ({measure} {self.distance:.2f})"
        if self.unseen >= _UNSEEN:
            said += f"; {self.unseen:.0%} of them have values that no row of the base has"
        if abs(self.base_missing - self.added_missing) >= 0.005:
            said += (
                f"; it is missing in {self.added_missing:.0%} of them against "
                f"{self.base_missing:.0%}"
            )
        return f"{said}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        own = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}
        return {**own, "sentence": self.sentence}


@dataclass(frozen=True, kw_only=True)
class Shift:
    """How far added rows are from base rows of the same cells, column by column.

    Attributes
    ----------
    columns
        The largest distance first, then columns that are missing, then those not compared.
    limit
        The distance agreed on, if one was.
    rows_compared, rows_left_out
        How many added rows are in cells with enough base rows to compare with, and how many
        are not.
    cells_compared, cells_left_out, cells_without_added
        The same of cells, and how many cells of the base got no rows.
    """

    columns: tuple[ColumnShift, ...]
    limit: float | None = None
    rows_compared: int = 0
    rows_left_out: int = 0
    cells_compared: int = 0
    cells_left_out: int = 0
    cells_without_added: int = 0
    min_rows: int = 10

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The columns whose distance is beyond the limit, and beyond chance."""
        if self.limit is None:
            return ()
        return tuple(
            c.column
            for c in self.columns
            if c.distance is not None
            and c.by_chance is not None
            and c.distance > max(self.limit, c.by_chance)
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to know, the largest differences first, in five sentences at most."""
        ends = [s for s in (self._missing(), self._limit(), self._left_out()) if s]
        notable = [c for c in self.columns if c.notable and c.kind in ("number", "category")]
        said = [c.sentence for c in notable[: MOST_SENTENCES - len(ends)]]
        compared = sum(c.distance is not None for c in self.columns)
        if compared and not notable:
            what = f"On {_things(compared, 'other column')} added rows differ from base rows of"
            said = [f"{what} the same cells no more than chance alone would have it."]
        return (*said, *ends)

    def _missing(self) -> str:
        names = [c.column for c in self.columns if c.kind == "missing"]
        if not names:
            return ""
        more = len(names) - 10
        shown = [*names[:10], *([f"{more:,} more columns"] if more > 0 else [])]
        return f"{in_words(shown)} {'is' if len(names) == 1 else 'are'} missing in all added rows."

    def _limit(self) -> str:
        if self.limit is None or not self.exceeded:
            return ""
        verb = "is" if len(self.exceeded) == 1 else "are"
        return f"{in_words(self.exceeded)} {verb} beyond the limit of {self.limit:g}."

    def _left_out(self) -> str:
        if not self.rows_left_out:
            return ""
        rows = _things(self.rows_left_out, "added row")
        return (
            f"{rows} of {_things(self.cells_left_out, 'cell')} with fewer than {self.min_rows:,} "
            f"base rows {'was' if self.rows_left_out == 1 else 'were'} not compared."
        )

    def grid(self) -> Grid:
        """A line a column."""
        headers = ("column", "base", "added", "distance", "by chance", "")
        rows = tuple(
            (
                c.column,
                c.base_text,
                c.added_text,
                "" if c.distance is None else f"{c.distance:.3f}",
                "" if c.by_chance is None else f"{c.by_chance:.3f}",
                self._word(c),
            )
            for c in self.columns
        )
        return Grid(headers, rows, frozenset({1, 2, 3, 4}))

    def _word(self, column: ColumnShift) -> str:
        if column.kind == "missing":
            return "missing in all added rows"
        if column.kind == "skipped":
            return column.reason
        beyond = "beyond the limit" if column.column in self.exceeded else "beyond chance"
        return beyond if column.notable else ""

    def text(self) -> str:
        """The sentences, and all columns as a table."""
        parts = ["\n".join(self.sentences), self.grid().text() if self.columns else ""]
        return "\n\n".join(p for p in parts if p)

    def __str__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        own = {n: getattr(self, n) for n in self.__dataclass_fields__ if n != "columns"}
        return {
            "schema": SCHEMA,
            **own,
            "exceeded": list(self.exceeded),
            "columns": [c.to_dict() for c in self.columns],
            "sentences": list(self.sentences),
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """One JSON document."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)


def measure_shift(
    base: pa.Table,
    added: pa.Table,
    cells: tuple[Sequence[int] | Whole, Sequence[int] | Whole],
    *,
    columns: Sequence[str],
    limit: float | None = None,
    min_rows: int = 10,
) -> Shift:
    """Compare added rows with the base rows of the same cells on other columns.

    Base rows are weighted so that their cells have the mix that the added rows have; what is
    left between the two is not explained by the cells.

    Parameters
    ----------
    base, added
        The rows that were there, and those that came. A column that ``added`` lacks is
        missing in all its rows.
    cells
        The number of the cell of every row, of ``base`` and of ``added``.
    columns
        The columns to compare; those that make the cells say nothing.
    limit
        The largest distance agreed on, from 0 to 1.
    min_rows
        Cells with fewer base rows are left out, and counted.

    Examples
    --------
    >>> import pyarrow as pa
    >>> base = pa.table({"hours": [38, 40, 42] * 20, "town": ["Bath", "Bath", "York"] * 20})
    >>> added = pa.table({"hours": [18, 20, 22] * 5, "town": ["Bath", "Bath", "York"] * 5})
    >>> shift = measure_shift(base, added, ([0] * 60, [0] * 15), columns=["hours", "town"])
    >>> print(*shift.sentences)
    Of the same cells, added rows have hours of 20 on average against 40 (KS distance 1.00).
    >>> [(c.column, c.notable) for c in shift.columns]
    [('hours', True), ('town', False)]
    """
    _require(base, added, cells, columns, limit, min_rows)
    kept, where = _common_cells(np.asarray(cells[0]), np.asarray(cells[1]), min_rows)
    old, new = (np.flatnonzero(number >= 0) for number in where)
    shift = replace(kept, limit=limit)
    if not len(new):
        reason = f"no added row is in a cell with at least {min_rows:,} base rows"
        skipped = (ColumnShift(column=c, kind="skipped", reason=reason) for c in columns)
        return replace(shift, columns=tuple(skipped))
    rows = _Rows(where[0][old], where[1][new], min_rows=min_rows, names=_names(cells, kept, where))
    found = [
        _compare(name, _taken(base, name, old), _taken(added, name, new), rows) for name in columns
    ]
    order: dict[Kind, int] = {"number": 0, "category": 0, "missing": 1, "skipped": 2}
    found.sort(key=lambda c: (order[c.kind], -(c.distance or 0.0)))
    return replace(shift, columns=tuple(found))


def _require(
    base: pa.Table,
    added: pa.Table,
    cells: tuple[Any, Any],
    columns: Sequence[str],
    limit: float | None,
    min_rows: int,
) -> None:
    for table, numbers, name in ((base, cells[0], "base"), (added, cells[1], "added")):
        if len(table) != len(numbers):
            raise InputError(
                f"the {name} table has {len(table):,} rows, but {len(numbers):,} cells are given; "
                "give one for each row."
            )
        if len(numbers) and np.asarray(numbers).dtype.kind not in "iu":
            raise InputError(f"the cells of the {name} table must be whole numbers, one a row.")
    for column in columns:
        if column not in base.column_names:
            raise ColumnNotFound(column, table="the base table", columns=base.column_names)
    if limit is not None and not 0 <= limit <= 1:
        raise InputError(f"a limit on a distance is from 0 to 1, not {limit!r}.")
    if min_rows < 1:
        raise InputError(f"min_rows must be at least 1, not {min_rows!r}.")


# ----------------------------------------------------------------------------------- cells


def _common_cells(base: Whole, added: Whole, min_rows: int) -> tuple[Shift, tuple[Whole, Whole]]:
    """Number the cells that both have; −1 for a row that is left out. Tell what is."""
    both, number = np.unique(np.concatenate([base, added]).astype(np.int64), return_inverse=True)
    ours, theirs = number.reshape(-1)[: len(base)], number.reshape(-1)[len(base) :]
    n, m = np.bincount(ours, minlength=len(both)), np.bincount(theirs, minlength=len(both))
    kept = (n >= min_rows) & (m > 0)
    few = (n < min_rows) & (m > 0)
    new = np.where(kept, np.cumsum(kept) - 1, -1)
    told = Shift(
        columns=(),
        rows_compared=int(m[kept].sum()),
        rows_left_out=int(m[few].sum()),
        cells_compared=int(kept.sum()),
        cells_left_out=int(few.sum()),
        cells_without_added=int(((n > 0) & (m == 0)).sum()),
        min_rows=min_rows,
    )
    return told, (new[ours], new[theirs])


def _names(cells: tuple[Any, Any], kept: Shift, where: tuple[Whole, Whole]) -> Whole:
    """The number by which the caller knows each cell that is compared."""
    names = np.zeros(kept.cells_compared, np.int64)
    inside = where[1] >= 0
    names[where[1][inside]] = np.asarray(cells[1])[inside]
    return names


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows compared: the cell of each, counted from 0."""

    base: Whole
    added: Whole
    min_rows: int
    names: Whole
    shuffled: dict[bytes, Whole] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Sides:
    """The rows that have a value of a column: their cells, and the numbers of their values."""

    base: Whole
    added: Whole
    base_cells: Whole
    added_cells: Whole
    values: int

    @property
    def weights(self) -> Real:
        """What a base row of each cell counts, so that cells are mixed as the added rows are."""
        cells = 1 + max(int(self.base_cells.max()), int(self.added_cells.max()))
        n = np.bincount(self.base_cells, minlength=cells)
        m = np.bincount(self.added_cells, minlength=cells)
        return np.asarray(m / (len(self.added) * np.maximum(n, 1)))

    def shares(self) -> tuple[Real, Real]:
        """The share of each value, of the base as weighted and of the added rows."""
        weight = self.weights[self.base_cells]
        base = np.bincount(self.base, weight, minlength=self.values).astype(np.float64)
        return base, np.bincount(self.added, minlength=self.values) / len(self.added)

    @property
    def noise(self) -> float:
        """The sum 1/m + 1/n of the added rows and of as many base rows as the weighted are worth."""
        return 1 / len(self.added) + float((self.weights[self.base_cells] ** 2).sum())


# ------------------------------------------------------------------------------- comparing


def _compare(name: str, base: pa.ChunkedArray, added: pa.ChunkedArray, rows: _Rows) -> ColumnShift:
    column = _Column.read(base, added)
    if not isinstance(column, _Column):
        return ColumnShift(column=name, kind="skipped", reason=column)
    present = tuple(codes >= 0 for codes in column.codes)
    if not present[0].any():
        return ColumnShift(column=name, kind="skipped", reason="it has no values in the base")
    missing = _missing_shares(present, rows)
    told = {"column": name, "base_missing": missing[0], "added_missing": missing[1]}
    if not present[1].any():
        return ColumnShift(kind="missing", notable=True, **told)  # type: ignore[arg-type]
    sides = _sides(column, present, rows)
    if sides is None:
        reason = "no cell has values of it on both sides"
        return ColumnShift(column=name, kind="skipped", reason=reason)
    shares = sides.shares()
    ordered = column.kind == "number"
    distance = _distance(*shares, ordered=ordered)
    chance = _by_chance(sides, shares, ordered=ordered, rows=rows)
    unseen = 0.0 if ordered else _unseen(column)
    far = distance > chance or missing[2] or unseen >= _UNSEEN
    words = _of_numbers(column, shares) if ordered else _of_categories(column, shares)
    return ColumnShift(
        kind=column.kind,
        distance=distance,
        by_chance=chance,
        notable=bool(far),
        unseen=unseen,
        **told,  # type: ignore[arg-type]
        **words,
        **_worst(sides, rows, ordered=ordered),
    )


def _unseen(column: _Column) -> float:
    """The share of added rows whose value no base row has: another spelling, or another kind."""
    base, added = (codes[codes >= 0] for codes in column.codes)
    return float((~np.isin(added, base)).mean()) if len(added) else 0.0


def _missing_shares(present: Sequence[NDArray[np.bool_]], rows: _Rows) -> tuple[float, float, bool]:
    """The share of missing values of both sides, and whether they differ beyond chance."""
    absent = [(~p).astype(np.int64) for p in present]
    sides = _Sides(absent[0], absent[1], rows.base, rows.added, 2)
    base, added = (round(float(share[1]), 12) for share in sides.shares())
    middle = (base + added) / 2
    chance = 2.58 * math.sqrt(middle * (1 - middle) * sides.noise) + 1 / len(rows.added)
    return base, added, abs(base - added) > chance


def _sides(column: _Column, present: Sequence[NDArray[np.bool_]], rows: _Rows) -> _Sides | None:
    """The rows with a value, of the cells that have some on both sides."""
    cells = [rows.base[present[0]], rows.added[present[1]]]
    codes = [c[p] for c, p in zip(column.codes, present, strict=True)]
    size = 1 + max(int(c.max()) for c in cells)
    both = np.logical_and(*(np.bincount(c, minlength=size) > 0 for c in cells))
    inside = [both[c] for c in cells]
    if not inside[1].any():
        return None
    return _Sides(
        codes[0][inside[0]],
        codes[1][inside[1]],
        cells[0][inside[0]],
        cells[1][inside[1]],
        len(column.values),
    )


def _distance(base: Real, added: Real, *, ordered: bool) -> float:
    """Kolmogorov–Smirnov for values in order, total variation for others."""
    apart = np.abs(np.cumsum(base - added)).max() if ordered else np.abs(base - added).sum() / 2
    return min(round(float(apart), 12), 1.0)  # or what is equal would differ by its last digit


def _of_numbers(column: _Column, shares: tuple[Real, Real]) -> dict[str, Any]:
    scale = float(np.abs(column.values).max()) or 1.0
    values = column.values / scale
    means = [round(float(values @ s), 12) + 0.0 for s in shares]
    moments = (float((values - m) ** 2 @ s) for m, s in zip(means, shares, strict=True))
    spread = math.sqrt(sum(moments) / 2)
    return {
        "base_text": _number(means[0] * scale),
        "added_text": _number(means[1] * scale),
        "mean_difference": (means[1] - means[0]) / spread if spread > 1e-9 else None,
    }


def _of_categories(column: _Column, shares: tuple[Real, Real]) -> dict[str, Any]:
    # Where two differ alike, the one that more of the added rows have.
    most = int(np.lexsort((shares[1], np.abs(shares[1] - shares[0]).round(12)))[-1])
    return {
        "base_text": f"{shares[0][most]:.0%}",
        "added_text": f"{shares[1][most]:.0%}",
        "value": format_value(column.values[most]),
    }


def _worst(sides: _Sides, rows: _Rows, *, ordered: bool) -> dict[str, Any]:
    """The cell that is furthest beyond chance, of those with enough added rows."""
    slices = [
        _by_cell(s, c, len(rows.names))
        for s, c in ((sides.base, sides.base_cells), (sides.added, sides.added_cells))
    ]
    sizes = np.array([len(codes) for codes in slices[1]])
    many = np.argsort(-sizes, kind="stable")[:MOST_CELLS]
    found = []
    for cell in many[sizes[many] >= rows.min_rows].tolist():
        base, added = slices[0][cell], slices[1][cell]
        if len(base) < rows.min_rows:
            continue
        distance, chance = _in_one_cell(base, added, sides.values, ordered=ordered)
        found.append((distance - chance, distance, cell))
    if not found:
        return {}
    _, distance, cell = max(found)
    return {"worst_cell": int(rows.names[cell]), "worst_distance": distance}


def _by_cell(codes: Whole, cells: Whole, n: int) -> list[Whole]:
    order = np.argsort(cells, kind="stable")
    return np.split(codes[order], np.cumsum(np.bincount(cells, minlength=n))[:-1])


def _in_one_cell(base: Whole, added: Whole, values: int, *, ordered: bool) -> tuple[float, float]:
    if values > len(base) + len(added):  # or there would be more values to look at than rows
        both, number = np.unique(np.concatenate([base, added]), return_inverse=True)
        base, added, values = number[: len(base)], number[len(base) :], len(both)
    shares = [np.bincount(x, minlength=values) / len(x) for x in (base, added)]
    noise = 1 / len(base) + 1 / len(added)
    distance = _distance(shares[0], shares[1], ordered=ordered)
    return distance, _formula(shares[0], shares[1], noise, ordered=ordered)


# ---------------------------------------------------------------------------------- chance


def _by_chance(sides: _Sides, shares: tuple[Real, Real], *, ordered: bool, rows: _Rows) -> float:
    """The distance that rows drawn alike from every cell stay below in 99 of 100 cases."""
    if len(sides.base) + len(sides.added) > MOST_PERMUTED:
        return _formula(*shares, sides.noise, ordered=ordered)
    codes = np.concatenate([sides.base, sides.added])
    cells = np.concatenate([sides.base_cells, sides.added_cells])
    each = sides.weights[cells]
    every = np.bincount(codes, each, minlength=sides.values).astype(np.float64)
    found = []
    for chosen in _shuffled(cells, sides.added_cells, rows.shuffled):
        drawn = codes[chosen]
        base = every - np.bincount(drawn, each[chosen], minlength=sides.values)
        added = np.bincount(drawn, minlength=sides.values) / len(drawn)
        found.append(_distance(base, added, ordered=ordered))
    return float(np.quantile(found, 0.99, method="higher"))


def _shuffled(cells: Whole, added: Whole, known: dict[bytes, Whole]) -> Whole:
    """Draw as many rows of each cell as were added, again and again; alike for like columns."""
    key = cells.tobytes() + added.tobytes()
    if key not in known:
        known.clear()  # columns with the same gaps mostly stand together
        random = np.random.default_rng(0)
        first = np.searchsorted(np.sort(cells), added)
        nth = np.arange(len(added)) - np.searchsorted(np.sort(added), np.sort(added))
        places = np.sort(first) + nth
        orders = (np.argsort(cells + random.random(len(cells))) for _ in range(PERMUTATIONS))
        known[key] = np.stack([order[places] for order in orders])
    return known[key]


def _formula(base: Real, added: Real, noise: float, *, ordered: bool) -> float:
    """What chance stays below in 99 of 100 cases, for many rows; rather too much than too little.

    For numbers the quantile of Kolmogorov's distribution; for categories the expected
    distance, and beyond it what bounded differences allow.
    """
    if ordered:
        return min(1.628 * math.sqrt(noise), 1.0)
    share = (base + added) / 2
    each = np.minimum(np.sqrt(2 / math.pi * share * (1 - share) * noise), 2 * share)
    return min(float(each.sum()) / 2 + math.sqrt(math.log(100) / 2 * noise), 1.0)


# --------------------------------------------------------------------------------- reading


@dataclass(frozen=True, eq=False)
class _Column:
    """Both sides of a column as numbers of their values, −1 for a missing one."""

    kind: Kind
    values: Any
    codes: tuple[Whole, Whole]

    @classmethod
    def read(cls, base: pa.ChunkedArray, added: pa.ChunkedArray) -> _Column | str:
        """Read a column as what it is, or say why it is not compared."""
        import pyarrow as pa

        types = (base.type, added.type)
        if any(pa.types.is_nested(t) for t in types):
            return "it holds nested values"
        if all(_is_number(t) or pa.types.is_null(t) for t in types):
            return cls._of_numbers(_coded_numbers(base), _coded_numbers(added))
        sides = (_coded_texts(base), _coded_texts(added))
        numbers = [np.array([_as_number(t) for t in texts], np.float64) for texts, _ in sides]
        if _share(np.isfinite, sides, numbers) >= NUMERIC_SHARE:
            (_, ours), (_, theirs) = sides
            return cls._of_numbers((numbers[0], ours), (numbers[1], theirs))
        return cls._of_texts(*sides, dated=any(pa.types.is_temporal(t) for t in types))

    @classmethod
    def _of_numbers(cls, base: tuple[Real, Whole], added: tuple[Real, Whole]) -> _Column | str:
        finite = [np.isfinite(values) for values, _ in (base, added)]
        distinct, number = np.unique(
            np.concatenate([base[0][finite[0]], added[0][finite[1]]]), return_inverse=True
        )
        cut = int(finite[0].sum())
        codes = []
        for (_, old), good, new in zip(
            (base, added), finite, (number.reshape(-1)[:cut], number.reshape(-1)[cut:]), strict=True
        ):
            table = np.full(len(good) + 1, -1, np.int64)  # the last is for what is missing
            table[:-1][good] = new
            codes.append(table[old])
        if _numbers_the_rows(distinct, codes[0]):
            return "it numbers the rows"
        return cls("number", distinct, (codes[0], codes[1]))

    @classmethod
    def _of_texts(
        cls,
        base: tuple[Sequence[Value], Whole],
        added: tuple[Sequence[Value], Whole],
        *,
        dated: bool,
    ) -> _Column | str:
        texts = tuple(t for t in dict.fromkeys((*base[0], *added[0])) if t is not MISSING and t)
        number: dict[Value, int] = {t: i for i, t in enumerate(texts)}
        codes = [
            np.array([*(number.get(t, -1) for t in x), -1], np.int64)[c] for x, c in (base, added)
        ]
        if len(texts) > FEW:
            if dated or sum(bool(_DATE.fullmatch(t)) for t in texts) >= NUMERIC_SHARE * len(texts):
                return f"it holds dates, {len(texts):,} different ones"
            if any(_names_rows(c) for c in codes):
                return "nearly every value is another, as of an identifier"
        return cls("category", texts, (codes[0], codes[1]))


def _taken(table: pa.Table, name: str, places: Whole) -> pa.ChunkedArray:
    import pyarrow as pa

    if name not in table.column_names:
        return pa.chunked_array([pa.nulls(len(places))])
    column = table[name]
    return column if len(places) == len(column) else column.take(pa.array(places))


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _coded_numbers(column: pa.ChunkedArray) -> tuple[Real, Whole]:
    """The different numbers of a column, and for each row which it has, −1 for none."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.zeros(0), np.full(len(column), -1, np.int64)
    coded = column.cast(pa.float64(), safe=False).combine_chunks().dictionary_encode()
    codes = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    return np.asarray(coded.dictionary.to_numpy()), np.asarray(codes)


def _coded_texts(column: pa.ChunkedArray) -> tuple[Sequence[Value], Whole]:
    texts, codes = encode_arrow(column, None)
    return texts, codes.astype(np.int64)


def _as_number(text: Value) -> float:
    number = as_number(text)
    return math.nan if number is None else number


def _share(
    good: Any, sides: Iterable[tuple[Sequence[Value], Whole]], values: Iterable[Real]
) -> float:
    """The share of rows with a good value, of those that have one."""
    fine = every = 0
    for (texts, codes), numbers in zip(sides, values, strict=True):
        rows = np.bincount(codes, minlength=len(texts))
        has = np.array([t is not MISSING and bool(t) for t in texts], np.bool_)
        fine += int(rows[has & good(numbers)].sum())
        every += int(rows[has].sum())
    return fine / every if every else 0.0


def _numbers_the_rows(distinct: Real, codes: Whole) -> bool:
    """Whether whole numbers stand so close that by chance some were equal, but none are."""
    used = codes[codes >= 0]
    if len(used) <= FEW or len(np.unique(used)) < len(used):
        return False
    values = distinct[used]
    return bool((values == np.floor(values)).all() and 20 * np.ptp(values) < len(values) ** 2)


def _names_rows(codes: Whole) -> bool:
    used = codes[codes >= 0]
    return len(used) > FEW and len(np.unique(used)) >= IDENTIFIER_SHARE * len(used)


# ----------------------------------------------------------------------------------- words


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _things(n: int, name: str) -> str:
    return f"{n:,} {name}{'' if n == 1 else 's'}"
