"""The paper's tables, measured and planned anew; and docs/paper.md, which shows them.

paper.json holds the exact values, what the paper printed, and every slip between the two.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise.cli.app import run

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "paper.md"
PAPER = json.loads((HERE / "paper.json").read_text(encoding="utf-8"))
EXACT, PRINTED, COMPAS = PAPER["exact"], PAPER["printed"], PAPER["compas"]
PLANS, LABELS = PAPER["plans"], "LMH"
SLIPS = {(s["table"], s["row"], s["column"]): s for s in PAPER["slips"]}

COUNTED = ("hiring", "constant_ir_08", "constant_ir_025")
TABLES = ("adult", *COUNTED, "oswald")
MEASURES = (
    "impact_ratio",
    "impact_ratio_from_ub",
    "odds_ratio_reference_over_group",
    "odds_ratio_group_over_reference",
    "mean_difference",
)


# --- measuring -----------------------------------------------------------------------------------


def two_groups(p_pos: int, p: int, u_pos: int, u: int) -> eq.Counts:
    cells = {("p", "+"): p_pos, ("p", "-"): p - p_pos, ("u", "+"): u_pos, ("u", "-"): u - u_pos}
    return eq.Counts.from_mapping(cells, sensitive=["group"], label="label")


def oswald_counts(row: dict[str, float]) -> eq.Counts:
    """Counts of the same rates: the overall rate says that a tenth of the rows is protected."""
    rates = [Fraction(str(row[k])) for k in ("f_pos", "f_p", "f_u")]
    share = (rates[2] - rates[0]) / (rates[2] - rates[1])
    assert share == Fraction(1, 10)
    p_pos, u_pos = 1_000 * rates[1], 9_000 * rates[2]
    assert p_pos.denominator == u_pos.denominator == 1
    return two_groups(int(p_pos), 1_000, int(u_pos), 9_000)


def numbers_of(table: eq.BiasTable, group: str, other: str, label: str) -> dict[str, float]:
    """What a row of the paper says of a table, under the names of paper.json."""
    row, rest = table[group, label], table[other, label]
    return {
        "n": table.counts.n,
        "n_pos": row.n_cell + rest.n_cell,
        "p": row.n_group,
        "p_pos": row.n_cell,
        "u": rest.n_group,
        "u_pos": rest.n_cell,
        "f_pos": row.overall_rate,
        "f_p": row.rate,
        "f_u": rest.rate,
        "p_pos_at_zero": row.expected,
        "ub": row.ub,
        "ir": row.measures["impact_ratio"],
        "ir_from_ub": row.measures["impact_ratio_from_ub"],
        "or_": row.measures["odds_ratio_reference_over_group"],
        "or_p_over_u": row.measures["odds_ratio_group_over_reference"],
        "md": row.measures["mean_difference"],
    }


def counts_of(name: str) -> list[eq.Counts]:
    if name == "oswald":
        return [oswald_counts(row) for row in EXACT["oswald"]]
    if name == "adult":
        a = EXACT["adult"][0]
        return [two_groups(a["p_pos"], a["p"], a["n_pos"] - a["p_pos"], a["n"] - a["p"])]
    return [two_groups(*(row[k] for k in ("p_pos", "p", "u_pos", "u"))) for row in EXACT[name]]


def measured(name: str) -> list[dict[str, float]]:
    tables = (eq.measure(c, measures=MEASURES, uncertainty=False) for c in counts_of(name))
    return [numbers_of(table, "group=p", "group=u", "+") for table in tables]


def exact(name: str) -> list[dict[str, Fraction]]:
    """The same numbers as fractions, from the definitions and from nothing of this library."""
    found = []
    for counts in counts_of(name):
        p_pos, p, u_pos, u = (
            Fraction(counts.of(pattern))
            for pattern in ("group=p, label=+", "group=p", "group=u, label=+", "group=u")
        )
        n, n_pos, f_p, f_u = p + u, p_pos + u_pos, p_pos / p, u_pos / u
        odds = f_u / (1 - f_u) / (f_p / (1 - f_p))
        found.append(
            {"n": n, "n_pos": n_pos, "p": p, "p_pos": p_pos, "u": u, "u_pos": u_pos}
            | {"f_pos": n_pos / n, "f_p": f_p, "f_u": f_u, "p_pos_at_zero": p * n_pos / n}
            | {"ub": 1 - f_p / (n_pos / n), "ir": f_p / f_u, "md": f_u - f_p}
            | {"or_": odds, "or_p_over_u": 1 / odds, "ir_from_ub": f_p / f_u}
        )
    return found


def exact_intro() -> dict[str, Fraction]:
    women, men = Fraction(1_179, 10_771), Fraction(6_662, 21_790)
    return {
        "women_positive_at_parity_with_men": 10_771 * men,
        "men_positive_at_parity_with_women": 21_790 * women,
        "women_rate": women,
        "men_rate": men,
    }


def all_exact() -> dict[str, list[dict[str, Fraction]]]:
    return {**{name: exact(name) for name in TABLES}, "intro": [exact_intro()]}


def compas_table() -> eq.BiasTable:
    return eq.measure("compas", sensitive_features=["sex", "race"], label="risk", count="n")


def pattern(sex: str, race: str) -> str:
    return f"sex={sex}, race={race}"


# --- the tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_reproduced(name: str) -> None:
    rows = measured(name)
    assert len(rows) == len(EXACT[name]) == len(PRINTED[name])
    for row, expected, fractions in zip(rows, EXACT[name], exact(name), strict=True):
        for key, value in expected.items():
            assert_allclose(row[key], value, rtol=1e-12, atol=1e-15, err_msg=key)
        for key, fraction in fractions.items():
            assert_allclose(row[key], float(fraction), rtol=1e-12, atol=1e-15, err_msg=key)


def test_adult_is_reproduced_from_the_bundled_data() -> None:
    table = eq.measure("adult", sensitive_features=["sex"], label="income", measures=MEASURES)
    found = numbers_of(table, "sex=Female", "sex=Male", ">50K")
    for key, value in EXACT["adult"][0].items():
        assert_allclose(found[key], value, rtol=1e-12, err_msg=key)
    missing = table["sex=Female", ">50K"].missing_rows
    assert_allclose(missing, found["p_pos_at_zero"] - found["p_pos"], rtol=1e-12)
    assert missing == pytest.approx(1414.76, abs=0.01)


def test_numbers_at_parity_follow_from_the_rates() -> None:
    table = eq.measure("adult", sensitive_features=["sex"], label="income", uncertainty=False)
    women, men = table["sex=Female", ">50K"], table["sex=Male", ">50K"]
    found = {
        "women_positive_at_parity_with_men": women.n_group * men.rate,
        "men_positive_at_parity_with_women": men.n_group * women.rate,
        "women_rate": women.rate,
        "men_rate": men.rate,
    }
    assert found.keys() == EXACT["intro"][0].keys()
    for key, value in found.items():
        assert_allclose(value, EXACT["intro"][0][key], rtol=1e-12)
        assert_allclose(value, float(exact_intro()[key]), rtol=1e-12)


@pytest.mark.parametrize(("name", "ratio"), [("constant_ir_08", 0.8), ("constant_ir_025", 0.25)])
def test_the_impact_ratio_is_constant_and_follows_from_ub(name: str, ratio: float) -> None:
    """IR(b) = (1 − b)/(1 + b·P/U) on every row, though b itself rises from row to row."""
    rows = measured(name)
    biases = [row["ub"] for row in rows]
    for row in rows:
        P = row["p"] / row["n"]
        assert row["n"] == 1_000
        assert_allclose((row["ir"], row["ir_from_ub"]), ratio, rtol=1e-12)
        assert_allclose((1 - row["ub"]) / (1 + row["ub"] * P / (1 - P)), ratio, rtol=1e-12)
        assert_allclose(row["md"], rows[0]["md"], rtol=1e-12)
    assert biases == sorted(biases)
    assert biases[-1] < 1 - ratio < biases[-1] * 1.01


def test_the_limits_of_the_constant_ratio_tables() -> None:
    """As the group becomes the whole table b goes to 0, as it vanishes to 1 − IR."""
    for f_p, f_u in ((0.4, 0.5), (0.2, 0.8)):
        ends = [
            eq.measure(two_groups(int(p * f_p), p, int(u * f_u), u), uncertainty=False)
            for p, u in ((10**9, 10), (10, 10**9))
        ]
        whole, vanishing = (table["group=p", "+"].ub for table in ends)
        assert abs(whole) < 1e-7
        assert_allclose(vanishing, 1 - f_p / f_u, rtol=1e-7)


def test_oswald_in_both_directions_of_the_odds_ratio() -> None:
    for row, expected in zip(measured("oswald"), EXACT["oswald"], strict=True):
        assert_allclose(row["or_p_over_u"], expected["or_p_over_u"], rtol=1e-12)
        assert_allclose(row["or_"], 1 / expected["or_p_over_u"], rtol=1e-12)
        assert row["or_"] > 1 > row["or_p_over_u"]


# --- COMPAS --------------------------------------------------------------------------------------


def test_compas_counts_are_those_of_the_paper() -> None:
    counts = compas_table().counts
    assert counts.n == COMPAS["n"] == 60_798
    for group, labels in COMPAS["counts"].items():
        for label, n in labels.items():
            assert counts.of(f"{pattern(*group.split('/'))}, risk={label}") == n
    for group, n in COMPAS["printed_totals"].items():
        assert counts.of(pattern(*group.split("/"))) == n
    for label, n in COMPAS["printed_label_totals"].items():
        assert counts.of(f"risk={label}") == n


def test_all_24_compas_biases() -> None:
    table = compas_table()
    assert len(table) == len(COMPAS["uniform_bias"]) == 24
    for key, bias in COMPAS["uniform_bias"].items():
        sex, race, label = key.split("/")
        assert_allclose(table[pattern(sex, race), label].ub, bias, rtol=1e-12, err_msg=key)


def test_all_24_compas_biases_by_the_command(capsys) -> None:
    command = "measure compas --sensitive sex,race --label risk --count n --json"
    assert run(shlex.split(command)) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    found = {
        "/".join([r["group"].get("sex", "*"), r["group"].get("race", "*"), r["label"]]): r["ub"]
        for r in rows
    }
    assert found.keys() == COMPAS["uniform_bias"].keys()
    assert len(rows) == 24
    for key, bias in COMPAS["uniform_bias"].items():
        assert_allclose(found[key], bias, rtol=1e-12, err_msg=key)


# --- plans ---------------------------------------------------------------------------------------

REQUESTS = {"mitigated": {}, "k_targets": {"target": "keep rates of: sex"}}


def compas_plan(name: str, **more) -> eq.Plan:
    return eq.plan(compas_table().counts, rounding="floor", **REQUESTS[name], **more)


@functools.cache
def planned(name: str) -> dict[str, int]:
    """How many rows every cell and total has after a plan, under the names of paper.json."""
    after, found = compas_plan(name).after(), {}
    for key in PLANS[name]["printed"]:
        found[key] = after.of(cell_pattern(key))
    return found


def added(name: str) -> dict[str, int]:
    before = compas_table().counts
    return {key: n - before.of(cell_pattern(key)) for key, n in planned(name).items()}


def cell_pattern(key: str) -> str:
    """The pattern of a cell or total, by its name in paper.json."""
    sex, race, label = key.split("/")
    return f"{pattern(sex, race)}, risk={label}"


def added_by_nearest() -> dict[str, int]:
    """The additions of the text, with nearest rounding."""
    plan = eq.plan(compas_table().counts, rounding="nearest")
    return {key: plan.add.of(cell_pattern(key)) for key in PLANS["printed_additions"]}


@pytest.mark.parametrize("name", REQUESTS)
def test_the_mitigated_tables_are_the_floor_of_the_exact_solutions(name: str) -> None:
    rows = planned(name)
    assert {k: rows[k] for k in PLANS[name]["floor"]} == PLANS[name]["floor"]
    exact_rows = PLANS[name]["exact"]
    assert {k: int(n + 1e-9) for k, n in exact_rows.items()} == PLANS[name]["floor"]


def test_the_mitigated_table_is_the_printed_one_but_for_one_cell() -> None:
    rows, printed = planned("mitigated"), PLANS["mitigated"]["printed"]
    assert {k: (rows[k], n) for k, n in printed.items() if rows[k] != n} == {"w/o/M": (1696, 1697)}
    assert sum(rows[f"{s}/{r}/{y}"] for s in "mw" for r in "oc" for y in LABELS) == 72_419
    plan = compas_plan("mitigated")
    assert plan.additions == 11_621
    assert plan.certificate.reached
    assert 0.001 < plan.certificate.max_abs_ub_after < 0.00101


def test_the_text_about_additions_rounds_to_the_nearest_number() -> None:
    nearest, printed = added_by_nearest(), PLANS["printed_additions"]
    off = {key: printed[key] - n for key, n in nearest.items() if printed[key] != n}
    assert off == {"m/*/*": 1, "m/*/L": 1}
    table = PLANS["mitigated"]["printed"]
    plan = eq.plan(compas_table().counts, rounding="nearest")
    assert plan.after().of("sex=w, race=o, risk=M") == table["w/o/M"] == 1697


def test_the_printed_table_with_k_is_nearest_rounding_with_more_rows_than_needed() -> None:
    counts, printed = COMPAS["counts"], PLANS["k_targets"]["printed"]
    more = {"m/o": 0, "m/c": 2, "w/c": 2, "w/o": 1}
    same = 0
    for group, extra in more.items():
        of_sex = {y: sum(counts[f"{group[0]}/{race}"][y] for race in "oc") for y in LABELS}
        times = max(Fraction(counts[group][y], of_sex[y]) for y in LABELS)
        stays = next(y for y in LABELS if Fraction(counts[group][y], of_sex[y]) == times)
        times += Fraction(extra, of_sex[stays])
        rows = {y: int(times * of_sex[y] + Fraction(1, 2)) for y in LABELS}
        same += sum(rows[y] == printed[f"{group}/{y}"] for y in LABELS)
    assert same == 9


def test_parity_was_computed_from_rounded_rates() -> None:
    printed = PRINTED["intro"][0]
    assert f"{10_771 * 0.306:,.0f}" == printed["women_positive_at_parity_with_men"]
    assert f"{21_790 * 0.109:,.0f}" == printed["men_positive_at_parity_with_women"]


def test_the_rate_of_high_scores_is_not_double() -> None:
    table = compas_table()
    other, white = table["race=o", "H"], table["race=c", "H"]
    assert f"{other.rate / white.rate:.2f}" == "1.75"
    assert f"{other.n_cell:,} of {other.n_group:,}" in word_of("COMPAS, rate")["why"]
    assert f"{white.n_cell:,} of {white.n_group:,}" in word_of("COMPAS, rate")["why"]


def test_the_region_of_the_second_map_is_a_quadrilateral() -> None:
    """n + y - x >= 30,000 and y <= 3,000 with x, y >= 0, and n = 32,561."""
    least = 32_561 - 30_000
    corners = ((0, 0), (least, 0), (least + 3_000, 3_000), (0, 3_000))
    map_ = eq.policy_map(
        eq.count("adult", sensitive_features=["sex"], label="income"),
        x="delete sex=Male, income=>50K",
        y="add sex=Female, income=>50K",
        limits=["y<=3000", "n>=30000"],
    )
    assert map_.feasible == corners
    assert all(str(corner) in word_of("introduction, figure 1b")["why"] for corner in corners)


def word_of(place: str) -> dict[str, str]:
    (entry,) = [s for s in PAPER["slips_in_words"] if s["place"].startswith(place)]
    return entry


def test_the_printed_table_with_k_adds_more_than_the_least() -> None:
    rows, printed = planned("k_targets"), PLANS["k_targets"]["printed"]
    assert all(n >= rows[k] for k, n in printed.items())
    assert (rows["*/*/*"], printed["*/*/*"]) == (69_482, 69_503)


@functools.cache
def budget_here() -> dict[str, int]:
    """The paper's budget example, by two plans with priorities."""
    budget = {"budget": PLANS["budget"]["budget"]}
    women, low, medium, high = "sex=w", "sex=m, risk=L", "sex=m, risk=M", "sex=m, risk=H"
    unit = compas_plan("k_targets", **budget, priority=[women, low, high, medium]).steps
    dear = compas_plan(
        "k_targets", **budget, cost_add={women: 2}, priority=[women, medium, high, low]
    ).steps
    needs = {step.pattern: step.needed for step in unit}
    return {
        "w": needs[women],
        "mL": needs[low],
        "mM": needs[medium],
        "mH": needs[high],
        "unit_costs_left_after_w_mL_mH": int(unit[2].left),
        "women_cost_2_left_after_w_mM_mH": int(dear[2].left),
        "then_missing_mL": dear[3].missing,
    }


