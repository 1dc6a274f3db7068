"""What memories and episodes have in common, asked by kind: who owns a row, reading it, deleting it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from ..model.kinds import EPISODE, MEMORY, Kind, Rid, by_kind
from ..model.scope import Scope
from . import episodes, memories, tables
from .damaged import Unreadable
from .transaction import Transaction

# The module of each kind, with functions of the same names.
_STORES: dict[Kind, Any] = {MEMORY: memories, EPISODE: episodes}


def owns(conn: apsw.Connection, agent_id: str, rid: Rid) -> bool:
    """Tell whether the agent has this memory or episode."""
    return tables.owns(conn, Kind(rid[0]).table, agent_id, rid[1])


def by_rids(
    conn: apsw.Connection, rids: Iterable[Rid], scope: Scope | None = None, agent_id: str | None = None
) -> dict[Rid, memories.Memory | episodes.Episode | Unreadable]:
    """Return those of the rows that are visible in the scope (or owned by the agent), memories first."""
    return {
        (kind, row_id): row
        for kind, ids in by_kind(rids).items()
        if ids
        for row_id, row in _STORES[kind].by_ids(conn, ids, scope, agent_id).items()
    }


def delete(tx: Transaction, kind: Kind, row_id: int, noted: bool = True) -> None:
    """Remove a row with all that hangs on it; that it went is ``noted``, without what it said."""
    _STORES[kind].delete(tx, row_id, noted)
