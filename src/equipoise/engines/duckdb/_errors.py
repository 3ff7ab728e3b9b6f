"""Errors of DuckDB as sentences that say what to do."""

from __future__ import annotations

import re

import duckdb

from equipoise.engines.addresses import scrubbed
from equipoise.engines.conditions import not_evaluated
from equipoise.engines.csv.encodings import not_encoded
from equipoise.engines.csv.records import MEND
from equipoise.engines.duckdb._window import with_names
from equipoise.engines.sources import Source
from equipoise.errors import InputError, SourceNotFound

MEANINGLESS = (
    duckdb.BinderException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.OutOfRangeException,
)
"""Errors of a condition that cannot be evaluated."""


_IN_PYTHON = "Traceback (most recent call last)"


class Unparsed(InputError):
    """A CSV file that DuckDB cannot parse, for a reason that it does not name."""


def reason(error: BaseException) -> str:
    """Return the first line of a message without its full stop, to be part of a sentence.

    Of an error in a store, which DuckDB tells with all that led to it, it is the last line.
    """
    lines = str(error).strip().splitlines()
    said = lines[-1].partition(": ")[2] if _IN_PYTHON in str(error) else lines[0]
    return said.rstrip(".!? ")


def explained(error: Exception, source: Source) -> Exception:
    """Turn an error of DuckDB into one that says what to do, without the secrets of an address."""
    found = _explained(error, source)
    addresses = [file.address for file in source.stored]
    addresses += [] if source.address is None else [source.address]
    if addresses and found.args:
        found.args = (scrubbed(with_names(str(found), source.files), addresses),)
    return found


def _explained(error: Exception, source: Source) -> Exception:
    text = str(error)
    if isinstance(error, duckdb.InterruptException) or text.startswith("INTERRUPT Error"):
        return KeyboardInterrupt()  # type: ignore[return-value]
    if "not utf-8 encoded" in text or "Invalid unicode" in text or "Invalid UTF" in text:
        return not_encoded(source.name, source.encoding)
    if "Out of Memory" in text or isinstance(error, duckdb.OutOfMemoryException):
        return InputError(
            f"{source.name} needs more memory than allowed; raise `memory`, or name "
            f"fewer attributes ({reason(error)})."
        )
    if _IN_PYTHON in text:
        return SourceNotFound(f"{source.name} cannot be read: {reason(error)}.")
    broken = _broken_csv(text, source.name)
    if broken is not None:
        return broken
    if isinstance(error, duckdb.IOException) and source.kind in ("delta", "iceberg"):
        return SourceNotFound(
            f"a file of version {source.version} of {source.name} cannot be read; if it was removed, as "
            f"by a vacuum, this version has gone: name a newer one ({reason(error)})."
        )
    if isinstance(error, duckdb.IOException):
        return SourceNotFound(f"{source.name} cannot be read: {reason(error)}.")
    if source.where is not None and isinstance(error, MEANINGLESS):
        return not_evaluated(source.where, source.name, reason(error))
    if source.sql is not None:
        return InputError(f"the SQL over {source.name} failed: {reason(error)}.")
    return InputError(f"{source.name} cannot be read: {reason(error)}.")


def _broken_csv(text: str, name: str) -> InputError | None:
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line:
        wide = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
        if wide:
            what = f"has {wide[2]} fields where {wide[1]} are expected"
            return InputError(f"line {line[1]} of {name} {what}; {MEND}.")
        lines = (x.strip(" .") for x in text.splitlines()[2:] if x.strip())
        why = next(lines, "it is broken")
        return Unparsed(f"line {line[1]} of {name} cannot be read: {why}; {MEND}.")
    if "state machine reached an invalid state" in text:
        return Unparsed(f"{name} is not well-formed CSV; {MEND}.")
    return None
