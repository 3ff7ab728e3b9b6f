"""What the explorer does not let get out of hand: uploads, time, memory, processes, other users."""

from __future__ import annotations

import gzip
import io
import json
import re
import signal
import socket
import sys
import threading
import time
import zipfile

import httpx
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import serving
from equipoise.errors import EquipoiseError, InputError
from equipoise.web.crew import Crew, TooMuchWork
from equipoise.web.settings import ExplorerSettings as Settings
from equipoise.workers import Cancelled, Worker, WorkerEnded
from hard_work import crash, fill_arrow, fill_duckdb, fill_numpy, fill_text, load_numpy, sleep, spin

pytestmark = pytest.mark.slow  # processes start

ROWS = "sex,hired\n" + "w,yes\nw,no\nw,no\nm,yes\nm,yes\nm,no\n" * 10
CHOSEN = {"sensitive_features": "sex", "label": "hired"}
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    (folder / "root").mkdir()
    (folder / "root" / "people.csv").write_text(ROWS)
    with serving.explorer(folder, "--max-upload", "2", "--memory", "1500MB") as running:
        yield running


@pytest.fixture
def client(explorer):
    with explorer.client() as client:
        yield client


def send(client, name, content):
    kind = "application/octet-stream"
    return client.post("/api/uploads", files={"file": (name, content, kind)})


# --- uploads ------------------------------------------------------------------------------------


def test_an_upload_can_be_opened(client):
    told = send(client, "my people.csv", ROWS.encode())
    assert told.status_code == 201
    name = told.json()["data"]
    assert re.fullmatch(r"uploads/[0-9a-f]{10}-my_people.csv", name)
    assert client.get("/api/table", params={"data": name}).json()["rows"] == 60
    assert name in client.get("/api/files").json()["files"]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.csv", b"", "is empty"),
        ("a.exe", b"MZ", "cannot be opened; upload one of"),
        ("a.duckdb", b"x" * 100, "cannot be opened; upload one of"),
        ("a.sqlite", b"SQLite format 3\0" + b"x" * 100, "cannot be opened"),
        ("a.parquet", b"PAR1 this is none PAR1", "cannot be read"),
        ("a.parquet", ROWS.encode(), "cannot be read"),
        ("a.xlsx", b"PK\x03\x04 this is none", "Excel"),
        ("a.json", b"{]", "cannot be read"),
        ("a.csv.gz", b"\x1f\x8b\x08 not gzip", ""),
        ("a.csv", b"\x00\x01\x02\xff" * 100, ""),
    ],
)
def test_a_bad_upload_is_a_sentence_and_is_not_kept(client, explorer, name, content, why):
    before = client.get("/api/files").json()["files"]
    answer = send(client, name, content)
    assert answer.status_code == 422
    assert why in answer.json()["error"]
    hides(answer, explorer)
    assert client.get("/api/files").json()["files"] == before
    kept = explorer.home.rglob("uploads/*")
    assert not [p for p in kept if p.name.startswith(".") or p.name.endswith(name)]


def hides(answer, explorer):
    for folder in (
        explorer.root,
        explorer.home,
        explorer.root.parent,
        "site-packages",
        "Traceback",
    ):
        assert str(folder) not in answer.text


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>.csv",
        '"><img src=x onerror=alert(1)>.csv',
        "{{7*7}}.csv",
        "../../../etc/cron.csv",
        "a\u202ecsv.csv",
        "x" * 300 + ".csv",
        "-rf *.csv",
        "%2e%2e%2fx.csv",
        "naïve — 表.csv",
    ],
)
def test_odd_names_of_uploads_become_harmless(client, explorer, name):
    told = send(client, name, ROWS.encode())
    assert told.status_code == 201, told.text
    kept = told.json()["data"]
    assert re.fullmatch(r"uploads/[\w.-]+\.csv", kept, re.ASCII)
    assert client.get("/api/table", params={"data": kept}).status_code == 200
    assert "49" not in kept


