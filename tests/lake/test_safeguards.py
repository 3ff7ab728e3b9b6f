"""What keeps rows out that must not be taken, and files that are read from being written to."""

from __future__ import annotations

import contextlib
import csv
import json
import shutil
from pathlib import Path

import duckdb
import pytest

import equipoise as eq
from equipoise.cli.app import run
from equipoise.errors import InputError
from equipoise.lake.tables.index import _working_copy, refresh

BASE = [
    *[("Female", "no")] * 14,
    *[("Female", "yes")] * 2,
    *[("Male", "no")] * 8,
    *[("Male", "yes")] * 8,
]
OFFER = [*[("Female", "yes")] * 20, *[("Male", "no")] * 20]


def write(path: Path, rows, header=("sex", "hired", "age"), first=20) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *((*row, first + i) for i, row in enumerate(rows))])


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path("people.csv"), BASE)
    write(Path("lake/staff.csv"), OFFER, first=60)


def plan():
    return eq.plan("people.csv", sensitive_features=["sex"], label="hired", tolerance=0.1)


def used(**options) -> list[str]:
    found = eq.Lake("lake").find(plan(), **options)
    return [candidate.name for candidate in found.survey.usable]


# ------------------------------------------------------------------------------- rows


@pytest.mark.slow
def test_a_copy_of_a_table_that_is_denied_is_not_used_either():
    shutil.copy("lake/staff.csv", "lake/copy.csv")
    Path("lake/link.csv").hardlink_to("lake/staff.csv")
    assert used() == ["copy.csv", "link.csv", "staff.csv"]
    found = eq.Lake("lake").find(plan(), deny=["staff.csv"])
    assert not found.survey.usable
    reasons = {c.name: c.barred for c in found.survey.barred}
    assert reasons["copy.csv"] == "it is the same as staff.csv, which may not be used"


@pytest.mark.slow
def test_consent_that_was_not_given_for_a_table_is_not_given_for_its_copy():
    shutil.copy("lake/staff.csv", "lake/copy.csv")
    Path("lake/sources.toml").write_text('[tables."copy.csv"]\nconsent = false\n', "utf-8")
    assert used() == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["staf.csv", "drafts/*"])
def test_conditions_of_a_table_that_is_not_there_are_refused(name):
    Path("lake/sources.toml").write_text(f'[tables."{name}"]\nconsent = false\n', "utf-8")
    with pytest.raises(InputError, match="which is not a table of the lake"):
        used()


@pytest.mark.slow
def test_a_codebook_of_an_attribute_nobody_counts_is_refused():
    with pytest.raises(
        InputError, match=r"'sx', which the plan does not count.*Did you mean 'sex'"
    ):
        used(codebook={"sx": {"1": "Male"}})


