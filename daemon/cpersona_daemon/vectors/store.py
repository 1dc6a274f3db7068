"""The vector index of one database: kept in step with each commit, searched exactly, rebuilt when in doubt.

SQLite is the authority. Whenever an index is missing, damaged, behind or of another width than the query,
the answer comes from a plain scan of the database: slower, never different.

Order at shutdown: first ``Database.close`` (its last commits still arrive here), then ``VectorStore.close``.

Contract: contracts.md §3 (vector_near, vector_far), §12 (models); design.md "How the data goes".
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import apsw
import numpy as np

from ..errors import CPersonaError
from ..model.changes import Change, Hidden, VectorPut
from ..model.kinds import EPISODE, MEMORY, Rid
from ..model.scope import Scope
from ..shared.files import make_way
from ..storage import generations, hidden
from ..storage import vectors as rows
from ..storage.generations import NOTHING, Generation
from .local.files import FRESH, ROWS, SUFFIXES, Unusable
from .local.index import NOTHING_HIDDEN, Index
from .local.rows import DamagedRows, as_slice
from .local.simd import SimdPass, first_pass
from .local.topk import best, scored
from .local.window import window
from .plain import plain_background, plain_cosines, plain_rows, plain_search, spaced

_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 30.0
_SAMPLE = 4
_TRIES = 3
_NOBODY = bytes(16)  # the identity of a database that has none and cannot be given one: no index fits it
T = TypeVar("T")


class Hit(NamedTuple):
    """A row and its cosine."""

    id: int
    score: float


class Abandoned(Exception):
    """The store closes while an index is being rebuilt."""


@dataclass(slots=True, eq=False)
class _Part:
    """One kind: its index, None while none can be used, what a running rebuild still has to learn, and the rebuild that waits to run."""

    kind: str
    path: str
    index: Index | None = None
    origin: str = "none"
    problem: str | None = None  # why there is no index, or what is wrong with the one there is
    because: str | None = None  # why the last rebuild was made
    aside: list[str] = field(default_factory=list)
    pending: list[tuple[dict[int, Change], Generation]] | None = None
    waiting: Future | None = None
    done: int = 0
    total: int = 0
    tried_at: float = field(default=float("-inf"))
    hidden: np.ndarray = field(default_factory=lambda: NOTHING_HIDDEN)

    @property
    def rebuilding(self) -> bool:
        return self.pending is not None or self.waiting is not None


class VectorStore:
    """Exact cosine search over memories and episodes. ``open`` first; then any thread may search.

    ``places`` names the files (``memory_vectors``, ``episode_vectors``); ``clock`` gives monotonic time.
    """

    def __init__(self, places, clock=None):
        self._parts = {MEMORY: _Part(MEMORY, places.memory_vectors), EPISODE: _Part(EPISODE, places.episode_vectors)}
        self._monotonic = clock.monotonic if clock is not None else time.monotonic
        self._lock = (
            threading.RLock()
        )  # whoever changes an index or puts one in place; readers never take it on the way of a search
        self._worker = ThreadPoolExecutor(1, "vector-rebuild")
        self._first_pass = first_pass()
        self._closed = False
        self._means: tuple = (None, {})  # the view they were taken from, and the mean vectors asked for since

    # -- life

    def open(self, db, background: bool = False) -> None:
        """Use the files that stand at the database's generation and rebuild the rest.

        Returns when every index is usable; with ``background`` at once, and searches scan the database
        meanwhile. ``db`` must be open and must call ``apply`` after each commit (``Database.on_commit``).
        """
        self._db_path = db.path
        with rows.reader(db.path) as conn:
            self._store_id = rows.identity(conn)
            for part in self._parts.values():
                part.hidden = np.array(hidden.ids(conn, rows.table_of(part.kind)), np.int64)
        if self._store_id is None and db.read_only:
            self._store_id = _NOBODY
        if self._store_id is None:  # every database is made with one; this one's was damaged
            db.write_now(rows.give_identity)
            with rows.reader(db.path) as conn:
                self._store_id = rows.identity(conn)
        building = []
        for part in self._parts.values():
            try:
                self._load(part)
            except CPersonaError:
                raise
            except Exception as why:  # Unusable as a rule; whatever else a foreign file provokes is answered alike
                building.append(self._start_rebuild(part, _told(why)))
        if not background:
            for work in building:
                work.result()

    def rebuild(self, db) -> None:
        """Build both indexes anew from the database and return when they are in use."""
        for work in [self._start_rebuild(part, "asked for") for part in self._parts.values()]:
            work.result()

    def wait(self) -> None:
        """Return when no rebuild is running or waiting to run."""
        self._worker.submit(lambda: None).result()

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
        latest: dict[str, dict[int, Change]] = {MEMORY: {}, EPISODE: {}}
        unseen: dict[str, np.ndarray] = {}
        for change in changes:
            if isinstance(change, Hidden):
                unseen[change.kind] = change.ids
                continue
            latest[change.kind].pop(change.id, None)
            latest[change.kind][change.id] = change
        with self._lock:
            if self._closed:
                return
            for part in self._parts.values():
                part.hidden = unseen.get(part.kind, part.hidden)
                self._apply_part(part, latest[part.kind], reached)

    def _apply_part(self, part: _Part, latest: dict[int, Change], reached: Generation) -> None:
        if part.pending is not None:
            part.pending.append((latest, reached))
        if part.index is not None:
            try:
                part.index.hidden = part.hidden
                _bring_in(part.index, latest, reached)
            except Exception as error:  # whatever it is, the row is durable and the writer thread must go on
                _LOG.warning("vector index of %s cannot follow: %s", part.kind, _told(error))
                self._drop(part, _told(error))
        self._retry(part)

    def _retry(self, part: _Part) -> None:
        """Start a rebuild where one is due: there is no good index, and the last try lies some time back."""
        if part.rebuilding or self._monotonic() - part.tried_at < _RETRY_SECONDS:
            return
        with self._lock:
            if not part.rebuilding and not self._closed:
                why = part.problem if part.index is None else part.index.wants_rebuild()
                if why is not None:
                    self._start_rebuild(part, why)

    # -- reading

    def search(
        self, query: np.ndarray, kind: str, scope: Scope, start: int, stop: int, floor: float, k: int, model: str
    ) -> list[Hit]:
        """Return the best ``k`` rows with cosine >= ``floor`` among the scan positions [start, stop), best first.

        The scan takes the rows in scope that have a vector, created_at DESC, id ASC. Rows of another width
        or another known model than ``model`` ('' = unknown) keep their position and are never returned.
        Ties go by scan position. ``query`` has unit length; one that is not finite or zero finds nothing.
        """
        query = np.ascontiguousarray(query, np.float32)
        if not np.isfinite(query).all() or not query.any() or (kind == EPISODE and not scope.sees_episodes):
            return []
        index = self._parts[kind].index
        if index is not None and len(query) not in index.view.widths:
            return []

        def quick(index: Index) -> list[tuple[int, float]]:
            view = index.view
            slots = window(view, scope, start, stop, with_source=kind == MEMORY)
            return best(view, _comparable(view, slots, model), query, floor, k, self._first_pass)

        def plain(conn: apsw.Connection) -> list[tuple[int, float]]:
            return plain_search(conn, query, kind, scope, start, stop, floor, k, model)

        return [Hit(*hit) for hit in self._answer(kind, len(query), quick, plain)]

    def _answer(self, kind: str, width: int, quick: Callable[[Index], T], plain: Callable[[apsw.Connection], T]) -> T:
        """Return what ``quick`` finds by an index of this width; where there is none, or it is damaged, what ``plain`` finds."""
        part = self._parts[kind]
        index = part.index
        if index is None:
            self._retry(part)
        elif index.width == width:
            try:
                return quick(index)
            except DamagedRows as why:
                self._distrust(part, index, str(why))
        with rows.reader(self._db_path) as conn:
            return plain(conn)

    def cosines(self, query: np.ndarray, rids: Iterable[Rid], model: str) -> dict[Rid, float]:
        """Return the exact cosine of each given row that has a vector comparable with ``query``."""
        query = np.ascontiguousarray(query, np.float32)
        found: dict[Rid, float] = {}
        wanted = {MEMORY: [], EPISODE: []}
        for kind, row_id in rids:
            wanted[kind].append(row_id)
        if not np.isfinite(query).all() or not query.any():
            return found
        for kind, ids in wanted.items():
            if ids:
                found.update(((kind, row_id), score) for row_id, score in self._cosines_of(kind, ids, query, model))
        return found

    def _cosines_of(self, kind: str, ids: list[int], query: np.ndarray, model: str) -> list[tuple[int, float]]:
        def quick(index: Index) -> list[tuple[int, float]]:
            view, slots = self._living(index, ids)
            slots = _comparable(view, slots, model)
            return list(zip(view.columns.id[slots].tolist(), scored(view, slots, query).tolist(), strict=True))

        return self._answer(kind, len(query), quick, lambda conn: plain_cosines(conn, query, kind, ids, model))

    def _living(self, index: Index, ids: list[int]):
        view, slots = _slots_of(index, ids)
        if view is None:  # a commit came in between; hold the next one off and look again
            with self._lock:
                view, slots = _slots_of(index, ids)
        return view, slots

    def rows_of(self, rids: Iterable[Rid], width: int, model: str) -> tuple[list[Rid], np.ndarray]:
        """Return those of the rows that have a vector comparable with ``width`` and ``model``, and these vectors: float32, a row each."""
        wanted = {MEMORY: [], EPISODE: []}
        for kind, row_id in rids:
            wanted[kind].append(row_id)
        found: list[Rid] = []
        blocks = [np.zeros((0, width), np.float32)]
        for kind, ids in wanted.items():
            if ids:
                kept, block = self._rows_of(kind, ids, width, model)
                found += [(kind, row_id) for row_id in kept]
                blocks.append(block)
        return found, np.concatenate(blocks)

    def _rows_of(self, kind: str, ids: list[int], width: int, model: str) -> tuple[list[int], np.ndarray]:
        def quick(index: Index) -> tuple[list[int], np.ndarray]:
            view, slots = self._living(index, ids)
            slots = _comparable(view, slots, model)
            return view.columns.id[slots].tolist(), view.rows(slots)

        return self._answer(kind, width, quick, lambda conn: plain_rows(conn, kind, ids, width, model))

    def background(
        self, scope: Scope, window_rows: int, width: int, model: str, size: int = 256
    ) -> tuple[int, int, np.ndarray] | None:
        """Return (rows averaged, rows there are, mean vector) over memories evenly spaced in the scan window of a scope.

        At most ``size`` are averaged, in float64; None where no memory can be compared. The same rows give the same mean,
        and it is kept until the next commit that changes vectors.
        """

        def quick(index: Index) -> tuple[int, int, np.ndarray] | None:
            view, key = index.view, (scope, window_rows, width, model, size)
            stamp, means = self._means
            if stamp is not view:
                stamp, means = self._means = (view, {})
            if key not in means:
                slots = _comparable(view, window(view, scope, 0, window_rows), model)
                slots = slots[
                    np.lexsort((view.columns.id[slots], -view.columns.created[slots]))
                ]  # scan order, as the plain scan has it
                taken = slots[spaced(len(slots), size)]
                mean = view.rows(taken).mean(axis=0, dtype=np.float64) if len(taken) else None
                means[key] = None if mean is None else (len(taken), len(slots), mean)
            return means[key]

        def plain(conn: apsw.Connection) -> tuple[int, int, np.ndarray] | None:
            return plain_background(conn, scope, window_rows, width, model, size)

        return self._answer(MEMORY, width, quick, plain)

    def count(self, kind: str) -> int:
        """Return how many rows of a kind have a vector, of whatever width."""
        index = self._parts[kind].index
        if index is not None:
            return index.live
        with rows.reader(self._db_path) as conn:
            return rows.count(conn, kind)

    def status(self) -> dict:
        """Return per kind: state (ready, rebuilding, scanning), where the index came from, counts, sizes, progress."""
        with self._lock:
            return {part.kind: self._status_of(part) for part in self._parts.values()}

    def _status_of(self, part: _Part) -> dict:
        state = "ready" if part.index is not None else "scanning"
        shown = {"state": "rebuilding" if part.rebuilding else state, "origin": part.origin}
        if part.index is not None:
            shown.update(part.index.status())
        if part.pending is not None:
            shown["rebuilt"], shown["rebuild_total"] = part.done, part.total
        if part.problem is not None:
            shown["reason"] = part.problem
        if part.because is not None:
            shown["rebuilt_because"] = part.because
        if part.aside:
            shown["moved_aside"] = list(part.aside)
        return shown

    def differing(self, kind: str) -> list[int] | None:
        """Return the ids of rows whose vector in the index is another one than in the database.

        None where that cannot be said. Every row is read, in the files and in the database. An index that turns out to be damaged is built anew.
        """
        part, suspects = self._parts[kind], None
        for _ in range(_TRIES):
            index = part.index
            if index is None:
                return None
            view = index.view
            try:
                with rows.reader(self._db_path) as conn:
                    conn.execute("BEGIN")
                    if generations.current(conn)[0][:2] != index.generation[:2]:
                        continue  # a commit is on its way
                    if suspects is None:
                        index.verify()
                    suspects = index.differing(rows.stored(conn, kind, suspects))
            except DamagedRows as why:
                self._distrust(part, index, str(why))
                return None
            if not suspects or index.view is view:
                return suspects
        return None

    # -- loading and rebuilding

    def _load(self, part: _Part) -> None:
        with rows.reader(self._db_path) as conn:
            conn.execute("BEGIN")
            generation, changed = generations.current(conn)
            sample = rows.latest(conn, part.kind, _SAMPLE)
            touched = list(dict.fromkeys(row_id for kind, row_id in changed if kind == part.kind))
            puts = rows.with_vectors(conn, part.kind, np.array(touched, np.int64))
        if not sample:
            index = Index(part.kind, part.path, self._store_id, generation)
            self._put_in_place(part, index)  # removes files that speak of rows no longer there
            part.index, part.origin = index, "empty"
            return
        index = Index.load(part.kind, part.path, self._store_id, generation)
        try:
            if index.generation.number < generation.number:  # killed between its last commit and the index
                index.apply(puts, touched, generation)
            if index.differing(sample):
                raise Unusable("vectors differ from the database's")
        except BaseException:
            index.close(tidy=False)
            raise
        index.hide(part.hidden)
        part.index, part.origin = index, "file"

    def _drop(self, part: _Part, why: str) -> None:
        index, part.index, part.problem = part.index, None, why
        self._means = (None, {})
        if index is not None:
            index.close(tidy=False)

    def _distrust(self, part: _Part, index: Index, why: str) -> None:
        """Stop using a damaged index and have a new one built."""
        with self._lock:
            if part.index is index and not self._closed:
                _LOG.warning("vector index of %s is damaged (%s); rebuilding", part.kind, why)
                self._drop(part, why)
                if not part.rebuilding:
                    self._start_rebuild(part, why)

    def _start_rebuild(self, part: _Part, why: str) -> Future:
        with self._lock:
            part.problem, part.tried_at = why, self._monotonic()
            # One that runs may have read past what is asked about; one that waits will read everything committed by now.
            if part.waiting is None:
                part.waiting = self._worker.submit(self._rebuild, part)
            return part.waiting

    def _rebuild(self, part: _Part) -> None:
        with self._lock:
            # From here on commits are kept aside, so that the rebuild may read in many short transactions.
            part.waiting, part.pending, part.done, part.total = None, [], 0, 0
            why = part.problem
        try:
            self._make_way(part, part.path + FRESH)
            fresh = self._built(part)
        except Abandoned:
            part.pending = None
        except Exception as error:
            problem = _told(error)
            if problem != why:  # the next tries say nothing new
                _LOG.warning("vector index of %s cannot be rebuilt: %s", part.kind, problem)
            with self._lock:
                part.pending, part.problem = None, problem
        else:
            self._install(part, fresh, why)

    def _built(self, part: _Part) -> Index:
        """Read the database in scan order, oldest first, into new files beside the old ones."""
        with rows.reader(self._db_path) as conn:
            generation, _ = generations.current(conn)
            width = rows.width_of_newest(conn, part.kind)
            with self._lock:
                if part.index is not None and part.index.common_width() is not None:
                    width = part.index.common_width()
            fresh = Index(part.kind, part.path + FRESH, self._store_id, generation)
            try:
                if width is None:
                    return fresh
                fresh.fix_width(width)
                order = rows.scan_order(conn, part.kind)[::-1]
                part.total = len(order)
                for at in range(0, len(order), rows.CHUNK):
                    if self._closed:
                        raise Abandoned
                    found = rows.in_bulk(conn, part.kind, order[at : at + rows.CHUNK])
                    if found is not None:
                        fresh.apply(found, (), NOTHING)
                    part.done = min(at + rows.CHUNK, len(order))
                fresh.apply((), (), generation)
            except BaseException:
                fresh.discard()
                raise
        return fresh

    def _install(self, part: _Part, fresh: Index, why: str | None) -> None:
        """Bring the new index up to the last commit and put it in the old one's place."""
        with self._lock:
            pending, part.pending = part.pending, None
            try:
                if self._closed:
                    fresh.discard()
                    return
                for latest, reached in pending:
                    _bring_in(fresh, latest, reached)
                fresh.hide(part.hidden)
            except Exception as error:
                fresh.discard()
                part.problem = _told(error)
                _LOG.warning("vector index of %s cannot be brought up to the last commit: %s", part.kind, part.problem)
                return
            self._put_in_place(part, fresh)
            _LOG.info("vector index of %s was rebuilt: %s", part.kind, why)
            old, part.index, part.origin, part.because, part.tried_at = part.index, fresh, "rebuilt", why, float("-inf")
            self._means = (None, {})
            if old is not None:
                old.close(tidy=False)

    def _put_in_place(self, part: _Part, index: Index) -> None:
        """Give an index the names of its kind's files; one that cannot have them works under the names it has."""
        try:
            self._make_way(part, part.path)
            index.move_to(part.path)
            part.problem = None
        except (OSError, Unusable) as error:
            part.problem = f"the index cannot take its place and will be built again at the next start: {_told(error)}"
            _LOG.warning("vector index of %s: %s", part.kind, part.problem)

    def _make_way(self, part: _Part, path: str) -> None:
        """Move aside what is no file and stands where one of an index at ``path`` belongs. Raises Unusable."""
        for place in (*(path + suffix for suffix in SUFFIXES), path + ROWS + FRESH):
            try:
                aside = make_way(place)
            except OSError as error:
                raise Unusable(
                    f"what stands at {place} is no file and cannot be moved aside ({error.strerror});"
                    " move it away, then run `cpersona health --fix`"
                ) from error
            if aside is not None:
                part.aside.append(aside)
                _LOG.warning("%s was no file of the vector index; it is now %s", place, aside)


