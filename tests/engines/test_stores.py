"""Files in object stores: what a user may name there, read as the same files on this machine."""

from __future__ import annotations

import functools
import gzip
import http.server
import io
import json
import os
import re
import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stores
from equipoise.cli.app import run
from equipoise.counts import CountRequest
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.memory import MemoryEngine
from equipoise.engines.sources import locate
from equipoise.engines.stored import StoredFile, status_of
from equipoise.errors import EquipoiseError, InputError, MissingDependency, SourceNotFound

PEOPLE = {"sex": ["w", "m", "w"], "hired": ["yes", "no", None]}
ROWS = "sex,hired\nw,yes\nm,no\nw,\n"
SECRET = "hunter2-very-secret"


def parquet(rows=PEOPLE):
    buffer = io.BytesIO()
    pq.write_table(pa.table(rows), buffer)
    return buffer.getvalue()


FILES = {
    "people.csv": ROWS,
    "people.csv.gz": gzip.compress(ROWS.encode()),
    "people.tsv": ROWS.replace(",", "\t"),
    "semicolons.csv": ROWS.replace(",", ";"),
    "marked.csv": ROWS.encode("utf-16"),
    "untidy.csv": ROWS.replace("\n", "\r\n", 1),
    "people.parquet": parquet(),
    "people.jsonl": '{"sex": "w", "hired": "yes"}\n{"sex": "m", "hired": "no"}\n{"sex": "w", "hired": null}\n',
    "odd [name] #1.csv": ROWS,
}


@pytest.fixture(params=["memory", "s3"])
def store(request, monkeypatch):
    opened = stores.memory() if request.param == "memory" else stores.s3(monkeypatch)
    with opened as made:
        yield made


@pytest.fixture
def engine():
    made = DuckDBEngine()  # one of its own: a connection keeps the stores that it knows
    yield made
    made.close()


@pytest.mark.slow
def test_every_kind_of_file(store, engine):
    for name, content in FILES.items():
        source = locate(store.write(name, content))
        assert engine.read(source).to_pydict() == PEOPLE, name
        assert engine.counts(source, CountRequest(sensitive=("sex",), label="hired")).n == 2
        assert engine.profile(source).rows == 3
        assert engine.fetch(source, [1])["sex"].to_pylist() == ["m"]


@pytest.mark.slow
def test_folders_and_globs(store, engine):
    for name in (
        "a/1.csv",
        "a/2.csv",
        "a/deep/3.csv",
        "a/_hidden/4.csv",
        "a/.5.csv",
        "b/1.parquet",
    ):
        store.write(name, ROWS if name.endswith("csv") else parquet())
    for address, rows in {"a": 9, "a/": 9, "a/*.csv": 6, "a/**/*.csv": 9, "*/1.parquet": 3}.items():
        found = engine.read(locate(f"{store.root}/{address}"))
        if address != "a/**/*.csv":  # stores differ in what ** matches
            assert found.num_rows == rows, address
    with pytest.raises(InputError, match=r"several kinds \(csv, parquet\)"):
        locate(store.root)
    with pytest.raises(SourceNotFound, match="holds no table"):
        locate(f"{store.root}/nothing/*.csv")


@pytest.mark.slow
def test_what_is_not_there_or_not_read(store, engine):
    with pytest.raises(SourceNotFound, match="does not exist"):
        locate(f"{store.root}/nobody.csv")
    for name in ("base.duckdb", "base.sqlite", "book.xlsx"):
        with pytest.raises(InputError, match="copy it here first"):
            locate(store.write(name, "x"))
    with pytest.raises(InputError, match="unknown extension"):
        locate(store.write("people.doc", "x"))
    with pytest.raises(EquipoiseError, match="is empty"):
        engine.schema(locate(store.write("empty.csv", "")))
    with pytest.raises(EquipoiseError, match="cannot be read"):
        engine.read(locate(store.write("broken.parquet", b"PAR1 no")))
    source = locate(store.write("gone.parquet", parquet()))
    store.files.rm(f"{store.root}/gone.parquet")
    with pytest.raises(SourceNotFound):
        engine.read(source)


@pytest.mark.slow
def test_a_file_that_changes_is_seen(store):
    file = StoredFile(store.write("people.csv", ROWS))
    before = file.stat()
    store.write("people.csv", ROWS + "m,yes\n")
    assert file.stat() != before
    assert file.stat().st_size == before.st_size + len("m,yes\n")


