"""What a study says, against plain counting of its records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.tree import DecisionTreeClassifier

from equipoise.errors import PatternError
from equipoise.evaluation.evaluation import Evaluation
from equipoise.evaluation.study.summary import summarize_study
from equipoise.evaluation.training.material import prepare
from equipoise.evaluation.training.models import choose_models
from equipoise.evaluation.training.run import run
from equipoise.reports.pages import write_page
from people import asked, people

SMALL_FOREST = {"extra_trees": ExtraTreesClassifier(3)}
MODELS = (*choose_models("logistic"), *choose_models(SMALL_FOREST))


def studied(table=None, *, after=None, models=MODELS, **options):
    request = asked(**options)
    material = prepare(people(800) if table is None else table, request, name="people", after=after)
    records = run(material, request, models, jobs=1)
    return material, records, summarize_study(material, request, models, records)


@pytest.fixture(scope="module")
def biased():
    return studied(repeats=5, also=("race",), sizes=(40.0,), versions=("u", "p"))


@pytest.fixture(scope="module")
def with_baselines():
    """All versions at two sizes of the sample, for tests that are marked slow."""
    return studied(repeats=5, also=("race",), sizes=(20.0, 40.0))


def fit_records(records, **where):
    return [r for r in records if r["kind"] == "fit" and where.items() <= r.items()]


def accuracy_of(record, test, keep=lambda g: True):
    rows = [(y == p, n) for g, y, p, n in record[test] if keep(g)]
    return sum(n for hit, n in rows if hit) / sum(n for _, n in rows)


@pytest.mark.slow
def test_scores_are_means_over_repeats(with_baselines):
    _, records, study = with_baselines
    where = {"size": 40.0, "version": "p", "model": "logistic"}
    for test in ("own", "untouched"):
        each = [accuracy_of(r, test) for r in fit_records(records, **where)]
        (row,) = [s for s in study["scores"] if {**where, "test": test}.items() <= s.items()]
        assert row["accuracy"][0] == pytest.approx(np.mean(each), abs=1e-5)
        assert row["accuracy"][1] < row["accuracy"][0] < row["accuracy"][2]


def test_differences_are_taken_repeat_by_repeat(biased):
    _, records, study = biased
    where = {"size": 40.0, "model": "logistic"}
    gaps = [
        accuracy_of(p, "untouched") - accuracy_of(u, "untouched")
        for p, u in zip(
            fit_records(records, version="p", **where),
            fit_records(records, version="u", **where),
            strict=True,
        )
    ]
    wanted = {**where, "version": "p", "test": "untouched", "measure": "accuracy"}
    (row,) = [d for d in study["differences"] if wanted.items() <= d.items()]
    assert row["mean"] == pytest.approx(np.mean(gaps), abs=1e-5)
    assert row["q"] >= row["p"] - 1e-9
    assert not any(d["version"] == "u" for d in study["differences"])


@pytest.mark.slow
def test_losses_are_ruled_out_where_the_whole_interval_is_above_the_margin(with_baselines):
    _, records, study = with_baselines
    found = {(r["version"], r["test"], r["measure"]): r for r in study["losses"]}
    assert {v for v, _, _ in found} == {*study["versions"]} - {"u"}
    half = 2.7764451 / 5**0.5  # Student's t with 4 degrees of freedom, 5 repeats
    for test in ("own", "untouched"):
        ruled_out = 0
        for size in (20.0, 40.0):
            for model in ("logistic", "extra_trees"):
                where = {"size": size, "model": model}
                first, second = (
                    np.array(
                        [accuracy_of(r, test) for r in fit_records(records, version=v, **where)]
                    )
                    for v in ("p", "u")
                )
                gaps = first - second
                ruled_out += gaps.mean() - half * gaps.std(ddof=1) > -0.01
        row = found["p", test, "accuracy"]
        assert (row["ruled_out"], row["of"], row["margin"]) == (ruled_out, 4, 0.01)


@pytest.mark.slow
def test_losses_are_told_in_text_and_page(with_baselines, tmp_path):
    _, _, study = with_baselines
    evaluation = Evaluation(studies=(study,))
    (row,) = [
        r
        for r in study["losses"]
        if (r["version"], r["test"], r["measure"]) == ("n", "own", "accuracy")
    ]
    told = f"accuracy {row['ruled_out']} of 4, precision"
    line = next(
        s
        for s in evaluation.text().splitlines()
        if "from u to n on the version's own test set" in s
    )
    assert line.startswith("A loss of more than 0.01 ")
    assert told in line
    write_page(evaluation, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"{row['ruled_out']} of 4 ({row['clear']} clear)" in page


def test_a_file_without_losses_gets_them(biased):
    _, _, study = biased
    older = {k: v for k, v in study.items() if k not in ("losses", "equal_rows")}
    read = Evaluation.from_dict({**Evaluation(studies=(older,)).to_dict()})
    assert read.studies[0]["losses"] == study["losses"]
    assert "A loss of more than 0.01" in read.text()


def test_groups_are_those_of_the_plan_and_the_others_asked_for(biased):
    material, records, study = biased
    assert [g["group"] for g in study["groups"]] == ["sex=m", "sex=w", "race=a", "race=b"]
    assert [g["sensitive"] for g in study["groups"]] == [True, True, False, False]
    women = [i for i, g in enumerate(material.groups) if g["sex"] == "w"]
    where = {"size": 40.0, "version": "u", "model": "logistic"}
    each = [
        accuracy_of(r, "untouched", lambda g: g in women) for r in fit_records(records, **where)
    ]
    (row,) = [b for b in study["by_group"] if {**where, "group": "sex=w"}.items() <= b.items()]
    assert row["accuracy"][0] == pytest.approx(np.mean(each), abs=1e-5)
    assert row["change"] == {}
    assert 0 <= row["selection rate no"][0] <= 1


@pytest.mark.slow
def test_ub_of_the_tables_is_measured(with_baselines):
    _, _, study = with_baselines
    at = {(t["version"], t["size"]): t for t in study["tables"]}
    assert at["u", 40.0]["ub"][0] > 0.15
    for version in ("p", "n", "deleted", "duplicated"):
        assert at[version, 40.0]["ub"][0] < 0.02
        assert at[version, 40.0]["ub"][0] < at[version, 40.0]["train_ub"][0] < 0.3
    assert at["reweighed", 40.0]["ub"][0] == pytest.approx(0, abs=1e-9)
    assert at["n", 40.0]["label_shift"][0] > at["p", 40.0]["label_shift"][0]


def test_a_repair_lowers_the_bias_of_predictions(biased):
    _, _, study = biased
    rows = [
        d
        for d in study["differences"]
        if (d["version"], d["test"], d["measure"], d["size"], d["model"])
        == ("p", "own", "prediction UB", 40.0, "logistic")
    ]
    assert rows[0]["mean"] < 0


def test_the_ub_of_the_tested_rows_is_given_too(biased):
    material, _, study = biased
    (row,) = [t for t in study["test_ub"] if t["group"] == "sex=w"]
    women = np.array([g["sex"] == "w" for g in material.groups])[material.group]
    no = material.label == material.labels.index("no")
    assert row["label"] == "no"
    assert row["ub"][0] == pytest.approx(1 - no[women].mean() / no.mean(), abs=0.1)


def test_the_relation_has_a_point_for_every_group_and_label(biased):
    _, _, study = biased
    points = study["relation"]["points"]
    assert {(p["group"], p["label"]) for p in points} == {
        (g, y) for g in ("sex=m", "sex=w") for y in ("no", "yes")
    }
    at = {(p["version"], p["group"], p["label"]): p for p in points}
    assert at["u", "sex=w", "yes"]["ub"][0] > 0.15
    assert at["u", "sex=w", "yes"]["error"][0] > 0
    assert abs(at["p", "sex=w", "yes"]["ub"][0]) < 0.15
    assert study["relation"]["correlation"]["points"] == 4


@pytest.mark.slow
def test_three_labels_have_means_over_them():
    _, records, study = studied(people(900, labels=("low", "medium", "high")), models=MODELS[:1])
    assert study["positive"] is None
    assert study["labels"] == ["high", "low", "medium"]
    assert {k for k in study["by_group"][0] if k.startswith("UB")} == {
        "UB high",
        "UB low",
        "UB medium",
    }
    for record in fit_records(records, version="u"):
        table = np.zeros((3, 3))
        for _, y, p, n in record["untouched"]:
            table[y, p] += n
        assert (table.sum(axis=1) > 0).all()


@pytest.mark.slow
def test_the_positive_label_is_the_rarer_or_the_one_named():
    table = people(600)
    assert studied(table, models=MODELS[:1])[2]["positive"] == "no"
    named = studied(table, models=MODELS[:1], positive="yes")[2]
    assert named["positive"] == "yes"
    with pytest.raises(PatternError, match="it has: no, yes"):
        studied(table, models=MODELS[:1], positive="maybe")


@pytest.mark.slow
def test_baselines_are_run_for_two_models():
    models = (*MODELS, *choose_models({"tree": DecisionTreeClassifier()}))
    _, records, _ = studied(models=models, repeats=1)
    for version in ("reweighed", "deleted", "duplicated"):
        assert len(fit_records(records, version=version)) == 2
    assert len(fit_records(records, version="p")) == 3


def test_two_tables():
    first = people(600)
    second = pa.concat_tables([first, people(300, seed=4)])
    _, _, study = studied(
        first, after=second, models=MODELS[:1], versions=("before", "after"), repeats=3
    )
    assert study["versions"] == ["before", "after"]
    assert study["sizes"] == []
    assert {d["version"] for d in study["differences"]} == {"after"}
    tables = {t["version"]: t for t in study["tables"]}
    assert tables["after"]["train_rows"][0] == tables["before"]["train_rows"][0]
    _, _, unlike = studied(
        first,
        after=second,
        models=MODELS[:1],
        versions=("before", "after"),
        same_size=False,
    )
    rows = {t["version"]: t["train_rows"][0] for t in unlike["tables"]}
    assert rows["after"] > 1.5 * rows["before"]


def test_it_round_trips_and_tells(biased, tmp_path):
    study = biased[2]
    evaluation = Evaluation(studies=(study,))
    path = tmp_path / "evaluation.json"
    path.write_text(evaluation.to_json())
    again = Evaluation.read(path)
    assert again.to_dict() == evaluation.to_dict()
    assert again.text() == evaluation.text()
    assert "p40% compared with u on the held-out test set" in evaluation.text()
    frame = evaluation.to_pandas("differences")
    assert len(frame) == len(study["differences"])
    assert {"accuracy", "accuracy_low", "accuracy_high"} <= {*evaluation.to_pandas("scores")}


def test_what_no_pool_could_fill_is_told():
    table = people(1500)
    sex, hired = (table[c].to_pylist() for c in ("sex", "hired"))
    rare = np.array([s == "w" and h == "yes" for s, h in zip(sex, hired, strict=True)])
    keep = np.sort(np.concatenate([np.flatnonzero(~rare), np.flatnonzero(rare)[:12]]))
    _, _, study = studied(table.take(keep), models=MODELS[:1], sizes=(40.0,), versions=("u", "p"))
    table = next(t for t in study["tables"] if t["version"] == "p")
    assert table["short"] == 2
    assert table["lacks"][0][3] < table["lacks"][0][2]
    (said,) = [s for s in Evaluation(studies=(study,)).sentences if "too few rows" in s]
    assert table["lacks"][0][0] in said
    assert f"{table['ub'][0]:.3f}" in said
