"""Names of columns, refused or numbered if two of them are the same."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from equipoise.errors import InputError


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Number columns whose names are the same except for case.

    >>> numbered(["x", "IOD", "x", "iod"])
    ('x', 'IOD', 'x_2', 'iod_2')
    """
    given = {name.casefold() for name in names}
    taken: set[str] = set()
    told = []
    for name in names:
        apart = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(2)))
        free = (
            n
            for n in apart
            if n.casefold() not in taken and (n == name or n.casefold() not in given)
        )
        told.append(next(free))
        taken.add(told[-1].casefold())
    return tuple(told)


def refuse_duplicates(names: Sequence[str], table: str, *, any_case: bool = True) -> None:
    """Refuse columns of the same name, and by default of names that differ only in case."""
    seen: dict[str, str] = {}
    for name in names:
        key = name.casefold() if any_case else name
        other = seen.get(key)
        if other == name:
            offer = "" if any_case else ", or number them with `lenient=True`"
            raise InputError(f"{table} has more than one column named {name!r}; rename one{offer}.")
        if other is not None:
            raise InputError(
                f"{table} has columns {other!r} and {name!r}, which differ only in case; rename one."
            )
        seen[key] = name
