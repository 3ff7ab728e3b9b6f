"""The shell command and the Python beside a room give what the room shows."""

from __future__ import annotations

import contextlib
import io
import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the explorer needs the extra web: pip install '.[web]'")

import equipoise as eq
from equipoise.cli import app
from equipoise.web import tasks
from equipoise.web.desk import Desk
from equipoise.web.settings import ExplorerSettings
from equipoise.web.tasks import room_named
from equipoise.web.twins import Twin, outside_name, python_value, quoted, write_twins

PEOPLE = "sex,race group,age,hired,n\n" + "".join(
    f"{sex},{race},{age},{hired},{1 + (i * 7 + age) % 5}\n"
    for i, (sex, race) in enumerate([("w", '"a, b"'), ("m", '"a, b"'), ("w", "'c'"), ("m", "'c'")])
    for age in range(20, 70, 3)
    for hired in (["no", "yes"] if (i + age) % 3 else ["no", "no", "?"])
)


class NoCrew:
    """Counts where the test is, without processes."""

    def run(self, task, *given, user, **_):
        return task(*given)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    root = tmp_path / "root"
    root.mkdir()
    (root / "people.csv").write_text(PEOPLE)
    (root / "-odd name.csv").write_text(PEOPLE)
    (root / "other.csv").write_text(PEOPLE.replace("w,a", "m,a", 3))
    monkeypatch.chdir(root)
    return Desk(ExplorerSettings(root=root, home=tmp_path / "home", workers=1), NoCrew())


def answered(desk, name, **asked):
    """What a room shows, and its two twins."""
    room = room_named(name)
    query = room.query.model_validate(asked)
    ask = desk.with_counts(room, desk.ask(room, query, "me"), "me")
    shown = json.loads(tasks.answer(name, ask, "json"))
    (_, shell), (_, python) = write_twins(room.twin(ask, shown))
    return shown, shell, python


def run_shell(text):
    """Run the lines of a shell, and return what the last one prints."""
    printed = io.StringIO()
    for line in text.splitlines():
        words = shlex.split(line)
        assert words[0] == "equipoise"
        last = [] if "-o" in words else ["--json"]
        with contextlib.redirect_stdout(printed):
            assert app.run([*words[1:], *last, "--quiet"]) in (0, 1)
    return json.loads(printed.getvalue()) if printed.getvalue() else None


def run_python(text):
    """Run the lines of Python, and return their result."""
    known: dict = {}
    exec(text.replace("print(result)", ""), known)
    return known["result"]


TABLE = {"data": "people.csv", "sensitive_features": ["sex", "race group"], "label": "hired"}
BINNED = {**TABLE, "sensitive_features": ["sex", "age"], "bins": ["age=30,45.5", "age=30,45"]}
MISSING = {**TABLE, "na": ["?", "x,y"], "missing_label": "group"}
COUNTED = {**TABLE, "count": "n", "data": "-odd name.csv"}


@pytest.mark.parametrize("table", [TABLE, BINNED, MISSING, COUNTED])
@pytest.mark.parametrize(
    "view",
    [
        {},
        {"label_value": "yes", "sort": "n", "limit": 0.2},
        {"evidence": "worse", "search": "W", "order": 2},
        {"inside": "sex=w", "evidence": "evident", "min_count": 3, "uncertainty": True},
        {"uncertainty": False, "adjust": "by"},
    ],
)
def test_bias(desk, table, view):
    shown, shell, python = answered(desk, "bias", **table, **view, limit_rows=1000)
    expected = [(row["pattern"], row["label"], row["ub"]) for row in shown["rows"]]
    printed, result = run_shell(shell), run_python(python)
    for rows in (printed["rows"], result.to_dict()["rows"]):
        found = [(_pattern(row["group"]), row["label"], row["ub"]) for row in rows]
        assert found == expected


def _pattern(group):
    return str(eq.Group({k: eq.MISSING if v is None else v for k, v in group.items()}))


