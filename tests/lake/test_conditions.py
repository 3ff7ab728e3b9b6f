"""What a source costs, and whether it may be used: read from a file, or said what is wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.errors import InputError
from equipoise.lake.matching.mapping import read_codebook
from equipoise.lake.tables.conditions import (
    Conditions,
    Sources,
    is_denied,
    read_sources,
)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def sources(text, name="sources.toml"):
    Path(name).write_text(text, "utf-8")
    return read_sources(name, Path())


def test_a_name_counts_more_than_a_glob_and_a_later_glob_more_than_an_earlier():
    said = sources(
        """
        [default]
        row_cost = 1
        [tables."a.csv"]
        table_cost = 7
        [tables."*.csv"]
        table_cost = 2
        row_cost = 3
        [tables."a*"]
        licence = "CC-BY-4.0"
        row_cost = 4
        """
    )
    assert said.of("a.csv") == Conditions(7, 4, "CC-BY-4.0")
    assert said.of("b.csv") == Conditions(2, 3)
    assert said.of("b.parquet") == Conditions(1.0, 1)


def test_a_name_with_signs_of_a_glob_is_a_name():
    assert Sources({"[x].csv": {"row_cost": 2.0}}).of("[x].csv").row_cost == 2.0


def test_the_file_of_the_folder_is_read_if_there():
    assert read_sources(None, Path()) == Sources()
    Path("sources.toml").write_text("[default]\nconsent = true\n", "utf-8")
    assert read_sources(None, Path()).of("x").consent is True


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[other]\nx = 1", "has 'other'; only"),
        ("default = 3", "sections"),
        ("tables = 3", "sections"),
        ("[tables]\na = 3", "a in sources.toml must be a section"),
        ("[default]\nrow_costs = 3", "Did you mean 'row_cost'?"),
        ("[default]\nrow_cost = -1", "must be a number of at least 0"),
        ("[default]\nrow_cost = nan", "must be a number of at least 0"),
        ("[default]\nrow_cost = inf", "must be a number of at least 0"),
        ("[default]\nrow_cost = true", "must be a number of at least 0"),
        ("[default]\nrow_cost = '1'", "must be a number of at least 0"),
        ("[default]\nlicence = 3", "must be a text"),
        ("[default]\nconsent = 'no'", "must be true or false"),
        ("[default", "is not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(text, says):
    with pytest.raises(InputError) as error:
        sources(text)
    assert says in str(error.value)
    assert "sources.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_was_named_must_be_there():
    with pytest.raises(InputError, match=r"no\.toml cannot be read: No such file"):
        read_sources("no.toml", Path())


def test_why_a_table_is_denied():
    free, without = Conditions(), Conditions(consent=False)
    assert is_denied("drafts/a.csv", free, ["drafts/*"]) == "it is denied by 'drafts/*'"
    assert is_denied("drafts/a.csv", free, ["a.csv"]) is None
    assert is_denied("[a].csv", free, ["[a].csv"]) == "it is denied by '[a].csv'"
    assert is_denied("a.csv", without, []) == "the people in it gave no consent"
    assert is_denied("a.csv", free, []) is None


@pytest.mark.parametrize("text", ["sex = 3", "[sex]\n1 = 2", "[sex]\n1 = ['a']"])
def test_a_codebook_is_sections_of_texts(text):
    Path("book.toml").write_text(text, "utf-8")
    with pytest.raises(InputError, match=r"sex in book\.toml must be a section of texts"):
        read_codebook("book.toml")


def test_a_codebook_is_read():
    Path("book.toml").write_text('[sex]\n1 = "Male"\n"2 " = "Female"\n', "utf-8")
    assert read_codebook("book.toml") == {"sex": {"1": "Male", "2 ": "Female"}}
