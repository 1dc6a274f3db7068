"""Connections and transactions: one writer thread with group commit, readers on connections of their own.

Whatever waits for the writer is committed together, so that one fsync serves all; how the jobs of a commit run is in
``jobs``. A job's answer is given only after its commit is durable and the vector index has seen it: who is answered can
read what was written.

Contract: writes.durable, reads.free, files.private, wire.keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import apsw

from ..errors import CPersonaError, ReadOnly, ShuttingDown, StorageFailure
from ..model.changes import Change
from ..model.clock import Clock
from ..shared import header
from . import connection, frequencies, generations, idempotency, jobs, schema
from .generations import Generation
from .idempotency import Key
from .jobs import Outcome, Pending, WriteJob
from .readers import Readers
from .transaction import HISTORY_DAYS

if TYPE_CHECKING:
    from .outbox import Feed  # numpy comes with it

GROUP_LIMIT = 256
WAL_KEPT_BYTES = 16 * 1024 * 1024
FOLD_WAIT_SECONDS = 1.0  # how long new reads wait, once in WAL_KEPT_BYTES of writes, for the ones under way to end
IDEMPOTENCY_SECONDS = 24 * 3600
IDEMPOTENCY_ROWS = 10_000
_PRUNE_EVERY = 500

log = logging.getLogger("cpersona.database")


def _set_up(conn: apsw.Connection) -> apsw.Connection:
    conn.set_busy_timeout(connection.BUSY_TIMEOUT_MS)
    # mmap_size 0: a page of a mapped file that was cut short, or that the disk cannot read, is a signal and not an
    # error.
    conn.execute(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;"
        " PRAGMA mmap_size = 0"
    )
    return conn


class Database:
    """One SQLite file. Open it once per process; every method may be called from any thread.

    ``on_commit(changes, generation)`` runs on the writer thread after each durable commit that changed
    vectors or rows with vectors, in commit order. ``feed`` lists what such a commit changes for a service elsewhere,
    where there is one. ``history_days``: how long what rows were is kept. ``on_lost(why)`` runs there once, when
    nothing can be promised any more: the file was moved away, or a connection cannot be trusted. From then on writes
    are refused as ShuttingDown with that reason, and reads go on.
    """

    def __init__(
        self, path: str, clock: Clock, on_commit: Callable[[list[Change], Generation], None] | None = None
    ) -> None:
        self.path, self._clock = path, clock
        self.on_commit = on_commit or (lambda changes, generation: None)
        self.on_lost: Callable[[str], object] = lambda why: None
        self.feed: Feed | None = None
        self.history_days = HISTORY_DAYS
        self.lost: str | None = None
        self.read_only = False
        self.write_problem: str | None = None  # why the latest commit could not be written, None once one was
        self._queue: queue.SimpleQueue[Pending | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._closing = False
        self._counted = frequencies.Known()
        self._writes = 0
        self._in_flight = 0
        self._log_allowed = WAL_KEPT_BYTES
        self._rewrites: list[Future[bool]] = []

    # -- life

    def open(self) -> None:
        """Create or open the file (0600 from its first byte), migrate it and start the threads.

        One that cannot be written to is opened for reading alone (``read_only``): every write is then refused as
        ReadOnly.
        """
        self.read_only = os.path.exists(self.path) and not connection.writable(self.path)
        try:
            if self.read_only:
                with contextlib.closing(connection.open_reading(self.path)) as conn:
                    schema.check(conn)
            else:
                self._open_writer()
        except (apsw.Error, OSError) as error:
            raise connection.explained(error, self.path) from error
        self._readers = Readers(self._connect_reader)
        self._writer = threading.Thread(target=self._write_loop, name="writer", daemon=True)
        self._writer.start()

    def _open_writer(self) -> None:
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            connection.mend_modes(self.path)
            if not header.marked(self.path):
                # A database of another program stays as it is, its log too. What cannot be read so may stand in a log
                # of ours.
                with contextlib.suppress(apsw.Error), contextlib.closing(connection.open_unchanging(self.path)) as conn:
                    schema.known(conn)
        conn = self._writer_conn = _set_up(connection.open_writing(self.path))
        schema.known(conn)
        conn.execute("PRAGMA journal_mode = WAL")
        # A reader parked by another program lets the WAL grow; once it is gone, the file is cut back to this.
        conn.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}").fetchall()
        schema.migrate(conn, self._clock.now())
        self._ground = connection.Ground(self.path)

    def close(self) -> None:
        """Finish every accepted write, fold the WAL into the database and close all connections."""
        with self._guard:
            if self._closing:
                return
            self._closing = True
        self._queue.put(None)
        self._writer.join()
        self._readers.close()
        if self.read_only:
            return
        try:
            self._writer_conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except apsw.Error:
            pass  # another program reads; the WAL stays and is as durable as the database
        self._writer_conn.close(True)

    def look(self) -> None:
        """Find out by and by, without a write to come, that the ground was lost, or that a read-only file can be
        written to now.
        """
        if self.read_only:
            if connection.writable(self.path):
                self._lose("the database can be written to now")
        elif self._ground.lost() is not None:
            with contextlib.suppress(ShuttingDown):
                self._put(Pending(lambda tx: None, None, Future()))

    @property
    def writes_in_flight(self) -> int:
        return self._in_flight

    # -- reading

    def read_now(self, job: Callable[..., Any], *args: Any) -> Any:
        """Run ``job(conn, *args)`` on this thread inside one read snapshot and return its result."""
        return self._readers.read_now(job, *args)

    async def read(self, job: Callable[..., Any], *args: Any) -> Any:
        """Run ``job(conn, *args)`` on a reader thread inside one read snapshot; cancelling the caller gives it up."""
        return await self._readers.read(job, *args)

    def _connect_reader(self) -> apsw.Connection:
        conn = _set_up(connection.open_reading(self.path))
        frequencies.share(conn, self._counted)
        return conn

    # -- writing

    def submit(self, job: WriteJob, key: Key | None = None) -> Future[Any]:
        """Queue ``job(tx)`` for the writer; the future holds its result once that is durable.

        With an idempotency ``key`` a result is kept with it in the same transaction, and a job whose key
        is known answers the kept result without running, or fails with KeyUsed where that was another request's.
        """
        future: Future[Any] = Future()
        try:
            self._put(Pending(job, key, future))
        except CPersonaError as error:
            future.set_exception(error)
        return future

    def _put(self, pending: Pending) -> None:
        with self._guard:
            if self._closing:
                raise ShuttingDown("the daemon is stopping")
            if self.lost is not None:
                raise ShuttingDown(f"{self.lost}; the daemon is leaving")
            if self.read_only:
                raise ReadOnly(
                    "the database cannot be written to, so the daemon serves it for reading alone; nothing was written"
                )
            self._in_flight += 1
            self._queue.put(pending)

    async def write(self, job: WriteJob, key: Key | None = None) -> Any:
        """Run ``job(tx)`` in the next group commit and return its durable result."""
        # Cancelled with the caller; a job that has not begun is then left out.
        waiter: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._put(Pending(job, key, waiter))
        return await waiter

    def write_now(self, job: WriteJob, key: Key | None = None) -> Any:
        """The same for a thread that may block."""
        return self.submit(job, key).result()

    async def rewrite(self) -> bool:
        """Write the file anew with what is in it alone, empty the log, and tell whether that could be emptied: a reader
        in another program may hold it.

        Writes wait meanwhile, reads go on. Nothing that was deleted before is left in either. Raises StorageFailure.
        """
        done: Future[bool] = Future()
        self._rewrites.append(done)
        try:
            await self.write(lambda tx: None)  # the writer looks for it behind a commit
        except BaseException:
            done.cancel()
            raise
        return await asyncio.wrap_future(done)

    def _rewrite(self) -> None:
        """Do what ``rewrite`` asked for, once for all who wait."""
        asked, self._rewrites = self._rewrites, []
        wanted = [done for done in asked if done.set_running_or_notify_cancel()]
        if not wanted:
            return
        try:
            # On a connection of its own: the writer's keeps temporary things in memory, where no copy of all has room.
            with contextlib.closing(connection.open_writing(self.path)) as conn:
                conn.set_busy_timeout(connection.BUSY_TIMEOUT_MS)
                conn.execute("PRAGMA synchronous = FULL; VACUUM")
            emptied = self._folded(connection.BUSY_TIMEOUT_MS)
        except apsw.Error as error:
            for done in wanted:
                done.set_exception(connection.explained(error, self.path))
            return
        for done in wanted:
            done.set_result(emptied)

    def _write_loop(self) -> None:
        """Commit whatever waits, until ``close``; a failure that nobody foresaw gives the database up and is told to
        who waits.
        """
        leaving = False
        while not leaving:
            group, leaving = self._next_group()
            if not group:
                continue
            try:
                outcomes = self._commit(group)
            except BaseException as error:
                log.critical(
                    "a commit failed unexpectedly: %s", type(error).__name__, exc_info=log.isEnabledFor(logging.DEBUG)
                )
                self._lose(f"a commit failed unexpectedly ({type(error).__name__}: {error})")
                outcomes = [(None, ShuttingDown(f"{self.lost}; whether this was kept is not known"))] * len(group)
            self._answer(group, outcomes)
            if self._rewrites:
                self._rewrite()
            self._fold_log()

    def _next_group(self) -> tuple[list[Pending], bool]:
        """Wait for work and return all that waits and is still wanted, and whether the end was asked for."""
        group: list[Pending] = []
        waiting = self._queue.get()
        while waiting is not None:
            group.append(waiting)
            if len(group) == GROUP_LIMIT:
                break
            try:
                waiting = self._queue.get_nowait()
            except queue.Empty:
                break
        return [pending for pending in group if pending.begins() or self._forget()], waiting is None

    def _fold_log(self) -> None:
        """Fold a log that has grown into the database between two reads, so that it begins anew.

        SQLite does so by itself only in a moment without a reader, and reads that overlap leave none. One that does not
        end soon, here or in another program, is not waited for; the next try is due when the log has grown as much
        again.
        """
        try:
            size = os.stat(self.path + connection.WAL).st_size
        except OSError:
            return  # removed a moment ago: the next commit sees it
        if size > self._log_allowed:
            self._log_allowed = WAL_KEPT_BYTES if self._folded(0) else size + WAL_KEPT_BYTES

    def _folded(self, patience_ms: int) -> bool:
        """Try to move the whole log into the database while no read begins; tell whether that was done."""
        conn = self._writer_conn
        with self._readers.shut_out(FOLD_WAIT_SECONDS):
            try:
                conn.set_busy_timeout(patience_ms)
                ((busy, _, _),) = conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except apsw.Error:
                # the commit stands in the log, which is as durable; a full disk shows again with the next write
                return False
            finally:
                conn.set_busy_timeout(connection.BUSY_TIMEOUT_MS)
        return not busy

    def _forget(self) -> bool:
        with self._guard:
            self._in_flight -= 1
        return False

    def _commit(self, group: list[Pending]) -> list[Outcome]:
        """Run a group in one transaction; return each job's result or error, once that is durable and has its place."""
        if self.lost is not None:
            return [(None, ShuttingDown(f"{self.lost}; the daemon is leaving"))] * len(group)
        conn = self._writer_conn
        try:
            outcomes, changes = jobs.run(conn, group, self._clock.now, self.history_days)
            reached = self._advance(conn, changes) if changes else None
            self._prune(conn, len(group))
            if self._ground.lost() == "":
                # Seen before the commit, it keeps the group out of a file that has gone elsewhere; seen after, it is
                # only said.
                conn.execute("ROLLBACK")
                return self._on_firm_ground([(None, None)] * len(group))
            conn.execute("COMMIT")
        except Exception as error:  # nothing of this group was written; every caller is told
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            ours = connection.explained(error, self.path)
            if isinstance(ours, (StorageFailure, ReadOnly)):
                self.write_problem = str(ours)
            return [(None, ours)] * len(group)
        # A job whose first statement found no room is not half done, and what little the others wrote was committed.
        self.write_problem = next(
            (str(error) for _, error in outcomes if isinstance(error, (StorageFailure, ReadOnly))), None
        )
        if reached is not None:
            self._tell(changes, reached)
        return self._on_firm_ground(outcomes)

    def _advance(self, conn: apsw.Connection, changes: list[Change]) -> Generation:
        """Note in the running transaction what it changes, for the index and for a service elsewhere."""
        reached = generations.advance(conn, changes)
        if self.feed is not None:
            self.feed.note(conn, changes, reached, self._clock.now())
        return reached

    def _tell(self, changes: list[Change], reached: Generation) -> None:
        """Tell the index what a durable commit changed."""
        if self.feed is not None:
            self.feed.committed()
        self.on_commit(changes, reached)

    def _on_firm_ground(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Return what may be promised of a commit: nothing, where it went into a file that has lost its name."""
        missing = self._ground.lost()
        if missing is None:
            return outcomes
        if missing == "":
            self._lose("the database's file was removed or replaced")
        else:
            # Whoever opens the database next finds another log, or none: what stands in ours must be in the database
            # itself.
            kept = self._folded(connection.BUSY_TIMEOUT_MS)
            self._lose(f"the database's {missing} file was removed or replaced")
            if kept:
                return outcomes
        return [(None, ShuttingDown(f"{self.lost} while the daemon had it open; this was not kept"))] * len(outcomes)

    def _lose(self, why: str) -> None:
        with self._guard:
            if self.lost is not None:
                return
            self.lost = why
        log.error("the database is given up: %s", why)
        self.on_lost(why)

    def _answer(self, group: list[Pending], outcomes: list[Outcome]) -> None:
        """Tell every caller of a group its outcome, once."""
        with self._guard:
            self._in_flight -= len(group)
        jobs.tell(group, outcomes)

    def _prune(self, conn: apsw.Connection, jobs: int) -> None:
        self._writes += jobs
        if self._writes < _PRUNE_EVERY:
            return
        self._writes = 0
        idempotency.prune(conn, self._clock.now() - IDEMPOTENCY_SECONDS, IDEMPOTENCY_ROWS)
