"""The local engine with a service elsewhere that ranks in its place.

The service says which rows are near and how near. Everything else that a recall asks of vectors (cosines of given rows,
the background of a store, passages), and all of it while the service does not answer, comes from the index of this
machine.

Contract: remote.search, remote.waiting, vectors.ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import apsw

from ...errors import VectorServiceFailure
from ...model.changes import Change
from ...model.clock import SystemClock
from ...model.kinds import Kind, PassageKind, Rid, by_kind
from ...model.scope import Scope
from ...storage import outbox, served
from ...storage import vectors as rows
from ...storage.database import Database
from ...storage.generations import Generation
from .. import plain
from ..backend import EVERY_AXIS, Ask, Capabilities, Hit, Hits, NoAnswer, NotReady
from ..drainer import Drainer
from ..local.engine import LocalEngine
from ..local.names import IndexPlaces
from .receiver import Telling
from .service import Service
from .shapes import MOST_HITS

MOST_WAITING = 500  # rows that the service has yet to hear of and that are compared here beside what it says
SETTLE_SECONDS = 0.2  # what was stored a moment ago is mostly on its way
FILL_WAIT_SECONDS = 60.0
_SOONER_SECONDS = 0.1  # before the deadline of who asks, so that it hears why


class _Said(NamedTuple):
    """The rows in scope that are near, best first; ``more``: the service was cut off and may know others."""

    ranked: list[tuple[Rid, float]]
    more: bool

    def hits(self, ask: Ask) -> list[list[Hit]]:
        """Return the rows of one kind. The question stands first; the service knows no other vector of it."""
        near = [Hit(row_id, score) for (kind, row_id), score in self.ranked if kind == ask.kind and score >= ask.floor]
        return [Hits(near[: ask.k], self.more), *([] for _ in ask.queries.vectors[1:])]


class RemoteEngine(LocalEngine):
    """An Elsewhere over the service that the settings name. Raises SettingsConflict for an address that is none."""

    # The service ranks under its own window; what is not in scope is left out here, of what it named.
    capabilities = Capabilities(exact=False, window=False, filters=EVERY_AXIS, reach=False, elsewhere=True)

    def __init__(self, places: IndexPlaces, clock: SystemClock, service: Service) -> None:
        super().__init__(places, clock)
        self._service = service
        self.place = service.place
        self.outbox: Drainer = Drainer(Telling(service, lambda: self._db), clock)

    def open(self, db: Database, background: bool = False) -> None:
        super().open(db, background)
        self._db = db
        self.outbox.start(db)

    def leave(self) -> None:
        self.outbox.stop()
        self._service.close()

    def apply(self, changes: list[Change], reached: Generation) -> None:
        super().apply(changes, reached)
        self.outbox.wake()

    def rebuild(self) -> None:
        super().rebuild()
        self.outbox.send_everything()
        self.outbox.wait(FILL_WAIT_SECONDS)

    def ask(self, asks: Sequence[Ask], text: str, deadline: float) -> list[list[list[Hit]]]:
        """Return what the service finds near to the question, and the passages that are near here.

        Behind the window there is nothing: the service ranks under its own.
        """
        near: dict[Scope, list[Ask]] = {}
        for ask in filter(_is_near, asks):
            near.setdefault(ask.scope, []).append(ask)
        said = {scope: self._said(scope, of_one, text, deadline) for scope, of_one in near.items()}
        return [said[ask.scope].hits(ask) if _is_near(ask) else self._besides(ask) for ask in asks]

    def _besides(self, ask: Ask) -> list[list[Hit]]:
        if isinstance(ask.kind, PassageKind):
            try:
                return self.search(*ask)
            except NoAnswer:
                pass  # being built
        return [[] for _ in ask.queries.vectors]

    def _said(self, scope: Scope, asks: list[Ask], text: str, deadline: float) -> _Said:
        waiting = self._unheard()
        limit, floor = min(max(ask.k for ask in asks), MOST_HITS), min(ask.floor for ask in asks)
        try:
            named = self._service.search(scope.agent_id, text, limit, floor, deadline - _SOONER_SECONDS)
            seen = self._db.read_now(_seen, waiting.union(row.rid for row in named), scope)
            if len(named) >= limit and limit < MOST_HITS and any(row.rid not in seen for row in named):
                # The service knows agents alone: rows of a narrow scope may stand behind others of the agent.
                limit = MOST_HITS
                named = self._service.search(scope.agent_id, text, limit, floor, deadline - _SOONER_SECONDS)
                seen = self._db.read_now(_seen, waiting.union(row.rid for row in named), scope)
        except VectorServiceFailure as error:
            raise NoAnswer(str(error)) from None
        if self.outbox.problem is not None:
            self.outbox.retry()
        # What the service says of a row that it has yet to hear of is about what the row was.
        scores = {row.rid: row.score for row in named if row.rid in seen - waiting}
        scores |= self._compared(seen & waiting, asks[0])
        return _Said(sorted(scores.items(), key=lambda pair: -pair[1]), len(named) >= limit)

    def _unheard(self) -> set[Rid]:
        """Return the rows that the service has yet to hear of, once what is on its way is there. Raises NotReady."""
        if self.outbox.filling is not None:
            raise NotReady("the vector service is still being sent every row")
        waiting: set[Rid] = self._db.read_now(self._waiting)
        if waiting and self.outbox.problem is None and self.outbox.wait(SETTLE_SECONDS):
            waiting = self._db.read_now(self._waiting)
        return waiting

    def _waiting(self, conn: apsw.Connection) -> set[Rid]:
        """Return the rows that the service has yet to hear of. Raises NotReady for too many."""
        rids: set[Rid] = {(kind, row_id) for kind in Kind for row_id in outbox.waiting(conn, kind, MOST_WAITING + 1)}
        if len(rids) > MOST_WAITING:
            problem = f" ({self.outbox.problem})" if self.outbox.problem else ""
            raise NotReady(f"the vector service has yet to hear of more than {MOST_WAITING} rows{problem}")
        return rids

    def _compared(self, rids: set[Rid], ask: Ask) -> dict[Rid, float]:
        if not rids:
            return {}
        vector, model = ask.queries.vectors[0], ask.queries.model
        try:
            return self.cosines(vector, rids, model)
        except NoAnswer:
            with rows.reader(self._db.path) as conn:
                return plain.cosines(conn, vector, sorted(rids), model)


def _seen(conn: apsw.Connection, rids: Iterable[Rid], scope: Scope) -> set[Rid]:
    """Return those of the rows that a scope sees."""
    by = by_kind(rids)
    return {(kind, row_id) for kind in scope.kinds for row_id in served.in_scope(conn, kind, by[kind], scope)}


def _is_near(ask: Ask) -> bool:
    return isinstance(ask.kind, Kind) and not ask.window.start
