"""The files that users of the explorer may name, and those they may not."""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import os
import pkgutil
from urllib.parse import urlencode

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise.options
import serving
from equipoise.errors import EquipoiseError, InputError, SourceNotFound
from equipoise.options import options_of
from equipoise.web.places import Places, safe_name

ROWS = "sex,hired\n" + "w,yes\nw,no\nw,no\nm,yes\nm,yes\nm,no\n" * 10
SECRET = "sex,hired\nclassified,classified\n"
CHOSEN = {"sensitive_features": "sex", "label": "hired"}


def fill(root, outside):
    """Files below a root, and ways out of it."""
    root.mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.csv").write_text(SECRET)
    (root / "people.csv").write_text(ROWS)
    (root / ".hidden.csv").write_text(SECRET)
    (root / ".folder").mkdir()
    (root / ".folder" / "t.csv").write_text(SECRET)
    (root / "parts").mkdir()
    (root / "parts" / "a.csv").write_text(ROWS)
    (root / "parts" / "b.csv").write_text(ROWS)
    (root / "inside.csv").symlink_to(root / "people.csv")
    (root / "link.csv").symlink_to(outside / "secret.csv")
    (root / "linked").symlink_to(outside)
    (root / "loop").symlink_to(root / "loop")
    (root / "mixed").mkdir()
    (root / "mixed" / "a.csv").write_text(ROWS)
    (root / "mixed" / "b.csv").symlink_to(outside / "secret.csv")
    (root / "deep").mkdir()
    (root / "deep" / "folder").symlink_to(outside)


@pytest.fixture
def places(tmp_path):
    fill(tmp_path / "root", tmp_path / "outside")
    home = tmp_path / "home" / "user"
    for folder in ("uploads", "results"):
        (home / folder).mkdir(parents=True)
        (home / folder / "mine.csv").write_text(ROWS)
    other = tmp_path / "home" / "other" / "uploads"
    other.mkdir(parents=True)
    (other / "theirs.csv").write_text(SECRET)
    return Places(tmp_path / "root", home)


FORBIDDEN = [
    "",
    ".",
    "..",
    "../outside/secret.csv",
    "parts/../../outside/secret.csv",
    "parts\\..\\..\\outside\\secret.csv",
    "uploads/../../other/uploads/theirs.csv",
    "example/../other/uploads/theirs.csv",
    "{outside}/secret.csv",
    "/etc/passwd",
    "//etc/passwd",
    "file:///etc/passwd",
    "~/secret.csv",
    ".hidden.csv",
    ".folder/t.csv",
    "./people.csv",
    "link.csv",
    "linked/secret.csv",
    "linked",
    "loop",
    "mixed",
    "deep",
    "people.csv\0.parquet",
    "*.csv",
    "parts/*.csv",
    "-",
    "http://127.0.0.1:1/t.csv",
    "https://example.org/t.csv",
    "s3://bucket/t.parquet",
    "postgres://localhost/base",
    "nowhere.csv",
    "a" * 5000,
    "a/" * 2000,
    "\ud800.csv",
    "::",
    "::people.csv",
    "../outside/secret.csv::x",
    "adult::x",
    "C:\\secret.csv",
]


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_is_not_below_the_root_is_not_there(places, tmp_path, name):
    with pytest.raises(SourceNotFound) as refused:
        places.resolve(name.format(outside=tmp_path / "outside") if "{" in name else name)
    assert len(str(refused.value)) < 600


def test_what_is_below_the_root_is_found(places, tmp_path):
    root = tmp_path / "root"
    assert places.resolve("people.csv") == str(root / "people.csv")
    assert places.resolve("inside.csv") == str(root / "inside.csv")
    assert places.resolve("parts") == str(root / "parts")
    assert places.resolve("people.csv::x") == f"{root / 'people.csv'}::x"
    assert places.resolve("uploads/mine.csv") == str(places.home / "uploads" / "mine.csv")
    assert places.resolve("results/mine.csv") == str(places.home / "results" / "mine.csv")
    assert places.resolve("adult") == "adult"


def test_a_file_of_the_name_of_a_bundled_table_is_the_file(places, tmp_path):
    (tmp_path / "root" / "adult").mkdir()
    (tmp_path / "root" / "adult" / "t.csv").write_text(ROWS)
    assert places.resolve("adult") == str(tmp_path / "root" / "adult")


@given(st.text(max_size=80))
def test_no_name_leads_out(tmp_path_factory, name):
    root = tmp_path_factory.getbasetemp() / "any-root"
    if not root.exists():
        fill(root, tmp_path_factory.getbasetemp() / "any-outside")
    places = Places(root, root.parent / "any-home" / "user")
    try:
        found = places.file(name)
    except EquipoiseError:
        return
    assert found.resolve().is_relative_to(root.resolve())


def test_listed_are_tables_and_no_others(places):
    assert places.listed() == [
        "inside.csv",
        "people.csv",
        "mixed/a.csv",
        "parts/a.csv",
        "parts/b.csv",
        "uploads/mine.csv",
        "results/mine.csv",
    ]
    assert places.folders_listed() == ["deep", "mixed", "parts"]


