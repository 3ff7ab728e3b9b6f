"""Names and numbers stay readable: in charts, on pages and in narrow terminals."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.plain import Grid, terminal_width, width_of, wrap
from equipoise.reports.bias.charts import heat_map, interval_chart
from equipoise.reports.bias.data import summarize
from equipoise.reports.bias.text import render_text
from equipoise.reports.charts.vega import to_svg
from equipoise.reports.frame.html import breakable, html_table
from reports.parsing import rendered
from reports.tables import table_of

TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=120)
ODD = [
    "<script>alert(1)</script>",
    "نساء من المدينة",
    "女性・東京都",
    "👩‍👩‍👧 family",
    "__proto__",
    "any",
]


def long_names(attributes=5):
    """Values of forty letters that differ only in the middle."""
    values = [f"Persons who live in district {i} of the town" for i in (1, 2)]
    cells = {}
    for code in range(2**attributes):
        key = tuple(values[code >> i & 1] for i in range(attributes))
        bias = 30 * code.bit_count()
        cells[*key, "granted with conditions"], cells[*key, "refused"] = 20 + bias, 200
    return table_of(cells, [f"attribute number {i}" for i in range(attributes)])


def many_values(count=60):
    names = [
        f"Municipality of Upper Saint Something-on-the-River {i:02} north" for i in range(count)
    ]
    return table_of(
        {(n, y): 20 + i * (y == "1") for i, n in enumerate(names) for y in "01"}, ["municipality"]
    )


def odd_names():
    cells = {
        (v, s, y): 30 + 5 * i for i, v in enumerate(ODD) for s in ("ذكر", "אישה") for y in "01"
    }
    return table_of(cells, ["group <b>", "sex"])


def one_group():
    return table_of({("f", "0"): 20, ("f", "1"): 10}, ["sex"])


TABLES = {"long": long_names, "many": many_values, "odd": odd_names, "one": one_group}


# --------------------------------------------------------------------------------- wrapping


@given(TEXTS, st.integers(2, 40))
def test_wrapping_loses_no_letter_and_breaks_only_words_longer_than_a_line(text, letters):
    lines = wrap(text, letters)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    words = text.split(" ")
    if max(map(width_of, words)) <= letters:
        assert [w for line in lines for w in line.split(" ")] == words
        assert all(width_of(line) <= letters for line in lines)


@given(st.lists(TEXTS, unique=True, min_size=1, max_size=8), st.integers(4, 40))
def test_no_two_names_read_the_same(texts, letters):
    from equipoise.reports.charts.names import WrappedNames, told_apart

    short = told_apart(texts, letters)
    assert len(set(short)) == len(texts)
    written = WrappedNames.wrapped(texts, letters, most=3)
    assert len({" ".join(lines) for lines in written}) == len(texts)
    assert written.height <= 3


def test_what_differs_stays_where_names_are_cut():
    from equipoise.reports.charts.names import told_apart

    names = ["x" * 60 + middle + "y" * 60 for middle in ("one", "two")]
    short = told_apart(names, 40)
    assert "one" in short[0]
    assert "two" in short[1]
    assert all(len(text) <= 44 for text in short)


# ----------------------------------------------------------------------------------- charts


def texts_drawn(svg):
    """The texts of a picture, each with its lines joined."""
    space = "{http://www.w3.org/2000/svg}"
    for node in ElementTree.fromstring(svg).iter(f"{space}text"):
        lines = [part.text or "" for part in node.iter(f"{space}tspan")] or [node.text or ""]
        yield " ".join(line for line in lines if line.strip("\u200b")).strip()


def packed(text):
    return re.sub(r"\s", "", text)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_every_group_is_written_in_full_and_once(name):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    found = summarize(TABLES[name]())["charts"]
    for matrix in found["matrices"]:
        drawn = [packed(t) for t in texts_drawn(to_svg(heat_map(matrix)))]
        for value in {*matrix["rows"], *matrix["columns"]} - {"*"}:
            assert packed(value) in drawn
    bars = found["ranking"]["bars"]
    if bars:
        svg = to_svg(interval_chart(found["ranking"]))
        drawn = [packed(t) for t in texts_drawn(svg)]
        assert all(drawn.count(packed(bar["name"])) == 1 for bar in bars)
        assert "<script" not in svg


def test_a_value_called_any_is_not_taken_for_all_values():
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    matrix = summarize(odd_names())["charts"]["matrices"][0]
    drawn = list(texts_drawn(to_svg(heat_map(matrix))))
    assert drawn.count("any") == 1 + len(matrix["labels"])  # of a row, and above each panel


def domain(spec):
    return spec["layer"][0]["encoding"]["x"]["scale"]["domain"]


def bar(name, ub, half=0.02):
    return {
        "name": name,
        "ub": ub,
        "low": ub - half,
        "high": ub + half,
        "text": f"{ub:+.3f}",
        "interval": "",
        "rows": "1 of 2",
        "side": "fewer" if ub > 0 else "more",
    }


def ranking(*ubs, limit=0.1):
    bars = [bar(f"g={i}", ub) for i, ub in enumerate(ubs)]
    return {"title": "UB", "limit": limit, "bars": bars}


def test_the_scale_of_ub_fits_the_numbers_and_holds_nought():
    pytest.importorskip("altair")
    pytest.importorskip("altair")
    low, high = domain(interval_chart(ranking(0.2, -0.15)))
    assert -0.2 < low < -0.15
    assert 0.2 < high < 0.3
    low, high = domain(interval_chart(ranking(0.5, 0.6)))
    assert low < -0.1
    assert 0.62 < high < 0.7


def test_a_ub_far_below_the_others_is_an_arrow_with_its_number():
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    spec = interval_chart(ranking(-147.6, 0.3, 0.2))
    low, _ = domain(spec)
    assert low > -4
    drawn = list(texts_drawn(to_svg(spec)))
    assert "1 of 2, UB -147.600" in drawn
    assert any("beyond the scale" in text for text in drawn)
    # Where most are as far below, all of them are on the scale.
    spec = interval_chart(ranking(-147.6, -140.0, 0.3))
    assert domain(spec)[0] < -147.6
    assert not any("beyond the scale" in text for text in texts_drawn(to_svg(spec)))


# ------------------------------------------------------------------------------------ pages


@given(TEXTS)
def test_a_cell_of_a_page_says_the_whole_text(text):
    import html

    shown = breakable(text)
    assert html.unescape(shown.replace("<wbr>", "")) == text
    assert all(len(html.unescape(p)) <= 28 for w in shown.split(" ") for p in w.split("<wbr>"))


def test_words_of_a_table_are_not_broken_and_wide_tables_scroll():
    page = rendered(long_names(), charts=False)
    style = page[page.index("<style>") : page.index("</style>")]
    rules = [rule for rule in style.split("}") if re.search(r"(^|[\s,])td\b", rule)]
    assert rules
    assert not any("anywhere" in rule or "break-all" in rule for rule in rules)
    assert re.search(r"\.wide \{[^}]*overflow-x: auto", style)
    printed = style[style.index("@media print") :]
    assert re.search(r"td[^}]*white-space: normal", printed)
    assert re.search(r"svg[^}]*max-width: 100%", printed)
    table = {"headers": ["group"], "rows": [["race=Asian-Pac-Islander"]], "numbers": []}
    assert "race=Asian-Pac-Islander" in html_table(table)


# --------------------------------------------------------------------------------- terminal


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("width", [40, 60, 100])
def test_text_fits_the_terminal(name, width):
    text = render_text(summarize(TABLES[name]()), width=width)
    broken = [
        line for line in text.split("\n") if width_of(line) > width and " " in line.strip("- ")
    ]
    assert not broken
    whole = packed(render_text(summarize(TABLES[name]())))
    assert ("left out for the width" in text) or packed(text.split("In short")[0])[:30] in whole


def test_a_table_wraps_texts_before_it_leaves_out_columns_and_says_so():
    rows = (("sex=Female, race=Native Hawaiian", "1,234", "0.5"),)
    grid = Grid(("group", "rows", "UB"), rows, frozenset({1, 2}))
    lines = grid.text(width=32).split("\n")
    assert max(map(width_of, lines)) <= 32
    assert lines[0].split() == ["group", "rows", "UB"]
    assert "Hawaiian" in lines[3]
    narrow = grid.text(width=14).split("\n")
    assert "left out for the width: rows, UB" in " ".join(narrow)
    assert grid.text() == grid.text(width=200)


def test_the_width_of_a_terminal_holds_for_every_table():
    grid = Grid(("a", "b"), (("many words in a cell that is long", "x " * 20),))
    before = terminal_width.set(30)
    try:
        assert max(map(width_of, grid.text().split("\n"))) <= 30
    finally:
        terminal_width.reset(before)
    assert max(map(width_of, grid.text().split("\n"))) > 60


def test_colours_stay_with_the_number_where_texts_wrap():
    summary = summarize(long_names(2))
    text = render_text(summary, colour=True, width=60)
    painted = re.findall(r"\x1b\[3[14]m([^\x1b]*)\x1b", text)
    ub = summary["table"]["marked"]
    shown = [
        r[ub]
        for r, s in zip(summary["table"]["rows"], summary["table"]["sides"], strict=True)
        if s in ("fewer", "more")
    ]
    assert painted == shown