@pytest.mark.slow
def test_a_wide_file_is_read_by_ranges(store, engine):
    """Counting two columns of many moves a small part of the file."""
    rows = 50_000
    wide = {f"c{i}": [str(i * j % 9973) for j in range(rows)] for i in range(8)}
    table = {"sex": ["w", "m"] * (rows // 2), "hired": ["yes"] * rows} | wide
    address = store.write("wide.parquet", parquet(table))
    size = StoredFile(address).stat().st_size
    read = []
    opened = store.files.open

    def watched(path, *args, **options):
        file = opened(path, *args, **options)
        plain = file.read
        file.read = lambda *a: [data := plain(*a), read.append(len(data))][0]
        return file

    store.files.open = watched
    try:
        engine.counts(locate(address), CountRequest(sensitive=("sex",), label="hired"))
    finally:
        del store.files.open
    assert 0 < sum(read) < size / 4


@pytest.mark.slow
def test_tables_of_lakehouses_in_a_store(monkeypatch, engine, tmp_path):
    from deltalake import write_deltalake
    from pyiceberg.catalog import load_catalog

    with stores.s3(monkeypatch) as store:
        options = {"aws_endpoint": os.environ["AWS_ENDPOINT_URL"], "allow_http": "true"}
        write_deltalake(f"{store.root}/delta", pa.table(PEOPLE), storage_options=options)
        source = locate(f"delta:{store.root}/delta")
        assert engine.read(source).to_pydict() == PEOPLE
        assert source.version == "0"
        with pytest.raises(SourceNotFound, match="version 7"):
            locate(f"delta:{store.root}/delta?version=7")
        with pytest.raises(SourceNotFound, match="cannot be read"):
            locate(f"delta:{store.root}/nowhere")
        where = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"{store.root}/wh"}
        access = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.access-key-id": "tester"}
        access |= {"s3.secret-access-key": SECRET, "s3.region": "us-east-1"}
        catalog = load_catalog("main", type="sql", **where, **access)
        catalog.create_namespace("archive")
        made = catalog.create_table("archive.people", pa.table(PEOPLE).schema)
        made.append(pa.table(PEOPLE))
        for address in (f"sqlite:///{tmp_path}/c.db?table=archive.people", made.metadata_location):
            assert engine.read(locate(f"iceberg:{address}")).to_pydict() == PEOPLE


def test_the_memory_engine_reads_csv_files_of_stores():
    with stores.memory() as store:
        source = locate(store.write("people.csv", ROWS))
        assert MemoryEngine().read(source).to_pydict() == PEOPLE


def test_lenient_reading_and_other_encodings(engine):
    with stores.memory() as store:
        address = store.write("broken.csv", "sex,hired\nw,yes\nm,no,9\nw,no\n")
        source = locate(address, lenient=True)
        assert engine.read(source).num_rows == 2
        assert engine.skipped(source).lines == 1
        address = store.write("latin.csv", "sex,hired\nfemme,d\xe9j\xe0\n".encode("latin-1"))
        assert engine.distinct(locate(address, encoding="latin-1"), "hired") == {"d\xe9j\xe0": 1}


def test_a_confined_engine_reads_no_store(tmp_path):
    confined = DuckDBEngine(within=[str(tmp_path)])
    try:
        with stores.memory() as store:
            for name in ("people.csv", "people.parquet", "people.jsonl"):
                source = locate(store.write(name, FILES[name]))
                with pytest.raises(EquipoiseError, match="folders that may be read"):
                    confined.read(source)
    finally:
        confined.close()


def test_the_extra_is_missing(monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "fsspec"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependency, match=r"equipoise\[storage\]"):
        locate("memory://people.csv")


@pytest.mark.parametrize(
    ("address", "package"), [("gs://b/a.csv", "gcsfs"), ("az://c/a.csv", "adlfs")]
)
def test_a_store_whose_package_is_missing(address, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=package):
        locate(address)


def test_marks_and_dates_of_stores():
    assert status_of({"size": 3, "ETag": '"abc"'}) == (3, 0, "abc")
    assert status_of({"size": None}) == (0, 0, "")
    assert status_of({"size": 1, "mtime": 1.5}).st_mtime_ns == 1_500_000_000


# --------------------------------------------------------------------- web servers


@pytest.fixture
def web(tmp_path):
    (tmp_path / "people.csv").write_text(ROWS)
    (tmp_path / "people.parquet").write_bytes(parquet())
    answers = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    monkey = type(
        "Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None}
    )
    answers = functools.partial(monkey, directory=str(tmp_path))
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), answers)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


def test_a_file_of_a_web_server(web, engine):
    for name in ("people.csv", "people.parquet"):
        source = locate(f"http://{web}/{name}?sig={SECRET}")
        assert SECRET not in source.name + repr(source)
        assert engine.read(source).to_pydict() == PEOPLE
    with pytest.raises(SourceNotFound) as caught:
        engine.read(locate(f"http://ann:{SECRET}@{web}/nobody.csv?sig={SECRET}"))
    assert SECRET not in str(caught.value)


def test_from_the_command_line(capsys):
    with stores.memory() as store:
        address = store.write("people.csv", ROWS)
        assert run(["measure", address, "-s", "sex", "-l", "hired", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["n"] == 2
        assert run(["measure", f"{store.root}/nobody.csv", "-s", "sex", "-l", "hired"]) == 2
        assert capsys.readouterr().err.startswith("error: memory://")


def test_a_server_that_is_not_reached_is_no_missing_file(web):
    with pytest.raises(
        SourceNotFound, match=r"x\.csv cannot be read, since its server .* reached: "
    ):
        locate("http://127.0.0.1:9/x.csv")
    with pytest.raises(SourceNotFound, match=r"x\.csv does not exist; check its name"):
        locate(f"http://{web}/x.csv")


@pytest.mark.slow
def test_a_delta_table_in_a_store_without_a_login_is_one_sentence(tmp_path):
    """The library would print pages of warnings of its own."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("AWS_", "RUST_"))}
    environment |= {
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "equipoise", "measure", "delta:s3://none/x", "-s", "a", "-l", "b"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert re.fullmatch(
        r"error: delta:s3://none/x cannot be read: .* region of its store\.\n", done.stderr
    )
