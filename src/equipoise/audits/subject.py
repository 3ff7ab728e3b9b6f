"""What an audit is about: the counts of a table, and which of its rows are selected."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from equipoise.counts import Counts
from equipoise.errors import InputError
from equipoise.lattice import Group, format_value
from equipoise.measures.request import MeasureRequest
from equipoise.measures.suppression import suppress
from equipoise.measures.table import BiasTable, bias_table
from equipoise.options.audit import AuditOptions
from equipoise.options.texts import number_text
from equipoise.plain import in_words, rows_text
from equipoise.values import MISSING, Value, as_value

ABOVE, NOT_ABOVE = "above the median", "not above the median"
"""The labels of a score."""
_AFFIRMATIVE = frozenset({"yes", "y", "true", "t", "1", "1.0", "selected", "hired"})
_OPPOSITES = {"no": "yes", "n": "y", "false": "true", "f": "t", "0": "1", "0.0": "1.0"}


@dataclass(frozen=True)
class Median:
    """The median of a score over all rows that have one."""

    column: str
    value: float
    rows: int
    """Rows that have a score."""
    ties: int | None
    """Rows whose score is the median; None if that is a small number, which is hidden."""

    @property
    def sentence(self) -> str:
        """The median, and what happens to rows at it."""
        at = "rows" if self.ties is None else rows_text(self.ties)
        return (
            f"The median of {self.column!r} over all {self.rows:,} rows that have a score is "
            f"{number_text(self.value)}. Only higher scores count as above it; {at} at the median itself "
            f"{'counts' if self.ties == 1 else 'count'} as not above."
        )


@dataclass(frozen=True, eq=False)
class Subject:
    """A counted table, with the options of the form."""

    counts: Counts
    """Counts in which every value that means unknown is a missing value."""
    options: AuditOptions
    median: Median | None = None
    """The median, if the label says which scores are above it."""
    source: str | None = None

    @classmethod
    def of(
        cls,
        counts: Counts,
        options: AuditOptions,
        *,
        median: Median | None = None,
        source: str | None = None,
    ) -> Subject:
        """Take counts; values that mean unknown become missing ones."""
        below = options.suppress_below
        if median is not None and below is not None and 0 < (median.ties or 0) < below:
            median = replace(median, ties=None)
        return cls(with_unknown(counts, options.unknown), options, median, source)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the sensitive attributes."""
        return tuple(axis.name for axis in self.counts.sensitive)

    @functools.cached_property
    def selected(self) -> Value:
        """The label that means selected: the one that was named, or else the affirmative one."""
        if self.median is not None:
            return ABOVE
        label = self.counts.label
        if self.options.selected_value is not None:
            value = as_value(self.options.selected_value)
            label.code(value)
            return value
        known = [value for value in label.values if value is not MISSING]
        found = [value for value in known if value.strip().casefold() in _AFFIRMATIVE]
        if len(known) <= 2 and len(found) == 1:
            return found[0]
        raise InputError(
            f"name the value of {label.name!r} that means selected, as in "
            f"`selected_value={format_value(known[0])!r}`; it has: {label.listed}."
        )

    @functools.cached_property
    def code(self) -> int:
        """The number of the label that means selected."""
        return self.counts.label.code(self.selected)

    @functools.cached_property
    def table(self) -> BiasTable:
        """The biases of all groups, with small counts hidden if that was asked for."""
        return self._measured(None)

    @functools.cached_property
    def selection(self) -> BiasTable:
        """The same, with the selected rows as the favourable label."""
        return self._measured(self.selected)

    def _measured(self, favourable: Value | None) -> BiasTable:
        options = self.options
        request = MeasureRequest(
            limit=options.limit,
            confidence=options.confidence,
            favourable=None if favourable is None else str(favourable),
        )
        table = bias_table(self.counts, request)
        below = options.suppress_below
        return table if below is None else suppress(table, below)

    @property
    def families(self) -> list[tuple[str, ...]]:
        """The sets of attributes with a table each: one by one, sex with race, and all together."""
        names, options = self.attributes, self.options
        pair = tuple(name for name in (options.sex, options.race) if name in names)
        sets = [(name,) for name in names] + [pair] * (len(pair) == 2) + [names]
        return list(dict.fromkeys(sets))

    def for_selection(self, form: str) -> Subject:
        """The subject of a form about selections; refuse weighted rows, which have no such rates.

        If no row is selected, the label gets the value that would have meant selected.
        """
        if self.counts.weights is not None:
            raise InputError(
                f"the form {form} counts people, one for each row; leave `weight` out, or use the form "
                "'datasheet'."
            )
        label = self.counts.label
        asked = self.options.selected_value
        only = str(label.values[0]).strip().casefold() if len(label) == 1 else ""
        if self.median is not None or only not in _OPPOSITES:
            return self
        answer = _OPPOSITES[only] if asked is None else str(as_value(asked))
        if answer.strip().casefold() not in _AFFIRMATIVE:
            return self
        axes = (*self.counts.sensitive, replace(label, values=(*label.values, answer)))
        options = replace(self.options, selected_value=answer)
        return replace(self, counts=replace(self.counts, axes=axes), options=options)

    @property
    def rows_sentences(self) -> list[str]:
        """Which rows are counted, and which are not."""
        counts, name = self.counts, self.counts.label.name
        said = [f"{counts.n:,} rows are counted by {in_words(self.attributes)}."]
        if counts.dropped:
            verb = "has" if counts.dropped == 1 else "have"
            said.append(
                f"{rows_text(counts.dropped)} {verb} no value of {name!r} and "
                f"{'is' if counts.dropped == 1 else 'are'} left out."
            )
        said += counts.reading.sentences
        if counts.skipped:
            said.append(f"{counts.skipped}.")
        if self.options.unknown:
            texts = in_words([repr(text) for text in self.options.unknown])
            verb = "counts" if len(self.options.unknown) == 1 else "count"
            said.append(
                f"In sensitive attributes, {texts} {verb} as unknown, like a missing value."
            )
        below = self.options.suppress_below
        if below is not None:
            said.append(
                f"Counts below {below:,}, and numbers they could be derived from, are hidden."
            )
        return said


def with_unknown(counts: Counts, unknown: Sequence[str]) -> Counts:
    """Make values of sensitive attributes that mean unknown missing ones.

    >>> cells = {("w", "yes"): 2, ("?", "yes"): 3}
    >>> counts = Counts.from_mapping(cells, sensitive=["sex"], label="hired")
    >>> made = with_unknown(counts, ["?"])
    >>> made.axis("sex").values, made.missing_values["sex"]
    (('w', MISSING), 3)
    """
    for axis in counts.sensitive:
        named = [value for value in axis.values if value in unknown]
        if named:
            counts = counts.rename(axis.name, dict.fromkeys(named, MISSING))
            rows = counts.of(Group({axis.name: MISSING}))
            counts = replace(counts, missing_values={**counts.missing_values, axis.name: rows})
    return counts
