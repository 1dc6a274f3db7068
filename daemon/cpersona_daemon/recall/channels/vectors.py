"""Rows whose meaning is near to the question's: the window of the newest, the part that compares languages, and beyond.

Contract: window.near, window.reach, passages.best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...model.kinds import PASSAGES, Rid, VectorKind
from ...model.scope import Scope
from ...shared.settings import Settings
from ...text.passages import Span
from ...vectors.backend import Ask, QueryVectors, Window
from ..run import Run
from ..types import BLEND, CASCADE, FAR, NEAR, PART, PASSAGE, Query, Ranked, Scan, VectorQuery

# A long row may take several of the best places with its passages.
PASSAGES_A_ROW = 4


def scans_of(settings: Settings, depth: int) -> tuple[Scan, ...]:
    """Return the vector channels of a recall: a cascade looks at the window alone, a blend at all that it reaches
    alike.
    """
    window, reach = settings.max_memories, settings.vector_reach
    if settings.recall_mode == BLEND:
        return (Scan(NEAR, 0, max(window, reach), depth),)
    near = Scan(NEAR, 0, window, depth)
    if settings.recall_mode == CASCADE or reach <= window or settings.prior_far_weight <= 0:
        return (near,)
    cut = min(depth, settings.vector_far_limit) if settings.vector_far_limit > 0 else depth
    return near, Scan(FAR, window, reach, cut)


def asks_of(query: Query, asked: VectorQuery, scans: Sequence[Scan], mode: str) -> list[Ask]:
    """Return what a recall will ask an engine for its lists, where these do not reach deeper than at first."""
    both = [asked.vector] if asked.part is None else [asked.vector, asked.part]
    asks = []
    for scan in scans:
        vectors, window = both if scan.channel == NEAR else both[:1], Window(scan.start, scan.stop)
        asks += _asks(vectors, asked.model, query.scope, query.scope.kinds, window, asked.floor, scan.cut)
    if mode == BLEND:
        (scan,), of_rows = scans, [PASSAGES[kind] for kind in query.scope.kinds]
        k = PASSAGES_A_ROW * scan.cut
        asks += _asks(both, asked.model, query.scope, of_rows, Window(0, scan.stop), asked.floor, k)
    return asks


def _asks(
    vectors: Sequence[np.ndarray],
    model: str,
    scope: Scope,
    kinds: Sequence[VectorKind],
    window: Window,
    floor: float,
    k: int,
) -> list[Ask]:
    queries = QueryVectors(np.array(vectors, np.float32), model)
    return [Ask(queries, kind, scope, window, floor, k) for kind in kinds]


def vector_lists(run: Run) -> list[Ranked]:
    """Return the near list, that of the multilingual part, and the far list less what the near one holds."""
    asked = run.vector
    if asked is None:
        return []
    lists: list[Ranked] = []
    seen: set[Rid] = set()
    for scan in run.scans:
        # The multilingual part is asked of the window alone, together with the whole: they look at the same rows.
        parts = [asked.part] if scan.channel == NEAR and asked.part is not None else []
        whole, *of_parts = looked_at(run, [asked.vector, *parts], scan, scan.cut)
        found = [(rid, score) for rid, score in whole if rid not in seen]
        seen.update(rid for rid, _ in found)
        lists += [_ranked(scan.channel, found), *(_ranked(PART, of_part) for of_part in of_parts)]
    if run.settings.recall_mode == BLEND:
        lists.append(_ranked(PASSAGE, _with_near_passages(run)))
    return lists


def _with_near_passages(run: Run) -> list[tuple[Rid, float]]:
    """Return the rows whose passages are nearest, each with the cosine of its nearest one, or of its part."""
    assert run.vector is not None
    (scan,), asked = run.scans, run.vector
    vectors = [asked.vector] if asked.part is None else [asked.vector, asked.part]
    best: list[dict[Rid, float]] = []
    for found in nearest_passages(run, vectors, scan.stop, PASSAGES_A_ROW * scan.cut, asked.floor):
        rows: dict[Rid, float] = {}
        for near in found:
            rows.setdefault(near.rid, near.cosine)
            run.near.setdefault(near.rid, {})[near.id] = near.span
        best.append(dict(list(rows.items())[: scan.cut]))
    ranked = list(best[0].items())
    return ranked + [pair for others in best[1:] for pair in others.items() if pair[0] not in best[0]]


class Near(NamedTuple):
    """A passage near to the question: its row, its own id, its cosine and where it stands."""

    rid: Rid
    id: int
    cosine: float
    span: Span


def nearest_passages(run: Run, vectors: Sequence[np.ndarray], stop: int, k: int, floor: float) -> list[list[Near]]:
    """Return for each vector the best ``k`` passages of the newest ``stop`` with cosine >= ``floor``, best first."""
    assert run.vector is not None
    scope, model = run.query.scope, run.vector.model
    found: list[list[Near]] = [[] for _ in vectors]
    asks = _asks(vectors, model, scope, [PASSAGES[kind] for kind in scope.kinds], Window(0, stop), floor, k)
    for kind, ask in zip(scope.kinds, asks, strict=True):
        hits = run.vectors.search(*ask._replace(k=k + PASSAGES_A_ROW * run.rows.changed_there(kind)))
        of = run.rows.passages_by_ids(kind, {hit.id for of_one in hits for hit in of_one})
        for near, of_one in zip(found, hits, strict=True):
            near += [Near((kind, of[hit.id][0]), hit.id, hit.score, of[hit.id][1]) for hit in of_one if hit.id in of]
    for near in found:
        near.sort(key=lambda passage: -passage.cosine)
    return [near[:k] for near in found]


def _ranked(channel: str, found: list[tuple[Rid, float]]) -> Ranked:
    return Ranked(channel, tuple(rid for rid, _ in found), tuple(score for _, score in found))


def looked_at(
    run: Run, vectors: Sequence[np.ndarray], scan: Scan, k: int, floor: float | None = None
) -> list[list[tuple[Rid, float]]]:
    """Return for each vector the best ``k`` rows of a scan with their cosines.

    Each kind has a window of its own, a memory comes first on ties. ``floor`` is that of the question, unless another
    is given.
    """
    assert run.vector is not None
    least = run.vector.floor if floor is None else floor
    scope, window = run.query.scope, Window(scan.start, scan.stop)
    found: list[list[tuple[Rid, float]]] = [[] for _ in vectors]
    for ask in _asks(vectors, run.vector.model, scope, scope.kinds, window, least, k):
        for rows, hits in zip(found, run.rows.search(ask), strict=True):
            rows += [((ask.kind, hit.id), hit.score) for hit in hits]
    for rows in found:
        rows.sort(key=lambda pair: -pair[1])
    return [rows[:k] for rows in found]
