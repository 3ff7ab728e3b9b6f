from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "altair",
    "duckdb",
    "fastapi",
    "ibis",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "scipy",
    "sklearn",
    "vl_convert",
}


@pytest.mark.parametrize("module", ["equipoise", "equipoise.cli"])
def test_importing_loads_no_heavy_library(module):
    program = (
        f"import sys, {module}; assert {module}.__file__; print(*sorted(sys.modules), sep='\\n')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    loaded = run.stdout.split()
    assert module in loaded
    assert HEAVY.intersection(loaded) == set()
