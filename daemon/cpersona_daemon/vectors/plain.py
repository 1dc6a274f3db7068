"""The answers of a VectorBackend straight from the database: slow, for when no engine can give them.

Each function takes a connection of its own outside of any transaction, and what the method of ``VectorBackend`` of the
same name takes.

Contract: window.near, vectors.exact.
"""

from __future__ import annotations

import heapq
import time

import apsw
import numpy as np

from ..model.changes import VectorPut
from ..model.kinds import EPISODE, MEMORY, Rid, VectorKind, by_vector_kind
from ..model.scope import Scope
from ..storage import vectors as rows
from .backend import Background, Hit, NoAnswer, QueryVectors, Window
from .cosine import exact, is_usable, spaced


def search(
    conn: apsw.Connection,
    queries: QueryVectors,
    kind: VectorKind,
    scope: Scope,
    window: Window,
    floor: float,
    k: int,
    deadline: float | None = None,
) -> list[list[Hit]]:
    """Return the best rows for each question by reading the window's vectors.

    Memory: an id a row in scope, one chunk of vectors. Raises NoAnswer where it is not through by a ``deadline`` of
    time.monotonic.
    """
    if kind.rows == EPISODE and not scope.sees_episodes:
        return [[] for _ in queries.vectors]
    return [
        _best(conn, query, kind, scope, window, floor, k, queries.model, deadline) if is_usable(query) else []
        for query in queries.vectors
    ]


def _best(
    conn: apsw.Connection,
    query: np.ndarray,
    kind: VectorKind,
    scope: Scope,
    window: Window,
    floor: float,
    k: int,
    model: str,
    deadline: float | None,
) -> list[Hit]:
    best: list[tuple[float, int, int]] = []  # (score, -position, id): a heap whose smallest is the worst
    position = 0
    with conn:
        order = rows.scan_order(conn, kind, scope)
        for at in range(0, len(order), rows.CHUNK):
            if position >= window.stop or k <= 0:
                break
            if deadline is not None and time.monotonic() > deadline:
                raise NoAnswer("the database holds too many vectors to be read in time")
            for put, score in _scored(rows.with_vectors(conn, kind, order[at : at + rows.CHUNK]), query, model):
                if score is not None and score >= floor and window.start <= position < window.stop:
                    (heapq.heappush if len(best) < k else heapq.heappushpop)(best, (score, -position, put.id))
                position += 1
    return [Hit(row_id, score) for score, _, row_id in sorted(best, reverse=True)]


def cosines(conn: apsw.Connection, query: np.ndarray, rids: list[Rid], model: str) -> dict[Rid, float]:
    """Return the cosine of each of the rows that has a vector comparable with the query."""
    query = np.ascontiguousarray(query, np.float32)
    if not is_usable(query):
        return {}
    return {
        (kind, put.id): score
        for kind, ids in by_vector_kind(rids).items()
        for put, score in _scored(_puts(conn, kind, ids), query, model)
        if score is not None
    }


def rows_of(conn: apsw.Connection, rids: list[Rid], width: int, model: str) -> tuple[list[Rid], np.ndarray]:
    """Return those of the rows that have a vector comparable with ``width`` and ``model``, and these vectors."""
    puts = [
        put for kind, ids in by_vector_kind(rids).items() for put in _puts(conn, kind, ids) if _fits(put, width, model)
    ]
    block = np.array([put.vector for put in puts], np.float32).reshape(len(puts), width)
    return [(put.kind, put.id) for put in puts], block


def background(
    conn: apsw.Connection, scope: Scope, window_rows: int, width: int, model: str, size: int
) -> Background | None:
    """Return the mean of rows evenly spaced in the window by reading the window's vectors."""
    ids: list[int] = []
    position = 0
    with conn:
        order = rows.scan_order(conn, MEMORY, scope)
        for at in range(0, len(order), rows.CHUNK):
            if position >= window_rows:
                break
            found = rows.with_vectors(conn, MEMORY, order[at : at + rows.CHUNK])
            puts = [put for put in found if is_usable(put.vector)][: window_rows - position]
            position += len(puts)
            ids += [put.id for put in puts if _fits(put, width, model)]
        if not ids:
            return None
        _, block = rows_of(conn, [(MEMORY, ids[i]) for i in spaced(len(ids), size)], width, model)
    return Background(len(block), len(ids), block.mean(axis=0, dtype=np.float64))


def _puts(conn: apsw.Connection, kind: VectorKind, ids: list[int]) -> list[VectorPut]:
    return rows.with_vectors(conn, kind, np.array(list(dict.fromkeys(ids)), np.int64)) if ids else []


def _fits(put: VectorPut, width: int, model: str) -> bool:
    return put.vector.size == width and is_usable(put.vector) and _of_model(put, model)


def _of_model(put: VectorPut, model: str) -> bool:
    return not model or not put.model or put.model == model


def _scored(puts: list[VectorPut], query: np.ndarray, model: str) -> list[tuple[VectorPut, float | None]]:
    """Return the rows whose vector counts, in order, with their cosine; None where it cannot be compared."""
    same = [put for put in puts if put.vector.size == query.size]
    block = np.array([put.vector for put in same], np.float32).reshape(len(same), query.size)
    usable = np.asarray(np.isfinite(block).all(axis=1) & block.any(axis=1))
    with np.errstate(all="ignore"):  # vectors that do not count may hold anything
        scores = exact(block, query)
    known = {put.id: score for put, score, fit in zip(same, scores.tolist(), usable.tolist(), strict=True) if fit}
    return [
        (put, known.get(put.id) if _of_model(put, model) else None)
        for put in puts
        if put.id in known or (put.vector.size != query.size and is_usable(put.vector))
    ]
