"""What the records of one table say: scores, differences, groups, and how bias goes with error.

A study is plain data, since pages, documentation and JSON are made of the same numbers. A mean
over repeats stands as [mean, low, high].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.evaluation.request import TESTS, EvaluationRequest
from equipoise.evaluation.study.groups import LEAST_TESTED, Reported, reported_groups
from equipoise.evaluation.study.intervals import Difference, Mean
from equipoise.evaluation.study.losses import losses_of
from equipoise.evaluation.study.scores import (
    MEASURES,
    PREDICTION_UB,
    misses,
    prediction_ub,
    selection_rates,
)
from equipoise.evaluation.training.models import Model
from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import bias_table
from equipoise.measures.uncertainty.p_values import adjust
from equipoise.plans.reweighing import cell_weights
from equipoise.values import as_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.evaluation.training.material import Material

LEAST_POINTS = 8
"""Fewer groups and labels say nothing of how bias and error go together: they hang on each other."""

CLEAR = 0.05
"""A difference is called clear if its q is at most this."""


@dataclass(frozen=True, eq=False)
class Fits:
    """The outcomes of one model on one version, by test.

    Repeats × reported groups × labels × predictions; the last of the groups is all rows.
    """

    repeats: tuple[int, ...]
    outcomes: Mapping[str, NDArray[np.int64]]

    def whole(self, test: str) -> NDArray[np.int64]:
        """The outcomes of all tested rows."""
        return self.outcomes[test][:, -1]

    def within(self, test: str) -> NDArray[np.int64]:
        """The outcomes of the groups."""
        return self.outcomes[test][:, :-1]

    def scores(self, test: str, positive: int | None, groups: Reported) -> dict[str, Any]:
        """Each measure for every repeat."""
        whole = self.whole(test)
        found = {name: measure(whole, positive) for name, measure in MEASURES.items()}
        return {**found, PREDICTION_UB: self._largest_ub(test, positive, groups)}

    def _largest_ub(self, test: str, positive: int | None, groups: Reported) -> NDArray[Any]:
        """Over the groups that have rows enough in this test, on average."""
        within = self.within(test)
        tested = within.sum(axis=(-2, -1)).mean(axis=0) >= LEAST_TESTED
        judged = within[:, groups.is_judged & tested]
        ub = np.abs(prediction_ub(judged, self.whole(test)[:, None]))
        flat = (ub[..., positive] if positive is not None else ub).reshape(len(ub), -1)
        largest = np.full(len(ub), np.nan)
        known = ~np.isnan(flat).all(axis=1) if flat.shape[1] else np.zeros(len(ub), np.bool_)
        if known.any():
            largest[known] = np.nanmax(flat[known], axis=1)
        return largest


def summarize_study(
    material: Material,
    request: EvaluationRequest,
    models: Sequence[Model],
    records: Iterable[Mapping[str, Any]],
    *,
    title: str | None = None,
    paper: str | None = None,
) -> dict[str, Any]:
    """Give everything the records of one table say, as plain data."""
    kept = list(records)
    summary = _Summary(material, request, models, kept)
    return {
        "name": material.name,
        "title": title or material.name,
        "paper": paper,
        **summary.about(),
        "tables": summary.tables(),
        "scores": summary.scores(),
        "differences": (differences := summary.differences()),
        "losses": losses_of(differences),
        "by_group": summary.by_group(),
        "test_ub": summary.test_ub(),
        "relation": summary.relation(),
    }


class _Summary:
    """Holds the records by where they belong, and takes means over repeats."""

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
        self.positive = positive_of(material, request)
        first = material.cells[~material.is_after]
        self.base = np.bincount(first, minlength=len(material.counts.rows))
        self.made = [r for r in records if r["kind"] == "version"]
        self.fits = self._gathered([r for r in records if r["kind"] == "fit"])
        fits = [r for r in records if r["kind"] == "fit"]
        self.unsettled = sum(not r["settled"] for r in fits)
        self.n_fits = len(fits)

    def _gathered(self, records: Sequence[Mapping[str, Any]]) -> dict[tuple[float, str, str], Fits]:
        places = dict.fromkeys((r["size"], r["version"], r["model"]) for r in records)
        order = {v: i for i, v in enumerate(self.request.chosen)}
        models = {m: i for i, m in enumerate(self.titles)}
        found = {}
        for place in sorted(places, key=lambda p: (p[0], order[p[1]], models[p[2]])):
            here = [r for r in records if (r["size"], r["version"], r["model"]) == place]
            repeats = tuple(r["repeat"] for r in here)
            found[place] = Fits(repeats, {t: self._stacked(here, t) for t in TESTS})
        return found

    def _stacked(self, records: Sequence[Mapping[str, Any]], test: str) -> NDArray[np.int64]:
        k = len(self.material.labels)
        return np.stack([self.groups.tally(record[test], k) for record in records])

    def _mean(self, values: Any) -> list[float | None]:
        return Mean.of(values, self.request.confidence).plain()

    # --------------------------------------------------------------------- parts

    def about(self) -> dict[str, Any]:
        material, request = self.material, self.request
        features, positive = material.features, self.positive
        return {
            "rows": material.n,
            "rows_after": int(material.is_after.sum()),
            "rows_given": material.rows_given,
            "equal_rows": {
                "asked": request.equal_rows,
                "equal": material.copies.equal,
                "kept_together": material.copies.held,
                "pairs": material.copies.pairs,
                "pairs_by_chance": _rounded(material.copies.by_chance),
            },
            "label": request.counting.label,
            "labels": list(material.labels),
            "positive": None if positive is None else material.labels[positive],
            "sensitive": list(request.counting.sensitive),
            "also": list(request.also),
            "groups": self.groups.plain(),
            "features": list(features.names),
            "names": [
                n
                for n, is_number in zip(features.names, features.numeric, strict=True)
                if not is_number
            ],
            "constant": list(features.constant),
            "telling": list(features.telling),
            "impute": features.impute,
            "lacking": features.lacking,
            "sizes": [] if request.is_of_two else list(request.sizes),
            "versions": list(request.chosen),
            "reference": request.reference,
            "models": self.titles,
            "repeats": request.repeats,
            "seed": request.seed,
            "test": request.test,
            "own_test": request.own_test,
            "tolerance": request.tolerance,
            "confidence": request.confidence,
            "fits": self.n_fits,
            "unsettled": self.unsettled,
        }

    def tables(self) -> list[dict[str, Any]]:
        """The versions themselves: what was asked for and found, and their measured UB."""
        found = []
        for size in self.request.sizes:
            for version in self.request.chosen:
                here = [r for r in self.made if (r["size"], r["version"]) == (size, version)]
                if here:
                    found.append({"size": size, "version": version, **self._table(here)})
        return found

    def _table(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        made = [r for r in records if not r["failed"]]
        failed = [r["failed"] for r in records if r["failed"]]
        plain: dict[str, Any] = {
            "repeats": len(made),
            "failed": failed[:1],
            "failures": len(failed),
        }
        if not made:
            return plain
        whole = [self._cells(r["cells"]) for r in made]
        train = [self._cells(r["train"]) for r in made]
        weighed = made[0]["version"] == "reweighed"
        short = [r for r in made if r["lacks"]]
        return {
            **plain,
            "rows": self._mean([cells.sum() for cells in whole]),
            "train_rows": self._mean([cells.sum() for cells in train]),
            "test_rows": self._mean([r["test"] for r in made]),
            "need": self._mean([r["need"] for r in made]),
            "found": self._mean([r["found"] for r in made]),
            "short": len(short),
            "lacks": _worst_lacks(short),
            "ub": self._mean([self._largest_ub(cells, weighed) for cells in whole]),
            "train_ub": self._mean([self._largest_ub(cells, weighed) for cells in train]),
            "label_shift": self._mean([self._label_shift(cells) for cells in train]),
        }

    def _cells(self, sparse: Sequence[Sequence[int]]) -> NDArray[np.int64]:
        cells = np.zeros(len(self.material.counts.rows), np.int64)
        for cell, n in sparse:
            cells[cell] = n
        return cells

    def _largest_ub(self, cells: NDArray[np.int64], weighed: bool) -> float:
        counts = self.material.as_counts(cells)
        if not counts.n:
            return float("nan")
        if weighed:
            each = cell_weights(counts)
            sums = np.stack([counts.rows * each, counts.rows * each**2], axis=1)
            counts = replace(counts, weights=sums)
        options = MeasureRequest(uncertainty=False, min_count=self.request.min_group)
        ub = np.abs(bias_table(counts, options).measured.ub)
        return float(np.nanmax(ub)) if ub.size and not np.isnan(ub).all() else float("nan")

    def _label_shift(self, cells: NDArray[np.int64]) -> float:
        """How far a label frequency is from that of the table as it is, at most."""
        codes = self.material.counts.codes[:, len(self.material.counts.sensitive)]
        first, second = (np.bincount(codes, c) / c.sum() for c in (self.base, cells))
        return float(np.abs(first - second).max())

    def scores(self) -> list[dict[str, Any]]:
        """Means of every measure, on both tests."""
        return [
            {"size": size, "version": version, "model": model, "test": test}
            | {k: self._mean(v) for k, v in self._scores(fits, test).items()}
            for (size, version, model), fits in self.fits.items()
            for test in TESTS
        ]

    def _scores(self, fits: Fits, test: str) -> dict[str, Any]:
        return fits.scores(test, self.positive, self.groups)

    def differences(self) -> list[dict[str, Any]]:
        """Every version against the reference, repeat by repeat."""
        found: list[tuple[dict[str, Any], Difference]] = []
        for size, version, model, both in self._pairs():
            for test in TESTS:
                first, second = (self._scores(f, test) for f in both)
                for measure, values in first.items():
                    gap = Difference.of(values, second[measure], self.request.confidence)
                    place = {"size": size, "version": version, "model": model, "test": test}
                    found.append(({**place, "measure": measure}, gap))
        q = adjust([gap.p for _, gap in found]) if found else np.zeros(0)
        lines = zip(found, q, strict=True)
        return [_plain_difference(place, gap, float(each)) for (place, gap), each in lines]

    def _pairs(self) -> Iterable[tuple[float, str, str, tuple[Fits, Fits]]]:
        """Each model on a version and on the reference, in the repeats that both have."""
        reference = self.request.reference
        for (size, version, model), fits in self.fits.items():
            other = self.fits.get((size, reference, model))
            if version == reference or other is None:
                continue
            both = sorted({*fits.repeats} & {*other.repeats})
            if both:
                yield size, version, model, (_only(fits, both), _only(other, both))

    def by_group(self) -> list[dict[str, Any]]:
        """Scores of every reported group on the untouched rows, at the largest size."""
        changes = self._group_changes()
        found = []
        for (size, version, model), fits in self.fits.items():
            if size != max(self.request.sizes):
                continue
            values = self._group_scores(fits)
            for place, group in enumerate(self.groups.names):
                row: dict[str, Any] = {"size": size, "version": version, "model": model}
                row["group"] = group
                row |= {name: self._mean(v[:, place]) for name, v in values.items()}
                row["change"] = changes.get((size, version, model, place), {})
                found.append(row)
        return found

    def test_ub(self) -> list[dict[str, Any]]:
        """UB of the labels of the untouched rows themselves, for the groups reported."""
        size = max(self.request.sizes)
        fits = [f for (s, v, _), f in self.fits.items() if (s, v) == (size, self.request.reference)]
        if not fits:
            return []
        # A table whose predictions are its labels has the UB of its labels.
        rows = fits[0].outcomes["untouched"].sum(axis=-1)
        true = rows[..., None] * np.eye(len(self.material.labels), dtype=np.int64)
        ub = prediction_ub(true[:, :-1], true[:, -1:])
        return [
            {
                "group": group,
                "label": self.material.labels[label],
                "ub": self._mean(ub[:, place, label]),
            }
            for place, group in enumerate(self.groups.names)
            for label in self._shown_labels()
        ]

    def _group_changes(self) -> dict[tuple[float, str, str, int], dict[str, Any]]:
        found = {}
        for size, version, model, both in self._pairs():
            first, second = (self._group_scores(f) for f in both)
            for place in range(len(self.groups.names)):
                found[size, version, model, place] = {
                    name: self._mean(first[name][:, place] - second[name][:, place])
                    for name in first
                }
        return found

    def _group_scores(self, fits: Fits) -> dict[str, NDArray[Any]]:
        """Repeats × groups, by measure; of more than two labels a column each."""
        within, whole = fits.within("untouched"), fits.whole("untouched")
        found = {name: measure(within, self.positive) for name, measure in MEASURES.items()}
        rates, ub = selection_rates(within), prediction_ub(within, whole[:, None])
        for label in self._shown_labels():
            name = self.material.labels[label]
            found[f"selection rate {name}"] = rates[..., label]
            found[f"UB {name}"] = ub[..., label]
        return found

    def _shown_labels(self) -> Sequence[int]:
        return [self.positive] if self.positive is not None else range(len(self.material.labels))

    # ------------------------------------------------------------ bias and error

    def relation(self) -> dict[str, Any]:
        """How a group's UB in the training data goes with its misses, at the largest size."""
        size = max(self.request.sizes)
        points = [
            point
            for version in self.request.chosen
            for point in self._points(size, version)
            if version in (self.request.reference, "p", "n", "after")
        ]
        reference = self.request.reference
        found = {"size": size, "reference": reference, "points": points}
        return found | _correlations(points, reference)

    def _points(self, size: float, version: str) -> list[dict[str, Any]]:
        fits = [f for (s, v, _), f in self.fits.items() if (s, v) == (size, version)]
        records = [
            r for r in self.made if (r["size"], r["version"]) == (size, version) and not r["failed"]
        ]
        if not fits or not records:
            return []
        excess = _mean_of_known(np.stack([self._excess(f) for f in fits]))  # over models
        ub = np.stack([self._group_ub(self._cells(r["train"])) for r in records])
        rows = fits[0].within("untouched").sum(axis=-1).mean(axis=0)
        return [
            {
                "version": version,
                "group": self.groups.names[place],
                "label": self.material.labels[label],
                "ub": self._mean(ub[:, place, label]),
                "error": self._mean(excess[:, place, label]),
                "rows": round(float(rows[place, label]), 1),
            }
            for place in np.flatnonzero(self.groups.is_judged).tolist()
            for label in range(len(self.material.labels))
        ]

    def _excess(self, fits: Fits) -> NDArray[Any]:
        """Misses of a group's rows of a label, beyond those of all rows of the label."""
        return misses(fits.within("untouched")) - misses(fits.whole("untouched"))[:, None]

    def _group_ub(self, cells: NDArray[np.int64]) -> NDArray[Any]:
        """UB of the reported groups and labels in a table of cells, as a plan sees it."""
        known = np.where(self.material.is_known, cells, 0)
        k = len(self.material.labels)
        table = self.groups.cell_sums(known, k)
        rates = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
        overall = np.bincount(self.groups.cell_label, known, k) / max(1, known.sum())
        with np.errstate(invalid="ignore", divide="ignore"):
            ub = 1 - rates / overall
        ub[(table.sum(axis=1) == 0) | ~self.groups.is_judged] = np.nan
        return np.where(overall > 0, ub, np.nan)


