"""Union search: which tables of a lake could be put below a table, column under column.

Columns are compared by three parts: their headers, their words (of header and values in one
bag, the rare ones counting more), and, where a header says nothing, how their numbers are
spread. Columns are then paired one to one, and the pairs' similarities make the score, together with how much the
two tables' words have in common as a whole: a column ``Name`` means little unless the tables
are about the same thing. The names of files say nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.engines.profiling import SKETCH, ColumnProfile, Profile, value_hash
from equipoise.errors import InputError
from equipoise.lake.tables import headers
from equipoise.lake.tables.index import Index, Table
from equipoise.lake.tables.terms import GRAM, NUMERIC, TOKEN, WORD, Terms, header_words, terms_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

HEADER_WEIGHT = 0.3
"""The header's part of a column's similarity; the rest is what the column holds."""

CONTEXT_WEIGHT = 0.4
"""The part of a table's score that its words as a whole have; the rest are its columns'."""

NUMBERS_ALONE = 0.5
"""The most that numbers can say if a header says nothing."""

CANDIDATES, NUMBER_CANDIDATES = 150, 50
"""How many tables are looked at closely: for their words, and for their numbers."""

COMMON = 0.25
"""Terms that more than this share of the tables have do not make a table a candidate."""

_SHOWN = 0.1
_TOLD = 0.5
_DIGITS = 9


@dataclass(frozen=True)
class ColumnMatch:
    """A column of the query and the column of a table it is paired with.

    Attributes
    ----------
    query, table
        Their names.
    similarity
        From 0 to 1.
    why
        What speaks for it, in words.
    """

    query: str
    table: str
    similarity: float
    why: str


@dataclass(frozen=True)
class Hit:
    """A table that was found, its score from 0 to 1, and the columns that speak for it."""

    table: Table
    score: float
    columns: tuple[ColumnMatch, ...]


@dataclass(frozen=True)
class Rarity:
    """How much a term says: the fewer columns have it, the more.

    Attributes
    ----------
    columns
        How many columns the lake has.
    terms, counts
        Terms, rising, and how many columns have each; others are held to be in none.

    Examples
    --------
    >>> import numpy as np
    >>> rarity = Rarity(100, np.array([8, 12], np.uint64), np.array([1, 99]))
    >>> rarity(np.array([8, 12], np.uint64)).round(2).tolist()
    [3.93, 0.69]
    """

    columns: int = 0
    terms: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def __call__(self, terms: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Weigh some terms."""
        counts = np.zeros(len(terms))
        if len(self.terms):
            places = np.searchsorted(self.terms, terms).clip(max=len(self.terms) - 1)
            known = self.terms[places] == terms
            counts[known] = self.counts[places[known]]
        return np.log1p(max(self.columns, 1) / (1 + counts))


@dataclass(frozen=True)
class Parts:
    """How alike columns are, a row for each of the query's, by each kind of evidence.

    Attributes
    ----------
    header
        Their headers; 0 if one says nothing.
    words
        The words of header and values together.
    numbers
        How their numbers are spread; not a number unless both hold numbers.
    opaque
        Whether one of the headers says nothing.
    """

    header: NDArray[np.float64]
    words: NDArray[np.float64]
    numbers: NDArray[np.float64]
    opaque: NDArray[np.bool_]

    def similarity(self) -> NDArray[np.float64]:
        """Put the parts together, from 0 to 1.

        Numbers speak only where a header says nothing, and then not loudly: many things are
        spread alike.
        """
        heard = self.opaque & ~np.isnan(self.numbers)
        alone = np.where(heard, NUMBERS_ALONE * np.nan_to_num(self.numbers), 0.0)
        content = np.maximum(self.words, alone)
        found = HEADER_WEIGHT * self.header + (1 - HEADER_WEIGHT) * content
        return found.clip(0, 1)


