"""Handlers of declare_associations, list_associations, traverse and reconstruct.

Contract: associations.declare, associations.traverse, associations.reconstruct.
"""

from __future__ import annotations

import msgspec

from ...associations import declare, listing, reconstruct, traverse
from ...associations.layout import MOST_BUDGET
from ...errors import Refused
from ...memory.cleaning import check_axes
from ...storage.transaction import Transaction
from .. import advisories
from ..common import QUESTION_WAIT_SECONDS, Associations, Map, Text, Whole, bounded, check_question, scope_of, whole
from ..registry import Call, Handler

LARGEST_ID = 2**63 - 1


class DeclareParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    associations: Associations = None
    anchor_ref: Text = None
    retract: Map = None
    project_id: str | None = None
    channel: str | None = None
    session_key: str = ""


class ListParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    project_id: str | None = None
    channel: str | None = None
    limit: Whole = None
    after: Whole = None
    after_relation: Whole = None


class TraverseParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    entity: str
    max_hops: Whole = None
    limit: Whole = None
    project_id: str | None = None
    channel: str | None = None
    source_id: str | None = None


class ReconstructParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    query: str = ""
    count: Whole = None
    top_k: Whole = None
    max_hops: Whole = None
    max_evidence: Whole = None
    budget: Whole = None
    deep: bool = False
    project_id: str | None = None
    channel: str | None = None
    source_id: str | None = None
    trace: bool = False
    no_wait: bool = False
    session_key: str = ""


async def declare_associations(call: Call) -> dict:
    p = call.params
    if not p.agent_id:
        raise Refused("agent_id is empty; name the agent who declares this")
    project_id, channel = p.project_id or "", p.channel or ""
    check_axes(agent_id=p.agent_id, project_id=project_id, channel=channel)

    def job(tx: Transaction) -> dict:
        return declare.declare(
            tx,
            p.agent_id,
            project_id,
            channel,
            p.associations,
            anchor_ref=p.anchor_ref,
            declared_by=call.caller.client_id,
            retract=p.retract,
        )

    return await call.ctx.db.write(job, call.key)


async def list_associations(call: Call) -> dict:
    p = call.params
    return await call.ctx.db.read(
        listing.list_associations,
        scope_of(p),
        bounded(p.limit, 100, 1, 500),
        bounded(p.after, 0, 0, LARGEST_ID),
        bounded(p.after_relation, 0, 0, LARGEST_ID),
    )


async def traverse_entities(call: Call) -> dict:
    p = call.params
    return await call.ctx.db.read(
        traverse.traverse, scope_of(p), p.entity, bounded(p.max_hops, 1, 0, 5), bounded(p.limit, 20, 1, 100)
    )


async def reconstruct_items(call: Call) -> dict:
    p = call.params
    check_question(p.query)
    ask = reconstruct.Ask(
        text=p.query,
        scope=scope_of(p),
        count=reconstruct.effective_count(call.settings, whole(p.count)),
        top_k=bounded(p.top_k, 20, 1, 100),
        max_hops=bounded(p.max_hops, 2, 0, 5),
        max_evidence=bounded(p.max_evidence, 40, 1, 100),
        budget=None if whole(p.budget) is None else bounded(p.budget, 0, 1, MOST_BUDGET),
        deep=p.deep,
        trace=p.trace,
        wait_seconds=0.0 if p.no_wait else QUESTION_WAIT_SECONDS,
    )
    answer, advice = await reconstruct.reconstruct(call.ctx, call.settings, ask)
    for each in advice:
        advisories.add(answer, *each)
    return answer


HANDLERS = {
    "declare_associations": Handler(DeclareParams, declare_associations),
    "list_associations": Handler(ListParams, list_associations),
    "traverse": Handler(TraverseParams, traverse_entities),
    "reconstruct": Handler(ReconstructParams, reconstruct_items),
}