def test_uploads_of_others_stay_hidden_though_they_are_below_the_root(tmp_path):
    home = tmp_path / "cache" / "home"
    for user in ("one", "two"):
        (home / user / "uploads").mkdir(parents=True)
        (home / user / "uploads" / f"{user}.csv").write_text(ROWS)
    places = Places(tmp_path, home / "one")
    assert places.listed() == ["uploads/one.csv"]
    assert "cache" not in places.folders_listed()
    assert places.resolve("uploads/one.csv")
    for name in (
        "cache",
        "cache/home",
        "cache/home/two/uploads/two.csv",
        "cache/home/one/uploads/one.csv",
        "uploads/two.csv",
    ):
        with pytest.raises(SourceNotFound):
            places.resolve(name)


def test_a_root_that_is_a_link_works(tmp_path):
    fill(tmp_path / "root", tmp_path / "outside")
    (tmp_path / "other").symlink_to(tmp_path / "root")
    places = Places(tmp_path / "other", tmp_path / "home" / "user")
    from equipoise.engines.duckdb import DuckDBEngine
    from equipoise.engines.sources import locate

    engine = DuckDBEngine(within=places.folders)
    assert len(engine.read(locate(places.resolve("people.csv")))) == 60
    engine.close()


def test_texts_lose_the_folders_of_the_machine(places, tmp_path):
    root = tmp_path / "root"
    hidden = places.without_paths
    assert hidden(f"{root}/people.csv is broken.") == "people.csv is broken."
    assert hidden(f"{root} holds no table.") == "the folder holds no table."
    assert hidden(f"{places.home}/uploads/mine.csv") == "uploads/mine.csv"
    assert hidden(f"{root}x/people.csv") == f"{root}x/people.csv"
    from equipoise import datasets

    assert hidden(str(datasets.path("adult"))) == "adult.parquet"
    assert "/" not in hidden(
        f"{os.environ.get('TMPDIR', '/tmp')}/equipoise-abcd_012/copy-0.parquet"
    )


def test_a_root_with_odd_letters_is_hidden_in_pages_and_json_too(tmp_path):
    root = tmp_path / 'a & "b" <c>'
    root.mkdir()
    places = Places(root, tmp_path / "home" / "user")
    assert places.without_paths(json.dumps(f"{root}/t.csv")) == '"t.csv"'
    assert places.without_paths(str(__import__("html").escape(f"{root}/t.csv"))) == "t.csv"


def test_the_root_of_the_disk_changes_no_text(tmp_path):
    from pathlib import Path

    places = Places(Path("/"), tmp_path / "user")
    assert places.without_paths("see http://a/b and /etc/x") == "see http://a/b and /etc/x"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd.csv", "passwd.csv"),
        ("a b;c.csv", "a_b_c.csv"),
        ("<script>alert(1)</script>.csv", "script_.csv"),
        ("-rf.csv", "-rf.csv"),
        ("nul\0.csv", "nul_.csv"),
        ("\u202egnp.csv", "_gnp.csv".strip("_")),
        ("é" * 300 + ".csv", "_.csv".strip("_.") or "csv"),
        ("...", "table"),
        ("", "table"),
        ("x" * 500 + ".csv", "x" * 76 + ".csv"),
    ],
)
def test_names_of_uploads_become_harmless(name, kept):
    made = safe_name(name)
    assert made == kept
    assert not set(made) & set("/\\\0<>&\"' ")


@given(st.text(max_size=120))
def test_any_name_becomes_the_name_of_a_file(name):
    made = safe_name(name)
    assert made
    assert len(made) <= 80
    assert made.isascii()
    assert not made.startswith(".")
    assert "/" not in made


# --- what is written ----------------------------------------------------------------------------


def test_what_is_kept_is_whole_or_not_there(places):
    name = places.write("uploads", "a.csv", io.BytesIO(b"a\n1\n"), most=100)
    assert (places.home / name).read_bytes() == b"a\n1\n"
    before = sorted((places.home / "uploads").iterdir())
    for content, why in ((b"x" * 101, "larger than"), (b"", "is empty")):
        with pytest.raises(InputError, match=why):
            places.write("uploads", "b.csv", io.BytesIO(content), most=100)
    assert sorted((places.home / "uploads").iterdir()) == before


def test_a_user_cannot_fill_the_disk(places):
    def fill():
        for number in range(100):
            content = b"%03d" % number * 33
            places.write("uploads", f"{number}.csv", io.BytesIO(content), most=100)

    with pytest.raises(InputError, match="delete all uploads"):
        fill()
    assert sum(p.stat().st_size for p in (places.home / "uploads").iterdir()) < 1300


# --- options that name files --------------------------------------------------------------------


def _declared():
    for module in pkgutil.iter_modules(equipoise.options.__path__):
        loaded = importlib.import_module(f"equipoise.options.{module.name}")
        for kind in vars(loaded).values():
            if isinstance(kind, type) and dataclasses.is_dataclass(kind):
                yield from options_of(kind)


