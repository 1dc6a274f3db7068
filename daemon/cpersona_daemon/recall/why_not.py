"""By how much the best row missed, for a recall that returns nothing: numbers and a ref, never content.

Contract: issue "Honest recall" 6 (absent is said).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.kinds import ref_of
from ..vectors.backend import QueryVectors, Window
from .types import Candidate, Query

if TYPE_CHECKING:
    from .channels.vectors import VectorQuery
    from .pipeline import Bench
    from .scoring.gate import Thresholds


def best_missed(
    bench: Bench, vector: VectorQuery | None, query: Query, below: list[Candidate], limits: Thresholds
) -> dict | None:
    """Return `{ref, signal, score, threshold}` of the row that came nearest, None where nothing could be compared.

    Nearest is the largest share of its own threshold, so that signals of different scales compare. Where not even a
    candidate was found it is the most similar row of the window, against the floor of the vector search.
    """
    scored = [
        (signal[1] / limit if (limit := limits.of(c, signal[0])) else 0.0, c, signal, limit)
        for c in below
        if not c.is_profile and (signal := c.signal(bench.legacy)) is not None
    ]
    if scored:
        _, candidate, (name, score), limit = max(scored, key=lambda entry: entry[0])
        return {"ref": ref_of(candidate.rid), "signal": name, "score": score, "threshold": limit}
    if vector is None or query.blank:
        return None
    asked, window = QueryVectors.one(vector.vector, vector.model), Window(0, bench.settings.max_memories)
    hits = [
        ((kind, hit.id), hit.score)
        for kind in query.scope.kinds
        for hit in bench.vectors.search(asked, kind, query.scope, window, -1.0, 1)[0]
    ]
    if not hits:
        return None
    rid, score = max(hits, key=lambda hit: hit[1])
    # A row above the floor was a candidate; that it is none now means that exclude_contents took it out.
    return (
        {"ref": ref_of(rid), "signal": "cosine", "score": score, "threshold": vector.floor}
        if score < vector.floor
        else None
    )
