"""What files are, by their bytes."""

from __future__ import annotations

import pytest

from equipoise.engines.base import location_names
from equipoise.engines.csv.encodings import guess_encoding
from equipoise.engines.kinds import kind_of_bytes


def test_a_file_that_is_not_utf8_is_taken_for_western(tmp_path):
    (tmp_path / "a.csv").write_bytes("nom\nRené\n".encode("latin-1"))
    assert guess_encoding(tmp_path / "a.csv") == "cp1252"


@pytest.mark.parametrize(("head", "kind"), [(b"PAR1...", "parquet"), (b"sex,age", "csv")])
def test_the_first_bytes_tell_the_format(head, kind):
    assert kind_of_bytes(head) == kind


def test_columns_of_places_do_not_collide_with_those_of_the_table():
    assert location_names(["sex", "MD5"]) == ("place", "md5_")
