"""Limits of a policy map: the requested ones, and those that always apply."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError
from equipoise.plans.maps.geometry import Affine, HalfPlane

if TYPE_CHECKING:
    from collections.abc import Mapping

    from equipoise.lattice import Group
    from equipoise.plans.maps.search import Surface
    from equipoise.plans.moves import Move

LARGEST = 10**15
"""Largest number in limits and costs; floats represent whole numbers up to it exactly."""

_NUMBER = r"(?:\d[\d_,]{0,24}(?:\.\d{0,15})?|\.\d{1,15})(?:e[+-]?\d{1,2})?"
_TERM = re.compile(
    rf"\s*(?P<sign>[+-])?\s*(?:(?P<factor>{_NUMBER})\s*\*?\s*)?(?P<name>[a-z]+)?\s*", re.IGNORECASE
)
_SIGNS = re.compile(r"<=|>=|≤|≥|=<|=>|==|<|>|=")


@dataclass(frozen=True)
class MapLimit:
    """A linear limit, and the half-plane of the points that satisfy it."""

    text: str
    half: HalfPlane

    @classmethod
    def parse(cls, text: str, forms: Mapping[str, tuple[Any, Any, Any]]) -> MapLimit:
        """Read a limit, such as ``2*x + y <= 9000``.

        ``forms`` are the names that it may have, each as a constant and coefficients of x and y.
        """
        written = " ".join(str(text).split())
        signs = _SIGNS.findall(written)
        if len(signs) != 1 or signs[0] not in ("<=", ">=", "≤", "≥"):
            raise _unread(text, forms)
        left, right = (_sum(side, text, forms) for side in _SIGNS.split(written))
        if signs[0] in (">=", "≥"):
            left, right = right, left
        a, b = left[1] - right[1], left[2] - right[2]
        return cls(written, HalfPlane(a, b, right[0] - left[0]))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        half = self.half
        return {"text": self.text, "a": float(half.a), "b": float(half.b), "c": float(half.c)}


def _sum(side: str, text: str, forms: Mapping[str, tuple[Any, Any, Any]]) -> list[Fraction]:
    total, position = [Fraction(0)] * 3, 0
    while position < len(side) or not position:
        term = _TERM.match(side, position)
        name = (term["name"] or "").lower() if term else ""
        if not term or not (term["factor"] or name) or (position and not term["sign"]):
            raise _unread(text, forms)
        if name and name not in forms:
            raise _unread(text, forms)
        factor = Fraction(re.sub("[_,]", "", term["factor"])) if term["factor"] else Fraction(1)
        if factor > LARGEST:
            raise InputError(
                f"the limit {text!r} has a number above {LARGEST:.0e}; use a smaller one."
            )
        factor = -factor if term["sign"] == "-" else factor
        form = forms[name] if name else (1, 0, 0)
        total = [t + factor * Fraction(f) for t, f in zip(total, form, strict=True)]
        position = term.end()
    return total


def _unread(text: str, forms: Mapping[str, Any]) -> InputError:
    names = ", ".join(forms)
    return InputError(
        f"the limit {text!r} cannot be read; write sums of {names} and numbers on both sides of <= or "
        ">=, as in x<=4500, n>=30000 or 2*x + y <= 9000."
    )


def deletion_limits(x: Move, y: Move) -> tuple[MapLimit, ...]:
    """Limit deletions to the existing rows, for each move and for both together."""
    caps = []
    for move, name, a, b in ((x, "x", 1, 0), (y, "y", 0, 1)):
        if move.kind == "delete":
            half = HalfPlane(Fraction(a), Fraction(b), Fraction(move.rows))
            caps.append(MapLimit(f"{name}<={move.rows}", half))
    if len(caps) == 2 and x.overlaps(y):
        half = HalfPlane(Fraction(1, x.rows), Fraction(1, y.rows), Fraction(1))
        caps.append(MapLimit(f"x/{x.rows} + y/{y.rows} <= 1", half))
    return tuple(caps)


def kept_rows(
    moves: tuple[Move, Move], rows: Surface, group: Group, label: Group
) -> tuple[MapLimit, ...]:
    """Keep at least one row of the group, the label and their complements."""
    nothing = Affine(Fraction(0), Fraction(0), Fraction(0))
    sides = (
        (f"at least 1 row of {group}", rows.n_g, nothing),
        (f"at least 1 row of {label}", rows.n_y, nothing),
        (f"at least 1 row not of {group}", rows.n, rows.n_g),
        (f"at least 1 row not of {label}", rows.n, rows.n_y),
    )
    found = []
    for text, all_rows, part in sides:
        const, x, y = all_rows.const - part.const, all_rows.x - part.x, all_rows.y - part.y
        least = const + sum(
            min(c, Fraction(0)) * m.rows for c, m in zip((x, y), moves, strict=True)
        )
        if least < 1 and (const >= 1 or x > 0 or y > 0 or not part.const):
            found.append(MapLimit(text, HalfPlane(-x, -y, const - 1)))
    return tuple(found)
