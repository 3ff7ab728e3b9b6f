"""How a table is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError, did_you_mean
from equipoise.lattice import Group
from equipoise.measures.registry import measure_named
from equipoise.validate import at_least, between, one_of
from equipoise.values import as_value, plain

if TYPE_CHECKING:
    from equipoise.measures.uncertainty.intervals import Sampling
    from equipoise.measures.uncertainty.p_values import Adjustment

SAMPLINGS = ("rows", "groups")
ADJUSTMENTS = ("bh", "by")
SHOWN_ANYWAY = frozenset({"uniform_bias", "selection_rate", "expected_rows", "missing_rows"})
"""Measures that are columns of every table."""
REFERENCES = ("rest", "best")
"""To whom a group may be compared, beside another group by its pattern."""


def require_reference(what: str, asked: str) -> None:
    """Refuse what names nobody to compare a group with.

    >>> require_reference("the reference", "sex=Male")
    """
    if asked in REFERENCES or ("=" in asked and Group.parse(asked)):
        return
    raise InputError(
        f"{what} is rest, best or a group, as sex=Male, not {asked!r}; all rows are what UB compares "
        f"with.{did_you_mean(asked, REFERENCES)}"
    )


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a table is measured.

    Parameters
    ----------
    min_count, max_order
        Leave out groups with fewer rows, or that fix more attributes.
    limit
        The |UB| up to which a group counts as inside, for hidden groups.
    uncertainty
        Whether to compute intervals, p and q.
    confidence
        Of the intervals.
    sampling
        What chance decided: ``"rows"`` (rows were drawn at random, so group sizes vary
        too) or ``"groups"`` (group sizes were fixed).
    adjust
        q by Benjamini–Hochberg (``"bh"``), approximate under the lattice's dependence, or
        by Benjamini–Yekutieli (``"by"``), valid under any.
    favourable
        The label value that is good to have; shows the four-fifths rule beside UB.
    reference
        To whom ratios and differences compare a group: ``"rest"``, ``"best"`` (the
        best-off group of the same attributes) or a group's pattern.
    measures
        Names of further measures to show.
    memory
        Bytes the lattice may take.
    suppress_below
        Set by :func:`~equipoise.measures.suppression.suppress`: counts below it are hidden.
    """

    min_count: int = 1
    max_order: int | None = None
    limit: float = 0.1
    uncertainty: bool = True
    confidence: float = 0.95
    sampling: Sampling = "rows"
    adjust: Adjustment = "bh"
    favourable: str | None = None
    reference: str = "rest"
    measures: tuple[str, ...] = ()
    memory: int | None = None
    suppress_below: int | None = None

    def __post_init__(self) -> None:
        at_least("min_count", self.min_count, 1, whole=True)
        at_least("limit", self.limit, 0)
        between("confidence", self.confidence, 0, 1)
        one_of("sampling", self.sampling, SAMPLINGS)
        one_of("adjust", self.adjust, ADJUSTMENTS)
        if self.max_order is not None:
            at_least("max_order", self.max_order, 1, whole=True)
        names = dict.fromkeys(measure_named(name).name for name in self.measures)
        object.__setattr__(self, "measures", tuple(n for n in names if n not in SHOWN_ANYWAY))
        if self.favourable is not None:
            object.__setattr__(self, "favourable", str(as_value(self.favourable)))
        require_reference("the reference", self.reference)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        shown = {k: plain(v) for k, v in vars(self).items() if k != "memory"}
        return {**shown, "measures": list(self.measures)}
