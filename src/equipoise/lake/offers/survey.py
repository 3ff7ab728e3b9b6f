"""Survey of a lake for a plan: which tables can be used, and which a user must confirm."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from equipoise.counts import Counts
from equipoise.engines.profiling import Profile
from equipoise.engines.sources import Source
from equipoise.engines.stores.states import snapshot_of, stamp_of
from equipoise.errors import InputError, PoolTooSmall, did_you_mean
from equipoise.lake.matching.columns.alignment import Alignment, nearest_columns
from equipoise.lake.matching.columns.target import Wanted, wanted
from equipoise.lake.matching.mapping import (
    Confirmed,
    confirmed_alignment,
    mapping_name,
    open_mapping,
    read_mapping,
    write_mapping,
    write_table,
)
from equipoise.lake.matching.restriction import wanted_by
from equipoise.lake.offers.alignments import Aligner, is_worth_help
from equipoise.lake.offers.proposals import propose
from equipoise.lake.tables import catalog
from equipoise.lake.tables.conditions import Conditions, Sources, is_denied, read_sources
from equipoise.lake.tables.contents import Contents
from equipoise.lake.tables.headers import words
from equipoise.lake.tables.index import Table
from equipoise.options.search import SearchRequest
from equipoise.progress import Reporter, cancellable, silent

_AT_ONCE = 500  # profiles in memory at a time, since a lake may have many thousands of tables
_SHOWN = 4
_AGAIN = "index the lake again with equipoise lake index, and leave out `refresh=False`."


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A table that may have usable rows; ``barred`` is the reason why none is taken."""

    table: Table
    profile: Profile
    alignment: Alignment
    conditions: Conditions
    confidence: float
    barred: str | None = None

    @property
    def name(self) -> str:
        """Name of the table in the lake."""
        return self.table.name

    def require_unchanged(self, *, surely: bool = False) -> None:
        """Refuse a table whose file has changed since it was indexed, by its date or its hash.

        Otherwise its profile, and the snapshot that a ledger records, would be wrong.
        """
        source = self.table.source
        try:
            same = stamp_of(source) == (self.table.size, self.table.changed)
            if (same and not surely) or snapshot_of(source) == self.table.snapshot:
                return
        except OSError as error:
            raise InputError(
                f"{self.name} can no longer be read ({error.strerror}); {_AGAIN}"
            ) from None
        raise InputError(f"{self.name} has changed since the lake was indexed; {_AGAIN}")


@dataclass(frozen=True, kw_only=True)
class Survey:
    """Tables of a lake that may be used for a plan."""

    want: Wanted
    usable: tuple[Candidate, ...]
    """Tables with a certain or confirmed mapping."""

    barred: tuple[Candidate, ...]
    """Such tables that are not used: denied, without consent, or of low confidence."""

    open: tuple[Candidate, ...]
    """Tables that could be used if a user confirmed their mapping."""

    refused: tuple[Candidate, ...] = ()
    """Such tables that a user decided not to use."""

    looked_at: int
    unreadable: int
    """Number of tables in the lake, and of those that cannot be read."""

    passed_over: int = 0
    """Number of tables of a large lake that were not compared; see :func:`.proposals.propose`."""


def survey(
    lake: Contents, want: Wanted, looking: SearchRequest, progress: Reporter = silent
) -> Survey:
    """Align every table of a lake with the base.

    The lake keeps the last survey: ranking its tables and listing what is open about them ask for
    the same one.
    """
    confirmed = {} if looking.mapping is None else read_mapping(looking.mapping)
    known = [table.name for table in lake.tables]
    for name in confirmed:
        if name not in known:
            raise InputError(
                f"{mapping_name(looking.mapping or '')} names the table {name!r}, which is not in the lake."
                f"{did_you_mean(name, known)}"
            )
    _require_denied(looking.deny, known)
    sources = read_sources(looking.sources, catalog.root(lake.places))
    _require_conditions(sources, known)
    _require_codebook(looking.codebook, want)
    asked = (want, _asked(looking), confirmed, sources)
    if lake.last_survey is None or lake.last_survey[0] != asked:
        lake.last_survey = asked, _survey(lake, want, looking, confirmed, sources, progress)
    found: Survey = lake.last_survey[1]
    return found


def _asked(looking: SearchRequest) -> tuple[object, ...]:
    """The options that a survey depends on, apart from the files that they name."""
    names = ("codebook", "same_codes", "deny", "min_confidence", "second_opinion")
    mapping = None if looking.mapping is None else mapping_name(looking.mapping)
    return (*(getattr(looking, name) for name in names), mapping)