def positive_of(material: Material, request: EvaluationRequest) -> int | None:
    """The label that precision and recall are about: as asked, or the rarer one of two."""
    if request.positive is not None:
        named = as_value(request.positive)
        material.counts.label.code(named)  # or say which there are
        if named not in material.labels:
            raise InputError(f"no row that is used has the label {named!r}; name another.")
        return material.labels.index(str(named))
    if len(material.labels) > 2:
        return None
    return int(np.bincount(material.label[~material.is_after], minlength=2).argmin())


def _only(fits: Fits, repeats: Sequence[int]) -> Fits:
    places = [fits.repeats.index(r) for r in repeats]
    return Fits(tuple(repeats), {t: o[places] for t, o in fits.outcomes.items()})


def _plain_difference(place: Mapping[str, Any], gap: Difference, q: float) -> dict[str, Any]:
    mean, low, high = Mean(*gap[:3]).plain()
    return {
        **place,
        "mean": mean,
        "low": low,
        "high": high,
        "p": None if gap.p != gap.p else float(f"{gap.p:.3g}"),
        "q": None if q != q else float(f"{q:.3g}"),
        "clear": bool(q <= CLEAR),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or np.isinf(value) else round(value, 1)


def _worst_lacks(records: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """The cells that most often lacked rows: how often, and mean rows needed and found."""
    cells: dict[str, list[tuple[int, int]]] = {}
    for record in records:
        for cell, need, found in record["lacks"]:
            cells.setdefault(cell, []).append((need, found))
    worst = sorted(cells.items(), key=lambda item: (-len(item[1]), item[0]))[:5]
    return [
        [cell, len(pairs), *(round(float(x), 1) for x in np.mean(pairs, axis=0))]
        for cell, pairs in worst
    ]


def _mean_of_known(stacked: NDArray[Any]) -> NDArray[Any]:
    known = ~np.isnan(stacked)
    n = known.sum(axis=0)
    mean = np.where(known, stacked, 0.0).sum(axis=0) / np.maximum(n, 1)
    return np.asarray(np.where(n > 0, mean, np.nan))


def _correlations(points: Sequence[Mapping[str, Any]], reference: str) -> dict[str, Any]:
    """Rank correlations: of UB and excess misses as things are, and of their changes."""
    places: dict[str, dict[tuple[str, str], tuple[float, float]]] = {}
    for point in points:
        pair = (point["ub"][0], point["error"][0])
        if None not in pair:
            places.setdefault(point["version"], {})[point["group"], point["label"]] = pair
    first = places.get(reference, {})
    moves = {
        version: _rank_correlation(
            [(there[p][0] - first[p][0], there[p][1] - first[p][1]) for p in there if p in first]
        )
        for version, there in places.items()
        if version != reference
    }
    return {"correlation": _rank_correlation([*first.values()]), "moves": moves}


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    from scipy.stats import spearmanr

    x, y = ([pair[i] for pair in pairs] for i in (0, 1))
    varied = len(pairs) >= LEAST_POINTS and len({*x}) > 1 and len({*y}) > 1
    rho = round(float(spearmanr(x, y).statistic), 3) if varied else None
    return {"points": len(pairs), "rho": rho}