def test_a_view_is_no_table_of_a_lake():
    with contextlib.closing(duckdb.connect("lake/d.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS FROM read_csv('people.csv')")
        connection.execute("CREATE VIEW v AS SELECT * FROM t ORDER BY random()")
    assert [table.name for table in eq.Lake("lake").tables] == ["d.duckdb::t", "staff.csv"]


@pytest.mark.slow
def test_rows_that_cannot_become_numbers_are_named_as_the_reason():
    write(Path("people.csv"), BASE * 3, first=0)
    ages = ["unknown age" if sex == "Female" else 40 + i for i, (sex, _) in enumerate(OFFER)]
    rows = [(*row, age) for row, age in zip(OFFER, ages, strict=True)]
    write(Path("lake/staff.csv"), rows, header=("sex", "hired", "age", "nr"))
    # Repeated numbers: a text among them is no number of this kind.
    text = Path("people.csv").read_text("utf-8").splitlines()
    Path("people.csv").write_text(
        "\n".join([text[0], *(f"{x.rsplit(',', 1)[0]},{i % 9}" for i, x in enumerate(text[1:]))])
    )
    found = eq.Lake("lake").find(plan())
    assert found.lacks
    assert all(
        "at most with values that cannot become the base's types" in lack.reasons
        for _, lack in found.lacks
    )


@pytest.mark.slow
def test_rows_left_out_by_chance_are_warned_of():
    for path, rows in (("people.csv", BASE), ("lake/staff.csv", OFFER)):
        write(Path(path), [(*row, "x") for row in rows], header=("sex", "hired", "town", "nr"))
    narrow = "\n".join(
        "sex,hired" if i == 0 else ",".join(row) for i, row in enumerate([(), *BASE])
    )
    Path("people.csv").write_text(narrow + "\n", "utf-8")
    found = eq.Lake("lake").find(plan())
    assert not found.offers
    assert any("`dedupe='multiset'`" in sentence for sentence in found.sentences)
    with pytest.raises(eq.EquipoiseError, match="`dedupe='multiset'`"):
        eq.Lake("lake").acquire(plan(), "out.csv")


# ------------------------------------------------------------------------------ files


@pytest.fixture
def untouched():
    """Every file there was is as it was in the end."""
    before = {path: path.read_bytes() for path in Path().rglob("*.csv")}
    yield
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--report", "lake/staff.csv"],
        ["--report", "people.csv"],
        ["--report", "out.csv"],
        ["--plan-file", "lake/staff.csv"],
        ["--plan-file", "lake/sources.toml"],
        ["--ledger", "people.csv"],
        ["--plan-file", "nowhere/plan.json"],
        ["--report", "nowhere/page.html"],
        ["--ledger", "nowhere/ledger.csv"],
    ],
)
def test_a_repair_refuses_to_write_over_what_it_reads_before_it_begins(arguments, capsys):
    Path("lake/sources.toml").write_text("[default]\nrow_cost = 1\n", "utf-8")
    command = ["repair", "people.csv", "lake", "-s", "sex", "-l", "hired", "--tolerance", "0.1"]
    assert run([*command, "-o", "out.csv", *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert Path("lake/sources.toml").read_text("utf-8").startswith("[default]")
    assert not list(Path().glob("out*"))


@pytest.mark.slow
@pytest.mark.usefixtures("untouched")
def test_a_table_among_those_of_the_lake_is_refused():
    with pytest.raises(InputError, match="is inside the lake and would become one of its tables"):
        eq.Lake("lake").acquire(plan(), "lake/out.csv")


@pytest.mark.slow
@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("command", ["mapping", "plan"])
def test_a_mapping_and_a_plan_do_not_go_over_a_table(command):
    plan().write("plan.json")
    arguments = {
        "mapping": ["lake", "mapping", "plan.json", "lake", "-o", "lake/staff.csv"],
        "plan": [
            "plan",
            "people.csv",
            "-s",
            "sex",
            "-l",
            "hired",
            "--lake",
            "lake",
            "-o",
            "lake/staff.csv",
        ],
    }
    assert run(arguments[command]) == 2


def test_a_repair_that_fails_while_it_writes_leaves_nothing(monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("equipoise.lake.repair.destinations.write_ledger", fail)
    with pytest.raises(OSError, match="No space"):
        eq.repair("people.csv", "lake", "out.csv", sensitive_features=["sex"], label="hired")
    assert not [path for path in Path().iterdir() if path.name.startswith(("out", ".out"))]


# ------------------------------------------------------------------------------ plans


@pytest.mark.slow
def test_a_plan_made_with_what_a_lake_has_can_be_filled_from_it():
    write(Path("lake/staff.csv"), OFFER[:2], first=60)  # fewer than the cheapest plan needs
    made = eq.plan(
        "people.csv",
        sensitive_features=["sex"],
        label="hired",
        tolerance=0.3,
        allow="both",
        lake="lake",
    )
    assert made.additions <= 2
    done = eq.Lake("lake").acquire(made, "out.csv", base="people.csv")
    assert done.as_planned


def test_rows_come_from_one_place():
    with pytest.raises(InputError, match="rows come from one place"):
        eq.plan(
            "people.csv",
            sensitive_features=["sex"],
            label="hired",
            lake="lake",
            available_from="people.csv",
        )
    assert run(["plan", "people.csv", "-s", "sex", "-l", "hired", "--mapping", "m.toml"]) == 2


@pytest.mark.slow
def test_limits_that_stop_a_repair_are_named():
    done = eq.repair(
        "people.csv",
        "lake",
        None,
        sensitive_features=["sex"],
        label="hired",
        tolerance=0.1,
        budget=0,
    )
    assert not done.reached
    assert "The limits do not allow all these rows to be taken." in done.sentences
    assert any("over the budget" in sentence for sentence in done.sentences)
    assert json.loads(done.to_json())["reached"] is False


def test_files_that_another_run_has_found_meanwhile_are_not_forgotten(monkeypatch):
    lake, lock = eq.Lake("lake"), _working_copy.take_lock

    def wait(descriptor):
        monkeypatch.setattr(_working_copy, "take_lock", lock)
        write(Path("lake/late.csv"), OFFER, first=200)
        with monkeypatch.context() as free:
            free.setattr(_working_copy, "take_lock", lambda _: None)
            refresh(lake.index_path, lake.places, engine=lake.engine)
        lock(descriptor)

    monkeypatch.setattr(_working_copy, "take_lock", wait)
    done = refresh(lake.index_path, lake.places, engine=lake.engine)
    assert done.gone == 0
    names = [table.name for table in eq.Lake("lake", refresh=False).tables]
    assert names == ["late.csv", "staff.csv"]


# ----------------------------------------------------------------------- other columns

TOWNS = ("Rome", "Oslo")


def with_towns(rows, spelled=str, column="town"):
    header = ("sex", "hired", column, "age")
    return [(*row, spelled(TOWNS[i % 2])) for i, row in enumerate(rows)], header


def acquired(**options):
    return eq.Lake("lake").acquire(plan(), "out.csv", **options)


def towns() -> set[str]:
    with Path("out.csv").open(encoding="utf-8", newline="") as file:
        return {row["town"] for row in csv.DictReader(file)}


@pytest.mark.slow
def test_values_of_other_columns_are_written_as_the_base_writes_them():
    write(Path("people.csv"), *with_towns(BASE))
    write(Path("lake/staff.csv"), *with_towns(OFFER, str.upper), first=60)
    done = acquired()
    assert done.added
    assert towns() == set(TOWNS)
    lake = eq.Lake("lake")
    assert lake.replay("out.csv.ledger.parquet", repaired="out.csv").ok


@pytest.mark.slow
def test_values_of_other_columns_can_be_mapped():
    write(Path("people.csv"), *with_towns(BASE))
    names = {"Rome": "Roma", "Oslo": "Oslo"}
    write(Path("lake/staff.csv"), *with_towns(OFFER, names.get), first=60)
    text = eq.Lake("lake").mapping(plan())
    Path("mapping.toml").write_text(f'{text}\n[tables.values.town]\n"Roma" = "Rome"\n', "utf-8")
    assert acquired(mapping="mapping.toml").added
    assert towns() == set(TOWNS)
    assert eq.Lake("lake").replay("out.csv.ledger.parquet", repaired="out.csv").ok


@pytest.mark.slow
def test_a_column_about_someone_else_is_left_empty():
    write(Path("people.csv"), *with_towns(BASE))
    write(Path("lake/staff.csv"), *with_towns(OFFER, column="spouse_town"), first=60)
    done = acquired()
    assert done.shares[0].lacking == ("town",)
    assert towns() == {*TOWNS, ""}


@pytest.mark.slow
def test_rows_with_a_name_of_their_own_that_the_base_has_are_told_of():
    write(Path("lake/staff.csv"), OFFER, first=20)  # the numbers of the base, one for each row
    done = acquired(partial=True)
    assert 0 < done.known_again["age"] <= done.added
    assert any("`dedupe='key'` and `key='age'`" in sentence for sentence in done.sentences)


@pytest.mark.slow
def test_a_mapping_that_is_there_is_read_before_it_is_written_again(capsys):
    write(Path("lake/staff.csv"), [("12"[s == "Male"], h) for s, h in OFFER], first=60)
    plan().write("plan.json")
    command = ["lake", "mapping", "plan.json", "lake", "-o", "mapping.toml"]
    assert run(command) == 0
    said = Path("mapping.toml").read_text("utf-8").replace("use = false", "use = true")
    said = said.replace('"1" = ""', '"1" = "Female"').replace('"2" = ""', '"2" = "Male"')
    Path("mapping.toml").write_text(said, "utf-8")
    assert run(command) == 2
    assert "--mapping mapping.toml" in capsys.readouterr().err
    assert run([*command, "--mapping", "mapping.toml"]) == 0
    assert '"1" = "Female"' in Path("mapping.toml").read_text("utf-8")


@pytest.mark.slow
def test_replay_tells_a_harmless_change_from_a_harmful_one():
    acquired()
    with Path("lake/staff.csv").open("a", encoding="utf-8", newline="") as file:
        file.write("Female,yes,999\r\n")
    (problem,) = eq.Lake("lake").replay("out.csv.ledger.parquet").problems
    assert problem.endswith("rows that were taken from it have not.")


@pytest.mark.slow
def test_replay_finds_a_source_that_was_moved():
    acquired()
    Path("lake/archive").mkdir()
    Path("lake/staff.csv").rename("lake/archive/old.csv")
    (problem,) = eq.Lake("lake").replay("out.csv.ledger.parquet").problems
    assert problem == "staff.csv is no longer in the lake, but its content is, as archive/old.csv."


def test_a_plan_says_what_rows_are_to_be_bought():
    class Agency:
        name, cost = "agency", 1.0

        def draw(self, n):
            return ([(("Female", "yes"), None), (("Male", "no"), None)] * n)[:n]

    needed = plan()
    bought = eq.tailor([Agency()], needed)
    assert (bought.kept, bought.missing) == (needed.additions, {})