def test_an_upload_beyond_the_limit_is_refused(client):
    answer = send(client, "large.csv", b"a\n" + b"1\n" * MEGABYTE)
    assert answer.status_code in {413, 422}
    assert "larger than 2 MB" in answer.json()["error"]
    answer = send(client, "larger.csv", b"a\n" + b"1\n" * 4 * MEGABYTE)
    assert answer.status_code == 413
    assert "larger than 2 MB" in answer.json()["error"]
    assert not [f for f in client.get("/api/files").json()["files"] if "large" in f]


def test_without_a_length_no_more_than_the_limit_is_read(explorer):
    """A body in chunks, of which nobody says how long it will be."""
    temporary = explorer.root.parent / "temporary"
    largest, ended = 0, threading.Event()

    def watch():
        nonlocal largest
        while not ended.is_set():
            # Files that were opened and unlinked are seen only through the process.
            used = sum(_size(f) for f in _opened(explorer.process.pid))
            largest = max(largest, used, sum(_size(p) for p in temporary.rglob("*")))
            time.sleep(0.005)

    head = (
        f"POST /api/uploads HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {explorer.tokens[0]}\r\n"
        "Transfer-Encoding: chunked\r\nContent-Type: multipart/form-data; boundary=B\r\n\r\n"
    )
    part = '--B\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    watching = threading.Thread(target=watch)
    watching.start()
    sent, piece = 0, b"1\n" * 32768
    with socket.create_connection(("127.0.0.1", explorer.port), timeout=30) as line:
        line.sendall(head.encode() + _chunk(part.encode()))
        try:
            for _ in range(4000):  # 260 MB
                line.sendall(_chunk(piece))
                sent += len(piece)
        except OSError:
            pass
        try:
            told = line.recv(65536).decode("latin-1")
        except OSError:
            told = ""
    ended.set()
    watching.join()
    assert sent > 100 * MEGABYTE
    assert told.startswith("HTTP/1.1 413")
    assert largest < 4 * MEGABYTE
    assert psutil.Process(explorer.process.pid).memory_info().rss < 300 * MEGABYTE
    with explorer.client() as client:
        assert client.get("/api/files").status_code == 200


def _chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _opened(pid):
    from pathlib import Path

    return [p for p in Path(f"/proc/{pid}/fd").glob("*") if "/temporary/" in _target(p)]


def _target(path):
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _size(path):
    try:
        return path.stat().st_size
    except OSError:
        return 0


def test_other_bodies_are_limited_too(client):
    body = {"answers": [{"table": "x" * 4000, "means": "y" * 4000}] * 4000}
    query = {"data": "people.csv", "lake": "lake", **CHOSEN}
    answer = client.post("/api/lake/answers", params=query, json=body)
    assert answer.status_code == 413


def test_a_small_file_that_unpacks_to_a_huge_one_ends_in_a_sentence(client, explorer):
    """Zeros in gzip: 2 MB that hold 2 GB, as one line, as many lines, and as a workbook."""
    zeros = gzip.compress(b"0" * 64 * MEGABYTE, 9)
    bombs = {
        "line.csv.gz": zeros * 25,
        "lines.csv.gz": gzip.compress(b"a,b\n") + gzip.compress(b"1,2\n" * 16 * MEGABYTE, 9) * 6,
        "book.xlsx": _workbook(b"0" * 700 * MEGABYTE),
    }
    for name, content in bombs.items():
        assert len(content) < 2 * MEGABYTE, name
        start = time.monotonic()
        answer = send(client, name, content)
        assert time.monotonic() - start < 60
        assert answer.status_code in {201, 422}, answer.text
        if answer.status_code == 422:
            assert len(answer.json()["error"]) > 20
            hides(answer, explorer)
        assert psutil.Process(explorer.process.pid).memory_info().rss < 400 * MEGABYTE
        assert client.get("/api/bias", params={"data": "people.csv", **CHOSEN}).status_code == 200


