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
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from equipoise.credentials import scrubbed
from equipoise.errors import InputError
from equipoise.version import __version__

TRIES = 5
_SECONDS = 10.0
"""Limit of each try."""
_REDIRECTS = 3
_RETRIED = {408, 425, 429, 500, 502, 503, 504}
TIMESTAMP, SIGNATURE = "X-Equipoise-Timestamp", "X-Equipoise-Signature"
_LEAST_KEY = 16
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[\w.-]+|[\da-f:.]+(%[\w.-]+)?", re.ASCII)
"""A name as DNS has it, or an address of version 4 or 6."""
_SAFE = "/%:@!$&'()*+,;=~?[]"
"""Signs of a path and its parameters that stay; what is quoted already is not quoted again."""


@dataclass(frozen=True)
class Delivery:
    """How a webhook was delivered."""

    address: str
    """Scheme and host; the path may be a secret."""
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
    target, secret = read_address(address), read_key(key)
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
        except OSError as error:
            why, after = scrubbed(str(error) or type(error).__name__, [address]), None
        except http.client.HTTPException:
            # Its text has what the receiver answered, which may repeat the path.
            why, after = "its response is not HTTP", None
        else:
            if 200 <= status < 300:
                return Delivery(_shown(target), status, attempt)
            why = f"its response was {status} {http.client.responses.get(status, '')}".rstrip()
            if status not in _RETRIED:
                break
        if attempt < TRIES:
            wait(max(2.0 ** (attempt - 1), after or 0.0))
    raise NotDelivered(
        f"the webhook {_shown(target)} could not be delivered after {attempt} "
        f"{'attempt' if attempt == 1 else 'attempts'}: {why}."
    )


def read_address(address: str) -> SplitResult:
    """Read the address of a webhook as it is sent, or say what is wrong with it.

    >>> read_address("https://bücher.example/a?b=ä").geturl()
    'https://xn--bcher-kva.example/a?b=%C3%A4'
    """
    try:
        found = urlsplit(address)
        host = (found.hostname or "").encode("idna").decode()
        port = found.port
    except ValueError:
        found, host, port = urlsplit(""), "", None
    # The address is not repeated, since it may be a secret.
    if found.scheme not in _PORTS or not _HOST.fullmatch(host) or re.search(r"\s", address):
        raise InputError(
            "this is not a valid address of a webhook; it must begin with https:// or http:// and a host."
        )
    if found.username or found.password:
        raise InputError(
            "the address of a webhook must not contain a login; receivers check the signature."
        )
    place = (f"[{host}]" if ":" in host else host) + ("" if port is None else f":{port}")
    path, query = (quote(text, safe=_SAFE, errors="replace") for text in (found.path, found.query))
    return SplitResult(found.scheme, place, path, query, "")


def read_key(key: bytes | str) -> bytes:
    """Read a secret key, or say that it is too short."""
    secret = key.encode() if isinstance(key, str) else key
    if not isinstance(secret, bytes):
        raise InputError(f"the key of a webhook is given as bytes, not as {type(key).__name__}.")
    if len(secret) < _LEAST_KEY:
        raise InputError(
            f"the key of a webhook has at least {_LEAST_KEY} bytes, not {len(secret)}."
        )
    return secret


def _shown(target: SplitResult) -> str:
    """Show an address without its path and parameters, which are often the secret of a webhook."""
    more = target.path.strip("/") or target.query
    return f"{target.scheme}://{target.netloc}{'/…' if more else ''}"


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
            # Its body says nothing, and may come slowly or never.
            place = answer.getheader("Location")
            if answer.status not in (301, 302, 303, 307, 308) or place is None:
                return answer.status, _after(answer.getheader("Retry-After"))
        finally:
            connection.close()
        there = _redirected(here, place)
        if answer.status not in (307, 308):  # which keep the method; the others ask for a GET
            return answer.status, None
        here = there
    raise NotDelivered(f"the webhook {_shown(target)} was redirected too many times.")


def _redirected(here: SplitResult, place: str) -> SplitResult:
    """Read where a redirect leads, or say why it is not followed."""
    try:
        # Headers are read as Latin-1, whatever they are.
        told = place.encode("latin-1", "replace").decode("utf-8", "replace")
        there = read_address(urljoin(here.geturl(), told))
    except ValueError:
        raise NotDelivered(
            f"the webhook {_shown(here)} was redirected to an invalid address."
        ) from None
    one, other = ((at.scheme, at.hostname, at.port or _PORTS[at.scheme]) for at in (here, there))
    if one == other:
        return there
    if one[1] != other[1]:
        what = f"another host, {there.hostname}"
    elif one[0] != other[0]:
        what = f"{there.scheme} on the same host"
    else:
        what = f"another port of this host, {other[2]}"
    raise NotDelivered(
        f"the webhook {_shown(here)} was redirected to {what}. Nothing was sent there; use this address directly "
        "if you trust it."
    )


def _after(text: str | None) -> float | None:
    """The seconds that a receiver asks to wait, at most a minute."""
    return min(float(text), 60.0) if text is not None and re.fullmatch(r"\d{1,6}", text) else None
