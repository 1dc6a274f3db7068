"""Vectors searched by Qdrant. SQLite stays the authority: an engine proposes rows, and the database has the last word.

What Qdrant finds is read from the database, in scope and with its exact cosine; rows that it has not heard of yet are
scored beside them. Rows that changed a moment ago are therefore found, and none is that is gone, whatever it holds.

Contract: qdrant.authority, qdrant.exact, vectors.ahead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import apsw
import numpy as np

from ...model.changes import Change, VectorPut
from ...model.clock import Clock
from ...model.kinds import EPISODE, MEMORY, Rid, VectorKind
from ...model.scope import Scope
from ...storage import generations, outbox, vector_counts
from ...storage import vectors as rows
from ...storage.database import Database
from ...storage.generations import Generation
from ..backend import EVERY_AXIS, Ask, Background, Capabilities, Hit, NoAnswer, NotReady, QueryVectors, Window
from ..cosine import exact, is_usable, spaced
from ..drainer import Drainer
from .client import Client, Failed, Search
from .collection import KINDS, Collections
from .filters import Bounds, Place, of_scope
from .receiver import QdrantReceiver

MOST_WAITING = 2_000  # rows that wait in the outbox and are scored beside what is found
MARGIN = 16  # rows more than asked for: the order of near ties is the database's
MOST_TIED = 65_536  # rows with one score, among which the database may still choose
ROUNDING = 1e-5  # by how much a score of float32 may be off
REBUILD_SECONDS = 24 * 3600.0
KEPT_SECONDS = 10.0  # how long what took long to find is kept while vectors change
_QUICK_SECONDS = 0.05
_MOST_KEPT = 64


class Kept:
    """What was found of a state of the vectors: kept until that changes, or for a while where it took long to find."""

    def __init__(self) -> None:
        self._found: dict[Any, tuple[int, float, float, Any]] = {}

    def get(self, key: Any, generation: int, find: Callable[[], Any]) -> Any:
        """Return what ``find`` finds of a generation, or found a moment ago of an earlier one."""
        now = time.monotonic()
        if key in self._found:
            number, at, took, value = self._found[key]
            if number == generation or (took > _QUICK_SECONDS and now - at < KEPT_SECONDS):
                return value
        value = find()
        if len(self._found) >= _MOST_KEPT:
            self._found = {}
        self._found[key] = generation, now, time.monotonic() - now, value
        return value


class Asked(NamedTuple):
    """An ask as it goes to Qdrant: to which collections, with how many rows of the agent in each, within which bounds,
    and which rows are scored beside what it finds.
    """

    ask: Ask
    collections: dict[str, int]
    bounds: Bounds
    waiting: frozenset[int]


class QdrantEngine:
    """An engine elsewhere over the collections of one database."""

    def __init__(self, client: Client, prefix: str, owner: str, clock: Clock, always_exact: bool) -> None:
        self._client, self._prefix, self._owner, self._clock = client, prefix, owner, clock
        self._exact = always_exact
        self.capabilities = Capabilities(always_exact, window=True, filters=EVERY_AXIS, reach=True, elsewhere=True)
        self.place = client.place
        self.outbox: Drainer | None = None
        self._places, self._means = Kept(), Kept()

    # -- life

    def open(self, db: Database, background: bool = False) -> None:
        """Begin to bring the database's changes there; with ``background`` return before it is level."""
        self._path, self._db = db.path, db
        with rows.reader(db.path) as conn:
            store = rows.identity(conn)
        prefix = self._prefix or f"cpersona-{(store or bytes(16)).hex()[:16]}"
        self._collections = Collections(self._client, prefix)
        receiver = QdrantReceiver(self._client, self._collections, self._owner, self._clock.now)
        receiver.open(db)
        self.outbox = Drainer(receiver, self._clock)
        self.outbox.start(db)
        if not background:
            self.outbox.wait(REBUILD_SECONDS)

    def leave(self) -> None:
        """Bring nothing more there; what is left stays listed."""
        if self.outbox is not None:
            self.outbox.stop()

    def close(self) -> None:
        self._client.close()

    def apply(self, changes: list[Change], reached: Generation) -> None:
        """Wake what brings them there: they are listed already."""
        if self.outbox is not None:
            self.outbox.wake()

    # -- asking

    def ask(self, asks: Sequence[Ask], text: str, deadline: float) -> list[list[list[Hit]]]:
        """Return of each of the asks what a plain scan would; of a graph, nearly. Raises NoAnswer."""
        try:
            with rows.reader(self._path) as conn:
                with conn:
                    prepared = [self._prepared(conn, ask) for ask in asks]
                found = [self._answered(conn, one, deadline) for one in prepared]
        except Failed as error:
            if error.missing and self.outbox is not None:
                self.outbox.doubt()
            raise NoAnswer(str(error)) from None
        if self.outbox is not None and self.outbox.problem is not None:
            self.outbox.retry()
        return found

    def _prepared(self, conn: apsw.Connection, ask: Ask) -> Asked:
        """Raise NotReady where Qdrant has not heard of too much."""
        if self.outbox is None or self._db.read_only:
            raise NoAnswer("the database is served for reading alone, so that Qdrant is told of nothing")
        if (filling := self.outbox.filling) is None:
            waiting = outbox.waiting(conn, ask.kind, MOST_WAITING + 1)
        else:
            waiting = [entry.id for entry in outbox.following(conn, ask.kind, 0, MOST_WAITING + 1)]
            if len(waiting) > MOST_WAITING or self.outbox.problem is not None:
                reached = f"Qdrant is being sent everything and has got to {filling.kind}:{filling.id}"
                raise NotReady(reached + self._why())
        if len(waiting) > MOST_WAITING or outbox.purging(conn, ask.scope.agent_id):
            raise NotReady(f"Qdrant has not heard of {outbox.length(conn)} changes" + self._why())
        model = ask.queries.model
        names = {}
        if filling is None:
            names = self._collections.comparable(conn, ask.kind, ask.scope.agent_id, ask.queries.width, model)
        bounds = self._bounds(conn, ask)
        if bounds is None or (ask.kind.rows == EPISODE and not ask.scope.sees_episodes):
            return Asked(ask, {}, Bounds(), frozenset())
        return Asked(ask, names, bounds, frozenset(waiting))

    def _why(self) -> str:
        problem = None if self.outbox is None else self.outbox.problem
        return "" if problem is None else f" ({problem})"

    def _bounds(self, conn: apsw.Connection, ask: Ask) -> Bounds | None:
        """Return where the window of an ask lies, None where nothing lies so far back."""
        start, stop = ask.window
        after = self._place(conn, ask.kind, ask.scope, start - 1) if start > 0 else None
        if start > 0 and after is None:
            return None
        return Bounds(after, self._place(conn, ask.kind, ask.scope, stop - 1))

    def _place(self, conn: apsw.Connection, kind: VectorKind, scope: Scope, position: int) -> Place | None:
        """Return what stands at a scan position, None where the scope ends before."""
        if vector_counts.with_vectors(conn, kind, scope) <= position:
            return None

        def find() -> Place | None:
            found = rows.at_position(conn, kind, scope, position)
            return None if found is None else Place(*found)

        place: Place | None = self._places.get((kind, scope, position), generations.current(conn)[0].number, find)
        return place

    def _answered(self, conn: apsw.Connection, asked: Asked, deadline: float) -> list[list[Hit]]:
        """Return the best rows for each question, asking for more as long as what was left out could be as near."""
        ask = asked.ask
        found: list[list[Hit]] = [[] for _ in ask.queries.vectors]
        left = [at for at, query in enumerate(ask.queries.vectors) if is_usable(query)]
        limit = ask.k + MARGIN
        while left and ask.k > 0 and ask.window.start < ask.window.stop:
            proposed = self._proposed(asked, [ask.queries.vectors[at] for at in left], limit, deadline)
            puts = self._stored(conn, asked, proposed)
            for at, hits in zip(left, proposed, strict=True):
                found[at] = _best(asked, ask.queries.vectors[at], hits, puts)
            undecided = [
                at for at, hits in zip(left, proposed, strict=True) if not _decided(found[at], hits, ask.k, limit)
            ]
            left, limit = (undecided, limit * 4) if limit < MOST_TIED else ([], limit)
        return found

    def _stored(
        self, conn: apsw.Connection, asked: Asked, proposed: list[list[tuple[int, float]]]
    ) -> dict[int, VectorPut]:
        """Return what the database says of all rows that are looked at, of those that are in scope."""
        ids = {row_id for hits in proposed for row_id, _ in hits} | asked.waiting
        with conn:
            found = rows.in_scope(conn, asked.ask.kind, sorted(ids), asked.ask.scope)
        return {put.id: put for put in found}

    def _proposed(
        self, asked: Asked, queries: list[np.ndarray], limit: int, deadline: float
    ) -> list[list[tuple[int, float]]]:
        """Return for each question (id, score) of what is nearest, best first, of all collections."""
        ask = asked.ask
        matching = of_scope(ask.scope, asked.bounds, with_source=ask.kind.rows == MEMORY)
        searches = [Search(query, matching, limit, ask.floor - ROUNDING, self._exact) for query in queries]
        found: list[list[tuple[int, float]]] = [[] for _ in queries]
        for name, count in asked.collections.items():
            try:
                answer = self._client.search(name, searches, deadline)
            except Failed as error:
                if error.missing and count <= len(asked.waiting):
                    continue  # nothing of it was brought there yet
                raise
            for hits, more in zip(found, answer, strict=True):
                hits += more
        for hits in found:
            hits.sort(key=lambda hit: -hit[1])
        return [hits[:limit] for hits in found]

    # -- what the database answers at once

    def search(
        self, queries: QueryVectors, kind: VectorKind, scope: Scope, window: Window, floor: float, k: int
    ) -> NoReturn:
        raise NoAnswer("Qdrant is asked before a snapshot")

    def cosines(self, query: np.ndarray, rids: Iterable[Rid], model: str) -> NoReturn:
        raise NoAnswer("the database has the exact vectors")

    def rows_of(self, rids: Iterable[Rid], width: int, model: str) -> NoReturn:
        raise NoAnswer("the database has the exact vectors")

    def background(self, scope: Scope, window_rows: int, width: int, model: str, size: int = 256) -> Background | None:
        """Return the mean of memories evenly spaced in the scan window; one that took long is kept for a while."""
        with rows.reader(self._path) as conn, conn:
            mean: Background | None = self._means.get(
                (scope, window_rows, width, model, size),
                generations.current(conn)[0].number,
                lambda: _mean(conn, scope, window_rows, width, model, size),
            )
        return mean

    # -- looking at itself

    def status(self) -> dict[VectorKind, dict[str, Any]]:
        """Return for each kind whether Qdrant is asked for it, and why not."""
        told: dict[str, Any] = {"state": "ready", "engine": "qdrant"}
        if self.outbox is None:
            told |= {"state": "scanning", "reason": "not opened"}
        elif self.outbox.filling is not None:
            told |= {"state": "rebuilding"}
        if self.outbox is not None and self.outbox.problem is not None:
            told |= {"state": "scanning", "reason": self.outbox.problem}
        return {kind: dict(told) for kind in KINDS}

    def differing(self, kind: VectorKind) -> list[int] | None:
        """Nothing of what is found comes from there but which rows to look at."""
        return None

    def rebuild(self) -> None:
        """Send everything anew; returns when that is there, or cannot be brought there now."""
        if self.outbox is not None and not self._db.read_only:
            self.outbox.send_everything()
            self.outbox.wait(REBUILD_SECONDS)

    def wait(self) -> None:
        """Return when nothing is being sent any more, or cannot be."""
        if self.outbox is not None and not self._db.read_only:
            self.outbox.wait(REBUILD_SECONDS)


