"""Every statement on profiles: one per agent, which every write replaces.

An import may bring profiles of other users as well. They are kept beside the agent's own, whose user is '', and the
first by name stands in for one that is not there.

Contract: profile.one, profile.row.
"""

from __future__ import annotations

import apsw

from ..model.instants import created_text
from . import damaged
from .transaction import Transaction

# The profile that is the agent's: '' comes before every name.
_OWN = "agent_id = ?1 AND user_id = (SELECT min(user_id) FROM profiles WHERE agent_id = ?1)"


def put(tx: Transaction, agent_id: str, content: str) -> None:
    """Write an agent's profile, replacing the one it had."""
    tx.execute(
        "INSERT INTO profiles (agent_id, user_id, updated_at, content) VALUES (?, '', ?, ?)"
        " ON CONFLICT (agent_id, user_id) DO UPDATE SET updated_at = excluded.updated_at, content = excluded.content",
        (agent_id, created_text(tx.now), content),
    )


def get(conn: apsw.Connection, agent_id: str, since: str = "", until: str = "") -> str:
    """Return an agent's profile, '' when it has none, or none that was written between two instants: in updated_at's
    form, both included, '' being open.
    """
    found = damaged.texts(
        conn,
        f"SELECT content FROM profiles WHERE {_OWN} AND updated_at >= ?2 AND (?3 = '' OR updated_at <= ?3)",
        (agent_id, since, until),
    )
    return found[0][0] if found else ""


def written_after(conn: apsw.Connection, agent_id: str, as_of: str) -> bool:
    """Tell whether an agent's profile was written after an instant in updated_at's form: what it said then is not
    known.
    """
    return (
        conn.execute(f"SELECT 1 FROM profiles WHERE {_OWN} AND updated_at > ?2", (agent_id, as_of)).fetchone()
        is not None
    )
