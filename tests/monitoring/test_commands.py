"""``equipoise monitor`` as it is typed: what is printed, exit codes, and files."""

from __future__ import annotations

import json

import pytest

import equipoise as eq
from equipoise.cli.app import run
from streams import biased, fill, quiet


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(line, *more):
    return run(["monitor", *line.split(), *more])


def people(path, hired):
    lines = [f"{sex},{'yes' if i < n else 'no'}" for sex, n in hired.items() for i in range(20)]
    path.write_text("\n".join(["sex,hired", *lines]), encoding="utf-8")


WHERE = "--store bias.sqlite --name hires"


def test_a_stream_is_added_to_checked_and_shown(folder, capsys):
    people(folder / "one.csv", {"w": 10, "m": 10})
    assert typed(f"add one.csv {WHERE} --sensitive sex --label hired --at 2026-11-14 --id one") == 0
    assert capsys.readouterr().out == "Added the batch one of 2026-11-14 with 40 rows to hires.\n"
    assert typed(f"add one.csv {WHERE} --at 2026-11-14 --id one") == 0
    assert "is already there. Nothing was changed." in capsys.readouterr().out
    for n in range(15, 30):
        people(folder / "day.csv", {"w": 2, "m": 12})
        assert typed(f"add day.csv {WHERE} --at 2026-11-{n}") == 0
    capsys.readouterr()
    assert typed(f"check {WHERE}") == 1
    out = capsys.readouterr().out
    assert out.startswith("hires: 16 batches with 640 rows, 2026-11-14 to 2026-11-29\nAlert: ")
    assert "outside  sex=w  yes" in out
    assert typed(f"check {WHERE} --max-abs-ub 0.9") == 0
    assert typed(f"show {WHERE} -o history.html") == 0
    page = (folder / "history.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "sex=w → yes" in page
    capsys.readouterr()
    assert typed(f"show {WHERE} --json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["schema"] == "equipoise.history/1"


def test_one_error_is_one_sentence_and_nothing_is_added(folder, capsys):
    people(folder / "one.csv", {"w": 10, "m": 10})
    typed(f"add one.csv {WHERE} -s sex -l hired --at 2026-11-14 --id one")
    people(folder / "two.csv", {"w": 11, "m": 10})
    (folder / "key").write_text("a secret of many letters", encoding="utf-8")
    before = eq.Monitor("bias.sqlite").counts("hires")
    capsys.readouterr()
    for line, why in (
        (f"add two.csv {WHERE} --id one", "correct it with --replace"),
        (f"add two.csv {WHERE} --at yesterday", "'yesterday' is not a time"),
        (f"add two.csv {WHERE} -s hired -l sex", "not hired and sex"),
        ("add two.csv --store bias.sqlite --name HIRES", "must not differ only in case"),
        (f"add two.csv {WHERE} --timezone Mars", "there is no time zone 'Mars'"),
        (f"add two.csv {WHERE} --tag north", "a tag must be written as name=value"),
        (f"add two.csv {WHERE} --weight sex", "leave out --weight"),
        (
            f"add two.csv {WHERE} --time-column day",
            "column 'day' not found in two.csv; it has: sex",
        ),
        (f"add two.csv {WHERE} --time-column sex", "has values that are not times, such as 'm'"),
        (f"add two.csv {WHERE} --time-column day --at 2026-11-14", "leave out --at"),
        (f"add two.csv {WHERE} --every week", "add --time-column, or leave out --every"),
        (f"add two.csv {WHERE} --every day", "add --time-column, or leave out --every"),
        (f"add two.csv {WHERE} --tag region=north --tag region=south", "is given twice"),
        ("check --store bias.sqlite --name hire", "Did you mean 'hires'?"),
        ("check --store none.sqlite --name hires", "there is no store none.sqlite"),
        (f"check {WHERE} --webhook http://localhost/x", "together"),
        (f"check {WHERE} --webhook-always", "--webhook-always requires --webhook"),
        (
            f"check {WHERE} --webhook garbage --webhook-key-file key",
            "not a valid address of a webhook",
        ),
        (f"check {WHERE} --policy none.toml", "there is no file none.toml"),
        (f"plan {WHERE} --window 3x", "'3x' is not a time span"),
        (f"withdraw {WHERE} --id two", "'two' of hires is not there"),
    ):
        assert typed(line) == 2, line
        captured = capsys.readouterr()
        assert why in captured.err, line
        assert captured.err.startswith("error: ")
        assert captured.out == ""
    for given, why in (("", "must not be empty"), ("x" * 201, "must have at most 200 characters")):
        assert run(["monitor", "add", "two.csv", *WHERE.split(), "--id", given]) == 2
        assert f"the id of a batch {why}" in capsys.readouterr().err
    assert eq.Monitor("bias.sqlite").counts("hires") == before


def test_a_table_is_split_and_what_is_left_out_is_told(folder, capsys):
    table = folder / "rows.csv"
    table.write_text(
        "t,sex,hired\n2026-03-27T23:30:00Z,w,yes\n2026-03-27,m,no\n,w,no\n2026-03-27,w,\n",
        encoding="utf-8",
    )
    line = f"add rows.csv {WHERE} -s sex -l hired --time-column t --timezone Europe/Berlin"
    assert typed(line) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "Added 2 batches with 2 rows to hires, 2026-03-27 to 2026-03-28.",
        "1 row without a time was left out.",
        "1 row without a label was left out.",
    ]
    table.write_text("t,sex,hired\n2026-03-27,m,no\n2026-03-28,w,no\n", encoding="utf-8")
    assert typed(line) == 2
    assert "correct it with --replace, or give this table an --id" in (capsys.readouterr().err)
    assert typed(f"{line} --replace") == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "Corrected 1 batch.",
        "Skipped 1 batch that was already there.",
    ]
    # A default is no error where it does not apply.
    (folder / "equipoise.toml").write_text('[monitor]\nevery = "month"\n', encoding="utf-8")
    assert typed(f"add rows.csv {WHERE} --at 2026-04-01") == 0
    assert typed(f"add rows.csv {WHERE} --time-column t --id more") == 0
    assert "Added the batch more 2026-03-01 of 2026-03-01" in capsys.readouterr().out