def test_every_option_that_names_a_file_says_so():
    """An option that is not marked would let users name any file of the machine."""
    found = {}
    for option in _declared():
        words = f"{option.metavar or ''} {option.help}".lower()
        if any(word in (option.metavar or "") for word in ("FILE", "TABLE", "FOLDER", "PATH")):
            found[option.keyword] = option.names_file
        elif " file" in words or "table of" in words or "toml" in words:
            found.setdefault(option.keyword, option.names_file or option.keyword in NOT_FILES)
    assert {"policy", "target", "labels", "target_rates", "target_shares"} <= set(found)
    assert {"mapping", "codebook", "sources"} <= set(found)
    assert all(found.values()), [name for name, marked in found.items() if not marked]


NOT_FILES = {
    "by",
    "max_rows",
    "lenient",
    "encoding",
    "delimiter",
    "header",
    "dedupe",
    "where",
    "sql",
    "target_count",
    "force",
}
"""Options whose help speaks of files that the table is read from."""


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("places")
    root, outside = folder / "root", folder / "outside"
    fill(root, outside)
    (outside / "rules.toml").write_text("[check]\nmax_abs_ub = 0.1\n")
    (root / "rules.toml").write_text("[check]\nmax_abs_ub = 0.1\n")
    (root / "linked.toml").symlink_to(outside / "rules.toml")
    lake = root / "lake"
    lake.mkdir()
    (lake / "a.csv").write_text(ROWS)
    with duckdb.connect(str(root / "views.duckdb")) as base:
        base.execute(f"CREATE VIEW seen AS SELECT * FROM read_csv('{outside}/secret.csv')")
        base.execute("CREATE TABLE own AS SELECT 'w' AS sex, 'yes' AS hired")
    with serving.explorer(folder) as running:
        yield running


@pytest.fixture
def client(explorer):
    with explorer.client() as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in FORBIDDEN if "\0" not in name and name.isascii()]
)
def test_the_explorer_opens_nothing_else(client, explorer, name):
    outside = explorer.root.parent / "outside"
    given = name.format(outside=outside) if "{" in name else name
    asked = [
        ("/api/table", {"data": given}),
        ("/api/bias", {"data": given, **CHOSEN}),
        ("/api/compare", {"data": "people.csv", "other": given or "..", **CHOSEN}),
        ("/api/lake", {"data": "people.csv", "lake": given or "..", **CHOSEN}),
    ]
    options = ("policy", "target", "labels", "target_rates", "target_shares")
    asked += [("/api/plan", {"data": "people.csv", **CHOSEN, o: given or ".."}) for o in options]
    lake = {"data": "people.csv", "lake": "lake", **CHOSEN}
    asked += [("/api/lake", {**lake, o: given or ".."}) for o in ("mapping", "codebook", "sources")]
    pin = urlencode({"name": "a", "policy": given or ".."})
    asked += [("/api/compare", {"data": "people.csv", "pin": pin, **CHOSEN})]
    for path, query in asked:
        answer = client.get(path, params=query)
        assert answer.status_code == 422, (path, query, answer.text[:300])
        assert "classified" not in answer.text
        assert str(outside) not in answer.text.replace(given or "..", "")
        assert str(explorer.home) not in answer.text


@pytest.mark.slow
def test_files_of_options_below_the_root_are_used(client):
    told = client.get("/api/plan", params={"data": "people.csv", "policy": "rules.toml", **CHOSEN})
    assert told.status_code == 200, told.text
    refused = client.get(
        "/api/plan", params={"data": "people.csv", "policy": "linked.toml", **CHOSEN}
    )
    assert refused.status_code == 422


@pytest.mark.slow
def test_a_bundled_name_is_no_file_of_rules(client):
    for option in ("policy", "labels", "target"):
        answer = client.get("/api/plan", params={"data": "people.csv", option: "adult", **CHOSEN})
        assert answer.status_code == 422
        assert "there is no table or file" in answer.text


@pytest.mark.slow
def test_a_view_of_a_database_shows_nothing_from_outside(client):
    own = client.get("/api/table", params={"data": "views.duckdb::own"})
    assert own.status_code == 200, own.text
    seen = client.get("/api/table", params={"data": "views.duckdb::seen"})
    assert seen.status_code == 422
    assert "classified" not in seen.text


@pytest.mark.slow
def test_no_sql_is_taken_from_a_browser(client):
    for option, text in (
        ("where", "1=1"),
        ("sql", "SELECT 1"),
        ("engine", "memory"),
        ("threads", "99"),
    ):
        answer = client.get("/api/bias", params={"data": "people.csv", option: text, **CHOSEN})
        assert answer.status_code == 422
        assert "not valid" in answer.json()["error"]


@pytest.mark.slow
def test_a_lake_that_links_out_is_refused(client, explorer):
    answer = client.post(
        "/api/lake/index", params={"data": "people.csv", "lake": "mixed", **CHOSEN}
    )
    assert answer.status_code == 202
    job = answer.json()["job"]
    assert serving.until(lambda: client.get(f"/api/jobs/{job}").json()["state"] != "running", 30)
    told = client.get(f"/api/jobs/{job}").json()
    assert told["state"] == "failed"
    assert "link out of the folder" in told["error"]
    assert str(explorer.root) not in json.dumps(told)
