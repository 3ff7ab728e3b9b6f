from __future__ import annotations

import re

import pytest

from equipoise.counts import Counts
from equipoise.measures.registry import measures
from equipoise.measures.request import SHOWN_ANYWAY
from equipoise.measures.sentences import MISSING_ROWS, hints, row_sentence, topics
from equipoise.reports.bias.data import summarize
from equipoise.reports.bias.four_fifths import four_fifths
from reports.tables import TABLES, crossed, hiring, suppressed, table_of, three, weighted

JUDGEMENT = re.compile(r"(?i)\b(?:un)?fair|discriminat|complian|\bunbiased\b|violat")


def said(table):
    return {topic["id"]: " ".join(topic["sentences"]) for topic in topics(table.pairs)}


@pytest.mark.parametrize("name", TABLES)
def test_no_sentence_passes_judgement(name):
    text = " ".join(summarize(TABLES[name]())["sentences"])
    assert text
    assert not JUDGEMENT.search(text)


@pytest.mark.parametrize("name", TABLES)
def test_missing_rows_are_never_shown_without_their_caveat(name):
    assert MISSING_ROWS in TABLES[name]().sentences


def test_overview_counts_what_the_rows_say():
    table = three(limit=0.2)
    outside = [r for r in table if r.note is None and abs(r.ub) > 0.2]
    sure = [r for r in outside if r.q_value < 0.05]
    assert 0 < len(sure) < len(outside) < len(table)
    overview = said(table)["overview"]
    assert f"give {len(table)} pairs; {len(outside)} have |UB| above the limit of 0.2" in overview
    assert "over 20% fewer or more rows" in overview
    assert f"q is below 0.05 for {len(sure)} of these" in overview


def test_the_limit_is_named_when_nothing_is_outside():
    assert "above the limit of 0.5" in said(hiring(limit=0.5))["overview"]
    assert said(hiring(limit=0.5))["largest"].startswith("The largest |UB|: sex=w has 20.0% fewer")


def test_hidden_groups_are_named_with_their_numbers():
    text = said(crossed())["hidden"]
    assert "The group first=a, second=y is outside the limit for outcome=yes (UB +0.300" in text
    assert "though each attribute alone is inside" in text
    assert "hidden" not in said(hiring())


def test_a_group_too_small_is_counted_as_such_and_not_among_the_worst():
    found = said(crossed())
    small = crossed().pairs.noted("too small to say").sum()
    assert small
    assert f"{small} pairs are too small to say" in found["overview"]
    assert "<missing>" not in found["largest"]


def test_missing_values_are_counted_by_column_with_their_policy():
    assert (
        "'second' has no value in 1 row; they count as a separate value"
        in said(crossed())["missing"]
    )
    rows = {("m", "y"): 5, ("w", None): 2, ("w", "n"): 2}
    text = said(table_of(rows, ["s"]))["missing"]
    assert "'outcome' has no value in 2 rows; they are left out" in text
    assert "In all, 2 rows were left out" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "were drawn at random"),
        ({"sampling": "groups"}, "group sizes are fixed"),
        ({"confidence": 0.9}, "90% intervals"),
        ({"adjust": "bh"}, "Benjamini–Hochberg, which is approximate"),
        ({"adjust": "by"}, "Benjamini–Yekutieli, which is valid under any"),
        ({"uncertainty": False}, "was not computed"),
    ],
)
def test_the_model_of_chance_is_stated(options, words):
    assert words in said(hiring(**options))["certainty"]


def test_weighted_rows_speak_of_weight_and_effective_sizes():
    found = said(weighted())
    assert "effective sizes" in found["certainty"]
    assert "of its weight, where" in found["largest"]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({("m", "y"): 3, ("w", "y"): 2}, "All rows have outcome=y, so nothing can differ."),
        ({("m", "y"): 3, ("m", "n"): 2}, "Every row is in the same group, so nothing can differ."),
    ],
)
def test_nothing_can_differ(cells, words):
    found = said(table_of(cells, ["sex"]))
    assert found["overview"] == words
    assert "largest" not in found


def test_suppressed_numbers_are_not_told():
    table = suppressed()
    hidden_group = str(table.measured.group(0))
    summary = summarize(table)
    assert "2 pairs are suppressed" in " ".join(summary["sentences"])
    assert not any(f"{hidden_group} " in s for s in summary["sentences"])
    cells = [c for m in summary["charts"]["matrices"] for c in m["cells"]]
    silent = [c for c in cells if c["about"].startswith(f"{hidden_group}:")]
    assert [c["ub"] for c in silent] == [None, None]
    assert not any("rows" in c["about"] for c in silent)


def test_a_row_without_any_such_row_and_one_far_above_its_share():
    table = table_of({("m", "y"): 50, ("m", "n"): 950, ("w", "y"): 30, ("x", "n"): 400}, ["s"])
    assert row_sentence(table.measured, table["s=x", "y"]).startswith(
        "s=x has no row with outcome=y at all"
    )
    assert "s=w has 17.9 times its share of the rows with" in row_sentence(
        table.measured, table["s=w", "y"]
    )


@pytest.mark.parametrize("measure", [m.name for m in measures() if m.name not in SHOWN_ANYWAY])
def test_every_registered_measure_has_its_sentence(measure):
    text = said(hiring(measures=(measure,)))["measures"]
    assert "{" not in text
    assert "sex=w" in text
    assert "outcome=hired" in text


