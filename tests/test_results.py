"""Every public result is a table for other tools, HTML for a notebook and, with charts, a picture."""

from __future__ import annotations

import builtins
import dataclasses
import datetime
import inspect
import json
import math
import struct
from html.parser import HTMLParser
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.errors import InputError, MissingDependency
from equipoise.results import Drawable, Result, arrow_table
from people import people

INPUTS = {"CountRequest", "EquipoiseError", "Group", "Lake", "Monitor", "Policy", "Rule"}
"""What is given to functions, or holds what is: no result."""
NASTY = "<script>alert('&')</script>"
HOW = {"sensitive_features": ["sex"], "label": "hired"}


def returned(function):
    """The classes of this package that a function says it returns."""
    said = inspect.signature(function).return_annotation
    words = str(said).replace("|", " ").replace("[", " ").replace("]", " ").split()
    return [word.strip("'\",").rsplit(".", 1)[-1] for word in words]


def classes():
    """All classes of the package by name, as far as they are loaded."""
    import sys

    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("equipoise"):
            for key, value in vars(module).items():
                if inspect.isclass(value) and value.__module__.startswith("equipoise"):
                    found.setdefault(key, value)
    return found


def public_results():
    """Classes in ``__all__``, and what public functions and methods of these say they return."""
    public = {name: getattr(eq, name) for name in eq.__all__}
    for name in (
        "equipoise.lake.tables.hits",
        "equipoise.lake.repair.replay",
        "equipoise.evaluation.missing.comparison",
        "equipoise.evaluation.missing.simulation",
    ):
        __import__(name)
    known = classes()
    found = {name: value for name, value in public.items() if inspect.isclass(value)}
    functions = [value for value in public.values() if inspect.isfunction(value)]
    for value in list(found.values()):
        functions += [
            member
            for key, member in inspect.getmembers(value, inspect.isfunction)
            if not key.startswith("_")
        ]
    for function in functions:
        for word in returned(function):
            if word in known and hasattr(known[word], "to_dict"):
                found[word] = known[word]
    return {name: value for name, value in found.items() if name not in INPUTS}


def is_part(value):
    """Whether a class is a row of a result or a settled value, not a result of its own."""
    return value.__name__ in {
        "AuditSection",
        "Axis",
        "ComparedCell",
        "Finding",
        "Grid",
        "MapPoint",
        "PlanRequest",
        "Point",
        "Row",
    }


def test_every_public_result_gives_frames_and_html():
    found = public_results()
    assert {"BiasTable", "Plan", "Hits", "Replayed", "MissingValues", "Infeasible"} <= found.keys()
    lacking = {
        name
        for name, value in found.items()
        if not is_part(value) and not issubclass(value, Result)
    }
    assert not lacking


# --------------------------------------------------------------------------------- examples


def counts():
    return eq.Counts.from_mapping(
        {("m", "yes"): 60, ("m", "no"): 40, (NASTY, "yes"): 20, (NASTY, "no"): 80},
        sensitive=["sex"],
        label="hired",
    )


def csv(path, rows):
    lines = [f"{i},{sex},{hired}" for i, (sex, hired) in enumerate(rows, int(path.stem[-1]) * 1000)]
    path.write_text("\n".join(["id,sex,hired", *lines]), encoding="utf-8")


def infeasible():
    with pytest.raises(eq.Infeasible) as error:
        eq.plan(counts(), tolerance=0.01, max_rows=100, allow="add", reference="original")
    return error.value


