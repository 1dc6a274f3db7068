"""Reading: one connection a thread, each job inside one snapshot, and an end to a job that nobody waits for.

Cancelling a read interrupts the statement it is at. SQLite's interrupt belongs to a connection and not to a statement,
so two rules keep it to the job it is meant for: it is only sent while that job runs, and a connection that does not
come out of its transaction afterwards is thrown away.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import apsw

from ..errors import translate

log = logging.getLogger("cpersona.readers")

READERS = 4


class Ticket:
    """The right to give up one read:

    ``give_up`` ends it while it runs, keeps it from beginning before, and does nothing afterwards.
    """

    __slots__ = ("_guard", "_conn", "given_up")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._conn: apsw.Connection | None = None
        self.given_up = False

    def give_up(self) -> None:
        with self._guard:
            self.given_up = True
            if self._conn is not None:
                self._conn.interrupt()

    @contextmanager
    def over(self, conn: apsw.Connection) -> Iterator[None]:
        """While inside, giving up interrupts ``conn``, and none of its statements begins any more."""
        with self._guard:
            self._conn = conn
        # An interrupt that comes between two statements stops neither of them.
        conn.exec_trace = lambda *statement: not self.given_up
        try:
            yield
        finally:
            with self._guard:
                self._conn = None
            conn.exec_trace = None


class Readers:
    """Read-only connections made by ``connect``, one for each thread that reads.

    Every method may be called from any thread.
    """

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._local = threading.local()
        self._open: set[apsw.Connection] = set()
        self._guard = threading.Lock()
        self._door = threading.Condition()
        self._reading = 0
        self._door_shut = False
        self._threads = ThreadPoolExecutor(READERS, "reader")

    def read_now(self, job: Callable[..., Any], *args: Any, ticket: Ticket | None = None) -> Any:
        """Run ``job(conn, *args)`` on this thread inside one read snapshot and return its result."""
        ticket = ticket or Ticket()
        with self._door:
            self._door.wait_for(lambda: not self._door_shut)
            self._reading += 1
        try:
            conn = self._connection()
            try:
                with ticket.over(conn):
                    conn.execute("BEGIN")
                    return job(conn, *args)
            finally:
                self._leave(conn)
        except apsw.Error as error:
            raise translate(error) from error
        finally:
            with self._door:
                self._reading -= 1
                if self._door_shut:
                    self._door.notify_all()

    async def read(self, job: Callable[..., Any], *args: Any) -> Any:
        """Run ``job(conn, *args)`` on a reader thread; cancelling the caller gives the job up."""
        ticket = Ticket()
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, lambda: self.read_now(job, *args, ticket=ticket)
            )
        except asyncio.CancelledError:
            ticket.give_up()
            raise

    @contextmanager
    def shut_out(self, seconds: float) -> Iterator[None]:
        """Let no read begin while inside; those under way are waited for, at most so long."""
        with self._door:
            self._door_shut = True
            self._door.wait_for(lambda: not self._reading, seconds)
        try:
            yield
        finally:
            with self._door:
                self._door_shut = False
                self._door.notify_all()

    def close(self) -> None:
        """Wait for the reads under way on the reader threads and close every connection."""
        self._threads.shutdown(wait=True)
        with self._guard:
            while self._open:
                self._open.pop().close(True)

    def _connection(self) -> apsw.Connection:
        conn = getattr(self._local, "conn", None)
        if conn is None:
            conn = self._local.conn = self._connect()
            with self._guard:
                self._open.add(conn)
        return conn

    def _leave(self, conn: apsw.Connection) -> None:
        """Bring a connection out of its transaction, or throw it away.

        A statement that a failed job left open keeps an interrupt standing and, whatever is rolled back, its snapshot:
        who read here next would be told of an old state.
        """
        try:
            conn.execute("ROLLBACK")
        except apsw.Error as error:
            log.debug("a read did not end by itself: %s", error)  # it may not even have begun
        if conn.in_transaction or conn.is_interrupted or conn.txn_state("main") != apsw.SQLITE_TXN_NONE:
            self._local.conn = None
            with self._guard:
                self._open.discard(conn)
            conn.close(True)
