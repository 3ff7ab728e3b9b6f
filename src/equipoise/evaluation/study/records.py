"""The records of one table's fits, arranged by sample size, version and model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.evaluation.intervals import Mean
from equipoise.evaluation.request import TESTS, EvaluationRequest
from equipoise.evaluation.study.groups import reported_groups
from equipoise.evaluation.study.scores import MEASURES, PREDICTION_UB, prediction_ub
from equipoise.evaluation.training.models import Model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.evaluation.training.material import Material

_LEAST_TESTED = 30  # UB of predictions for fewer rows than this moves with single rows


@dataclass(frozen=True, eq=False)
class Fits:
    """The outcomes of one model on one version, by test.

    Each array has the axes repeats × reported groups × labels × predictions; the last of the groups
    is all rows.
    """

    repeats: tuple[int, ...]
    outcomes: Mapping[str, NDArray[np.int64]]

    def whole(self, test: str) -> NDArray[np.int64]:
        """Return the outcomes of all tested rows."""
        return self.outcomes[test][:, -1]

    def within(self, test: str) -> NDArray[np.int64]:
        """Return the outcomes of the groups."""
        return self.outcomes[test][:, :-1]

    def only(self, repeats: Sequence[int]) -> Fits:
        """Keep some of the repeats."""
        places = [self.repeats.index(r) for r in repeats]
        return Fits(tuple(repeats), {t: o[places] for t, o in self.outcomes.items()})


class StudyRecords:
    """The records of one table, with the groups and the positive label that results refer to."""

    def __init__(
        self,
        material: Material,
        request: EvaluationRequest,
        models: Sequence[Model],
        records: Sequence[Mapping[str, Any]],
    ) -> None:
        self.material, self.request = material, request
        self.titles = {m.name: m.title for m in models}
        self.groups = reported_groups(material, request)
        self.positive = material.positive
        self.versions = [r for r in records if r["kind"] == "version"]
        fits = [r for r in records if r["kind"] == "fit"]
        self.fits = self._arranged(fits)  # by size, version and model
        self.n_fits = len(fits)
        self.unsettled = sum(not r["settled"] for r in fits)

    def _arranged(self, records: Sequence[Mapping[str, Any]]) -> dict[tuple[float, str, str], Fits]:
        places: dict[tuple[float, str, str], list[Mapping[str, Any]]] = {}
        for record in records:
            place = (record["size"], record["version"], record["model"])
            places.setdefault(place, []).append(record)
        order = {v: i for i, v in enumerate(self.request.chosen)}
        models = {m: i for i, m in enumerate(self.titles)}
        in_order = sorted(places, key=lambda p: (p[0], order[p[1]], models[p[2]]))
        k = len(self.material.labels)
        return {
            place: Fits(
                tuple(r["repeat"] for r in places[place]),
                {t: np.stack([self.groups.tally(r[t], k) for r in places[place]]) for t in TESTS},
            )
            for place in in_order
        }

    @property
    def largest_size(self) -> float:
        """Largest size of the sample, at which results by group are given."""
        return max(self.request.sizes)

    def mean(self, values: Any) -> list[float | None]:
        """Return the mean over repeats and its interval as plain numbers."""
        return Mean.of(values, self.request.confidence).plain()

    def scores(self, fits: Fits, test: str) -> dict[str, NDArray[Any]]:
        """Compute each measure for every repeat."""
        whole = fits.whole(test)
        found = {name: measure(whole, self.positive) for name, measure in MEASURES.items()}
        return {**found, PREDICTION_UB: self._largest_ub(fits, test)}

    def _largest_ub(self, fits: Fits, test: str) -> NDArray[Any]:
        """Compute the largest |UB| of predictions over the groups with enough tested rows."""
        within = fits.within(test)
        # Decided by the mean, so that every repeat of a model is about the same groups.
        tested = within.sum(axis=(-2, -1)).mean(axis=0) >= _LEAST_TESTED
        judged = within[:, self.groups.is_judged & tested]
        ub = np.abs(prediction_ub(judged, fits.whole(test)[:, None]))
        flat = (ub if self.positive is None else ub[..., self.positive]).reshape(len(ub), -1)
        # The largest of the defined ones: a maximum that starts from −1 is −1 if there are none.
        largest = np.where(np.isnan(flat), -1.0, flat).max(axis=1, initial=-1.0)
        return np.where(largest < 0, np.nan, largest)

    def of_version(self, size: float, version: str) -> tuple[list[Fits], list[Mapping[str, Any]]]:
        """Return the fits of all models on a version, and the records of the version itself."""
        fits = [f for (s, v, _), f in self.fits.items() if (s, v) == (size, version)]
        made = [r for r in self.versions if (r["size"], r["version"]) == (size, version)]
        return fits, made

    def pairs(self) -> Iterator[tuple[tuple[float, str, str], tuple[Fits, Fits]]]:
        """Pair each model on a version with the same model on the reference, repeat by repeat."""
        reference = self.request.reference
        for (size, version, model), fits in self.fits.items():
            other = self.fits.get((size, reference, model))
            if version == reference or other is None:
                continue
            both = sorted({*fits.repeats} & {*other.repeats})
            if both:
                yield (size, version, model), (fits.only(both), other.only(both))

    def cells(self, sparse: Sequence[Sequence[int]]) -> NDArray[np.int64]:
        """Expand the cells of a record to all cells of the table."""
        cells = np.zeros(len(self.material.counts.rows), np.int64)
        for cell, n in sparse:
            cells[cell] = n
        return cells