def parts(query: Profile, table: Profile, rarity: Rarity | None = None) -> Parts:
    """Compare every column of a table with every column of another.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from equipoise.engines.profiling import Profiler
    >>> def profile(**columns):
    ...     profiler = Profiler(list(columns), ["VARCHAR"] * len(columns))
    ...     profiler.add([pa.array(values) for values in columns.values()])
    ...     return profiler.profile()
    >>> ours = profile(plant=["apple", "pear"], height=["3", "4"])
    >>> theirs = profile(Height=["3", "5"], Plants=["pear", "plum"])
    >>> parts(ours, theirs).header.round(2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return _compared(_Columns.of(query), _Columns.of(table), rarity or Rarity())


def similarities(
    query: Profile, table: Profile, rarity: Rarity | None = None
) -> NDArray[np.float64]:
    """Tell how alike columns are, from 0 to 1: a row for each of the query's; see :class:`Parts`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from equipoise.engines.profiling import Profiler
    >>> profiler = Profiler(["plant"], ["VARCHAR"])
    >>> profiler.add([pa.array(["apple", "pear"])])
    >>> similarities(profiler.profile(), profiler.profile()).round(6).tolist()
    [[1.0]]
    """
    return parts(query, table, rarity).similarity()


def search(
    index: Index, query: Profile, *, top: int = 10, exclude: Collection[str] = ()
) -> list[Hit]:
    r"""Find the tables whose rows could be put below those of a table.

    Parameters
    ----------
    index
        What is known of the lake.
    query
        What is known of the table.
    top
        How many are wanted.
    exclude
        Snapshots of files that are left out, such as the table's own.

    Returns
    -------
    list of Hit
        The best first; fewer than asked for if no more have anything in common with it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from equipoise.engines.duckdb import shared_engine
    >>> from equipoise.lake.tables.index import refresh
    >>> folder = tempfile.TemporaryDirectory()
    >>> places, path = [folder.name], Path(folder.name, ".index.duckdb")
    >>> _ = Path(folder.name, "a.csv").write_text("Plant,Soil\napple,loam\npear,clay\n")
    >>> _ = Path(folder.name, "b.csv").write_text("City,Trade\nLima,baker\nOslo,smith\n")
    >>> _ = refresh(path, places, engine=shared_engine())
    >>> index = Index(path, places)
    >>> table = next(table for table in index.tables() if table.name == "a.csv")
    >>> (hit,) = search(index, index.profiles([table.id])[table.id])
    >>> hit.table.name, hit.score, hit.columns[0].why
    ('a.csv', 1.0, 'same header, values overlap 1.00')
    >>> folder.cleanup()
    """
    if top < 1:
        raise InputError(
            f"at least one table must be asked for, not {top}; give a top of 1 or more."
        )
    query = _filled(query)
    asked = _Columns.of(query)
    rarity = Rarity(*index.frequencies)
    ids = _candidates(index, asked, rarity, max(top, CANDIDATES), exclude)
    ids += _by_numbers(index, asked, max(top, NUMBER_CANDIDATES), exclude, without=ids)
    if not ids:
        return []
    stored = _stored(index, ids)
    scores = _scores(asked, stored, rarity)
    tables = index.chosen(ids)
    ranked = sorted(ids, key=lambda n: (-scores[n], tables[n].snapshot, n))
    found = [n for n in ranked[:top] if scores[n] > 0]
    profiles = index.profiles(found)
    hits = []
    for n in found:
        compared = _compared(asked, stored[n], rarity)
        columns = _matches(query.columns, _filled(profiles[n]).columns, compared)
        hits.append(Hit(tables[n], scores[n], columns))
    return hits


# ----------------------------------------------------------------------------- comparing


class _Column(NamedTuple):
    """What a column is compared by, besides its terms."""

    name: str
    numeric: float
    quantiles: Sequence[float] | None


@dataclass(frozen=True)
class _Columns:
    """Columns and their terms, whose places are those in the list."""

    columns: Sequence[_Column]
    terms: Terms

    @classmethod
    def of(cls, profile: Profile) -> _Columns:
        columns = [_Column(c.name, c.numeric, c.quantiles) for c in profile.columns]
        return cls(columns, terms_of(profile))


def _filled(profile: Profile) -> Profile:
    """Leave out columns without values: a delimiter at the end of every line makes one."""
    return replace(profile, columns=tuple(c for c in profile.columns if c.distinct))


def _compared(query: _Columns, other: _Columns, rarity: Rarity) -> Parts:
    header = (_cosines(query, other, rarity, TOKEN) + _cosines(query, other, rarity, GRAM)) / 2
    ours, theirs = (
        np.array([headers.is_opaque(column.name) for column in side.columns], bool)
        for side in (query, other)
    )
    return Parts(
        header=header,
        words=_cosines(query, other, rarity, WORD),
        numbers=_numbers(query.columns, other.columns),
        opaque=ours[:, None] | theirs[None, :],
    )


def _cosines(query: _Columns, other: _Columns, rarity: Rarity, kind: int) -> NDArray[np.float64]:
    sides = [(side.terms.of_kind(kind), len(side.columns)) for side in (query, other)]
    ours, theirs = _vectors(sides, rarity)
    cosines: NDArray[np.float64] = (ours @ theirs.T).toarray()
    return cosines


def _vectors(sides: Sequence[tuple[Terms, int]], rarity: Rarity) -> list[csr_matrix]:
    """Give the terms of each side as rows of length one, over the same terms."""
    from scipy.sparse import csr_matrix

    known, codes = np.unique(
        np.concatenate([terms.terms for terms, _ in sides]), return_inverse=True
    )
    weights, found, start = rarity(known), [], 0
    for terms, rows in sides:
        code = codes[start : start + len(terms.terms)]
        start += len(code)
        values = terms.weights * weights[code]
        length = np.sqrt(np.bincount(terms.places, values**2, minlength=rows))
        values = values / length[terms.places]
        found.append(csr_matrix((values, (terms.places, code)), shape=(rows, len(known))))
    return found


def _numbers(ours: Sequence[_Column], theirs: Sequence[_Column]) -> NDArray[np.float64]:
    """The share of their numbers on which two columns agree, squared; see `_agreement`."""
    found = np.full((len(ours), len(theirs)), np.nan)
    columns = [j for j, column in enumerate(theirs) if _is_numeric(column)]
    if columns:
        spread = np.array([theirs[j].quantiles for j in columns])
        for i, column in enumerate(ours):
            if _is_numeric(column):
                found[i, columns] = _agreement(np.array(column.quantiles), spread)
    return found


def _is_numeric(column: _Column) -> bool:
    return column.quantiles is not None and column.numeric >= NUMERIC


def _agreement(one: NDArray[np.float64], many: NDArray[np.float64]) -> NDArray[np.float64]:
    """One less the largest gap between the shares of numbers up to a point, squared.

    The gap does not depend on the unit or on outliers. Two columns of the same range but
    another shape still agree by half: squared, that says little.
    """
    steps = np.linspace(0, 1, len(one))
    below = np.searchsorted(one, many, side="right") / len(one)
    under = np.searchsorted(one, many, side="left") / len(one)
    # Where many values are equal, any share between those below and those up to them is right.
    gap = np.maximum(under - steps, steps - below).max(axis=1)
    agreement: NDArray[np.float64] = (1 - gap.clip(0, 1)) ** 2
    return agreement


# ----------------------------------------------------------------------------- candidates


def _candidates(
    index: Index, asked: _Columns, rarity: Rarity, most: int, exclude: Collection[str]
) -> list[int]:
    """The tables whose terms have most in common with the query's, the rare ones counting more."""
    common = rarity.terms[rarity.counts > max(COMMON * rarity.columns, 10)]
    rare = np.setdiff1d(asked.terms.terms, common)
    rows = index.query(
        """
        WITH asked AS (SELECT unnest(?::UBIGINT[]) AS term, unnest(?::DOUBLE[]) AS weight),
        scored AS (SELECT id, sum(asked.weight) AS score FROM terms JOIN asked USING (term) GROUP BY id),
        size AS (SELECT id, count(*) AS terms FROM terms GROUP BY id)
        SELECT id FROM scored JOIN size USING (id) JOIN tables USING (id)
        WHERE snapshot NOT IN (SELECT unnest(?::VARCHAR[]))
        ORDER BY round(score / sqrt(terms), 6) DESC, snapshot, id LIMIT ?
        """,
        [rare.tolist(), (rarity(rare) ** 2).tolist(), list(exclude), most],
    )
    return [number for (number,) in rows]


