"""What the installed package must do with its core dependencies, and with each extra alone.

Run by tools/check_wheel.py inside such an environment, in an empty folder, with warnings as errors.
"""
# ruff: noqa: INP001, D103, S101, S603, T201

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests"
ASKED = ["--sensitive", "sex,race", "--label", "income"]
PACKAGES = {
    "charts": ["altair", "vl_convert"],
    "excel": ["python_calamine"],
    "frames": ["pandas", "polars"],
    "lakehouse": ["deltalake", "pyiceberg"],
    "models": ["sklearn", "imblearn"],
    "postgres": ["psycopg"],
    "spark": ["pyspark"],
    "storage": ["fsspec", "s3fs"],
    "valentine": ["valentine"],
    "web": ["fastapi", "jinja2", "uvicorn"],
}
"""What must be there with an extra, and must not be there without any."""

ADDRESSES = {
    "lakehouse": "delta:people",
    "postgres": "postgresql://nobody@127.0.0.1:1/db?table=people",
    "spark": "spark:people",
    "storage": "memory://people.csv",
}
"""Data that an extra reads; there is none."""

PEOPLE = {
    "sex": ["w", "w", "w", "w", "m", "m", "m", "m"] * 10,
    "hired": ["no", "no", "no", "yes", "no", "yes", "yes", "yes"] * 10,
}


def core() -> None:
    for names in PACKAGES.values():
        assert not any(map(_is_installed, names)), names
    assert "sex=Female, race=Black" in _equipoise("measure", "adult", *ASKED)
    _equipoise("plan", "adult", *ASKED, "--tolerance", "0.1", "-o", "plan.json")
    assert json.loads(Path("plan.json").read_text("utf-8"))["certificate"]["reached"] is True
    _equipoise("measure", "adult", *ASKED, "-o", "adult.html")
    _equipoise("demo", "--output", "demo")  # measures, plans, finds, repairs, verifies, replays
    assert Path("demo/repaired.parquet").is_file()
    _write_workbook(Path("people.xlsx"))
    refused = _equipoise("measure", "people.xlsx", "-s", "sex", "-l", "hired", code=2)
    assert "pip install 'equipoise[excel]'" in refused
    assert "pip install 'equipoise[web]'" in _equipoise("explore", "--no-open", code=2)
    for extra, address in ADDRESSES.items():
        refused = _equipoise("measure", address, "-s", "sex", "-l", "hired", code=2)
        assert f"pip install 'equipoise[{extra}]'" in refused, refused


def charts() -> None:
    _equipoise("measure", "adult", *ASKED, "-o", "adult.html")
    assert "<svg" in Path("adult.html").read_text("utf-8")
    _equipoise("measure", "adult", *ASKED, "-o", "adult.png")
    assert Path("adult.png").read_bytes().startswith(b"\x89PNG")


def excel() -> None:
    _write_workbook(Path("people.xlsx"))
    assert "10 of 40" in _equipoise("measure", "people.xlsx", "-s", "sex", "-l", "hired")


def frames() -> None:
    import pandas as pd
    import polars as pl

    import equipoise as eq

    for people in (pd.DataFrame(PEOPLE), pl.DataFrame(PEOPLE)):
        table = eq.measure(people, sensitive_features=["sex"], label="hired")
        assert table["sex=w", "yes"].ub == 0.5
    assert len(table.to_pandas()) == len(table.to_polars()) == len(table)


def lakehouse() -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake("people", pa.table(PEOPLE))
    assert "10 of 40" in _equipoise("measure", "delta:people", "-s", "sex", "-l", "hired")


def postgres() -> None:
    asked = ("measure", ADDRESSES["postgres"], "-s", "sex", "-l", "hired")
    refused = _equipoise(*asked, code=2)
    assert "cannot be opened" in refused, refused


def spark() -> None:
    refused = _equipoise("measure", ADDRESSES["spark"], "-s", "sex", "-l", "hired", code=2)
    assert "does not exist in the catalog" in refused or "needs Java" in refused, refused


def storage() -> None:
    import fsspec

    import equipoise as eq

    with fsspec.open("memory://people.csv", "w") as file:
        file.write("sex,hired\nw,no\nm,yes\n" * 10)
    table = eq.measure("memory://people.csv", sensitive_features=["sex"], label="hired")
    assert table["sex=w", "yes"].ub == 1


def models() -> None:
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    import equipoise as eq
    from equipoise.estimators import UniformBiasSampler

    X = np.arange(80).reshape(-1, 1)
    sampler = UniformBiasSampler(allow="delete", random_state=0)
    X, y = sampler.fit_resample(X, PEOPLE["hired"], sensitive_features=PEOPLE["sex"])
    assert sampler.max_abs_ub_ == 0
    LogisticRegression().fit(X, y)
    result = eq.evaluate(
        "adult",
        sensitive_features=["sex"],
        label="income",
        models="logistic",
        versions=["u", "p"],
        repeats=2,
        max_rows=2000,
        jobs=1,
    )
    before, after = result.rows("tables")
    assert abs(after["ub"]) < abs(before["ub"])


def valentine() -> None:
    import equipoise as eq

    lake = Path("lake")
    lake.mkdir()
    rows = ["a,b,hired", *["x,w,yes", "y,m,no"] * 20]
    (lake / "staff.csv").write_text("\n".join(rows) + "\n", "utf-8")
    plan = eq.plan(PEOPLE, sensitive_features=["sex"], label="hired")
    found = eq.Lake(lake).find(plan, base=PEOPLE, second_opinion=True)
    assert found.to_dict()


def web() -> None:
    command = [sys.executable, "-m", "equipoise", "explore", "--no-open", "--home", "home"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address, _, token = server.stdout.readline().strip().partition("?token=")
            asked = "data=adult&sensitive_features=sex&label=income"
            for place, words in {
                f"table?{asked}": "Choose a table",
                f"api/bias?{asked}": "sex=Female",
                f"api/plan?{asked}&tolerance=0.1": "certificate",
                "static/vega.js": "vegaEmbed",
            }.items():
                request = urllib.request.Request(address + place)  # noqa: S310  the server's own
                request.add_header("Authorization", f"Bearer {token}")
                with urllib.request.urlopen(request) as answer:  # noqa: S310
                    assert words in answer.read().decode(), place
        finally:
            server.terminate()


def main(extra: str) -> None:
    import equipoise

    assert Path(equipoise.__file__).is_relative_to(sys.prefix), equipoise.__file__
    assert all(map(_is_installed, PACKAGES.get(extra, [])))
    globals()[extra]()


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _equipoise(*arguments: str, code: int = 0) -> str:
    program = Path(sys.executable).with_name("equipoise")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != code:
        print(done.stdout, done.stderr)
        raise SystemExit(f"equipoise {' '.join(arguments)} exits with {done.returncode}")
    return done.stdout + done.stderr


def _write_workbook(path: Path) -> None:
    sys.path.append(str(TESTS))
    import workbooks

    rows = [list(PEOPLE), *map(list, zip(*PEOPLE.values(), strict=True))]
    workbooks.write(path, {"people": rows})


if __name__ == "__main__":
    main(sys.argv[1])
