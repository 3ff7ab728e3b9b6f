"""The forms by name."""

from __future__ import annotations

from collections.abc import Callable

from equipoise.audits import article_10, datasheet, local_law_144, uniform_guidelines
from equipoise.audits.audit import Audit
from equipoise.audits.remedy import Remedy, find_remedy
from equipoise.audits.subject import Subject
from equipoise.progress import Reporter, silent

Search = Callable[[Remedy], Remedy]
"""Adds to a plan what tables offer for it."""


def fill_in(
    subject: Subject, *, search: Search | None = None, progress: Reporter = silent
) -> Audit:
    """Fill in the form that the options of a subject name."""
    form = subject.options.form
    if form == article_10.FORM:
        remedy = find_remedy(subject, progress=progress)
        if search is not None and remedy.needs_rows:
            remedy = search(remedy)
        return article_10.fill_in(subject, remedy)
    return _FORMS[str(form)](subject)


_FORMS: dict[str, Callable[[Subject], Audit]] = {
    each.FORM: each.fill_in for each in (local_law_144, uniform_guidelines, datasheet)
}