def _workbook(cells):
    """A workbook whose only sheet has one huge text."""
    made = io.BytesIO()
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as book:
        book.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.'
            f'openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="'
            f'{kind}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="'
            f'{kind}.worksheet+xml"/></Types>',
        )
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{rel}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{space}" xmlns:r="{rel}"><sheets><sheet name="a" sheetId="1" r:id="r1"/>'
            "</sheets></workbook>",
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{rel}/worksheet" '
            'Target="worksheets/sheet1.xml"/></Relationships>',
        )
        with book.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
            sheet.write(f'<worksheet xmlns="{space}"><sheetData>'.encode())
            sheet.write(b'<row r="1"><c r="A1" t="inlineStr"><is><t>')
            sheet.write(cells)
            sheet.write(b"</t></is></c></row></sheetData></worksheet>")
    return made.getvalue()


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_an_upload_cannot_name_other_files(client, explorer, name):
    """Values that look like paths, queries and functions are values."""
    secret = explorer.root.parent / "secret.csv"
    secret.write_text("classified\n1\n")
    values = [f"read_csv('{secret}')", f"'; ATTACH '{secret}'; --", f"file://{secret}", str(secret)]
    rows = {"sex": values * 10, "hired": ["yes", "no", "no", "yes"] * 10}
    written = io.BytesIO()
    if name.endswith("parquet"):
        pq.write_table(pa.table(rows), written)
    elif name.endswith("jsonl"):
        lines = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
        written.write("\n".join(map(json.dumps, lines)).encode())
    else:
        from pyarrow import csv

        csv.write_csv(pa.table(rows), written)
    told = send(client, name, written.getvalue())
    assert told.status_code == 201, told.text
    shown = client.get("/api/bias", params={"data": told.json()["data"], **CHOSEN})
    assert shown.status_code == 200
    assert "classified" not in shown.text


def test_all_uploads_can_be_deleted(explorer):
    with explorer.client(1) as client:
        assert send(client, "a.csv", ROWS.encode()).status_code == 201
        assert client.delete("/api/uploads").json()["deleted"] >= 1
        assert not [f for f in client.get("/api/files").json()["files"] if f.startswith("uploads/")]


# --- other users --------------------------------------------------------------------------------


def test_one_user_sees_nothing_of_another(explorer):
    with explorer.client(0) as first, explorer.client(1) as second:
        mine = send(first, "mine.csv", ROWS.replace("w", "only-mine").encode()).json()["data"]
        assert mine in first.get("/api/files").json()["files"]
        assert mine not in second.get("/api/files").json()["files"]
        for path in ("/api/table", "/api/bias", "/bias/part", "/api/bias/file.csv"):
            query = {"data": mine, **CHOSEN}
            assert first.get(path, params=query).status_code == 200
            refused = second.get(path, params=query)  # also once it is in the explorer's memory
            assert refused.status_code == 422
            assert "only-mine" not in refused.text
        lake = explorer.root / "lake"
        lake.mkdir(exist_ok=True)
        (lake / "a.csv").write_text(ROWS)
        job = first.post("/api/lake/index", params={"data": "people.csv", "lake": "lake", **CHOSEN})
        number = job.json()["job"]
        assert first.get(f"/api/jobs/{number}").status_code == 200
        assert second.get(f"/api/jobs/{number}").status_code == 404
        assert second.get(f"/jobs/{number}/part").status_code == 404
        assert second.delete(f"/api/jobs/{number}").json() == {"cancelled": False}
        ended = serving.until(
            lambda: first.get(f"/api/jobs/{number}").json()["state"] == "done", 30
        )
        assert ended
        assert second.get(f"/api/jobs/{number}").status_code == 404
        results = explorer.home / "x"
        for folder in explorer.home.iterdir():
            if (folder / "uploads" / mine.partition("/")[2]).exists():
                results = folder / "results"
        results.mkdir(exist_ok=True)
        (results / "mine.json").write_text("{}")
        assert first.get("/api/results/mine.json").status_code == 200
        assert second.get("/api/results/mine.json").status_code == 404
        work = {"X-Work": "shared-name"}
        first.get("/api/bias", params={"data": "people.csv", **CHOSEN}, headers=work)
        assert second.get("/api/work/shared-name").json()["title"] == "waiting"  # as of any other
        assert second.delete("/api/work/shared-name").json() == {"cancelled": False}


