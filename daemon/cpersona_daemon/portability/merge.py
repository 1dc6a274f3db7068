"""Merging one agent's memory into another's, and deleting an agent's, each in one transaction.

Contract: contracts.md §2 (delete_agent_data), §10 and §13 (merge_memories).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw

from ..errors import Refused
from ..storage import associations, backlog, episodes, history, memories, transfer
from ..storage.associations import ENTITY
from ..storage.database import Transaction
from ..vectors.changes import EPISODE, MEMORY
from .lines import unit_vector

MODES = ("copy", "move")
STRATEGIES = ("skip",)


@dataclass(slots=True)
class Plan:
    """What a merge will do: ids at the source with the row of the target in their place, None where one is to be written."""

    memories: list[tuple[int, int | None]]
    episodes: list[tuple[int, int | None]]
    copies_profile: bool
    skips_profile: bool

    def copied(self, kind: str) -> list[int]:
        return [old for old, there in self._of(kind) if there is None]

    def skipped(self, kind: str) -> int:
        return sum(there is not None for _, there in self._of(kind))

    def _of(self, kind: str) -> list[tuple[int, int | None]]:
        return self.memories if kind == MEMORY else self.episodes


def check(source: str, target: str, mode: str, strategy: str) -> None:
    """Raise Refused for a merge that makes no sense."""
    if not source or not target:
        raise Refused("source_agent_id and target_agent_id must both be named")
    if source == target:
        raise Refused(f"source and target are the same agent, {source!r}")
    if mode not in MODES:
        raise Refused(f"mode is one of {', '.join(MODES)}, not {mode!r}")
    if strategy not in STRATEGIES:
        raise Refused(f"strategy is {', '.join(STRATEGIES)}, not {strategy!r}")


def plan(conn: apsw.Connection, source: str, target: str) -> Plan:
    """Return what a merge does, reading only: the same for a dry run and for the merge itself."""
    twice = [(old, there if there is not None else None if first == old else first) for old, there, first in transfer.episode_plan(conn, source, target)]
    has, had = transfer.profile_of(conn, source) is not None, transfer.profile_of(conn, target) is not None
    return Plan(transfer.memory_plan(conn, source, target), twice, has and not had, has and had)


def merge(conn: apsw.Connection, tx: Transaction | None, source: str, target: str, mode: str, strategy: str) -> dict:
    """Merge inside ``tx`` and return merge_memories' answer; without one, return what it would be. Raises Refused."""
    check(source, target, mode, strategy)
    what = plan(conn, source, target)
    answer: dict[str, Any] = {
        "ok": True, "dry_run": tx is None, "source_agent_id": source, "target_agent_id": target, "strategy": strategy, "mode": mode,
        "merged_memories": len(what.copied(MEMORY)), "skipped_memories": what.skipped(MEMORY),
        "merged_episodes": len(what.copied(EPISODE)), "skipped_episodes": what.skipped(EPISODE),
        "profile_copied": what.copies_profile, "skipped_profile": what.skips_profile,
    }
    if tx is not None:
        _copy(tx, what, source, target)
        if mode == "move":
            answer["source_deleted"] = _delete_copied(tx, what, source)
    if mode == "move":
        answer["left_at_source"] = {
            "memories": what.skipped(MEMORY), "episodes": what.skipped(EPISODE), "profiles": int(what.skips_profile),
        }
    return answer


def _copy(tx: Transaction, what: Plan, source: str, target: str) -> None:
    became: dict[tuple[str, int], int] = {}
    for old, there in what.memories:
        if there is None:
            there = memories.insert(tx, transfer.memory_to_copy(tx.conn, old, target))
            _copy_vector(tx, MEMORY, old, there)
        became[MEMORY, old] = there
    firsts: dict[int, int] = {}
    for old, there in what.episodes:
        if there is None:
            there = firsts[old] = episodes.insert(tx, transfer.episode_to_copy(tx.conn, old, target))
            _copy_vector(tx, EPISODE, old, there)
        became[EPISODE, old] = firsts.get(there, there)
    if what.copied(MEMORY) or what.copied(EPISODE):
        history.note_arrival(tx, target)
    if what.copies_profile:
        content, updated_at, project = transfer.profile_of(tx.conn, source)
        transfer.put_profile(tx, target, content, updated_at, project)
    _copy_associations(tx, source, target, became)


