"""What is counted: which columns, and how bins and missing values are made."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from equipoise.errors import ColumnNotFound, InputError
from equipoise.options.declaration import check, declared, option

MissingPolicy: TypeAlias = Literal["group", "drop", "raise"]
BinSpec: TypeAlias = "Sequence[float] | int"


@dataclass(frozen=True, kw_only=True)
class CountRequest:
    """Which columns are counted, and how.

    >>> CountRequest(sensitive=("sex", "race"), label="income").columns
    ('sex', 'race', 'income')
    """

    sensitive: tuple[str, ...] = field(
        metadata=declared(
            help="Sensitive attributes: the names of their columns.",
            group="Data",
            common=True,
            example="sex,race",
            flags=("--sensitive", "-s"),
            keyword="sensitive_features",
            form="names",
        )
    )
    label: str = field(
        metadata=declared(
            help="Label column.",
            group="Data",
            common=True,
            metavar="COLUMN",
            flags=("--label", "-l"),
        )
    )
    count: str | None = option(
        None,
        help="Column that holds counts, if each line of the table stands for several rows.",
        group="Data",
        metavar="COLUMN",
    )
    weight: str | None = option(
        None, help="Column that holds row weights.", group="Data", metavar="COLUMN"
    )
    bins: Mapping[str, tuple[float, ...] | int] = option(
        dict,
        help="Bins of a numeric attribute: rising edges, or a number of quantile bins.",
        group="Data",
        example="age=25,45,65 or age=quantiles:4",
        metavar="NAME=EDGES",
        flags=("--bin",),
        form="bins",
        accepts="Mapping[str, Sequence[float] | int] | None",
    )
    na: tuple[str, ...] = option(
        (),
        help="Texts that mean a missing value, in addition to empty fields.",
        group="Data",
        example="'?,NA'",
        metavar="TEXT,…",
        form="names",
    )
    missing: MissingPolicy = option(
        "group",
        help="Rows whose sensitive attributes have missing values: treat them as separate groups, "
        "drop them, or raise an error.",
        group="Data",
    )
    missing_label: MissingPolicy = option(
        "drop",
        help="Rows with a missing label: give them a separate label, drop them, or raise an error.",
        group="Data",
    )

    def __post_init__(self) -> None:
        check(self)
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
        bins = {n: _bin_spec(n, b) for n, b in (self.bins or {}).items()}
        object.__setattr__(self, "bins", bins)
        if self.label in self.bins and self.label not in self.binnable:
            raise InputError(f"{self.label!r} is the label; only sensitive attributes are binned.")
        for name in self.bins:
            if name not in self.binnable:
                raise ColumnNotFound(name, table="the sensitive attributes", columns=self.sensitive)

    @property
    def columns(self) -> tuple[str, ...]:
        """The counted columns: the sensitive attributes, then the label."""
        return (*self.sensitive, self.label)

    @property
    def binnable(self) -> tuple[str, ...]:
        """The columns that may be binned."""
        return self.sensitive

    def policy(self, column: str) -> MissingPolicy:
        """The missing-value policy of a column."""
        return self.missing_label if column == self.label else self.missing

    def with_edges(self, edges: Mapping[str, tuple[float, ...]]) -> CountRequest:
        """The same request with quantile bins resolved to edges."""
        return replace(self, bins={**self.bins, **edges})

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        bins = {n: list(b) if isinstance(b, tuple) else b for n, b in self.bins.items()}
        lists = {"sensitive": list(self.sensitive), "bins": bins, "na": list(self.na)}
        return {**vars(self), **lists}


class ScoreRequest(CountRequest):
    """A request whose label is a numeric score, which is counted by bins.

    >>> ScoreRequest(sensitive=("sex",), label="score", bins={"score": [50]}).bins
    {'score': (50.0,)}
    """

    @property
    def binnable(self) -> tuple[str, ...]:
        """The columns that may be binned: the attributes, and the score."""
        return self.columns


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How a table is read before it is counted."""

    where: str | None = option(
        None,
        help="Condition on the columns, in SQL; only rows that satisfy it are used.",
        group="Data",
        example="\"age >= 18 AND state = 'CA'\"",
        metavar="CONDITION",
        accepts="Any",  # text, or a condition that an engine has settled
    )
    sql: str | None = option(
        None,
        help="SELECT statement over the table, which it calls input.",
        group="Data",
        metavar="QUERY",
    )
    encoding: str | None = option(
        None,
        help="Encoding of CSV files. By default UTF-8.",
        group="Data",
        example="latin-1, cp1252 or utf-16",
        metavar="NAME",
    )
    delimiter: str | None = option(
        None,
        help="Delimiter of CSV files. By default it is detected.",
        group="Data",
        metavar="CHARACTER",
    )
    header: bool | None = option(
        None,
        help="Whether the first line of a CSV file or sheet names the columns. By default it does.",
        flag_help="Treat the first line of a CSV file or sheet as a row, and call the columns "
        "column_1, column_2, and so on.",
        group="Data",
        flags=("--no-header",),
    )
    lenient: bool | None = option(
        None,
        help="Skip and count malformed lines of CSV files, such as those with too many fields.",
        group="Data",
    )


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What a run may use."""

    threads: int | None = option(
        None, help="Number of cores to use.", group="Running", at_least=1, at_most=1024
    )
    memory: str | None = option(
        None, help="Memory to use.", group="Running", example="2GB", metavar="SIZE"
    )
    engine: Any = option(
        None, help="Engine that counts, instead of DuckDB.", group="Running", flags=None
    )


def _bin_spec(name: str, spec: BinSpec) -> tuple[float, ...] | int:
    if isinstance(spec, (int, numbers.Integral)):
        if spec < 2:
            raise InputError(f"{name!r} needs at least 2 quantile bins, not {spec}.")
        if spec > 1000:
            raise InputError(f"{name!r} can have at most 1,000 quantile bins, not {spec:,}.")
        return int(spec)
    try:
        edges = tuple(float(e) + 0.0 for e in spec)  # + 0.0 turns −0 into 0
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
    # As short as possible, but never so short that two edges look the same.
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
