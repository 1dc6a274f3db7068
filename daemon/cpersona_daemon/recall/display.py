"""How a stored row is shown: its text, source and timestamp, the same in every answer.

Contract: rows.text, answer.rows.
"""

from __future__ import annotations

from ..model.kinds import ref_of
from ..storage.damaged import Unreadable
from ..storage.episodes import Episode
from ..storage.json_columns import load_source
from ..storage.memories import Memory

EPISODE_SOURCE = {"System": "episode"}
PROFILE_SOURCE = {"System": "profile"}


def left_out(kind: str, row: Unreadable) -> dict:
    """Return how an answer names a row that it leaves out: `{ref, reason}`."""
    return {"ref": ref_of((kind, row.id)), "reason": row.reason}


def episode_text(episode: Episode) -> str:
    return f"[Episode] {episode.summary}"


def profile_text(content: str) -> str:
    return f"[Profile] {content}"


def episode_timestamp(episode: Episode) -> str:
    return episode.start_time or episode.created_at


def memory_row(memory: Memory) -> dict:
    """Return a memory as get_contents serves it, without its ref; an empty timestamp or message id is left out.

    ``cut`` says of how long a text the content is the beginning.
    """
    row = {"content": memory.content, "source": load_source(memory.source)}
    if memory.timestamp:
        row["timestamp"] = memory.timestamp
    if memory.msg_id:
        row["id"] = memory.msg_id
    if memory.cut:
        row["cut"] = memory.cut
    return row


def episode_row(episode: Episode) -> dict:
    """Return an episode as get_contents serves it, without its ref."""
    row = {
        "content": episode_text(episode),
        "source": dict(EPISODE_SOURCE),
        "timestamp": episode_timestamp(episode),
        "resolved": bool(episode.resolved),
    }
    return {**row, "cut": episode.cut} if episode.cut else row