def _survey(
    lake: Contents,
    want: Wanted,
    looking: SearchRequest,
    confirmed: Mapping[str, Confirmed],
    sources: Sources,
    progress: Reporter,
) -> Survey:
    closed = _closed(lake.tables, looking, sources)
    readable = [t for t in lake.tables if t.profiled and t.problem is None]
    proposed = propose(lake, readable, want, looking, confirmed)
    found = _candidates(lake, proposed, want, looking, confirmed, sources, progress)
    found = [replace(c, barred=c.barred or closed.get(_content(c.table))) for c in found]
    certain = [c for c in found if c.alignment.certain]
    doubtful = [c for c in found if not c.alignment.certain]
    refused = {name for name, said in confirmed.items() if said.refused}
    return Survey(
        want=want,
        usable=tuple(c for c in certain if c.barred is None),
        barred=tuple(c for c in certain if c.barred is not None),
        open=tuple(c for c in doubtful if c.name not in refused),
        refused=tuple(c for c in doubtful if c.name in refused),
        looked_at=len(lake.tables),
        unreadable=len(lake.tables) - len(readable),
        passed_over=len(readable) - len(proposed),
    )


@cancellable
def propose_mapping(
    counts: Counts,
    lake: Contents,
    base: Source | None,
    looking: SearchRequest,
    *,
    file: str = "mapping.toml",
    progress: Reporter = silent,
) -> str:
    """Write the text of a mapping file, certain tables first, then those to confirm."""
    want = wanted(counts) if base is None else wanted_by(counts, base, lake.engine)
    found = survey(lake, want, looking, progress)
    if not (found.usable or found.open or looking.mapping):
        raise PoolTooSmall(
            f"no table of the lake has all needed columns: {say_nearest(lake, want)}."
        )
    return begin_mapping(found, counts, base, looking, file)


def begin_mapping(
    found: Survey, counts: Counts, base: Source | None, looking: SearchRequest, file: str
) -> str:
    """Write a mapping file of surveyed tables; one that is given stays, and others are added."""
    listed = [*found.usable, *sorted(found.open, key=lambda c: -c.confidence)]
    if looking.mapping is not None:
        told = open_mapping(looking.mapping)
        for candidate in listed:
            if candidate.name not in told.tables:
                told.lines.add(write_table(candidate.name, candidate.alignment, found.want))
        return told.lines.text()
    called = "the base" if base is None else base.public_name
    said = "".join(f"# {sentence}\n" for sentence in counts.reading.sentences)
    return said + write_mapping(
        [(candidate.name, candidate.alignment) for candidate in listed],
        found.want,
        base=called,
        file=file,
    )


