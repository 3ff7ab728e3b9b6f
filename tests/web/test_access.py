"""Who may ask the explorer, from where, and what every answer carries."""

from __future__ import annotations

import asyncio
import json
import re
import socket

import httpx
import pytest

import serving
from equipoise.web.access import HEADERS, POLICY
from equipoise.web.application import make_application
from equipoise.web.crew import Crew
from equipoise.web.settings import ExplorerSettings

pytestmark = pytest.mark.slow  # the explorer runs in a process of its own

ROWS = "sex,hired\n" + "w,yes\nw,no\nw,no\nm,yes\nm,yes\nm,no\n" * 10
PLAN = "/api/plan?data=people.csv&sensitive_features=sex&label=hired"


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("access")
    (folder / "root").mkdir()
    (folder / "root" / "people.csv").write_text(ROWS)
    with serving.explorer(folder, "--max-upload", "1") as running:
        yield running


@pytest.fixture
def bare(explorer):
    """A client without a token."""
    with httpx.Client(base_url=explorer.address, timeout=60) as client:
        yield client


@pytest.fixture
def client(explorer):
    with explorer.client() as client:
        yield client


def cookie(explorer, user=0):
    return f"equipoise-{explorer.port}={explorer.tokens[user]}"


# --- hosts and tokens ---------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_another_name_of_the_host_is_refused(client, host):
    for path in ("/api/files", "/table", "/static/room.js"):
        assert client.get(path, headers={"Host": host}).status_code == 421


def test_names_of_this_machine_are_answered(client, explorer):
    for host in ("localhost", f"127.0.0.1:{explorer.port}", f"[::1]:{explorer.port}", "LOCALHOST"):
        assert client.get("/api/files", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic Zmlyc3Q6dG9rZW4="},
        {"Cookie": "equipoise-1=first-token-0123456789"},
        {"Cookie": "other=1; ;; =; \x01"},
    ],
)
def test_without_a_valid_token_nothing_is_told(bare, headers):
    for path in ("/", "/table", "/api/files", "/api/openapi.json", "/nowhere", PLAN):
        answer = bare.get(path, headers=headers)
        assert answer.status_code == 401, path
        assert "people" not in answer.text
    assert bare.post("/api/uploads", headers=headers).status_code == 401
    assert bare.delete("/api/uploads", headers=headers).status_code == 401


@pytest.mark.parametrize(
    "token", ["wrong", "", "first-token", "first-token-0123456789 x", "é", "\udcff"]
)
def test_a_wrong_token_in_the_address_is_refused(bare, token):
    given = token.encode(errors="surrogateescape")
    address = httpx.URL("/table", params={"token": given.decode("latin-1")})
    answer = bare.get(address)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_the_token_of_the_address_becomes_a_cookie(bare, explorer):
    first = bare.get("/plan", params={"data": "a b", "token": explorer.tokens[0]})
    assert first.status_code == 303
    assert first.headers["location"] == "/plan?data=a+b"
    kept = first.headers["set-cookie"]
    assert "HttpOnly" in kept
    assert "SameSite=Lax" in kept
    assert bare.get("/api/files").status_code == 200  # the client keeps cookies


def test_the_address_with_a_token_leads_to_no_other_host(bare, explorer):
    for path in ("//evil.example/x", "/\\evil.example", "/%2F%2Fevil.example"):
        answer = bare.get(f"{explorer.address}{path}?token={explorer.tokens[0]}")
        place = answer.headers.get("location", "/")
        assert re.match(r"/(?![/\\])", place), place


def test_a_token_below_api_may_stand_in_the_address(bare, explorer):
    assert bare.get(f"/api/files?token={explorer.tokens[0]}").status_code == 200
    assert bare.get("/api/files?token=wrong").status_code == 401


