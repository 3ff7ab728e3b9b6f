"""Which groups `measure` shows."""

from __future__ import annotations

import json

from equipoise.cli import app

ADULT = ["measure", "adult", "-s", "sex,race", "-l", "income", "--json", "--quiet"]


def rows(capsys, *flags):
    assert app.run([*ADULT, *flags]) == 0
    return json.loads(capsys.readouterr().out)["rows"]


def test_groups_are_chosen_by_words_and_attributes(capsys):
    found = rows(capsys, "--search", "FEMALE black", "--attributes", "2")
    assert {tuple(row["group"].items()) for row in found} == {
        (("sex", "Female"), ("race", "Black"))
    }
    assert {len(row["group"]) for row in rows(capsys, "--attributes", "1")} == {1}


def test_groups_are_chosen_by_evidence(capsys):
    everything, evident = rows(capsys), rows(capsys, "--evident")
    assert evident == [row for row in everything if row["evident"]]
    assert 0 < len(evident) < len(everything)


def test_intersections_that_are_worse_than_their_parents(capsys):
    biases = {(*row["group"].items(), row["label"]): abs(row["ub"]) for row in rows(capsys)}
    worse = rows(capsys, "--worse")
    assert worse
    for row in worse:
        sex, race = row["group"].items()
        own = biases[sex, race, row["label"]]
        assert own > max(biases[sex, row["label"]], biases[race, row["label"]])
