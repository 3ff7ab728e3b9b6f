"""What is counted: which columns, and how bins and missing values are made."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from equipoise.errors import ColumnNotFound, InputError
from equipoise.validate import one_of

MissingPolicy: TypeAlias = Literal["group", "drop", "raise"]
MISSING_POLICIES: tuple[MissingPolicy, ...] = ("group", "drop", "raise")
BinSpec: TypeAlias = "Sequence[float] | int"


@dataclass(frozen=True, kw_only=True)
class CountRequest:
    """Which columns are counted, and how.

    Parameters
    ----------
    sensitive, label
        Column names.
    count
        A column that says how many rows a line stands for, in a table of counts.
    weight
        A column of row weights.
    bins
        For numeric columns: rising edges, or how many quantile bins.
    na
        Texts that mean a missing value, beside real nulls.
    missing
        What to do with rows that lack a sensitive value: a group of their own
        (``"group"``), leave them out (``"drop"``) or refuse (``"raise"``).
    missing_label
        The same for rows that lack the label.
    """

    sensitive: tuple[str, ...]
    label: str
    count: str | None = None
    weight: str | None = None
    bins: Mapping[str, tuple[float, ...] | int] = field(default_factory=dict)
    na: tuple[str, ...] = ()
    missing: MissingPolicy = "group"
    missing_label: MissingPolicy = "drop"

    def __post_init__(self) -> None:
        one_of("missing", self.missing, MISSING_POLICIES)
        one_of("missing_label", self.missing_label, MISSING_POLICIES)
        if not self.sensitive:
            raise InputError(
                "name at least one sensitive attribute, as in `sensitive_features=['sex', 'race']`."
            )
        seen: set[str] = set()
        for name in [*self.sensitive, self.label, *filter(None, (self.count, self.weight))]:
            if name in seen:
                raise InputError(
                    f"column {name!r} is given twice; sensitive attributes, label, count and "
                    "weight must be different columns."
                )
            seen.add(name)
        object.__setattr__(self, "bins", {n: _bin_spec(n, b) for n, b in self.bins.items()})
        if self.label in self.bins:
            raise InputError(f"{self.label!r} is the label; only sensitive attributes are binned.")
        for name in self.bins:
            if name not in self.sensitive:
                raise ColumnNotFound(name, table="the sensitive attributes", columns=self.sensitive)

    @property
    def columns(self) -> tuple[str, ...]:
        """The counted columns: the sensitive attributes, then the label."""
        return (*self.sensitive, self.label)

    def policy(self, column: str) -> MissingPolicy:
        """The missing-value policy of a column."""
        return self.missing_label if column == self.label else self.missing

    def with_edges(self, edges: Mapping[str, tuple[float, ...]]) -> CountRequest:
        """The same request with quantile bins resolved to edges."""
        return replace(self, bins={**self.bins, **edges})

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "sensitive": list(self.sensitive),
            "label": self.label,
            "count": self.count,
            "weight": self.weight,
            "bins": {n: list(b) if isinstance(b, tuple) else b for n, b in self.bins.items()},
            "na": list(self.na),
            "missing": self.missing,
            "missing_label": self.missing_label,
        }


def _bin_spec(name: str, spec: BinSpec) -> tuple[float, ...] | int:
    if isinstance(spec, (int, numbers.Integral)):
        if spec < 2:
            raise InputError(f"{name!r} needs at least 2 quantile bins, not {spec}.")
        if spec > 1000:
            raise InputError(f"{name!r} can have at most 1,000 quantile bins, not {spec:,}.")
        return int(spec)
    try:
        edges = tuple(float(e) + 0.0 for e in spec)
    except (TypeError, ValueError):
        edges = ()
    rising = all(a < b for a, b in itertools.pairwise(edges))
    if not edges or not rising or not all(map(math.isfinite, edges)):
        raise InputError(
            f"the bin edges of {name!r} must be one or more rising numbers, as in "
            f"`bins={{{name!r}: [25, 45, 65]}}`; got: {spec!r}."
        )
    return edges


def bin_names(edges: Sequence[float]) -> tuple[str, ...]:
    """Name the bins between edges; each holds its lower edge.

    >>> bin_names([25, 45.5])
    ('<25', '25 to <45.5', '>=45.5')
    """
    text = [f"{e:g}" if float(f"{e:g}") == e else repr(e) for e in (e + 0.0 for e in edges)]
    inner = [f"{low} to <{high}" for low, high in itertools.pairwise(text)]
    return (f"<{text[0]}", *inner, f">={text[-1]}")


def request_from_dict(data: Mapping[str, Any] | None) -> CountRequest | None:
    """Read what :meth:`CountRequest.to_dict` wrote."""
    if data is None:
        return None
    lists = {k: tuple(data[k]) for k in ("sensitive", "na")}
    bins = {n: tuple(b) if isinstance(b, list) else b for n, b in data["bins"].items()}
    return CountRequest(**{**data, **lists, "bins": bins})
