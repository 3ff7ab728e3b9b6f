"""Columns that are not counted: written as the base writes them where that is certain."""

from __future__ import annotations

import datetime
import json
from collections import Counter

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import equipoise as eq
from equipoise.engines.profiling import Profiler
from equipoise.errors import InputError
from equipoise.lake.lake import Lake
from equipoise.lake.matching.conversions import decide, read_base_column, tally_of
from equipoise.lake.matching.notations import (
    TallyView,
    date_formats,
    missing_texts,
    patterns_for,
    tallies_from,
    tally_values,
)
from lakes import ledger, read, write

HOW = {"sensitive_features": ["sex"], "label": "hired", "tolerance": 0.05}
HEADER = ("sex", "hired", "since", "pay", "member", "town")
FIRST = datetime.date(2021, 1, 1)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def day(i):
    return FIRST + datetime.timedelta(days=i)


def iso(i):
    return day(i).isoformat()


def us(i):
    return day(i).strftime("%m/%d/%Y")


def german(number):
    """Write a number as 1.234,5."""
    whole, _, rest = f"{number:,.2f}".partition(".")
    return f"{whole.replace(',', '.')},{rest}"


def person(i, sex, hired, *, since=iso, pay=str, member=("YES", "NO"), town=str):
    place = "Ulm" if i % 3 else "Bonn"
    return (sex, hired, since(i), pay(900 + 7.25 * i), member[i % 2], town(place))


CELLS = [("Female", "yes", 10), ("Female", "no", 40), ("Male", "yes", 30), ("Male", "no", 30)]


def people(first=0, cells=CELLS, **how):
    kinds = [(sex, hired) for sex, hired, n in cells for _ in range(n)]
    return [person(first + i, sex, hired, **how) for i, (sex, hired) in enumerate(kinds)]


MORE = [("Female", "yes", 60), ("Female", "no", 20), ("Male", "yes", 20), ("Male", "no", 20)]
FOREIGN = {"since": us, "pay": german, "member": ("Y", "N"), "town": str.upper}


def base(kind="csv"):
    write("people.csv", HEADER, people())
    if kind == "parquet":
        typed = pc.read_csv("people.csv")
        assert [str(typed[n].type) for n in ("since", "pay")] == ["date32[day]", "double"]
        truths = pa.array([value == "YES" for value in typed["member"].to_pylist()])
        pq.write_table(typed.set_column(4, "member", truths), "people.parquet")
    return f"people.{kind}"


def repaired(data="people.csv", output="out.csv", **options):
    return eq.repair(data, "lake", output, **HOW, **options)


def checked(data, output):
    files = {"plan": f"{output}.plan.json", "ledger": f"{output}.ledger.parquet"}
    found = eq.verify(output, base=data, **files)
    replayed = Lake("lake").replay(files["ledger"], repaired=output)
    assert replayed.ok, replayed.text()
    return found


def treated(done):
    return {t.name: t for share in done.acquired.shares for t in share.treated}


# --------------------------------------------------------------------- through the whole loop


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_added_rows_are_written_as_the_base_writes_them(kind, ending):
    data, output = base(kind), f"out.{ending}"
    write("lake/a.csv", HEADER, people(200, MORE, **FOREIGN), delimiter=";")
    done = repaired(data, output)
    assert done.acquired.added
    assert done.verification.ok
    found = checked(data, output)
    assert found.sentences[0] == "All 8 checks hold."
    # What the source would have said, had it been written as the base is.
    truth = Counter((*row[:2], row[2], float(row[3]), row[4]) for row in people(200, MORE))
    if ending == "csv":
        rows = read(output)
    else:
        table = pq.read_table(output)
        assert {n: str(table[n].type) for n in ("since", "pay")} == {
            "since": "date32[day]",
            "pay": "double",
        }
        rows = table.to_pylist()
    spelled = {"True": "YES", "False": "NO", "true": "YES", "false": "NO"}
    for row in rows[len(people()) :]:
        member = spelled.get(str(row["member"]), row["member"])
        said = (row["sex"], row["hired"], str(row["since"]), float(row["pay"]), member)
        assert truth[said] > 0
        truth[said] -= 1
        assert row["town"] in ("Ulm", "Bonn")
    told = treated(done)
    assert {name: t.action for name, t in told.items()} == dict.fromkeys(
        ("since", "pay", "member"), "converted"
    )
    assert told["since"].values == done.acquired.added
    assert any("dates such as 03/25/2021 are 2021-03-25 in the base" in s for s in done.sentences)
    mapping = json.loads(ledger(f"{output}.ledger.parquet")[-1]["mapping"])
    assert mapping["conversions"]["since"]["read"] == "%m/%d/%Y"
    assert mapping["other_columns"] == "convert"


