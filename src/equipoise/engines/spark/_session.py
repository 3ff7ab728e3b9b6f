"""The session of Spark that is used: that of the user, or one that is started."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from equipoise.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_session() -> SparkSession:
    """Return the active session of Spark, or start one with the settings of the environment."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # Without this, workers of this machine would use the Python of the system.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    try:
        return SparkSession.builder.appName("equipoise").config(map=settings).getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        raise InputError(
            f"Spark cannot be started: {str(error).splitlines()[0].rstrip('.')}; it needs Java 17 or newer, which "
            "JAVA_HOME names if `java` is not on the path."
        ) from None


def was_stopped(session: SparkSession) -> bool:
    """Whether the user has stopped a session, which can do nothing any more."""
    context = getattr(
        session, "_sc", None
    )  # none in a session of a remote Spark, which says so itself
    is_over = context is not None and getattr(context, "_jsc", None) is None
    return is_over or bool(getattr(session, "is_stopped", False))