def budget_as_printed() -> dict[str, int]:
    """The same, worked out from the printed table with K."""
    counts, table = compas_table().counts, PLANS["k_targets"]["printed"]
    money = PLANS["budget"]["budget"]
    w = table["w/*/*"] - counts.of("sex=w")
    low, medium, high = (table[f"m/*/{y}"] - counts.of(f"sex=m, risk={y}") for y in LABELS)
    left = money - 2 * w - medium - high
    return {
        "w": w,
        "mL": low,
        "mM": medium,
        "mH": high,
        "unit_costs_left_after_w_mL_mH": money - w - low - high,
        "women_cost_2_left_after_w_mM_mH": left,
        "then_missing_mL": low - left,
    }


def test_the_budget_example() -> None:
    assert budget_here() == PLANS["budget"]["minimal_needs"]
    assert budget_as_printed() == PLANS["budget"]["printed_needs"]


def test_the_slips_about_plans_are_right() -> None:
    right = {s["place"]: s["right"] for s in PLANS["slips"]}
    rows, more, budget = planned("mitigated"), added("mitigated"), budget_as_printed()
    found = {
        "mitigated COMPAS, wo / M": f"{rows['w/o/M']}",
        "mitigated COMPAS, text, Δm and Δw": f"{more['m/*/*']}, {more['w/*/*']}",
        "mitigated COMPAS, text, ΔwM and ΔwH": f"{more['w/*/M']}, {more['w/*/H']}",
        "mitigated COMPAS, text, ΔmL and ΔmoL": f"{more['m/*/L']}, {more['m/o/L']}",
        "mitigated COMPAS, text, ΔmcM and ΔmcH": f"{more['m/c/M']}, {more['m/c/H']}",
        "COMPAS with K": f"n = {planned('k_targets')['*/*/*']}",
        "budget, unit costs, what is left": f"{budget['unit_costs_left_after_w_mL_mH']}",
        "budget, women at cost 2, what is left": f"{budget['women_cost_2_left_after_w_mM_mH']}",
    }
    assert found == {place: right[place] for place in found}


