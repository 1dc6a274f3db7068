"""Requests put to the daemon beside a screen: one at a time, the newest of each kind, on a thread of their own.

Contract: explore.asked, wire.requests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cpersona_daemon.shared import fields

from .. import exits
from ..terminal.failure import failure_line
from ..wire import launch, presence
from ..wire.client import CallFailed

if TYPE_CHECKING:
    from ..wire.client import Connection

# Whoever looks for so long asks nothing: the daemon may leave, or be replaced after an upgrade.
IDLE_SECONDS = 60.0
_LOADED = (launch, presence)  # a screen stays open for long: nothing is loaded from another version's files later


class Outcome(NamedTuple):
    """What came of a request: the daemon's answer, or in ``failure`` the one line that says why there is none.

    ``lost``: no daemon answered, and asking again may help.
    """

    response: dict[str, Any]
    failure: str = ""
    lost: bool = False
    seconds: float = 0.0


class Request(NamedTuple):
    """One thing to ask. ``then`` is called with the Outcome, unless a newer request of its ``kind`` came meanwhile."""

    kind: str
    method: str
    params: dict[str, Any]
    overrides: dict[str, str] | None
    then: Callable[[Outcome], None]
    number: int = 0


class Slots:
    """The requests that wait: of each kind the newest alone, and first of all those whose kind stands first."""

    def __init__(self, order: tuple[str, ...]) -> None:
        self._order = order
        self._waiting: dict[str, Request] = {}
        self._newest: dict[str, int] = {}

    def put(self, request: Request) -> None:
        """Have a request wait in the place of an older one of its kind, whose answer is stale from now on."""
        self.drop(request.kind)
        self._waiting[request.kind] = request._replace(number=self._newest[request.kind])

    def drop(self, kind: str) -> None:
        """Forget what waits of a kind, and what is under way of it."""
        self._waiting.pop(kind, None)
        self._newest[kind] = self._newest.get(kind, 0) + 1

    def take(self) -> Request | None:
        """Return the request that is asked next, None where nothing waits."""
        kind = next((kind for kind in self._order if kind in self._waiting), None)
        return None if kind is None else self._waiting.pop(kind)

    def fresh(self, request: Request) -> bool:
        """Tell whether nothing newer of its kind was asked since."""
        return self._newest.get(request.kind) == request.number


class Asker:
    """Asks on a thread of its own, over one connection, so that never more than one request is under way.

    ``connect()`` makes a connection anew; ``deliver(call)`` has a call made on the thread of whoever shows answers, who
    is also the one that calls everything here.
    """

    def __init__(
        self,
        connection: Connection,
        connect: Callable[[], Connection],
        deliver: Callable[[Callable[[], None]], None],
        order: tuple[str, ...],
    ) -> None:
        self._connection: Connection | None = connection
        self._pid = connection.hello.get("pid")
        self._connect, self._deliver = connect, deliver
        self._slots = Slots(order)
        self._errands: list[Request] = []
        self._changed = threading.Condition()
        self._closed = False
        self._began: float | None = None
        self.renewed: Callable[[str], None] | None = None  # is told that another daemon answers than before
        self._thread = threading.Thread(target=self._work, name="asker", daemon=True)
        self._thread.start()

    def ask(
        self,
        kind: str,
        method: str,
        params: dict[str, Any],
        then: Callable[[Outcome], None],
        overrides: dict[str, str] | None = None,
    ) -> None:
        """Ask as soon as what is under way is answered; an older request of this kind is given up."""
        with self._changed:
            self._slots.put(Request(kind, method, params, overrides, then))
            self._changed.notify()

    def give_up(self, kind: str) -> None:
        """Ask nothing of this kind any more, and hear no answer of it."""
        with self._changed:
            self._slots.drop(kind)

    def errand(self, method: str, params: dict[str, Any]) -> Future[Outcome]:
        """Ask before all else what nothing newer takes the place of; its Outcome is set on the thread that asks."""
        future: Future[Outcome] = Future()
        with self._changed:
            self._errands.append(Request("", method, params, None, future.set_result))
            self._changed.notify()
        return future

    @property
    def waits_for(self) -> float:
        """For how many seconds an answer is waited for by now, 0 where none is."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    def close(self) -> None:
        """Ask nothing more. An answer that is still to come is not waited for."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    # -- on the thread

    def _work(self) -> None:
        while (request := self._next()) is not None:
            self._began = time.monotonic()
            outcome = self._answered(request)
            self._began = None
            if request.kind:
                self._deliver(partial(self._arrived, request, outcome))
            else:
                request.then(outcome)
        self._drop()

    def _next(self) -> Request | None:
        with self._changed:
            while not self._closed:
                if self._errands:
                    return self._errands.pop(0)
                request = self._slots.take()
                if request is not None:
                    return request
                if not self._changed.wait(IDLE_SECONDS):
                    self._drop()
            return None

    def _answered(self, request: Request) -> Outcome:
        began = time.monotonic()
        try:
            if self._connection is None:
                self._connection = self._connect()
            response, code = self._connection.call(request.method, request.params, overrides=request.overrides)
        except CallFailed as error:
            self._drop()
            return Outcome(
                {}, f"{error.message}; {error.hint}", lost=error.code not in ("invalid_params", "no_database")
            )
        except OSError as error:
            self._drop()
            return Outcome({}, f"{error.filename or 'the connection'}: {error.strerror or error}", lost=True)
        failed = exits.status_of(response, code, request.method) not in (fields.EXIT_OK, fields.EXIT_CRITICAL)
        failure = failure_line("", response, code, "") if failed else ""
        self._look_who_answers()
        return Outcome(response, failure, False, time.monotonic() - began)

    def _look_who_answers(self) -> None:
        """Have it told once that another daemon answers than before."""
        pid = self._connection.hello.get("pid") if self._connection is not None else None
        if pid != self._pid:
            self._pid = pid
            if self.renewed is not None:
                self._deliver(partial(self.renewed, f"the daemon was started anew (process {pid})"))

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- on the thread of whoever shows answers

    def _arrived(self, request: Request, outcome: Outcome) -> None:
        with self._changed:
            fresh = self._slots.fresh(request)
        if fresh:
            request.then(outcome)
