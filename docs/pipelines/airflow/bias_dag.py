"""Add the applications of each day to the history, and check the stream."""

import datetime
import logging
import os
from pathlib import Path

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

import equipoise as eq

STORE = os.environ["BIAS_STORE"]  # an address of PostgreSQL, if there are several workers
FOLDER = Path(os.environ["BIAS_FOLDER"])


@task
def add_batch(ds: str) -> None:
    """Add the applications of the day ``ds``. A retry changes nothing."""
    with eq.Monitor(STORE) as monitor:
        added = monitor.add(
            FOLDER / "data" / f"{ds}.csv",
            name="loans",
            sensitive_features=["sex", "race"],
            label="approved",
            id=ds,
            at=ds,
        )
    logging.info(" ".join(added.sentences))


@task
def check_stream() -> str:
    """Fail immediately if there is an alert, because a retry would see the same counts."""
    with eq.Monitor(STORE) as monitor:
        check = monitor.check("loans", policy=FOLDER / "equipoise.toml")
    if check.exit_code == 1:
        raise AirflowFailException(" ".join(check.sentences))
    level = logging.WARNING if check.exit_code == 3 else logging.INFO
    logging.log(level, check.outcome)
    return check.status


@dag(
    schedule="30 6 * * *",
    start_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC),
    catchup=False,
    default_args={"retries": 3},
)
def bias_of_loans() -> None:
    """Monitor the applications for loans."""
    add_batch(ds="{{ ds }}") >> check_stream()


bias_of_loans()
