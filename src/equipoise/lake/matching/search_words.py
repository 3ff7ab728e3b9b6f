"""Words by which tables are found that may have the columns a plan counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from equipoise.lake.matching.columns.headers import stored
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.values.concepts import concepts, synonyms
from equipoise.lake.matching.values.spelling import compact
from equipoise.lake.tables.headers import is_opaque, words


@dataclass(frozen=True)
class ColumnWords:
    """Texts that the header, or that some value, of a column may have."""

    headers: tuple[str, ...]
    values: tuple[str, ...]


def search_words(want: Wanted, codebook: Mapping[str, Mapping[str, str]]) -> dict[str, ColumnWords]:
    """Return what a counterpart of each counted column may be called, and what it may hold.

    Known synonyms are included. Columns whose headers say nothing and whose values have no words
    are left out: nothing can be searched for.

    >>> want = Wanted((), {"sex": {"Female": 1, "Male": 1}}, {})
    >>> found = search_words(want, {})["sex"]
    >>> "gender" in found.headers, "woman" in found.values, "f" in found.values
    (True, True, True)
    """
    found = {}
    for name in want.required:
        headers = () if is_opaque(name) else tuple(dict.fromkeys(_headers(name)))
        values = dict.fromkeys(_values(want.vocabularies.get(name, {})))
        values |= dict.fromkeys(codebook.get(name, {}))
        if headers or any(words(value) for value in values):
            found[name] = ColumnWords(headers, tuple(values))
    return found


def _headers(name: str) -> Iterator[str]:
    """The words of a header, and those of all phrases that the lists take for the same."""
    own = set(words(name))
    yield from own
    for line in (*stored()["meanings"], *stored()["same"], *stored()["mostly"]):
        phrases = [words(phrase) for phrase in line]
        if any(own.issuperset(phrase) for phrase in phrases):
            yield from (word for phrase in phrases for word in phrase)


def _values(known: Iterable[str]) -> Iterator[str]:
    """Values, and all spellings and letters of the same meaning."""
    keys = {compact(value) for value in known}
    yield from known
    for concept in concepts():
        meanings = {concept.words[key] for key in keys if key in concept.words}
        written = synonyms()["concepts"][concept.name]["words"]
        yield from (text for meaning in meanings for text in written.get(meaning, ()))
        for letters in concept.letters:
            read = {code for code, meaning in letters.codes.items() if meaning in meanings}
            yield from read or (set(letters.codes) if keys & letters.codes.keys() else ())
            if keys & letters.codes.keys():
                meant = {letters.codes[key] for key in keys & letters.codes.keys()}
                yield from (text for meaning in meant for text in written.get(meaning, ()))
