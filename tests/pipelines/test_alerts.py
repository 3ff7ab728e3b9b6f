"""Alerts that leave the machine: the webhook with its receiver, and the metrics of Prometheus."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shutil
import socket
import subprocess
import sys
import time

import pytest
import yaml

from equipoise.monitoring.webhook import SIGNATURE, TIMESTAMP, sign
from loans import EXAMPLES, ROOT, run, surroundings, watch

KEY = "a key of at least sixteen bytes"
PAGE = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")


@contextlib.contextmanager
def receiver(folder):
    """The receiver of the page, in a process of its own, and its port."""
    (folder / "webhook-key").write_text(f"{KEY}\n", encoding="utf-8")
    shutil.copy(EXAMPLES / "webhook" / "receiver.py", folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "received.txt"
    with log.open("w", encoding="utf-8") as out:
        command = [sys.executable, "receiver.py", str(port)]
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.DEVNULL)
        try:
            for _ in range(200):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                time.sleep(0.05)
            yield port, log
        finally:
            process.terminate()
            process.wait()


def line(wanted):
    """The line of the page that has a text."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (found,) = (block for block in blocks if wanted in block)
    return found


@pytest.mark.slow
def test_the_receiver_accepts_what_a_check_sends_and_no_other_key(tmp_path):
    watch(tmp_path, ["biased"] * 3)
    with receiver(tmp_path) as (port, log):
        address = f"http://127.0.0.1:{port}/bias"
        for key, code, answer in ((KEY, 1, "(204)"), ("another key of some bytes", 2, "403")):
            known = surroundings(tmp_path, WEBHOOK=address, WEBHOOK_KEY=key)
            done = run(["bash", "-c", line("--webhook")], tmp_path, known)
            assert done.returncode == code, done.stderr
            assert answer in done.stderr
        (received,) = log.read_text(encoding="utf-8").splitlines()
    sent = json.loads(received)
    assert (sent["name"], sent["status"]) == ("loans", "outside")


@pytest.mark.parametrize(
    ("seconds", "changes", "status"),
    [
        (0, {}, 204),
        (-200, {}, 204),
        (-400, {}, 403),
        (400, {}, 403),
        (0, {SIGNATURE: "v1=00"}, 403),
        (0, {SIGNATURE: "v1=é"}, 403),
        (0, {TIMESTAMP: "1"}, 403),
        (0, {SIGNATURE: ""}, 403),
    ],
)
def test_the_receiver_refuses_old_and_unsigned_bodies(port, seconds, changes, status):
    body, stamp = b'{"a": 1}', str(int(time.time()) + seconds)
    headers = {TIMESTAMP: stamp, SIGNATURE: sign(body, stamp, KEY.encode())} | changes
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("POST", "/", body, headers)
    assert connection.getresponse().status == status
    connection.close()


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with receiver(tmp_path_factory.mktemp("receiver")) as (number, _):
        yield number


@pytest.mark.slow
def test_the_metrics_are_those_of_the_rules(tmp_path):
    watch(tmp_path, ["biased"] * 3)
    (tmp_path / "textfile").mkdir()
    known = surroundings(tmp_path, TEXTFILES=str(tmp_path / "textfile"))
    done = run(["sh", "-c", line("monitor metrics")], tmp_path, known)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [file.name for file in (tmp_path / "textfile").iterdir()] == ["bias.prom"]
    text = (tmp_path / "textfile" / "bias.prom").read_text(encoding="utf-8")
    assert text.endswith("\n")
    # The format that the textfile collector reads has comments, and names with labels and a number.
    sample = re.compile(r'(\w+)\{(\w+="[^"]*",?)+\} (NaN|[+-]?(Inf|[\d.]+(e[+-]?\d+)?))')
    samples = [sample.fullmatch(each) for each in text.splitlines() if not each.startswith("#")]
    assert all(samples)
    names = {found[1] for found in samples}
    rules = yaml.safe_load((EXAMPLES / "prometheus" / "rules.yml").read_text(encoding="utf-8"))
    assert re.findall(r'^equipoise_status\{stream="loans"\} (.*)$', text, re.MULTILINE) == ["1"]
    for rule in rules["groups"][0]["rules"]:
        asked = set(re.findall(r"equipoise_\w+", rule["expr"]))
        assert asked
        assert asked <= names
