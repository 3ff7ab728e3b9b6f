"""Passwords and other secrets in addresses: found, and left out of everything that is shown or written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote, unquote_plus

# A password may have any sign. It ends at the last @ before the parameters, which may have one, too.
# To PostgreSQL, all that stands before an @ is a login, unless a / comes first.
_LOGIN = (
    r"(?P<scheme>[A-Za-z][\w+.-]*)://(?P<user>(?:(?<=postgres://)|(?<=postgresql://))[^/:@\s]*|[^/?#:@\s]*)"
    r"(?::(?P<password>{}))?@"
)
_USER = re.compile(_LOGIN.format(r"(?:(?![?&;][\w.-]+=).)*|.*"), re.DOTALL)
_USER_IN_TEXT = re.compile(_LOGIN.format(r"(?:(?![?&;][\w.-]+=)\S)*|\S*|[^@\n]*"))
_PORT = re.compile(r"\d*(?:[/#\s]|\?[\w.-]+=)")
_PORTS_OF_POSTGRES = re.compile(r"(?:[\da-fA-F:.]*\]:?)?\d*(?:,[\w.-]+(?::\d*)?)*/[^?]*\?[\w.-]+=")
"""A port, maybe of an address of version 6 or with other servers, and parameters that have the @."""

_PART = r"[^=&;?#\s]*"
_NAME = (
    rf"({_PART}(pass|pwd|secret|token|credential|signature){_PART}"
    rf"|({_PART}[_.-])?(sig|sas|auth)|{_PART}key(id)?)"
)
_VALUE_IN_TEXT = re.compile(rf"(?P<before>[?&;]){_NAME}=(?P<value>[^&#\s'\"]*)", re.IGNORECASE)
_VALUE = re.compile(rf"(?P<before>[?&;]){_NAME}=(?P<value>[^&]*)", re.IGNORECASE)
_WEB = ("http", "https")
"""Schemes whose user is a token as often as a name."""


def without_password(address: str) -> str:
    """Leave the secrets of an address out: how it is shown and recorded everywhere.

    Passwords go, and so do parameters that are named like secrets, and users of web addresses,
    which are often tokens. A text that is no address stays as it is.

    >>> without_password("postgresql://ann:s3cret@host/db?table=people&sslpassword=x")
    'postgresql://ann@host/db?table=people'
    >>> without_password("https://host/a.csv?sig=abc")
    'https://host/a.csv'
    >>> without_password("memory://folder/a:b@c.csv")
    'memory://folder/a:b@c.csv'
    """
    return _cleared(address, _USER, _VALUE)


def _cleared(text: str, user: re.Pattern[str], parameters: re.Pattern[str]) -> str:
    if "://" in text:
        text = user.sub(_user_alone, text)
    kept = parameters.sub(lambda match: match["before"], text)
    if kept == text:
        return text
    # What is left of a list of parameters: "?&a=1&" is written "?a=1".
    kept = re.sub(r"(?<=[?&;])[&;]+", "", kept)
    return re.sub(r"[?&;]+(?=$|[#\s'\"])", "", kept)


def secrets_of(address: str) -> tuple[str, ...]:
    """Find the secrets of an address, as they are written and as they are meant, the longest first.

    >>> secrets_of("postgresql://ann:p%40ss@host/db")
    ('p%40ss', 'p@ss')
    """
    found: set[str] = set()
    for match in _USER.finditer(address):
        if not _is_port(match):
            found.add(match["password"] or "")
        if match["scheme"].lower() in _WEB and not _is_port(match):
            found.add(match["user"])
    found.update(match["value"] for match in _VALUE.finditer(address))
    found |= {unquote(secret) for secret in found} | {unquote_plus(secret) for secret in found}
    return tuple(sorted(filter(None, found), key=lambda secret: (-len(secret), secret)))


def scrubbed(message: str, addresses: Iterable[str] = ()) -> str:
    """Remove secrets from a message of a driver, which may repeat an address or a part of one.

    >>> scrubbed("login with 'p@ss' failed", ["postgresql://ann:p%40ss@host/db"])
    "login with '***' failed"
    """
    message = _cleared(message, _USER_IN_TEXT, _VALUE_IN_TEXT)
    for address in addresses:
        for secret in secrets_of(address):
            message = message.replace(secret, "***")
    return message


def _user_alone(match: re.Match[str]) -> str:
    if _is_port(match):
        return match[0]
    hidden = match["scheme"].lower() in _WEB or not match["user"]
    return f"{match['scheme']}://{'' if hidden else match['user'] + '@'}"


def _is_port(match: re.Match[str]) -> bool:
    """Whether what looks like a password is a port and a path with an @, as in //host:80/a@b."""
    password = match["password"] or ""
    if not match["scheme"].lower().startswith("postgres"):
        return bool(_PORT.match(password))
    after = match.string[match.end() :].split(maxsplit=1)
    has_parameters_later = bool(after) and "?" in after[0]
    return bool(_PORTS_OF_POSTGRES.match(password)) and not has_parameters_later
