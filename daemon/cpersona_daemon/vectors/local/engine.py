"""The engine of this machine: an index of each kind, in step with each commit, exact, rebuilt when in doubt.

SQLite is the authority. Whenever an index is missing, damaged, behind or of another width than the question, the engine
has no answer, and sees to it that it will have one again.

Contract: window.near, window.reach, vectors.exact.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from ...errors import CPersonaError
from ...model.changes import Change, Hidden, Purged
from ...model.clock import SystemClock
from ...model.kinds import EPISODE, MEMORY, Kind, Rid, VectorKind, by_vector_kind
from ...model.scope import Scope
from ...storage import generations, hidden
from ...storage import vectors as rows
from ...storage.database import Database
from ...storage.generations import Generation
from ..backend import EVERY_AXIS, Background, Capabilities, Hit, NoAnswer, QueryVectors, Window
from ..cosine import is_usable, spaced
from ..drainer import Drainer
from .build import Abandoned, Source, bring_in, built, opened
from .index import Index
from .names import FRESH, IndexPlaces, paths
from .part import Part, told
from .rows import DamagedRows
from .simd import SimdPass, first_pass
from .topk import best, scored
from .view import View
from .window import window as slots_in

_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 30.0
_TRIES = 3
_NOBODY = bytes(16)  # the identity of a database that has none and cannot be given one: no index fits it
T = TypeVar("T")


class LocalEngine:
    """A VectorBackend over files beside the database. ``places`` names them; ``clock`` gives monotonic time.

    ``db.on_commit`` must be ``apply`` once ``open`` was called.
    """

    capabilities = Capabilities(exact=True, window=True, filters=EVERY_AXIS, reach=True)
    outbox: Drainer | None = None

    def __init__(self, places: IndexPlaces, clock: SystemClock | None = None) -> None:
        self._parts = {kind: Part(kind, path) for kind, path in paths(places).items()}
        self._monotonic = clock.monotonic if clock is not None else time.monotonic
        # Whoever changes an index or puts one in place holds it; readers never take it on the way of a search.
        self._lock = threading.RLock()
        self._worker = ThreadPoolExecutor(1, "vector-rebuild")
        self._first_pass = first_pass()
        self._closed = False
        self._means: tuple[View | None, dict[tuple[Any, ...], Background | None]] = (None, {})

    # -- life

    def open(self, db: Database, background: bool = False) -> None:
        """Use the files that stand at the database's generation and rebuild the rest.

        Returns when every index is usable; with ``background`` at once.
        """
        with rows.reader(db.path) as conn:
            store_id = rows.identity(conn)
            for part in self._parts.values():
                if isinstance(part.kind, Kind):  # passages of hidden rows are passed over where rows are asked for
                    part.hidden = np.array(hidden.ids(conn, part.kind.table), np.int64)
        if store_id is None and not db.read_only:  # every database is made with one; this one's was damaged
            db.write_now(rows.give_identity)
            with rows.reader(db.path) as conn:
                store_id = rows.identity(conn)
        self._source = Source(db.path, store_id or _NOBODY)
        building = []
        for part in self._parts.values():
            try:
                part.index, part.origin = opened(part, self._source)
            except CPersonaError:
                raise
            except Exception as why:  # Unusable as a rule; whatever else a foreign file provokes is answered alike
                building.append(self._start_rebuild(part, told(why)))
        if not background:
            for work in building:
                work.result()

    def leave(self) -> None:
        """Nothing here uses the database by itself but to rebuild, which reads on connections of its own."""

    def close(self) -> None:
        """Stop a running rebuild and close the files so that the next start reads little."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._worker.shutdown(wait=True)
        if isinstance(self._first_pass, SimdPass):
            self._first_pass.close()
        for part in self._parts.values():
            if part.index is not None:
                try:
                    part.index.close()
                except OSError as error:
                    _LOG.warning("vector index of %s not tidied: %s", part.kind, error)
                part.index = None

    # -- writing

    def apply(self, changes: list[Change], reached: Generation) -> None:
        """Bring a committed transaction in. Runs on the writer thread; never raises.

        An index that cannot follow is dropped and rebuilt in the background: the commit itself stands.
        """
        latest: dict[str, dict[int, Change]] = {kind: {} for kind in self._parts}
        unseen: dict[str, np.ndarray] = {}
        for change in changes:
            if isinstance(change, Hidden):
                unseen[change.kind] = change.ids
                continue
            if isinstance(change, Purged):
                continue  # its rows are hidden, and then dropped one by one
            latest[change.kind].pop(change.id, None)
            latest[change.kind][change.id] = change
        with self._lock:
            if self._closed:
                return
            for part in self._parts.values():
                part.hidden = unseen.get(part.kind, part.hidden)
                self._apply_part(part, latest[part.kind], reached)

    def _apply_part(self, part: Part, latest: dict[int, Change], reached: Generation) -> None:
        if part.pending is not None:
            part.pending.append((latest, reached))
        if part.index is not None:
            try:
                part.index.hidden = part.hidden
                bring_in(part.index, latest, reached)
            except Exception as error:  # whatever it is, the row is durable and the writer thread must go on
                _LOG.warning("vector index of %s cannot follow: %s", part.kind, told(error))
                self._drop(part, told(error))
        self._retry(part)

    # -- reading

    def search(
        self, queries: QueryVectors, kind: VectorKind, scope: Scope, window: Window, floor: float, k: int
    ) -> list[list[Hit]]:
        """Return for each question the best ``k`` rows of the window with cosine >= ``floor``, best first."""
        if kind.rows == EPISODE and not scope.sees_episodes:
            return [[] for _ in queries.vectors]

        def quick(index: Index) -> list[list[Hit]]:
            view = index.view
            slots = view.comparable(
                slots_in(view, scope, window.start, window.stop, with_source=kind.rows == MEMORY), queries.model
            )
            return [
                [Hit(*hit) for hit in best(view, slots, query, floor, k, self._first_pass)] if is_usable(query) else []
                for query in queries.vectors
            ]

        found = self._by_index(kind, queries.width, quick)
        return [[] for _ in queries.vectors] if found is None else found

    def cosines(self, query: np.ndarray, rids: Iterable[Rid], model: str) -> dict[Rid, float]:
        """Return the exact cosine of each given row that has a vector comparable with ``query``."""
        query = np.ascontiguousarray(query, np.float32)
        found: dict[Rid, float] = {}
        if not is_usable(query):
            return found

        def quick(index: Index) -> list[tuple[int, float]]:
            view, slots = self._living(index, ids)
            slots = view.comparable(slots, model)
            return list(zip(view.columns.id[slots].tolist(), scored(view, slots, query).tolist(), strict=True))

        for kind, ids in by_vector_kind(rids).items():
            for row_id, score in (self._by_index(kind, len(query), quick) or ()) if ids else ():
                found[kind, row_id] = score
        return found

    def rows_of(self, rids: Iterable[Rid], width: int, model: str) -> tuple[list[Rid], np.ndarray]:
        """Return those of the rows that have a vector comparable with ``width`` and ``model``, and these vectors."""

        def quick(index: Index) -> tuple[list[int], np.ndarray]:
            view, slots = self._living(index, ids)
            slots = view.comparable(slots, model)
            return view.columns.id[slots].tolist(), view.rows(slots)

        found: list[Rid] = []
        blocks = [np.zeros((0, width), np.float32)]
        for kind, ids in by_vector_kind(rids).items():
            kept = self._by_index(kind, width, quick) if ids else None
            if kept is not None:
                found += [(kind, row_id) for row_id in kept[0]]
                blocks.append(kept[1])
        return found, np.concatenate(blocks)

    def background(self, scope: Scope, window_rows: int, width: int, model: str, size: int = 256) -> Background | None:
        """Return the mean of memories evenly spaced in the scan window, kept until vectors change."""

        def quick(index: Index) -> Background | None:
            view, key = index.view, (scope, window_rows, width, model, size)
            stamp, means = self._means
            if stamp is not view:
                stamp, means = self._means = (view, {})
            if key not in means:
                means[key] = _mean(view, scope, window_rows, model, size)
            return means[key]

        return self._by_index(MEMORY, width, quick)

    def _by_index(self, kind: VectorKind, width: int, quick: Callable[[Index], T]) -> T | None:
        """Return what ``quick`` finds by an index of this width, None where no row has it. Raises NoAnswer.

        An index that is missing or turns out to be damaged is built anew.
        """
        part = self._parts[kind]
        index = part.index
        if index is None:
            self._retry(part)
            raise NoAnswer(part.problem or "there is no index")
        if width not in index.view.widths:
            return None
        if index.width != width:
            raise NoAnswer(f"the index holds vectors of width {index.width}")
        try:
            return quick(index)
        except DamagedRows as why:
            self._distrust(part, index, str(why))
            raise NoAnswer(str(why)) from why

    def _living(self, index: Index, ids: list[int]) -> tuple[View, np.ndarray]:
        """Return a view and the living slots of ``ids`` in it."""
        found = index.living(ids)
        if found is None:  # a commit came in between; hold the next one off and look again
            with self._lock:
                found = index.living(ids)
                assert found is not None
        return found

    # -- looking at itself

    def status(self) -> dict[VectorKind, dict[str, Any]]:
        """Return for each kind its state, where the index came from, counts, sizes and progress."""
        with self._lock:
            return {kind: part.status() for kind, part in self._parts.items()}

    def differing(self, kind: VectorKind) -> list[int] | None:
        """Return the ids of rows whose vector in the index is another one than in the database.

        None where that cannot be said. Every row is read, in the files and in the database. An index that turns out to
        be damaged is built anew.
        """
        part = self._parts[kind]
        suspects: list[int] | None = None
        for _ in range(_TRIES):
            index = part.index
            if index is None:
                return None
            view = index.view
            try:
                with rows.reader(self._source.path) as conn:
                    conn.execute("BEGIN")
                    if generations.current(conn)[0][:2] != index.generation[:2]:
                        continue  # a commit is on its way
                    if suspects is None:
                        index.verify()
                    suspects = index.differing(rows.stored(conn, part.kind, suspects))
            except DamagedRows as why:
                self._distrust(part, index, str(why))
                return None
            if not suspects or index.view is view:
                return suspects
        return None

    # -- rebuilding

    def rebuild(self) -> None:
        """Build every index anew from the database and return when they are in use."""
        for work in [self._start_rebuild(part, "asked for") for part in self._parts.values()]:
            work.result()

    def wait(self) -> None:
        """Return when no rebuild is running or waiting to run."""
        self._worker.submit(lambda: None).result()

    def _retry(self, part: Part) -> None:
        """Start a rebuild where one is due: there is no good index, and the last try lies some time back."""
        if part.rebuilding or self._monotonic() - part.tried_at < _RETRY_SECONDS:
            return
        with self._lock:
            if not part.rebuilding and not self._closed:
                why = part.why_rebuild()
                if why is not None:
                    self._start_rebuild(part, why)

    def _drop(self, part: Part, why: str) -> None:
        index, part.index, part.problem = part.index, None, why
        self._means = (None, {})
        if index is not None:
            index.close(tidy=False)

    def _distrust(self, part: Part, index: Index, why: str) -> None:
        """Stop using a damaged index and have a new one built."""
        with self._lock:
            if part.index is index and not self._closed:
                _LOG.warning("vector index of %s is damaged (%s); rebuilding", part.kind, why)
                self._drop(part, why)
                if not part.rebuilding:
                    self._start_rebuild(part, why)

    def _start_rebuild(self, part: Part, why: str) -> Future[None]:
        with self._lock:
            part.problem, part.tried_at = why, self._monotonic()
            # One that runs may have read past what is asked about; one that waits will read everything committed by
            # now.
            if part.waiting is None:
                part.waiting = self._worker.submit(self._rebuild, part)
            return part.waiting

    def _rebuild(self, part: Part) -> None:
        with self._lock:
            # From here on commits are kept aside, so that the rebuild may read in many short transactions.
            part.waiting, part.pending, part.done, part.total = None, [], 0, 0
            why, width = part.problem, None if part.index is None else part.index.books.common_width()
        try:
            part.make_way(part.path + FRESH)
            fresh = built(part, self._source, width, lambda: self._closed)
        except Abandoned:
            part.pending = None
        except Exception as error:
            problem = told(error)
            if problem != why:  # the next tries say nothing new
                _LOG.warning("vector index of %s cannot be rebuilt: %s", part.kind, problem)
            with self._lock:
                part.pending, part.problem = None, problem
        else:
            self._install(part, fresh, why)

    def _install(self, part: Part, fresh: Index, why: str | None) -> None:
        """Bring the new index up to the last commit and put it in the old one's place."""
        with self._lock:
            pending, part.pending = part.pending or [], None
            try:
                if self._closed:
                    fresh.discard()
                    return
                for latest, reached in pending:
                    bring_in(fresh, latest, reached)
                fresh.hide(part.hidden)
            except Exception as error:
                fresh.discard()
                part.problem = told(error)
                _LOG.warning("vector index of %s cannot be brought up to the last commit: %s", part.kind, part.problem)
                return
            part.put_in_place(fresh)
            _LOG.info("vector index of %s was rebuilt: %s", part.kind, why)
            old, part.index, part.origin, part.because, part.tried_at = part.index, fresh, "rebuilt", why, float("-inf")
            self._means = (None, {})
            if old is not None:
                old.close(tidy=False)


def _mean(view: View, scope: Scope, window_rows: int, model: str, size: int) -> Background | None:
    slots = view.comparable(slots_in(view, scope, 0, window_rows), model)
    if not len(slots):
        return None
    # In scan order, as the plain scan has it: the same rows give the same mean.
    slots = slots[np.lexsort((view.columns.id[slots], -view.columns.created[slots]))]
    taken = slots[spaced(len(slots), size)]
    return Background(len(taken), len(slots), view.rows(taken).mean(axis=0, dtype=np.float64))
