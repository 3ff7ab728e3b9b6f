"""Where charts are finished and become pictures.

Altair and vl-convert carry the JavaScript they need, so nothing is fetched from elsewhere.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.errors import MissingDependency

if TYPE_CHECKING:
    from types import ModuleType

    import altair

RED, BLUE, GREY = "#b2182b", "#2166ac", "#8a8f98"
"""Fewer rows than a group's share, more, and neither: told apart by colour-blind people too."""
INK = "#1c2430"
PAGE_WIDTH = 850


def to_png(spec: Mapping[str, Any], *, scale: float = 2.0) -> bytes:
    """Render a specification as a PNG picture."""
    png: bytes = _converter().vegalite_to_png(json.dumps(spec), scale=scale)
    return png


def to_svg(spec: Mapping[str, Any]) -> str:
    """Render a specification as an SVG picture, the same each time."""
    # The converter numbers clips and gradients through all that it draws.
    svg = _rendered(spec)
    numbers: dict[str, str] = {}
    return _NUMBERED.sub(lambda m: m[1] + numbers.setdefault(m[2], f"{m[3]}{len(numbers)}"), svg)


_NUMBERED = re.compile(r'(id="|url\(#)((clip|gradient_)\d+)(?=["\)])')


def _rendered(spec: Mapping[str, Any]) -> str:
    svg: str = _converter().vegalite_to_svg(json.dumps(spec))
    return svg


def to_altair(spec: Mapping[str, Any]) -> Any:
    """A specification as a chart of Altair."""
    return plotting().Chart.from_dict(dict(spec))


def stacked(charts: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Put charts below each other, each under its caption.

    Parameters
    ----------
    charts
        Captions and specifications.
    """
    parts: list[dict[str, Any]] = []
    for caption, spec in charts:
        part = {key: value for key, value in spec.items() if key not in ("$schema", "config")}
        lines = textwrap.wrap(caption, 100, break_long_words=False, break_on_hyphens=False)
        title: dict[str, Any] = {"text": lines, "anchor": "start", "frame": "group", "offset": 12}
        # A chart of its own inside, so that the caption takes no title away from what is drawn.
        parts.append({"vconcat": [part], "title": {**title, "fontWeight": "normal"}})
    own = dict.fromkeys(("color", "fill", "stroke", "shape"), "independent")
    first = charts[0][1]
    shared = {key: first[key] for key in ("$schema", "config") if key in first}
    look = {"padding": 12, "spacing": 34, "resolve": {"scale": own}}
    return {**shared, "vconcat": parts, **look}


def to_html_fragment(spec: Mapping[str, Any]) -> str:
    """Render a specification as SVG for a page: in the page's ink, with its own tooltips."""
    config = {**spec["config"], "background": None, **_inked("currentColor")}
    return _TITLED.sub(r"\1><title>\2</title></path>", _rendered({**spec, "config": config}))


_TITLED = re.compile(r'(<path aria-label="([^"<]*)"[^<>]*?)/?>(?:</path>)?')


def finished(chart: altair.TopLevelMixin) -> dict[str, Any]:
    """The specification of a chart, in the look all charts share."""
    spec: dict[str, Any] = chart.to_dict()
    font = "Arial, Liberation Sans, sans-serif"  # the same widths everywhere, so nothing is cut
    spec["config"] = {"background": "white", "font": font, "view": {"stroke": None}, **_inked(INK)}
    return spec


def _inked(ink: str) -> dict[str, Any]:
    words = {"labelColor": ink, "titleColor": ink, "labelFontSize": 12, "titleFontSize": 12}
    axis = {**words, "tickColor": GREY, "domainColor": GREY, "titleFontWeight": "normal"}
    legend = {**words, "titleFontWeight": "normal"}
    title = {"color": ink, "fontSize": 13}
    return {"axis": axis, "legend": legend, "title": title, "text": {"color": ink}}


def require_drawing() -> None:
    """Say what is missing for pictures, before anything is computed for them."""
    plotting()
    _converter()


def plotting() -> ModuleType:
    """Altair, loaded when something is drawn."""
    try:
        import altair
    except ImportError:
        raise MissingDependency("altair", extra="charts", purpose="drawing charts") from None
    return altair


def _converter() -> ModuleType:
    try:
        import vl_convert
    except ImportError:
        raise MissingDependency(
            "vl-convert-python", extra="charts", purpose="rendering charts"
        ) from None
    module: ModuleType = vl_convert
    return module
