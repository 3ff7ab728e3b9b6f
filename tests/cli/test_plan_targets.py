"""``equipoise plan`` with targets from another table, shares, coverage and objectives."""

from __future__ import annotations

import json

import pytest

from equipoise.cli.app import run

COMPAS = ["plan", "compas", "-s", "sex,race", "-l", "risk", "--count", "n", "--quiet"]
FIXED = ["--reference", "original", "--allow", "both", "--tolerance", "0.1"]
CENSUS = "sex,risk,people\nw,L,700\nw,M,220\nw,H,80\nm,L,640\nm,M,235\nm,H,125\n"


@pytest.fixture
def census(tmp_path):
    path = tmp_path / "census.csv"
    path.write_text(CENSUS)
    return str(path)


def planned(arguments, capsys):
    assert run([*COMPAS, *FIXED, *arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_target_rates_of_a_file(census, capsys):
    plan = planned(["--target-rates", census, "--target-count", "people"], capsys)
    assert plan["request"]["target_rates"]["source"] == census
    assert plan["lacking"] == {"target_rates": []}
    assert plan["prices"].keys() == {"target_rates"}


def test_shares_and_coverage(census, capsys):
    asked = ["--group-share", "race=c", "0.4", "--share-tolerance", "0.05"]
    plan = planned([*asked, "--at-least-each", "sex, race", "7000"], capsys)
    names = [c["constraint"] for c in plan["certificate"]["constraints"] if c["holds"]]
    assert "at least 0.35 of all rows are race=c" in names
    assert "at least 7,000 rows of every group of sex, race" in names
    shares = ["--target-shares", census, "--target-count", "people", "--share-tolerance", "0.1"]
    assert planned(shares, capsys)["prices"]["group_shares"] > 0


def test_objectives(capsys):
    plan = planned(["--objective", "additions"], capsys)
    assert (plan["additions"], plan["optimum"]["value"], plan["optimum"]["bound"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target-count", "people"], "--target-count"),
        (["--at-least-each", "sex, sex", "3"], "--at-least-each"),
        (["--group-share", "sex=w", "2"], "--group-share"),
        (["--objective", "rows", "--budget", "3"], "--budget"),
    ],
)
def test_errors_name_the_flags(arguments, words, capsys):
    assert run([*COMPAS, *FIXED, *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_file_that_is_not_there(capsys):
    assert run([*COMPAS, "--target-rates", "nowhere.csv"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err
