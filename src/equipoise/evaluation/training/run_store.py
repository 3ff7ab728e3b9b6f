"""The file of finished fits, one record per line, from which an interrupted evaluation continues."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from equipoise.atomic import require_folder
from equipoise.errors import InputError
from equipoise.evaluation.training.models import Model

SCHEMA = "equipoise.runs/1"
_START = f'{{"schema": "{SCHEMA}"'.encode()

_Place = tuple[int, float, str]  # a repeat, a size and a version


class RunStore:
    """Records of finished fits, in memory and, given a path, in a file.

    Each line of the file has a key, a hash of everything that determines the outcome of a fit.
    Lines with other keys belong to other evaluations and stay as they are.
    """

    def __init__(self, path: str | os.PathLike[str] | None, key: str) -> None:
        self.path = None if path is None else Path(path)
        self.key = key
        self._versions: dict[_Place, dict[str, Any]] = {}
        self._fits: dict[tuple[_Place, str], dict[str, Any]] = {}
        if self.path is not None:
            for record in _read(self.path, key):
                self._keep(record)

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Store records, in the file first."""
        new = [dict(record) for record in records]
        if self.path is not None:
            _append(self.path, [{"schema": SCHEMA, "key": self.key, **r} for r in new])
        for record in new:
            self._keep(record)

    def has(self, repeat: int, size: float, version: str, model: Model) -> bool:
        """Return whether a fit was done with the same settings, or its version cannot be made."""
        place = (repeat, size, version)
        made = self._versions.get(place)
        if made is not None and made["failed"]:
            return True
        done = self._fits.get((place, model.name))
        return made is not None and done is not None and done["settings"] == key_of(model.settings)

    def records(self) -> list[dict[str, Any]]:
        """Return all records, in an order that does not depend on which fit was finished first."""
        versions = [self._versions[p] for p in sorted(self._versions)]
        return versions + [self._fits[p] for p in sorted(self._fits)]

    def _keep(self, record: dict[str, Any]) -> None:
        place = (record["repeat"], record["size"], record["version"])
        if record["kind"] == "version":
            self._versions[place] = record
        else:
            self._fits[place, record["model"]] = record


def key_of(*parts: Any) -> str:
    """Hash everything that determines the outcome of an evaluation."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(path: Path, key: str) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    records = []
    for number, line in enumerate(lines):
        try:
            record = json.loads(line)
        except ValueError:
            # The process may have been killed while it wrote the last line.
            if number == len(lines) - 1 and (line[: len(_START)] == _START[: len(line)]):
                continue
            raise _not_runs(path) from None
        if not isinstance(record, dict) or record.get("schema") != SCHEMA:
            raise _not_runs(path)
        if record.get("key") == key:
            records.append({k: v for k, v in record.items() if k not in ("schema", "key")})
    return records


def _not_runs(path: Path) -> InputError:
    return InputError(f"{path} is not a file of runs; name another one with `runs`.")


def _append(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    require_folder(path)
    text = "".join(json.dumps(record) + "\n" for record in records)
    with path.open("ab+") as file:
        file.truncate(_end_of_lines(file))
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())  # a fit may have taken minutes, and survives a power cut


def _end_of_lines(file: Any) -> int:
    """Find where the last whole line ends; the rest was cut off when the process was killed."""
    end = file.seek(0, os.SEEK_END)
    place = end
    while place:
        start = max(0, place - (1 << 16))
        file.seek(start)
        found = file.read(place - start).rfind(b"\n")
        if found >= 0:
            return int(start + found + 1)
        place = start
    return 0