# --- where requests come from -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-origin"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "HERE"}, 200),
    ],
)
def test_what_changes_something_must_come_from_a_page_of_the_explorer(
    bare, explorer, headers, status
):
    sent = {"Cookie": cookie(explorer), **headers}
    if sent.get("Origin") == "HERE":
        sent["Origin"] = explorer.address
    assert bare.delete("/api/work/none", headers=sent).status_code == status
    upload = bare.post(
        "/api/uploads", headers=sent, files={"file": ("people.csv", ROWS.encode(), "text/csv")}
    )
    assert upload.status_code == (201 if status == 200 else 403)


def test_a_token_in_the_header_needs_no_origin(client):
    assert (
        client.delete("/api/work/none", headers={"Origin": "http://elsewhere"}).status_code == 200
    )


def test_no_answer_lets_other_origins_read_it(client):
    for path in ("/api/files", "/table?data=people.csv", "/static/room.js"):
        answer = client.get(path, headers={"Origin": "http://evil.example"})
        assert not [name for name in answer.headers if name.startswith("access-control")]
    asked = client.options("/api/files", headers={"Access-Control-Request-Method": "POST"})
    assert asked.status_code == 405


def test_reading_changes_nothing(client, explorer):
    """All addresses that are read, on every table, leave all files as they are."""
    described = client.get("/api/openapi.json").json()
    reading = [path for path, verbs in described["paths"].items() if "get" in verbs]
    pages = [f"/{room}{end}" for room in _rooms() for end in ("", "/part")]
    before = tree(explorer.root), tree(explorer.home)
    table = {"data": "people.csv", "sensitive_features": "sex", "label": "hired"}
    for path in [*reading, *pages, "/", "/jobs/0123456789ab/part"]:
        filled = re.sub(r"\{\w+\}", "0123456789ab", path)
        more = {"other": "people.csv"} if "compare" in path else {}
        answer = client.get(filled, params={**table, **more})
        assert answer.status_code in {200, 303, 404, 422}, (path, answer.text)
    assert (tree(explorer.root), tree(explorer.home)) == before


def _rooms():
    return ("table", "bias", "plan", "map", "lake", "compare")


def tree(folder):
    found = sorted(p for p in folder.rglob("*") if p.is_file() and "example" not in p.parts)
    return [(str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in found]


def test_what_writes_is_never_a_get(client):
    described = client.get("/api/openapi.json").json()
    for path in ("/api/uploads", "/api/lake/index", "/api/lake/answers", "/api/lake/repair"):
        assert "get" not in described["paths"][path]
        assert client.get(path).status_code in {404, 405}
    assert client.get("/api/evaluations").status_code in {404, 405}


# --- headers ------------------------------------------------------------------------------------


def test_every_answer_carries_the_headers(client, bare):
    answers = {
        "page": client.get("/table?data=people.csv"),
        "part": client.get("/table/part?data=people.csv"),
        "problem": client.get("/bias/part?data=nowhere.csv"),
        "redirect": client.get("/"),
        "json": client.get(PLAN),
        "error": client.get("/api/plan?tolerance=x"),
        "nowhere": client.get("/nowhere"),
        "method": client.post("/api/files"),
        "static": bare.get("/static/room.js"),
        "no static": bare.get("/static/nowhere.js"),
        "no token": bare.get("/table"),
        "host": bare.get("/table", headers={"Host": "evil.example"}),
        "download": client.get(
            "/api/bias/file.csv?data=people.csv&sensitive_features=sex&label=hired"
        ),
        "file": client.get(
            "/api/bias/file.html?data=people.csv&sensitive_features=sex&label=hired"
        ),
    }
    for name, answer in answers.items():
        for header, value in HEADERS.items():
            assert answer.headers.get(header) == value, (name, header)
        assert "server" not in answer.headers
        assert ("static" in name) or answer.headers["cache-control"] == "no-store", name


def test_the_policy_allows_nothing_from_elsewhere_and_no_inline_scripts(client):
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY
    assert not re.search(r"https?:", POLICY)
    table = "data=people.csv&sensitive_features=sex&label=hired"
    for room in _rooms():
        for path in (f"/{room}?{table}", f"/{room}/part?{table}"):
            page = client.get(path).text
            assert not re.search(r"<[^>]+\son\w+\s*=", page), path
            assert not re.search(r"<[^>]+\sstyle\s*=", page), path
            assert "<style" not in page
            inline = re.findall(r"<script(?![^>]*\bsrc=)([^>]*)>", page)
            assert all('type="application/json"' in each for each in inline), path
            for found in re.findall(r"""(?:src|href|action)\s*=\s*["']([^"']*)""", page):
                assert not re.match(r"(https?:)?//", found), found


def test_downloads_are_not_shown_as_pages_of_the_explorer(client):
    table = "data=people.csv&sensitive_features=sex&label=hired"
    for kind in ("csv", "json", "html", "md"):
        answer = client.get(f"/api/bias/file.{kind}?{table}")
        assert answer.status_code == 200
        assert answer.headers["content-disposition"].startswith("attachment;")


# --- what is not HTTP as it should be -----------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/table?data=%00",
        "/api/plan?data=a%00b",
        "/api/files?x=%00",
        "/api/jobs/%00",
    ],
)
def test_a_nul_character_is_refused(client, path):
    assert client.get(path).status_code in {400, 404}