@pytest.mark.parametrize("job", ["0123456789ab", "../jobs/x", "%2e%2e", "a" * 3000, "ß", "*"])
def test_guessed_numbers_of_jobs_and_results_find_nothing(client, job):
    for path in (f"/api/jobs/{job}", f"/jobs/{job}/part", f"/api/results/{job}"):
        assert client.get(path).status_code in {404, 405}, path


def test_two_tabs_of_one_user_do_not_disturb_each_other(explorer):
    with explorer.client() as client:
        answers = []

        def ask(number):
            query = {"data": "people.csv", "tolerance": 0.01 * (number + 1), **CHOSEN}
            headers = {"X-Work": f"tab-{number % 2}"}
            answers.append(client.get("/api/plan", params=query, headers=headers).status_code)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert answers == [200] * 6


# --- work that gets out of hand -------------------------------------------------------------------


def settings(tmp_path, **options):
    tokens = ("first", "second")
    return Settings(
        root=tmp_path, home=tmp_path / "home", tokens=tokens, **{"workers": 2, **options}
    )


@pytest.fixture
def crew(tmp_path):
    made = Crew(settings(tmp_path, memory=700 * MEGABYTE, time_limit=20))
    yield made
    made.close()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
@pytest.mark.parametrize("fill", [fill_numpy, fill_arrow, fill_text])
def test_too_much_memory_is_an_error_and_the_next_work_is_done(crew, fill):
    with pytest.raises((MemoryError, WorkerEnded)):
        crew.run(fill, user="a")
    assert crew.run(sleep, 0, user="a") == 0


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_the_database_has_a_limit_of_its_own(crew, tmp_path):
    with pytest.raises(InputError, match="more memory than allowed"):
        crew.run(fill_duckdb, tmp_path, user="a")
    assert crew.run(sleep, 0, user="a") == 0


@pytest.mark.parametrize("task", [spin, crash])
def test_work_that_hangs_or_crashes_is_an_error_and_the_next_work_is_done(crew, task):
    start = time.monotonic()
    with pytest.raises(WorkerEnded):
        crew.run(task, user="a", time_limit=2)
    assert time.monotonic() - start < 10
    assert crew.run(sleep, 0, user="a") == 0


def test_work_is_cancelled_within_a_second(crew):
    crew.run(sleep, 0, user="a")
    for task in (sleep, spin):
        given = (60,) if task is sleep else ()
        ended = []

        def work(task=task, given=given, ended=ended):
            with pytest.raises(Cancelled):
                crew.run(task, *given, user="a", work="w", time_limit=60)
            ended.append(time.monotonic())

        thread = threading.Thread(target=work)
        thread.start()
        assert serving.until(lambda: getattr(crew.work("a", "w"), "running", False))
        time.sleep(0.2)
        began = time.monotonic()
        assert not crew.cancel("b", "w")
        assert crew.cancel("a", "w")
        thread.join(5)
        assert ended
        assert ended[0] - began < 1


def test_too_much_work_of_one_user_is_refused_and_others_are_served(crew):
    threads = [threading.Thread(target=lambda: _quietly(crew, "a")) for _ in range(8)]
    for each in threads:
        each.start()
    assert serving.until(lambda: len(crew._works) == 8)
    with pytest.raises(TooMuchWork, match="too much work under way"):
        crew.run(sleep, 0, user="a")
    start = time.monotonic()
    assert crew.run(sleep, 0, user="b") == 0  # one process is left to others
    assert time.monotonic() - start < 3
    crew.close()
    for each in threads:
        each.join(10)
    assert not any(each.is_alive() for each in threads)


