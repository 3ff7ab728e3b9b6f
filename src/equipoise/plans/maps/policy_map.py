"""The policy map: Uniform Bias of one group and label over two moves, and the cheapest way to 0."""

from __future__ import annotations

import functools
import textwrap
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError, PatternError
from equipoise.lattice import Group, format_value
from equipoise.measures.display import number
from equipoise.plain import Grid
from equipoise.plans.maps.effects import Effect, measure_effect, plan_of
from equipoise.plans.maps.geometry import Affine
from equipoise.plans.maps.landscape import Landscape, exact
from equipoise.plans.maps.limits import LARGEST, MapLimit, deletion_limits, kept_rows
from equipoise.plans.maps.search import Search, Surface
from equipoise.plans.maps.sentences import map_sentences, rows_text
from equipoise.plans.maps.window import QUADRANT, window
from equipoise.plans.moves import Move
from equipoise.results import Drawable, FlatTable
from equipoise.validate import a_number, at_least
from equipoise.values import Value, as_value, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.counts import Counts
    from equipoise.plans.plan import Plan

SCHEMA = "equipoise.map/1"
_WRAP: Any = {"width": 100, "break_long_words": False, "break_on_hyphens": False}


@dataclass(frozen=True, eq=False, kw_only=True)
class PolicyMap(Landscape, Drawable):
    """Uniform Bias of one group and label as a surface over two moves.

    Made by :func:`policy_map`; the numbers are those of a
    :class:`~equipoise.plans.maps.landscape.Landscape`.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> moves = {"x": "delete sex=m, outcome=hired", "y": "add sex=w, outcome=hired"}
    >>> map_ = eq.policy_map(counts, **moves, at=(5, 10))
    >>> plan = map_.scenario()
    >>> plan.additions, plan.deletions, round(plan.certificate.max_abs_ub_after, 3)
    (10, 5, 0.078)
    """

    @property
    def heading(self) -> str:
        """One-line title."""
        return f"Policy map: Uniform Bias of {self.group} for {self.label_pattern}"

    @functools.cached_property
    def sentences(self) -> tuple[str, ...]:
        """The map in sentences."""
        return map_sentences(self, self._measured_effect)

    @property
    def effect(self) -> Effect | None:
        """UB of every group at the chosen point; None if there is none in whole rows."""
        found = self._measured_effect
        return found if isinstance(found, Effect) else None

    @functools.cached_property
    def _measured_effect(self) -> Effect | str | None:
        """The effect at the chosen point, or the reason why it cannot be measured."""
        point = self.chosen
        if point is None or not (point.x or point.y):
            return None
        try:
            return measure_effect(self, point)
        except InputError as error:
            return str(error)

    def scenario(self, x: int | None = None, y: int | None = None) -> Plan:
        """The plan that makes the moves of a point, measured over all groups.

        Parameters
        ----------
        x, y
            Whole rows of each move. By default those of the chosen point, or else of the best one.
        """
        point = self.chosen
        if (x is None or y is None) and point is None:
            raise InputError(
                "no point of whole rows is inside all limits; name one by `x` and `y`."
            )
        rows = [
            _whole(name, getattr(point, name) if value is None else value)
            for name, value in (("x", x), ("y", y))
        ]
        return plan_of(self, *rows)

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

    def effects(self, top: int | None = None) -> Grid:
        """UB of every group before and after the moves of the chosen point, as a table for people."""
        rows = () if self.effect is None else self.effect.biases.telling(top)
        headers = ("group", self.counts.label.name, "UB now", "UB after", "change")
        lines = tuple(
            (
                str(row.group),
                format_value(row.label),
                *map(number, (row.before, *row.after, row.after[0] - row.before)),
            )
            for row in rows
        )
        return Grid(headers, lines, frozenset({2, 3, 4}))

    def text(self, top: int = 10) -> str:
        """The map as text: moves, limits, points, sentences, and what happens to other groups."""
        limits = ", ".join(limit.text for limit in self.limits) or "none except the existing rows"
        about = f"x: {self.x}\ny: {self.y}\nlimits: {limits}"
        said = "\n".join(
            textwrap.fill(s, initial_indent="- ", subsequent_indent="  ", **_WRAP)
            for s in self.sentences
        )
        parts = [self.heading, about, self.grid().text(), said]
        if self.effect is not None:
            left = max(len(self.effect.biases) - top, 0)
            title = f"All groups at x = {self.effect.point.x:,} and y = {self.effect.point.y:,}"
            more = f"\n… and {left:,} more" if left else ""
            parts.append(f"{title}\n\n{self.effects(top).text()}{more}")
        return "\n\n".join(parts)

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
            "effect": None if self.effect is None else self.effect.to_dict(),
            "sentences": list(self.sentences),
            "reading": self.counts.reading.to_dict(),
            "fingerprint": self.counts.fingerprint,
            "version": self.version,
            "time": self.time,
        }

    def __repr__(self) -> str:
        return self.text()

    def _grids(self) -> list[Grid]:
        return [self.grid(), *([] if self.effect is None else [self.effects()])]

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
    at: Sequence[int] | None = None,
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
    chosen = None if at is None else _chosen_point(at, deletions)
    width, height = window(search, caps, moves, (x_max, y_max))
    if chosen is not None:  # the point is on the map, unless the axes were given
        width = width if x_max is not None else max(width, 1.1 * chosen[0])
        height = height if y_max is not None else max(height, 1.1 * chosen[1])
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
        at=chosen,
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


def _chosen_point(at: Sequence[int], deletions: Sequence[MapLimit]) -> tuple[int, int]:
    if len(at) != 2:
        raise InputError(f"`at` takes the rows of both moves, as in (163, 3000), not {at!r}.")
    x, y = _whole("x", at[0]), _whole("y", at[1])
    if not x and not y:
        raise InputError("at x = 0 and y = 0 no row is moved; choose another point with `at`.")
    for limit in deletions:
        if not limit.half.holds(x, y):
            raise InputError(
                f"the point x = {x:,}, y = {y:,} deletes more rows than there are: {limit.text} must "
                "hold; choose a point inside it with `at`."
            )
    return x, y


def _whole(name: str, rows: Any) -> int:
    a_number(f"{name} of a point", rows, whole=True, at_least=0, at_most=LARGEST)
    return int(rows)


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
