"""A request for an evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from equipoise.counts import CountRequest
from equipoise.errors import InputError, UnknownName
from equipoise.options.evaluation import EvaluationOptions, FeatureOptions
from equipoise.validate import a_number, at_least

MITIGATED = ("p", "n")
UNTREATED = "u"
VERSIONS: dict[str, str] = {
    "u": "a uniform sample without any repair",
    "p": "repaired with real rows, label frequencies kept (within the tolerance, if there is one)",
    "n": "repaired with real rows, label frequencies free",
    "reweighed": "not repaired, but with row weights that make the weighted UB 0",
    "deleted": "repaired by deleting rows only",
    "duplicated": "repaired by repeating rows of the sample",
}
"""The versions of a table that models are trained on, with a description of each."""

BASELINES = ("reweighed", "deleted", "duplicated")
TESTS: dict[str, str] = {
    "untouched": "the held-out test set: rows of the table, set aside before anything else",
    "own": "the version's own test set: a part of its rows, not trained on",
}
"""The test sets of models."""

BEFORE, AFTER = "before", "after"


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest(EvaluationOptions):
    """A request for an evaluation, validated."""

    counting: CountRequest
    reading: FeatureOptions = field(default_factory=FeatureOptions)
    versions: tuple[str, ...] = tuple(VERSIONS)
    sizes: tuple[float, ...] = (20.0,)  # of the initial sample, in percent of the table
    repeats: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("repeats", self.repeats, 1, whole=True)
        if self.is_of_two and self.equal_rows == "apart":
            raise InputError(
                "when two tables are compared, equal rows must count as one row, or the second table "
                "would be trained on rows the first is tested on; leave out `equal_rows='apart'`."
            )
        if not self.sizes:
            raise InputError("name at least one size of the sample, in percent of the table.")
        for size in () if self.is_of_two else self.sizes:
            _check_size(size, self.test)
        object.__setattr__(self, "sizes", tuple(dict.fromkeys(self.sizes)))
        for version in self.versions:
            if version not in (VERSIONS if not self.is_of_two else (BEFORE, AFTER)):
                raise UnknownName("version", version, VERSIONS)
        taken = {*self.counting.columns}
        for name in self.also:
            if name in taken:
                raise InputError(f"{name!r} is a sensitive attribute or the label already.")

    @property
    def is_of_two(self) -> bool:
        """Whether two given tables are compared, instead of versions made of one."""
        return self.versions == (BEFORE, AFTER)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The versions in their usual order, the untreated one among them always."""
        if self.is_of_two:
            return (BEFORE, AFTER)
        return tuple(v for v in VERSIONS if v in self.versions or v == UNTREATED)

    @property
    def reference(self) -> str:
        """The version that others are compared with."""
        return BEFORE if self.is_of_two else UNTREATED

    def deciding(self) -> dict[str, Any]:
        """Everything that a single fit depends on, as plain data."""
        left_out = {"versions", "sizes", "repeats", "confidence", "positive", "counting", "reading"}
        left_out |= {"equal_rows"}  # what it decides is in the units of the rows
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in left_out}
        return {
            **{k: list(v) if isinstance(v, tuple) else v for k, v in own.items()},
            "counting": self.counting.to_dict(),
            "reading": {f.name: getattr(self.reading, f.name) for f in fields(FeatureOptions)},
        }


def _check_size(size: float, test: float) -> None:
    a_number("sample", size)
    if not size > 0:
        raise InputError(f"a sample of {size:g} % has no rows; give percents such as 10 or 20.")
    if size > 100:
        raise InputError(
            f"a sample of {size:g} % is larger than the table; give percents such as 10 or 20."
        )
    if size + test >= 100:
        raise InputError(
            f"a sample of {size:g} % and a test of {test:g} % leave no rows for the pool; take a "
            "smaller sample."
        )
