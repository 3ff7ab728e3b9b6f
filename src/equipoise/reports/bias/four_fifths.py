"""The four-fifths rule beside Uniform Bias, and why the two may disagree.

The rule compares a group's rate of the favourable label with that of the best-off group: their
ratio, the impact ratio, should be at least 0.8, regardless of how many rows either group has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.lattice import Group, format_value
from equipoise.measures.display import number, percent
from equipoise.measures.four_fifths import RULE, FourFifths
from equipoise.plain import Grid, counted

if TYPE_CHECKING:
    from equipoise.measures.table import BiasTable

_IDENTITY = (
    "Why they may disagree: the impact ratio depends on rates only, not on how many rows a group "
    "has. A group with UB b and a share P of all rows has the impact ratio (1 − b)/(1 + b·P/U) "
    "against the rest, where U = 1 − P. The same ratio therefore means a UB near 0 if the group is "
    "most of the table, and a UB near 1 − ratio if it is a small part of it."
)


def four_fifths(table: BiasTable, *, top: int = 20) -> dict[str, Any] | None:
    """Compare the four-fifths rule with UB; None unless a favourable label is named.

    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.request import MeasureRequest
    >>> from equipoise.measures.table import bias_table
    >>> counts = Counts.from_mapping(
    ...     {("p", "+"): 388, ("p", "-"): 582, ("u", "+"): 18, ("u", "-"): 12},
    ...     sensitive=["s"],
    ...     label="y",
    ... )
    >>> found = four_fifths(bias_table(counts, MeasureRequest(favourable="+")))
    >>> [(line["group"], round(line["impact_ratio"], 3), line["met"]) for line in found["lines"]]
    [('s=p', 0.667, False), ('s=u', 1.0, True)]
    """
    rule = table.four_fifths
    if rule is None:
        return None
    limit, name = table.options.limit, table.counts.label.name
    lines = [_line(rule, int(line), limit) for line in rule.line]
    shown = lines[:top]
    return {
        "label": str(Group({name: rule.favourable})),
        "rule": RULE,
        "lines": shown,
        "total": len(lines),
        "table": _grid(shown, format_value(rule.favourable), limit),
        "sentences": _sentences(rule, lines, str(Group({name: rule.favourable})), limit),
    }


def _line(rule: FourFifths, line: int, limit: float) -> dict[str, Any]:
    m, best, told = rule.measured, int(rule.best[line]), rule.group(line)
    ub, below = float(m.ub[line, rule.label]), told["below"]
    return {
        "group": told["pattern"],
        "best": told["best"],
        "rate": told["rate"],
        "best_rate": told["best_rate"],
        "overall_rate": float(m.margins.overall_rate[rule.label]),
        "share": float(m.margins.n_g[line, 0] / m.margins.n),
        "best_share": float(m.margins.n_g[best, 0] / m.margins.n),
        "impact_ratio": told["impact_ratio"],
        "met": None if below is None else not below,
        "ub": ub,
        "inside": abs(ub) <= limit,
        "too_small": told["too_small"],
    }


def _grid(lines: list[dict[str, Any]], favourable: str, limit: float) -> dict[str, Any]:
    first = ("group", f"rate of {favourable}", "share of rows", "best-off group", "impact ratio")
    headers = (*first, f"≥ {RULE}", "UB", f"|UB| ≤ {limit:g}", "note")
    # Groups that are too small come last, so one line divides them from the others.
    small = [line["too_small"] for line in lines]
    divider = (small.index(True), "too small for a verdict") if True in small else None
    rows = tuple(_cells(line) for line in lines)
    return Grid(headers, rows, frozenset({1, 2, 4, 6}), divider).to_dict()


def _cells(line: dict[str, Any]) -> tuple[str, ...]:
    value = line["impact_ratio"]
    return (
        line["group"],
        percent(line["rate"]),
        percent(line["share"]),
        "(itself)" if line["best"] == line["group"] else line["best"],
        "–" if value is None else f"{value:.3f}",
        "–" if line["met"] is None else _yes(met=line["met"]),
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


def _sentences(
    rule: FourFifths, lines: list[dict[str, Any]], label: str, limit: float
) -> list[str]:
    telling = [x for x in lines if x["met"] is not None]
    if not telling:
        return [f"Four-fifths rule for {label}: no group is large enough to tell."]
    below = sum(not x["met"] for x in telling)
    every = len(telling) == int(rule.compared.sum())
    overall = (
        f"Four-fifths rule for {label}: {below:,} of {len(telling):,} groups"
        f"{'' if every else ' shown'} have an impact ratio below {RULE} against the best-off group "
        "of the same attributes, which is chosen among all groups measured."
    )
    if not every:
        overall += (
            f" Of all {int(rule.compared.sum()):,} groups, {int(rule.below.sum()):,} are below."
        )
    small = int((~rule.compared[rule.line]).sum())
    if small:
        many = "1 group is" if small == 1 else f"{small:,} groups are"
        overall += f" {many} too small for a verdict."
    strict = [x for x in telling if not x["met"] and x["inside"]]
    lax = [x for x in telling if x["met"] and x["ub"] > limit]
    above = sum(x["met"] and x["ub"] < -limit for x in telling)
    said = [overall]
    # Two examples of each kind show the difference; more would repeat it.
    said += [_strict(x, limit) for x in sorted(strict, key=lambda x: x["impact_ratio"])[:2]]
    said += [_lax(x, limit) for x in sorted(lax, key=lambda x: -x["ub"])[:2]]
    if len(strict[2:]) + len(lax[2:]):
        said.append(_more(len(strict[2:]) + len(lax[2:])))
    if above:
        many = "1 group has" if above == 1 else f"{above:,} groups have"
        said.append(
            f"{many} more than their share, by over the limit of {limit:g}: the rule does not report "
            "them, since it looks for low rates only."
        )
    return [*said, _IDENTITY] if strict or lax else said


def _strict(x: dict[str, Any], limit: float) -> str:
    return (
        f"{x['group']}: the impact ratio is {x['impact_ratio']:.3f}, below {RULE}, yet UB is "
        f"{number(x['ub'])}, within the limit of {limit:g}. The ratio compares its rate of "
        f"{percent(x['rate'])} with the {percent(x['best_rate'])} of {x['best']} alone, which "
        f"has {percent(x['best_share'])} of all rows; UB compares it with the overall rate "
        f"of {percent(x['overall_rate'])}, and {x['group']} is itself {percent(x['share'])} of "
        "all rows."
    )


def _lax(x: dict[str, Any], limit: float) -> str:
    return (
        f"{x['group']}: the impact ratio is {x['impact_ratio']:.3f}, at least {RULE}, yet UB is "
        f"{number(x['ub'])}, above the limit of {limit:g}. The ratio compares its rate of "
        f"{percent(x['rate'])} with the {percent(x['best_rate'])} of {x['best']}; UB compares it "
        f"with the overall rate of {percent(x['overall_rate'])}. The smaller the group, the closer "
        "that rate is to the rate of the others, and the larger UB is; here the group is "
        f"{percent(x['share'])} of all rows."
    )


def _more(n: int) -> str:
    return f"{counted(n, 'more group')} {'disagrees' if n == 1 else 'disagree'} in this way."
