from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.errors import InputError
from equipoise.reports.bias.data import summarize
from equipoise.reports.bias.markdown import render_markdown
from equipoise.reports.bias.text import render_csv, render_text
from equipoise.reports.frame.html import Section, render_page
from reports.parsing import Page, rendered
from reports.tables import NASTY, TABLES, binned, crossed, hiring, nasty, table_of, three

GOLDEN = Path(__file__).parent / "golden"
ANSI = re.compile(r"\x1b\[\d*m")


@pytest.mark.parametrize("name", ["hiring", "crossed", "favourable", "one-label", "no-uncertainty"])
def test_text_is_as_it_was(name):
    text = render_text(summarize(TABLES[name](), source=f"{name}.csv", top=8), width=100)
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("EQUIPOISE_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TABLES)
def test_the_summary_is_plain_data(name):
    summary = summarize(TABLES[name](), source="x.csv")
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


@pytest.mark.parametrize("name", TABLES)
def test_every_renderer_says_every_sentence(name):
    summary = summarize(TABLES[name]())
    text = " ".join(render_text(summary).split())
    markdown = render_markdown(summary).replace("\\", "")
    page = rendered(TABLES[name](), charts=False)
    assert all(topic["title"] in page for topic in summary["topics"])
    assert markdown.count("\n- ") >= len(summary["sentences"])
    if not name.startswith("nasty"):
        for sentence in summary["sentences"]:
            assert sentence in text
            assert sentence in markdown


def test_rows_are_shown_worst_first_or_as_they_were_sorted():
    assert summarize(hiring())["rows"][0]["pattern"] == "sex=w"
    by_size = summarize(three().sort("n"), top=5)
    sizes = [row["n_group"] for row in by_size["rows"]]
    assert len(sizes) == 5
    assert sizes == sorted(sizes, reverse=True)
    assert by_size["table"]["total"] == len(three())


def test_bins_are_printed_with_their_edges():
    facts = dict(summarize(binned())["facts"])
    assert facts["bins of age"] == "<25  |  25 to <45  |  >=45"
    assert facts["missing values"] == "age 8"


def test_provenance_has_all_that_is_needed_to_repeat():
    made = dict(summarize(hiring(limit=0.25))["provenance"])
    assert "limit=0.25" in made["parameters"]
    assert made["fingerprint of the counts"] == f"sha256:{hiring().counts.fingerprint}"
    assert made["made by"].startswith("equipoise ")
    assert made["time"] == pytest.approx(made["time"])


# --------------------------------------------------------------------------------- text


@pytest.mark.parametrize("name", TABLES)
def test_colour_changes_nothing_but_colour(name):
    summary = summarize(TABLES[name]())
    assert ANSI.sub("", render_text(summary, colour=True)) == render_text(summary)


def test_colour_marks_the_side_of_the_limit():
    text = render_text(summarize(hiring(limit=0.05)), colour=True)
    assert "\x1b[31m+0.200\x1b[0m" in text
    assert "\x1b[34m−0.100\x1b[0m" in text
    assert "+0.033" in text
    assert "m+0.033" not in text
    assert "\x1b" not in render_text(summarize(hiring()))


def test_a_narrow_terminal_loses_columns_and_is_told_which():
    wide, narrow = (render_text(summarize(hiring()), width=w) for w in (200, 70))
    assert "left out for the width" not in wide
    assert "left out for the width: overall, rate, missing rows" in narrow
    assert max(map(len, narrow.splitlines())) <= 70


def test_no_value_can_steer_a_terminal():
    table = table_of({("\x1b[31mred", "y\u200b\x07"): 9, ("b", "n"): 9}, ["s\x1b"])
    text = render_text(summarize(table))
    assert all(c == "\n" or c.isprintable() for c in text)


def test_csv_holds_every_row_in_full():
    table = three(measures=("lift",)).sort("n")
    lines = list(csv.DictReader(io.StringIO(render_csv(table))))
    assert len(lines) == len(table)
    for line, row in zip(lines, table, strict=True):
        assert line["group"] == str(row.group)
        assert float(line["ub"]) == row.ub
        assert float(line["lift"]) == row.measures["lift"]


def test_csv_keeps_values_apart_that_look_alike():
    lines = list(csv.DictReader(io.StringIO(render_csv(nasty()))))
    assert {line["<i>name</i>"] for line in lines} == {NASTY, "*", "<missing>", ""}


# ----------------------------------------------------------------------------- Markdown


def test_markdown_shows_values_and_runs_none():
    text = render_markdown(summarize(nasty()))
    assert not re.search(r"(?<!\\)<", text)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


# --------------------------------------------------------------------------------- page


@pytest.mark.parametrize("name", TABLES)
def test_the_page_fetches_nothing_and_runs_nothing(name):
    text = rendered(TABLES[name](), charts=False)
    page = Page(text)
    assert page.fetched == []
    assert "script" not in page.tags
    assert "@import" not in text
    assert "url(" not in text


def test_the_page_escapes_what_comes_from_the_data():
    summary = summarize(nasty(), top=50)
    text = rendered(nasty(), charts=False, source=NASTY)
    assert NASTY not in text
    shown = [cell for row in summary["table"]["rows"] for cell in row]
    assert Page(text).cells[: len(shown)] == shown


def test_the_page_marks_the_side_of_the_limit():
    text = rendered(hiring(limit=0.05), charts=False)
    assert '<td class="number fewer">+0.200</td>' in text
    assert '<td class="number more">−0.100</td>' in text
    assert '<td class="number inside">+0.033</td>' in text


def test_sections_stand_before_the_provenance_and_empty_ones_are_left_out():
    sections = [Section("plan", "A & B", ["<p>rows</p>"]), Section("none", "None", [])]
    facts = [["made by", "equipoise"], ["time", "now"]]
    text = render_page(title="T", source="s", figures=[], sections=sections, facts=facts)
    assert Page(text).ids == ["plan", "provenance"]
    assert '<section id="plan"><h2>A &amp; B</h2><p>rows</p></section>' in text
    assert text.index('id="plan"') < text.index('id="provenance"')


def test_without_the_chart_libraries_the_page_says_once_how_to_get_them():
    text = rendered(three(), charts=False)
    assert "<svg" not in text
    assert text.count("pip install &#x27;equipoise[charts]&#x27;") == 1
    assert "charts" not in Page(text).ids
    text = rendered(hiring(), charts=False)
    assert "+0.200" in text


def test_a_report_goes_nowhere_when_the_folder_is_not_there(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        eq.report(hiring(), tmp_path / "no" / "page.html")


# --------------------------------------------------------------------------- properties

VALUES = st.text(max_size=6) | st.none()


@pytest.mark.slow
@given(
    st.dictionaries(
        st.tuples(VALUES, VALUES, VALUES), st.integers(0, 200), min_size=1, max_size=12
    ),
    st.booleans(),
)
def test_any_counts_give_a_report(cells, favoured):
    assume(any(n and label is not None for (*_, label), n in cells.items()))
    table = table_of(cells, ["a", "b"])
    labels = [v for v in table.counts.label.values if isinstance(v, str)]
    if favoured and labels:
        table = table_of(cells, ["a", "b"], favourable=labels[0])
    summary = summarize(table)
    json.dumps(summary, allow_nan=False)
    assert "script" not in Page(rendered(table, charts=False)).tags
    assert ANSI.sub("", render_text(summary, colour=True, width=80)) == render_text(
        summary, width=80
    )
    assert len(summary["table"]["rows"]) == min(20, len(table))


def test_a_crossed_table_tells_its_hidden_groups_as_data():
    hidden = summarize(crossed())["hidden"]
    assert {row["pattern"] for row in hidden} >= {"first=a, second=y", "first=b, second=x"}
