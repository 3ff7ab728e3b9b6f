"""A history of the applications of each day, and a check of this history."""

import os
from pathlib import Path

import dagster as dg

import equipoise as eq

STORE = os.environ["BIAS_STORE"]
FOLDER = Path(os.environ["BIAS_FOLDER"])
DAYS = dg.DailyPartitionsDefinition(start_date="2026-11-01")


@dg.asset(partitions_def=DAYS)
def bias_history(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """The counts of each day. Materializing a day again changes nothing."""
    day = context.partition_key
    with eq.Monitor(STORE) as monitor:
        added = monitor.add(
            FOLDER / "data" / f"{day}.csv",
            name="loans",
            sensitive_features=["sex", "race"],
            label="approved",
            id=day,
            at=day,
        )
    return dg.MaterializeResult(metadata={"rows": added.batch.n, "new": added.added})


@dg.asset_check(asset=bias_history, blocking=True)
def bias_within_limits() -> dg.AssetCheckResult:
    """An alert is an error and blocks downstream assets. Insufficient evidence is a warning."""
    with eq.Monitor(STORE) as monitor:
        check = monitor.check("loans", policy=FOLDER / "equipoise.toml")
    outside = check.exit_code == 1
    return dg.AssetCheckResult(
        passed=check.exit_code == 0,
        severity=dg.AssetCheckSeverity.ERROR if outside else dg.AssetCheckSeverity.WARN,
        description=check.outcome,
        metadata={"alerts": len(check.alerts), "report": dg.MetadataValue.md(check.markdown())},
    )


defs = dg.Definitions(assets=[bias_history], asset_checks=[bias_within_limits])
