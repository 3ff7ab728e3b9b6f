"""Errors of Spark as sentences."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from equipoise.engines.sources import Source
from equipoise.errors import EquipoiseError, InputError

_ENDED = re.compile(
    r"cancel|shut down|stopped|SparkContext|has been closed|ExecutorLost|executor .* (exited|lost)|Lost task|Connection refused",
    re.IGNORECASE,
)


UNTOUCHED = "nothing is half done"
"""What errors say, unless something is."""


class Interrupted(EquipoiseError):
    """Work that Spark could not finish, because workers, the session or the connection were lost."""


def explained(error: Exception, source: Source) -> EquipoiseError | None:
    """Turn an error of Spark into one of ours; return None for an error of another kind."""
    if isinstance(error, ConnectionError):
        return Interrupted(
            f"Spark has ended while it worked on {source.name}: the connection to it was lost; {UNTOUCHED}; "
            "start it, and try again."
        )
    if not isinstance(error, PySparkException) and not type(error).__module__.startswith("py4j"):
        return None
    why = reason(str(error)) or type(error).__name__
    if "SparkContext" in why and ("null" in why or "stopped" in why):
        why = "its session has been stopped"
    if lacking := re.fullmatch(r"ModuleNotFoundError: No module named '([\w.]+)'", why):
        return InputError(
            f"the workers of Spark cannot read {source.name}, since their Python has no {lacking[1]}; install it "
            "there, or start Spark with PYSPARK_PYTHON, which names a Python that has it."
        )
    if _ENDED.search(str(error)):
        return Interrupted(
            f"Spark could not finish its work on {source.name}: {why}; {UNTOUCHED}; try again."
        )
    return InputError(f"Spark refused a query over {source.name}: {why}.")


def reason(text: str) -> str:
    r"""Find the line of an error that says why it came about.

    >>> reason(
    ...     "An error occurred while calling o83.getResult.\n: SparkException: awaitResult: "
    ...     "\n\tat a.b\nCaused by: org.apache.spark.SparkException: Job 3 cancelled "
    ... )
    'Job 3 cancelled'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    causes = [line for line in lines if line.startswith("Caused by:")]
    is_python = "Python worker" in lines[0]  # whose last line says what went wrong
    why = causes[0] if lines[0].startswith("An error occurred while calling") and causes else ""
    why = why or (lines[-1] if is_python else lines[0])
    why = re.sub(r"^Caused by: [\w.$]+: ", "", why)
    why = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", why)
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", why).rstrip(" .;")
