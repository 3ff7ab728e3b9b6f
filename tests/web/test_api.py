"""The JSON twin of every room: the numbers of the library, every option once, and what can be typed."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import html
import io
import json
import re
import shlex
import sys
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the explorer needs the extra web: pip install '.[web]'")

import equipoise as eq
import serving
import stream_stores
from equipoise.cli.app import run
from equipoise.options import options_of
from equipoise.options.declaration import option as declare
from equipoise.web.application import TWINS
from equipoise.web.exports import without_formulas
from equipoise.web.forms import form_field
from equipoise.web.pages import island, render
from equipoise.web.rooms.room import TABLE_OPTIONS
from equipoise.web.schema import as_pairs, keywords_of, offered, query_model
from equipoise.web.twins import python_call, shell_command

ADULT = {"data": "adult", "sensitive_features": ["sex", "race"], "label": "income"}
NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}",
    "=1+1",
    "a,b 'c'",
]


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api")
    root = folder / "root"
    root.mkdir()
    write(root / "people.csv", people(["sex", "race", "hired"]))
    write(root / "after.csv", people(["sex", "race", "hired"], fewer=3))
    stream_stores.write_store(root / "bias.sqlite")
    write(root / "-odd name.csv", people(["-sex", "a, b", 'say "hi"']))
    write(root / f"{NASTY[0].replace('/', '')}.csv", nasty())
    lake = root / "lake"
    lake.mkdir()
    write(root / "staff.csv", numbered(people(["sex", "race", "hired"]), 0))
    write(lake / "more.csv", numbered(people(["sex", "race", "hired"], fewer=5, again=40), 10_000))
    (root / "rules.toml").write_text("[check]\nmax_abs_ub = 0.2\n")
    with serving.explorer(folder) as running:
        yield running


def people(names, *, fewer=0, again=8):
    rows = [names]
    for number in range(again):
        rows += [["w", "a", "yes" if number % 4 == 0 else "no"]] * (5 - number % 3)
        rows += [["w", "b", "yes" if number % 5 == 0 else "no"]] * 3
        rows += [["m", "a", "no" if number % 3 == 0 else "yes"]] * (6 - fewer)
        rows += [["m", "b", "yes" if number % 2 else "no"]] * 4
    return rows


def numbered(rows, first):
    """The same rows, of different people, in words that need no mapping."""
    words = {"w": "Female", "m": "Male"}
    numbers = range(first, first + len(rows))
    below = [
        [words.get(v, v) for v in (*row, str(n))] for row, n in zip(rows[1:], numbers, strict=False)
    ]
    return [[*rows[0], "id"], *below]


def nasty():
    """A table whose columns and values are all markup, formulas or templates."""
    rows = [[NASTY[0], NASTY[1], NASTY[2], "=cmd|' /C calc'!A0"]]
    for number in range(60):
        values = [NASTY[number % 5], NASTY[(number // 2) % 5], NASTY[number % 2], str(number)]
        rows.append(values)
    return rows


def write(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture
def client(explorer):
    with explorer.client() as client:
        yield client


def ask(client, path, **query):
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def part_of(client, room, **query):
    answer = client.get(f"/{room}/part", params=query)
    assert answer.status_code == 200, answer.text
    return answer.text


# --- the numbers --------------------------------------------------------------------------------

ASKED = {
    "table": ADULT,
    "bias": {**ADULT, "limit": 0.2, "at": "sex=Female"},
    "plan": {**ADULT, "tolerance": 0.1, "cost_add": ["sex=Female 2"]},
    "map": {**ADULT, "at_x": 500, "at_y": 20},
    "lake": {
        "data": "people.csv",
        "sensitive_features": ["sex"],
        "label": "hired",
        "lake": "lake",
        "tolerance": 0.1,
    },
    "compare": {
        "data": "people.csv",
        "other": "after.csv",
        "sensitive_features": ["sex", "race"],
        "label": "hired",
        "pin": ["name=a&tolerance=0.1", "name=b&tolerance=0.2"],
    },
    "frontier": ADULT,
    "monitor": {"store": "bias.sqlite", "stream": "loans"},
    "audit": {"data": "adult", "form": "local-law-144", "sex": "sex", "race": "race", "selected": "income", "selected_value": ">50K"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", [room.name for room in TWINS])
def test_every_room_has_a_twin(client, name):
    told = client.get(f"/api/{name}", params=ASKED[name])
    assert told.status_code == 200, told.text
    assert told.json()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table", "bias", "plan", "map", "compare"])
def test_the_page_and_the_twin_tell_the_same(client, name):
    told = ask(client, f"/api/{name}", **ASKED[name])
    page = part_of(client, name, **ASKED[name])
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    shown = json.loads(found[1])
    assert shown == {k: told[k] for k in shown}
    assert len(shown) > 0.5 * len(told)


@pytest.mark.slow
def test_the_bias_is_that_of_the_library(client):
    told = ask(client, "/api/bias", **ADULT, limit_rows=1000)
    table = eq.measure("adult", sensitive_features=["sex", "race"], label="income")
    expected = {(str(r.group), r.label): (r.ub, r.n_group, r.q_value) for r in table}
    assert {
        (r["pattern"], r["label"]): (r["ub"], r["n_group"], r["q_value"]) for r in told["rows"]
    } == expected
    assert told["total"] == len(table)


@pytest.mark.slow
def test_the_plan_is_that_of_the_library(client):
    told = ask(client, "/api/plan", **ASKED["plan"])
    plan = eq.plan(
        "adult",
        sensitive_features=["sex", "race"],
        label="income",
        tolerance=0.1,
        cost_add=[("sex=Female", 2)],
    )
    assert (told["cost"], told["additions"], told["deletions"]) == (
        plan.cost,
        plan.additions,
        plan.deletions,
    )
    assert told["certificate"]["max_abs_ub_after"] == plan.certificate.max_abs_ub_after
    assert [c["add"] for c in told["cells"]] == [c.add for c in plan.moves]
    page = part_of(client, "plan", **ASKED["plan"])
    assert f"+{plan.additions:,}" in page


@pytest.mark.slow
def test_the_map_is_that_of_the_library(client):
    chosen = {
        **ASKED["map"],
        "x": "add sex=Female, income=>50K",
        "y": "delete sex=Male, income=>50K",
    }
    told = ask(client, "/api/map", **chosen)
    mapped = eq.policy_map(
        "adult",
        sensitive_features=["sex", "race"],
        label="income",
        x=chosen["x"],
        y=chosen["y"],
        at=[500, 20],
    )
    assert told["ub"] == mapped.to_dict()["ub"]
    assert told["point"] == mapped.chosen.to_dict()


@pytest.mark.slow
def test_the_comparison_is_that_of_the_library(client, explorer):
    told = ask(client, "/api/compare", **{k: v for k, v in ASKED["compare"].items() if k != "pin"})
    change = eq.diff(
        explorer.root / "people.csv",
        explorer.root / "after.csv",
        sensitive_features=["sex", "race"],
        label="hired",
    )
    assert told["tables"]["total"] == len(change)
    assert told["tables"]["rows"] == change.top(100).to_dict()["rows"]


@pytest.mark.slow
def test_pieces_of_the_list_make_the_whole_list(client):
    whole = ask(client, "/api/bias", **ADULT, limit_rows=1000)["rows"]
    pieces = []
    for offset in range(0, len(whole), 7):
        told = ask(client, "/api/bias", **ADULT, offset=offset, limit_rows=7, rows_only=True)
        assert set(told) == {"total", "offset", "rows"}
        pieces += told["rows"]
    assert pieces == whole


# --- every option once --------------------------------------------------------------------------


@pytest.mark.slow
def test_the_document_lists_every_option_once(client):
    described = ask(client, "/api/openapi.json")
    for room in TWINS:
        parameters = described["paths"][f"/api/{room.name}"]["get"]["parameters"]
        listed = [p["name"] for p in parameters if p["in"] == "query"]
        assert len(listed) == len(set(listed)), room.name
        known = {p["name"]: p for p in parameters}
        for option in (*TABLE_OPTIONS, *room.options):
            told = known[option.keyword]
            assert told["description"] == option.help
            kinds = told["schema"].get("anyOf", [told["schema"]])
            kinds = [k for k in kinds if k.get("type") != "null"]
            (kind,) = kinds
            if option.choices:
                assert tuple(kind.get("enum", [kind.get("const")])) == option.choices
            elif option.is_switch:
                assert kind["type"] == "boolean"
            elif option.is_number:
                assert kind["type"] == ("integer" if option.is_whole else "number")
                for bound, key in BOUNDS.items():
                    limit = getattr(option, bound)
                    if limit is not None and abs(limit) != float("inf"):
                        assert kind[key] == limit, (option.keyword, bound)
            elif option.is_repeatable:
                assert kind["type"] == "array"
            else:
                assert kind["type"] == "string"


BOUNDS = {
    "at_least": "minimum",
    "at_most": "maximum",
    "above": "exclusiveMinimum",
    "below": "exclusiveMaximum",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bias", "plan", "map", "lake", "compare"])
def test_the_form_has_every_option(client, name):
    room = next(room for room in TWINS if room.name == name)
    page = client.get(f"/{name}", params=ADULT).text
    for option in room.options:
        assert f'name="{option.keyword}"' in page, option.keyword


@pytest.mark.slow
def test_the_form_of_the_table_has_every_option_of_reading(client):
    page = client.get("/table", params=ADULT).text + part_of(client, "table", **ADULT)
    for option in TABLE_OPTIONS:
        if option.keyword != "bins":  # which are dragged
            assert f'name="{option.keyword}"' in page, option.keyword


def test_an_option_is_declared_once_for_form_api_and_shell():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Request:
        new_thing: float = declare(
            0.5, help="How much of it.", group="Which groups", at_least=0, at_most=1, common=True
        )
        kinds: tuple[str, ...] = declare(
            (), help="Which of them.", group="Which groups", form="texts"
        )

    options = offered(Request)
    model = query_model("NewQuery", options)
    schema = model.model_json_schema()["properties"]
    assert schema["new_thing"]["description"] == "How much of it."
    assert {"maximum": 1, "minimum": 0, "type": "number"}.items() <= schema["new_thing"]["anyOf"][
        0
    ].items()
    made = model(new_thing="0.25", kinds=["a b", "-c"])
    given = keywords_of(made, options)
    assert given == {"new_thing": 0.25, "kinds": ["a b", "-c"]}
    assert as_pairs(made) == [("new_thing", "0.25"), ("kinds", "a b"), ("kinds", "-c")]
    field = form_field(options[0], 0.25)
    assert (field.kind, field.least, field.most, field.help) == ("number", 0, 1, "How much of it.")
    shell = shell_command("new", ["t.csv"], given, options)
    assert shell == "equipoise new t.csv --new-thing 0.25 --kinds 'a b' --kinds -c"
    assert (
        python_call("new", ["t.csv"], given)
        == 'result = eq.new("t.csv", new_thing=0.25, kinds=["a b", "-c"])'
    )


@pytest.mark.parametrize("value", ["2", "-1", "nan", "inf", "x", ""])
def test_what_an_option_does_not_allow_is_refused(value):
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Request:
        share: float = declare(0.5, help="", group="Data", at_least=0, at_most=1)
        word: Literal["a", "b"] = declare("a", help="", group="Data")

    model = query_model("Query", offered(Request))
    with pytest.raises(ValueError):
        model(share=value)
    with pytest.raises(ValueError):
        model(word=value)
    with pytest.raises(ValueError):
        model(other=value)


# --- what can be typed instead ------------------------------------------------------------------

ODD = {"data": "-odd name.csv", "sensitive_features": ["-sex", "a, b"], "label": 'say "hi"'}
PEOPLE = {"data": "people.csv", "sensitive_features": ["sex", "race"], "label": "hired"}
TYPED = [
    ("table", PEOPLE),
    ("bias", PEOPLE),
    ("bias", ODD),
    ("bias", {**PEOPLE, "na": ["b", "a, c"], "missing": "drop"}),
    ("bias", {**PEOPLE, "label_value": "yes", "sort": "ub", "inside": "sex=w"}),
    ("bias", {**PEOPLE, "evidence": "hidden", "limit": 0.05, "confidence": 0.9, "adjust": "by"}),
    ("bias", {**PEOPLE, "uncertainty": "false", "min_count": 10, "max_order": 1}),
    ("bias", {**ADULT, "sensitive_features": ["sex", "age"], "bins": "age=25,45.5,65"}),
    ("bias", {**ADULT, "sensitive_features": ["age"], "bins": "age=quantiles:3", "favourable": ">50K"}),
    ("plan", {**PEOPLE, "tolerance": 0.15}),
    ("plan", {**ODD, "tolerance": 0.15, "allow": "both"}),
    ("plan", {**PEOPLE, "tolerance": 0.1, "cost_add": ["sex=w 2.5", "sex=m, hired=yes 0.5"], "cost_delete": ["* 3"]}),
    ("plan", {**PEOPLE, "tolerance": 0.2, "at_least": ["sex=w, hired=yes 30"], "available": ["sex=w 100"]}),
    ("plan", {**PEOPLE, "policy": "rules.toml"}),
    ("plan", {**PEOPLE, "tolerance": 0.1, "constrain": ["sex=w", "race=a"], "allow": "both"}),
    ("plan", {**PEOPLE, "tolerance": 0.1, "constrain": "marginals", "allow": "both", "deletable": ["sex=m"], "may_vanish": "true"}),
    ("plan", {**PEOPLE, "budget": 10, "priority": ["sex=w", "race=b"]}),
    ("plan", {**PEOPLE, "move": ["sex=w, hired=yes +30", "sex=m, hired=yes -5"], "tolerance": 0.1}),
    ("plan", {**ODD, "move": ["-sex=w, 'say \"hi\"'=yes +3"]}),
    ("plan", {**PEOPLE, "labels": "free", "tolerance": 0.1, "reference": "original"}),
    ("map", {**PEOPLE, "x": "add sex=w, hired=yes", "y": "delete sex=m, hired=yes"}),
    ("map", {**PEOPLE, "x": "add sex=w, hired=yes", "y": "delete sex=m, hired=yes", "at_x": 7, "at_y": 2,
             "limits": ["x + y <= 60", "x<=40"], "tolerance": 0.05}),
    ("compare", {**PEOPLE, "other": "after.csv", "limit": 0.2}),
    ("compare", {**PEOPLE, "other": "people.csv"}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("room", "query"), TYPED)
def test_what_can_be_typed_does_the_same(client, explorer, monkeypatch, capsys, room, query):
    page = part_of(client, room, **query)
    shell, python = (html.unescape(text) for text in re.findall(r'data-copy="([^"]*)"', page))
    told = ask(client, f"/api/{'bias' if room == 'table' else room}", **query, **_whole(room))
    monkeypatch.chdir(explorer.root)
    assert same(room, told, typed(shell, capsys)), shell
    names = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(python, names)
    assert same(room, told, json.loads(names["result"].to_json())), python


def _whole(room):
    return {"limit_rows": 1000} if room in ("bias", "table") else {}


def typed(line, capsys):
    """What the command prints as JSON."""
    capsys.readouterr()
    first, *rest = shlex.split(line)
    assert first == "equipoise"
    code = run([*rest, "--json", "--quiet"])
    printed = capsys.readouterr()
    assert code in {0, 1}, printed.err
    return json.loads(printed.out) if printed.out else None


def same(room, told, other):
    """Whether the numbers are the same."""
    if room == "table":
        return {(str(r["group"]), r["label"], r["ub"]) for r in told["rows"]} == {
            (str(r["group"]), r["label"], r["ub"]) for r in other["rows"]
        }
    if room == "bias":
        return [(r["group"], r["label"], r["ub"]) for r in told["rows"]] == [
            (r["group"], r["label"], r["ub"]) for r in other["rows"]
        ]
    if room == "plan":
        names = ("additions", "deletions", "cost")
        return [told[n] for n in names] == [other[n] for n in names]
    if room == "map":
        return (told["ub"], told["points"]) == (other["ub"], other["points"])
    return told["tables"]["rows"] == other["rows"][:100]


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [{"move": ["sex=Female, hired=yes +3"]}, {"tolerance": 0.1, "budget": 5}],
)
def test_the_repair_that_can_be_typed_is_that_of_the_room(
    client, explorer, tmp_path, monkeypatch, capsys, more
):
    query = {
        "data": "staff.csv",
        "sensitive_features": ["sex"],
        "label": "hired",
        "lake": "lake",
        **more,
    }
    index = client.post("/api/lake/index", params={k: v for k, v in query.items() if k != "budget"})
    wait(client, index.json()["job"])
    done = wait(client, client.post("/api/lake/repair", params=query).json()["job"])
    assert done["state"] == "done", done
    page = part_of(client, "lake", **query)
    shell, python = (html.unescape(t) for t in re.findall(r'data-copy="([^"]*)"', page)[-2:])
    for text in (shell, python):
        folder = tmp_path / str(text is shell)
        folder.mkdir()
        for name in ("staff.csv", "lake"):
            (folder / name).symlink_to(explorer.root / name)
        monkeypatch.chdir(folder)
        if text is shell:
            told = [typed(line, capsys) for line in shell.splitlines()][-1]
        else:
            names = {}
            with contextlib.redirect_stdout(io.StringIO()):
                exec(python, names)
            told = json.loads(names["result"].to_json())
        assert told["acquired"]["added"] == done["result"]["added"] > 0, done["result"]["sentences"]
        assert told["acquired"]["max_abs_ub_after"] == done["result"]["max_abs_ub_after"]


def wait(client, job):
    assert serving.until(lambda: client.get(f"/api/jobs/{job}").json()["state"] != "running", 60)
    return client.get(f"/api/jobs/{job}").json()


TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), min_size=1, max_size=12
)
"""What can be a column or a value, and a word of a command."""


@given(names=st.lists(TEXT, min_size=1, max_size=3, unique=True), label=TEXT, data=TEXT)
def test_any_name_is_quoted_so_that_it_is_read_again(names, label, data):
    import click

    from equipoise.cli import options as cli_options
    from equipoise.options.count import CountRequest

    given = {"sensitive_features": names, "label": label}
    line = shell_command("measure", [data], given, options_of(CountRequest))
    seen = {}

    @click.command()
    @click.argument("data")
    @cli_options.request(CountRequest, only=("sensitive_features", "label"))
    def command(**read):
        seen.update(read)

    command.main(shlex.split(line)[2:], standalone_mode=False)
    assert list(seen["sensitive_features"]) == names
    assert seen["label"] == label
    assert seen["data"].removeprefix("./") == data.removeprefix("./")
    called = {}

    class Library:
        @staticmethod
        def measure(*words, **keywords):
            called.update(keywords, words=words)

    exec(python_call("measure", [data], given), {"eq": Library})
    assert called["sensitive_features"] == names
    assert called["label"] == label


# --- values are text ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("room", ["table", "bias", "plan", "map", "compare"])
def test_markup_in_names_and_values_is_text(client, room):
    name = f"{NASTY[0].replace('/', '')}.csv"
    query = {
        "data": name,
        "sensitive_features": [NASTY[0], NASTY[1]],
        "label": NASTY[2],
        "na": ["<b>x</b>"],
    }
    more = {
        "table": {},
        "bias": {"at": "", "search": "<i>", "inside": ""},
        "plan": {"tolerance": 0.3, "draft": "true"},
        "map": {},
        "compare": {"other": name, "pin": ["name=<script>alert(2)</script>&tolerance=0.3"]},
    }[room]
    for path in (f"/{room}", f"/{room}/part"):
        answer = client.get(path, params={**query, **{k: v for k, v in more.items() if v}})
        assert answer.status_code == 200, answer.text[:500]
        scripts = r"<script(?: type=\"application/json\" id=\"data\"| (?:type=\"module\" )?src=\"[^\"]*\"[^>]*)>"
        page = re.sub(scripts, "", answer.text)
        assert "<script" not in page
        assert "<img" not in page
        assert not re.search(r"<(b|i)>x?", page)
        assert ">49<" not in page
        assert "49.csv" not in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("room", "kind"), [("bias", "csv"), ("plan", "csv"), ("bias", "md"), ("bias", "html")]
)
def test_downloads_hold_no_formula_and_no_markup(client, room, kind):
    query = {
        "data": f"{NASTY[0].replace('/', '')}.csv",
        "sensitive_features": [NASTY[0], NASTY[1]],
        "label": NASTY[2],
    }
    answer = client.get(
        f"/api/{room}/file.{kind}",
        params={**query, **({"tolerance": 0.3} if room == "plan" else {})},
    )
    assert answer.status_code == 200, answer.text
    if kind == "csv":
        rows = list(csv.reader(io.StringIO(answer.text)))
        assert len(rows) > 5
        for cell in (cell for row in rows for cell in row):
            assert not re.match(r"\s*[=@+\uff1d]", cell), cell
            assert not cell.startswith("-") or re.fullmatch(r"-[\d.e-]+", cell), cell
    if kind == "html":
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t=", "\r=", "\n=", " =", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_no_cell_of_a_download_is_computed(start):
    written = io.StringIO()
    csv.writer(written).writerows([[f"{start}1+1", "b"], [f'{start}HYPERLINK("x")', "-2.5"]])
    rows = list(csv.reader(io.StringIO(without_formulas(written.getvalue()), newline="")))
    assert all(cell.startswith("'") for cell in (rows[0][0], rows[1][0]))
    assert (rows[0][1], rows[1][1]) == ("b", "-2.5")


def test_a_cell_may_be_very_long():
    csv.field_size_limit(131_072)
    assert len(without_formulas("a\n" + "x" * 300_000 + "\n")) > 300_000


@given(
    st.recursive(
        st.text(max_size=20) | st.floats(allow_nan=False, allow_infinity=False),
        st.lists,
        max_leaves=5,
    )
)
def test_data_in_a_page_ends_no_element(value):
    text = str(island({"a": value}))
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": value}


@given(st.text(max_size=40))
def test_the_text_of_a_problem_is_text(text):
    page = render("parts/problem.html", text=f"no {text}", chosen=True)
    inside = re.search(r'role="alert">(.*)</p>', page, re.DOTALL)[1]
    assert "<" not in inside
    assert html.unescape(inside) == f"No {text}"


# --- any call at all ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_call_is_an_error_of_the_explorer(explorer):
    """A hundred calls made up from the document; the benchmark makes thousands."""
    sys.path.insert(0, "tools")
    from calling import call

    found = call(explorer.address, explorer.tokens[0], calls=100)
    assert found.calls >= 100
    assert not found.problems, "\n".join(found.problems[:5])