def _by_numbers(
    index: Index, asked: _Columns, most: int, exclude: Collection[str], without: Sequence[int]
) -> list[int]:
    """Tables whose numbers are spread as the query's, where a header says nothing."""
    numeric = [column for column in asked.columns if _is_numeric(column)]
    if not numeric:
        return []
    found = _of_like_size(index, numeric, [list(exclude), list(without)])
    opaque = {name: headers.is_opaque(name) for name in found["name"].unique().to_pylist()}
    theirs = np.array([opaque[name] for name in found["name"].to_pylist()], bool)
    spread = found["quantiles"].combine_chunks().flatten().to_numpy()
    spread = spread.reshape(-1, len(numeric[0].quantiles or ()))
    tables, place = np.unique(found["id"].to_numpy(), return_inverse=True)
    score = np.zeros(len(tables))
    for column in numeric:
        heard = theirs | headers.is_opaque(column.name)
        best = np.zeros(len(tables))
        agreement = _agreement(np.array(column.quantiles), spread[heard])
        np.maximum.at(best, place[heard], agreement)
        score += best
    snapshot = dict(zip(found["id"].to_pylist(), found["snapshot"].to_pylist(), strict=True))
    scores = dict(zip(tables.tolist(), score.round(_DIGITS).tolist(), strict=True))
    likely = [number for number in scores if scores[number] > 0]
    return sorted(likely, key=lambda n: (-scores[n], snapshot[n], n))[:most]


