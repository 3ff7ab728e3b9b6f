"""Altair, loaded when something is drawn, and how its charts become pictures.

Altair and vl-convert bring the JavaScript they need, so nothing is fetched from elsewhere.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from equipoise.errors import MissingDependency

if TYPE_CHECKING:
    from types import ModuleType

    import altair

Spec: TypeAlias = dict[str, Any]
"""A Vega-Lite specification."""
Layer: TypeAlias = Any
"""A chart of Altair with its encoding, whose type Altair leaves open."""
RED, BLUE, GREY = "#b2182b", "#2166ac", "#8a8f98"
"""Fewer rows than a group's share, more, and neither; colour-blind people can tell them apart."""
INK = "#1c2430"
PAGE_WIDTH = 850
"""Pixels that a chart may take with the names beside it, so that a page need not scroll."""


class _Altair:
    def __getattr__(self, name: str) -> Any:
        # Tools that inspect a module, such as doctest, look for such names; they draw nothing.
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            import altair
        except ImportError:
            raise MissingDependency("altair", extra="charts", purpose="drawing charts") from None
        return getattr(altair, name)


# Altair takes long to load, and reports without charts do not need it.
if TYPE_CHECKING:
    alt = altair
else:
    alt = _Altair()


class _About(Mapping[str, Any]):
    """Channels of the field ``about``, which Altair would take much longer to make of texts."""

    def __getitem__(self, name: str) -> Any:
        return {"description": alt.Description, "tooltip": alt.Tooltip}[name]("about:N")

    def __iter__(self) -> Iterator[str]:
        return iter(("description", "tooltip"))

    def __len__(self) -> int:
        return 2


ABOUT: Mapping[str, Any] = _About()
"""Channels that describe a mark, for screen readers and for tooltips."""


def require_drawing() -> None:
    """Raise an error if charts cannot be drawn, before anything is computed for them."""
    _ = alt.Chart
    _converter()


def _converter() -> ModuleType:
    try:
        import vl_convert
    except ImportError:
        raise MissingDependency(
            "vl-convert-python", extra="charts", purpose="rendering charts"
        ) from None
    module: ModuleType = vl_convert
    return module


# ----------------------------------------------------------------------------- drawing


class _Items(str):
    """A name for items, which Altair would copy and validate again and again."""

    __slots__ = ("items",)
    items: Sequence[Mapping[str, Any]]


def marks(items: Sequence[Mapping[str, Any]]) -> alt.Chart:
    """A chart of items that are part of its specification, still without marks."""
    name = _Items(f"items-{id(items)}")
    name.items = items
    return alt.Chart(alt.NamedData(name=name))


def finished(chart: alt.TopLevelMixin) -> Spec:
    """The specification of a chart, in the style that all charts share."""
    # Validation takes half of the time; the tests validate every kind of chart instead.
    spec: Spec = chart.to_dict(validate=False)
    _put_items(spec)
    # These fonts have the same widths on every machine, so that no text is cut off.
    font = "Arial, Liberation Sans, sans-serif"
    spec["config"] = {"background": "white", "font": font, "view": {"stroke": None}, **_inked(INK)}
    return spec


def _put_items(part: Any) -> None:
    """Put items in the place of their names, in all parts of a specification."""
    if isinstance(part, list):
        for each in part:
            _put_items(each)
    elif isinstance(part, dict):
        name = part.get("name")
        if isinstance(name, _Items):
            del part["name"]
            part["values"] = name.items
            return
        for each in part.values():
            _put_items(each)


def _inked(ink: str) -> dict[str, Any]:
    words = {"labelColor": ink, "titleColor": ink, "labelFontSize": 12, "titleFontSize": 12}
    axis = {**words, "tickColor": GREY, "domainColor": GREY, "titleFontWeight": "normal"}
    legend = {**words, "titleFontWeight": "normal"}
    title = {"color": ink, "fontSize": 13}
    return {"axis": axis, "legend": legend, "title": title, "text": {"color": ink}}


@dataclass(frozen=True)
class CaptionedChart:
    """A chart with its caption; it is drawn when a page or a picture shows it."""

    caption: str
    draw: Callable[[Mapping[str, Any]], Spec]
    data: Mapping[str, Any]
    narrow: Mapping[str, Any] | None = None
    """What is drawn on the screen of a phone, if that is not the same."""

    def html(self) -> str:
        """The chart under its caption, for a page."""
        picture = to_html_fragment(self.draw(self.data))
        if self.narrow is not None:
            small = to_html_fragment(self.draw(self.narrow))
            picture = f'<div class="broad">{picture}</div><div class="narrow">{small}</div>'
        return f"<figure><figcaption>{escape(self.caption)}</figcaption>{picture}</figure>"


def stacked(charts: Sequence[CaptionedChart]) -> Spec:
    """One specification with all charts below each other, each under its caption."""
    specs = [chart.draw(chart.data) for chart in charts]
    parts: list[dict[str, Any]] = []
    for chart, spec in zip(charts, specs, strict=True):
        part = {key: value for key, value in spec.items() if key not in ("$schema", "config")}
        lines = textwrap.wrap(chart.caption, 100, break_long_words=False, break_on_hyphens=False)
        title: dict[str, Any] = {"text": lines, "anchor": "start", "frame": "group", "offset": 12}
        # Nested, so that the caption does not replace a title of the chart itself.
        parts.append({"vconcat": [part], "title": {**title, "fontWeight": "normal"}})
    # Charts use the same colours for different things, so none may share a scale with another.
    own = dict.fromkeys(("color", "fill", "stroke", "shape"), "independent")
    shared = {key: specs[0][key] for key in ("$schema", "config")}
    look = {"padding": 12, "spacing": 34, "resolve": {"scale": own}}
    return {**shared, "vconcat": parts, **look}


# ---------------------------------------------------------------------------- pictures


def to_png(spec: Mapping[str, Any], *, scale: float = 2.0) -> bytes:
    """Render a specification as a PNG picture."""
    png: bytes = _converter().vegalite_to_png(json.dumps(spec), scale=scale)
    return png


def to_svg(spec: Mapping[str, Any]) -> str:
    """Render a specification as an SVG picture, the same each time."""
    # The converter numbers clips and gradients through everything that a process draws.
    numbers: dict[str, str] = {}
    return _NUMBERED.sub(
        lambda m: m[1] + numbers.setdefault(m[2], f"{m[3]}{len(numbers)}"), _rendered(spec)
    )


_NUMBERED = re.compile(r'(id="|url\(#)((clip|gradient_)\d+)(?=["\)])')


def to_html_fragment(spec: Mapping[str, Any]) -> str:
    """Render a specification as SVG for a page: in the page's text colour, with tooltips."""
    # currentColor makes texts follow the light or dark scheme that the reader has chosen.
    config = {**spec["config"], "background": None, **_inked("currentColor")}
    # The page runs no script, so tooltips are titles; the label of a mark is escaped already.
    return _LABELLED.sub(r"\1><title>\2</title></path>", _rendered({**spec, "config": config}))


_LABELLED = re.compile(r'(<path aria-label="([^"<]*)"[^<>]*?)/?>(?:</path>)?')


def javascript() -> str:
    """The JavaScript that draws specifications in a browser: Vega, Vega-Lite and Vega-Embed."""
    text: str = _converter().javascript_bundle()
    return text


def _rendered(spec: Mapping[str, Any]) -> str:
    svg: str = _converter().vegalite_to_svg(json.dumps(spec))
    return svg
