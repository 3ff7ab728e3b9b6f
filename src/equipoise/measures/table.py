"""The bias table: Uniform Bias of every group of the lattice and every label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import Counts
from equipoise.errors import InputError, PatternError
from equipoise.lattice import Group
from equipoise.measures.display import rows_grid
from equipoise.measures.four_fifths import FourFifths
from equipoise.measures.measure import Floats
from equipoise.measures.measurement import Measurement
from equipoise.measures.pairs import Pairs
from equipoise.measures.request import MeasureRequest
from equipoise.measures.row import NOTE_CODES, NUMBERS, Row
from equipoise.measures.sentences import topics
from equipoise.plain import Grid, in_words
from equipoise.results import Drawable
from equipoise.validate import one_of
from equipoise.values import as_value, plain

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


SCHEMA = "equipoise.measure/1"
SORTS = ("worst", "ub", "group", "n", "p")


def bias_table(counts: Counts, options: MeasureRequest | None = None) -> BiasTable:
    """Measure counts over all groups of the lattice."""
    if not counts.n:
        raise InputError("there are no rows to measure.")
    return BiasTable(Measurement.of(counts, options or MeasureRequest()))


def largest_ub(counts: Counts) -> float:
    """The largest |UB| over the whole lattice; nan if no group has a UB."""
    if not counts.n:
        return float("nan")
    ub = np.abs(bias_table(counts, MeasureRequest(uncertainty=False)).measured.ub)
    return float("nan") if np.isnan(ub).all() else float(np.nanmax(ub))


@dataclass(frozen=True, eq=False)
class BiasTable(Drawable):
    """Uniform Bias of every group and label, in the order of the lattice or as sorted.

    Index it by pattern and label to read one row, iterate over all rows, or convert it to a
    frame. Unless :meth:`sort` chose another order, the table is printed, and :meth:`top` is taken,
    in the order of :meth:`worst`.

    >>> cells = {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110}
    >>> table = bias_table(Counts.from_mapping(cells, sensitive=["sex"], label="outcome"))
    >>> [(str(row.group), row.label, round(row.ub, 3)) for row in table.worst(2)]
    [('sex=w', 'hired', 0.2), ('sex=w', 'not', -0.1)]
    """

    measured: Measurement
    view: NDArray[np.int64] | None = None
    order: str | None = None
    """The requested order, one of ``SORTS``; None for rows that were only filtered."""

    # ------------------------------------------------------------------ reading

    def __post_init__(self) -> None:
        # Views of one measurement were all made when it was.
        object.__setattr__(self, "time", self.measured.time)

    @property
    def counts(self) -> Counts:
        """The counts that were measured."""
        return self.measured.counts

    @property
    def options(self) -> MeasureRequest:
        """The options they were measured with."""
        return self.measured.options

    @property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The line and the label number of every row shown."""
        line, label = np.divmod(self._flat(), max(self.measured.ub.shape[1], 1))
        return line, label

    @property
    def pairs(self) -> Pairs:
        """The pairs of a group and a label that are shown, as arrays."""
        return Pairs(self.measured, *self.places)

    def __len__(self) -> int:
        return self.measured.ub.size if self.view is None else len(self.view)

    def __iter__(self) -> Iterator[Row]:
        return self.measured.rows_at(*self.places)

    def __getitem__(self, key: Any) -> Row:
        if not (isinstance(key, tuple) and len(key) == 2):
            raise PatternError(
                "name a row by its group and label value, as in table['sex=Female', '>50K']."
            )
        group, label = key
        named = Group.parse(group) if isinstance(group, str) else Group(group)
        line, code = self.measured.line(named), self.counts.label.code(as_value(label))
        return next(self.measured.rows_at(np.array([line]), np.array([code])))

    def measure(self, name: str, *, reference: str | None = None, min_count: int = 1) -> Floats:
        """Compute a registered measure for all groups (lines) and labels (columns).

        Parameters
        ----------
        name
            Name of the measure.
        reference
            Baseline that it compares a group with. By default the one of the options.
        min_count
            Minimum number of rows of a best-off group.

        Examples
        --------
        >>> cells = {("m", "y"): 3, ("m", "n"): 1, ("w", "y"): 1, ("w", "n"): 3}
        >>> counts = Counts.from_mapping(cells, sensitive=["sex"], label="l")
        >>> bias_table(counts).measure("impact-ratio").round(3).tolist()
        [[3.0, 0.333], [0.333, 3.0]]
        """
        return self.measured.measure(name, reference, min_count)

    # ----------------------------------------------------------------- choosing

    def worst(self, n: int | None = None) -> BiasTable:
        """The rows with the largest |UB|; those with too few rows to decide come last.

        There are enough rows if q is below 0.05 or the whole interval is inside the limit.
        """
        return self.sort("worst").top(n)

    def top(self, n: int | None) -> BiasTable:
        """The first rows: the worst ones, unless the table was sorted in another order."""
        if n is None:
            return self
        ordered = self.ordered if n else self
        return replace(ordered, view=ordered._flat()[:n])  # noqa: SLF001 (of the same class)

    @property
    def ordered(self) -> BiasTable:
        """The table in the order in which it is printed: as sorted, or else the worst first."""
        return self if self.order is not None else self.sort("worst")

    @property
    def inconclusive_from(self) -> int | None:
        """The number of the first row with too few rows to decide.

        None if there is no such row, or if the table is in another order than the worst first.
        """
        if self.order != "worst":
            return None
        line, label = self.places
        inconclusive = self.measured.inconclusive[line, label]
        return int(self.measured.evident[line, label].sum()) if inconclusive.any() else None

    def sort(self, by: str = "worst") -> BiasTable:
        """Sort by ``"worst"`` (see :meth:`worst`), ``"ub"``, ``"group"``, ``"n"`` (rows) or ``"p"``."""
        one_of("sort", by, SORTS)
        line, label = self.places
        m = self.measured
        ub = m.ub[line, label]
        if by == "group":
            return replace(self, view=np.sort(self._flat()), order=by)
        if by == "n":
            order = np.argsort(-m.n_group[line], kind="stable")
        elif by == "p":
            p = ub if m.p_value is None else m.p_value[line, label]
            order = np.argsort(p, kind="stable")
        elif by == "ub":
            order = np.argsort(-ub, kind="stable")
        else:
            last, silent = ~m.evident[line, label], m.notes[line, label] > 0
            order = np.lexsort((-m.n_group[line], -np.abs(np.round(ub, 12)), silent, last))
        if m.suppressed is not None:  # their order would reveal their numbers
            hidden = m.suppressed[line, label]
            by_group = np.argsort(self._flat())
            order = np.concatenate([order[~hidden[order]], by_group[hidden[by_group]]])
        return replace(self, view=self._flat()[order], order=by)

    def filter(
        self,
        *,
        label_value: Sequence[Any] | Any | None = None,
        group: Group | str | None = None,
        hidden: bool = False,
        worse: bool = False,
        evident: bool = False,
        attributes: int | None = None,
        search: str | None = None,
    ) -> BiasTable:
        """Keep only some rows.

        Parameters
        ----------
        label_value
            Label values to keep.
        group
            Pattern; groups inside it are kept.
        hidden, worse
            Whether to keep only groups that are outside the limit while all their parents are inside,
            or only intersections whose |UB| is larger than that of each of their parents.
        evident
            Whether to keep only groups with enough rows to tell.
        attributes
            Number of attributes of the groups to keep.
        search
            Words that the pattern of a group contains, in upper or lower case.

        Examples
        --------
        >>> cells = {("m", "y"): 30, ("m", "n"): 10, ("w", "y"): 10, ("w", "n"): 30}
        >>> table = bias_table(Counts.from_mapping(cells, sensitive=["sex"], label="l"))
        >>> [(str(row.group), row.label) for row in table.filter(search="SEX=W", label_value="y")]
        [('sex=w', 'y')]
        """
        line, label = self.places
        kept = np.ones(len(line), np.bool_)
        if label_value is not None:
            single = isinstance(label_value, str) or not isinstance(label_value, Sequence)
            wanted = [label_value] if single else label_value
            kept &= np.isin(label, [self.counts.label.code(as_value(v)) for v in wanted])
        if group is not None:
            named = Group.parse(group) if isinstance(group, str) else group
            kept &= self.measured.inside(named, "choose labels with `label_value`")[line]
        for wanted, found in ((hidden, "hidden"), (worse, "worse"), (evident, "evident")):
            if wanted:
                kept &= getattr(self.measured, found)[line, label]
        if attributes is not None:
            kept &= self.measured.lattice.orders[line] == attributes
        for word in (search or "").lower().split():
            kept &= self._with_word(line, word)
        return replace(self, view=self._flat()[kept])

    def _with_word(self, line: NDArray[np.int64], word: str) -> NDArray[np.bool_]:
        import pyarrow.compute as pc

        lines, place = np.unique(line, return_inverse=True)
        patterns = pc.utf8_lower(self._patterns(self.measured.lattice.codes[lines]))
        found = pc.match_substring(patterns, word).to_numpy(zero_copy_only=False)
        return np.asarray(found, np.bool_)[place]

    def part(self, start: int, stop: int) -> BiasTable:
        """The rows from one number to another, in the order of this table."""
        return replace(self, view=self._flat()[start:stop])

    def _flat(self) -> NDArray[np.int64]:
        return np.arange(len(self)) if self.view is None else self.view

    # ------------------------------------------------------------------- giving

    def to_arrow(self) -> pa.Table:
        """Convert the rows shown to an Arrow table: pattern, attributes, label and all numbers.

        An attribute is null where the group takes any value and ``<missing>`` where the value is
        missing; the pattern distinguishes these from values that are spelled the same. A column of
        the data with the name of a result column, such as ``rate``, is called ``data.rate``.
        """
        import pyarrow as pa

        line, label = self.places
        m = self.measured
        codes = m.lattice.codes[line]
        columns: dict[str, Any] = {"group": self._patterns(codes)}
        taken = (*NUMBERS, *_OTHERS, *self.options.measures)
        names = [f"data.{a.name}" if a.name in taken else a.name for a in self.counts.axes]
        for position, axis in enumerate(self.counts.sensitive):
            columns[names[position]] = _dictionary(
                (*map(str, axis.values), None), codes[:, position]
            )
        columns[names[-1]] = _dictionary([*map(str, self.counts.label.values)], label)
        columns["order"] = pa.array(m.lattice.orders[line])
        suppressed = None if m.suppressed is None else m.suppressed[line, label]
        for name, rows in (("n_group", m.n_group[line]), ("n_cell", m.n_cell[line, label])):
            # Arrow keeps the values under a mask, so suppressed numbers must be overwritten.
            shown = rows if suppressed is None else np.where(suppressed, 0, rows)
            columns[name] = pa.array(shown, mask=suppressed)
        for name, numbers in m.columns_at(line, label).items():
            columns[name] = pa.array(numbers)
        columns["hidden"] = pa.array(m.hidden[line, label])
        columns["evident"] = pa.array(m.evident[line, label])
        columns["note"] = _dictionary(NOTE_CODES, m.notes[line, label])
        return pa.table(columns)

    def _patterns(self, codes: NDArray[np.int32]) -> pa.Array:
        import pyarrow.compute as pc

        parts = []
        for position, axis in enumerate(self.counts.sensitive):
            texts = [str(Group({axis.name: value})) for value in axis.values]
            parts.append(_dictionary((*texts, None), codes[:, position]).dictionary_decode())
        return pc.binary_join_element_wise(*parts, ", ", null_handling="skip")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON.

        With a favourable label, ``four_fifths`` compares the groups shown with the best-off group
        among all that were measured; see :mod:`equipoise.measures.four_fifths`.
        """
        rule = self.four_fifths
        return {
            **self.about(),
            "four_fifths": None if rule is None else rule.to_dict(),
            "rows": [row.to_dict() for row in self],
        }

    @property
    def four_fifths(self) -> FourFifths | None:
        """The four-fifths rule for the groups shown; None unless a favourable label is named."""
        return FourFifths.of(self.measured, self.places[0])

    def about(self) -> dict[str, Any]:
        """What was measured and how, as plain data, without the rows."""
        counts = self.counts
        return {
            "schema": SCHEMA,
            "n": counts.n,
            "sensitive": [a.name for a in counts.sensitive],
            "label": counts.label.name,
            "labels": [plain(v) for v in counts.label.values],
            "missing_values": dict(counts.missing_values),
            "dropped": counts.dropped,
            "skipped": counts.skipped.to_dict(),
            "bins": {n: list(b) for n, b in counts.bins.items()},
            "reading": counts.reading.to_dict(),
            "parameters": {
                **({} if counts.request is None else counts.request.to_dict()),
                **self.options.to_dict(),
            },
            # Small counts could be found by trying which ones give the published hash.
            "fingerprint": counts.fingerprint if self.measured.suppressed is None else None,
            "version": self.version,
            "time": self.measured.time,
        }

    def __repr__(self) -> str:
        shown = self.grid()
        left = len(self) - len(shown.rows)
        more = f"\n… and {left:,} more rows" if left else ""
        return f"{self.heading}\n\n{shown.text()}{more}"

    __str__ = __repr__  # what is printed stays short; :meth:`text` says everything

    def grid(self) -> Grid:
        """The first rows as a printable table: the worst ones, unless they were sorted."""
        shown = self.top(20 if self.view is None else 60)
        return rows_grid(shown, self.measured, shown.inconclusive_from)

    _most = None  # the grid has the first rows already

    def _said(self) -> list[str]:
        shown = min(len(self), 20 if self.view is None else 60)
        more = f" ({shown:,} of {len(self):,} rows)" if len(self) > shown else ""
        return [self.heading + more]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What differs, for whom, and how sure that is."""
        return tuple(s for topic in topics(self.pairs) for s in topic["sentences"])

    def text(self) -> str:
        """The heading, the first rows and the sentences."""
        said = "\n".join(f"- {sentence}" for sentence in self.sentences)
        return f"{self!r}\n\n{said}"

    @property
    def heading(self) -> str:
        """What was measured, in one line."""
        counts = self.counts
        names = in_words([a.name for a in counts.sensitive])
        labels = "1 label" if len(counts.label) == 1 else f"{len(counts.label)} labels"
        return (
            f"Uniform Bias of {counts.label.name} by {names}: {counts.n:,} rows, "
            f"{len(self.measured.lattice):,} groups, {labels}"
        )


_OTHERS = ("group", "order", "n_group", "n_cell", "hidden", "evident", "note")


def _dictionary(texts: Sequence[str | None], codes: NDArray[Any]) -> pa.DictionaryArray:
    """Encode texts as an Arrow dictionary; where the text is ``None`` the entry is null."""
    import pyarrow as pa

    present = list(dict.fromkeys(t for t in texts if t is not None))
    place = {text: number for number, text in enumerate(present)}
    table = np.array([-1 if t is None else place[t] for t in texts], np.int32)
    indices = table[codes] if len(table) else np.asarray(codes, np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, mask=indices < 0), pa.array(present, pa.string())
    )
