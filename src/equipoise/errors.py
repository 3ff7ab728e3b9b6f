"""Every error a user can cause, each a sentence that says what to do.

::

    EquipoiseError
    ├── InputError            (ValueError)  a file, table or option that cannot be used
    │   ├── ColumnNotFound    (KeyError)
    │   ├── SourceNotFound    (FileNotFoundError)
    │   │   └── NoTables      a place that is there, and has no tables
    │   ├── LoginRefused      a server that wants another user or password
    │   ├── NoRowsLeft        a table whose rows were all left out
    │   ├── NotATable         a file most of whose lines are not rows of one table
    │   ├── PatternError
    │   ├── UnknownKeyword    (TypeError) a keyword that a function does not have
    │   ├── CountsError       invalid counts: negative, fractional, of other axes
    │   └── LatticeTooLarge   (MemoryError)
    ├── UnknownName           (LookupError) a measure, data set or engine that is not registered
    ├── Unsupported           (NotImplementedError) an engine declares it cannot do this
    ├── PoolTooSmall          a pool or a lake with too few rows for a plan
    ├── ShiftTooLarge         added rows that differ more from the others than is allowed
    ├── plans.Infeasible      a request that no plan can meet
    ├── plans.WorkerEnded     a process that makes plans for another one, and died
    ├── plans.Cancelled       a plan that was cancelled while it was made
    └── MissingDependency     (ImportError) an extra that is not installed
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from equipoise.credentials import scrubbed


class EquipoiseError(Exception):
    """Base of all errors raised on purpose; its text is one sentence for a person."""

    exit_code = 2
    """What the command line returns."""

    def __str__(self) -> str:  # KeyError would print the repr of its text
        text = scrubbed(str(self.args[0])) if self.args else ""
        # A name in the data must neither break the line nor control the terminal.
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class InputError(EquipoiseError, ValueError):
    """Input that cannot be used as requested."""


class LoginRefused(InputError):
    """A server that does not let someone in with this user and password."""


class NoRowsLeft(InputError):
    """All rows of a table were left out because of missing values."""


class NotATable(InputError):
    """Most lines of a file are not rows of one table."""


class ColumnNotFound(InputError, KeyError):
    """A named column is not in the table."""

    def __init__(self, column: str, *, table: str, columns: Iterable[str]) -> None:
        columns = list(columns)
        self.column = column
        super().__init__(
            f"column {column!r} not found in {table}; it has: {', '.join(columns)}."
            f"{did_you_mean(column, columns)}"
        )


class SourceNotFound(InputError, FileNotFoundError):
    """A table that is not there, or not readable."""


class NoTables(SourceNotFound):
    """A place of a lake that is there, and has no tables."""


class PatternError(InputError):
    """Text that is not a group pattern, or names what is not in the table."""


class UnknownKeyword(InputError, TypeError):
    """A keyword that a function does not have."""

    def __init__(
        self, name: str, function: str, known: Iterable[str], meant: str | None = None
    ) -> None:
        known = list(known)
        right = (
            f"it is called {meant}."
            if meant is not None
            else f"it has: {', '.join(known)}.{did_you_mean(name, known)}"
        )
        super().__init__(f"{function}() has no keyword {name!r}; {right}")


class CountsError(InputError):
    """Invalid counts: negative, fractional, or of other axes."""


class LatticeTooLarge(InputError, MemoryError):
    """More groups than fit in memory."""


class UnknownName(EquipoiseError, LookupError):
    """A name that is in no registry."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = list(known)
        super().__init__(
            f"unknown {kind} {name!r}; there are: {', '.join(known)}.{did_you_mean(name, known)}"
        )


class Unsupported(EquipoiseError, NotImplementedError):
    """Something an engine declares it cannot do."""


class PoolTooSmall(EquipoiseError):
    """A pool without enough rows for a plan."""

    exit_code = 1


class ShiftTooLarge(EquipoiseError):
    """Rows to add that differ from the base by more than a limit allows."""

    exit_code = 1


class MissingDependency(EquipoiseError, ImportError):
    """An optional package that is needed here."""

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}; install it with: "
            f"pip install 'equipoise[{extra}]'"
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the nearest known name, or nothing.

    >>> did_you_mean("gender", ["sex", "Gender"])
    " Did you mean 'Gender'?"
    """
    by_folded = {k.casefold(): k for k in known}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f" Did you mean {by_folded[near[0]]!r}?" if near else ""