def by_name(results):
    return {type(result).__name__: result for result in results}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A result of each class that needs no models, by its name."""
    from equipoise.lake.sampling.sources import TableSource

    place = tmp_path_factory.mktemp("results")
    (place / "lake").mkdir()
    base = place / "base1.csv"
    csv(
        base,
        [("Female", "no")] * 7
        + [("Female", "yes")] * 3
        + [("Male", "yes")] * 6
        + [("Male", "no")] * 4,
    )
    csv(place / "lake" / "more2.csv", [("Female", "yes")] * 9 + [("Male", "no")] * 9)
    lake = eq.Lake(place / "lake")
    plan = eq.plan(str(base), **HOW)
    done = eq.repair(str(base), lake, place / "out.csv", **HOW)
    applied = eq.apply(
        plan, to=str(base), pool=str(place / "lake" / "more2.csv"), output=place / "applied.csv"
    )
    table, planned = eq.measure(counts()), eq.plan(counts())
    monitor = eq.Monitor(place / "bias.sqlite")
    added = [monitor.add(counts(), name="s", at=f"2026-01-0{n}") for n in range(1, 9)]
    made = [
        table,
        eq.check(table, max_abs_ub=0.1),
        eq.diff(counts(), counts()),
        planned,
        planned.certificate,
        eq.frontier(counts(), sweep="coverage", values=[100, 200], tolerance=0.1),
        eq.compare([planned, eq.scenario(counts(), add={"sex=m, hired=no": 9})]),
        eq.frontier(counts(), points=4),
        eq.audit(counts(), form="local-law-144", sex="sex"),
        eq.policy_map(counts(), x="add sex=m, hired=no", y="add hired=yes"),
        infeasible(),
        counts(),
        applied,
        done,
        done.acquired,
        done.acquired.shift,
        done.verification,
        lake.find(plan, base=str(base)),
        lake.questions(plan, base=str(base)),
        lake.search(str(base)),
        lake.refresh(),
        lake.replay(done.acquired.ledger),
        added[0],
        monitor.check("s"),
        monitor.history("s"),
        monitor.streams(),
        monitor.batches("s"),
        eq.tailor([TableSource("<b>", [(("w",), i) for i in range(9)])], {("w",): 3}),
    ]
    return by_name(made)


@pytest.fixture(scope="module")
def trained():
    """The results for which models are trained, or missing values filled in; by their names."""
    rows = people(300)
    sex = [None if i % 9 == 0 else value for i, value in enumerate(rows["sex"].to_pylist())]
    missing = rows.set_column(0, "sex", [sex])
    asked = {**HOW, "methods": ["group", "drop"]}
    made = [
        eq.evaluate(rows, **HOW, models="logistic", repeats=2, jobs=1),
        eq.compare_missing(missing, **asked),
        eq.simulate_missing(rows, share=0.2, repeats=2, **asked),
    ]
    return by_name(made)


@pytest.fixture(params=["quick", pytest.param("trained", marks=pytest.mark.slow)])
def examples(request):
    return request.getfixturevalue(request.param)


@pytest.mark.slow
def test_there_is_an_example_of_every_result(quick, trained):
    wanted = {name for name, value in public_results().items() if not is_part(value)}
    assert wanted <= quick.keys() | trained.keys() | {"Result"}


def kinds(frame):
    return list(frame.columns)


class Fragment(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.rows = [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


def test_frames_hold_the_same_rows(examples):
    for name, result in examples.items():
        arrow = result.to_arrow()
        assert isinstance(arrow, pa.Table), name
        assert arrow.num_columns, name
        assert len(set(arrow.column_names)) == arrow.num_columns, name
        pandas, polars = result.to_pandas(), result.to_polars()
        assert list(pandas.columns) == polars.columns == arrow.column_names, name
        assert len(pandas) == polars.height == arrow.num_rows, name


def test_html_escapes_and_shows_a_table(examples):
    for name, result in examples.items():
        text = result._repr_html_()
        assert "<script" not in text, name
        tags = Fragment(text).tags
        assert "table" in tags, name
        assert set(tags) <= {"p", "table", "thead", "tbody", "tr", "th", "td"}, name


def test_every_result_says_what_it_is_and_when_and_by_what_it_was_made(examples):
    for name, result in examples.items():
        assert all(isinstance(sentence, str) for sentence in result.sentences), name
        assert result.sentences or result.heading, name
        assert isinstance(result.exit_code, int), name
        assert datetime.datetime.fromisoformat(result.time).tzinfo is not None, name
        assert result.version == eq.__version__, name


def test_every_result_is_text_markdown_and_json(examples):
    for name, result in examples.items():
        text, markdown = result.text(), result.markdown()
        assert text.strip(), name
        assert "| --- |" in markdown.replace("---:", "---") or name == "Replayed", name
        plain = result.to_dict()
        assert json.loads(result.to_json()) == json.loads(result.to_json(indent=2)), name
        assert json.loads(result.to_json()).keys() == plain.keys(), name
        assert "\n" in result.to_json(2), name


def test_every_result_has_a_page(examples, tmp_path):
    pytest.importorskip("vl_convert")
    for name, result in examples.items():
        eq.report(result, tmp_path / f"{name}.html", source="<people>.csv")
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert "<script" not in page, name
        assert f"equipoise {eq.__version__}" in page, name
        assert result.time in page, name


def test_time_and_version_do_not_make_results_differ():
    first = eq.plan(counts()).certificate
    assert dataclasses.replace(first, time="2000-01-01T00:00:00+00:00", version="0") == first


def test_frames_say_what_the_result_says(quick):
    plan = quick["Plan"]
    assert plan.to_pandas()["add"].sum() == plan.additions
    points = quick["Frontier"].to_arrow().to_pylist()
    assert [p["cost"] for p in points] == [p.cost for p in quick["Frontier"].points]
    done = quick["Repaired"].to_pandas()
    assert done["after"].sum() == quick["Repaired"].acquired.after.n
    assert quick["Acquired"].to_pandas()["rows"].sum() == quick["Acquired"].added
    assert quick["Verification"].to_pandas()["holds"].all()
    held = quick["Certificate"].to_arrow().to_pylist()
    assert held[0]["after"] == quick["Certificate"].n_after
    found = quick["Check"].to_pandas()
    assert list(found["status"]) == [f.status for f in quick["Check"].findings()]


def test_frames_need_a_library_and_say_which(quick, monkeypatch):
    real = builtins.__import__

    def absent(name, *rest, **more):
        if name.partition(".")[0] in ("pandas", "polars"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    for method, library in (("to_pandas", "pandas"), ("to_polars", "polars")):
        with pytest.raises(MissingDependency, match=rf"'{library}'.*equipoise\[frames\]"):
            getattr(quick["Plan"], method)()
    assert "<table>" in quick["Plan"]._repr_html_()


def test_columns_of_several_types_are_text_and_what_is_undefined_is_null():
    table = arrow_table(("a", "b", "c"), [(1, "x", math.nan), (2.5, 3, eq.MISSING)])
    assert table.to_pydict() == {"a": [1.0, 2.5], "b": ["x", "3"], "c": [None, None]}
    assert arrow_table(("a",), []).schema.field("a").type == pa.null()


# --------------------------------------------------------------------------------- pictures


@pytest.mark.slow
def test_what_has_charts_draws_them_as_png_and_svg(quick, trained, tmp_path):
    pytest.importorskip("vl_convert")
    examples = {**quick, **trained}
    drawn = {name: result for name, result in examples.items() if isinstance(result, Drawable)}
    wanted = {
        "Audit",
        "BiasTable",
        "Plan",
        "PlanComparison",
        "Frontier",
        "Sweep",
        "PolicyMap",
        "Repaired",
        "Evaluation",
        "History",
    }
    assert wanted | {"MissingValues", "MissingSimulation"} == drawn.keys()
    for name, result in drawn.items():
        result.save_plot(tmp_path / "x.png", scale=1)
        png = (tmp_path / "x.png").read_bytes()
        assert png.startswith(b"\x89PNG\r\n\x1a\n"), name
        width, height = struct.unpack(">II", png[16:24])
        assert 300 < width < 3000, name
        assert 50 < height < 6000, name
        picture = result.plot()
        picture.save(tmp_path / "x.svg")
        ElementTree.parse(tmp_path / "x.svg")
        assert picture._repr_svg_() == (tmp_path / "x.svg").read_text(encoding="utf-8")
        picture.to_altair().to_dict()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.png", "x.svg"]


def test_a_picture_holds_the_names_and_every_chart(quick, tmp_path):
    pytest.importorskip("vl_convert")
    svg = quick["BiasTable"].plot().to_svg()
    words = " ".join("".join(node.itertext()) for node in ElementTree.fromstring(svg).iter())
    assert str(eq.Group({"sex": NASTY})) in words
    assert "interval" in words
    assert "UB of hired by sex" in words


def test_a_picture_has_an_ending_and_something_to_draw(quick, tmp_path):
    pytest.importorskip("vl_convert")
    with pytest.raises(InputError, match=r"\.png or \.svg"):
        quick["Plan"].save_plot(tmp_path / "x.gif")
    assert not list(tmp_path.iterdir())
    empty = eq.measure(counts(), min_count=10_000)
    with pytest.raises(InputError, match="nothing to draw"):
        empty.plot()


def test_without_the_drawing_library_the_message_names_the_extra(quick, monkeypatch):
    real = builtins.__import__

    def absent(name, *rest, **more):
        if name.partition(".")[0] in ("altair", "vl_convert"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingDependency, match=r"equipoise\[charts\]"):
        quick["Plan"].plot()


def test_a_picture_is_named_in_a_line_where_nothing_can_be_drawn():
    table = eq.measure(people(), sensitive_features=["sex"], label="hired")
    assert len(repr(table.plot())) < 100
