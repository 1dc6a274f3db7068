"""The same search straight from the database: slow, for when there is no index that could answer."""

from __future__ import annotations

import heapq

import apsw
import numpy as np

from ..storage import vectors as rows
from ..storage.scope import Scope
from .index import is_usable
from .topk import exact


def plain_search(
    conn: apsw.Connection, query: np.ndarray, kind: str, scope: Scope, start: int, stop: int, floor: float, k: int, model: str
) -> list[tuple[int, float]]:
    """Return what ``VectorStore.search`` returns, by reading the window's vectors. Memory: an id a row in scope, one chunk of vectors."""
    conn.execute("BEGIN")
    order = rows.scan_order(conn, kind, scope)
    best: list[tuple[float, int, int]] = []  # (score, -position, id): a heap whose smallest is the worst
    position = 0
    for at in range(0, len(order), rows.CHUNK):
        if position >= stop or k <= 0:
            break
        for put in rows.with_vectors(conn, kind, order[at:at + rows.CHUNK]):
            if not is_usable(put.vector):
                continue
            if start <= position < stop and _same_model(put, query, model):
                score = _cosine(put.vector, query)
                if score >= floor:
                    (heapq.heappush if len(best) < k else heapq.heappushpop)(best, (score, -position, put.id))
            position += 1
    return [(row_id, score) for score, _, row_id in sorted(best, reverse=True)]


def plain_cosines(conn: apsw.Connection, query: np.ndarray, kind: str, ids: list[int], model: str) -> list[tuple[int, float]]:
    """Return (id, cosine) of the given rows that have a vector comparable with the query."""
    puts = rows.with_vectors(conn, kind, np.array(list(dict.fromkeys(ids)), np.int64))
    return [(put.id, _cosine(put.vector, query)) for put in puts if is_usable(put.vector) and _same_model(put, query, model)]


def _same_model(put, query: np.ndarray, model: str) -> bool:
    return put.vector.size == query.size and (not model or not put.model or put.model == model)


def _cosine(vector: np.ndarray, query: np.ndarray) -> float:
    return float(exact(vector[None, :], np.zeros(1, np.int64), query)[0])
