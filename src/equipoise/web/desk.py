"""What stands between a request and the workers: names, options, counts, and what was computed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pydantic

from equipoise import datasets
from equipoise.errors import EquipoiseError, InputError
from equipoise.monitoring.store.files import log_of
from equipoise.web import charts, tasks
from equipoise.web.crew import Crew
from equipoise.web.jobs import Jobs
from equipoise.web.places import EXAMPLE, Places
from equipoise.web.rooms import plan as plan_room
from equipoise.web.rooms.room import SHARED, TABLE_OPTIONS, Ask, Room
from equipoise.web.schema import Query, as_pairs, files_of, keywords_of
from equipoise.web.settings import ExplorerSettings

_ANSWERS, _COUNTS = 16_000_000, 64_000_000
"""Maximum number of bytes of answers, and of counts, that are kept."""


_WRITTEN = f"{EXAMPLE}/lake/sources.toml"
"""The last file of the example to be written."""
_NOTHING = {
    "data": "no table is chosen; choose one in the room “Table”.",
    "store": "no store is chosen; name a file that equipoise monitor add has made.",
}
"""What is said if what a room reads is not named."""
_TABLES = ("target_rates", "target_shares")
"""Options that name a table."""


class Desk:
    """Answers what rooms ask, for every user with files of their own."""

    def __init__(self, settings: ExplorerSettings, crew: Crew) -> None:
        self.settings, self.crew = settings, crew
        self.jobs = Jobs(self.crew)
        self._example: threading.Thread | None = None
        self._answers = AnswerCache(_ANSWERS)
        self._counts = AnswerCache(_COUNTS)

    def places(self, user: str) -> Places:
        """The files of a user."""
        # A single user keeps uploads and results when the explorer starts again with another token.
        folder = "one" if len(self.settings.tokens) == 1 else user
        return Places(self.settings.root, self.settings.home / folder)

    def prepare(self) -> None:
        """Write the example, so that there is something to try everything on."""
        # Uploads are nobody else's business, also not that of other accounts of this machine.
        self.settings.home.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            self.settings.home.chmod(0o700)
        folder = str(self.settings.home / EXAMPLE)

        def work() -> None:
            if not (self.settings.home / _WRITTEN).exists():
                with contextlib.suppress(EquipoiseError):
                    self.crew.run(tasks.build_example, folder, user="", time_limit=120)
            self.crew.warmed.wait()
            if not charts.bundle_path().exists():
                with contextlib.suppress(EquipoiseError):
                    self.crew.run(charts.write_bundle, user="", aside=True, time_limit=120)

        self._example = threading.Thread(target=work, daemon=True)
        self._example.start()

    def _await_example(self, name: str) -> None:
        """Wait until a file of the example is there, or all of its lake."""
        if not name.startswith(f"{EXAMPLE}/") or self._example is None:
            return
        file = self.settings.home / (name if name.endswith(".parquet") else _WRITTEN)
        while self._example.is_alive() and not file.exists():
            time.sleep(0.01)

    def new_name(self) -> str:
        """A name that no other result has."""
        return secrets.token_hex(4)

    def close(self) -> None:
        """End all work."""
        self.crew.close()

    # ---------------------------------------------------------------------------- asking

    def ask(self, room: Room, query: Query, user: str) -> Ask:
        """Make what a worker gets of the address of a room."""
        data = getattr(query, room.source, None)
        for name in (data, getattr(query, "lake", None)):
            self._await_example(name or "")
        if not data:
            raise InputError(_NOTHING[room.source])
        places = self.places(user)
        given = keywords_of(query, room.options)
        options = self.with_files(given, room, places)
        known = {o.keyword for o in (*TABLE_OPTIONS, *room.options)}
        others = {"data", room.source, *known}
        view = {k: v for k, v in query.model_dump().items() if k not in others}
        table: dict[str, Any] = {}
        if room.source == "store":
            path = str(places.store(data))
        else:
            table, path = keywords_of(query, TABLE_OPTIONS), places.resolve(data)
            self._add_count_column(table, path)
        return Ask(
            data=data,
            path=path,
            places=places,
            table=table,
            options=options,
            view=view,
            pairs=tuple(as_pairs(query)),
            read_only=self.settings.read_only,
            memory=self.settings.memory,
            named={name: str(given[name]) for name in files_of(given, room.options)},
        )

    def with_files(self, given: Mapping[str, Any], room: Room, places: Places) -> dict[str, Any]:
        """Options whose files are those of the user, and no others."""
        found = dict(given)
        for name in files_of(given, room.options):
            text = str(found[name])
            if is_rule(name, text):
                continue
            # A bundled table has a name of its own; files of rules have none.
            named = places.resolve if name in _TABLES else places.file
            found[name] = str(named(text))
        return found

    def _add_count_column(self, table: dict[str, Any], path: str) -> None:
        column = count_column(path)
        if column is not None:
            table.setdefault("count", column)

    # ------------------------------------------------------------------------- answering

    def answer(
        self, room: Room, query: Query, user: str, *, form: str, work: str | None = None
    ) -> bytes:
        """Compute what a room shows, as JSON or as a part of a page."""
        ask = self.ask(room, query, user)
        key = self._key(room.name, form, ask)
        found = self._answers.get(key)
        if found is not None:
            answered: bytes = found
            return answered
        ask = self.with_counts(room, ask, user, work)
        made: bytes = self.crew.run(
            tasks.answer, room.name, ask, form, user=user, work=work, slow=room.slow
        )
        if not ask.view.get("draft"):  # which is asked for once, and seldom again
            self._answers.put(key, made, len(made))
        return made

    def with_counts(self, room: Room, ask: Ask, user: str, work: str | None = None) -> Ask:
        """The request with everything that a worker needs for it."""
        view = dict(ask.view)
        counts = self.counts(ask, user, work) if room.counts else None
        if room.name == "compare":
            view["plans"] = [self.pinned(text, ask) for text in ask.view["pin"]]
            view["other_counts"] = None
            if ask.view.get("other"):
                view["other_counts"] = self.counts(self._other(ask), user, work)
        return replace(ask, counts=counts, view=view)

    def _other(self, ask: Ask) -> Ask:
        """The request for the second table, which may hold counts or not by itself."""
        name = ask.view["other"]
        path, table = ask.places.resolve(name), dict(ask.table)
        if "count" not in dict(ask.pairs):
            table.pop("count", None)
            self._add_count_column(table, path)
        return replace(ask, data=name, path=path, table=table)

    def pinned(self, text: str, ask: Ask) -> tuple[str, dict[str, Any], list[str]]:
        """Read the address of a pinned plan: its name, its options, and its moves."""
        room = plan_room.ROOM
        fields = room.query.model_fields
        given = parse_qs(text.partition("?")[2] or text, keep_blank_values=False)
        name = given.pop("name", ["plan"])[0]
        values: dict[str, Any] = {}
        for key, texts in given.items():
            if key in SHARED:
                raise InputError(
                    f"a pinned plan is a plan for the table of the page; leave out {key!r}."
                )
            if key not in fields:
                raise InputError(f"a pinned plan has no option {key!r}.")
            listed = "list" in str(fields[key].annotation)
            values[key] = texts if listed else texts[-1]
        try:
            query = room.query.model_validate(values)
        except pydantic.ValidationError as error:
            raise InputError(f"a pinned plan cannot be read: {first_problem(error)}.") from None
        options = self.with_files(keywords_of(query, room.options), room, ask.places)
        return name, options, list(query.move)  # type: ignore[attr-defined]

    def counts(self, ask: Ask, user: str, work: str | None = None) -> bytes:
        """Count the table of a request, once for all that is asked about it."""
        if not ask.table.get("sensitive_features") or not ask.table.get("label"):
            raise NothingChosen(
                "choose at least one sensitive attribute and a label in the room “Table”."
            )
        key = self._key("counts", "", replace(ask, options={}, view={}, pairs=()))
        found = self._counts.get(key)
        if found is not None:
            known: bytes = found
            return known
        counts: bytes = self.crew.run(tasks.count, ask, user=user, work=work)
        self._counts.put(key, counts, len(counts))
        return counts

    def _key(self, room: str, form: str, ask: Ask) -> str:
        told = [room, form, ask.path, fingerprint(ask.path), ask.table, ask.options, ask.view]
        told += [list(ask.pairs), str(ask.places.home)]
        if ask.view.get("other"):
            told.append(fingerprint(ask.places.resolve(ask.view["other"])))
        if ask.view.get("lake"):
            told.append(fingerprint(str(ask.places.file(ask.view["lake"]))))
        pinned = [
            self.pinned(text, ask)[1] for text in ask.view.get("pin") or () if room == "compare"
        ]
        for options in (ask.options, *pinned):
            told += [
                fingerprint(v) for v in options.values() if isinstance(v, str) and v[:1] == "/"
            ]
        return hashlib.sha256(json.dumps(told, default=repr).encode()).hexdigest()


@functools.lru_cache(maxsize=256)
def count_column(name: str) -> str | None:
    """The column of a bundled table that holds numbers of rows."""
    return datasets.card(name).count if name in datasets.names() else None


class NothingChosen(InputError):
    """The columns of the table are not chosen yet."""


class AnswerCache:
    """Values by key; beyond a number of bytes, those that were not used for longest are dropped."""

    def __init__(self, most: int) -> None:
        self.most, self.bytes = most, 0
        self._values: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> Any:
        """The value of a key, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: str, value: Any, size: int) -> None:
        """Keep a value of some size."""
        with self._lock:
            if size > self.most:
                return
            if key in self._values:
                self.bytes -= self._values.pop(key)[1]
            self._values[key] = (value, size)
            self.bytes += size
            while self.bytes > self.most:
                _, (_, freed) = self._values.popitem(last=False)
                self.bytes -= freed


def fingerprint(path: str) -> list[Any]:
    """What changes when a file or a folder changes."""
    place = Path(path.partition("::")[0])
    try:
        if place.is_dir():
            files = sorted(p for p in place.rglob("*") if p.is_file())
            return [[str(p), p.stat().st_mtime_ns, p.stat().st_size] for p in files[:10_000]]
        about = place.stat()
    except OSError:
        return []
    return [about.st_mtime_ns, about.st_size, *_written_last(place)]


def _written_last(place: Path) -> list[int]:
    """What changes when something is written that SQLite keeps beside its file at first."""
    try:
        about = log_of(place).stat()
    except (OSError, RuntimeError):
        return []
    # Readers leave an empty one behind.
    return [about.st_mtime_ns, about.st_size] if about.st_size else []


def is_rule(option: str, text: str) -> bool:
    """Whether the text of an option that may name a file is a word or a rule instead."""
    return (option == "labels" and text in ("keep", "free")) or (
        option == "target" and text.startswith("keep rates of:")
    )


def first_problem(error: pydantic.ValidationError) -> str:
    """The first problem of an address, as a part of a sentence."""
    told = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in told["loc"])
    return f"{place}: {told['msg'][:1].lower()}{told['msg'][1:]}"