@pytest.mark.slow
def test_dates_that_can_be_read_both_ways_are_left_missing_and_told_of():
    base()
    both = [
        person(i, s, h, since=lambda i: f"{1 + i % 12:02}/{1 + i // 2 % 12:02}/2021")
        for i, (s, h) in enumerate((sex, hired) for sex, hired, n in MORE for _ in range(n))
    ]
    write("lake/a.csv", HEADER, both)
    done = repaired()
    added = read("out.csv")[len(people()) :]
    assert {row["since"] for row in added} == {""}
    assert all(row["pay"] for row in added)
    assert treated(done)["since"].action == "left missing"
    assert treated(done)["since"].values == len(added) > 0
    (said,) = [s for s in done.sentences if "left missing" in s]
    assert "since of a.csv" in said
    assert "day and month can be read both ways" in said
    assert checked("people.csv", "out.csv").ok
    assert "since" in json.loads(ledger()[-1]["mapping"])["left_missing"]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_is_kept_is_noted_by_the_check_and_changes_no_type(ending):
    base()
    write("lake/a.csv", HEADER, people(200, MORE, **FOREIGN), delimiter=";")
    output = f"out.{ending}"
    done = repaired(output=output, other_columns="keep")
    found = checked("people.csv", output)
    assert found.ok
    columns = found.findings[-1]
    if ending == "csv":
        added = read(output)[len(people()) :]
        assert all("/" in row["since"] and "," in row["pay"] for row in added)
        assert found.sentences[0] == "All 8 checks hold. One is noted."
        assert columns.noted
        assert f"{done.acquired.added:,} added values" in columns.examples[0]
        assert {e.split("'")[1] for e in columns.examples} == {"since", "pay", "member"}
    else:
        kinds = {f.name: str(f.type) for f in pq.read_schema(output)}
        assert (kinds["since"], kinds["pay"]) == ("date32[day]", "double")
        assert done.acquired.lost == {"since": done.acquired.added, "pay": done.acquired.added}
    assert {t.action for t in treated(done).values()} == {"kept"}


@pytest.mark.slow
def test_a_ledger_that_does_not_say_that_values_were_kept_does_not_excuse_them():
    base()
    write("lake/a.csv", HEADER, people(200, MORE, **FOREIGN), delimiter=";")
    done = repaired(other_columns="keep")
    lines = pq.read_table("out.csv.ledger.parquet")
    told = [m and m.replace('"keep"', '"convert"') for m in lines["mapping"].to_pylist()]
    place = lines.column_names.index("mapping")
    pq.write_table(lines.set_column(place, "mapping", pa.array(told)), "other.parquet")
    found = eq.verify(
        "out.csv", base="people.csv", plan="out.csv.plan.json", ledger="other.parquet"
    )
    assert [f.name for f in found.findings if not f.holds] == ["columns"]
    assert found.sentences[1].startswith("The column 'since' of out.csv has ")
    assert f"{done.acquired.added} added values" in found.sentences[1]


