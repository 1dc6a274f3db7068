"""Everything that a calibration looks at, read in one snapshot.

Contract: calibration.sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw
import numpy as np

from ..model.identity import VectorModel
from ..shared.settings import Settings
from ..storage import calibration as rows
from ..storage import vector_counts
from ..storage.calibration import Sampled
from .plan import SEPARATION, Plan

LEAST_SAMPLE = 10
POOL = 2  # the draws share this many times the queries of one, which bounds the work in a large store


@dataclass(frozen=True, slots=True)
class Drawn:
    """What one read of the store brought: the sample, its pairs in time, the draws of queries and their texts, and how
    many memories and passages there are.
    """

    sample: list[Sampled]
    pairs: list[tuple[Sampled, Sampled]]
    draws: list[list[Sampled]]
    texts: dict[int, str]
    rows: int = 0


def draw(conn: apsw.Connection, plan: Plan, fit: VectorModel, settings: Settings) -> Drawn:
    """Read all that a calibration looks at in one snapshot. The seed follows from the agent and its row count."""
    agent = plan.agent_id
    ids = rows.memory_ids(conn, agent)
    sample = rows.sample(conn, ids, plan.sample_size, fit, agent, len(ids), "threshold")
    if len(sample) < LEAST_SAMPLE:
        return Drawn(sample, [], [], {}, len(ids))
    # The first draw settles the width where the embedder does not know it yet.
    fit = VectorModel(fit.identity, len(sample[0].vector))
    window = settings.calibrate_temporal_window_min * 60
    pairs = rows.next_in_time(conn, sample, window) if plan.method == SEPARATION else []
    pairs = [(a, b) for a, b in pairs if fit.fits(b.model, len(b.vector))]
    draws: list[list[Sampled]] = []
    if agent:
        queries = settings.fused_gate_sample_queries
        pool = {row.id: row for row in rows.sample(conn, ids, POOL * queries, fit, agent, len(ids), "queries")}
        numbers = np.array(sorted(pool), np.int64)
        draws = [
            [pool[i] for i in rows.shuffled(numbers, agent, len(ids), "draw", n)[:queries].tolist()]
            for n in range(settings.fused_gate_calibration_draws)
        ]
    return Drawn(
        sample,
        pairs,
        draws,
        rows.contents(conn, sorted({row.id for draw in draws for row in draw})),
        vector_counts.size(conn, agent),
    )