def test_defaults_and_rules_come_from_the_configuration(folder, capsys):
    (folder / "equipoise.toml").write_text(
        '[monitor]\nstore = "bias.sqlite"\nname = "hires"\nsensitive = ["sex"]\nlabel = "hired"\n'
        'alpha = 0.01\n[check]\nsensitive = ["sex"]\nlabel = "hired"\nmax-abs-ub = 0.95\n',
        encoding="utf-8",
    )
    for n in range(10, 28):
        people(folder / "day.csv", {"w": 2, "m": 12})
        assert typed(f"add day.csv --at 2026-11-{n}") == 0
    capsys.readouterr()
    assert typed("check --json") == 0
    told = json.loads(capsys.readouterr().out)["watched"]
    assert (told["alpha"], told["rules"][0]["max_abs"]) == (0.01, 0.95)
    assert typed("check --max-abs-ub 0.1") == 1
    (folder / "equipoise.toml").write_text('[monitor]\nstor = "x"\n', encoding="utf-8")
    assert typed("check") == 2
    assert "[monitor] in the configuration has no key 'stor'" in capsys.readouterr().err


def test_the_name_of_the_configuration_leaves_all_streams_to_be_had(folder, capsys):
    with eq.Monitor("bias.sqlite") as monitor:
        fill(monitor, quiet(2))
        fill(monitor, quiet(2), name="other")
    (folder / "equipoise.toml").write_text(
        '[monitor]\nstore = "bias.sqlite"\nname = "hires"\n', encoding="utf-8"
    )
    assert typed("check") == 0
    capsys.readouterr()
    assert typed("list --json") == 0
    assert [s["name"] for s in json.loads(capsys.readouterr().out)["streams"]] == ["hires", "other"]
    assert typed("metrics") == 0
    assert 'equipoise_status{stream="other"}' in capsys.readouterr().out
    assert typed("list --name hires") == 0
    assert capsys.readouterr().out.startswith("hires: 2 batches")


def test_batches_and_streams_are_listed(folder, capsys):
    with eq.Monitor("bias.sqlite") as monitor:
        fill(monitor, quiet(5))
        fill(monitor, quiet(2), name="other")
    assert typed("list --store bias.sqlite") == 0
    assert (
        "hires  sex        hired        5   500  2026-01-01  2026-01-05" in capsys.readouterr().out
    )
    assert typed(f"list {WHERE} --top 2") == 0
    out = capsys.readouterr().out
    assert out.startswith("hires: 5 batches")
    assert out.count("2026-01-") == 2
    assert typed("list --store bias.sqlite --json") == 0
    assert [s["name"] for s in json.loads(capsys.readouterr().out)["streams"]] == ["hires", "other"]


def test_the_history_is_changed_by_name_and_reason(folder, capsys):
    with eq.Monitor("bias.sqlite") as monitor:
        fill(monitor, biased(60))
        first = monitor.batches("hires").batches[0].id
    assert typed(f"withdraw {WHERE} --id {first} --reason test") == 0
    assert typed(f"acknowledge {WHERE}", "--reason", "the form is mended") == 0
    assert typed(f"merge {WHERE} --older-than 4w --every month") == 0
    err = capsys.readouterr().err
    assert f"withdrew the batch {first} of hires" in err
    assert "restart with the next batch" in err
    assert "merged 30 batches of hires into 1" in err
    kinds = [event.kind for event in eq.Monitor("bias.sqlite").history("hires").events]
    assert kinds == ["withdrawn", "acknowledged", "merged"]