@pytest.mark.slow
def test_texts_for_missing_values_among_converted_numbers_are_missing_values():
    base()
    lines = read("people.csv")
    write(
        "people.csv",
        HEADER,
        [*(tuple(line.values()) for line in lines), ("Male", "yes", "", "?", "", "")],
    )
    rows = people(200, MORE, **FOREIGN)
    rows = [(*row[:3], "n/a", *row[4:]) if i % 2 else row for i, row in enumerate(rows)]
    write("lake/a.csv", HEADER, rows, delimiter=";")
    done = repaired()
    added = read("out.csv")[len(people()) + 1 :]
    assert not done.acquired.failed
    assert {row["pay"] == "" for row in added} == {True, False}
    assert all(not row["pay"] or float(row["pay"]) for row in added)
    assert checked("people.csv", "out.csv").ok
    # Such texts are looked for only where there are some: a list of all of them for each of many
    # columns makes a query that takes longer to parse than to run.
    assert json.loads(ledger()[-1]["mapping"])["absent"] == ["pay"]


@pytest.mark.slow
def test_nothing_is_converted_if_that_is_asked():
    base()
    write("lake/a.csv", HEADER, people(200, MORE, **FOREIGN), delimiter=";")
    done = repaired(other_columns="blank")
    added = read("out.csv")[len(people()) :]
    assert {(row["since"], row["pay"], row["member"]) for row in added} == {("", "", "")}
    assert {row["town"] for row in added} == {"Ulm", "Bonn"}
    assert {t.action for t in treated(done).values()} == {"left missing"}
    assert checked("people.csv", "out.csv").ok


