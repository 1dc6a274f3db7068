"""Which agents, projects and channels there are, for whoever has to name one.

Bounded reads: names of the newest rows.
"""

from __future__ import annotations

import apsw

from ..model.kinds import Kind
from . import tables
from .hidden import seen

NAMES = 500
ROWS_LOOKED_AT = 5_000  # of a kind


def agents(conn: apsw.Connection) -> list[str]:
    """Return the agents that have memories or episodes, in their order, NAMES at most."""
    return sorted({agent for kind in Kind for agent in tables.agents(conn, kind.table, NAMES)})[:NAMES]


def below(conn: apsw.Connection, agent_id: str) -> dict[str, list[str]]:
    """Return the `projects` and `channels` of an agent's newest rows, in their order, NAMES at most of each; without
    ''.
    """
    found: dict[str, set[str]] = {"projects": set(), "channels": set()}
    for kind in Kind:
        for project, channel in conn.execute(
            f"SELECT DISTINCT project_id, channel FROM (SELECT project_id, channel FROM {kind.table} WHERE agent_id = ?"
            f" AND {seen(kind.table)} ORDER BY created_at DESC LIMIT {ROWS_LOOKED_AT})",
            (agent_id,),
        ):
            found["projects"].add(project)
            found["channels"].add(channel)
    return {name: sorted(values - {""})[:NAMES] for name, values in found.items()}