# --- what was printed ----------------------------------------------------------------------------


def agrees(printed: str, value: Fraction) -> bool:
    """Tell whether a printed number is the value, rounded to the digits that it has."""
    if "/" in printed:
        return Fraction(printed) == value
    bare = Decimal(printed.rstrip("%").replace(",", ""))
    value = value * 100 if printed.endswith("%") else value
    return rounded(value, -bare.as_tuple().exponent) == bare


def rounded(value: Fraction, digits: int) -> Decimal:
    one = Decimal(1).scaleb(-digits)
    return (Decimal(value.numerator) / Decimal(value.denominator)).quantize(one, ROUND_HALF_UP)


def printed_cells():
    """Every printed number with its place and the exact value."""
    truth = all_exact()
    for name, rows in PRINTED.items():
        for i, row in enumerate(rows):
            for column, text in row.items():
                yield (name, i, column), text, truth[name][i][column]
    for name, columns in PAPER["printed_for_all_rows"].items():
        for i, row in enumerate(truth[name]):
            for column, text in columns.items():
                yield (name, i, f"{column} for all rows"), text, row[column]
    for name, ends in PAPER["printed_ranges"].items():
        biases = [row["ub"] for row in truth[name]]
        yield (name, "range", "low"), ends["low"], min(biases)
        yield (name, "range", "high"), ends["high"], max(biases)


