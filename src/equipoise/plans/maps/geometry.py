"""Lines, half-planes and conics of a policy map, with exact coefficients."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Point: TypeAlias = tuple[float, float]
Exact: TypeAlias = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Affine:
    """A number of rows after the moves: ``const + x·X + y·Y``.

    >>> Affine(Fraction(5), Fraction(1), Fraction(-2))(3, 1)
    Fraction(6, 1)
    """

    const: Fraction
    x: Fraction
    y: Fraction

    def __call__(self, x: float | Fraction, y: float | Fraction) -> Fraction:
        """The number at a point, without rounding."""
        return self.const + self.x * Fraction(x) + self.y * Fraction(y)


@dataclass(frozen=True)
class HalfPlane:
    """The points with ``a·x + b·y ≤ c``.

    >>> HalfPlane(Fraction(1), Fraction(1), Fraction(7)).holds(3, 4)
    True
    """

    a: Fraction
    b: Fraction
    c: Fraction

    def excess(self, x: float | Fraction, y: float | Fraction) -> Fraction:
        """How far a point is outside; zero or negative inside."""
        return self.a * Fraction(x) + self.b * Fraction(y) - self.c

    def holds(self, x: float | Fraction, y: float | Fraction) -> bool:
        """Whether a point is inside, without rounding."""
        return self.excess(x, y) <= 0

    def nearly_holds(self, x: float, y: float) -> bool:
        """Whether a point is inside, up to the rounding of its coordinates to floats."""
        scale = abs(self.a * Fraction(x)) + abs(self.b * Fraction(y)) + abs(self.c)
        return self.excess(x, y) <= (scale + 1000) / 10**12

    @property
    def is_line(self) -> bool:
        """Whether it has a boundary line; otherwise all points are inside, or none."""
        return bool(self.a or self.b)

    def meet(self, other: HalfPlane) -> Exact | None:
        """The point where the two boundary lines cross, if they do.

        >>> HalfPlane(1, 0, 3).meet(HalfPlane(1, 1, 7))
        (Fraction(3, 1), Fraction(4, 1))
        """
        det = Fraction(self.a * other.b - other.a * self.b)
        if not det:
            return None
        x = (self.c * other.b - other.c * self.b) / det
        return x, (self.a * other.c - other.a * self.c) / det


@dataclass(frozen=True)
class Conic:
    """The points with ``A·x² + B·xy + C·y² + D·x + E·y + F = 0``.

    >>> circle = Conic(*map(Fraction, (1, 0, 1, 0, 0, -25)))
    >>> circle.name, circle.meet(HalfPlane(Fraction(1), Fraction(0), Fraction(3)))
    ('ellipse', ((3.0, 4.0), (3.0, -4.0)))
    """

    A: Fraction
    B: Fraction
    C: Fraction
    D: Fraction
    E: Fraction
    F: Fraction

    @classmethod
    def product(cls, p: Affine, q: Affine) -> Conic:
        """The points where one of two numbers of rows is 0."""
        return cls(
            A=p.x * q.x,
            B=p.x * q.y + p.y * q.x,
            C=p.y * q.y,
            D=p.const * q.x + p.x * q.const,
            E=p.const * q.y + p.y * q.const,
            F=p.const * q.const,
        )

    def less(self, other: Conic, factor: Fraction = Fraction(1)) -> Conic:
        """Subtract ``factor`` times another conic."""
        pairs = zip(self.coefficients, other.coefficients, strict=True)
        return Conic(*(mine - factor * theirs for mine, theirs in pairs))

    @property
    def coefficients(self) -> tuple[Fraction, ...]:
        """A to F."""
        return astuple(self)

    def at(self, x: Fraction, y: Fraction) -> Fraction:
        """The value of the polynomial at a point."""
        square = self.A * x * x + self.B * x * y + self.C * y * y
        return square + self.D * x + self.E * y + self.F

    @functools.cached_property
    def name(self) -> str:
        """Kind of the curve."""
        A, B, C, D, E, F = self.coefficients
        if not (A or B or C):
            return "line" if D or E else ("none" if F else "everywhere")
        bend = B * B - 4 * A * C
        if 4 * A * C * F + B * D * E - A * E * E - C * D * D - F * B * B:
            return "hyperbola" if bend > 0 else ("ellipse" if bend < 0 else "parabola")
        return "two lines" if bend > 0 else ("point" if bend < 0 else "parallel lines")

    def meet(self, line: HalfPlane) -> tuple[Point, ...]:
        """The points where a half-plane's boundary crosses the curve, at most two.

        There are none if the whole line is on the curve.
        """
        length = line.a * line.a + line.b * line.b
        if not length:
            return ()
        px, py = line.a * line.c / length, line.b * line.c / length
        dx, dy = -line.b / length, line.a / length
        bend = self.A * dx * dx + self.B * dx * dy + self.C * dy * dy
        slope = (2 * self.A * px + self.B * py + self.D) * dx
        slope += (self.B * px + 2 * self.C * py + self.E) * dy
        steps = roots(bend, slope, self.at(px, py))
        # Added exactly, so that a point of the line x = 4500 has that x.
        return tuple(
            (float(px + Fraction(t) * dx), float(py + Fraction(t) * dy)) for t in reversed(steps)
        )

    def touches(self, cost_x: Fraction, cost_y: Fraction) -> tuple[Point, ...]:
        """The points of the curve where ``cost_x·x + cost_y·y`` is stationary along it.

        >>> circle = Conic(*map(Fraction, (1, 0, 1, 0, 0, -25)))
        >>> circle.touches(Fraction(3), Fraction(4))
        ((3.0, 4.0), (-3.0, -4.0))
        """
        a = 2 * self.A * cost_y - self.B * cost_x
        b = self.B * cost_y - 2 * self.C * cost_x
        return self.meet(HalfPlane(a, b, self.E * cost_x - self.D * cost_y))

    def turns(self) -> tuple[float, ...]:
        """The x at which the curve turns back, where its two values of y coincide."""
        A, B, C, D, E, F = self.coefficients
        return roots(B * B - 4 * A * C, 2 * (B * E - 2 * C * D), E * E - 4 * C * F)


def roots(a: Fraction, b: Fraction, c: Fraction) -> tuple[float, ...]:
    """Solve ``a·t² + b·t + c = 0``: the real roots in ascending order; none if all are 0.

    >>> roots(Fraction(1), Fraction(-3), Fraction(2)), roots(Fraction(0), Fraction(2), Fraction(1))
    ((1.0, 2.0), (-0.5,))
    """
    if not a:
        return (float(-c / b),) if b else ()
    inside = b * b - 4 * a * c
    if inside < 0:
        return ()
    # The sum of numbers of one sign loses no digits; the other root follows from the product.
    q = (Fraction(math.sqrt(inside)) if inside else Fraction(0)) + abs(b)
    q = -q / 2 if b >= 0 else q / 2
    found = {float(q / a), float(c / q) if q else 0.0}
    return tuple(sorted(found))


def corners(region: Sequence[HalfPlane]) -> Iterator[Exact]:
    """The corners of a region: where two of its lines cross inside it.

    >>> quadrant = [HalfPlane(Fraction(-1), Fraction(0), Fraction(0))]
    >>> quadrant.append(HalfPlane(Fraction(0), Fraction(-1), Fraction(0)))
    >>> [tuple(map(int, corner)) for corner in corners(quadrant)]
    [(0, 0)]
    """
    for one, two in itertools.combinations([h for h in region if h.is_line], 2):
        point = one.meet(two)
        if point is not None and all(h.holds(*point) for h in region):
            yield point


def rays(region: Sequence[HalfPlane]) -> Iterator[Exact]:
    """The directions along the axes and boundary lines in which the region is unbounded."""
    ways = [(Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))]
    ways += [way for h in region for way in ((h.b, -h.a), (-h.b, h.a)) if h.is_line]
    for dx, dy in ways:
        if all(h.a * dx + h.b * dy <= 0 for h in region):
            yield dx, dy


def clip(polygon: Iterable[Exact], region: Iterable[HalfPlane]) -> list[Exact]:
    """Clip a convex polygon to the intersection of half-planes.

    >>> square = [(Fraction(x), Fraction(y)) for x, y in ((0, 0), (2, 0), (2, 2), (0, 2))]
    >>> [
    ...     tuple(map(int, p))
    ...     for p in clip(square, [HalfPlane(Fraction(1), Fraction(1), Fraction(2))])
    ... ]
    [(0, 0), (2, 0), (0, 2)]
    """
    kept = list(polygon)
    for half in region:
        found: list[Exact] = []
        for (x0, y0), (x1, y1) in itertools.pairwise([*kept, *kept[:1]]):
            before, after = half.excess(x0, y0), half.excess(x1, y1)
            if before <= 0:
                found.append((x0, y0))
            if before * after < 0:
                t = before / (before - after)
                found.append((x0 + t * (x1 - x0), y0 + t * (y1 - y0)))
        kept = list(dict.fromkeys(found))
    return kept
