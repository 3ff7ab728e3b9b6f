"""A lake of undocumented tables, and what can be done with it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from equipoise.counts.reading import Reading
from equipoise.engines.addresses import is_address, with_login
from equipoise.engines.kinds import DATABASES
from equipoise.engines.sources import Source
from equipoise.errors import InputError, LoginRefused, SourceNotFound, did_you_mean
from equipoise.lake.tables.contents import Contents
from equipoise.options import options_of, take
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from equipoise.lake.offers.find import Found
    from equipoise.lake.offers.questions import Questions
    from equipoise.lake.repair.acquisition import Acquired
    from equipoise.lake.repair.replay import Replayed
    from equipoise.lake.tables.hits import Hits
    from equipoise.options.keywords import AcquireKeywords, SearchKeywords
    from equipoise.options.search import AcquisitionLimits, SearchRequest
    from equipoise.plans.plan import Plan


class Lake(Contents):
    r"""Folders, globs, files and databases of tables, with an index of their contents.

    Parameters
    ----------
    places
        A folder, a file, a glob, an address such as ``delta:PATH``, or a list of these.
    index
        File of the index. By default it is in the lake's folder or, if that cannot be written to
        or the lake is not a single folder, in the user's cache.
    engine
        Engine that reads the tables, or a function that returns it; DuckDB by default.
    by
        Where new and changed tables are profiled: ``"client"``, this machine; or ``"spark"``, the workers
        of Spark, which must find the files under the same paths.
    refresh
        Whether the index is brought up to date when it is first used.
    progress
        Progress callback.
    waiting
        Callback that is called once if another run is writing the index.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "staff.csv").write_text("gender,hired\nF,yes\nM,no\n")
    >>> lake = Lake(folder)
    >>> [(table.name, table.rows) for table in lake.tables]
    [('staff.csv', 2)]
    >>> people = {"sex": ["Female", "Male"], "hired": ["no", "yes"]}
    >>> [hit.table.name for hit in lake.search(people).hits]
    ['staff.csv']
    """

    def search(
        self,
        data: Any,
        *,
        top: int = 10,
        encoding: str | None = None,
        delimiter: str | None = None,
    ) -> Hits:
        """Find the tables whose rows could be appended to a table.

        Parameters
        ----------
        data
            A path, the name of a bundled data set, or a frame.
        top
            Maximum number of tables to return.
        encoding, delimiter
            Encoding and delimiter of the table if it is a CSV file.
        """
        from equipoise.datasets.lookup import locate
        from equipoise.lake.tables.hits import search_lake

        query = locate(data, encoding=encoding, delimiter=delimiter)
        return search_lake(self.index, lambda: self.engine, query, top=top)

    def find(
        self,
        plan: Plan | str | os.PathLike[str],
        *,
        base: Any = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        top: int = 10,
        **looking: Unpack[SearchKeywords],
    ) -> Found:
        """Rank the tables by the number of needed rows they offer per unit of cost.

        Parameters
        ----------
        plan
            A plan, or the file of one.
        base
            Table that the plan was made for. By default, the table that the plan names, if it
            exists. It is read as when the plan was made, with the same condition and encoding.
        encoding, delimiter
            Encoding and delimiter of the base if it is a CSV file. By default, those used when
            the plan was made.
        top
            Maximum number of tables to return.
        **looking
            Options of the search, as :func:`equipoise.repair` describes them.
        """
        from equipoise.lake.offers.find import find

        made = read_plan(plan)
        return find(
            made,
            self,
            base=self._base(made, base, encoding, delimiter),
            looking=_options(looking)[0],
            top=top,
            progress=self._progress,
        )

    def mapping(
        self,
        plan: Plan | str | os.PathLike[str],
        *,
        base: Any = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        file: str = "mapping.toml",
        **looking: Unpack[SearchKeywords],
    ) -> str:
        """Write the text of a mapping file that proposes how tables map to the base.

        The parameters are those of :meth:`find`; ``file`` is the file name that the text mentions.
        """
        from equipoise.lake.offers.survey import propose_mapping

        made = read_plan(plan)
        located = self._base(made, base, encoding, delimiter)
        how = _options(looking)[0]
        return propose_mapping(made.counts, self, located, how, file=file, progress=self._progress)

    def questions(
        self,
        plan: Plan | str | os.PathLike[str],
        *,
        base: Any = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        **looking: Unpack[SearchKeywords],
    ) -> Questions:
        r"""List what the tables are taken to mean, why, and what only a person can say.

        The parameters are those of :meth:`find`. A ``mapping`` may be a file or its text; what it
        says about a table is shown as confirmed or refused.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import equipoise as eq
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "staff.csv").write_text("gender,hired\n1,yes\n2,no\n2,yes\n")
        >>> people = {"sex": ["Female", "Male"] * 4, "hired": ["no", "yes", "no", "no"] * 2}
        >>> plan = eq.plan(people, sensitive_features=["sex"], label="hired")
        >>> lake = Lake(folder)
        >>> asked = lake.questions(plan)
        >>> for value in asked["staff.csv"].columns[0].values:
        ...     print(value.value, value.rows, value.status, "-", value.why)
        2 2 open - A code means nothing by itself.
        1 1 open - A code means nothing by itself.
        """
        from equipoise.lake.offers.questions import ask_questions

        made = read_plan(plan)
        located = self._base(made, base, encoding, delimiter)
        how = _options(looking)[0]
        return ask_questions(made.counts, self, located, how, progress=self._progress)

    def answer(
        self,
        plan: Plan | str | os.PathLike[str],
        answers: Iterable[Mapping[str, Any]],
        *,
        base: Any = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        file: str = "mapping.toml",
        **looking: Unpack[SearchKeywords],
    ) -> str:
        r"""Write answers to the :meth:`questions` into a mapping, and return its text.

        A ``mapping`` that is given stays as it is, with its comments, except for the lines that
        the answers are about. Otherwise the text begins as :meth:`mapping` writes it. A table is
        used as soon as nothing about its counted columns is open.

        Parameters
        ----------
        plan, base, encoding, delimiter, **looking
            As in :meth:`questions`.
        answers
            Dictionaries, each with a ``table`` and one of these:

            - ``column`` and ``source``: the column of the table that is a column of the base, or
              None if the table does not have it;
            - ``column``, ``value`` and ``means``: the value of the base that a value of the table
              means, or None to leave its rows out;
            - ``use``: False to refuse the table, True to confirm its columns as proposed;
            - ``take_back`` (True) in place of ``source``, ``means`` or ``use``, to make that open
              again.
        file
            File name that the text of a new mapping mentions.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import equipoise as eq
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "staff.csv").write_text("gender,hired\n1,yes\n2,no\n2,yes\n")
        >>> people = {"sex": ["Female", "Male"] * 4, "hired": ["no", "yes", "no", "no"] * 2}
        >>> plan = eq.plan(people, sensitive_features=["sex"], label="hired")
        >>> told = {"table": "staff.csv", "column": "sex"}
        >>> text = Lake(folder).answer(
        ...     plan,
        ...     [
        ...         {**told, "value": "1", "means": "Male"},
        ...         {**told, "value": "2", "means": "Female"},
        ...     ],
        ... )
        >>> Lake(folder).questions(plan, mapping=text)["staff.csv"].status
        'used'
        """
        asked = self.questions(plan, base=base, encoding=encoding, delimiter=delimiter, **looking)
        return asked.answer(answers, file=file)

    def acquire(
        self,
        plan: Plan | str | os.PathLike[str],
        output: str | os.PathLike[str] | None,
        *,
        base: Any = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        ledger: str | os.PathLike[str] | None = None,
        hash_key: bytes | None = None,
        **options: Unpack[AcquireKeywords],
    ) -> Acquired:
        """Take the rows that a plan needs, and write the repaired table and the ledger.

        Parameters
        ----------
        plan, base, encoding, delimiter
            As in :meth:`find`; the base must exist.
        output
            File of the repaired table, or the address of a table of a database. An existing table of
            that name is replaced in PostgreSQL, unless it is the base or a table of the lake, and refused
            in Spark. With None nothing is written (a dry run).
        ledger
            File or table that lists every change; ``OUTPUT.ledger.parquet`` by default, or beside a
            table of a database the table ``…_ledger``.
        hash_key
            Key of the hashes in the ledger, so that nobody can guess rows from them.
        **options
            Options of the search, and limits on the rows taken, as :func:`equipoise.repair`
            describes them.
        """
        from equipoise.lake.repair.acquire import acquire

        made = read_plan(plan)
        located = self._base(made, base, encoding, delimiter)
        if located is None:
            named = f" ({made.source} does not exist)" if made.source else ""
            raise InputError(f"pass the table that the plan was made for as `base`{named}.")
        looking, limits = _options(options)
        return acquire(
            made,
            located,
            self,
            output,
            ledger=ledger,
            looking=looking,
            limits=limits,
            hash_key=hash_key,
            progress=self._progress,
        )

    def replay(
        self,
        ledger: str | os.PathLike[str] | Source,
        *,
        repaired: Any = None,
        hash_key: bytes | None = None,
    ) -> Replayed:
        """Fetch every added row again from its source, and compare it with the ledger.

        Parameters
        ----------
        ledger
            File or address of the ledger.
        repaired
            Repaired table, whose rows are then compared as well.
        hash_key
            Key of the hashes, if the ledger was written with one.
        """
        from equipoise.datasets.lookup import locate
        from equipoise.lake.repair.replay import replay

        located = None if repaired is None else locate(repaired)
        return replay(ledger, self, repaired=located, hash_key=hash_key, progress=self._progress)

    def _base(
        self, plan: Plan, base: Any, encoding: str | None, delimiter: str | None
    ) -> Source | None:
        """Locate the table that a plan was made for, read in the same way."""
        from equipoise.datasets import names
        from equipoise.datasets.lookup import locate
        from equipoise.lake.matching.restriction import refuse_sql

        reading = plan.counts.reading.but(encoding=encoding, delimiter=delimiter)
        refuse_sql(reading.sql)
        if base is not None:
            return locate(base, **reading.options)
        if plan.source is None:
            return None
        if is_address(plan.source):
            with contextlib.suppress(SourceNotFound):
                return self._recorded_base(plan.source, reading)
            return None
        # A table of a database, file.duckdb::table, exists if its file does.
        there = Path(plan.source.partition("::")[0]).exists() or plan.source in names()
        return locate(plan.source, **reading.options) if there else None

    def _recorded_base(self, address: str, reading: Reading) -> Source:
        """Locate a base by the address in a plan, which has no password; the lake may have the same login."""
        from equipoise.datasets.lookup import locate

        found = locate(with_login(address, self.places), **reading.options)
        if found.kind in DATABASES:
            try:
                with contextlib.suppress(SourceNotFound):  # which is told when it is read
                    self.engine.schema(found)
            except LoginRefused as error:
                raise LoginRefused(
                    f"{error} A plan names its table without the password; you can also give the whole address as "
                    "`base`."
                ) from None
        return found


def as_lake(
    lake: Lake | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    progress: Reporter = silent,
) -> Lake:
    """Return a lake, opening it if its places are given."""
    return lake if isinstance(lake, Lake) else Lake(lake, progress=progress)


def read_plan(plan: Plan | str | os.PathLike[str]) -> Plan:
    """Return a plan, reading it if a file is given."""
    from equipoise.plans.plan import Plan

    return Plan.read(plan) if isinstance(plan, (str, os.PathLike)) else plan


def take_search(options: Mapping[str, Any]) -> tuple[SearchRequest, dict[str, Any]]:
    """Make a search request of some options; return it with the options left over."""
    from equipoise.lake.matching.mapping import read_codebook
    from equipoise.options.search import SearchRequest

    given = dict(options)
    codebook = given.pop("codebook", None)
    if codebook is not None:
        is_file = isinstance(codebook, (str, os.PathLike))
        given["codebook"] = read_codebook(codebook) if is_file else codebook
    return take(SearchRequest, given)


def _options(options: Mapping[str, Any]) -> tuple[SearchRequest, AcquisitionLimits]:
    from equipoise.options.search import AcquisitionLimits, SearchRequest

    looking, rest = take_search(options)
    limits, unknown = take(AcquisitionLimits, rest)
    known = [o.keyword for kind in (SearchRequest, AcquisitionLimits) for o in options_of(kind)]
    for name in unknown:
        raise TypeError(f"there is no option {name!r}.{did_you_mean(name, known)}")
    return looking, limits