def _best(
    asked: Asked, query: np.ndarray, proposed: list[tuple[int, float]], stored: dict[int, VectorPut]
) -> list[Hit]:
    """Return the best of the rows that are looked at by their vectors in the database; ties go by scan position."""
    ask = asked.ask
    wanted = {row_id for row_id, _ in proposed} | asked.waiting
    fit = [put for row_id, put in stored.items() if row_id in wanted and _fits(asked, put, query)]
    if not fit:
        return []
    scores = exact(np.array([put.vector for put in fit], np.float32), query).tolist()
    ranked = [(score, put.created_at, -put.id) for score, put in zip(scores, fit, strict=True) if score >= ask.floor]
    ranked.sort(reverse=True)
    return [Hit(-minus, score) for score, _, minus in ranked[: ask.k]]


def _fits(asked: Asked, put: VectorPut, query: np.ndarray) -> bool:
    """Tell whether a row can be compared with a question, and lies in the window."""
    model = asked.ask.queries.model
    if put.vector.size != query.size or (model and put.model and put.model != model):
        return False
    return is_usable(put.vector) and asked.bounds.hold(Place(put.created_at, put.id))


def _decided(best: list[Hit], proposed: list[tuple[int, float]], k: int, limit: int) -> bool:
    """Tell whether no row that was not proposed could be among the best: there is none, or all are further away."""
    return len(proposed) < limit or (len(best) >= k and best[-1].score > proposed[-1][1] + 2 * ROUNDING)


def _mean(
    conn: apsw.Connection, scope: Scope, window_rows: int, width: int, model: str, size: int
) -> Background | None:
    ids = rows.newest_of(conn, MEMORY, scope, width, model, window_rows)
    if not ids:
        return None
    chosen = [ids[at] for at in spaced(len(ids), size)]
    puts = [put for put in rows.with_vectors(conn, MEMORY, np.array(chosen)) if is_usable(put.vector)]
    block = np.array([put.vector for put in puts], np.float32)
    return Background(len(block), len(ids), block.mean(axis=0, dtype=np.float64)) if puts else None