def _quietly(crew, user, **options):
    try:
        return crew.run(sleep, 30, user=user, **options)
    except EquipoiseError:
        return None


def test_long_work_leaves_a_process_to_short_work(crew):
    crew.run(sleep, 0, user="a")
    threads = [
        threading.Thread(target=lambda user=user: _quietly(crew, user, slow=True))
        for user in "abcd"
    ]
    for each in threads:
        each.start()
    assert serving.until(lambda: any(w.running for w in crew._works.values()))
    start = time.monotonic()
    assert crew.run(sleep, 0, user="e") == 0
    assert time.monotonic() - start < 3
    crew.close()
    for each in threads:
        each.join(10)


# --- requests that are cancelled, given up, or too many -----------------------------------------


def busy(explorer, client, work, **options):
    """Ask for what takes ten seconds: the frontier of a table with some hundred groups."""
    query = {
        "data": "adult",
        "sensitive_features": ["sex", "race", "marital-status", "age"],
        "bins": "age=20,30,40,50,60,70,80,90",
        "label": "income",
    }
    return client.get("/api/frontier", params=query, headers={"X-Work": work}, **options)


def is_running(client, work):
    return not client.get(f"/api/work/{work}").json()["done"]


def test_a_request_is_cancelled_within_a_second(explorer):
    with explorer.client() as client, explorer.client() as other:
        told = []
        thread = threading.Thread(target=lambda: told.append(busy(explorer, client, "to-cancel")))
        thread.start()
        assert serving.until(lambda: is_running(other, "to-cancel"), 20)
        time.sleep(1.0)
        began = time.monotonic()
        assert other.delete("/api/work/to-cancel").json() == {"cancelled": True}
        thread.join(5)
        assert time.monotonic() - began < 1.5
        assert told[0].status_code == 409
        assert "cancelled" in told[0].json()["error"]
        assert other.get("/api/bias", params={"data": "people.csv", **CHOSEN}).status_code == 200


def test_work_for_a_client_that_left_is_given_up(explorer):
    with explorer.client() as client, explorer.client() as other:
        with pytest.raises(httpx.ReadTimeout):
            busy(explorer, client, "left", timeout=1.5)
        client.close()
        assert serving.until(lambda: other.get("/api/work/left").json()["done"], 3)


def test_too_many_requests_are_answered_as_such(explorer):
    with explorer.client(1) as client:
        told = []

        def ask(number):
            told.append(busy(explorer, client, f"many-{number}").status_code)

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(12)]
        for each in threads:
            each.start()
        assert serving.until(lambda: len(told) >= 4, 20)
        assert 429 in told
        with explorer.client(0) as other:
            start = time.monotonic()
            answer = other.get("/api/bias", params={"data": "people.csv", **CHOSEN, "limit": 0.3})
            assert answer.status_code == 200
            assert time.monotonic() - start < 5
            assert other.get("/api/files").status_code == 200
        for number in range(12):
            client.delete(f"/api/work/many-{number}")
        for each in threads:
            each.join(20)
        assert {429} < set(told) <= {200, 409, 429}


def test_an_answer_of_too_many_groups_is_a_sentence(explorer):
    """A million groups and more: an error that says what to do, and no dead process."""
    import numpy as np

    chance = np.random.default_rng(0)
    columns = {f"c{i}": chance.integers(0, 30, 40_000).astype(str) for i in range(6)}
    hired = np.where(chance.random(40_000) < 0.5, "yes", "no")
    pq.write_table(pa.table({**columns, "hired": hired}), explorer.root / "wide.parquet")
    with explorer.client() as client:
        query = {"data": "wide.parquet", "sensitive_features": list(columns), "label": "hired"}
        for path in ("/api/bias", "/api/plan", "/bias/part"):
            answer = client.get(
                path, params={**query, "time_limit": 5} if "plan" in path else query
            )
            assert answer.status_code in {200, 422}, answer.text[:300]
            if answer.status_code == 422:
                assert "Error" not in answer.text
                hides(answer, explorer)
            else:
                assert len(answer.content) < 3 * MEGABYTE
        assert client.get("/api/bias", params={"data": "people.csv", **CHOSEN}).status_code == 200