def _require_denied(deny: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a name that denies nothing: a typing error would let rows in."""
    for name in deny:
        if not any(sign in name for sign in "*?[") and name not in known:
            raise InputError(f"the lake has no table {name!r} to deny.{did_you_mean(name, known)}")


def _require_conditions(sources: Sources, known: Sequence[str]) -> None:
    """Refuse conditions of unknown tables: a typing error would lift them."""
    there = {*known, *(name.partition("::")[0] for name in known)}
    for name in sources.tables:
        if name in there:
            continue
        if not any(fnmatch.fnmatchcase(table, name) for table in there):
            raise InputError(
                f"the conditions name {name!r}, which is not a table of the lake; fix or remove "
                f"them.{did_you_mean(name, known)}"
            )


def _require_codebook(codebook: Mapping[str, object], want: Wanted) -> None:
    for name in codebook:
        if name not in want.vocabularies:
            known = list(want.vocabularies)
            raise InputError(
                f"the codebook describes {name!r}, which the plan does not count; it counts: "
                f"{', '.join(known)}.{did_you_mean(name, known)}"
            )


def _content(table: Table) -> tuple[str, str | None]:
    return table.snapshot, table.source.table


def _closed(
    tables: Sequence[Table], looking: SearchRequest, sources: Sources
) -> dict[tuple[str, str | None], str]:
    """Find contents that may not be used: a copy of a denied table is denied as well."""
    return {
        _content(table): f"it is the same as {table.name}, which may not be used"
        for table in tables
        if table.snapshot and is_denied(table.name, sources.of(table.name), looking.deny)
    }


def _profiled(
    lake: Contents, tables: Sequence[Table], progress: Callable[[int], None]
) -> Iterator[list[tuple[Table, Profile]]]:
    """Yield tables with their profiles, some at a time."""
    for start in range(0, len(tables), _AT_ONCE):
        progress(start)
        some = tables[start : start + _AT_ONCE]
        profiles = lake.profiles(some)
        yield [(table, profiles[table.id]) for table in some]


def _candidates(
    lake: Contents,
    tables: Sequence[Table],
    want: Wanted,
    looking: SearchRequest,
    confirmed: Mapping[str, Confirmed],
    sources: Sources,
    progress: Reporter,
) -> list[Candidate]:
    """Align tables with the base, except those that a mapping file describes."""
    helped = is_worth_help(len(tables))
    done, candidates = 0, list[Candidate]()

    def report(more: int) -> None:
        progress("matching columns and values", (done + more) / len(tables))

    with Aligner(want, looking.same_codes, looking.codebook, helped) as aligner:
        for some in _profiled(lake, tables, lambda _: report(0)):
            said = [confirmed.get(table.name) for table, _ in some]
            open_ = [
                profile
                for (_, profile), told in zip(some, said, strict=True)
                if told is None or not told.use
            ]
            aligned = iter(aligner.align(open_, report))
            for (table, profile), told in zip(some, said, strict=True):
                found = None if told is not None and told.use else next(aligned)
                candidate = _candidate(table, profile, want, looking, told, sources, found)
                candidates += [] if candidate is None else [candidate]
            done += len(some)
    return candidates


def _candidate(
    table: Table,
    profile: Profile,
    want: Wanted,
    looking: SearchRequest,
    said: Confirmed | None,
    sources: Sources,
    found: Alignment | None,
) -> Candidate | None:
    conditions = sources.of(table.name)
    barred = is_denied(table.name, conditions, looking.deny)
    if said is not None and said.use:
        called = Path(mapping_name(looking.mapping or "")).name
        alignment = confirmed_alignment(said, want, profile, called)
    else:
        if found is None:
            return None
        alignment = _questioned(found, want, profile) if looking.second_opinion else found
        if said is not None:
            barred = barred or f"{mapping_name(looking.mapping or '')} says not to use it"
    confidence = alignment.confidence(want.required)
    if barred is None and confidence < looking.min_confidence:
        barred = f"its columns are matched with a confidence of only {confidence:.2f}"
    return Candidate(
        table=table,
        profile=profile,
        alignment=alignment,
        conditions=conditions,
        confidence=confidence,
        barred=barred,
    )


def _questioned(alignment: Alignment, want: Wanted, profile: Profile) -> Alignment:
    """Add doubts where a second opinion matches other columns."""
    from equipoise.lake.matching.second_opinion import second_opinion

    if not alignment.certain:
        return alignment
    required = [alignment.columns[name] for name in want.required]
    doubts = {
        name: f"Valentine takes {column} for {name} ({similarity:.2f})"
        for name, (column, similarity) in second_opinion(want, profile, required).items()
    }
    return replace(alignment, doubts=doubts)


def say_nearest(lake: Contents, want: Wanted) -> str:
    """Describe the columns of the lake that are most similar to the required ones."""
    readable = [t for t in lake.tables if t.profiled]
    best: dict[str, tuple[float, str]] = {}
    for some in _profiled(lake, readable, lambda _: None):
        for table, profile in some:
            for name, (score, column) in nearest_columns(want, profile).items():
                if score > best.get(name, (0.0, ""))[0]:
                    best[name] = (score, f"{column!r} of {table.name}")
    parts = [
        f"most similar to {name!r} is {best[name][1]} ({best[name][0]:.2f})"
        if name in best
        else f"nothing is similar to {name!r}"
        for name in want.required
    ]
    return "; ".join(parts)


def say_alignment(candidate: Candidate, required: Sequence[str]) -> str:
    """Describe in a line how columns and values of a table were matched."""
    parts = []
    for name in required:
        match = candidate.alignment.columns[name]
        column = name if match.source == name else f"{name} ← {match.source}"
        values = candidate.alignment.values.get(name)
        step = f" ({values.step})" if values is not None and values.step else ""
        parts.append(f"{column}{step}")
    others = [m for name, m in candidate.alignment.columns.items() if name not in required]
    renamed = [f"{m.base} ← {m.source}" for m in others if words(m.base) != words(m.source)]
    asked = [f"{m.base} ← {m.source}" for m in candidate.alignment.proposed.values()]
    for what, some in (("also", renamed), ("not certain and left empty:", asked)):
        if some:
            more = f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
            parts.append(f"{what} {', '.join(some[:_SHOWN])}{more}")
    return ", ".join(parts)
