"""The policy map: Uniform Bias of one group and label over two moves, and the cheapest way to 0."""

from __future__ import annotations

import functools
import textwrap
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError, PatternError
from equipoise.lattice import Group
from equipoise.measures.display import number
from equipoise.plain import Grid
from equipoise.plans.maps.geometry import Affine
from equipoise.plans.maps.landscape import Landscape, exact
from equipoise.plans.maps.limits import LARGEST, MapLimit, deletion_limits, kept_rows
from equipoise.plans.moves import Move
from equipoise.plans.maps.search import Search, Surface
from equipoise.plans.maps.sentences import map_sentences, rows_text
from equipoise.plans.maps.window import QUADRANT, window
from equipoise.results import Drawable, FlatTable
from equipoise.validate import a_number, at_least
from equipoise.values import Value, as_value, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.counts import Counts

SCHEMA = "equipoise.map/1"
_WRAP: Any = {"width": 100, "break_long_words": False, "break_on_hyphens": False}


@dataclass(frozen=True, eq=False, kw_only=True)
class PolicyMap(Landscape, Drawable):
    """Uniform Bias of one group and label as a surface over two moves.

    Made by :func:`policy_map`; the numbers are those of a
    :class:`~equipoise.plans.maps.landscape.Landscape`.
    """

    @property
    def heading(self) -> str:
        """One-line title."""
        return f"Policy map: Uniform Bias of {self.group} for {self.label_pattern}"

    @functools.cached_property
    def sentences(self) -> tuple[str, ...]:
        """The map in sentences."""
        return map_sentences(self)

    def grid(self) -> Grid:
        """The points of interest, as a table for people."""
        headers = ("point", "x", "y", "UB", "cost", "rows after", "inside limits")
        rows = tuple(
            (
                p.name,
                *map(rows_text, (p.x, p.y)),
                number(p.ub),
                *map(rows_text, (p.cost, p.n)),
                "yes" if p.inside else "no",
            )
            for p in self.points
        )
        return Grid(headers, rows, frozenset(range(1, 6)))

    def text(self) -> str:
        """The map as text: moves, limits, points and sentences."""
        limits = ", ".join(limit.text for limit in self.limits) or "none except the existing rows"
        about = f"x: {self.x}\ny: {self.y}\nlimits: {limits}"
        said = "\n".join(
            textwrap.fill(s, initial_indent="- ", subsequent_indent="  ", **_WRAP)
            for s in self.sentences
        )
        return f"{self.heading}\n\n{about}\n\n{self.grid().text()}\n\n{said}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON."""
        best = {"cheapest": self.cheapest, "nearest": self.nearest, "whole": self.whole}
        return {
            "schema": SCHEMA,
            "n": self.counts.n,
            "sensitive": [a.name for a in self.counts.sensitive],
            "label": self.counts.label.name,
            "group": {k: plain(v) for k, v in self.group.items()},
            "label_value": plain(self.label_value),
            "x": self.x.to_dict(),
            "y": self.y.to_dict(),
            "parameters": {k: getattr(self, k) for k in ("cost_x", "cost_y", "tolerance")},
            "limits": [limit.to_dict() for limit in (*self.limits, *self.built_in)],
            "window": {"x_max": self.x_max, "y_max": self.y_max},
            "ub": self.points[0].to_dict()["ub"],
            "zero_curve": {
                "kind": self.zero.name,
                **dict(zip("ABCDEF", map(float, self.zero.coefficients), strict=True)),
            },
            "feasible": [list(p) for p in self.feasible],
            "reached": self.reached,
            **{k: None if p is None else p.to_dict() for k, p in best.items()},
            "points": [p.to_dict() for p in self.points],
            "sentences": list(self.sentences),
            "reading": self.counts.reading.to_dict(),
            "fingerprint": self.counts.fingerprint,
            "version": self.version,
            "time": self.time,
        }

    def __repr__(self) -> str:
        return self.text()

    def _said(self) -> list[str]:
        return [self.heading, f"x: {self.x} · y: {self.y}", *self.sentences]

    def _table(self) -> FlatTable:
        names = ("name", "x", "y", "ub", "cost", "n", "inside")
        return names, [[getattr(point, name) for name in names] for point in self.points]


