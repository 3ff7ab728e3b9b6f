"""Proposal of a mapping file: how columns and values of tables map to those of the base."""

from __future__ import annotations

from equipoise.counts import Counts
from equipoise.engines.sources import Source
from equipoise.errors import PoolTooSmall
from equipoise.lake.matching.columns.target import wanted
from equipoise.lake.matching.mapping import write_mapping
from equipoise.lake.matching.restriction import wanted_by
from equipoise.lake.offers.survey import say_nearest, survey
from equipoise.lake.tables.contents import Contents
from equipoise.options.search import SearchRequest
from equipoise.progress import Reporter, silent


def propose(
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
    listed = [*found.usable, *sorted(found.open, key=lambda c: -c.confidence)]
    if not listed:
        raise PoolTooSmall(
            f"no table of the lake has all needed columns: {say_nearest(lake, found.want)}."
        )
    proposals = [(candidate.name, candidate.alignment) for candidate in listed]
    called = "the base" if base is None else base.public_name
    said = "".join(f"# {sentence}\n" for sentence in counts.reading.sentences)
    return said + write_mapping(proposals, found.want, base=called, file=file)
