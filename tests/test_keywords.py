"""Wrong keywords of the public functions, and columns that nobody named."""

from __future__ import annotations

import inspect
import pickle
import re

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import equipoise as eq
from equipoise.api.keywords import SAID_FOR
from equipoise.errors import InputError, UnknownKeyword
from equipoise.options import options_of
from equipoise.options.count import CountRequest
from equipoise.options.evaluation import RunningOptions
from equipoise.options.measure import MeasureOptions
from equipoise.options.search import SearchRequest

PEOPLE = {
    "id": list(range(60)),
    "sex": ["w", "m", "m"] * 20,
    "race": ["a", "b", "c", "d"] * 15,
    "hired": ["y", "n"] * 30,
    "always": ["x"] * 60,
}
FUNCTIONS = [name for name in eq.__all__ if inspect.isfunction(getattr(eq, name))]
OPEN = [
    name
    for name in FUNCTIONS
    if "sensitive_features" in inspect.signature(getattr(eq, name)).parameters
]


def arguments(name: str) -> list:
    return [{}] * {"repair": 2, "diff": 2}.get(name, 1)


def test_many_functions_hand_keywords_on() -> None:
    named = {"count", "measure", "check", "diff", "plan", "repair", "evaluate", "policy_map"}
    assert named <= set(OPEN)
    for name in OPEN:
        own = inspect.signature(inspect.unwrap(getattr(eq, name))).parameters.values()
        assert [p.name for p in own if p.kind is p.VAR_KEYWORD] in (["options"], []), name


@pytest.mark.parametrize("name", OPEN)
@pytest.mark.parametrize("wrong", ["sensitive", "sensitive_attributes", "protected", "Sensitive"])
def test_a_wrong_name_for_the_sensitive_features_is_answered(name: str, wrong: str) -> None:
    with pytest.raises(UnknownKeyword, match="it is called sensitive_features") as refused:
        getattr(eq, name)(*arguments(name), **{wrong: ["sex"]})
    assert f"{name}() has no keyword {wrong!r}" in str(refused.value)
    assert isinstance(refused.value, TypeError)


@pytest.mark.parametrize(
    ("function", "wrong", "right"),
    [
        ("measure", "target", "label"),
        ("measure", "favorable", "favourable"),
        ("measure", "sample_weight", "weight"),
        ("check", "favorable", "favourable"),
        ("check", "target", "label"),
        ("diff", "outcome", "label"),
        ("count", "df", "data"),
    ],
)
def test_words_of_other_libraries_are_answered(function: str, wrong: str, right: str) -> None:
    with pytest.raises(UnknownKeyword, match=f"no keyword '{wrong}'; it is called {right}"):
        getattr(eq, function)(*arguments(function), **{wrong: 1})


@pytest.mark.parametrize("name", OPEN)
def test_any_other_keyword_is_answered_with_those_there_are(name: str) -> None:
    with pytest.raises(UnknownKeyword, match=r"it has: .*label.* Did you mean 'label'\?"):
        getattr(eq, name)(*arguments(name), lable="hired")


@pytest.mark.parametrize("name", ["apply", "evaluate_paper"])
def test_a_function_that_names_no_columns_lists_its_keywords(name: str) -> None:
    with pytest.raises(UnknownKeyword, match=r"no keyword 'sensitive'; it has: .*threads"):
        getattr(eq, name)(sensitive="sex")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_describes_every_keyword(name: str) -> None:
    function = getattr(eq, name)
    shown = inspect.signature(function).parameters.values()
    assert not [p for p in shown if p.kind is p.VAR_KEYWORD]
    for parameter in shown:
        assert re.search(
            rf"^ +(.*, )?\**{parameter.name}\b.*\n     ", function.__doc__, re.MULTILINE
        ), parameter


def test_help_has_the_words_of_the_declaration_and_the_values_that_may_be_given() -> None:
    for function, request in {
        eq.count: CountRequest,
        eq.measure: MeasureOptions,
        eq.evaluate: RunningOptions,
        eq.repair: SearchRequest,
    }.items():
        words = " ".join(function.__doc__.split())
        for option in options_of(request):
            assert option.help in words or option.keyword in ("sensitive_features", "label")
    assert "sampling : {'rows', 'groups'}" in eq.measure.__doc__


