"""The axes of a cube: a column each, with its role and its values."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from equipoise.errors import PatternError, did_you_mean
from equipoise.lattice import format_value
from equipoise.values import MISSING, Value

Role: TypeAlias = Literal["sensitive", "label", "prediction"]


@dataclass(frozen=True)
class Axis:
    """One dimension of the cube: a column, its role, and its values in order."""

    name: str
    values: tuple[Value, ...]
    role: Role = "sensitive"

    def __len__(self) -> int:
        return len(self.values)

    @functools.cached_property
    def codes(self) -> Mapping[Value, int]:
        """The code of each value, which is its position."""
        return {value: code for code, value in enumerate(self.values)}

    def code(self, value: Value) -> int:
        """Return the code of a value, or raise an error that lists the values there are."""
        try:
            return self.codes[value]
        except KeyError:
            near = did_you_mean(str(value), map(format_value, self.values))
            raise PatternError(
                f"{self.name!r} has no value {format_value(value)}; it has: {self.listed}.{near}"
            ) from None

    @property
    def listed(self) -> str:
        """The first values, as messages list them."""
        more = ", …" if len(self.values) > 20 else ""
        return ", ".join(map(format_value, self.values[:20])) + more


def missing_last(values: Iterable[Value]) -> tuple[Value, ...]:
    """Return the distinct values in their order, with the missing value behind the others."""
    return tuple(sorted(dict.fromkeys(values), key=lambda value: value is MISSING))
