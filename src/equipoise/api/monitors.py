"""Monitor streams of tables: keep a history of counts, check it, and plan repairs from it."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, get_args

from equipoise.api.batches import (
    count_batch,
    entries_of,
    require_batch,
    require_same,
    require_split,
    watched_by,
)
from equipoise.api.keywords import takes
from equipoise.api.measurement import COUNTING
from equipoise.api.plans import plan as make_plan
from equipoise.api.stores import StoreOwner, alone
from equipoise.counts import Counts
from equipoise.errors import EquipoiseError, InputError
from equipoise.lattice import Group
from equipoise.measures.policy import Policy
from equipoise.monitoring.additions import Added, BatchList, StreamList, StreamSummary
from equipoise.monitoring.check import StreamCheck
from equipoise.monitoring.examination import Examination, check_series, require_tags, run_tests
from equipoise.monitoring.history import History, make_history
from equipoise.monitoring.metrics import write_metrics
from equipoise.monitoring.moments import (
    earlier,
    floor,
    read_moment,
    read_span,
    zone_name,
    zone_named,
)
from equipoise.monitoring.names import batch_name, plain_reason, read_tags, stream_name
from equipoise.monitoring.retention import merge_older
from equipoise.monitoring.series import Series
from equipoise.monitoring.store.entries import Entry
from equipoise.monitoring.store.merges import evidence_of, policies_of, remember_policy
from equipoise.monitoring.store.records import Periods
from equipoise.monitoring.store.store import Store
from equipoise.monitoring.times import without_dropped
from equipoise.monitoring.webhook import Delivery, send
from equipoise.options import take
from equipoise.options.monitor import Every, WatchOptions
from equipoise.options.plan import PlanOptions
from equipoise.progress import Reporter, silent
from equipoise.validate import one_of

if TYPE_CHECKING:
    from equipoise.monitoring.store.records import Stream
    from equipoise.options.keywords import CountKeywords, PlanKeywords, WatchKeywords
    from equipoise.plans.plan import Plan


class Monitor(StoreOwner):
    """Monitor the bias of streams of tables over time.

    A stream is a sequence of batches with the same columns. The store contains the number of rows
    in each cell of each batch, and never a row.

    Parameters
    ----------
    store
        Path of a SQLite file, or address of a PostgreSQL database, such as
        ``postgresql://user@host/db?schema=monitoring``. The first batch creates it.
    read_only
        If True, the store is not changed. Checks then do not record their rules in it, so that a
        later :meth:`merge` does not keep the evidence for these rules.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> monitor = Monitor(pathlib.Path(tempfile.mkdtemp()) / "bias.sqlite")
    >>> day = {("m", "yes"): 40, ("m", "no"): 60, ("w", "yes"): 20, ("w", "no"): 80}
    >>> for number in range(1, 11):
    ...     counts = Counts.from_mapping(day, sensitive=["sex"], label="hired")
    ...     added = monitor.add(counts, name="hires", at=f"2026-11-{number:02}")
    >>> check = monitor.check("hires")
    >>> check.status, [str(f.group) for f in check.alerts if f.label == "yes"]
    ('outside', ['sex=m', 'sex=w'])
    """

    # ------------------------------------------------------------------- adding

    @takes(*COUNTING)
    @alone
    def add(
        self,
        data: Any = None,
        *,
        name: str,
        sensitive_features: Any = None,
        label: str | None = None,
        y: Any = None,
        at: Any = None,
        time_column: str | None = None,
        every: Every = "day",
        id: str | None = None,  # noqa: A002  the word of everybody who adds batches
        tags: Mapping[str, str] | Sequence[str] | None = None,
        replace: bool = False,
        timezone: str | datetime.tzinfo = "UTC",
        progress: Reporter = silent,
        **options: Unpack[CountKeywords],
    ) -> Added:
        """Add a batch to a stream. The first batch creates the stream.

        Adding a batch that is already there changes nothing. You can add late batches like any others.

        Parameters
        ----------
        data, y, progress
            Table, as in :func:`count`, or Counts.
        name
            Name of the stream.
        sensitive_features, label
            Columns of the stream. You can omit them for later batches.
        at
            Time of the batch: a text such as ``"2026-11-15"``, a date or a datetime. By default now.
        time_column
            Column with the time of each row. It splits the table into batches, which are identified by
            their time and tags. A batch that is already there is not added again.
        every
            Length of these batches: ``"hour"``, ``"day"``, ``"week"`` or ``"month"``.
        id
            Id of the batch. By default a hash of its counts, time and tags. With ``time_column``, each id
            consists of this text and the time of the batch.
        tags
            Names and values, such as ``{"region": "north"}``.
        replace
            If True, correct the counts, time or tags of a batch that is already there. A time or tags
            that you omit stay the same, and both versions are kept. A batch that is not there is an
            error, except for new periods of a table with ``time_column``.
        timezone
            Time zone of times without an offset, and of the periods of ``time_column``: a name or a tzinfo.
        **options
            How the table is counted; see Other Parameters. Later batches are counted like the first.

        Returns
        -------
        Added
            What was added, corrected or already there, and how it differs from earlier batches: new
            values, missing or renamed columns, late arrival.
        """
        zone, name, given_tags = zone_named(timezone), stream_name(name), read_tags(tags) or None
        require_batch(at, time_column, every, id)
        moment = self._clock() if at is None else read_moment(at, zone)
        known = self._known(name)
        columns = {"sensitive_features": sensitive_features, "label": label, "y": y}
        counts, stream, remarks = count_batch(
            data, name, known, columns, time_column, every, dict(options), progress
        )
        batch = Entry(counts, moment, id, given_tags, at is None, remarks=remarks)
        left_out, entries = entries_of(batch, name, time_column, every, zone)
        store = self._store(create=True, write=True)
        with store.writing():
            if known is None:
                stream = store.define(stream)
                require_same(stream, counts, time_column)
            if time_column is not None:
                split = Periods(every, zone_name(zone))
                require_split(name, split, store.settle_split(stream, split), id)
            receipts = store.add(stream, entries, replace=replace)
        counts = counts if time_column is None else without_dropped(counts)
        return Added.of(stream.name, receipts, zone, counts, left_out)

    def _known(self, name: str) -> Stream | None:
        """The stream of a name, if there is a store that has it."""
        if not self._exists:
            return None
        return self._store(create=True, write=True).find(name)

    # ------------------------------------------------------------------ changing

    @alone
    def withdraw(self, name: str, *, id: str, reason: str = "") -> None:  # noqa: A002
        """Remove a batch from all sums and tests. You can add it again with ``replace``.

        Parameters
        ----------
        name, id
            Name of the stream, and id of the batch.
        reason
            Reason, which the history shows.
        """
        batch_name(id)
        store = self._store(write=True)
        store.withdraw(store.stream(name), id, plain_reason(reason))

    @alone
    def acknowledge(self, name: str, *, reason: str = "") -> None:
        """Restart all tests of a stream, for example after you have fixed the cause of an alert.

        Parameters
        ----------
        name, reason
            Name of the stream, and the reason, which the history shows.
        """
        store = self._store(write=True)
        store.acknowledge(store.stream(name), plain_reason(reason))

    @takes(WatchOptions)
    @alone
    def merge(
        self,
        name: str,
        *,
        older_than: str | datetime.timedelta = "90d",
        every: Every = "week",
        timezone: str | datetime.tzinfo = "UTC",
        policy: Policy | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        **options: Unpack[WatchKeywords],
    ) -> tuple[int, int]:
        """Merge old batches, so that the store stays small.

        The totals stay the same. The evidence stays the same for the rules of earlier checks and for
        the rules that you pass here. Merged batches can no longer be corrected.

        Parameters
        ----------
        name
            Name of the stream.
        older_than
            Minimum age of the batches to merge, counted from the last batch that is not in the future.
        every
            Length of the merged batches.
        timezone
            Time zone in which days, weeks and months begin.
        policy, **options
            Limits, as in :meth:`check`.

        Returns
        -------
        tuple[int, int]
            Number of batches that were merged, and number of resulting batches.
        """
        zone = zone_named(timezone)
        one_of("every", every, get_args(Every))
        age, store = read_span(older_than), self._store(write=True)
        self._tested(name, policy, dict(options))
        series = Series.read(store, name)
        if not len(series):
            return 0, 0
        before = floor(earlier(series.last_at(self._clock()), age), every, zone)
        return merge_older(store, name, before=before, every=every, zone=zone)

    # ------------------------------------------------------------------ checking

    @takes(WatchOptions)
    @alone
    def check(
        self,
        name: str,
        *,
        policy: Policy | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        timezone: str | datetime.tzinfo = "UTC",
        **options: Unpack[WatchKeywords],
    ) -> StreamCheck:
        """Check a stream against limits. You can do so as often as you like.

        The probability that a stream inside its limits ever raises an alert is at most ``alpha``.

        Parameters
        ----------
        name
            Name of the stream.
        policy
            Limits: a Policy, a mapping as in ``equipoise.toml``, or the path of such a file. By
            default, |UB| may be at most 0.1.
        timezone
            Time zone in which times are shown.
        **options
            Limits and false alarm probability; see Other Parameters.

        Returns
        -------
        StreamCheck
            Alerts with their evidence and estimated start, recent changes, and groups that have
            vanished or are too small to judge.
        """
        store, tested = self._tested(name, policy, dict(options))
        return check_series(tested, store=store.name, zone=zone_named(timezone))

    @takes(WatchOptions)
    @alone
    def history(
        self,
        name: str,
        *,
        policy: Policy | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        group: Group | str | None = None,
        timezone: str | datetime.tzinfo = "UTC",
        **options: Unpack[WatchKeywords],
    ) -> History:
        """Compute the history of a stream: UB, evidence, group sizes and label rates over time.

        Parameters
        ----------
        name
            Name of the stream.
        policy
            Limits, as in :meth:`check`.
        group
            Group to draw, such as ``"sex=Female"``. The pattern may contain a label, too. A label alone
            draws its groups with alerts and the most evidence. By default, the groups with alerts and
            the most evidence for any label are drawn.
        timezone
            Time zone in which times are shown.
        **options
            Limits and false alarm probability; see Other Parameters.
        """
        zone = zone_named(timezone)
        store, tested = self._tested(name, policy, dict(options))
        return make_history(tested, store=store.name, zone=zone, asked=group)

    @takes(WatchOptions)
    @alone
    def metrics(
        self,
        name: str | None = None,
        *,
        policy: Policy | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        failed: Callable[[str, EquipoiseError], object] | None = None,
        **options: Unpack[WatchKeywords],
    ) -> str:
        """Write the state of one stream, or of all streams, as OpenMetrics text for Prometheus.

        If ``name`` is None, a stream that cannot be checked, such as one without the attribute of a
        rule, has only the metric ``equipoise_check_failed``. With ``name``, the error is raised.

        Parameters
        ----------
        name
            Name of the stream. By default all streams of the store.
        policy
            Limits, as in :meth:`check`.
        failed
            Function that is called with the name of each stream that cannot be checked, and the error.
        **options
            Limits and false alarm probability; see Other Parameters.
        """
        if name is not None:
            return write_metrics([self.check(name, policy=policy, **options)])
        # Limits that are wrong in themselves are no failure of a stream.
        watched_by(policy, take(WatchOptions, dict(options))[0])
        checks, without = [], []
        for stream in self._store().streams():
            try:
                checks.append(self.check(stream.name, policy=policy, **options))
            except EquipoiseError as error:
                without.append(stream.name)
                if failed is not None:
                    failed(stream.name, error)
        return write_metrics(checks, without)

    def notify(self, check: StreamCheck, address: str, *, key: bytes) -> Delivery:
        """Post the result of a check to a webhook, with a signature.

        Parameters
        ----------
        check
            Result of :meth:`check`.
        address
            Address to which the result is posted.
        key
            Secret key for the signature, with at least 16 bytes.
        """
        return send(check.to_dict(), address, key)

    def _tested(self, name: str, policy: Any, options: dict[str, Any]) -> tuple[Store, Examination]:
        given, left = take(WatchOptions, options)
        if left:
            raise InputError(f"unknown options: {', '.join(left)}.")
        watched = watched_by(policy, given)
        store = self._store()
        with store.reading():
            series = Series.read(store, name)
            kept, known = evidence_of(store, series.stream), policies_of(store, series.stream)
        require_tags(series, watched.tags or {})
        tested = run_tests(series, watched, kept)
        key = watched.key(tested.begin)
        if key not in known and self._is_writable:
            # A full disk or a user without rights must not keep anybody from checking.
            with contextlib.suppress(EquipoiseError):
                remember_policy(self._store(write=True), series.stream, key, watched.to_dict())
        return store, tested

    # ------------------------------------------------------------------ reading

    @alone
    def counts(
        self,
        name: str,
        *,
        window: str | datetime.timedelta | None = None,
        since: Any = None,
        until: Any = None,
        tags: Mapping[str, str] | Sequence[str] | None = None,
        timezone: str | datetime.tzinfo = "UTC",
    ) -> Counts:
        """Sum the counts of all batches, or of the batches of a window. No rows are read.

        Parameters
        ----------
        name
            Name of the stream.
        window
            Length of the window that ends with the last batch, such as ``"30d"``.
            The window must not begin inside merged batches.
        since, until
            Use batches from ``since`` on and before ``until``. These times must not be inside merged
            batches.
        tags
            Use only batches with these tags.
        timezone
            Time zone of times without an offset.
        """
        zone = zone_named(timezone)
        series = Series.read(self._store(), name)
        given_tags = read_tags(tags)
        if given_tags:
            require_tags(series, given_tags)
            series = series.tagged(given_tags)
        first, end = (None if t is None else read_moment(t, zone) for t in (since, until))
        chosen = series.between(first, end, zone)
        if window is not None and len(chosen):
            if since is not None:
                raise InputError("use either `window` or `since`, not both.")
            chosen = chosen.lately(read_span(window), zone)
        if not len(chosen):
            raise InputError(f"{name} has no batch in this time range.")
        return chosen.total

    @takes(PlanOptions)
    def plan(
        self,
        name: str,
        *,
        window: str | datetime.timedelta | None = None,
        since: Any = None,
        until: Any = None,
        tags: Mapping[str, str] | Sequence[str] | None = None,
        timezone: str | datetime.tzinfo = "UTC",
        progress: Reporter = silent,
        **options: Unpack[PlanKeywords],
    ) -> Plan:
        """Plan a repair of a stream, or of a window of it, from its counts alone.

        Parameters
        ----------
        name, window, since, until, tags, timezone
            Batches to sum, as in :meth:`counts`.
        progress
            Progress callback.
        **options
            Options of :func:`plan`.
        """
        counts = self.counts(
            name, window=window, since=since, until=until, tags=tags, timezone=timezone
        )
        return make_plan(counts, progress=progress, **options)

    @alone
    def streams(self, *, timezone: str | datetime.tzinfo = "UTC") -> StreamList:
        """List the streams of the store.

        Parameters
        ----------
        timezone
            Time zone in which times are shown.
        """
        store = self._store()
        with store.reading():
            found = []
            for stream in store.streams():
                batches, rows, times = store.sizes(stream)
                first, last = times or (None, None)
                found.append(StreamSummary(stream, batches, rows, first, last))
        return StreamList(store=store.name, streams=tuple(found), zone=zone_named(timezone))

    @alone
    def batches(self, name: str, *, timezone: str | datetime.tzinfo = "UTC") -> BatchList:
        """List the batches of a stream, including versions that were corrected or withdrawn.

        Parameters
        ----------
        name
            Name of the stream.
        timezone
            Time zone in which times are shown.
        """
        store = self._store()
        with store.reading():
            found = store.batches(store.stream(name), everything=True)
        return BatchList(name=name, batches=found, zone=zone_named(timezone))