def test_a_signature_has_the_types_that_a_function_takes_and_its_own_defaults() -> None:
    taken = inspect.signature(eq.evaluate).parameters["models"]
    assert taken.annotation == "str | Sequence[str] | Mapping[str, Any]"
    assert inspect.signature(eq.evaluate_paper).parameters["models"].default == "all"


def test_options_of_a_search_need_a_lake() -> None:
    with pytest.raises(InputError, match=r"`seed` sets how a lake is searched; .* `lake`"):
        eq.plan("adult", sensitive_features=["sex"], label="income", seed=3)


def test_a_keyword_of_one_function_is_not_suggested_to_another() -> None:
    with pytest.raises(UnknownKeyword, match=r"count\(\) has no keyword 'favorable'; it has: "):
        eq.count(PEOPLE, favorable="y")


def test_no_word_is_said_for_two_keywords_nor_for_one_that_is_right() -> None:
    words = [word for said in SAID_FOR.values() for word in said]
    assert len(words) == len(set(words))
    known = {
        p
        for f in ("count", "measure", "check")
        for p in inspect.signature(getattr(eq, f)).parameters
    }
    assert not known & set(words)
    assert set(SAID_FOR) <= known


def test_what_functions_hand_on_is_known() -> None:
    plan = eq.plan(PEOPLE, sensitive_features="sex", label="hired", min_group=5, na=["?"])
    assert plan.additions >= 0
    check = eq.check(PEOPLE, sensitive_features="sex", label="hired", max_abs_ub=1, na=["?"])
    assert check.status == "inside"
    change = eq.diff(PEOPLE, PEOPLE, sensitive_features="sex", label="hired", min_count=3)
    assert len(change)


def test_the_functions_are_themselves_to_others() -> None:
    assert pickle.loads(pickle.dumps(eq.measure)) is eq.measure
    assert "sensitive_features" in inspect.signature(eq.measure).parameters
    assert "Parameters\n" in eq.measure.__doc__


# --- columns that nobody named -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["count", "measure", "plan", "sample_weight", "compare_missing"])
def test_the_columns_there_are_are_listed_and_none_is_chosen(name: str) -> None:
    with pytest.raises(InputError, match="`sensitive_features` and `label` are missing") as refused:
        getattr(eq, name)(PEOPLE)
    text = str(refused.value)
    assert "has: id, sex, race, hired, always." in text
    assert text.endswith("Columns with few values: sex (2), race (4), hired (2).")


def test_what_was_named_is_not_suggested_again() -> None:
    with pytest.raises(InputError, match=r"^`label` is missing: name the label column") as refused:
        eq.measure(PEOPLE, sensitive_features=["sex"])
    assert str(refused.value).endswith("Columns with few values: race (4), hired (2).")
    with pytest.raises(InputError, match=r"^`sensitive_features` is missing") as refused:
        eq.measure(PEOPLE, label="hired")
    assert str(refused.value).endswith("Columns with few values: sex (2), race (4).")


def test_an_empty_list_names_nothing() -> None:
    with pytest.raises(InputError, match="`sensitive_features` is missing"):
        eq.measure(PEOPLE, sensitive_features=[], label="hired")


def test_only_the_first_rows_of_a_file_are_looked_at(tmp_path) -> None:
    path = tmp_path / "long.parquet"
    n = 30_000
    late = ["a", "b"] * 5_000 + [f"v{i}" for i in range(n - 10_000)]
    pa.parquet.write_table(pa.table({"late": late, "sex": ["w", "m"] * (n // 2)}), path)
    with pytest.raises(InputError, match=r"first 10,000 rows: late \(2\), sex \(2\)") as refused:
        eq.measure(path)
    assert f"{path} has: late, sex." in str(refused.value)


def test_columns_of_a_query_are_those_listed(tmp_path) -> None:
    path = tmp_path / "people.csv"
    pa.csv.write_csv(pa.table(PEOPLE), path)
    with pytest.raises(
        InputError, match=r"has: gender, hired\. Columns with few values: gender \(2\)"
    ):
        eq.measure(path, sql="SELECT sex AS gender, hired FROM input;")


def test_labels_alone_need_the_columns_beside_them() -> None:
    with pytest.raises(InputError, match="with `y`, give the sensitive columns themselves"):
        eq.measure(y=["a", "b"])
    with pytest.raises(InputError, match="name the data and its columns"):
        eq.measure()