def compas_cells():
    counts = compas_table().counts
    for kind in ("printed_biases", "printed_rates"):
        for key, text in COMPAS[kind].items():
            sex, race, label = key.split("/")
            group = pattern(sex, race)
            cell, size, total = (
                counts.of(p) for p in (f"{group}, risk={label}", group, f"risk={label}")
            )
            rate = Fraction(cell, size)
            bias = 1 - rate / Fraction(total, counts.n)
            yield (kind, 0, key), text, bias if kind == "printed_biases" else rate


def test_every_printed_number_that_differs_is_a_known_slip() -> None:
    cells = [*printed_cells(), *compas_cells()]
    assert len(cells) > 250
    differing = {place: text for place, text, value in cells if not agrees(text, value)}
    assert differing == {place: slip["printed"] for place, slip in SLIPS.items()}


def test_what_is_given_as_right_is_right() -> None:
    truth = {place: value for place, _, value in printed_cells()}
    for place, slip in SLIPS.items():
        assert agrees(slip["right"], truth[place]), place
        assert slip["right"] != slip["printed"]
        assert slip["why"]


def test_every_difference_is_of_a_kind() -> None:
    assert {entry["kind"] for entry in differences()} == {"misprint", "choice", "method"}
    methods = {entry["place"] for entry in differences() if entry["kind"] == "method"}
    assert methods == {
        "mitigated COMPAS, the bias left",
        "corollary, C",
        "theorem on label frequencies",
        "theorem with K",
    }


