"""The same search straight from the database: slow, for when there is no index that could answer."""

from __future__ import annotations

import heapq

import apsw
import numpy as np

from ..model.changes import VectorPut
from ..model.kinds import MEMORY
from ..model.scope import Scope
from ..storage import vectors as rows
from .local.topk import exact
from .local.view import is_usable


def plain_search(
    conn: apsw.Connection,
    query: np.ndarray,
    kind: str,
    scope: Scope,
    start: int,
    stop: int,
    floor: float,
    k: int,
    model: str,
) -> list[tuple[int, float]]:
    """Return what ``VectorStore.search`` returns, by reading the window's vectors. Memory: an id a row in scope, one chunk of vectors."""
    conn.execute("BEGIN")
    order = rows.scan_order(conn, kind, scope)
    best: list[tuple[float, int, int]] = []  # (score, -position, id): a heap whose smallest is the worst
    position = 0
    for at in range(0, len(order), rows.CHUNK):
        if position >= stop or k <= 0:
            break
        for put, score in _scored(rows.with_vectors(conn, kind, order[at : at + rows.CHUNK]), query, model):
            if score is not None and score >= floor and start <= position < stop:
                (heapq.heappush if len(best) < k else heapq.heappushpop)(best, (score, -position, put.id))
            position += 1
    return [(row_id, score) for score, _, row_id in sorted(best, reverse=True)]


def plain_cosines(
    conn: apsw.Connection, query: np.ndarray, kind: str, ids: list[int], model: str
) -> list[tuple[int, float]]:
    """Return (id, cosine) of the given rows that have a vector comparable with the query."""
    puts = rows.with_vectors(conn, kind, np.array(list(dict.fromkeys(ids)), np.int64))
    return [(put.id, score) for put, score in _scored(puts, query, model) if score is not None]


def plain_rows(
    conn: apsw.Connection, kind: str, ids: list[int], width: int, model: str
) -> tuple[list[int], np.ndarray]:
    """Return the ids that have a vector comparable with ``width`` and ``model``, and these vectors."""
    puts = [
        put
        for put in rows.with_vectors(conn, kind, np.array(list(dict.fromkeys(ids)), np.int64))
        if _fits(put, width, model)
    ]
    return [put.id for put in puts], np.array([put.vector for put in puts], np.float32).reshape(len(puts), width)


def plain_background(
    conn: apsw.Connection, scope: Scope, window: int, width: int, model: str, size: int
) -> tuple[int, int, np.ndarray] | None:
    """Return what ``VectorStore.background`` returns, by reading the window's vectors."""
    conn.execute("BEGIN")
    ids: list[int] = []
    position = 0
    order = rows.scan_order(conn, MEMORY, scope)
    for at in range(0, len(order), rows.CHUNK):
        if position >= window:
            break
        puts = [put for put in rows.with_vectors(conn, MEMORY, order[at : at + rows.CHUNK]) if is_usable(put.vector)][
            : window - position
        ]
        position += len(puts)
        ids += [put.id for put in puts if _fits(put, width, model)]
    if not ids:
        return None
    taken = [ids[i] for i in spaced(len(ids), size)]
    _, block = plain_rows(conn, MEMORY, taken, width, model)
    return len(block), len(ids), block.mean(axis=0, dtype=np.float64)


def spaced(count: int, size: int) -> np.ndarray:
    """Return at most ``size`` of ``count`` places, evenly spaced from the first to the last."""
    return np.linspace(0, count - 1, size).astype(np.int64) if count > size else np.arange(count)


def _fits(put: VectorPut, width: int, model: str) -> bool:
    return put.vector.size == width and is_usable(put.vector) and (not model or not put.model or put.model == model)


def _scored(puts: list[VectorPut], query: np.ndarray, model: str) -> list[tuple[VectorPut, float | None]]:
    """Return the rows whose vector counts, in order, with their cosine; None for another width or another known model."""
    same = [put for put in puts if put.vector.size == query.size]
    block = np.array([put.vector for put in same], np.float32).reshape(len(same), query.size)
    usable = np.isfinite(block).all(axis=1) & block.any(axis=1)
    with np.errstate(all="ignore"):  # vectors that do not count may hold anything
        scores = exact(block, query)
    known = {put.id: score for put, score, fit in zip(same, scores.tolist(), usable.tolist(), strict=True) if fit}
    return [
        (put, known.get(put.id) if not model or not put.model or put.model == model else None)
        for put in puts
        if put.id in known or (put.vector.size != query.size and is_usable(put.vector))
    ]