def test_hints_name_the_column_the_value_and_the_rows():
    cells = {("?", "y"): 1836, ("a", "NA"): 9}
    found = hints(Counts.from_mapping(cells, sensitive=["job"], label="l"))
    assert found[0].startswith("column 'job' holds '?' in 1,836 rows; if it means a missing value")
    assert found[1].endswith("name it with `na=['NA']`.")


# ---------------------------------------------------------------------- four-fifths rule


def four(**rates):
    """A table of one attribute from group=(good, bad)."""
    cells = {(g, y): n for g, pair in rates.items() for y, n in zip("+-", pair, strict=True)}
    return four_fifths(table_of(cells, ["g"], favourable="+"))


def test_the_papers_first_table_has_one_ratio_and_two_answers():
    large = four(p=(3960, 5940), u=(50, 49))
    small = four(p=(400, 600), u=(4500, 4500))
    assert large["lines"][0]["impact_ratio"] == pytest.approx(0.792, abs=0.001)
    assert large["lines"][0]["inside"]
    assert small["lines"][0]["impact_ratio"] == pytest.approx(0.8)
    assert not small["lines"][0]["inside"]


def test_a_large_group_below_four_fifths_but_inside_the_limit_is_explained():
    text = " ".join(four(p=(3880, 5820), u=(180, 120))["sentences"])
    assert "g=p: the impact ratio is 0.667, below 0.8, yet UB is +0.015, within the limit" in text
    assert "g=u alone, which has 3.00% of all rows" in text
    assert "(1 − b)/(1 + b·P/U)" in text


def test_a_small_group_above_four_fifths_but_outside_the_limit_is_explained():
    text = " ".join(four(p=(410, 590), u=(4500, 4500))["sentences"])
    assert "g=p: the impact ratio is 0.820, at least 0.8, yet UB is +0.165, above the limit" in text
    assert "the larger UB is; here the group is 10.0% of all rows" in text


def test_the_rule_compares_within_a_family_and_never_with_a_group_too_small():
    found = four_fifths(crossed(favourable="yes"))
    by_group = {line["group"]: line for line in found["lines"]}
    assert by_group["first=a"]["best"] == "first=a"
    assert by_group["first=a, second=y"]["best"] in {"first=a, second=x", "first=b, second=y"}
    assert by_group["first=a, second=y"]["impact_ratio"] == pytest.approx(140 / 260)
    lone = four(a=(300, 700), b=(290, 710), c=(1, 0))
    assert {line["best"] for line in lone["lines"]} == {"g=a"}


def test_agreement_needs_no_explanation():
    found = four(a=(500, 500), b=(490, 510))
    assert [line["met"] for line in found["lines"]] == [True, True]
    assert len(found["sentences"]) == 1
    assert four_fifths(hiring()) is None


# ------------------------------------------------------------------- too few rows to tell


def sparse(**options):
    """One large difference, and small groups of a rare label that seem to differ far more."""
    cells = {
        ("m", "a", "none"): 9000, ("m", "b", "none"): 6000, ("m", "a", "force"): 90,
        ("m", "b", "force"): 60, ("w", "a", "none"): 5000, ("w", "a", "force"): 5,
        ("x", "c", "force"): 1, ("x", "b", "none"): 200, ("x", "b", "force"): 4,
        ("w", "c", "none"): 150, ("m", "c", "none"): 400, ("m", "c", "force"): 4,
    }  # fmt: skip
    return table_of(cells, ["sex", "town"], "used", **options)


def test_headlines_speak_of_groups_with_enough_rows_only():
    table = sparse()
    assert max(table, key=lambda r: abs(r.ub)).evident is False
    largest = said(table)["largest"]
    for row in table:
        assert row.evident or row_sentence(table.measured, row) not in largest


def test_hidden_groups_without_enough_rows_are_counted_and_not_named():
    table = sparse()
    unsure = [r for r in table if r.hidden and not r.evident]
    assert unsure
    text = said(table)["hidden"]
    assert not any(f"The group {row.group} is" in text for row in unsure)
    pairs = "1 pair is" if len(unsure) == 1 else f"{len(unsure)} pairs are"
    assert f"{pairs} outside the limit with all such groups inside it, but ha" in text
    assert all(row["evident"] for row in summarize(table)["hidden"])


def test_charts_draw_groups_without_enough_rows_in_grey_and_rank_none():
    table = sparse()
    charts = summarize(table)["charts"]
    evident = {str(r.group) for r in table if r.evident and r.label == "force"}
    assert {bar["name"] for bar in charts["ranking"]["bars"]} == evident
    for cell in charts["matrices"][0]["cells"]:
        named = {"sex": cell["row"], "town": cell["column"]}
        pattern = ", ".join(f"{k}={v}" for k, v in named.items() if v != "*")
        assert cell["unsure"] == (not table[pattern, cell["label"]].evident)


def test_where_nothing_is_more_than_chance_the_headline_says_so():
    table = table_of({("m", "y"): 6, ("m", "n"): 6, ("w", "y"): 4, ("w", "n"): 7}, ["s"])
    assert not any(row.evident for row in table)
    assert said(table)["largest"].startswith("The largest |UB|, which may be chance: s=w has ")
