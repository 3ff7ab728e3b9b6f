"""The picture of a result: its charts below each other, as PNG and SVG."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.atomic import atomic_path
from equipoise.errors import InputError
from equipoise.reports.charts.vega import alt, stacked, to_png, to_svg
from equipoise.reports.pages import page_of

if TYPE_CHECKING:
    from equipoise.results import Drawable

ENDINGS = (".png", ".svg")


@dataclass(frozen=True, eq=False, repr=False)
class Picture:
    """The charts of a result; shows itself in a notebook.

    >>> import equipoise as eq
    >>> picture = eq.measure("adult", sensitive_features=["sex"], label="income").plot()
    >>> picture.to_png()[1:4], "sex=Female" in picture.to_svg()
    (b'PNG', True)
    """

    spec: Mapping[str, Any]
    """The Vega-Lite specification."""

    def to_svg(self) -> str:
        """The picture as SVG."""
        return to_svg(self.spec)

    def to_png(self, *, scale: float = 2.0) -> bytes:
        """The picture as PNG, with ``scale`` pixels for each unit of the drawing."""
        return to_png(self.spec, scale=scale)

    def to_altair(self) -> Any:
        """The picture as an Altair chart, to change it further."""
        return alt.Chart.from_dict(dict(self.spec))

    def save(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> None:
        """Write the picture to a file, atomically.

        Parameters
        ----------
        path
            File to write; its extension, ``.png`` or ``.svg``, sets the format.
        scale
            Number of pixels of a PNG for each unit of the drawing.
        """
        ending = Path(path).suffix.lower()
        if ending not in ENDINGS:
            raise InputError(
                f"a picture cannot be written as {path}; use the extension {' or '.join(ENDINGS)}."
            )
        drawn = self.to_svg().encode() if ending == ".svg" else self.to_png(scale=scale)
        with atomic_path(path) as temporary:
            temporary.write_bytes(drawn)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: show it in a notebook, or save('x.png') or save('x.svg')>"

    def _repr_svg_(self) -> str:
        return self.to_svg()


def draw_result(result: Drawable) -> Picture:
    """Draw the charts of a result below each other."""
    page = page_of(result)
    if page is None:
        raise InputError(f"a result of type {type(result).__name__} has no charts.")
    charts = page.plot(result)
    if not charts:
        raise InputError(
            f"there is nothing to draw: this {type(result).__name__} has no groups with numbers."
        )
    return Picture(stacked(charts))
