"""One row of a bias table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise.values import Value, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from equipoise.lattice import Group
    from equipoise.measures.measurement import Note


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
