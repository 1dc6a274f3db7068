"""Connections and transactions: one writer thread with group commit, readers on connections of their own.

Whatever waits for the writer is committed together, each job inside its own savepoint, so that one
refused job costs the others nothing and one fsync serves them all. A job's answer is given only after
its commit is durable and the vector index has seen it: who is answered can read what was written.

Contract: contracts.md §1 (WAL, durable against kill -9, files 0600), interface.md "The wire" (idempotency keys).
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import apsw
import msgspec

from ..errors import ShuttingDown, translate
from ..vectors.changes import Change
from . import schema

READERS = 4
GROUP_LIMIT = 256
BUSY_TIMEOUT_MS = 10_000
WAL_KEPT_BYTES = 16 * 1024 * 1024
IDEMPOTENCY_SECONDS = 24 * 3600
IDEMPOTENCY_ROWS = 10_000
_PRUNE_EVERY = 500

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Transaction:
    """What a write job works with: ``execute`` for SQL, ``changes`` for what the vector index must learn."""

    __slots__ = ("conn", "changes", "now")

    def __init__(self, conn: apsw.Connection, now: float):
        self.conn, self.now = conn, now
        self.changes: list[Change] = []

    def execute(self, sql: str, params: tuple = ()) -> apsw.Cursor:
        return self.conn.execute(sql, params)


WriteJob = Callable[[Transaction], Any]


class _Pending:
    __slots__ = ("job", "key", "future", "keep")

    def __init__(self, job: WriteJob, key: str | None, keep: Callable[[Any], bool] | None):
        self.job, self.key, self.keep = job, key, keep
        self.future: Future = Future()


class Database:
    """One SQLite file. Open it once per process; every method may be called from any thread.

    ``on_commit(changes, generation)`` runs on the writer thread after each durable commit that changed
    vectors or rows with vectors, in commit order.
    """

    def __init__(self, path: str, clock, on_commit: Callable[[list[Change], int], None] | None = None):
        self.path, self._clock = path, clock
        self.on_commit = on_commit or (lambda changes, generation: None)
        self._queue: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._local = threading.local()
        self._open_readers: list[apsw.Connection] = []
        self._guard = threading.Lock()
        self._closing = False
        self._writes = 0
        self._in_flight = 0

    # -- life

    def open(self) -> None:
        """Create or open the file (0600 from its first byte), migrate it and start the threads."""
        if not os.path.exists(self.path):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        try:
            self._writer_conn = self._connect(readonly=False)
            self._writer_conn.execute("PRAGMA journal_mode = WAL")
            # A reader parked by another program lets the WAL grow; once it is gone, the file is cut back to this.
            self._writer_conn.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}").fetchall()
            schema.migrate(self._writer_conn, self._clock.now())
        except apsw.Error as error:
            raise translate(error) from error
        self._readers = ThreadPoolExecutor(READERS, "reader")
        self._writer = threading.Thread(target=self._write_loop, name="writer", daemon=True)
        self._writer.start()

    def close(self) -> None:
        """Finish every accepted write, fold the WAL into the database and close all connections."""
        with self._guard:
            if self._closing:
                return
            self._closing = True
        self._queue.put(None)
        self._writer.join()
        self._readers.shutdown(wait=True)
        for conn in self._open_readers:
            conn.close()
        try:
            self._writer_conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except apsw.Error:
            pass  # another program reads; the WAL stays and is as durable as the database
        self._writer_conn.close()

    @property
    def writes_in_flight(self) -> int:
        return self._in_flight

    def _connect(self, readonly: bool) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
        conn = apsw.Connection(self.path, flags=flags)
        conn.set_busy_timeout(BUSY_TIMEOUT_MS)
        conn.execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000; PRAGMA mmap_size = 268435456")
        return conn

    # -- reading

    def read_now(self, job: Callable[..., Any], *args: Any) -> Any:
        """Run ``job(conn, *args)`` on this thread inside one read snapshot and return its result."""
        conn = self._reader()
        try:
            conn.execute("BEGIN")
            try:
                return job(conn, *args)
            finally:
                conn.execute("ROLLBACK")
        except apsw.Error as error:
            raise translate(error) from error

    async def read(self, job: Callable[..., Any], *args: Any) -> Any:
        """Run ``job(conn, *args)`` on a reader thread; cancelling the caller interrupts the statement."""
        running: list[apsw.Connection] = []
        guard = threading.Lock()

        def run() -> Any:
            conn = self._reader()
            with guard:
                running.append(conn)
            try:
                return self.read_now(job, *args)
            finally:
                with guard:
                    running.clear()

        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, run)
        except asyncio.CancelledError:
            with guard:
                for conn in running:
                    conn.interrupt()
            raise

    def _reader(self) -> apsw.Connection:
        conn = getattr(self._local, "conn", None)
        if conn is None:
            conn = self._local.conn = self._connect(readonly=True)
            with self._guard:
                self._open_readers.append(conn)
        return conn

    # -- writing

    def submit(self, job: WriteJob, key: str | None = None, keep: Callable[[Any], bool] | None = None) -> Future:
        """Queue ``job(tx)`` for the writer; the future holds its result once that is durable.

        With an idempotency ``key`` a result is kept with it in the same transaction, and a job whose key
        is known answers the kept result without running. ``keep(result)`` false keeps it out.
        """
        pending = _Pending(job, key, keep)
        with self._guard:
            if self._closing:
                pending.future.set_exception(ShuttingDown("the daemon is stopping"))
                return pending.future
            self._in_flight += 1
        self._queue.put(pending)
        return pending.future

    async def write(self, job: WriteJob, key: str | None = None) -> Any:
        """Run ``job(tx)`` in the next group commit and return its durable result."""
        return await asyncio.wrap_future(self.submit(job, key))

    def write_now(self, job: WriteJob, key: str | None = None) -> Any:
        """The same for a thread that may block."""
        return self.submit(job, key).result()

    def _write_loop(self) -> None:
        leaving = False
        while not leaving:
            first = self._queue.get()
            if first is None:
                return
            group = [first]
            while len(group) < GROUP_LIMIT:
                try:
                    more = self._queue.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    leaving = True
                    break
                group.append(more)
            group = [p for p in group if p.future.set_running_or_notify_cancel() or self._forget()]
            if group:
                self._commit(group)

    def _forget(self) -> bool:
        with self._guard:
            self._in_flight -= 1
        return False

    def _commit(self, group: list[_Pending]) -> None:
        conn, outcomes, changes = self._writer_conn, [], []
        try:
            conn.execute("BEGIN IMMEDIATE")
            for pending in group:
                outcomes.append(self._run(conn, pending, changes))
            generation = 0
            if changes:
                ((generation,),) = conn.execute("UPDATE meta SET value = value + 1 WHERE key = 'vector_generation' RETURNING value").fetchall()
                # A kill before the index hears of this commit leaves it one behind: this is what it then catches up with.
                conn.execute("INSERT OR REPLACE INTO meta VALUES ('vector_changes', ?)", (_encode([(change.kind, change.id) for change in changes]),))
            self._prune(conn, len(group))
            conn.execute("COMMIT")
        except BaseException as error:  # nothing of this group was written; every caller is told
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            ours = translate(error)
            outcomes = [(None, ours)] * len(group)
        else:
            if changes:
                self.on_commit(changes, generation)
        with self._guard:
            self._in_flight -= len(group)
        for pending, (result, error) in zip(group, outcomes, strict=True):
            if error is None:
                pending.future.set_result(result)
            else:
                pending.future.set_exception(error)

    def _run(self, conn: apsw.Connection, pending: _Pending, changes: list[Change]) -> tuple[Any, BaseException | None]:
        if pending.key is not None:
            row = conn.execute("SELECT answer FROM idempotency WHERE key = ?", (pending.key,)).fetchone()
            if row is not None:
                return _decode(row[0]), None
        tx = Transaction(conn, self._clock.now())
        conn.execute("SAVEPOINT job")
        try:
            result = pending.job(tx)
            if pending.key is not None and (pending.keep is None or pending.keep(result)):
                conn.execute("INSERT INTO idempotency VALUES (?, ?, ?)", (pending.key, tx.now, _encode(result)))
            conn.execute("RELEASE job")
        except Exception as error:
            if not conn.in_transaction:
                # SQLite gave up the whole transaction (disk full): the jobs before this one are gone too.
                raise
            conn.execute("ROLLBACK TO job; RELEASE job")
            return None, translate(error)
        changes.extend(tx.changes)
        return result, None

    def _prune(self, conn: apsw.Connection, jobs: int) -> None:
        self._writes += jobs
        if self._writes < _PRUNE_EVERY:
            return
        self._writes = 0
        conn.execute("DELETE FROM idempotency WHERE answered_at < ?", (self._clock.now() - IDEMPOTENCY_SECONDS,))
        conn.execute(
            "DELETE FROM idempotency WHERE key IN (SELECT key FROM idempotency ORDER BY answered_at DESC LIMIT -1 OFFSET ?)",
            (IDEMPOTENCY_ROWS,),
        )