def _of_like_size(index: Index, numeric: Sequence[_Column], without: Sequence[object]) -> pa.Table:
    """Columns whose median lies between the quartiles of one of these."""
    quartiles = [np.quantile(column.quantiles or (), [0.25, 0.75]).tolist() for column in numeric]
    return index.arrow(
        """
        WITH asked AS (SELECT unnest(?::DOUBLE[]) AS low, unnest(?::DOUBLE[]) AS high)
        SELECT id, snapshot, columns.name, quantiles FROM columns JOIN tables USING (id)
        WHERE "numeric" >= ? AND quantiles IS NOT NULL
        AND snapshot NOT IN (SELECT unnest(?::VARCHAR[])) AND id NOT IN (SELECT unnest(?::INTEGER[]))
        AND EXISTS (SELECT 1 FROM asked WHERE quantiles[(len(quantiles) + 1) // 2] BETWEEN low AND high)
        """,
        [[low for low, _ in quartiles], [high for _, high in quartiles], NUMERIC, *without],
    )


def _stored(index: Index, ids: Sequence[int]) -> dict[int, _Columns]:
    """The columns of some tables that have values, and their terms, as they stand in the index."""
    rows = index.query(
        'SELECT id, place, name, "numeric", quantiles FROM columns '
        'WHERE id IN (SELECT unnest(?)) AND "distinct" > 0 ORDER BY id, place',
        [list(ids)],
    )
    columns: dict[int, dict[int, _Column]] = {number: {} for number in ids}
    for number, place, *about in rows:
        columns[number][place] = _Column(*about)
    terms = _stored_terms(index, ids)
    return {n: _renumbered(columns[n], terms[n]) for n in ids}


def _stored_terms(index: Index, ids: Sequence[int]) -> dict[int, Terms]:
    rows = index.arrow(
        "SELECT id, place, term, weight FROM terms WHERE id IN (SELECT unnest(?)) ORDER BY id",
        [list(ids)],
    )
    names = ("id", "place", "term", "weight")
    owner, place, term, weight = (rows[name].to_numpy() for name in names)
    starts, ends = np.searchsorted(owner, ids, "left"), np.searchsorted(owner, ids, "right")
    return {
        number: Terms(place[a:b].astype(int), term[a:b], weight[a:b].astype(float))
        for number, a, b in zip(ids, starts, ends, strict=True)
    }


def _renumbered(columns: Mapping[int, _Column], terms: Terms) -> _Columns:
    """Count the columns there are from 0, and forget the terms of others."""
    kept = np.fromiter(columns, int)
    chosen = np.isin(terms.places, kept)
    places = np.searchsorted(kept, terms.places[chosen])
    return _Columns(
        list(columns.values()), Terms(places, terms.terms[chosen], terms.weights[chosen])
    )


# ----------------------------------------------------------------------------- scores


def _scores(asked: _Columns, found: Mapping[int, _Columns], rarity: Rarity) -> dict[int, float]:
    """Score all tables; the columns of all are compared at once."""
    together, starts = _together(list(found.values()))
    similarity = _compared(asked, together, rarity).similarity()
    contexts = _contexts(asked, together, starts, rarity)
    scores = {}
    for i, number in enumerate(found):
        block = similarity[:, starts[i] : starts[i + 1]]
        aligned = block[_paired(block)].sum() / np.sqrt(max(block.size, 1))
        score = (1 - CONTEXT_WEIGHT) * aligned + CONTEXT_WEIGHT * contexts[i]
        # Not to the last digit, which depends on the order of additions.
        scores[number] = round(float(np.clip(score, 0, 1)), _DIGITS)
    return scores


