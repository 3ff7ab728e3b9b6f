from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, max_examples=40
)  # elsewhere there are 100, other ones in each run
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_collection_modifyitems(items):
    # Pages have no place for a mark, and most of them take seconds.
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.path.suffix == ".md":
            item.add_marker(pytest.mark.slow)
            if item.path.name == "spark.md":
                item.add_marker(pytest.mark.spark)


def pytest_configure(config):
    # Registered as a plugin, since hooks of this file alone would not see the examples in src/.
    if os.environ.get("EQUIPOISE_NO_SKIPS") == "1":
        config.pluginmanager.register(SkipsAreFailures())


class SkipsAreFailures:
    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        return _failed_if_skipped((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self):
        return _failed_if_skipped((yield))


def _failed_if_skipped(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        _, _, reason = report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: {reason} (no test may be skipped here)"
    return report