def test_the_paper_marks_the_verdicts_of_three_measures() -> None:
    """The colours of the Oswald table, by rows: IR, OR and UB."""
    marked = [(0, 0, 0), (0, 0, 1), (0, 0, 0), (1, 1, 1), (0, 1, 1), (1, 1, 1)]
    for low in (0.6681, 0.7, 0.786):
        verdicts = [
            (row["ir"] < 0.8, row["or_p_over_u"] < low, row["ub"] > 0.1)
            for row in measured("oswald")
        ]
        assert verdicts == marked, low


def test_the_paper_marks_biases_above_a_tenth() -> None:
    """Rows coloured as large in print are those with UB above 0.1."""
    above = {name: [row["ub"] > 0.1 for row in measured(name)] for name in TABLES}
    assert above["constant_ir_08"] == [False] * 5 + [True] * 4
    assert above["constant_ir_025"] == [False] * 2 + [True] * 6
    assert above["oswald"] == [False, True, False, True, True, True]


# --- the page ------------------------------------------------------------------------------------

HEADERS = {
    "n": "n",
    "n_pos": "n+",
    "p": "p",
    "p_pos": "p+",
    "u": "u",
    "u_pos": "u+",
    "f_pos": "f+",
    "f_p": "f_p",
    "f_u": "f_u",
    "p_pos_at_zero": "p+(0)",
    "ub": "UB",
    "ir": "IR",
    "or_": "OR u:p",
    "or_p_over_u": "OR p:u",
    "md": "MD",
}