# --- ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_and_no_half_file_is_left(tmp_path, how):
    with serving.explorer(tmp_path) as running, running.client() as client:
        assert client.get("/api/table?data=adult").status_code == 200
        errors = []

        def ask():
            try:
                busy(running, client, "last")
            except httpx.HTTPError as error:
                errors.append(error)

        threading.Thread(target=ask, daemon=True).start()
        with running.client() as other:
            assert serving.until(lambda: is_running(other, "last"))
        time.sleep(0.5)
        workers = running.workers()
        assert len(workers) >= 2
        running.stop(how)
        assert serving.until(lambda: not any(map(serving.is_alive, workers)), 5)
    left = [p for p in (tmp_path / "home").rglob("*") if ".tmp" in p.name or "partial" in p.name]
    assert not left
    assert not any("Traceback" in line for line in running.said), running.said


def test_a_worker_that_waits_for_work_ends_with_its_program(tmp_path):
    import subprocess

    program = (
        "import os, sys, time\n"
        "from equipoise.workers import Worker\n"
        "import threading\n"
        "worker = Worker()\n"
        "print(worker.run(os.getpid, time_limit=30), flush=True)\n"
        "threading.Thread(target=lambda: worker.run(time.sleep, 60, time_limit=60), daemon=True).start()\n"
        "time.sleep(60)\n"
    )
    started = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    pid = int(started.stdout.readline())
    time.sleep(0.3)
    started.kill()
    started.wait()
    started.stdout.close()
    assert serving.until(lambda: not serving.is_alive(pid), 5)


def test_modules_beside_the_data_are_not_imported(tmp_path):
    (tmp_path / "numpy.py").write_text("raise RuntimeError('imported from the data')\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('imported from the data')\n")
    with Worker(folder=str(tmp_path)) as worker:
        assert worker.run(load_numpy, time_limit=30)


def test_nothing_is_written_if_it_was_started_to_read_only(tmp_path):
    (tmp_path / "root" / "lake").mkdir(parents=True)
    (tmp_path / "root" / "people.csv").write_text(ROWS)
    (tmp_path / "root" / "lake" / "staff.csv").write_text(ROWS)
    with serving.explorer(tmp_path, "--read-only") as running, running.client() as client:
        query = {"data": "people.csv", "lake": "lake", **CHOSEN}
        assert send(client, "a.csv", ROWS.encode()).status_code == 422
        for path in ("/api/lake/index", "/api/lake/repair", "/api/evaluations"):
            fitting = {k: v for k, v in query.items() if k != "lake" or "lake" in path}
            answer = client.post(path, params=fitting)
            assert answer.status_code == 422
            assert "read only" in answer.json()["error"]
        answers = client.post("/api/lake/answers", params=query, json={"answers": []})
        assert "read only" in answers.json()["error"]
        assert client.delete("/api/uploads").status_code == 422
        for room in ("table", "lake", "compare"):
            page = client.get(f"/{room}", params={"data": "people.csv"}).text
            assert 'id="upload"' not in page
            assert 'id="evaluate"' not in page
        for form in ("json", "html"):
            asked = {**query, "form": "eu-ai-act-article-10", "min_group": 1, "tolerance": 0.01}
            path = "/api/audit" if form == "json" else f"/api/audit/file.{form}"
            answer = client.get(path, params=asked)
            assert "not indexed" in answer.json()["error"]
        found = [p.relative_to(running.root).as_posix() for p in running.root.rglob("*")]
        assert sorted(found) == ["lake", "lake/staff.csv", "people.csv"]
