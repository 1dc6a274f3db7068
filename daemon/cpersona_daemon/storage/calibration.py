"""What a calibration reads: a deterministic sample of embedded memories, and their neighbours in time.

The ids come from an index and are drawn first; only the rows of the sample are read with their vectors.

Contract: calibration.sample.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass

import apsw
import numpy as np

from ..model.identity import VectorModel
from ..model.kinds import MEMORY
from . import damaged, tables
from .hidden import seen

_NEIGHBOURS_LOOKED_AT = 32  # rows without a vector that may stand between two neighbours in time
_LEAST_CHUNK = 64


@dataclass(frozen=True, slots=True)
class Sampled:
    """An embedded memory of a sample. ``instant`` is None where the timestamp names none; ``vector`` is float32, unit
    length.
    """

    id: int
    agent_id: str
    instant: float | None
    model: str
    vector: np.ndarray


def memory_ids(conn: apsw.Connection, agent_id: str) -> np.ndarray:
    """Return the ids of an agent's memories ('' for all agents), ascending: int64."""
    where, params = ("agent_id = ? AND ", (agent_id,)) if agent_id else ("", ())
    ids = np.fromiter(
        (i for (i,) in conn.execute(f"SELECT id FROM memories WHERE {where}{seen('memories')}", params)), np.int64
    )
    ids.sort()
    return ids


def agents(conn: apsw.Connection) -> list[str]:
    """Return every agent that has memories."""
    return tables.agents(conn, MEMORY.table)


def shuffled(ids: np.ndarray, *seed: object) -> np.ndarray:
    """Return the ids in an order that follows from the seed alone, on every machine and in every version of numpy."""
    digest = hashlib.blake2b("\0".join(map(str, seed)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    with np.errstate(over="ignore"):
        z = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(int.from_bytes(digest, "little"))
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return ids[np.argsort(z, kind="stable")]


def embedded(conn: apsw.Connection, ids: list[int]) -> list[Sampled]:
    """Return those of the ids that have a usable vector, in the given order."""
    rows = conn.execute(
        "SELECT v.id, m.agent_id, m.instant, v.model, v.vector FROM json_each(?) j"
        " CROSS JOIN memory_vectors v ON v.id = j.value CROSS JOIN memories m ON m.id = v.id",
        (json.dumps(ids),),
    )
    found = {}
    for row_id, agent_id, instant, model, raw in rows:
        if raw and len(raw) % 4 == 0 and np.isfinite(vector := np.frombuffer(raw, "<f4")).all():
            found[row_id] = Sampled(row_id, agent_id, instant, model, vector)
    return [found[i] for i in ids if i in found]


def sample(conn: apsw.Connection, ids: np.ndarray, size: int, model: VectorModel, *seed: object) -> list[Sampled]:
    """Return up to ``size`` random embedded memories of ``ids`` that fit the model, all of one width.

    Where the model's dimension is unknown, the width that most rows of the draw have is taken.
    """
    order, out = shuffled(ids, *seed), list[Sampled]()
    at = 0
    while at < len(order) and len(out) < size:
        step = max(_LEAST_CHUNK, size - len(out))
        out += [row for row in embedded(conn, order[at : at + step].tolist()) if model.fits(row.model, len(row.vector))]
        at += step
    if model.dimension is None and out:
        width = Counter(len(row.vector) for row in out).most_common(1)[0][0]
        out = [row for row in out if len(row.vector) == width]
    return out[:size]


def next_in_time(conn: apsw.Connection, rows: list[Sampled], window_seconds: float) -> list[tuple[Sampled, Sampled]]:
    """Return each row with the embedded memory of the same agent that follows it in time, where one does within the
    window.

    The order of time is instant, then id. Rows without an instant have no neighbours.
    """
    following = {row.id: _following(conn, row, row.instant, window_seconds) for row in rows if row.instant is not None}
    have = _with_vector(conn, sorted({i for ids in following.values() for i in ids}))
    first = {row_id: near[0] for row_id, ids in following.items() if (near := [i for i in ids if i in have])}
    neighbours = {n.id: n for n in embedded(conn, sorted(set(first.values())))}
    return [(row, neighbours[first[row.id]]) for row in rows if first.get(row.id) in neighbours]


def _following(conn: apsw.Connection, row: Sampled, instant: float, window_seconds: float) -> list[int]:
    """Return the ids of the agent's memories after a row and within the window, in their order,
    ``_NEIGHBOURS_LOOKED_AT`` at most.
    """
    # Two statements: many rows of one instant (a bulk import) are then passed by in the index.
    same = conn.execute(
        "SELECT id FROM memories WHERE agent_id = ? AND instant = ? AND id > ? ORDER BY id LIMIT ?",
        (row.agent_id, instant, row.id, _NEIGHBOURS_LOOKED_AT),
    ).fetchall()
    later = conn.execute(
        "SELECT id FROM memories WHERE agent_id = ? AND instant > ? AND instant <= ? ORDER BY instant, id LIMIT ?",
        (row.agent_id, instant, instant + window_seconds, _NEIGHBOURS_LOOKED_AT - len(same)),
    ).fetchall()
    return [int(i) for (i,) in same + later]  # type: ignore[arg-type]  # an id is a number, which apsw cannot say


def _with_vector(conn: apsw.Connection, ids: list[int]) -> set[int]:
    rows = conn.execute(
        "SELECT v.id FROM json_each(?) j CROSS JOIN memory_vectors v ON v.id = j.value", (json.dumps(ids),)
    )
    return {i for (i,) in rows}


def contents(conn: apsw.Connection, ids: list[int]) -> dict[int, str]:
    """Return the texts of memories by id."""
    return dict(
        damaged.texts(
            conn, "SELECT id, content FROM memories WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(ids),)
        )
    )
