"""Fill in the forms of an audit."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from equipoise.api.keywords import takes
from equipoise.api.measurement import COUNTING, count
from equipoise.api.tables import asked_table, name_of
from equipoise.counts import Counts
from equipoise.errors import InputError, NoRowsLeft, did_you_mean
from equipoise.options import keyword_fields, take
from equipoise.options.audit import FORMS, SCORING, SEARCHING, AuditForm, AuditOptions
from equipoise.options.count import ScoreRequest
from equipoise.options.search import SearchRequest
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit
    from equipoise.audits.forms import Search
    from equipoise.audits.remedy import Remedy
    from equipoise.audits.subject import Median
    from equipoise.lake.lake import Lake
    from equipoise.options.keywords import AuditKeywords


@takes(AuditOptions, SearchRequest, *COUNTING)
def audit(
    data: Any = None,
    *,
    form: AuditForm | None = None,
    sensitive_features: Any = None,
    label: str | None = None,
    y: Any = None,
    lake: Lake | str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    progress: Reporter = silent,
    **options: Unpack[AuditKeywords],
) -> Audit:
    """Fill in a form of an audit from the counts of a table; it contains no verdict.

    Parameters
    ----------
    data, sensitive_features, label, y, progress
        Table and its columns, as in :func:`count`. Counts need no columns. ``sex`` and ``race`` are
        sensitive attributes, too, and ``selected`` is another name of the label.
    form
        Form to fill in: ``"local-law-144"``, ``"uniform-guidelines"``,
        ``"eu-ai-act-article-10"`` or ``"datasheet"``.
    lake
        Lake whose tables are searched for the rows that would fill gaps, for
        ``"eu-ai-act-article-10"``.
    **options
        Columns, what is shown, and how the table is counted and a lake is searched; see Other
        Parameters. Missing values are always counted as unknown.

    Examples
    --------
    >>> form = audit(
    ...     "adult",
    ...     form="uniform-guidelines",
    ...     sex="sex",
    ...     selected="income",
    ...     selected_value=">50K",
    ... )
    >>> best, women = form.to_dict()["numbers"]["tables"][0]["categories"][::-1]
    >>> women["category"], round(women["impact_ratio"], 3), women["below_four_fifths"]
    ('sex=Female', 0.358, True)
    """
    from equipoise.audits.forms import fill_in
    from equipoise.audits.subject import Subject

    request, rest = take(AuditOptions, {**options, "form": form})
    _require_form(request, lake, rest)
    looking, counting = _split(rest)
    columns = {
        "sensitive_features": _attributes(request, sensitive_features, y),
        "label": request.outcome(label),
    }
    try:
        counts, median = _counted(data, request, {**columns, "y": y}, counting, progress)
    except NoRowsLeft:
        outcome = columns["label"] or "the label"
        raise InputError(f"no row has a value of {outcome!r}; name another column.") from None
    _require_axes(request, counts)
    subject = Subject.of(counts, request, median=median, source=name_of(data))
    search = None if lake is None else _search(lake, data, looking, progress)
    return fill_in(subject, search=search, progress=progress)


def _require_form(request: AuditOptions, lake: Any, rest: Mapping[str, Any]) -> None:
    """Refuse what does not fit the form."""
    if request.form is None:
        raise InputError(f"`form` is missing; there are: {', '.join(FORMS)}.")
    if request.score is not None and request.form != SCORING:
        raise InputError(
            f"`score` is for the form {SCORING}; the form {request.form} needs an outcome with a few "
            "values: name it with `selected` or `label`."
        )
    if lake is not None and request.form != SEARCHING:
        raise InputError(
            f"`lake` is searched for rows that fill gaps, which only the form {SEARCHING} has."
        )
    for name in ("missing", "missing_label"):
        if rest.get(name) not in (None, {"missing": "group", "missing_label": "drop"}[name]):
            raise InputError(
                f"a form counts missing values as unknown and leaves rows without an outcome out; leave "
                f"`{name}` out."
            )
    if lake is None:
        given = [name for name in keyword_fields(SearchRequest) if name in rest]
        if given:
            raise InputError(
                f"`{given[0]}` sets how a lake is searched; name the lake with `lake`."
            )


def _split(rest: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part the options of a search from those of counting."""
    searching = keyword_fields(SearchRequest)
    looking = {name: value for name, value in rest.items() if name in searching}
    return looking, {name: value for name, value in rest.items() if name not in searching}


def _attributes(request: AuditOptions, sensitive: Any, y: Any) -> Any:
    if y is not None:
        return sensitive  # the columns themselves
    return request.attributes(sensitive) or None


def _counted(
    data: Any,
    request: AuditOptions,
    columns: dict[str, Any],
    counting: dict[str, Any],
    progress: Reporter,
) -> tuple[Counts, Median | None]:
    if request.score is None:
        return count(data, **columns, progress=progress, **counting), None
    if isinstance(data, Counts) or columns["y"] is not None:
        raise InputError("`score` is a column of a table; give the table itself.")
    for name in ("count", "weight"):
        if counting.get(name) is not None:
            raise InputError(
                f"the median of `score` is that of rows; leave `{name}` out, and give one line for each row."
            )
    return _count_scores(data, request.score, columns, counting, progress)


def _count_scores(
    data: Any, score: str, columns: dict[str, Any], counting: dict[str, Any], progress: Reporter
) -> tuple[Counts, Median]:
    """Count which scores are above the median of all rows that have one."""
    from equipoise.audits.subject import ABOVE, NOT_ABOVE, Median

    source, request, engine = asked_table(
        data, columns["sensitive_features"], score, counting, progress
    )
    middle = engine.middle(source, score, request.na)
    if not math.isfinite(middle.median):
        raise InputError(f"the median of {score!r} is infinite; leave rows without a score out.")
    # A score is above the median if it is above the lower of the two numbers in the middle, since no
    # score is between these. A bin of that number alone counts the ties.
    low = middle.low
    edges = (low, math.nextafter(low, math.inf))
    binned = ScoreRequest(**{**vars(request), "bins": {**request.bins, score: edges}})
    counts = engine.counts(source, binned)
    below, at, above = counts.label.values[:3]
    ties = int(counts.rows[counts.codes[:, -1] == 1].sum()) if low == middle.high else 0
    counts = counts.rename(score, {below: NOT_ABOVE, at: NOT_ABOVE, above: ABOVE})
    bins = {name: edges for name, edges in counts.bins.items() if name != score}
    made = replace(counts, bins=bins, request=request.with_edges(bins), reading=source.reading)
    return made, Median(score, middle.median, middle.numbers, ties)


def _require_axes(request: AuditOptions, counts: Counts) -> None:
    """Refuse columns of sex and race that the counts do not have."""
    names = [axis.name for axis in counts.sensitive]
    for parameter in ("sex", "race"):
        named = getattr(request, parameter)
        if named is not None and named not in names:
            raise InputError(
                f"`{parameter}={named!r}` is not a sensitive attribute of these counts; they have: "
                f"{', '.join(names)}.{did_you_mean(named, names)}"
            )


def _search(lake: Any, data: Any, looking: dict[str, Any], progress: Reporter) -> Search:
    from equipoise.lake.lake import as_lake

    def searched(remedy: Remedy) -> Remedy:
        base = None if isinstance(data, Counts) or data is None else data
        found = as_lake(lake, progress=progress).find(remedy.plan, base=base, **looking)  # type: ignore[arg-type]
        return remedy.with_sources(found)

    return searched
