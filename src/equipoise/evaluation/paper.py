"""The paper's evaluation: three data sets, six models, and the paper's claims about them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from equipoise.counts import CountRequest
from equipoise.datasets.lookup import locate
from equipoise.errors import InputError, UnknownName
from equipoise.evaluation.evaluate import StudyRequest
from equipoise.evaluation.request import EvaluationRequest
from equipoise.evaluation.study.grids import written
from equipoise.evaluation.study.scores import MEASURES
from equipoise.evaluation.study.summary import MARGIN, losses_of
from equipoise.evaluation.training.models import MODELS
from equipoise.options.evaluation import FeatureOptions
from equipoise.plain import Grid

# The raw file of COMPAS scores is recognized by these columns.
_RAW_COLUMNS = ("Person_ID", "Sex_Code_Text", "Ethnic_Code_Text", "ScoreText", "DateOfBirth")

_TWO_YEARS = """
SELECT sex, CASE race WHEN 'Caucasian' THEN 'white' ELSE 'other' END AS race, age, juv_fel_count,
  juv_misd_count, juv_other_count, priors_count, days_b_screening_arrest, c_charge_degree,
  c_charge_desc, score_text
FROM input"""
_RAW = """
SELECT Person_ID AS person, Sex_Code_Text AS sex,
  CASE Ethnic_Code_Text WHEN 'Caucasian' THEN 'white' ELSE 'other' END AS race,
  Agency_Text AS agency, AssessmentReason AS reason, Language AS language,
  LegalStatus AS legal_status, CustodyStatus AS custody_status, MaritalStatus AS marital_status,
  DisplayText AS scale, ScoreText AS score_text,
  TRY_CAST(right(split_part(split_part(Screening_Date, ' ', 1), '/', 3), 2) AS INTEGER) + 100
    - TRY_CAST(right(DateOfBirth, 2) AS INTEGER) AS age
FROM input"""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper about a version: that measures rise, fall, or do not get worse."""

    version: str
    measures: tuple[str, ...]
    says: Literal["clear gain", "no clear loss", "slight gain", "slight loss"]

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Return whether a difference supports the claim; a slight change is one of the mean."""
        gains, loses, clear = row["mean"] > 0, row["mean"] < 0, row["clear"]
        held = {
            "clear gain": clear and gains,
            "no clear loss": not (clear and loses),
            "slight gain": gains,
            "slight loss": loses,
        }
        return bool(held[self.says])


_ALL = tuple(MEASURES)


@dataclass(frozen=True)
class Paper:
    """One data set of the paper, and the paper's claims about it."""

    title: str  # on pages
    data: str  # name of the data set
    sensitive: tuple[str, ...]
    label: str
    chart: str  # model that the paper shows in a chart
    claims: tuple[Claim, ...]
    also: tuple[str, ...] = ()
    sizes: tuple[float, ...] = (10.0, 20.0)  # of the sample, in percent of the table
    sql: str | None = None  # prepares the columns
    na: tuple[str, ...] = ()


STUDIES = {
    "adult": Paper(
        "Adult",
        "adult",
        ("sex",),
        "income",
        "gbdt",
        (
            Claim("p", ("accuracy",), "clear gain"),
            Claim("p", ("precision",), "slight gain"),
            Claim("p", ("recall",), "slight loss"),
            Claim("p", _ALL, "no clear loss"),
            Claim("n", _ALL, "no clear loss"),
        ),
        also=("race",),
        na=("?",),
    ),
    "credit": Paper(
        "Default of credit card clients",
        "credit",
        ("sex",),
        "default",
        "extra_trees",
        (
            Claim("n", ("accuracy",), "clear gain"),
            Claim("p", _ALL, "no clear loss"),
            Claim("n", _ALL, "no clear loss"),
        ),
        also=("marriage",),
    ),
    "compas": Paper(
        "COMPAS, ternary score",
        "compas-two-years",
        ("sex", "race"),
        "score_text",
        "adaboost",
        (Claim("p", _ALL, "clear gain"),),
        sizes=(20.0, 30.0),
        sql=_TWO_YEARS,
        na=("N/A",),
    ),
}
"""The data sets of the paper. It does not name all sensitive attributes; those are our choice."""


def paper_studies(
    names: Iterable[str] = tuple(STUDIES),
    *,
    compas: str | os.PathLike[str] | None = None,
    models: Any = tuple(MODELS),
    sizes: tuple[float, ...] | None = None,
    **options: Any,
) -> list[StudyRequest]:
    """Make the requests of the paper's evaluation; ``compas`` is the raw file of COMPAS scores.

    Examples
    --------
    >>> adult = paper_studies(["adult"], repeats=3)[0]
    >>> adult.request.counting.columns, adult.request.sizes, len(adult.models)
    (('sex', 'income'), (10.0, 20.0), 6)
    """
    chosen = []
    for name in names:
        if name not in STUDIES:
            raise UnknownName("study", name, STUDIES)
        paper = STUDIES[name]
        raw = compas if name == "compas" else None
        data, sql = (paper.data, paper.sql) if raw is None else (raw, _RAW)
        request = EvaluationRequest(
            counting=CountRequest(sensitive=paper.sensitive, label=paper.label, na=paper.na),
            reading=FeatureOptions(impute="median"),
            also=paper.also,
            sizes=sizes or paper.sizes,
            # The raw file has several scores per person, who must not be split over two parts.
            keep_together=None if raw is None else "person",
            **options,
        )
        chosen.append(
            StudyRequest(
                source=replace(locate(data, sql=sql), name=Path(data).name),
                request=request,
                models=models,
                title=paper.title if raw is None else f"{paper.title} (raw file)",
                paper=name,
            )
        )
    return chosen


def claims_grid(study: Mapping[str, Any]) -> Grid | None:
    """Check the paper's claims against a study: for how many models and sizes each holds."""
    if study["paper"] is None:
        return None
    rows = []
    for claim in STUDIES[study["paper"]].claims:
        for measure in claim.measures:
            held = [_held(study, claim, measure, test) for test in ("own", "untouched")]
            rows.append((f"{claim.version}: {claim.says} of {measure}", *held))
    headers = (
        "claim of the paper",
        "holds on the version's own test set, as in the paper",
        "on the held-out test set",
    )
    return Grid(headers, tuple(rows))


def _held(study: Mapping[str, Any], claim: Claim, measure: str, test: str) -> str:
    rows = [
        row
        for row in study["differences"]
        if (row["version"], row["measure"], row["test"]) == (claim.version, measure, test)
        and row["q"] is not None
    ]
    if not rows:
        return "too few repeats to say"
    held = sum(claim.holds(row) for row in rows)
    mean, lowest = sum(row["mean"] for row in rows) / len(rows), min(row["low"] for row in rows)
    said = [f"mean {written(mean, 3, '+')}", f"lowest end of an interval {written(lowest, 3, '+')}"]
    if claim.says == "no clear loss":
        (loss,) = losses_of(rows)
        said.insert(0, f"a loss above {MARGIN:g} ruled out in {loss['ruled_out']}")
    return f"{held} of {len(rows)} ({', '.join(said)})"


def require_raw(columns: Iterable[str], path: str) -> None:
    """Refuse a file other than the raw file of COMPAS scores."""
    lacking = [c for c in _RAW_COLUMNS if c not in set(columns)]
    if lacking:
        raise InputError(
            f"{path} is not the raw file of COMPAS scores (compas-scores-raw.csv): it has no column "
            f"{', '.join(lacking)}."
        )
