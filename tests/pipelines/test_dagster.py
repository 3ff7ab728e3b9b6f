"""The asset and its check, run by Dagster within one process."""

from __future__ import annotations

import json

import pytest

from loans import DAYS, EXAMPLES, TOOLS, prepare, require_tool, run, surroundings

pytestmark = pytest.mark.slow

RUN = """\
import json, sys, warnings
import dagster as dg
from bias_checks import bias_history, bias_within_limits, defs

assert dg.Definitions.validate_loadable(defs) is None
told = []
with dg.DagsterInstance.ephemeral() as instance:
    for day in sys.argv[1:]:
        done = dg.materialize(
            [bias_history, bias_within_limits],
            partition_key=day,
            instance=instance,
            raise_on_error=False,
        )
        (check,) = done.get_asset_check_evaluations()
        (made,) = done.asset_materializations_for_node("bias_history")
        told.append({
            "success": done.success,
            "passed": check.passed,
            "severity": check.severity.value,
            "said": check.description,
            "report": check.metadata["report"].value,
            "new": made.metadata["new"].value,
        })
print(json.dumps(told))
"""


def materialize(folder, days):
    """Materialize days one after the other; what became of each."""
    require_tool("dagster")
    known = surroundings(
        folder,
        first=[TOOLS],
        BIAS_STORE=str(folder / "bias.sqlite"),
        BIAS_FOLDER=str(folder),
    )
    known["PYTHONPATH"] = f"{EXAMPLES / 'dagster'}:{known.get('PYTHONPATH', '')}"
    known["PYTHONDONTWRITEBYTECODE"] = "1"
    done = run([str(TOOLS / "python"), "-c", RUN, *days], folder, known)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_an_alert_is_an_error_that_blocks(tmp_path):
    first, alert, again = materialize(prepare(tmp_path, ["biased"] * 2), [*DAYS[:2], DAYS[1]])
    assert (first["success"], first["passed"], first["new"]) == (True, True, 1)
    for each, new in ((alert, 1), (again, 0)):
        assert (each["success"], each["passed"], each["severity"]) == (False, False, "ERROR")
        assert each["said"].startswith("Alert: ")
        assert "| outside | sex=Male | yes |" in each["report"]
        assert each["new"] == new


def test_too_little_evidence_is_a_warning(tmp_path):
    kinds = ["quiet"] * 3 + ["without black women"]
    *_, last = materialize(prepare(tmp_path, kinds), DAYS[:4])
    assert (last["success"], last["passed"], last["severity"]) == (True, False, "WARN")
    assert "1 group has vanished" in last["said"]