def test_a_window_is_planned_for(folder, capsys):
    with eq.Monitor("bias.sqlite") as monitor:
        fill(monitor, biased(40))
    assert typed(f"plan {WHERE} --window 30d --tolerance 0.1 -o plan.json") == 0
    plan = eq.Plan.read(folder / "plan.json")
    assert plan.counts.n == 3000
    assert plan.certificate.reached
    assert typed(f"plan {WHERE} --since 2026-02-01 --until 2026-02-03 --tolerance 0.1 --json") == 0
    capsys.readouterr()


def test_metrics_are_printed_or_written(folder, capsys):
    with eq.Monitor("bias.sqlite") as monitor:
        fill(monitor, biased(20))
    assert typed("metrics --store bias.sqlite") == 0
    out = capsys.readouterr().out
    assert 'equipoise_status{stream="hires"} 1' in out
    assert out.endswith("# EOF\n")
    assert typed("metrics --store bias.sqlite -o bias.prom --max-abs-ub 0.95") == 0
    assert 'equipoise_status{stream="hires"} 0' in (folder / "bias.prom").read_text("utf-8")


def test_metrics_are_written_without_the_streams_that_cannot_be_checked(folder, capsys):
    with eq.Monitor("bias.sqlite") as monitor:
        fill(monitor, biased(3))
    (folder / "other.csv").write_text("age,hired\n1,yes\n2,no\n", encoding="utf-8")
    assert typed("add other.csv --store bias.sqlite --name other -s age -l hired") == 0
    (folder / "limits.toml").write_text(
        '[check]\n[[check.rules]]\ngroup = "sex=w"\nmax-abs-ub = 0.2\n', encoding="utf-8"
    )
    capsys.readouterr()
    metrics = "metrics --store bias.sqlite --policy limits.toml"
    assert typed(f"{metrics} -o bias.prom") == 2
    text = (folder / "bias.prom").read_text("utf-8")
    assert 'equipoise_check_failed{stream="other"} 1\n' in text
    assert 'equipoise_check_failed{stream="hires"} 0\n' in text
    assert 'equipoise_status{stream="hires"}' in text
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("error: other cannot be checked: ")
    assert "no attribute 'sex'" in said
    assert typed(f"{metrics} --name other") == 2
    assert capsys.readouterr().out == ""


def test_a_bundled_table_of_days_names_its_columns(folder, capsys):
    assert (
        typed("add compas-days --store bias.sqlite --name compas --time-column day --every month")
        == 0
    )
    assert (
        "Added 24 batches with 7,214 rows to compas, 2013-01-01 to 2014-12-01."
        in capsys.readouterr().out
    )
    assert eq.Monitor("bias.sqlite").counts("compas").request.sensitive == ("sex", "race")


def test_a_history_is_shown_in_every_format(folder, capsys):
    with eq.Monitor("bias.sqlite") as monitor:
        fill(monitor, biased(40))
    assert typed(f"show {WHERE}") == 0
    out = capsys.readouterr().out
    assert "The last 12 of 40 periods:" in out
    assert out.count("2026-02-0") == 9 + 1
    assert typed(f"show {WHERE} --top 3") == 0
    assert "The last 3 of 40 periods:" in capsys.readouterr().out
    assert typed(f"show {WHERE} --markdown --top 3") == 0
    out = capsys.readouterr().out
    assert "The last 3 of 40 periods:" in out
    assert "| 2026-02-09 | 1 | 100 |" in out
    assert typed(f"show {WHERE} -o history.md") == 0
    assert "The last 12 of 40 periods:" in (folder / "history.md").read_text("utf-8")
    capsys.readouterr()
    assert typed(f"show {WHERE} --csv --group sex=w --timezone Europe/Berlin") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 40 * 2
    assert lines[1].startswith("2026-01-01T01:00:00+01:00,")
    assert typed(f"show {WHERE} --group sex=*") == 2
    assert "'sex' has no value '*'; it has: w, m" in capsys.readouterr().err
    assert typed(f"show {WHERE} -o history.html --top 5") == 0
    page = (folder / "history.html").read_text("utf-8")
    assert "The last 5 of 40 periods" in page
    assert '<p class="source">bias.sqlite, 2026-01-01 to 2026-02-09</p>' in page


def test_a_check_without_an_alert_shows_who_is_nearest_to_one(folder, capsys):
    with eq.Monitor("bias.sqlite") as monitor:
        fill(monitor, quiet(20))
        fill(monitor, biased(20), name="biased")
    assert typed(f"check {WHERE}") == 0
    out = capsys.readouterr().out
    assert "The largest e-values so far (the first alert requires 80):" in out
    assert out.count("inside  sex=") == 4
    assert "UB: 1 − rate in the group / overall rate" in out
    assert typed("check --store bias.sqlite --name biased") == 1
    out = capsys.readouterr().out
    assert "inside" not in out
    assert "UB: 1 − rate in the group / overall rate" in out
    assert out.endswith("ever reached with a probability of at most 1 in 100.\n")
