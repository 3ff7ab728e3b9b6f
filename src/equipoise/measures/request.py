"""A request for a measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from equipoise.errors import InputError, did_you_mean
from equipoise.lattice import Group
from equipoise.measures.registry import measure_named
from equipoise.options.measure import MeasureOptions
from equipoise.values import as_value, plain

SHOWN_ANYWAY = frozenset({"uniform_bias", "selection_rate", "expected_rows", "missing_rows"})
"""Measures that are columns of every table."""
REFERENCES = ("rest", "best")
"""Baselines that a group may be compared with, in addition to another group by its pattern."""


def require_reference(what: str, asked: str) -> None:
    """Refuse a baseline that is neither one of `REFERENCES` nor a group."""
    if asked in REFERENCES or ("=" in asked and Group.parse(asked)):
        return
    raise InputError(
        f"{what} must be 'rest', 'best' or a group such as 'sex=Male', not {asked!r}; UB itself "
        f"compares with all rows.{did_you_mean(asked, REFERENCES)}"
    )


@dataclass(frozen=True, kw_only=True)
class MeasureRequest(MeasureOptions):
    """The options of a measurement, checked, and what only the program sets."""

    memory: int | None = None
    """Maximum number of bytes of the lattice."""
    suppress_below: int | None = None
    """Counts below this are hidden; set by :func:`~equipoise.measures.suppression.suppress`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        names = dict.fromkeys(measure_named(name).name for name in self.measures)
        object.__setattr__(self, "measures", tuple(n for n in names if n not in SHOWN_ANYWAY))
        if self.favourable is not None:
            object.__setattr__(self, "favourable", str(as_value(self.favourable)))
        object.__setattr__(self, "reference", str(self.reference))  # a Group, too
        require_reference("`reference`", self.reference)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        shown = {k: plain(v) for k, v in vars(self).items() if k != "memory"}
        return {**shown, "measures": list(self.measures)}