VERDICTS = (("ir", "<", 0.8), ("or_p_over_u", "<", 0.7), ("ub", ">", 0.1))


def is_beyond(value: float, sign: str, limit: float) -> bool:
    return value < limit if sign == "<" else value > limit


def markdown(headers: list[str], rows: list[list[str]]) -> str:
    rules = ["---", *["---:"] * (len(headers) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [headers, rules, *rows])


def shown(value: float, printed: str) -> str:
    """Write a value to the digits of a printed one."""
    if "/" in printed or printed in {"0", "1"}:
        return str(Fraction(value).limit_denominator(1_000)).replace("-", "−")
    digits = -Decimal(printed.rstrip("%").replace(",", "")).as_tuple().exponent
    return written(value * 100 if printed.endswith("%") else value, digits)


def written(value: float, digits: int) -> str:
    text = str(rounded(Fraction(value).limit_denominator(10**9), digits))
    return text.replace("-", "−")


def cell(name: str, row: int, column: str, value: float) -> str:
    slip = SLIPS.get((name, row, column))
    if slip is None:
        return shown(value, PRINTED[name][row][column])
    right = shown(value, slip["right"])
    return f"**{right}** (printed {slip['printed'].replace('-', '−')})"


def page_table(name: str, *, title: str = "", titles: list[str] | None = None) -> str:
    rows, columns = measured(name), list(PRINTED[name][0])
    lines = [[cell(name, i, c, row[c]) for c in columns] for i, row in enumerate(rows)]
    headers = [HEADERS[c] for c in columns]
    if name != "hiring":
        verdicts = VERDICTS if name == "oswald" else VERDICTS[-1:]
        headers += [f"{HEADERS[c]} {sign} {limit}" for c, sign, limit in verdicts]
        for line, row in zip(lines, rows, strict=True):
            line += ["yes" if is_beyond(row[c], s, x) else "no" for c, s, x in verdicts]
    if titles is None:
        return markdown(headers, lines)
    return markdown([title, *headers], [[t, *line] for t, line in zip(titles, lines, strict=True)])


def intro_table() -> str:
    values = exact_intro()
    names = {
        "women_rate": "women's rate of >50K",
        "men_rate": "men's rate of >50K",
        "women_positive_at_parity_with_men": "women with >50K at the men's rate",
        "men_positive_at_parity_with_women": "men with >50K at the women's rate",
    }
    lines = []
    for key, name in names.items():
        printed = PRINTED["intro"][0][key]
        slip = SLIPS.get(("intro", 0, key))
        found = written(float(values[key]) * (100 if "%" in printed else 1), 2)
        mark = f"**{found}**" if slip else found
        lines.append([name, printed, f"{mark}{'%' if '%' in printed else ''}"])
    return markdown(["", "printed", "here"], lines)


def compas_page_table() -> str:
    table, lines = compas_table(), []
    for group in COMPAS["printed_totals"]:
        named = pattern(*group.split("/"))
        biases = [written(table[named, y].ub, 3) for y in "LMH"]
        lines.append([f"`{table[named, 'L'].group}`", str(table[named, "L"].n_group), *biases])
    return markdown(["group", "rows", "L", "M", "H"], lines)


def crossed(name: str) -> str:
    """A mitigated table as the paper lays it out."""
    rows, printed, lines = planned(name), PLANS[name]["printed"], []
    for sex in "mw*":
        for label in (*LABELS, "*"):
            keys = [f"{sex}/{race}/{label}" for race in "oc*"]
            words = (sex.replace("*", "all"), label.replace("*", "all"))
            lines.append([", ".join(words), *(differing(rows[k], printed[k]) for k in keys)])
    return markdown(["sex, label", "race o", "race c", "all"], lines)


def differing(here: int, printed: int) -> str:
    return str(here) if here == printed else f"**{here}** (printed {printed})"


def additions_table() -> str:
    floor, nearest, lines = added("mitigated"), added_by_nearest(), []
    for key, printed in PLANS["printed_additions"].items():
        here = [str(n) if n == printed else f"**{n}**" for n in (floor[key], nearest[key])]
        lines.append([f"Δ{key.replace('/', '').replace('*', '')}", str(printed), *here])
    return markdown(["added rows", "printed", "floor", "nearest"], lines)


def budget_table() -> str:
    names = {
        "w": "women, needed",
        "mL": "men with L, needed",
        "mM": "men with M, needed",
        "mH": "men with H, needed",
        "unit_costs_left_after_w_mL_mH": "all costs 1: left after women, men with L and with H",
        "women_cost_2_left_after_w_mM_mH": "women cost 2: left after women, men with M and with H",
        "then_missing_mL": "rows of men with L that are then missing",
    }
    printed, right, here = PLANS["budget"]["printed"], budget_as_printed(), budget_here()
    lines = []
    for key, name in names.items():
        mark = str(right[key]) if right[key] == printed[key] else f"**{right[key]}**"
        lines.append([name, str(printed[key]), mark, str(here[key])])
    return markdown(["", "printed", "from the printed table", "from the minimal plan"], lines)


def differences() -> list[dict[str, str]]:
    return [*PAPER["slips"], *PAPER["slips_in_words"], *PLANS["slips"]]


def difference_table(kind: str) -> str:
    lines = [
        [entry[key].replace("-", "−") for key in ("place", "printed", "right", "why")]
        for entry in differences()
        if entry["kind"] == kind
    ]
    right = "here" if kind == "choice" else "right"
    head, _, *body = markdown(["where", "printed", right, "why"], lines).splitlines()
    return "\n".join([head, "| --- | ---: | ---: | --- |", *body])


PAGE_TABLES = {
    "adult": lambda: page_table("adult"),
    "intro": intro_table,
    "hiring": lambda: page_table("hiring", titles=["T0", "T1", "T2"]),
    "constant_ir_08": lambda: page_table("constant_ir_08"),
    "constant_ir_025": lambda: page_table("constant_ir_025"),
    "oswald": lambda: page_table("oswald"),
    "compas": compas_page_table,
    "mitigated": lambda: crossed("mitigated"),
    "additions": additions_table,
    "k_targets": lambda: crossed("k_targets"),
    "budget": budget_table,
    "misprints": lambda: difference_table("misprint"),
    "choices": lambda: difference_table("choice"),
    "methods": lambda: difference_table("method"),
}


def tables_on_the_page() -> dict[str, str]:
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"<!-- table: (\w+) -->\n\n((?:\|.*\n)+)", text)
    assert text.count("<!-- table:") == len(found)
    assert len(re.findall(r"^\| -", text, re.MULTILINE)) == len(found), "a table without a name"
    return {name: table.rstrip("\n") for name, table in found}


@pytest.mark.parametrize("name", PAGE_TABLES)
def test_a_table_of_the_page_is_what_is_measured(name: str) -> None:
    assert tables_on_the_page()[name] == PAGE_TABLES[name]()


def test_the_page_has_no_other_tables() -> None:
    assert tables_on_the_page().keys() == PAGE_TABLES.keys()


def test_the_ranges_on_the_page_are_measured() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in PAPER["printed_ranges"]:
        biases = [row["ub"] for row in measured(name)]
        low, high = (written(100 * end(biases), 2) for end in (min, max))
        assert f"from {low}% to {high}%" in text


def test_commands_on_the_page_run(capsys) -> None:
    text = PAGE.read_text(encoding="utf-8")
    commands = re.findall(r"^equipoise (.+)$", text, re.MULTILINE)
    assert len(commands) >= 2
    for command in commands:
        assert run(shlex.split(command)) == 0
        assert capsys.readouterr().out
