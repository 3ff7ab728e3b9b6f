"""Stores for the tests of streams: a file, or one after the other all kinds there are."""

from __future__ import annotations

import pytest

import equipoise as eq
from servers import new_database


@pytest.fixture
def monitor(tmp_path):
    with eq.Monitor(tmp_path / "bias.sqlite") as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    if request.param == "sqlite":
        yield str(tmp_path / "bias.sqlite")
    else:
        with new_database() as found:
            yield found