def _copy_vector(tx: Transaction, kind: str, old: int, new: int) -> None:
    found = transfer.vector_of(tx.conn, kind, old)
    if found is not None:
        model, data = found
        try:
            backlog.attach_vector(tx, kind, new, model, unit_vector(data))
            return
        except ValueError:
            pass  # a stored vector that is none counts as no vector, here as in a recall
    if transfer.waits(tx.conn, kind, old):
        backlog.enqueue(tx, kind, new)


def _copy_associations(tx: Transaction, source: str, target: str, became: dict[tuple[str, int], int]) -> None:
    """Declare at the target what is declared at the source, re-anchored to the target's rows."""
    nodes: dict[tuple[str, int], int] = dict(became)
    for entity, _, project, channel, name, declared_by, created_at, _ in transfer.entity_rows(tx.conn, source).fetchall():
        names = associations.names_of(tx.conn, [entity]).get(entity, [])
        own = next(((n.normalized, name) for n in names if n.is_name), None)
        if own is None:
            continue
        aliases = [(n.normalized, n.written) for n in names if not n.is_name]
        nodes[ENTITY, entity], _ = transfer.put_entity(tx, target, project, channel, own, aliases, declared_by, created_at)
    for entity, kind, record, declared_by, created_at in transfer.mention_rows(tx.conn, source).fetchall():
        if (ENTITY, entity) in nodes and (kind, record) in nodes:
            transfer.put_mention(tx, nodes[ENTITY, entity], kind, nodes[kind, record], declared_by, created_at)
    for _, _, project, channel, s_kind, s_id, predicate, o_kind, o_id, anchor, declared_by, declared_at in transfer.relation_rows(tx.conn, source).fetchall():
        if (s_kind, s_id) in nodes and (o_kind, o_id) in nodes:
            kind, _, number = (anchor or "").partition(":")
            new_anchor = nodes.get((kind, int(number))) if number.isdigit() else None
            transfer.put_relation(
                tx, target, project, channel, (s_kind, nodes[s_kind, s_id]), predicate, (o_kind, nodes[o_kind, o_id]),
                None if new_anchor is None else f"{kind}:{new_anchor}", declared_by, declared_at)


def _delete_copied(tx: Transaction, what: Plan, source: str) -> dict:
    for memory_id in what.copied(MEMORY):
        memories.delete(tx, memory_id)
    for episode_id in what.copied(EPISODE):
        episodes.delete(tx, episode_id)
    return {
        "ok": True, "agent_id": source, "deleted_memories": len(what.copied(MEMORY)),
        "deleted_profiles": transfer.delete_profile(tx, source) if what.copies_profile else 0, "deleted_episodes": len(what.copied(EPISODE)),
    }


def delete_agent(tx: Transaction, agent_id: str) -> dict:
    """Remove everything of an agent, locked rows too, and return delete_agent_data's answer. Raises Refused for ''."""
    if not agent_id:
        raise Refused("agent_id is empty; name the agent whose data is to be deleted")
    declared = transfer.delete_associations(tx, agent_id)
    found = transfer.ids_of(tx.conn, "memories", agent_id)
    for memory_id in found:
        memories.delete(tx, memory_id, noted=False)
    remembered = transfer.ids_of(tx.conn, "episodes", agent_id)
    for episode_id in remembered:
        episodes.delete(tx, episode_id, noted=False)
    history.forget(tx, agent_id)
    answer = {
        "ok": True, "agent_id": agent_id, "deleted_memories": len(found), "deleted_profiles": transfer.delete_profile(tx, agent_id),
        "deleted_episodes": len(remembered),
    }
    if any(declared.values()):
        answer["deleted_associations"] = declared
    return answer
