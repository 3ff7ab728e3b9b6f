"""Messages of the library name parameters; those of a command its flags."""

from __future__ import annotations

import click
import pytest

import equipoise as eq
from equipoise.cli.app import cli, run
from equipoise.cli.flags import with_flags
from equipoise.errors import InputError

PEOPLE = "sex,race,income\nw,black,low\nm,white,high\nw,white,high\nm,black,low\n"


def parameters(*path):
    command = cli
    for name in path:
        with click.Context(command) as context:
            command = command.get_command(context, name)
    return command.params


@pytest.mark.parametrize(
    ("command", "text", "shown"),
    [
        ("plan", "`min_rows` is above `max_rows`.", "--min-rows is above --max-rows."),
        ("plan", "set `allow='both'`.", "set --allow both."),
        ("plan", "`tolerance=0.05`", "--tolerance 0.05"),
        ("plan", "`plan_missing=True`", "--plan-missing"),
        ("plan", "`cost_add={'sex=Female': 2}`", "--cost-add sex=Female 2"),
        (
            "plan",
            "`deletable=['sex=Male', 'age=<25']`",
            "--deletable sex=Male --deletable 'age=<25'",
        ),
        ("measure", "`sensitive_features` is missing", "--sensitive is missing"),
        ("measure", "`sensitive_features=['sex', 'race']`", "--sensitive sex,race"),
        ("measure", "`bins={'age': [25, 45.5]}`", "--bin age=25,45.5"),
        ("measure", "`bins={'age': 4}`", "--bin age=quantiles:4"),
        ("measure", "`label='over 50'`", "--label 'over 50'"),
        ("measure", "`header=False`, `uncertainty=False`", "--no-header, --no-uncertainty"),
        ("measure", "`lenient=True` or `lenient`", "--lenient or --lenient"),
        ("measure", "`data` has no rows", "DATA has no rows"),
        ("frontier", "`tolerances=[0.1, 0.2]`", "--tolerance 0.1 --tolerance 0.2"),
        ("map", "`limits`", "--limit"),
        ("missing", "`share`", "--take-away"),
        ("verify", "give `hash_key`", "give --hash-key-file"),
        ("find", "leave out `refresh=False`", "leave out --no-refresh"),
        ("evaluate", "`same_size=False`", "--own-size"),
    ],
)
def test_parameters_become_flags(command, text, shown):
    assert with_flags(text, parameters(command)) == shown


@pytest.mark.parametrize(
    "text", ["`nonsense`", "`no_such_option=3`", "`Some text`", "a ` b", "``label``"]
)
def test_what_is_no_parameter_of_the_command_stays(text):
    shown = with_flags(text, parameters("verify"))
    assert shown == text


def test_a_command_prints_flags_and_the_library_parameters(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        eq.plan("people.csv", sensitive_features="sex", label="income", deletable="sex=w")
    assert "`deletable` names rows that may be deleted" in str(refused.value)
    assert str(refused.value).endswith("use `allow='both'`.")
    asked = ["plan", "people.csv", "-s", "sex", "-l", "income", "--deletable", "sex=w"]
    assert run(asked) == 2
    error = capsys.readouterr().err
    assert "error: --deletable names rows" in error
    assert error.endswith("use --allow both.\n")


def test_columns_that_are_not_named_are_asked_for_in_flags(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    assert run(["measure", "people.csv"]) == 2
    error = capsys.readouterr().err
    assert "--sensitive and --label are missing" in error
    assert "as in --sensitive sex and --label income" in error


def test_a_parameter_of_another_command_is_spelled_as_there():
    shown = with_flags("restrict it with `where`, or `min_rows=3`.", parameters("verify"))
    assert shown == "restrict it with --where, or --min-rows 3."
