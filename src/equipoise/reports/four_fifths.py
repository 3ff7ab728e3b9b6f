"""The four-fifths rule beside Uniform Bias, and why the two may disagree.

The rule compares a group's rate of the favourable label with that of the best-off group:
their ratio, the impact ratio, should be at least 0.8. It takes no account of how many rows
either group has.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.lattice import Group, format_value
from equipoise.measures.display import number, percent
from equipoise.measures.registry import ratio
from equipoise.plain import Grid
from equipoise.reports.tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.measures.table import BiasTable

RULE = 0.8

IDENTITY = (
    "Why they may disagree: the impact ratio knows rates only, not how many rows a group has. A "
    "group with UB b and a share P of all rows has the impact ratio (1 − b)/(1 + b·P/U) against "
    "the rest, where U = 1 − P. So one and the same ratio stands for a UB near 0 if the group is "
    "most of the table, and for a UB near 1 − ratio if it is a small part of it."
)


@dataclass(frozen=True, eq=False)
class _Families:
    """Groups that fix the same attributes, and the best-off group of each such family."""

    tally: Tally
    label: int

    @functools.cached_property
    def line(self) -> NDArray[np.int64]:
        """Lines shown with a known rate, families together and small ones first."""
        m = self.tally.table.measured
        shown = self.tally.line[(self.tally.label == self.label) & np.isfinite(self.tally.ub)]
        rates = m.margins.rate[shown, self.label]
        order = np.lexsort((rates, self._family(shown), m.lattice.orders[shown]))
        return np.asarray(shown[order])

    def _family(self, line: NDArray[np.int64]) -> NDArray[np.int64]:
        lattice = self.tally.table.measured.lattice
        fixed = lattice.codes[line] != np.array(lattice.sizes)
        # The first attribute counts most, so that families stand in the order of attributes.
        return np.asarray(~fixed @ (1 << np.arange(fixed.shape[1])[::-1]))

    @functools.cached_property
    def rate(self) -> NDArray[np.float64]:
        """The rate of the favourable label in each group."""
        return np.asarray(self.tally.table.measured.margins.rate[self.line, self.label])

    @functools.cached_property
    def ub(self) -> NDArray[np.float64]:
        """UB of each group for the favourable label."""
        return np.asarray(self.tally.table.measured.ub[self.line, self.label])

    @functools.cached_property
    def small(self) -> NDArray[np.bool_]:
        """Groups too small to say anything."""
        return np.asarray(self.tally.table.measured.notes[self.line, self.label] > 0)

    @functools.cached_property
    def best(self) -> NDArray[np.int64]:
        """The line of each group's best-off group: none too small, unless all are."""
        family = self._family(self.line)
        best = np.empty(len(self.line), np.int64)
        for one in np.unique(family):
            members = np.flatnonzero(family == one)
            large = members[~self.small[members]]
            chosen = large if len(large) else members
            best[members] = self.line[chosen[np.argmax(self.rate[chosen])]]
        return best

    @functools.cached_property
    def impact_ratio(self) -> NDArray[np.float64]:
        """Each rate over the best-off group's."""
        return ratio(self.rate, self.tally.table.measured.margins.rate[self.best, self.label])


def four_fifths(table: BiasTable, *, top: int = 20) -> dict[str, Any] | None:
    """Set the four-fifths rule beside UB; None unless a favourable label is named.

    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.measured import Options
    >>> from equipoise.measures.table import bias_table
    >>> counts = Counts.from_mapping(
    ...     {("p", "+"): 388, ("p", "-"): 582, ("u", "+"): 18, ("u", "-"): 12},
    ...     sensitive=["s"],
    ...     label="y",
    ... )
    >>> found = four_fifths(bias_table(counts, Options(favourable="+")))
    >>> [(line["group"], round(line["impact_ratio"], 3), line["met"]) for line in found["lines"]]
    [('s=p', 0.667, False), ('s=u', 1.0, True)]
    """
    favourable = table.options.favourable
    if favourable is None or not len(table):
        return None
    families = _Families(Tally(table), table.counts.label.code(favourable))
    label = str(Group({table.counts.label.name: favourable}))
    lines = [_line(families, i) for i in range(len(families.line))]
    shown = lines[:top]
    return {
        "label": label,
        "rule": RULE,
        "lines": shown,
        "total": len(lines),
        "table": _grid(shown, format_value(favourable), table.options.limit),
        "sentences": _sentences(lines, label, table.options.limit),
    }


