"""The tables of `quick_plans`: bundled data cut in stated ways, and drawn ones under fixed seeds.

Every version of the package that is measured counts them itself, from this module alone.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import data

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.counts import Counts

SCHOOL = ("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th")
COLLEGE = ("Some-college", "Assoc-voc", "Assoc-acdm")
HIGHER = ("Masters", "Prof-school", "Doctorate")
MARRIED = ("Married-civ-spouse", "Married-spouse-absent", "Married-AF-spouse")
GOVERNMENT = ("Local-gov", "State-gov", "Federal-gov")
SELF_EMPLOYED = ("Self-emp-not-inc", "Self-emp-inc")
MANUAL = ("Craft-repair", "Machine-op-inspct", "Transport-moving", "Handlers-cleaners")
SERVICE = ("Other-service", "Priv-house-serv", "Protective-serv")
OFFICE = ("Adm-clerical", "Tech-support")

# A label made of a column: what its values are called, and "*" for all others.
WORDS: dict[str, tuple[str, str, Mapping[str, Sequence[str]], str]] = {
    "education 3": (
        "adult",
        "education",
        {"school": (*SCHOOL, "HS-grad"), "college": COLLEGE},
        "degree",
    ),
    "education 4": (
        "adult",
        "education",
        {"school": SCHOOL, "high school": ("HS-grad",), "college": COLLEGE},
        "degree",
    ),
    "education 5": (
        "adult",
        "education",
        {"school": SCHOOL, "high school": ("HS-grad",), "college": COLLEGE, "higher": HIGHER},
        "bachelor",
    ),
    "education 6": (
        "adult",
        "education",
        {
            "school": SCHOOL,
            "high school": ("HS-grad",),
            "some college": COLLEGE[:1],
            "associate": COLLEGE[1:],
            "higher": HIGHER,
        },
        "bachelor",
    ),
    "marital 4": (
        "adult",
        "marital-status",
        {"married": MARRIED, "never married": ("Never-married",), "widowed": ("Widowed",)},
        "separated",
    ),
    "work 3": (
        "adult",
        "workclass",
        {"private": ("Private",), "government": GOVERNMENT},
        "other",
    ),
    "work 5": (
        "adult",
        "workclass",
        {
            "private": ("Private",),
            "local": GOVERNMENT[:1],
            "state or federal": GOVERNMENT[1:],
            "self-employed": SELF_EMPLOYED,
        },
        "other",
    ),
    "occupation 6": (
        "adult",
        "occupation",
        {
            "manual": MANUAL,
            "service": SERVICE,
            "office": OFFICE,
            "sales": ("Sales",),
            "professional": ("Prof-specialty", "Exec-managerial"),
        },
        "other",
    ),
    "relationship 6": ("adult", "relationship", {}, ""),
}

# A label made of a number: the first value of every bin but the first.
EDGES: dict[str, tuple[str, str, Sequence[int]]] = {
    "hours 3": ("adult", "hours-per-week", (40, 41)),
    "hours 5": ("adult", "hours-per-week", (30, 40, 41, 50)),
    "delay 3": ("credit", "pay_0", (0, 1)),
    "delay 5": ("credit", "pay_0", (-1, 0, 1, 2)),
    "limit 4": ("credit", "limit_bal", (50_000, 140_000, 240_000)),
    "limit 6": ("credit", "limit_bal", (30_000, 60_000, 120_000, 180_000, 280_000)),
}

# Sensitive attributes and a label of `WORDS` or `EDGES`.
CUT: dict[str, tuple[tuple[str, ...], str]] = {
    "sex, race → education 3": (("sex", "race"), "education 3"),
    "sex, race → education 4": (("sex", "race"), "education 4"),
    "sex, race → marital 4": (("sex", "race"), "marital 4"),
    "sex, age → work 3": (("sex", "age"), "work 3"),
    "race, marital → hours 3": (("race", "marital 4"), "hours 3"),
    "credit sex, education → delay 3": (("sex", "education"), "delay 3"),
    "credit sex, marriage → limit 4": (("sex", "marriage"), "limit 4"),
    "credit education, marriage → limit 4": (("education", "marriage"), "limit 4"),
    "sex, race → education 5": (("sex", "race"), "education 5"),
    "sex, race → education 6": (("sex", "race"), "education 6"),
    "sex, race → work 5": (("sex", "race"), "work 5"),
    "sex, race → occupation 6": (("sex", "race"), "occupation 6"),
    "race, income → relationship 6": (("race", "income"), "relationship 6"),
    "sex, age → hours 5": (("sex", "age"), "hours 5"),
    "credit sex, marriage → delay 5": (("sex", "marriage"), "delay 5"),
    "credit sex, education → limit 6": (("sex", "education"), "limit 6"),
    # A4's attributes, but income takes the place of marital status, which is the label.
    "A4 → marital 4": (("sex", "race", "age", "income"), "marital 4"),
    "sex, race, age → marital 4": (("sex", "race", "age"), "marital 4"),
}

# Numbers of groups and labels, the mean size of a group, and the seed.
DRAWN: dict[str, tuple[int, int, float, int]] = {
    "drawn 25 × 4": (25, 4, 400, 1),
    "drawn 30 × 3": (30, 3, 200, 2),
    "drawn 16 × 6": (16, 6, 250, 3),
    "drawn 20 × 5": (20, 5, 300, 4),
}

FEW_LABELS = (
    "sex, race → education 3",
    "sex, race → education 4",
    "sex, race → marital 4",
    "sex, age → work 3",
    "race, marital → hours 3",
    "credit sex, education → delay 3",
    "credit sex, marriage → limit 4",
    "credit education, marriage → limit 4",
    "drawn 25 × 4",
    "drawn 30 × 3",
)
MANY_LABELS = (
    "sex, race → education 5",
    "sex, race → education 6",
    "sex, race → work 5",
    "sex, race → occupation 6",
    "race, income → relationship 6",
    "sex, age → hours 5",
    "credit sex, marriage → delay 5",
    "credit sex, education → limit 6",
    "drawn 16 × 6",
    "drawn 20 × 5",
)

# The table of the report that was told 36 rows where 21 suffice, and one of few rows.
WRITTEN: dict[str, list[list[int]]] = {
    "four small groups": [[1, 1], [4, 4], [0, 1], [2, 0]],
    "three small groups": [[9, 4], [5, 8], [3, 11]],
}


@functools.cache
def counted(name: str) -> Counts:
    """The counts of a table, by its name."""
    import equipoise

    if name == "COMPAS":
        return equipoise.count(
            "compas", sensitive_features=["sex", "race"], label="risk", count="n"
        )
    if name in data.ATTRIBUTES:
        return _of_adult(data.ATTRIBUTES[name])
    if name == "sex, race, marital → income":
        return _of_adult(["sex", "race", "marital-status"])
    if name == "A2, over 80":
        return _of_adult(data.ATTRIBUTES["A2"], where="age > 80")
    if name in DRAWN:
        return _drawn(*DRAWN[name])
    if name in WRITTEN:
        return _of_array(WRITTEN[name])
    attributes, label = CUT[name]
    table = pa_table({column: column_of(column, label) for column in (*attributes, label)})
    return equipoise.count(table, sensitive_features=list(attributes), label=label)


def cells_of(name: str) -> int:
    """Groups that have rows, times labels."""
    _, (have,) = counted(name).finest()
    return int(have.size)


def _of_adult(attributes: Sequence[str], **options: Any) -> Counts:
    import equipoise

    bins = {"age": data.AGE_EDGES} if "age" in attributes else {}
    return equipoise.count(
        str(data.BUNDLED),
        sensitive_features=list(attributes),
        label=data.LABEL,
        bins=bins,
        **options,
    )


def pa_table(columns: Mapping[str, list[str]]) -> pa.Table:
    import pyarrow as pa

    return pa.table(dict(columns))


def column_of(name: str, label: str) -> list[str]:
    """A column of the data that a label is of, by its own name or by that of what is made of it."""
    source = (WORDS.get(label) or EDGES[label])[0]
    if name in WORDS:
        _, column, words, other = WORDS[name]
        called = {value: word for word, values in words.items() for value in values}
        return [called.get(value, other or value) for value in _values(source, column)]
    if name in EDGES:
        _, column, edges = EDGES[name]
        return _binned(_values(source, column), edges)
    if name == "age":
        return _binned(_values(source, "age"), data.AGE_EDGES)
    return [str(value) for value in _values(source, name)]


def _binned(values: list[Any], edges: Sequence[int]) -> list[str]:
    import numpy as np

    # By the first value of its bin: the bins are told apart, their order does not matter.
    return [f"bin {i}" for i in np.searchsorted(edges, values, side="right")]


@functools.cache
def _values(source: str, column: str) -> list[Any]:
    import pyarrow.parquet as pq

    path = data.BUNDLED.with_name(f"{source}.parquet")
    values: list[Any] = pq.read_table(path, columns=[column])[column].to_pylist()
    return values


def _drawn(groups: int, labels: int, mean_rows: float, seed: int) -> Counts:
    """Gamma sizes, Dirichlet rates, Poisson rows."""
    import numpy as np

    rng = np.random.default_rng(seed)
    sizes = rng.gamma(2.0, mean_rows / 2, groups)
    rates = rng.dirichlet(np.full(labels, 4.0), groups)
    have = rng.poisson(sizes[:, None] * rates)
    have[have.sum(axis=1) == 0, 0] = 1
    return _of_array(have.tolist())


def _of_array(have: list[list[int]]) -> Counts:
    """A table of one attribute, a line a group and a column a label."""
    import numpy as np

    from equipoise.counts import Axis, Counts

    array = np.asarray(have, np.int64)
    lines, label = np.nonzero(array)
    codes = np.stack([lines, label], axis=1).astype(np.int32)
    groups = tuple(chr(ord("a") + i // 26) + chr(ord("a") + i % 26) for i in range(len(array)))
    axes = (
        Axis("group", groups),
        Axis("label", tuple(str(y) for y in range(array.shape[1])), "label"),
    )
    return Counts(axes=axes, codes=codes, rows=array[lines, label])


def people(rows: int) -> tuple[Any, Any, Any, Any]:
    """Rows of Adult and all its others, with their labels, as frames."""
    import numpy as np
    import pandas as pd

    frame = pd.read_parquet(data.BUNDLED)[["sex", "race", "age", "hours-per-week", data.LABEL]]
    order = np.random.default_rng(data.SEED).permutation(len(frame))
    parts = [frame.iloc[order[:rows]], frame.iloc[order[rows:]]]
    base, pool = (part.reset_index(drop=True) for part in parts)
    return base, base.pop(data.LABEL), pool, pool.pop(data.LABEL)