def test_an_unknown_wish_is_refused():
    base()
    write("lake/a.csv", HEADER, people(200, MORE))
    with pytest.raises(InputError, match="convert"):
        repaired(other_columns="guess")


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["convert", "keep", "blank"])
def test_the_same_rows_in_another_spelling_are_duplicates(policy):
    base()
    again = [
        person(i, row[0], row[1], **FOREIGN) for i, row in enumerate(people()) if row[0] == "Female"
    ]
    write(
        "lake/a.csv", HEADER, [*again, *people(500, [("Male", "no", 2)], **FOREIGN)], delimiter=";"
    )
    write("lake/b.csv", HEADER, people(200, MORE))
    done = repaired(other_columns=policy)
    assert {share.name for share in done.acquired.shares} == {"b.csv"}
    assert done.acquired.duplicates >= 10


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["convert", "keep", "blank"])
def test_rows_that_may_be_read_as_those_of_the_base_are_duplicates(policy):
    """By one of two readings; those that are none by either are new."""
    days = [
        FIRST.replace(month=1 + i % 12, day=1 + i // 12 % 12, year=2000 + i // 144)
        for i in range(400)
    ]

    def both(form):
        return lambda i: days[i].strftime(form)

    write(
        "people.csv", HEADER, [*people(since=both("%Y-%m-%d")), *people(380, [("Male", "no", 1)])]
    )
    copies = people(cells=CELLS[:1], since=both("%d/%m/%Y"))
    write("lake/a.csv", HEADER, [*copies, *people(200, MORE, since=both("%d/%m/%Y"))])
    done = repaired(other_columns=policy)
    assert done.acquired.added
    assert done.acquired.duplicates == len(copies) == 10
    assert treated(done)["since"].action == ("kept" if policy == "keep" else "left missing")
    assert checked("people.csv", "out.csv").ok


@pytest.mark.slow
def test_all_rows_of_a_source_decide_and_not_those_that_are_taken():
    """The one date that tells day from month is in a cell that gets no rows."""
    base()
    cells = [("Female", "yes")] * 700 + [("Male", "no")] * 2 + [("Female", "no")]
    rows = [
        person(i, s, h, since=lambda i: f"{1 + i % 12:02}/{1 + i // 12 % 12:02}/{1950 + i // 144}")
        for i, (s, h) in enumerate(cells)
    ]
    rows[-1] = (*rows[-1][:2], "03/25/2021", *rows[-1][3:])
    write("lake/a.csv", HEADER, rows)
    done = repaired()
    assert treated(done)["since"].action == "converted"
    source = {f"{y}-{m}-{d}" for m, d, y in (row[2].split("/") for row in rows)}
    added = read("out.csv")[len(people()) :]
    assert {row["since"] for row in added} <= source
    assert checked("people.csv", "out.csv").ok
    # Without it, nothing tells.
    write("lake/a.csv", HEADER, rows[:-1])
    assert treated(repaired(output="other.csv"))["since"].action == "left missing"


@pytest.mark.slow
def test_chance_is_that_of_the_cells_that_get_rows():
    """Those who look alike are in cells that get no rows."""
    alike = [
        ("Female", "no", iso(0), "1.5", "YES", "Ulm"),
        ("Male", "yes", iso(0), "1.5", "YES", "Ulm"),
    ]
    others = people(0, [("Female", "yes", 10), ("Male", "no", 30)])
    write("people.csv", HEADER, [*others, *(alike * 40)])
    write("lake/a.csv", HEADER, [*others[:5], *people(200, MORE)])
    done = repaired()
    cells = [json.loads(line["cell"]) for line in ledger()]
    assert all((cell["sex"] == "Female") == (cell["hired"] == "yes") for cell in cells)
    assert done.acquired.duplicates == 5
    assert done.acquired.by_chance == 0


@pytest.mark.slow
def test_the_page_and_the_plain_data_tell_it(tmp_path):
    base()
    write("lake/a.csv", HEADER, people(200, MORE, **FOREIGN), delimiter=";")
    done = repaired()
    (source,) = done.to_dict()["acquired"]["sources"]
    told = {t["name"]: t for t in source["other_columns"]}
    assert told["pay"]["action"] == "converted"
    assert told["pay"]["how"] == "numbers such as 1234,5 are 1234.5 in the base"
    eq.report(done, tmp_path / "page.html", source="people.csv")
    assert "numbers such as 1234,5 are 1234.5 in the base" in (tmp_path / "page.html").read_text()


# ------------------------------------------------------------------------------- decisions


def column(*texts, kind="VARCHAR"):
    profiler = Profiler(["x"], [kind])
    profiler.add_texts([texts])
    return profiler.profile().columns[0]


def decided(ours, theirs, kind="VARCHAR"):
    held, source = column(*ours, kind=kind), column(*theirs)
    return decide(read_base_column(held, tally_of(held)), source, tally_of(source))


ISO = ("2021-03-25", "2020-12-31", "2020-12-31")
PAY = ("1.5", "2.25", "1.5")
CONVERTED = [
    (ISO, ("03/25/2021", "1/2/2021"), "%m/%d/%Y", "%Y-%m-%d"),
    (ISO, ("25.03.2021", "01.02.2021"), "%d.%m.%Y", "%Y-%m-%d"),
    (ISO, ("03/25/2021 12:00:00 AM",), "%m/%d/%Y %I:%M:%S %p", "%Y-%m-%d"),
    (ISO, ("20210325", "20210401"), "%Y%m%d", "%Y-%m-%d"),
    (ISO, ("25 Mar 2021", "01 JAN 2021"), "%d %b %Y", "%Y-%m-%d"),
    (("3/25/2021", "1/2/2021"), ISO, "%Y-%m-%d", "%-m/%-d/%Y"),
    (("25/03/2021", "01/02/2021"), ("03/25/2021", "NA"), "%m/%d/%Y", "%d/%m/%Y"),
    (PAY, ("1.234,5", "12"), "comma", "plain"),
    (PAY, ("12,5", "0,25"), "comma", "plain"),
    (PAY, ("1.234.567", "12"), "comma", "plain"),
    (PAY, ("1,234.5", "12"), "grouped", "plain"),
    (PAY, ("1,234", "12.5"), "grouped", "plain"),
    (("1,5", "2,25", "1,5"), ("12.5",), "plain", "comma"),
]
DOUBTED = [
    (ISO, ("03/04/2021", "12/11/2020")),
    (ISO, ("03/25/21", "04/01/21")),
    (ISO, ("03/25/2021", "25.03.2021")),
    (ISO, ("03/25/2021", "2021-03-25")),
    (ISO, ("03/25/2021 02:30:00 PM",)),
    (("03/04/2021", "05/06/2021"), ISO),
    (("2021-03-25 10:30:00", "2021-03-26 11:00:00"), ISO),
    (PAY, ("1,234", "2,500")),
    (PAY, ("1.5", "2,5")),
    (PAY, ("1.234,5", "unclear")),
    (PAY, ("low", "high")),
    (("1200", "3400", "1200"), ("1.234", "12.000")),
    (("YES", "NO"), ("Y", "N", "X")),
    (("YES", "NO"), ("1", "1")),
    (("Single", "Married", "Single"), ("1", "2")),
]
AS_IT_IS = [
    (ISO, ("2020-01-01", "NA")),
    (PAY, ("12.345", "1.5")),
    (("12.345", "1.250", "1.250"), ("1.234", "12.000")),
    (("1", "2", "2"), ("3.0", "17")),
    (("A1", "B2"), ("03/25/2021",)),
    (("Ulm", "Bonn", "Ulm"), ("Ulm", "Kiel")),
    (("17", "18", "19", "20"), ("K-1", "K-2")),
    (ISO, (None, None)),
]


@pytest.mark.parametrize(("ours", "theirs", "read", "written"), CONVERTED)
def test_a_notation_that_is_certain_is_converted(ours, theirs, read, written):
    found = decided(ours, theirs)
    assert (found.conversion.read, found.conversion.write) == (read, written)
    assert found.how


@pytest.mark.parametrize(("ours", "theirs"), DOUBTED)
def test_what_is_not_certain_is_doubted(ours, theirs):
    assert decided(ours, theirs).doubt


def test_a_doubt_says_what_can_be_read_in_two_ways():
    assert decided(ISO, ("03/04/2021",)).doubt == "day and month can be read both ways"
    doubt = "1,234 may be more than a thousand, or a little more than one"
    assert decided(PAY, ("1,234", "2,500")).doubt == doubt


@pytest.mark.parametrize(("ours", "theirs"), AS_IT_IS)
def test_what_is_written_as_in_the_base_stays(ours, theirs):
    assert decided(ours, theirs).as_it_is


PAIRS = [("YES", "NO"), ("y", "n"), ("True", "False"), ("T", "F"), ("1", "0")]


@pytest.mark.parametrize("ours", PAIRS)
@pytest.mark.parametrize("theirs", PAIRS)
def test_yes_and_no_are_known_in_any_spelling_whatever_is_more_frequent(ours, theirs):
    found = decided([*ours, ours[0]], [theirs[1], *theirs, theirs[1]])
    assert (
        found.as_it_is
        if ours == theirs
        else found.spellings == dict(zip(theirs, ours, strict=True))
    )


@pytest.mark.slow
def test_a_column_with_every_value_counts_as_one_that_is_read():
    """Python and SQL tell the same of the same values."""
    from equipoise.engines.routing import shared_engine
    from equipoise.engines.sources import locate

    texts = ["03/25/2021", "1.234,5", "12", "N/A", " 7 ", "?", "2021-01-02T10:00:00", "25 may 2020"]
    texts += [f"x{i}" for i in range(3)] + [text.upper() for text in sorted(missing_texts())]
    patterns = tuple(dict.fromkeys(p for t in texts for p in patterns_for([t]))) + tuple(
        f.pattern for f in date_formats().values()
    )
    patterns = tuple(dict.fromkeys(patterns))
    asked = {"c": ("VARCHAR", patterns)}
    source = locate(pa.table({"c": texts}))
    from dataclasses import replace

    (row,) = shared_engine().read(replace(source, view=TallyView(asked))).to_pylist()
    assert tallies_from(row, asked)["c"] == tally_values(Counter(texts), patterns)
