"""Pages as a browser would read them."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from unittest import mock
from xml.etree import ElementTree

from equipoise.reports.charts.vega import alt, to_html_fragment, to_svg
from equipoise.reports.pages import page_of, render_result

VOID = frozenset({"meta", "br", "link", "img", "hr", "wbr"})
FETCHED = frozenset({"src", "href", "xlink:href", "srcset", "data"})


class Page(HTMLParser):
    """Sections, words, tags, cells of tables and what would be fetched; tags must be nested."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.words, self.fetched, self.tags, self.cells = [], "", [], set(), []
        self.open = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.ids += [dict(attrs)["id"]] if tag == "section" else []
        self.fetched += [v for k, v in attrs if k in FETCHED and not v.startswith("#")]
        self.open += [] if tag in VOID else [tag]
        self.cells += [""] if tag == "td" else []

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def rendered(result, *, charts=True, **options):
    """The page of a result; without charts as if the library that draws them were missing."""
    own = page_of(result)
    render = render_result if own is None else own.render
    if charts:
        return render(result, **options)
    with mock.patch.dict(sys.modules, {"altair": None}):
        return render(result, **options)


def read(result, **options):
    """The page of a result, as text and as a browser would read it; it fetches nothing."""
    text = rendered(result, **options)
    page = Page(text)
    assert page.fetched == []
    assert not re.search(r"url\((?!#)|@import|<script|<link", text)
    assert not re.search(r"(?i)\b(fair|unbiased|compliant)\b", page.words)
    return text, page


def draw_and_check(spec):
    """A specification is plain data, valid, and drawn without fetching anything."""
    json.dumps(spec, allow_nan=False)
    alt.Chart.from_dict(_without_data(spec), validate=True)
    ElementTree.fromstring(to_svg(spec))
    assert not re.search(r'(?:href|src)="|url\((?!#)', to_html_fragment(spec))


def _without_data(spec):
    """Thousands of items, each any object to the schema, would take most of the time."""
    if isinstance(spec, list):
        return [_without_data(part) for part in spec]
    if not isinstance(spec, dict):
        return spec
    return {k: {"values": []} if k == "data" else _without_data(v) for k, v in spec.items()}
