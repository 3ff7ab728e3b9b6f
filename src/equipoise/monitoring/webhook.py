"""A webhook: the result of a check, sent to an address with a signature.

The body is the JSON of the check. Its signature is the HMAC-SHA256, under a secret key, of the
timestamp, a point and the body; a receiver computes it again, and refuses old timestamps.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from equipoise.credentials import scrubbed, without_password
from equipoise.errors import InputError
from equipoise.version import __version__

TRIES = 5
_SECONDS = 10.0
"""Limit of each try."""
_REDIRECTS = 3
_RETRIED = {408, 425, 429, 500, 502, 503, 504}
TIMESTAMP, SIGNATURE = "X-Equipoise-Timestamp", "X-Equipoise-Signature"
_LEAST_KEY = 16


@dataclass(frozen=True)
class Delivery:
    """How a webhook was delivered."""

    address: str
    status: int
    tries: int


class NotDelivered(InputError):
    """A webhook that its receiver did not accept."""


def sign(body: bytes, timestamp: str, key: bytes) -> str:
    """Sign a body at a time.

    >>> sign(b"{}", "1790000000", b"a secret of 20 bytes")[:23]
    'v1=7ef899cd2f411f39a43c'
    """
    digest = hmac.new(key, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"v1={digest}"


def send(
    data: Mapping[str, Any],
    address: str,
    key: bytes | str,
    *,
    wait: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> Delivery:
    """Send data to an address; tries that fail are repeated after 1, 2, 4 and 8 seconds."""
    target = read_address(address)
    secret = key.encode() if isinstance(key, str) else key
    if len(secret) < _LEAST_KEY:
        raise InputError(
            f"the key of a webhook has at least {_LEAST_KEY} bytes, not {len(secret)}."
        )
    body = json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    why = ""
    for attempt in range(1, TRIES + 1):
        # The time is that of the try, so that a receiver can refuse what is old.
        timestamp = str(int(clock()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"equipoise/{__version__}",
            TIMESTAMP: timestamp,
            SIGNATURE: sign(body, timestamp, secret),
        }
        try:
            status, after = _post(target, body, headers)
        except (OSError, http.client.HTTPException) as error:
            why, after = scrubbed(str(error) or type(error).__name__, [address]), None
        else:
            if 200 <= status < 300:
                return Delivery(without_password(address), status, attempt)
            why = f"it answered {status} {http.client.responses.get(status, '')}".rstrip()
            if status not in _RETRIED:
                break
        if attempt < TRIES:
            wait(max(2.0 ** (attempt - 1), after or 0.0))
    raise NotDelivered(
        f"the webhook {without_password(address)} could not be delivered after {attempt} "
        f"{'try' if attempt == 1 else 'tries'}: {why}."
    )


def read_address(address: str) -> SplitResult:
    """Read the address of a webhook, or say what is wrong with it."""
    try:
        found = urlsplit(address)
        _ = found.port
    except ValueError:
        found = urlsplit("")
    if found.scheme not in ("http", "https") or not found.hostname or re.search(r"\s", address):
        raise InputError(
            f"{without_password(address)} is no address of a webhook; it begins with https:// or http://."
        )
    if found.username or found.password:
        raise InputError("the address of a webhook has no login; receivers check the signature.")
    return found


def _post(target: SplitResult, body: bytes, headers: Mapping[str, str]) -> tuple[int, float | None]:
    """Post a body; redirects are followed on the same host only, since others get no data."""
    here = target
    for _ in range(_REDIRECTS + 1):
        kind = http.client.HTTPSConnection if here.scheme == "https" else http.client.HTTPConnection
        connection = kind(here.hostname or "", here.port, timeout=_SECONDS)
        try:
            path = (here.path or "/") + (f"?{here.query}" if here.query else "")
            connection.request("POST", path, body=body, headers=dict(headers))
            answer = connection.getresponse()
            answer.read(65_536)
            place = answer.getheader("Location")
            if answer.status not in (301, 302, 303, 307, 308) or place is None:
                return answer.status, _after(answer.getheader("Retry-After"))
        finally:
            connection.close()
        there = urlsplit(urljoin(here.geturl(), place))
        if (there.scheme, there.hostname, there.port) != (here.scheme, here.hostname, here.port):
            raise NotDelivered(
                f"the webhook {without_password(target.geturl())} was redirected to another host, "
                f"{there.hostname}, which gets no data; name its address."
            )
        if answer.status not in (307, 308):  # which keep the method; the others ask for a GET
            return answer.status, None
        here = there
    raise NotDelivered(f"the webhook {without_password(target.geturl())} was redirected too often.")


def _after(text: str | None) -> float | None:
    """The seconds that a receiver asks to wait, at most a minute."""
    return min(float(text), 60.0) if text is not None and re.fullmatch(r"\d{1,6}", text) else None
