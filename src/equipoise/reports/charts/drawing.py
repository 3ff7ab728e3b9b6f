"""Where charts are finished and become pictures.

Altair and vl-convert carry the JavaScript they need, so nothing is fetched from elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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
    """Render a specification as an SVG picture."""
    svg: str = _converter().vegalite_to_svg(json.dumps(spec))
    return svg


def to_html_fragment(spec: Mapping[str, Any]) -> str:
    """Render a specification as SVG for a page: in the page's ink, with its own tooltips."""
    config = {**spec["config"], "background": None, **_inked("currentColor")}
    return _TITLED.sub(r"\1><title>\2</title></path>", to_svg({**spec, "config": config}))


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
