"""Rows whose meaning is near to the question's: the window of the newest, the part that compares languages, and beyond.

Contract: window.near, window.reach.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...model.kinds import Rid
from ...shared.settings import Settings
from ...vectors.backend import QueryVectors, Window
from ..run import Run
from ..types import BLEND, CASCADE, FAR, NEAR, PART, Ranked, Scan


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
    return lists


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
    asked, window = QueryVectors(np.array(vectors, np.float32), run.vector.model), Window(scan.start, scan.stop)
    found: list[list[tuple[Rid, float]]] = [[] for _ in vectors]
    for kind in run.query.scope.kinds:
        for rows, hits in zip(found, run.vectors.search(asked, kind, run.query.scope, window, least, k), strict=True):
            rows += [((kind, hit.id), hit.score) for hit in hits]
    for rows in found:
        rows.sort(key=lambda pair: -pair[1])
    return [rows[:k] for rows in found]
