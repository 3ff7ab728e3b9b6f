"""Who may ask, from where, and how much: hosts, tokens, origins, sizes, and the headers of every answer."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode

from starlette.exceptions import HTTPException

from equipoise.web.settings import UNNAMED, too_large

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = "; ".join(  # noqa: FLY002  one directive a line
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
"""The content security policy: nothing from elsewhere, no script or style inside a page."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE = ("GET", "HEAD")
_UPLOADS = "/api/uploads"
_BODY, _FRAME = 8_000_000, 100_000
"""Maximum number of bytes of a body that is no upload, and of what surrounds an uploaded file."""
_WORK = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OPEN = ("/static/",)
"""What needs no token: files that are the same for everybody."""


class Guard:
    """Lets a request through to the application, or answers it with a refusal.

    Parameters
    ----------
    application
        What answers the requests that are let through.
    tokens
        The secret of each user.
    hosts
        Names by which the server may be called, without the port. Another name means that a page
        elsewhere made its own name lead here.
    refuse
        Makes the page of a refusal from its title and text.
    upload_limit
        Maximum number of bytes of an uploaded file.
    abandon
        Called with a user and the name of a piece of work if nobody waits for its answer any more.
    """

    def __init__(
        self,
        application: Application,
        *,
        tokens: tuple[str, ...],
        hosts: tuple[str, ...],
        refuse: Callable[[str, str], str],
        upload_limit: int,
        abandon: Callable[[str, str], object],
    ) -> None:
        self.application, self.hosts, self.refuse = application, hosts, refuse
        self.upload_limit, self.abandon = upload_limit, abandon
        self.users = {token: user_of(token) for token in tokens}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        guarded = _with_headers(send, open_to_all=_is_open(scope["path"]))
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await self._answer(scope, guarded, *refusal)
            return
        if _is_open(scope["path"]):
            await self.application(scope, receive, guarded)
            return
        given = [pair for pair in _query(scope) if pair[0] == "token"]
        if given and not scope["path"].startswith("/api"):
            await self._welcome(scope, guarded, given[-1][1])
            return
        token, by_cookie = self._token(scope, headers)
        if token is None:
            await self._answer(scope, guarded, 401, "No valid token", _ASK)
            return
        if by_cookie and scope["method"] not in _SAFE and not _is_own(headers):
            await self._answer(scope, guarded, 403, "Refused", _ELSEWHERE)
            return
        user, name = self.users[token], headers.get("x-work", "")
        work = name if _WORK.fullmatch(name) else UNNAMED + secrets.token_hex(8)
        scope["state"] = {**scope.get("state", {}), "user": user, "work": work}
        if scope["method"] in _SAFE:
            await self._while_awaited(scope, receive, guarded)
        else:
            await self._within_size(scope, receive, guarded)

    async def _while_awaited(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request without a body; stop working for it when its sender is gone."""
        asked, gone = False, asyncio.Event()

        async def ask() -> MutableMapping[str, Any]:
            nonlocal asked
            if asked:
                await gone.wait()
                return {"type": "http.disconnect"}
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()
            self.abandon(scope["state"]["user"], scope["state"]["work"])

        watching = asyncio.ensure_future(watch())
        try:
            await self.application(scope, ask, send)
        finally:
            watching.cancel()

    async def _within_size(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose body is read up to a limit, and no further."""
        most = self.upload_limit + _FRAME if scope["path"] == _UPLOADS else _BODY
        size = 0

        async def ask() -> MutableMapping[str, Any]:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise HTTPException(413, too_large(most if most == _BODY else self.upload_limit))
            return message

        await self.application(scope, ask, send)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        host = headers.get("host", "").rsplit(":", 1)[0].strip("[]").lower()
        if host not in self.hosts:
            return 421, "Unknown host", f"this explorer does not answer as {host!r}."
        if any("\0" in part for pair in _query(scope) for part in pair):
            return 400, "Bad request", "the address holds a character that no name can have."
        return None

    def _token(self, scope: Scope, headers: dict[str, str]) -> tuple[str | None, bool]:
        """The token of a request, and whether a cookie carried it."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() in ("bearer", "token"):
            return self._known(given.strip()), False
        in_address = [value for key, value in _query(scope) if key == "token"]
        if in_address:  # of an address below /api
            return self._known(in_address[-1]), False
        # Other programs of this machine have cookies in any form, so only ours is read.
        pairs = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
        crumbs = [value for name, _, value in pairs if name == _cookie_name(scope)]
        return (self._known(crumbs[-1]) if crumbs else None), True

    def _known(self, given: str) -> str | None:
        # Every token is compared, in constant time, so that time tells nothing about them.
        matches = [t for t in self.users if hmac.compare_digest(t.encode(), given.encode())]
        return matches[0] if matches else None

    async def _welcome(self, scope: Scope, send: Send, token: str) -> None:
        """Keep the token of an address in a cookie, and lead to the address without it."""
        if self._known(token) is None:
            await self._answer(scope, send, 401, "Wrong token", _ASK)
            return
        rest = urlencode([pair for pair in _query(scope) if pair[0] != "token"])
        place = quote(scope["path"]) + (f"?{rest}" if rest else "")
        # A path of two slashes would lead to another host.
        place = "/" + place.lstrip("/\\")
        kept = f"{_cookie_name(scope)}={token}; HttpOnly; Path=/; SameSite=Lax; Max-Age=2592000"
        headers = [(b"location", place.encode()), (b"set-cookie", kept.encode())]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def _answer(self, scope: Scope, send: Send, status: int, title: str, text: str) -> None:
        if scope["path"].startswith("/api"):
            kind, body = "application/json", json.dumps({"error": text})
        else:
            kind, body = "text/html; charset=utf-8", self.refuse(title, text)
        headers = [(b"content-type", kind.encode())]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body.encode()})


_ASK = (
    "open the address that equipoise explore printed when it started; it ends with ?token= and "
    "a secret text."
)
_ELSEWHERE = "this request came from another page; open the explorer itself."


def user_of(token: str) -> str:
    """A name for the user of a token that does not reveal the token.

    >>> user_of("a") == user_of("a"), len(user_of("a"))
    (True, 16)
    """
    return hashlib.sha256(token.encode()).hexdigest()[:16]


def _is_open(path: str) -> bool:
    return path.startswith(_OPEN)


def _query(scope: Scope) -> list[tuple[str, str]]:
    text = scope.get("query_string", b"").decode("latin-1")
    return parse_qsl(text, keep_blank_values=True, errors="replace")


def _cookie_name(scope: Scope) -> str:
    # Explorers on several ports of one machine would overwrite each other's cookies.
    server = scope.get("server") or ("", 0)
    return f"equipoise-{server[1]}"


def _is_own(headers: dict[str, str]) -> bool:
    """Whether a request that changes something comes from a page of this server."""
    origin, host = headers.get("origin"), headers.get("host", "")
    if origin is not None:
        return origin.partition("://")[2].lower() == host.lower()
    return headers.get("sec-fetch-site") == "same-origin"


def _with_headers(send: Send, *, open_to_all: bool) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            ours = {k.encode(): v.encode() for k, v in HEADERS.items()}
            if not open_to_all:
                ours[b"cache-control"] = b"no-store"
            more = [(k, v) for k, v in ours.items() if k not in given]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sending
