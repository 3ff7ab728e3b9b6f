"""``equipoise apply``: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.cli.app import run
from equipoise.plans.certificate import certify
from equipoise.plans.plan import rows_after
from equipoise.plans.problem import pose
from equipoise.plans.request import PlanRequest
from equipoise.plans.solution import Solution

PEOPLE = "id,sex,hired\n1,w,no\n2,w,no\n3,w,yes\n4,w,no\n5,m,yes\n6,m,no\n7,m,\n"
MORE = "sex,hired,id,town\nw,yes,a,Ulm\nw,yes,b,Bonn\nm,no,c,Ulm\nw,yes,d,Kiel\n"
TABLES = ["--to", "people.csv", "--pool", "more.csv"]
APPLY = ["apply", "plan.json", *TABLES, "-o", "out.csv"]


@pytest.fixture(autouse=True)
def _tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(PEOPLE, "utf-8")
    Path("more.csv").write_text(MORE, "utf-8")


def save_plan(add):
    """Write a plan that adds rows ``sex=w, hired=yes``."""
    counts = eq.count("people.csv", sensitive_features=["sex"], label="hired")
    rows = eq.Counts.from_mapping({("w", "yes"): add}, sensitive=["sex"], label="hired")
    request = PlanRequest()
    problem = pose(counts, request)
    moved = replace(
        eq.plan(counts), add=rows.with_axes(counts), delete=counts - counts, cost=float(add)
    )
    after = rows_after(problem, moved)
    proof = certify(problem, Solution(after, 0.0, "solver", problem.rates), after)
    plan = replace(moved, certificate=proof)
    Path("plan.json").write_text(plan.to_json(), "utf-8")


def there():
    return {p.name: p.read_bytes() for p in Path().iterdir() if p.is_file()}


def refused(arguments, capsys, code=2):
    """Nothing is printed or written but one sentence; give that."""
    before = there()
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert there() == before
    assert err.startswith("error: ")
    assert err.endswith(".\n")
    return err


def test_it_says_what_was_done(capsys):
    save_plan(2)
    assert run(APPLY) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out == (
        "Wrote out.csv: people.csv with 2 rows added from more.csv and 0 rows removed, 9 rows in "
        "all.\n"
        "The largest |UB| was 0.500 in people.csv and is 0.000 in out.csv, as counted there.\n"
        "Every row added or removed is listed in out.csv.changes.csv.\n"
    )
    lines = Path("out.csv").read_text("utf-8")
    assert lines.startswith(PEOPLE)
    listed = Path("out.csv.changes.csv").read_text("utf-8").splitlines()
    assert listed[0] == "action,source,row,md5,sex,hired"
    assert len(listed) == 3
    assert all(line.startswith("add,more.csv,") for line in listed[1:])


def test_json_is_the_dict_the_library_gives(capsys):
    save_plan(2)
    assert run([*APPLY, "--json", "--seed", "3"]) == 0
    printed = json.loads(capsys.readouterr().out)
    result = eq.apply("plan.json", to="people.csv", pool="more.csv", output="out.csv", seed=3)
    expected = result.to_dict()
    assert printed.pop("time") <= expected.pop("time")
    assert printed == expected


@pytest.mark.slow
def test_seeds(capsys):
    save_plan(2)
    found = set()
    for seed in (0, 0, 1, 2, 3, 4, 5):
        assert run([*APPLY, "--seed", str(seed), "-q"]) == 0
        found.add(Path("out.csv").read_text("utf-8"))
    assert 1 < len(found) <= 6


def test_every_option(capsys):
    save_plan(2)
    Path("people.csv").write_text(PEOPLE.replace(",", ";"), "latin-1")
    Path("more.csv").write_text("sex;hired\n" + "w;yes\n" * 2, "latin-1")
    options = "--missing-columns null --encoding latin-1 --delimiter ; --threads 2 --memory 1GB"
    more = [*options.split(), "--sidecar", "list.csv", "--force", "--partial", "-q"]
    assert run([*APPLY, *more]) == 0
    assert Path("out.csv").read_text("utf-8") == f"{PEOPLE}{',w,yes' + chr(10)}{',w,yes' + chr(10)}"
    assert Path("list.csv").exists()
    assert not Path("out.csv.changes.csv").exists()


def test_a_pool_that_is_too_small_exits_with_1(capsys):
    save_plan(2)
    Path("more.csv").write_text("id,sex,hired\nx,w,yes\n", "utf-8")
    sentence = refused(APPLY, capsys, code=1)
    assert "sex=w, hired=yes needs 2 and has 1" in sentence
    assert "--available-from more.csv" in sentence
    assert run([*APPLY, "--partial"]) == 1
    out = capsys.readouterr().out
    assert "not as planned: 7 rows instead of 8" in out
    assert Path("out.csv").read_text("utf-8") == PEOPLE + "x,w,yes\n"


def test_other_counts(capsys):
    save_plan(2)
    Path("people.csv").write_text(PEOPLE + "8,m,yes\n", "utf-8")
    assert "7 rows instead of 6, and sex=m, hired=yes has 2 instead of 1" in refused(APPLY, capsys)
    assert run([*APPLY, "--force", "-q"]) == 0


def test_bad_input(capsys):
    save_plan(2)
    assert "would occur twice" in refused([*APPLY, "--pool", "people.csv"], capsys)
    assert "cannot be written" in refused([*APPLY, "-o", "out.xlsx"], capsys)
    assert "--pool" in refused(["apply", "plan.json", "--to", "people.csv", "-o", "o.csv"], capsys)
    Path("more.csv").write_text("sex,hired\nw,yes\n", "utf-8")
    assert "does not have 'id'" in refused(APPLY, capsys)
    Path("more.csv").write_text("id,hired\nw,yes\n", "utf-8")
    command = [*APPLY, "--missing-columns", "null"]
    assert "column 'sex' not found in more.csv" in refused(command, capsys)
    assert "no plan no.json" in refused(["apply", "no.json", *TABLES, "-o", "out.csv"], capsys)
    Path("plan.json").write_text("{}", "utf-8")
    assert "not a plan" in refused(APPLY, capsys)


@pytest.mark.slow
def test_from_a_table_to_its_repair(capsys):
    lines = ["w,yes"] * 20 + ["w,no"] * 60 + ["m,yes"] * 50 + ["m,no"] * 50
    people = "id,sex,hired\n" + "".join(f"{i},{line}\n" for i, line in enumerate(lines))
    Path("people.csv").write_text(people, "utf-8")
    more = "".join(f"x{i},{line}\n" for i, line in enumerate(lines * 2))
    Path("more.csv").write_text("id,sex,hired\n" + more, "utf-8")
    for allow in ("add", "both"):
        plan = eq.plan(
            "people.csv", sensitive_features=["sex"], label="hired", tolerance=0.05, allow=allow,
            available_from="more.csv",
        )  # fmt: skip
        Path("plan.json").write_text(plan.to_json(), "utf-8")
        assert run([*APPLY, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert (printed["added"], printed["removed"]) == (plan.additions, plan.deletions)
        assert printed["max_abs_ub_after"] <= 0.05 < printed["max_abs_ub_before"]
        assert printed["fingerprint_after"] == plan.after().fingerprint
        ids = [line.split(",")[0] for line in Path("out.csv").read_text("utf-8").splitlines()]
        assert len(set(ids)) == len(ids) == printed["n_after"] + 1


def test_the_table_itself_may_be_replaced(capsys):
    save_plan(2)
    assert run(["apply", "plan.json", *TABLES, "-o", "people.csv", "-q"]) == 0
    assert Path("people.csv").read_text("utf-8").startswith(PEOPLE)
    counts = eq.count("people.csv", sensitive_features=["sex"], label="hired")
    assert counts.of("sex=w, hired=yes") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_stopped_on_the_way_it_leaves_nothing(how, code, tmp_path_factory):
    save_plan(2)
    # Arrow imports pandas when it first meets numbers, and forgets a Ctrl-C meanwhile.
    modules = tmp_path_factory.mktemp("modules")
    (modules / "pandas.py").write_text("raise ImportError", "utf-8")
    many = 3_000_000
    Path("more.csv").write_text("id,sex,hired\n" + "x,w,yes\n" * many, "utf-8")
    before = sorted(there())
    for delay in (0.3, 1.0, 2.0):  # a busy machine may still be loading modules
        process = subprocess.Popen(
            [sys.executable, "-m", "equipoise", *APPLY],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(Path.cwd()), "PYTHONPATH": str(modules)},
        )
        while not any(p.name.startswith("equipoise-") for p in Path().iterdir()):
            time.sleep(0.05)
        time.sleep(delay)
        assert process.poll() is None, process.communicate()
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
        if process.returncode == code:
            break
    assert process.returncode == code, err
    assert out == ""
    assert sorted(p.name for p in Path().iterdir()) == before
