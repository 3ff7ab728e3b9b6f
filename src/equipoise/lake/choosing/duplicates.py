"""Which rows of a source are not new: in the base already, or taken from another source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from equipoise.errors import InputError, did_you_mean
from equipoise.lake.choosing.fingerprints import Hashes, RowHashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

Policy: TypeAlias = Literal["strict", "multiset", "key"]
POLICIES: tuple[Policy, ...] = ("strict", "multiset", "key")
"""What is a duplicate: a row that says what another says; one more of such rows than any other
table has; or a row with the key of another."""

_ENOUGH_IN_COMMON = 0.5


@dataclass
class Known:
    """Rows that are there already: those of the base, and those taken so far.

    Parameters
    ----------
    base
        The base's rows.
    policy, key
        What is a duplicate; the columns of the key.

    >>> import pyarrow as pa
    >>> base = RowHashes.of(pa.table({"sex": ["w", "m"], "age": [31, 52]}))
    >>> more = RowHashes.of(pa.table({"sex": ["w", "w", "w"], "age": [31, 40, 40]}))
    >>> Known(base, "strict").is_new(more).tolist()
    [False, True, False]
    >>> Known(base, "multiset").is_new(more).tolist()
    [False, True, True]
    """

    base: RowHashes
    policy: Policy = "strict"
    key: Sequence[str] = ()
    _taken: list[RowHashes] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise InputError(
                f"duplicates are told by {', '.join(POLICIES)}, and not by {self.policy!r}."
                f"{did_you_mean(str(self.policy), POLICIES)}"
            )
        if (self.policy == "key") != bool(self.key):
            raise InputError(
                "--dedupe key needs the columns of the key as --key, and only it does."
            )
        lacking = [name for name in self.key if name not in self.base.columns]
        if lacking:
            raise InputError(
                f"the key column {lacking[0]!r} is not in the base; it has: "
                f"{', '.join(self.base.columns)}."
            )

    def add(self, rows: RowHashes) -> None:
        """Take note of rows that were taken."""
        if rows.length:
            self._taken.append(rows)

    def is_new(self, rows: RowHashes) -> NDArray[np.bool_]:
        """Tell which rows of a source are new, the first of equal ones being new."""
        columns = self._columns(rows, self.base)
        digests = rows.over(columns)
        occurrence, known = _occurrences(digests), _count_in(self.base.over(columns), digests)
        for others in self._taken:
            columns = self._columns(rows, others)
            if self._comparable(rows, others, columns):
                # What was taken is there in addition to what the base has.
                known += _count_in(others.over(columns), rows.over(columns))
        first = occurrence == 1
        new: NDArray[np.bool_] = (
            occurrence > known if self.policy == "multiset" else first & (known == 0)
        )
        return new

    def chance(self, rows: RowHashes) -> float:
        """The share of new rows that would equal a row of the base by chance.

        Estimated by the share of the base's own rows that equal another of its rows, in the
        columns that are compared.
        """
        if self.policy == "key" or not self.base.length:
            return 0.0
        digests = self.base.over(self._columns(rows, self.base))
        _, counts = np.unique(digests, return_counts=True)
        return float(counts[counts > 1].sum() / len(digests))

    def _columns(self, rows: RowHashes, others: RowHashes) -> list[str]:
        if self.policy == "key":
            lacking = [name for name in self.key if name not in rows.columns]
            if lacking:
                raise InputError(f"a source lacks the key column {lacking[0]!r}; leave it out.")
            return list(self.key)
        return [name for name in rows.columns if name in others.columns]

    def _comparable(self, rows: RowHashes, others: RowHashes, columns: Sequence[str]) -> bool:
        """Sources that share few columns cannot be compared: too many rows would be alike."""
        fewer = min(len(rows.columns), len(others.columns))
        return self.policy == "key" or len(columns) > _ENOUGH_IN_COMMON * fewer


def _occurrences(digests: Hashes) -> NDArray[np.int64]:
    """Number equal rows, from 1, as they stand."""
    order = np.argsort(digests, kind="stable")
    rising = digests[order]
    starts = np.flatnonzero(np.concatenate([[True], rising[1:] != rising[:-1]]))
    lengths = np.diff(np.append(starts, len(rising)))
    numbers = np.empty(len(digests), np.int64)
    numbers[order] = np.arange(len(rising)) - np.repeat(starts, lengths) + 1
    return numbers


def _count_in(known: Hashes, digests: Hashes) -> NDArray[np.int64]:
    """How often each hash is among the known ones."""
    rising = np.sort(known)
    return np.searchsorted(rising, digests, "right") - np.searchsorted(rising, digests, "left")
