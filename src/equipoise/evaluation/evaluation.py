"""The result of an evaluation: studies of one or more tables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError
from equipoise.evaluation.study.grids import tables_of
from equipoise.evaluation.study.sentences import sentences_of
from equipoise.evaluation.study.summary import losses_of
from equipoise.plain import Grid
from equipoise.results import Drawable, arrow_table, as_pandas, as_polars
from equipoise.validate import one_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

SCHEMA = "equipoise.evaluation/1"
TABLES = ("tables", "scores", "differences", "by_group")


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation(Drawable):
    """How models trained on versions of tables perform, over many repeats.

    Attributes
    ----------
    studies
        One for each table, plain data: the ``tables`` themselves with their measured UB, the
        ``scores`` of models on both tests, ``differences`` to the table as it is, the scores
        ``by_group``, and the ``relation`` of a group's UB to its error. A mean over repeats
        is stored as [mean, low, high].
    is_paper
        Whether these are the data and models of the paper.
    """

    studies: tuple[Mapping[str, Any], ...]
    is_paper: bool = False

    @property
    def sentences(self) -> tuple[str, ...]:
        """What came out, in sentences."""
        return tuple(s for study in self.studies for s in sentences_of(study))

    def text(self) -> str:
        """Sentences and tables, for a terminal."""
        parts = []
        for study in self.studies:
            if len(self.studies) > 1:
                parts.append(f"{study['title']}\n{'═' * len(study['title'])}")
            parts += [f"{title}\n{grid.text()}" for title, grid in tables_of(study)]
            parts.append("\n".join(sentences_of(study)))
        return "\n\n".join(parts)

    def rows(self, name: str = "scores") -> list[dict[str, Any]]:
        """Return one of the tables as flat rows: ``scores``, ``differences``, ``by_group``, ``tables``.

        A mean over repeats becomes three columns, as ``accuracy``, ``accuracy_low`` and
        ``accuracy_high``.
        """
        one_of("name", name, TABLES)
        return [
            {"table": study["name"], **_flat(row)} for study in self.studies for row in study[name]
        ]

    def to_arrow(self, name: str = "scores") -> pa.Table:
        """Return one of the tables as an Arrow table; see :meth:`rows`."""
        rows = self.rows(name)
        names = list(dict.fromkeys(key for row in rows for key in row))
        return arrow_table(names, [[row.get(key) for key in names] for row in rows])

    def to_pandas(self, name: str = "scores") -> pd.DataFrame:
        """Return one of the tables as a pandas frame; see :meth:`rows`."""
        return as_pandas(self.to_arrow(name))

    def to_polars(self, name: str = "scores") -> pl.DataFrame:
        """Return one of the tables as a polars frame; see :meth:`rows`."""
        return as_polars(self.to_arrow(name))

    def _grids(self) -> list[Grid]:
        return [grid for study in self.studies for _, grid in tables_of(study)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints, and what pages are made of."""
        return {
            "schema": SCHEMA,
            "is_paper": self.is_paper,
            "studies": [dict(study) for study in self.studies],
            "version": self.version,
            "time": self.time,
        }

    def to_json(self, indent: int | None = None) -> str:
        """The plain data as JSON; by default with a line for each row of its tables."""
        return _json(self.to_dict(), depth=4) if indent is None else super().to_json(indent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """Read what :meth:`to_dict` gave."""
        if data.get("schema") != SCHEMA:
            raise InputError(f"this is not an evaluation: its schema is {data.get('schema')!r}.")
        own = ("is_paper", "version", "time")
        studies = (
            tuple(  # losses are a function of the differences, and older files do not have them
                s if "losses" in s else {**s, "losses": losses_of(s["differences"])}
                for s in data["studies"]
            )
        )
        return cls(studies=studies, **{name: data[name] for name in own})

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Evaluation:
        """Read an evaluation that was written as JSON."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"{os.fspath(path)} cannot be read as an evaluation: {error}."
            ) from error
        if not isinstance(data, dict):
            raise InputError(f"{os.fspath(path)} is not an evaluation.")
        return cls.from_dict(data)


def _json(value: Any, depth: int) -> str:
    """Write JSON that is broken into lines down to a depth, and not below."""
    if depth == 0 or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, list):
        return "[\n" + ",\n".join(_json(v, depth - 1) for v in value) + "\n]"
    parts = [
        f"{json.dumps(k, ensure_ascii=False)}: {_json(v, depth - 1)}" for k, v in value.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}"


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat |= {f"{name} {k}": v for k, v in _flat(value).items()}
        elif _is_mean(value):
            flat |= {name: value[0], f"{name}_low": value[1], f"{name}_high": value[2]}
        elif not isinstance(value, list):
            flat[name] = value
    return flat


def _is_mean(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and len(value) == 3
        and all(x is None or isinstance(x, float) for x in value)
    )