def _paired(similarity: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair columns one to one, so that their similarities add up to the most."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return rows, columns


def _together(tables: Sequence[_Columns]) -> tuple[_Columns, NDArray[np.int64]]:
    """Put the columns of tables one after another, and tell where each table starts."""
    starts = np.concatenate([[0], np.cumsum([len(table.columns) for table in tables])])
    places = [table.terms.places + start for table, start in zip(tables, starts, strict=False)]
    terms = Terms(
        np.concatenate(places),
        np.concatenate([table.terms.terms for table in tables]),
        np.concatenate([table.terms.weights for table in tables]),
    )
    return _Columns([column for table in tables for column in table.columns], terms), starts


def _contexts(
    asked: _Columns, together: _Columns, starts: NDArray[np.int64], rarity: Rarity
) -> NDArray[np.float64]:
    """How much the words of whole tables have in common, wherever they stand."""
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    ours = _bags(asked.terms, np.zeros(len(asked.columns), int))
    theirs = _bags(together.terms, owner)
    one, many = _vectors([(ours, 1), (theirs, len(starts) - 1)], rarity)
    contexts: NDArray[np.float64] = (many @ one.T).toarray()[:, 0]
    return contexts


def _bags(terms: Terms, owner: NDArray[np.int64]) -> Terms:
    """Give the words of tables; one in many columns counts more, but not as many times."""
    chosen = terms.of_kind(WORD)
    known, codes = np.unique(chosen.terms, return_inverse=True)
    both, columns = np.unique(owner[chosen.places] * len(known) + codes, return_counts=True)
    owners, found = np.divmod(both, max(len(known), 1))
    return Terms(owners, known[found], 1 + np.log(columns))


# ----------------------------------------------------------------------------- evidence


def _matches(
    query: Sequence[ColumnProfile], table: Sequence[ColumnProfile], compared: Parts
) -> tuple[ColumnMatch, ...]:
    similarity = compared.similarity()
    return tuple(
        ColumnMatch(
            query=query[i].name,
            table=table[j].name,
            similarity=round(float(similarity[i, j]), _DIGITS),
            why=_why(query[i], table[j], compared, (i, j)),
        )
        for i, j in zip(*_paired(similarity), strict=True)
        if similarity[i, j] >= _SHOWN
    )


def _why(one: ColumnProfile, other: ColumnProfile, compared: Parts, at: tuple[int, int]) -> str:
    told = []
    if compared.header[at] >= _TOLD:
        same = header_words(one.name) == header_words(other.name)
        told.append("same header" if same else f"similar header {compared.header[at]:.2f}")
    overlap = value_overlap(one, other)
    if not np.isnan(compared.numbers[at]):
        told.append(f"similar numbers {compared.numbers[at]:.2f}")
    elif overlap >= _SHOWN:
        told.append(f"values overlap {overlap:.2f}")
    elif not told or compared.words[at] >= _TOLD:
        told.append(f"similar words {compared.words[at]:.2f}")
    return ", ".join(told)


def value_overlap(one: ColumnProfile, other: ColumnProfile) -> float:
    """Tell which share of the values of the column with fewer the other one has too.

    Case and blanks around values do not matter. It is an estimate for columns of many values,
    which are known by some hashes only.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from equipoise.engines.profiling import Profiler
    >>> profiler = Profiler(["sex", "gender"], ["VARCHAR", "VARCHAR"])
    >>> profiler.add([pa.array(["male", "female"]), pa.array(["Male", "Male"])])
    >>> value_overlap(*profiler.profile().columns)
    1.0
    """
    ours, theirs = _hashes(one), _hashes(other)
    if not len(ours) or not len(theirs):
        return 0.0
    # Up to the last hash both sides know, both know all they have.
    limit = min(_reach(one, ours), _reach(other, theirs))
    ours, theirs = ours[ours <= limit], theirs[theirs <= limit]
    fewer = min(len(ours), len(theirs))
    return len(np.intersect1d(ours, theirs, assume_unique=True)) / fewer if fewer else 0.0


def _hashes(column: ColumnProfile) -> NDArray[np.uint64]:
    if column.values is None:
        return np.array(column.sketch, np.uint64)
    return np.unique(np.fromiter(map(value_hash, column.values), np.uint64))


def _reach(column: ColumnProfile, hashes: NDArray[np.uint64]) -> int:
    partial = column.values is None and len(hashes) >= SKETCH
    return int(hashes[-1]) if partial else 2**64 - 1
