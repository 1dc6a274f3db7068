"""What a merge would do, reading only.

Contract: merge.copies.
"""

from __future__ import annotations

import apsw

from ...model.kinds import EPISODE, MEMORY, Kind
from ...storage import copying, transfer
from ...storage.damaged import Unreadable
from .request import Merged, Request

READ_TOGETHER = 500

_Places = list[tuple[int, int | None]]  # rows of the source, each with the one of the target in its place


def dry_run(conn: apsw.Connection, request: Request) -> dict:
    """Return what merge_memories would answer."""
    source, target = request.source, request.target
    places: dict[Kind, _Places] = {
        MEMORY: transfer.memory_plan(conn, source, target),
        # Of episodes that say the same the first one is written, and takes the place of the others.
        EPISODE: [
            (old, there if there is not None or first == old else first)
            for old, there, first in transfer.episode_plan(conn, source, target)
        ],
    }
    left_out = {kind: _left_out_of(conn, kind, source, target) for kind in places}
    counts = {kind: _counted(rows, left_out[kind]) for kind, rows in places.items()}
    has, had = (transfer.profiles_of(conn, agent).keys() for agent in (source, target))
    return Merged(counts, len(has - had), len(has & had), left_out).answer(request, True) | unknown_agent(conn, source)


def _counted(rows: _Places, left_out: dict[int, str]) -> tuple[int, int]:
    """Return how many rows are copied and how many skipped."""
    taken = [there is not None for old, there in rows if old not in left_out]
    return len(taken) - sum(taken), sum(taken)


def _left_out_of(conn: apsw.Connection, kind: Kind, source: str, target: str) -> dict[int, str]:
    ids = transfer.ids_of(conn, kind.table, source)
    found: dict[int, str] = {}
    for at in range(0, len(ids), READ_TOGETHER):
        found |= {
            row.id: row.reason
            for row in copying.read(conn, kind, ids[at : at + READ_TOGETHER], source, target)
            if isinstance(row, Unreadable)
        }
    return found


def unknown_agent(conn: apsw.Connection, agent_id: str) -> dict:
    """Return what an answer says of an agent that nothing is stored for."""
    return {} if any(transfer.counts(conn, agent_id).values()) else {"unknown_agent": True}