def _line(families: _Families, i: int) -> dict[str, Any]:
    m = families.tally.table.measured
    margins, line, best = m.margins, int(families.line[i]), int(families.best[i])
    value, ub = float(families.impact_ratio[i]), float(families.ub[i])
    known = value == value
    return {
        "group": str(m.group(line)),
        "best": str(m.group(best)),
        "rate": float(families.rate[i]),
        "best_rate": float(margins.rate[best, families.label]),
        "overall_rate": float(margins.overall_rate[families.label]),
        "share": float(margins.n_g[line, 0] / margins.n),
        "best_share": float(margins.n_g[best, 0] / margins.n),
        "impact_ratio": value if known else None,
        "met": value >= RULE if known else None,
        "ub": ub,
        "inside": abs(ub) <= families.tally.table.options.limit,
        "too_small": bool(families.small[i]),
    }


def _grid(lines: list[dict[str, Any]], favourable: str, limit: float) -> dict[str, Any]:
    headers: tuple[str, ...] = (
        "group",
        f"rate of {favourable}",
        "share of rows",
        "best-off group",
        "impact ratio",
    )
    headers += (f"≥ {RULE}", "UB", f"|UB| ≤ {limit:g}", "note")
    grid = Grid(headers, tuple(_cells(line) for line in lines), frozenset({1, 2, 4, 6}))
    return {
        "headers": list(grid.headers),
        "rows": [list(row) for row in grid.rows],
        "numbers": sorted(grid.numbers),
    }


def _cells(line: dict[str, Any]) -> tuple[str, ...]:
    value = line["impact_ratio"]
    return (
        line["group"],
        percent(line["rate"]),
        percent(line["share"]),
        "(itself)" if line["best"] == line["group"] else line["best"],
        "–" if value is None else f"{value:.3f}",
        "–" if value is None else _yes(met=line["met"]),
        number(line["ub"]),
        _yes(met=line["inside"]),
        _remark(line),
    )


def _remark(line: dict[str, Any]) -> str:
    if line["too_small"]:
        return "too small to say"
    if line["met"] is None or line["met"] == line["inside"]:
        return ""
    return "above share" if line["ub"] < 0 else "they disagree"


def _yes(*, met: bool) -> str:
    return "yes" if met else "no"


def _sentences(lines: list[dict[str, Any]], label: str, limit: float) -> list[str]:
    telling = [x for x in lines if not x["too_small"] and x["impact_ratio"] is not None]
    if not telling:
        return [f"Four-fifths rule for {label}: no group is large enough to tell."]
    below = sum(not x["met"] for x in telling)
    overall = (
        f"Four-fifths rule for {label}: {below:,} of {len(telling):,} groups have an impact ratio "
        f"below {RULE} against the best-off group of the same attributes."
    )
    strict = [x for x in telling if not x["met"] and x["inside"]]
    lax = [x for x in telling if x["met"] and x["ub"] > limit]
    above = sum(x["met"] and x["ub"] < -limit for x in telling)
    said = [overall]
    said += [_strict(x, limit) for x in sorted(strict, key=lambda x: x["impact_ratio"])[:2]]
    said += [_lax(x, limit) for x in sorted(lax, key=lambda x: -x["ub"])[:2]]
    if len(strict[2:]) + len(lax[2:]):
        said.append(_more(len(strict[2:]) + len(lax[2:])))
    if above:
        many = "1 group has" if above == 1 else f"{above:,} groups have"
        said.append(
            f"{many} more than their share by over the limit of {limit:g}: the rule, which looks "
            "for low rates only, does not see them."
        )
    return [*said, IDENTITY] if strict or lax else said


def _strict(x: dict[str, Any], limit: float) -> str:
    return (
        f"{x['group']}: the impact ratio is {x['impact_ratio']:.3f}, below {RULE}, yet UB is "
        f"{number(x['ub'])}, within the limit of {limit:g}. The ratio sets its rate of "
        f"{percent(x['rate'])} against the {percent(x['best_rate'])} of {x['best']} alone, which "
        f"holds {percent(x['best_share'])} of all rows; UB sets it against the overall rate "
        f"of {percent(x['overall_rate'])}, and {x['group']} is itself {percent(x['share'])} of "
        "all rows."
    )


def _lax(x: dict[str, Any], limit: float) -> str:
    return (
        f"{x['group']}: the impact ratio is {x['impact_ratio']:.3f}, at least {RULE}, yet UB is "
        f"{number(x['ub'])}, above the limit of {limit:g}. The ratio sets its rate of "
        f"{percent(x['rate'])} against the {percent(x['best_rate'])} of {x['best']}; UB sets it "
        f"against the overall rate of {percent(x['overall_rate'])}, which is the closer to the "
        f"others' rate, and UB the larger, the smaller the group: here {percent(x['share'])} of "
        "all rows."
    )


def _more(n: int) -> str:
    return "1 more group disagrees so." if n == 1 else f"{n:,} more groups disagree so."