@pytest.mark.parametrize(
    "path",
    [
        "/static/../access.py",
        "/static/%2e%2e/access.py",
        "/static/..%2faccess.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/" + "a" * 5000,
    ],
)
def test_static_files_are_those_of_their_folder(explorer, path):
    told = _raw(explorer, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert re.match(r"HTTP/1.1 40[0-9]", told), told[:200]
    assert "root:" not in told
    assert "class Guard" not in told


def _raw(explorer, text):
    with socket.create_connection(("127.0.0.1", explorer.port), timeout=20) as line:
        line.sendall(text.encode("latin-1"))
        pieces = []
        while piece := line.recv(65536):
            pieces.append(piece)
    return b"".join(pieces).decode("latin-1")


def test_a_request_without_a_host_or_with_two_is_refused(explorer):
    token = f"Authorization: Bearer {explorer.tokens[0]}\r\nConnection: close\r\n\r\n"
    assert " 4" in _raw(explorer, f"GET /api/files HTTP/1.1\r\n{token}")[:14]
    two = f"GET /api/files HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n{token}"
    assert " 4" in _raw(explorer, two)[:14]


# --- the tokens themselves ----------------------------------------------------------------------


def test_tokens_must_differ(tmp_path):
    with pytest.raises(ValueError, match="no token twice"):
        ExplorerSettings(root=tmp_path, home=tmp_path, tokens=("a", "a"))


def test_the_answer_to_an_unexpected_error_tells_nothing_and_the_log_everything(tmp_path, caplog):
    settings = ExplorerSettings(root=tmp_path, home=tmp_path / "home", tokens=("token",), workers=1)
    crew = Crew(settings)

    def fail(*_, **__):
        raise LookupError(f"secret {tmp_path}")

    crew.run = fail
    guarded = make_application(settings, hosts=("testserver",), crew=crew)
    for path in (PLAN, "/plan/part?data=people.csv&sensitive_features=sex&label=hired"):
        answer = asyncio.run(_asked(guarded, path.replace("people.csv", "adult")))
        assert answer.status_code == 500
        assert "LookupError" in answer.text
        assert "secret" not in answer.text
        assert str(tmp_path) not in answer.text
        assert "Traceback" not in answer.text
        assert answer.headers["content-security-policy"] == POLICY
    assert "secret" in caplog.text
    crew.close()


async def _asked(application, path):
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    headers = {"Authorization": "Bearer token"}
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        return await client.get(path, headers=headers)


def test_the_document_names_the_errors(client):
    described = client.get("/api/openapi.json").json()
    assert json.dumps(described)
    for path, verbs in described["paths"].items():
        for verb in verbs.values():
            assert {"401", "403", "422"} <= set(verb["responses"]), path
