"""Passwords and other secrets in addresses: found, and left out of everything that is shown or written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote, unquote_plus

# A password may have any sign. It ends at the last @ before the parameters, which may have one, too.
# To PostgreSQL, all that stands before an @ is a login, unless a / comes first.
_LOGIN = (
    r"(?P<scheme>[A-Za-z][\w+.-]{{0,40}})(?P<slashes>://)"
    r"(?P<user>(?:(?<=postgres://)|(?<=postgresql://))[^/:@\s]*|[^/?#:@\s]*)(?::(?P<password>{}))?@"
)
_UNTIL_PARAMETERS = r"(?:(?![?&;][\w.-]+=).)*"
_USER = re.compile(_LOGIN.format(rf"{_UNTIL_PARAMETERS}|.*"), re.DOTALL | re.IGNORECASE)
_USER_IN_TEXT = re.compile(_LOGIN.format(r"(?:(?![?&;][\w.-]+=)\S)*|\S*|[^@\n]*"), re.IGNORECASE)
# An address with too few or too many slashes leads nowhere, but is shown in the error that says so.
# What stands after the schemes of files is a path, and :: comes before the table of a file.
_MISTYPED = re.compile(
    r"(?<![\w+.-])(?!(?:delta|file|memory|sqlite|spark):)(?P<scheme>[A-Za-z][\w+.-]+)(?P<slashes>:(?!:|//(?!/))/*)"
    r"(?P<user>[^/?#:@\s]*):(?!//)(?P<password>(?:(?![?&;][\w.-]+=)\S)*|\S*)@"
)
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
# The words of a connection string of libpq, which are apart by blanks; a value may be in quotes.
_WORD = re.compile(
    r"(?P<before>^|[\s'\"(,])(?:ssl|pg)?(?:password|passwd|pwd)\s*=\s*"
    r"(?:'(?:[^'\\]|\\+.)*(?:'|$)|(?P<value>(?:[^\s\\]|\\.)*))",
    re.IGNORECASE | re.DOTALL,
)
_GONE = "\0"
"""Stands where a parameter was."""
_SHORT = 4
"""Characters of a secret below which it is a part of many words, and hiding it there would tell it."""
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
    >>> (
    ...     without_password("postgresql:/ann:s3cret@host/db"),
    ...     without_password("host=h password=s3cret user=ann"),
    ... )
    ('postgresql:/ann@host/db', 'host=h user=ann')
    >>> without_password("memory://folder/a:b@c.csv")
    'memory://folder/a:b@c.csv'
    """
    return _cleared(address, _USER, _VALUE)


def _cleared(text: str, user: re.Pattern[str], parameters: re.Pattern[str]) -> str:
    if "@" in text and ":" in text:
        text = _MISTYPED.sub(_user_alone, user.sub(_user_alone, text))
    if "=" in text:
        text = _WORD.sub(lambda match: match["before"].strip(), text)
    kept = parameters.sub(lambda match: f"{match['before']}{_GONE}", text)
    # What is left of a list of parameters: "?&a=1&" is written "?a=1".
    return re.sub(f"[?&;]{_GONE}", "", re.sub(f"{_GONE}[&;]+", "", kept))


def secrets_of(address: str) -> tuple[str, ...]:
    """Find the secrets of an address, as they are written and as they are meant, the longest first.

    >>> secrets_of("postgresql://ann:p%40ss@host/db")
    ('p%40ss', 'p@ss')
    """
    found: set[str] = set()
    for match in (*_USER.finditer(address), *_MISTYPED.finditer(address)):
        if not _is_port(match):
            found.add(match["password"] or "")
        if match["scheme"].lower() in _WEB and not _is_port(match):
            found.add(match["user"])
    found.update(match["value"] for match in _VALUE.finditer(address))
    found |= {unquote(secret) for secret in found} | {unquote_plus(secret) for secret in found}
    return tuple(sorted(filter(None, found), key=lambda secret: (-len(secret), secret)))


def scrubbed(message: str, addresses: Iterable[str] = ()) -> str:
    """Remove secrets from a message of a driver, which may repeat an address or a part of one.

    A short secret is hidden only where it is no part of a word, and a single letter not at all: what is
    hidden in well-known words would be told by them.

    >>> scrubbed("login with 'p@ss' failed", ["postgresql://ann:p%40ss@host/db"])
    "login with '***' failed"
    >>> scrubbed("host=h password='a b' dbname=db does not exist")
    'host=h dbname=db does not exist'
    """
    message = _cleared(message, _USER_IN_TEXT, _VALUE_IN_TEXT)
    for address in addresses:
        for secret in secrets_of(address):
            if len(secret) >= _SHORT:
                message = message.replace(secret, "***")
            elif len(secret) > 1:
                message = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", message)
    return message


def _user_alone(match: re.Match[str]) -> str:
    if _is_port(match):
        return match[0]
    hidden = match["scheme"].lower() in _WEB or not match["user"]
    return f"{match['scheme']}{match['slashes']}{'' if hidden else match['user'] + '@'}"


def _is_port(match: re.Match[str]) -> bool:
    """Whether what looks like a password is a port and a path with an @, as in //host:80/a@b."""
    password = match["password"] or ""
    if not match["scheme"].lower().startswith("postgres"):
        return bool(_PORT.match(password))
    after = match.string[match.end() :].split(maxsplit=1)
    has_parameters_later = bool(after) and "?" in after[0]
    return bool(_PORTS_OF_POSTGRES.match(password)) and not has_parameters_later
