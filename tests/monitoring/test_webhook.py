"""Webhooks: signed, tried again, and never sent to another host."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.server
import json
import socket
import threading

import pytest

import equipoise as eq
from equipoise.cli.app import run
from equipoise.errors import InputError
from equipoise.monitoring import webhook
from streams import biased, fill, quiet

KEY = b"a key that nobody knows"


@contextlib.contextmanager
def receiver(*answers):
    """A server that gives these answers in turn, the last of them again; yields its address and requests."""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, dict(self.headers), body))
            status, headers = answers[min(len(got), len(answers)) - 1]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()


def test_the_body_is_signed_with_its_time():
    with receiver((204, {})) as (address, got):
        sent = webhook.send(
            {"status": "outside"}, f"{address}/hook?a=1", KEY, clock=lambda: 1_790_000_000.9
        )
    assert (sent.status, sent.tries) == (204, 1)
    ((path, headers, body),) = got
    assert path == "/hook?a=1"
    assert json.loads(body) == {"status": "outside"}
    assert headers["X-Equipoise-Timestamp"] == "1790000000"
    wanted = hmac.new(KEY, b"1790000000." + body, hashlib.sha256).hexdigest()
    assert headers["X-Equipoise-Signature"] == f"v1={wanted}"


def test_failures_are_tried_again_with_growing_waits():
    waited = []
    with receiver((503, {}), (429, {"Retry-After": "7"}), (200, {})) as (address, got):
        sent = webhook.send({}, address, KEY, wait=waited.append)
    assert (sent.tries, waited, len(got)) == (3, [1.0, 7.0], 3)


def test_what_is_refused_is_not_tried_again():
    with (
        receiver((403, {})) as (address, got),
        pytest.raises(
            webhook.NotDelivered, match=r"after 1 attempt: its response was 403 Forbidden"
        ),
    ):
        webhook.send({}, address, KEY, wait=pytest.fail)
    assert len(got) == 1


def test_a_receiver_that_is_not_there_is_told_after_five_tries():
    with receiver((200, {})) as (address, _):
        pass
    waited = []
    with pytest.raises(webhook.NotDelivered, match="after 5 attempts"):
        webhook.send({}, address, KEY, wait=waited.append)
    assert waited == [1.0, 2.0, 4.0, 8.0]


def test_redirects_to_other_hosts_get_no_data():
    with receiver((200, {})) as (other, stolen):
        for status in (301, 302, 307, 308):
            with (
                receiver((status, {"Location": f"{other}/x"})) as (address, _),
                pytest.raises(
                    webhook.NotDelivered, match="redirected to another port of this host"
                ),
            ):
                webhook.send({}, address, KEY, wait=pytest.fail)
        assert stolen == []
    for place, what in (
        ("http://elsewhere.example/x", r"to another host, elsewhere.example\."),
        ("https://127.0.0.1/x", r"to https on the same host\. Nothing was sent there"),
    ):
        with (
            receiver((307, {"Location": place})) as (address, _),
            pytest.raises(webhook.NotDelivered, match=what),
        ):
            webhook.send({}, address, KEY, wait=pytest.fail)


@pytest.mark.parametrize("place", ["http://127.0.0.1:99999/", "http://[::1", "ftp://a/", "/a b"])
def test_redirects_to_what_is_no_address_are_told(place):
    with (
        receiver((307, {"Location": place})) as (address, _),
        pytest.raises(webhook.NotDelivered, match="redirected to an invalid address"),
    ):
        webhook.send({}, address, KEY, wait=pytest.fail)


def test_paths_may_have_any_letter():
    sent_as = "ä".encode().decode("latin-1")
    with receiver((307, {"Location": f"/{sent_as}"}), (200, {})) as (address, got):
        webhook.send({}, f"{address}/ö%20x?é=1&a=%26#part", KEY)
    assert [path for path, *_ in got] == ["/%C3%B6%20x?%C3%A9=1&a=%26", "/%C3%A4"]


def test_nothing_that_is_told_has_the_path_of_the_address():
    said = []
    with receiver((200, {})) as (address, _):
        sent = webhook.send({}, f"{address}/services/SECRET?x=SECRET", KEY)
        assert sent.address == f"{address}/…"
        assert webhook.send({}, address, KEY).address == address
    answers = [(404, {}), (302, {"Location": "/x"}), (307, {"Location": "/SECRET"})]
    answers += [
        (307, {"Location": "http://a.example/SECRET"}),
        (307, {"Location": "http://[SECRET"}),
    ]
    for answer in answers:
        with receiver(answer) as (address, _), pytest.raises(webhook.NotDelivered) as error:
            webhook.send({}, f"{address}/services/SECRET", KEY)
        said.append(str(error.value))
    for wrong in ("hooks.example/SECRET", "https://a..b/SECRET", f"{address}/SECRET"):
        with pytest.raises(InputError) as error:
            webhook.send({}, wrong, KEY, wait=lambda _: None)
        said.append(str(error.value))
    assert [text for text in said if "SECRET" in text] == []


def test_an_answer_that_is_not_http_is_told_without_its_text():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def echo():
            for _ in range(webhook.TRIES):
                client, _ = server.accept()
                with client:
                    client.sendall(client.recv(65_536))

        threading.Thread(target=echo, daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/SECRET"
        with pytest.raises(
            webhook.NotDelivered, match="5 attempts: its response is not HTTP"
        ) as error:
            webhook.send({}, address, KEY, wait=lambda _: None)
    assert "SECRET" not in str(error.value)


def test_an_answer_whose_body_never_comes_is_accepted_once(monkeypatch):
    monkeypatch.setattr(webhook, "_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            client, _ = server.accept()
            with client:
                client.recv(65_536)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
                client.recv(1)  # until the sender ends the connection

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        sent = webhook.send({}, address, KEY, wait=pytest.fail)
        thread.join()
    assert (sent.status, sent.tries) == (200, 1)


def test_redirects_on_the_same_host_are_followed_with_the_body():
    with receiver((308, {"Location": "/new"}), (200, {})) as (address, got):
        webhook.send({"a": 1}, f"{address}/old", KEY)
        assert [(path, body) for path, _, body in got] == [
            ("/old", b'{"a": 1}'),
            ("/new", b'{"a": 1}'),
        ]
    with receiver((302, {"Location": "/new"})) as (address, got):
        with pytest.raises(webhook.NotDelivered, match="its response was 302"):
            webhook.send({}, address, KEY)
        assert len(got) == 1
    with (
        receiver((307, {"Location": "/again"})) as (address, _),
        pytest.raises(webhook.NotDelivered, match="redirected too many times"),
    ):
        webhook.send({}, address, KEY)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("ftp://host/x", "it must begin with https://"),
        ("file:///etc/passwd", "it must begin with https://"),
        ("https://ann:secret@host/x", "must not contain a login"),
        ("http://host:99999/x", "not a valid address of a webhook"),
        ("nonsense", "not a valid address of a webhook"),
        ("http://a..b/x", "not a valid address of a webhook"),
        (f"http://{'a' * 70}.org/x", "not a valid address of a webhook"),
        ("http://a$b/x", "not a valid address of a webhook"),
        ("http://[::1/x", "not a valid address of a webhook"),
    ],
)
def test_addresses_are_checked(address, why):
    with pytest.raises(InputError, match=why) as error:
        webhook.send({}, address, KEY)
    assert "secret" not in str(error.value)


def test_short_keys_are_refused():
    with pytest.raises(InputError, match="given as bytes, not as NoneType"):
        webhook.send({}, "http://127.0.0.1:9", None)
    with pytest.raises(InputError, match="at least 16 bytes, not 5"):
        webhook.send({}, "https://host/x", b"short")


def test_a_check_sends_what_it_found(tmp_path, capsys):
    store, key = tmp_path / "bias.sqlite", tmp_path / "key"
    key.write_bytes(KEY + b"\n")
    with eq.Monitor(store) as monitor:
        fill(monitor, biased(30))
        fill(monitor, quiet(30), name="calm")
    check = ["monitor", "check", "--store", str(store), "--webhook-key-file", str(key)]
    with receiver((200, {})) as (address, got):
        assert run([*check, "--name", "calm", "--webhook", address]) == 0
        assert got == []
        assert run([*check, "--name", "calm", "--webhook", address, "--webhook-always"]) == 0
        assert run([*check, "--name", "hires", "--webhook", address]) == 1
    assert [json.loads(body)["status"] for *_, body in got] == ["inside", "outside"]
    assert f"sent to {address} (200)" in capsys.readouterr().err


def test_a_short_key_is_refused_before_the_first_alert(tmp_path, capsys):
    store, key = tmp_path / "bias.sqlite", tmp_path / "key"
    key.write_bytes(b"short\n")
    with eq.Monitor(store) as monitor:
        fill(monitor, quiet(3))
    hook = ["--webhook", "http://127.0.0.1:9", "--webhook-key-file", str(key)]
    assert run(["monitor", "check", "--store", str(store), "--name", "hires", *hook]) == 2
    told = capsys.readouterr()
    assert "at least 16 bytes, not 5" in told.err
    assert told.out == ""