def _told(error: Exception) -> str:
    """Return what a person reads of a failure."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _bring_in(index: Index, latest: dict[int, Change], reached: Generation) -> None:
    stands = index.generation
    if reached.number <= stands.number:
        return
    if not reached.is_after(stands.number, stands.stamp):
        raise Unusable(f"a commit is missing between {stands.number} and {reached.number}")
    index.apply((change for change in latest.values() if isinstance(change, VectorPut)), latest, reached)


def _comparable(view, slots: np.ndarray, model: str) -> np.ndarray:
    """Return the slots among these that have the matrix's width, and a model that is the same or unknown on either side."""
    if len(view.widths) > 1:
        slots = slots[view.columns.width[as_slice(slots)] == view.width]
    known = {code for code in map(view.codes.find, (model, "")) if code is not None} if model else view.models.keys()
    if view.models.keys() <= known:
        return slots
    allowed = np.zeros(len(view.codes), bool)
    allowed[list(known)] = True
    return slots[allowed[view.columns.model[as_slice(slots)]]]


def _slots_of(index: Index, ids: list[int]):
    """Return a view and the living slots of ``ids`` in it; (None, None) when a commit came in between."""
    slots = np.array([slot for slot in map(index.slots.get, dict.fromkeys(ids)) if slot >= 0], np.int64)
    view = index.view
    if len(slots) and (slots.max() >= view.count or not (view.columns.died[slots] > view.change).all()):
        return None, None
    return view, slots
