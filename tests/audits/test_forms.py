"""Audit forms: their numbers, what they say, and what they never say."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

import pandas as pd
import pytest

import equipoise as eq
from equipoise.engines import engines
from equipoise.errors import InputError, PatternError
from equipoise.options.audit import FORMS
from equipoise.values import MISSING
from hires import hires

COLUMNS = {"sex": "sex", "race": "race", "selected": "hired"}
GOLDEN = Path(__file__).parent / "golden"
NASTY = "<script>alert('&')</script>"
VERDICT = re.compile(
    r"(?i)\b(compl(y|ies|iant|iance)|fair(ness|ly)?|lawful|legal(ly)?|passed|passes)\b"
)


def filled(form, data=None, **options):
    return eq.audit(hires() if data is None else data, form=form, **{**COLUMNS, **options})


def tables(form):
    return form.to_dict()["numbers"]["tables"]


# ------------------------------------------------------------------------------ all forms


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("more", [{}, {"suppress_below": 5}, {"unknown": ["Unknown"]}])
def test_a_form_states_its_source_and_what_it_does_not_cover_and_hands_out_no_verdict(form, more):
    made = filled(form, **more)
    assert made.form == form
    for text in (made.text(), made.markdown(), made.to_json()):
        assert not VERDICT.search(text), VERDICT.search(text)
    ids = [part.id for part in made.all_sections]
    assert len(set(ids)) == len(ids)
    assert (ids[0], ids[-1]) == ("source", "not-covered")
    assert made.rule in made.text()
    assert re.search(r"\b(19|20)\d\d\b", made.rule)  # its version is dated
    assert len(made.not_covered) >= 4
    assert all(sentence in made.text() for sentence in made.not_covered)
    assert made.questions
    assert made.exit_code == 0


@pytest.mark.parametrize("form", FORMS)
def test_text_markdown_json_and_frames_agree(form):
    made = filled(form)
    data = json.loads(made.to_json())
    assert data["schema"] == "equipoise.audit/1"
    assert data["n"] == 540
    assert data["dropped"] == 1
    titles = [section["title"] for section in data["sections"]]
    for title in titles:
        assert f"## {title}\n" in made.markdown()
        assert f"\n{title}\n" in made.text()
    frame = made.to_pandas()
    assert len(frame) == len(made.lines) > 0
    assert made.to_csv().splitlines()[0] == ",".join(frame.columns)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_values_are_text_wherever_they_are_shown(form, tmp_path):
    pytest.importorskip("vl_convert")
    data = hires()
    data["sex"] = [NASTY if value == "Female" else value for value in data["sex"]]
    data["race"] = ["[x](javascript:alert(1))" if v == "Black" else v for v in data["race"]]
    made = filled(form, data)
    assert "<script" not in made._repr_html_()
    eq.report(made, tmp_path / "page.html", source=NASTY)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    markdown = made.markdown()
    assert NASTY in markdown.replace("\\", "")
    assert not re.search(r"(?<!\\)<script", markdown)
    said = [line for line in markdown.splitlines() if line.startswith("- ")]
    assert not any(re.search(r"(?<!\\)\[x\]\(", line) for line in said)


@pytest.mark.parametrize("form", FORMS)
def test_small_counts_are_hidden(form):
    made = filled(form, suppress_below=5)
    data = made.to_dict()
    assert data["fingerprint"] is None
    text = made.text()
    assert "Counts below 5" in text
    # Two or more has 4 and 3 rows by sex, 7 in all, 3 of them selected.
    for line in text.splitlines():
        if re.match(r"\S*,? ?(race=)?Two or more\b", line.strip()):
            assert re.search(r"–|hidden|suppressed", line), line
    for row in made.to_pandas().to_dict("records"):
        if row.get("suppressed"):
            assert pd.isna(row["n"])
            assert pd.isna(row["impact_ratio"])
        elif row.get("n") is not None and not pd.isna(row.get("n", 9)):
            assert row["selected"] >= 5


def test_a_form_is_needed_and_its_columns():
    with pytest.raises(InputError, match="`form` is missing; there are: local-law-144"):
        eq.audit(hires(), sex="sex", selected="hired")
    with pytest.raises(InputError, match=r"must be one of .*Did you mean 'datasheet'"):
        filled("data-sheet")
    with pytest.raises(InputError, match="`sensitive_features` is missing"):
        eq.audit(hires(), form="datasheet", selected="hired")
    with pytest.raises(InputError, match="`label` is missing"):
        eq.audit(hires(), form="datasheet", sex="sex")
    with pytest.raises(eq.EquipoiseError, match="'gender' not found"):
        filled("local-law-144", sex="gender")
    with pytest.raises(InputError, match="name several"):
        filled("local-law-144", label="score")
    with pytest.raises(InputError, match="name several"):
        filled("local-law-144", score="score")
    with pytest.raises(PatternError, match="'hired' has no value maybe; it has: no, yes"):
        filled("local-law-144", selected_value="maybe")
    for name in ("missing", "missing_label"):
        with pytest.raises(InputError, match=f"leave `{name}` out"):
            filled("datasheet", **{name: "raise"})
    with pytest.raises(InputError, match="`mapping` sets how a lake is searched"):
        filled("eu-ai-act-article-10", mapping="m.toml")
    with pytest.raises(InputError, match="only the form eu-ai-act-article-10"):
        filled("datasheet", lake="lake")
    with pytest.raises(InputError, match="no row has a value of 'hired'; name another column"):
        filled("datasheet", {**hires(), "hired": [None] * 541})


def test_counts_are_audited_as_they_are():
    counts = eq.count(hires(), sensitive_features=["sex", "race"], label="hired")
    made = eq.audit(counts, form="local-law-144", sex="sex", race="race")
    assert tables(made) == tables(filled("local-law-144"))
    with pytest.raises(InputError, match="`race='ethnicity'` is not a sensitive attribute"):
        eq.audit(counts, form="local-law-144", race="ethnicity")
    with pytest.raises(InputError, match="`score` is a column of a table"):
        eq.audit(counts, form="local-law-144", score="score")


def test_columns_themselves_are_audited():
    data = hires()
    made = eq.audit(
        y=data["hired"], sensitive_features={"sex": data["sex"]}, form="local-law-144", sex="sex"
    )
    assert tables(made)[0] == tables(filled("local-law-144"))[0]


# ------------------------------------------------------------------------- Local Law 144


def test_the_tables_of_local_law_144_are_those_of_the_rows():
    made = filled("local-law-144", unknown="Unknown")
    rows = pd.DataFrame(hires()).dropna(subset=["hired"])
    rows["race"] = rows["race"].replace("Unknown", None)
    found = tables(made)
    assert [t["attributes"] for t in found] == [["sex"], ["race"], ["sex", "race"]]
    for table in found:
        names = table["attributes"]
        known = rows.dropna(subset=names)
        assert table["unknown"] == len(rows) - len(known)
        groups = known.groupby(names)["hired"]
        rates = groups.apply(lambda column: (column == "yes").mean())
        assert len(table["categories"]) == len(rates)
        for category in table["categories"]:
            key = tuple(eq.Group.parse(category["category"])[name] for name in names)
            part = groups.get_group(key)
            assert category["n"] == len(part)
            assert category["selected"] == (part == "yes").sum()
            rate = (part == "yes").mean()
            assert category["impact_ratio"] == pytest.approx(rate / rates.max())
            assert category["below_share"] == (len(part) / len(rows) < 0.02)


def test_unknown_is_counted_and_no_category():
    made = filled("local-law-144", unknown=["Unknown", "never there"])
    text = made.text()
    assert "Unknown: 6 rows without a known value of sex" in text
    assert "Unknown: 12 rows without a known value of race" in text
    assert "Unknown: 18 rows without known values of sex and race" in text
    assert not [line for line in made.to_csv().splitlines() if "Unknown" in line]
    assert filled("local-law-144", na="Unknown").section("table-2") == made.section("table-2")


def test_small_categories_have_ratios_with_and_without_them():
    table = tables(filled("local-law-144", unknown="Unknown"))[1]
    by_name = {c["category"]: c for c in table["categories"]}
    small = by_name["race=Two or more"]
    assert small["below_share"]
    assert small["impact_ratio"] == 1  # the highest rate of all, 3 of 7
    assert small["impact_ratio_without_small"] is None
    asian = by_name["race=Asian"]
    assert asian["impact_ratio"] == pytest.approx(35 / 85 / (3 / 7))
    assert asian["impact_ratio_without_small"] == 1
    for threshold, marked in ((0, 0), (0.5, 3)):
        table = tables(filled("local-law-144", unknown="Unknown", exclude_below=threshold))[1]
        assert sum(c["below_share"] for c in table["categories"]) == marked


@pytest.mark.parametrize("name", ["duckdb", "memory"])
def test_scoring_rates_are_those_above_the_median(name):
    engine = engines()[name]()
    data = hires()
    made = eq.audit(
        data, form="local-law-144", sex="sex", race="race", score="score", engine=engine
    )
    scores = [score for score in data["score"] if score is not None]
    median = statistics.median(scores)
    told = made.to_dict()["numbers"]["median"]
    assert told == {
        "column": "score",
        "value": median,
        "rows": len(scores),
        "ties": sum(score == median for score in scores),
    }
    assert made.subject.counts.n == len(scores)
    rows = pd.DataFrame(data).dropna(subset=["score"])
    for category in tables(made)[0]["categories"]:
        part = rows[rows["sex"] == category["category"].removeprefix("sex=")]["score"]
        assert (category["n"], category["selected"]) == (len(part), int((part > median).sum()))
    assert eq.Counts.from_json(made.subject.counts.to_json()) == made.subject.counts


@pytest.mark.parametrize(
    ("scores", "median", "above", "ties"),
    [
        ([1, 2, 3, 4], 2.5, 2, 0),
        ([1, 2, 2, 4], 2, 1, 2),
        ([1, 1, 1, 4], 1, 1, 3),
        ([5, 5, 5, 5], 5, 0, 4),
        ([0.1, 0.2, 0.3], 0.2, 1, 1),
        ([-1.5, None, 2.5], 0.5, 1, 0),
    ],
)
def test_the_median_of_even_and_odd_numbers_and_ties(scores, median, above, ties):
    made = eq.audit(
        {"sex": ["w"] * len(scores), "score": scores},
        form="local-law-144",
        sex="sex",
        score="score",
    )
    assert made.subject.median.value == pytest.approx(median)
    assert made.subject.median.ties == ties
    assert tables(made)[0]["categories"][0]["selected"] == above
    assert f"{above:,} of the" in made.text()


def test_a_small_number_of_ties_is_hidden():
    data = {"sex": ["w", "m"] * 30, "score": [*range(29), 29, 29, *range(30, 59)]}
    for below, ties in ((None, 2), (2, 2), (3, None)):
        made = eq.audit(data, form="local-law-144", sex="sex", score="score", suppress_below=below)
        assert made.subject.median.ties == ties
    assert "rows at the median itself count as not above" in made.text()


def test_scores_are_numbers_of_rows():
    with pytest.raises(InputError, match="'race' holds 'Asian', which is not a number"):
        filled("local-law-144", selected=None, race=None, score="race")
    for name in ("count", "weight"):
        with pytest.raises(InputError, match=f"leave `{name}` out"):
            filled("local-law-144", selected=None, score="score", **{name: "score"})
    with pytest.raises(InputError, match="`score` is for the form local-law-144"):
        filled("uniform-guidelines", selected=None, score="score")


def test_nobody_selected_one_category_and_no_known_value():
    none = filled("local-law-144", {"sex": ["w", "m"], "hired": ["no", "no"]}, race=None)
    assert (
        "The highest selection rate is 0, so that no category has an impact ratio." in none.text()
    )
    assert [c["impact_ratio"] for c in tables(none)[0]["categories"]] == [None, None]
    one = filled("local-law-144", {"sex": ["w", "w"], "hired": ["no", "yes"]}, race=None)
    assert "sex=w is the only category (selection rate 50.0%)" in one.text()
    nobody = filled("local-law-144", {"sex": [None, None], "hired": ["no", "yes"]}, race=None)
    assert "No row has a known value of sex" in nobody.text()
    assert tables(nobody)[0] == {
        "attributes": ["sex"],
        "unknown": 2,
        "best": None,
        "categories": [],
    }
    for made in (none, one, nobody):
        with pytest.raises(InputError, match="nothing to draw"):
            made.plot()


@pytest.mark.parametrize(
    ("values", "selected"),
    [(["yes", "no"], "yes"), ([True, False], "true"), ([1, 0], "1"), (["Y", "N"], "Y")],
)
def test_the_affirmative_value_means_selected(values, selected):
    made = filled("local-law-144", {"sex": ["w", "m"] * 4, "hired": values * 4}, race=None)
    assert made.subject.selected == selected


@pytest.mark.parametrize("values", [["good", "bad"], ["1", "2", "0"], ["yes", "1"]])
def test_a_value_that_is_not_plain_must_be_named(values):
    data = {"sex": ["w"] * len(values), "hired": values}
    with pytest.raises(InputError, match="name the value of 'hired' that means selected"):
        filled("local-law-144", data, race=None)


def test_other_attributes_have_tables_too():
    data = {**hires(), "age": [30 + i % 40 for i in range(541)]}
    made = filled("local-law-144", data, sensitive_features=["age"], bins={"age": [40, 60]})
    assert [t["attributes"] for t in tables(made)] == [
        ["sex"],
        ["race"],
        ["age"],
        ["sex", "race"],
        ["sex", "race", "age"],
    ]
    plain = eq.audit(hires(), form="local-law-144", sensitive_features=["race"], label="hired")
    assert "No column was named as sex and race/ethnicity." in plain.text()


def test_the_form_of_a_small_table_is_as_it_was():
    made = filled("local-law-144", unknown="Unknown")
    shown = made.markdown().rsplit("Made by", 1)[0]
    golden = GOLDEN / "local_law_144.md"
    assert shown == golden.read_text(encoding="utf-8")


# ----------------------------------------------------------------- Uniform Guidelines


def test_the_four_fifths_view_compares_with_the_best_off_group():
    from scipy.stats import fisher_exact

    made = filled("uniform-guidelines", unknown="Unknown")
    women, men = tables(made)[0]["categories"]
    assert (women["selected"], women["n"], men["selected"], men["n"]) == (67, 231, 128, 303)
    ratio = (67 / 231) / (128 / 303)
    assert women["impact_ratio"] == pytest.approx(ratio)
    assert women["below_four_fifths"]
    pooled = (67 + 128) / (231 + 303)
    deviation = (pooled * (1 - pooled) * (1 / 231 + 1 / 303)) ** 0.5
    assert women["z"] == pytest.approx((67 / 231 - 128 / 303) / deviation)
    exact = fisher_exact([[67, 231 - 67], [128, 303 - 128]]).pvalue
    assert women["p_exact"] == pytest.approx(exact)
    assert women["significant"]
    more = women["selections_to_change"]
    assert (67 + more) / 231 >= 0.8 * 128 / 303 > (67 + more - 1) / 231
    assert men["z"] is men["below_four_fifths"] is men["selections_to_change"] is None
    row = eq.measure(made.subject.counts, favourable="yes")["sex=Female", "yes"]
    assert (women["ub"], women["ub_low"], women["q"]) == (row.ub, row.ub_low, row.q_value)


def test_it_says_where_the_ratio_and_the_test_disagree():
    few = {
        "sex": ["w"] * 10 + ["m"] * 10,
        "hired": ["yes"] * 4 + ["no"] * 6 + ["yes"] * 7 + ["no"] * 3,
    }
    said = filled("uniform-guidelines", few, race=None).section("disagreements").sentences
    assert len(said) == 1
    assert "below 0.8, but chance alone may explain it" in said[0]
    assert "2 more selections of this category" in said[0]  # 6 of 10 against 7 of 10
    many = eq.Counts.from_mapping(
        {("w", "yes"): 8_500, ("w", "no"): 1_500, ("m", "yes"): 9_500, ("m", "no"): 500},
        sensitive=["sex"],
        label="hired",
    )
    said = eq.audit(many, form="uniform-guidelines", sex="sex").section("disagreements").sentences
    assert len(said) == 1
    assert "at least 0.8, but the rates differ by more than chance" in said[0]
    even = {"sex": ["w", "m"] * 20, "hired": ["yes", "yes", "no", "no"] * 10}
    said = filled("uniform-guidelines", even, race=None).section("disagreements").sentences
    assert said[0].startswith("There is no category")


def test_a_level_of_significance_and_weights():
    strict = tables(filled("uniform-guidelines", significance=1e-9))[0]["categories"][0]
    assert strict["significant"] is False
    for form in ("uniform-guidelines", "local-law-144"):
        data = {**hires(), "w": [2.0] * 541}
        with pytest.raises(InputError, match=f"the form {form} counts people"):
            filled(form, data, weight="w")
    assert "rows are weighted" in filled("eu-ai-act-article-10", data, weight="w").text()


def test_it_agrees_with_the_check_of_the_same_rule():
    made = filled("uniform-guidelines", exclude_below=0, unknown="Unknown")
    rows = eq.count(hires(), sensitive_features=["sex"], label="hired", missing="drop")
    found = eq.check(rows, four_fifths=True, favourable="yes")
    outside = [str(f.row.group) for f in found.outside]
    below = [c["category"] for c in tables(made)[0]["categories"] if c["below_four_fifths"]]
    assert outside == below == ["sex=Female"]


# -------------------------------------------------------------------------- Article 10


@pytest.mark.slow
def test_article_10_lists_biases_gaps_a_plan_and_questions():
    made = filled("eu-ai-act-article-10", unknown="Unknown")
    numbers = made.to_dict()["numbers"]
    assert numbers["gaps"]["missing_values"] == {"sex": 6, "race": 12, "hired": 1}
    plan = eq.plan(made.subject.counts, tolerance=0.1, min_group=30)
    assert numbers["plan"]["additions"] == plan.additions > 0
    assert numbers["plan"]["reached"]
    assert f"Add {plan.additions:,} rows" in made.text()
    assert numbers["sources"] is None
    assert "No sources were searched" in made.text()
    shown = made.to_pandas()
    assert len(shown) == len(eq.measure(made.subject.counts))
    hidden = [row for row in eq.measure(made.subject.counts) if row.hidden]
    assert shown["hidden"].sum() == len(hidden)
    for point in ("2(a)", "2(f)", "2(g)", "paragraph 4"):
        assert any(point in question for question in made.questions), point


def test_empty_cells_are_found_and_the_largest_group_comes_first():
    cells = {("w", "a", "yes"): 5, ("w", "a", "no"): 5, ("w", "b", "no"): 40, ("m", "a", "no"): 9}
    cells |= {(MISSING, "a", "no"): 3}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex", "race"], label="hired")
    gaps = eq.audit(counts, form="datasheet").to_dict()["numbers"]["gaps"]
    assert gaps["absent_groups"] == 1  # m, b
    assert gaps["empty_cells"] == 2
    assert gaps["largest_empty"] == [
        {"cell": "sex=w, race=b, hired=yes", "n_group": 40},
        {"cell": "sex=m, race=a, hired=yes", "n_group": 9},
    ]


@pytest.mark.slow
def test_a_lake_is_asked_what_it_offers(tmp_path):
    from hires import write_hires

    base, lake = tmp_path / "hires.csv", tmp_path / "lake"
    lake.mkdir()
    write_hires(base)
    more = [
        f"{sex},{race},{hired},{score}"
        for sex in ("Female", "Male")
        for race in ("Black", "White", "Asian")
        for hired in ("yes", "no")
        for score in range(100, 160)
    ]
    (lake / "more.csv").write_text("\n".join(["sex,race,hired,score", *more]), encoding="utf-8")
    made = filled("eu-ai-act-article-10", str(base), lake=lake)
    sources = made.to_dict()["numbers"]["sources"]
    assert [offer["table"] for offer in sources["offers"]] == ["more.csv"]
    assert "more.csv" in made.text()
    assert "are needed" in made.section("sources").sentences[0]


def test_where_no_plan_is_possible_or_needed_it_says_so():
    even = {"sex": ["w", "m"] * 40, "hired": ["yes", "yes", "no", "no"] * 20}
    made = filled("eu-ai-act-article-10", even, race=None)
    assert "No rows are needed." in made.text()
    hidden = filled("eu-ai-act-article-10", suppress_below=5)
    assert "No plan is shown" in hidden.text()
    assert hidden.to_dict()["numbers"]["plan"] is None


# --------------------------------------------------------------------------- data sheet


def test_a_data_sheet_has_counts_biases_limits_and_how_it_was_made():
    made = filled("datasheet", unknown="Unknown")
    markdown = made.markdown()
    for title in ("Composition", "Biases, with intervals", "How this sheet was made"):
        assert f"## {title}" in markdown
    assert "| sex | Female | 231 | 42.8% |" in markdown
    assert "| race | \\<missing> | 12 | 2.22% |" in markdown
    assert f"sha256:{made.subject.counts.fingerprint}" in markdown
    assert markdown.count("To be filled in:") == len(made.questions)
    assert "sha256" not in filled("datasheet", suppress_below=5).markdown()
