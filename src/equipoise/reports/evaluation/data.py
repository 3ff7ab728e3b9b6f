"""The page of an evaluation, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.evaluation.paper import STUDIES, claims_grid
from equipoise.evaluation.request import BASELINES, TESTS
from equipoise.evaluation.study.grids import (
    TEST_NAMES,
    differences_grid,
    groups_grid,
    losses_grid,
    number,
    scores_grid,
    untreated,
    version_name,
    versions_grid,
)
from equipoise.evaluation.study.scores import MEASURES
from equipoise.evaluation.study.sentences import reading_of, sentences_of, version_lines
from equipoise.plain import Grid

if TYPE_CHECKING:
    from equipoise.evaluation.evaluation import Evaluation

MITIGATED, AS_IT_IS = "mitigated", "as it is"
# Legends have no room for the sentences that describe versions elsewhere.
SHORT = {"p": "label frequencies kept", "n": "label frequencies free", "u": "as it is"}
SHORT |= {"before": "the first table", "after": "the second table"}


def summarize_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """The content of the page."""
    return {
        "title": _title(evaluation),
        "source": ", ".join(study["title"] for study in evaluation.studies),
        "figures": _figures(evaluation),
        "studies": [_summarize_study(study) for study in evaluation.studies],
        "facts": _facts(evaluation),
    }


def _title(evaluation: Evaluation) -> str:
    if evaluation.is_paper:
        return "Effect of repairs on models: the paper's evaluation"
    return "Effect of a repair on models"


def _figures(evaluation: Evaluation) -> list[list[str]]:
    rows = sum(study["rows"] for study in evaluation.studies)
    fits = sum(study["fits"] for study in evaluation.studies)
    repeats = max(study["repeats"] for study in evaluation.studies)
    figures = [
        [f"{rows:,}", "rows"],
        [f"{repeats:,}", "repeats"],
        [f"{fits:,}", "models trained and tested"],
    ]
    if len(evaluation.studies) == 1:
        figures += _ub_figures(evaluation.studies[0])
    return figures


def _ub_figures(study: Mapping[str, Any]) -> list[list[str]]:
    size = max(t["size"] for t in study["tables"])
    # A version that could not be made at this size has no repeats.
    at = {t["version"]: t for t in study["tables"] if t["size"] == size and t["repeats"]}
    shown = [v for v in (study["reference"], "p", "after") if v in at]
    return [
        [f"{at[v]['train_ub'][0]:.3f}", f"largest |UB| of {version_name(v, size, study)}"]
        for v in shown
        if at[v]["train_ub"][0] is not None
    ]


def _facts(evaluation: Evaluation) -> list[list[str]]:
    facts = []
    for study in evaluation.studies:
        start = f"{study['title']}: " if len(evaluation.studies) > 1 else ""
        facts += [
            [f"{start}sensitive, label", f"{', '.join(study['sensitive'])}; {study['label']}"],
            *([f"{start}{name}", value] for name, value in reading_of(study).facts),
            [f"{start}features", _features(study)],
            [f"{start}models", ", ".join(study["models"].values())],
            [f"{start}seed", str(study["seed"])],
        ]
    return [*facts, ["made by", f"equipoise {evaluation.version}"], ["time", evaluation.time]]


def _features(study: Mapping[str, Any]) -> str:
    names = {*study["names"]}
    return ", ".join(f"{f} (names)" if f in names else f for f in study["features"])


def _summarize_study(study: Mapping[str, Any]) -> dict[str, Any]:
    """The content of the page about one table."""
    size = max(table["size"] for table in study["tables"])
    model = _drawn_model(study)
    # As in the paper, charts compare repairs with the table as it is; tables have all versions.
    versions = [v for v in study["versions"] if v not in BASELINES]
    claims = claims_grid(study)
    return {
        "title": study["title"],
        "untreated": untreated(study),
        "model": study["models"][model],
        "sentences": list(sentences_of(study)),
        "versions": version_lines(study),
        "tables": versions_grid(study).to_dict(),
        "scores": {t: scores_grid(study, t).to_dict() for t in TESTS},
        "differences": {t: differences_grid(study, t).to_dict() for t in TESTS},
        "losses": losses_grid(study).to_dict(),
        "groups": {
            title: groups_grid(study, name, size=size, versions=study["versions"]).to_dict()
            for name, title in study["models"].items()
        },
        "relation": relation_grid(study).to_dict(),
        "claims": None if claims is None else claims.to_dict(),
        "charts": {
            **{f"scores_{t}": score_data(study, model, t) for t in TESTS},
            **{f"differences_{t}": difference_data(study, t, size) for t in TESTS},
            "relation": relation_data(study),
            "predictions": prediction_data(study, model, size, versions),
        },
    }


def _drawn_model(study: Mapping[str, Any]) -> str:
    """The model that the paper draws, if it was trained; otherwise the first."""
    if study["paper"] is not None and STUDIES[study["paper"]].chart in study["models"]:
        return STUDIES[study["paper"]].chart
    return str(next(iter(study["models"])))


# ------------------------------------------------------------------------------- charts


def score_data(study: Mapping[str, Any], model: str, test: str) -> dict[str, Any]:
    """Bars as in the paper: mitigated versions on the left, the table as it is on the right."""
    rows = [
        r
        for r in study["scores"]
        if (r["model"], r["test"]) == (model, test) and r["version"] not in BASELINES
    ]
    rows.sort(key=lambda r: (r["version"] == study["reference"], r["size"], r["version"] != "p"))
    # Without samples two given tables are compared, of which neither need be repaired.
    left, right = (MITIGATED, AS_IT_IS) if study["sizes"] else (SHORT["after"], SHORT["before"])
    halves = {r["version"]: right if r["version"] == study["reference"] else left for r in rows}
    bars = [
        {
            "version": version_name(r["version"], r["size"], study),
            "half": halves[r["version"]],
            "measure": measure,
            **_spread(r[measure]),
        }
        for r in rows
        for measure in MEASURES
    ]
    return {
        "measures": [*MEASURES],
        "bars": bars,
        "order": [*dict.fromkeys(bar["version"] for bar in bars)],
        "halves": [h for h in (left, right) if h in halves.values()],
    }


def difference_data(study: Mapping[str, Any], test: str, size: float) -> dict[str, Any]:
    """Paired differences of every model, on one test set."""
    versions = [v for v in study["versions"] if v in ("p", "n", "after")]
    rows = [
        {
            "model": study["models"][r["model"]],
            "version": r["version"],
            "measure": r["measure"],
            **{k: r[k] for k in ("mean", "low", "high", "clear")},
        }
        for r in study["differences"]
        if (r["test"], r["size"]) == (test, size)
        and r["version"] in versions
        and r["measure"] in MEASURES
    ]
    return {
        "rows": rows,
        "measures": [*MEASURES],
        "models": [*study["models"].values()],
        "versions": [[v, SHORT[v]] for v in versions],
        "unit": f"difference to {study['reference']}",
    }


def relation_data(study: Mapping[str, Any]) -> dict[str, Any]:
    """UB of groups in the training data, and their misses."""
    points = [
        {
            **{k: p[k] for k in ("group", "label", "version", "rows")},
            "ub": p["ub"][0],
            "error": p["error"][0],
            "low": p["error"][1],
            "high": p["error"][2],
        }
        for p in study["relation"]["points"]
    ]
    return {
        "points": points,
        "versions": [[v, SHORT[v]] for v in dict.fromkeys(p["version"] for p in points)],
        "x": "UB in the rows trained on",
        "y": "misses beyond those of all rows with the label",
    }


def prediction_data(
    study: Mapping[str, Any], model: str, size: float, versions: Sequence[str]
) -> dict[str, Any]:
    """UB of predictions for every group and label, by version."""
    rows = [
        r
        for r in study["by_group"]
        if (r["model"], r["size"]) == (model, size) and r["version"] in versions
    ]
    labels = [k.removeprefix("UB ") for k in (rows[0] if rows else ()) if k.startswith("UB ")]
    own = {(t["group"], t["label"]): t["ub"][0] for t in study["test_ub"]}
    pairs = []
    for group in [g["group"] for g in study["groups"]]:
        for label in labels:
            here = [r for r in rows if r["group"] == group]
            pairs.append(
                {
                    "group": group,
                    "label": label,
                    "name": f"{group}, {study['label']}={label}",
                    "data": own.get((group, label)),
                    "points": [
                        {"version": r["version"], **_spread(r[f"UB {label}"], "ub")} for r in here
                    ],
                }
            )
    return {"pairs": pairs, "versions": [[v, SHORT[v]] for v in versions]}


def _spread(mean: Sequence[float | None], name: str = "mean") -> dict[str, float | None]:
    return dict(zip((name, "low", "high"), mean, strict=True))


def relation_grid(study: Mapping[str, Any]) -> Grid:
    """UB and misses: a line for every group and label, columns by version."""
    points = study["relation"]["points"]
    versions = [*dict.fromkeys(p["version"] for p in points)]
    places: dict[tuple[str, str], dict[str, Any]] = {}
    for point in points:
        places.setdefault((point["group"], point["label"]), {})[point["version"]] = point
    rows = tuple(
        (
            group,
            label,
            *(number(by[v][k]) if v in by else "–" for v in versions for k in ("ub", "error")),
        )
        for (group, label), by in places.items()
    )
    headers = ["group", study["label"]]
    for version in versions:
        headers += [f"UB in {version}", f"excess misses, {version}"]
    return Grid(tuple(headers), rows, frozenset(range(2, len(headers))))


def captions(page: Mapping[str, Any]) -> dict[str, str]:
    """The caption of each chart."""
    model = page["model"]
    told = {
        f"scores_{t}": f"{model[:1].upper()}{model[1:]}, tested on {TEST_NAMES[t]}; whiskers are "
        "intervals over repeats."
        for t in TESTS
    }
    told |= {
        f"differences_{t}": (
            f"Differences to {page['untreated']}, paired by repeat, tested on {TEST_NAMES[t]}; "
            "filled marks are clear (q ≤ 0.05)."
        )
        for t in TESTS
    }
    told["relation"] = (
        "Each point is a group and a label. On the right the group has fewer such rows than its "
        "share; at the top, models miss more of them than of all rows with the label. Lines join "
        "the versions; errors are means over models."
    )
    told["predictions"] = (
        f"UB of the predictions of {model} on the held-out test set, by group, and UB of the labels."
    )
    return told
