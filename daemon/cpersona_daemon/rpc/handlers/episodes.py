"""Handlers of the episodes: archive, list, delete.

Contract: edit.update, lists.newest.
"""

from __future__ import annotations

import msgspec

from ...memory import archive, edit
from ...model.kinds import EPISODE
from ...storage import episodes
from ..common import Maps, bounded
from ..listing import ListParams, listed
from ..registry import Call, Handler


class ArchiveParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    summary: str = ""
    history: Maps = None
    keywords: str | None = ""
    resolved: bool = False
    channel: str | None = ""
    project_id: str | None = ""
    fail_if_cut: bool = False
    session_key: str = ""


class EpisodeParams(msgspec.Struct, forbid_unknown_fields=True):
    episode_id: int
    agent_id: str = ""
    project_id: str | None = None
    session_key: str = ""


async def archive_episode(call: Call) -> dict:
    p = call.params
    start, end = archive.history_bounds(p.history)
    new = episodes.NewEpisode(
        agent_id=p.agent_id,
        summary=p.summary,
        keywords=p.keywords or "",
        project_id=p.project_id or "",
        channel=p.channel or "",
        start_time=start,
        end_time=end,
        resolved=p.resolved,
    )
    return await archive.archive(call.ctx, call.settings, new, call.key, p.fail_if_cut)


async def list_episodes(call: Call) -> dict:
    p = call.params
    found = await call.ctx.db.read(
        episodes.newest, p.agent_id, p.project_id, bounded(p.limit, 50, 0, 200), p.channel or ""
    )
    return listed(
        "episodes",
        EPISODE,
        found,
        lambda e: {
            "id": e.id,
            "ref": EPISODE.ref(e.id),
            "agent_id": e.agent_id,
            "project_id": e.project_id,
            "channel": e.channel,
            "summary": e.summary,
            "keywords": e.keywords,
            "start_time": e.start_time,
            "end_time": e.end_time,
            "resolved": bool(e.resolved),
            "created_at": e.created_at,
            **({"cut": e.cut} if e.cut else {}),
        },
    )


async def delete_episode(call: Call) -> dict:
    p = call.params
    return await call.ctx.db.write(lambda tx: edit.delete_episode(tx, p.episode_id, p.agent_id, p.project_id), call.key)


HANDLERS = {
    "archive_episode": Handler(ArchiveParams, archive_episode),
    "list_episodes": Handler(ListParams, list_episodes),
    "delete_episode": Handler(EpisodeParams, delete_episode),
}
