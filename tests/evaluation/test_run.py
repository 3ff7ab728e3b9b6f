"""Work is kept as it is done, goes on where it stopped, and comes out the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

from equipoise.errors import InputError, UnknownName
from equipoise.evaluation.study.summary import summarize_study
from equipoise.evaluation.training import run as running
from equipoise.evaluation.training.material import prepare
from equipoise.evaluation.training.models import MODELS, choose_models
from equipoise.evaluation.training.run import Interrupted, run
from equipoise.evaluation.training.run_store import RunStore, key_of
from equipoise.evaluation.training.splits import generator_for
from people import asked, people

MODEL = choose_models("logistic")


@pytest.fixture(scope="module")
def material():
    return prepare(people(400), asked(), name="people")


@pytest.mark.slow
def test_a_seed_gives_the_same_and_another_does_not(material):
    first, again, other = (run(material, asked(seed=s), MODEL, jobs=1) for s in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.slow
def test_side_by_side_gives_the_same_as_one_after_the_other(material):
    request = asked(versions=("u", "p"))
    assert run(material, request, MODEL, jobs=2) == run(material, request, MODEL, jobs=1)


@pytest.mark.slow
def test_finished_work_is_not_done_again(material, tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    whole = run(material, asked(repeats=2), MODEL, jobs=1, path=path)
    done = []
    monkeypatch.setattr(running, "run_job", lambda *a: done.append(a) or [])
    assert run(material, asked(repeats=2), MODEL, jobs=1, path=path) == whole
    assert not done


@pytest.mark.slow
def test_more_repeats_go_on_from_there(material, tmp_path):
    path = tmp_path / "runs.jsonl"
    run(material, asked(repeats=1), MODEL, jobs=1, path=path)
    lines = len(path.read_text().splitlines())
    more = run(material, asked(repeats=2), MODEL, jobs=1, path=path)
    assert len(path.read_text().splitlines()) == 2 * lines
    assert more == run(material, asked(repeats=2), MODEL, jobs=1)
    few = run(material, asked(repeats=1), MODEL, jobs=1, path=path)
    assert {record["repeat"] for record in few} == {0}


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_says_so(material, tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    real, calls = running.run_job, []

    def interrupted_at_the_third(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(running, "run_job", interrupted_at_the_third)
    with pytest.raises(Interrupted, match=r"after 2 of 12 fits.*runs.jsonl.*continues from there"):
        run(material, asked(), MODEL, jobs=1, path=path)
    assert sum(json.loads(x)["kind"] == "fit" for x in path.read_text().splitlines()) == 2
    monkeypatch.setattr(running, "run_job", real)
    assert run(material, asked(), MODEL, jobs=1, path=path) == run(material, asked(), MODEL, jobs=1)


def test_a_torn_last_line_is_passed_over_and_mended(material, tmp_path):
    path = tmp_path / "runs.jsonl"
    request = asked(repeats=1, versions=("u",))
    whole = run(material, request, MODEL, jobs=1, path=path)
    path.write_bytes(path.read_bytes()[:-40])
    assert run(material, request, MODEL, jobs=1, path=path) == whole
    assert run(material, request, MODEL, jobs=1, path=path) == whole


@pytest.mark.slow
def test_what_was_done_for_another_table_or_request_is_not_taken(material, tmp_path):
    path = tmp_path / "runs.jsonl"
    run(material, asked(), MODEL, jobs=1, path=path)
    other = prepare(people(400, seed=9), asked(), name="people")
    assert run(other, asked(), MODEL, jobs=1, path=path) == run(other, asked(), MODEL, jobs=1)
    more = asked(test=30.0)
    assert run(material, more, MODEL, jobs=1, path=path) == run(material, more, MODEL, jobs=1)


@pytest.mark.parametrize("text", ["no json\nat all\n", '{"schema": "other"}\n', "[1]\n"])
def test_another_file_is_not_written_into(text, material, tmp_path):
    path = tmp_path / "precious.txt"
    path.write_text(text)
    with pytest.raises(InputError, match="is not a file of runs"):
        run(material, asked(), MODEL, jobs=1, path=path)
    assert path.read_text() == text


def test_records_come_in_one_order(tmp_path):
    runs = RunStore(None, "k")
    for repeat in (1, 0):
        runs.add([{"kind": "fit", "repeat": repeat, "size": 1.0, "version": "u", "model": "m"}])
    assert [r["repeat"] for r in runs.records()] == [0, 1]


@pytest.mark.slow
def test_progress_reaches_the_end(material):
    shares = []
    run(material, asked(), MODEL, jobs=1, progress=lambda _, share: shares.append(share))
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1


def test_unknown_models_are_named():
    with pytest.raises(UnknownName, match=r"'gbd'; there are: random_forest.*Did you mean 'gbdt'"):
        choose_models("gbd")
    with pytest.raises(InputError, match="must name at least one of"):
        choose_models([])


def test_without_models_there_are_the_usual_two_and_what_is_no_name_is_refused():
    assert [model.name for model in choose_models(None)] == ["gbdt", "logistic"]
    with pytest.raises(InputError, match=r"`models` must be names of models.*not 3"):
        choose_models(3)


def test_an_own_estimator_is_trained_again_if_anything_in_it_changes(material, tmp_path):
    from sklearn.ensemble import VotingClassifier
    from sklearn.tree import DecisionTreeClassifier

    def voters(deep):
        trees = [
            (f"t{i}", DecisionTreeClassifier(max_depth=deep if i == 13 else 1)) for i in range(20)
        ]
        return choose_models({"vote": VotingClassifier(trees)})

    path, request = tmp_path / "runs.jsonl", asked(repeats=1, versions=("u",))
    run(material, request, voters(1), jobs=1, path=path)
    lines = len(path.read_text().splitlines())
    assert run(material, request, voters(1), jobs=1, path=path)
    assert len(path.read_text().splitlines()) == lines
    again = run(material, request, voters(9), jobs=1, path=path)
    assert len(path.read_text().splitlines()) > lines
    assert again == run(material, request, voters(9), jobs=1)


def test_what_is_random_inside_an_own_estimator_is_seeded(material):
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    own = choose_models({"forest": make_pipeline(RandomForestClassifier(3))})
    request = asked(repeats=1, versions=("u",))
    assert run(material, request, own, jobs=1) == run(material, request, own, jobs=1)


def test_what_is_no_classifier_is_refused():
    from sklearn.linear_model import LinearRegression

    for wrong in (LinearRegression(), object()):
        with pytest.raises(InputError, match="must be a scikit-learn classifier"):
            choose_models({"wrong": wrong})


def test_a_file_of_ones_own_is_not_lost(material, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my precious notes")
    with pytest.raises(InputError, match="is not a file of runs"):
        run(material, asked(), MODEL, jobs=1, path=path)
    assert path.read_text() == "my precious notes"


def test_own_estimators_take_part(material):
    from sklearn.dummy import DummyClassifier
    from sklearn.tree import DecisionTreeClassifier

    own = choose_models({"stump": DecisionTreeClassifier(max_depth=1), "dummy": DummyClassifier()})
    records = run(material, asked(repeats=1), own, jobs=1)
    assert {r["model"] for r in records if r["kind"] == "fit"} == {"stump", "dummy"}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns_something(name, material):
    request = asked(repeats=1, versions=("u", "p"), sizes=(60.0,))
    records = run(material, request, choose_models(name), jobs=1)
    study = summarize_study(material, request, choose_models(name), records)
    commonest = np.bincount(material.label).max() / material.n
    assert study["scores"][0]["accuracy"][0] > min(commonest, 0.6) - 0.1
    assert {s["version"] for s in study["scores"]} == {"u", "p"}


def test_another_request_has_another_key_and_the_same_one_the_same():
    assert key_of({"a": 1}) == key_of({"a": 1}) != key_of({"a": 2})


def test_a_generator_belongs_to_its_seed_and_its_repeat():
    draws = [int(generator_for(*seeds).integers(10**9)) for seeds in [(0, 1), (0, 1), (0, 2)]]
    assert draws[0] == draws[1] != draws[2]
