"""Archiving an episode and keeping a profile.

Contract: episode.archive, profile.one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..context import Context
from ..errors import Refused
from ..model.cuts import Whole
from ..model.instants import parse_instant
from ..model.kinds import EPISODE
from ..shared.settings import Settings
from ..storage import backlog, episodes, profiles
from ..storage.idempotency import Key
from ..storage.transaction import Transaction
from ..text.embedded import episode_text
from .cleaning import MAX_TIMESTAMP_LENGTH, check_axes, check_text, fit, remarks, sanitise


def history_bounds(history: Any) -> tuple[str | None, str | None]:
    """Return the caller's text of the earliest and of the latest instant in a history; what names none is ignored."""
    stamps = []
    for entry in history if isinstance(history, list) else ():
        text = entry.get("timestamp") if isinstance(entry, dict) else None
        instant = parse_instant(text) if isinstance(text, str) and len(text) <= MAX_TIMESTAMP_LENGTH else None
        if instant is not None:
            stamps.append((instant, text))
    if not stamps:
        return None, None
    return min(stamps, key=lambda s: s[0])[1], max(stamps, key=lambda s: s[0])[1]


async def archive(
    ctx: Context, settings: Settings, new: episodes.NewEpisode, key: Key | None, fail_if_cut: bool = False
) -> dict:
    """Write an episode; there is no dedup. Raises Refused for an empty summary."""
    check_axes(agent_id=new.agent_id, project_id=new.project_id, channel=new.channel)
    cleaned = sanitise(check_text(new.summary, "summary"))
    if not cleaned:
        raise Refused("summary is empty")
    summary, cut = fit(cleaned, settings.max_content_length, "the summary", fail_if_cut)
    keywords, keywords_cut = fit(
        check_text(new.keywords, "keywords").strip(), settings.max_content_length, "the list of keywords", fail_if_cut
    )
    said = remarks(cut) | ({} if keywords_cut is None else {"truncated": True, "keywords_cut": keywords_cut})
    made = await ctx.embedding.try_now(episode_text(summary, keywords))

    def job(tx: Transaction) -> dict:
        episode_id = episodes.insert(
            tx, replace(new, summary=summary, keywords=keywords, whole=Whole.of(cleaned, summary))
        )
        backlog.attach_or_enqueue(tx, EPISODE, episode_id, made, ctx.embedding.enabled)
        return {"ok": True, "episode_id": episode_id, **said}

    answer = await ctx.db.write(job, key)
    if made is None:
        ctx.backlog.wake()
    return answer


def put_profile(tx: Transaction, agent_id: str, profile: str, cap: int, fail_if_cut: bool = False) -> dict:
    """Write the agent's profile, replacing the one it had. Raises Refused for an empty one."""
    check_axes(agent_id=agent_id)
    text = check_text(profile, "profile").strip()
    if not text:
        raise Refused("profile is empty")
    kept, cut = fit(text, cap, "the profile", fail_if_cut)
    profiles.put(tx, agent_id, kept)
    return {"ok": True, "profiles_updated": 1, **remarks(cut)}