@pytest.mark.parametrize(
    "asked",
    [
        {"tolerance": 0.1},
        {"tolerance": 0.2, "allow": "both", "labels": "free", "min_group": 5},
        {"tolerance": 0.1, "cost_add": ["sex=w 2.5", "race group='a, b' 3"], "budget": 12.5},
        {"tolerance": 0.3, "at_least_each": ["sex 60"], "constrain": ["marginals"]},
        {"move": ["sex=w, hired=yes +7", "sex=m, hired=no -3"], "tolerance": 0.2},
        {"allow": "both", "tolerance": 0.15, "deletable": ["sex=m"], "may_vanish": True},
    ],
)
def test_plan(desk, asked):
    shown, shell, python = answered(desk, "plan", **TABLE, **asked)
    printed, result = run_shell(shell), run_python(python)
    for found in (printed, result.to_dict()):
        assert (found["additions"], found["deletions"]) == (shown["additions"], shown["deletions"])
        assert found["cost"] == pytest.approx(shown["cost"])
        assert found["certificate"]["reached"] == shown["certificate"]["reached"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"at_x": 3, "at_y": 5},
        {"x": "add sex=w, hired=yes", "y": "delete sex=m, hired=no", "limits": ["x<=9", "n>=50"]},
        {
            "x": "add sex=w",
            "y": "add hired=yes",
            "group": "sex=w",
            "label_value": "yes",
            "cost_y": 2,
        },
    ],
)
def test_map(desk, asked):
    shown, shell, python = answered(
        desk, "map", **{**TABLE, "sensitive_features": ["sex"]}, **asked
    )
    printed, result = run_shell(shell), run_python(python)
    for found in (printed, result.to_dict()):
        assert found["ub"] == pytest.approx(shown["ub"])
        assert found["points"] == shown["points"]


def test_two_tables(desk):
    shown, shell, python = answered(desk, "compare", **TABLE, other="other.csv", min_count=2)
    printed, result = run_shell(shell), run_python(python)
    for rows in (printed["rows"], result.to_dict()["rows"]):
        assert [row["change"] for row in rows] == [r["change"] for r in shown["tables"]["rows"]]


def test_pinned_plans(desk):
    pins = ["name=cheap+one&tolerance=0.3", "name=by%20hand&move=sex%3Dw%2C+hired%3Dyes+%2B5"]
    shown, shell, python = answered(desk, "compare", **TABLE, pin=pins)
    names = ["cheap one", "by hand"]
    assert shown["plans"]["names"] == names
    printed, result = run_shell(shell), run_python(python)
    assert list(result.names) == names
    assert [plan["name"] for plan in printed["plans"]] == names
    changes = [cell["changes"] for cell in shown["plans"]["cells"]]
    assert [list(cell.changes) for cell in result.cells] == changes


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
def test_a_word_is_one_word_of_the_shell(text):
    (word,) = shlex.split(quoted(text))
    assert word == text


@given(
    st.recursive(
        st.text()
        | st.integers()
        | st.booleans()
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_a_value_is_written_as_python_reads_it(value):
    assert eval(python_value(value)) == value


def test_the_example_is_made_only_for_the_example(desk):
    (desk.settings.root / "demo").mkdir()
    (desk.settings.root / "demo" / "people.csv").write_text(PEOPLE)
    _, shell, _ = answered(desk, "bias", **{**TABLE, "data": "demo/people.csv"})
    assert shell.startswith("equipoise measure demo/people.csv ")
    step = Twin("measure", "measure", (outside_name("example/adult.parquet"),), {}, ())
    (_, shell), _ = write_twins([step])
    assert shell.startswith("equipoise demo --output demo ")
    assert shell.endswith("\nequipoise measure demo/people.parquet")


def test_an_audit_form_says_once_what_it_does_not_cover(desk):
    room = room_named("audit")
    asked = {**TABLE, "form": "uniform-guidelines", "selected_value": "yes"}
    ask = desk.ask(room, room.query.model_validate(asked), "me")
    page = tasks.answer("audit", ask, "part").decode()
    assert page.count("What this form does not cover</h3>") == 1