def policy_map(
    counts: Counts,
    *,
    x: str,
    y: str,
    group: Group | str | None = None,
    label_value: Any = None,
    limits: Sequence[str] = (),
    cost_x: float = 1.0,
    cost_y: float = 1.0,
    tolerance: float = 0.0,
    x_max: float | None = None,
    y_max: float | None = None,
) -> PolicyMap:
    """Map the Uniform Bias of a group and label over two moves; see :func:`equipoise.policy_map`."""
    if counts.weights is not None:
        raise InputError(
            "a policy map counts rows, but these have weights; count them without weights."
        )
    moves = Move.parse(x, counts), Move.parse(y, counts)
    whose, value = _chosen(counts, moves, group, label_value)
    costs = _cost("cost_x", cost_x), _cost("cost_y", cost_y)
    at_least("tolerance", tolerance, 0)
    if not tolerance <= LARGEST:
        raise InputError(f"`tolerance` must be a number such as 0.05, not {tolerance}.")
    surface = _surface(counts, moves, whose, value)
    forms = {"x": (0, 1, 0), "y": (0, 0, 1), "n": astuple(surface.n), "cost": (0, *costs)}
    listed = [limits] if isinstance(limits, str) else limits
    read = tuple(MapLimit.parse(text, forms) for text in listed)
    deletions = deletion_limits(*moves)
    kept = kept_rows(moves, surface, whose, Group({counts.label.name: value}))
    caps = tuple(limit.half for limit in (*deletions, *kept))
    search = Search(
        surface=surface,
        region=(*QUADRANT, *(limit.half for limit in read), *caps),
        cost_x=costs[0],
        cost_y=costs[1],
        tolerance=exact(tolerance),
    )
    width, height = window(search, caps, moves, (x_max, y_max))
    return PolicyMap(
        counts=counts,
        x=moves[0],
        y=moves[1],
        group=whose,
        label_value=value,
        limits=read,
        deletions=deletions,
        kept=kept,
        cost_x=float(cost_x),
        cost_y=float(cost_y),
        tolerance=float(tolerance),
        x_max=width,
        y_max=height,
        search=search,
    )


# ---------------------------------------------------------------------------- reading in


def _chosen(
    counts: Counts, moves: tuple[Move, Move], group: Group | str | None, label_value: Any
) -> tuple[Group, Value]:
    """The group and label to map: the requested ones, else those of y, else those of x."""
    label = counts.label.name
    patterns = [move.pattern for move in reversed(moves)]
    groups = [Group({k: v for k, v in p.items() if k != label}) for p in patterns]
    if group is None and label_value is None:
        full = [(g, p[label]) for g, p in zip(groups, patterns, strict=True) if g and label in p]
        group, label_value = full[0] if full else (None, None)
    elif group is None:
        group = next((g for g in groups if g), None)
    elif label_value is None:
        label_value = next((p[label] for p in patterns if label in p), None)
    if group is None or label_value is None:
        raise InputError(
            "the moves do not name both a group and a label value to map; name them, as in "
            "`group='sex=Female'` and `label_value='>50K'`."
        )
    whose, value = _group(counts, group), as_value(label_value)
    counts.label.code(value)
    return whose, value


def _group(counts: Counts, group: Group | str) -> Group:
    whose = Group.parse(group) if isinstance(group, str) else group
    names = [a.name for a in counts.sensitive]
    for name, value in whose.items():
        axis = counts.axis(name)
        if name not in names:
            raise PatternError(
                f"the group {whose} names {name!r}, which is not a sensitive attribute. The attributes are "
                f"{', '.join(names)}; choose the label with `label_value`."
            )
        axis.code(value)
    if not whose:
        raise PatternError("the group of all rows has no bias; name a group, as in sex=Female.")
    return whose


def _cost(name: str, cost: float) -> Fraction:
    a_number(name, cost)
    if not 1e-9 <= cost <= LARGEST:
        raise InputError(f"`{name}` must be above 0 and at most {LARGEST:.0e}, not {cost}.")
    return exact(cost)


def _surface(counts: Counts, moves: tuple[Move, Move], group: Group, value: Value) -> Surface:
    label = {counts.label.name: value}
    patterns = Group({**group, **label}), group, Group(label), Group()
    n_gy, n_g, n_y, n = (
        Affine(Fraction(counts.of(pattern)), *(move.sign * move.share(pattern) for move in moves))
        for pattern in patterns
    )
    return Surface(n_gy=n_gy, n_g=n_g, n_y=n_y, n=n)
