"""Missingness mechanisms: which rows lose a value in a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from equipoise.errors import InputError
from equipoise.evaluation.missing.rows import LEAST_ROWS, Rows
from equipoise.lattice import Group

if TYPE_CHECKING:
    from numpy.typing import NDArray

Mechanism: TypeAlias = Literal["random", "by_label", "by_value"]
MECHANISMS: tuple[Mechanism, ...] = ("random", "by_label", "by_value")
"""Rows that lose a value: any, or more often those with one label or one value of the column."""
TIMES = 3
"""How many times as often the favoured rows lose their value."""


class Loss(NamedTuple):
    """Which rows lose a value."""

    favoured: NDArray[np.bool_]  # lose it more often than others
    often: int  # favoured rows that lose it
    seldom: int  # other rows that lose it
    group: Group | None  # what the favoured rows have in common

    def draw(self, chance: np.random.Generator) -> NDArray[np.intp]:
        """Draw the rows that lose their value."""
        inside, outside = np.flatnonzero(self.favoured), np.flatnonzero(~self.favoured)
        return np.concatenate(
            [
                chance.choice(inside, self.often, replace=False),
                chance.choice(outside, self.seldom, replace=False),
            ]
        )


def loss_of(rows: Rows, position: int, share: float, mechanism: Mechanism) -> Loss:
    """Decide how many rows lose the value of a column, and which of them more often.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from equipoise.counts import CountRequest
    >>> from equipoise.evaluation.missing.rows import read_rows
    >>> people = pa.table({"sex": ["m", "m", "w"] * 40, "y": ["1", "0", "0"] * 40})
    >>> rows = read_rows(people, CountRequest(sensitive=("sex",), label="y"))
    >>> loss = loss_of(rows, 0, 0.25, "by_value")
    >>> loss.often, loss.seldom, str(loss.group)
    (18, 12, 'sex=w')
    """
    n = len(rows.codes)
    taken = round(share * n)
    if not taken or n - taken < LEAST_ROWS:
        raise InputError(
            f"`share={share:g}` removes {taken:,} of {n:,} values; remove at least one, and leave at "
            f"least {LEAST_ROWS}."
        )
    if mechanism == "random":
        return Loss(np.zeros(n, np.bool_), 0, taken, None)
    place = position if mechanism == "by_value" else len(rows.values) - 1
    codes = rows.codes[:, place]
    # Of equally frequent values, the first in order counts as the more frequent one.
    second = int(np.argsort(-np.bincount(codes), kind="stable")[1])
    favoured = codes == second
    group = Group({rows.request.columns[place]: rows.values[place][second]})
    part = favoured.mean()
    most = (1 + (TIMES - 1) * part) / TIMES
    often = round(TIMES * share * n * part / (1 + (TIMES - 1) * part))
    if share > most or often == favoured.sum():
        raise InputError(
            f"`share={share:g}` is too much for `mechanism={mechanism!r}`: all {int(favoured.sum()):,} rows "
            f"with {group} would lose their value; use a `share` below {most:.3g}."
        )
    return Loss(favoured, often, taken - often, group)
