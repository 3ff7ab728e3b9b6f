"""One row of a bias table, and the notes that a row may have."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from equipoise.values import Value, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from equipoise.lattice import Group

Note: TypeAlias = Literal[
    "too small to say",
    "rests on one row",
    "all rows",
    "only label",
    "no weight",
    "no such rows",
    "suppressed",
]
NOTES: dict[Note, str] = {
    "too small to say": "in a group of this size even the most extreme outcome in the same "
    "direction could be chance",
    "rests on one row": "without one single row the group would differ in the other direction",
    "all rows": "every row is in this group, so there is nothing to compare it with",
    "only label": "every row has this label, so no group can differ",
    "no weight": "UB is undefined: the rows of this group, or with this label, have no weight",
    "no such rows": "UB is undefined: no row has this label",
    "suppressed": "hidden, because the numbers are small or small numbers could be derived from them",
}
NOTE_CODES: tuple[Note | None, ...] = (None, *NOTES)
"""A row has the number of its note; 0 stands for none."""


@dataclass(frozen=True)
class Row:
    """One group and label of a bias table."""

    group: Group
    label: Value
    n_group: int | None
    n_cell: int | None
    rate: float
    overall_rate: float
    ub: float
    ub_low: float
    ub_high: float
    p_value: float
    q_value: float
    expected: float
    missing_rows: float
    hidden: bool
    evident: bool
    note: Note | None
    measures: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with ``None`` for missing or undefined values."""
        own = {k: v for k, v in vars(self).items() if k not in ("group", "measures")}
        numbers = {k: plain(v) for k, v in {**own, **self.measures}.items()}
        return {"group": {k: plain(v) for k, v in self.group.items()}, **numbers}


NUMBERS = tuple(each.name for each in fields(Row) if each.type == "float")
"""Names of the columns of numbers that every table has."""
