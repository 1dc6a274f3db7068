"""Handlers of the canaries: saved questions with the row that must come back.

Contract: canary.run.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from ...calibration import scores
from ...calibration.gates import QUERY_DEPTH
from ...embedding.values import Advice
from ...errors import EmbeddingFailure, InvalidParams, Refused
from ...health import canaries as running
from ...memory.cleaning import check_axes
from ...model.kinds import parse_ref
from ...storage import canaries as rows
from ...storage import records
from ...storage.canaries import FOUND, Canary
from ...storage.transaction import Transaction
from .. import advisories
from ..common import AgentParams, check_question
from ..registry import Call, Handler

Outcome = tuple[Canary, str, int | None]

MOST = 1000  # of one agent: a run stays a matter of seconds


class AddParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    query: str
    ref: str
    project_id: str | None = None
    channel: str | None = None
    session_key: str = ""


class RunParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str = ""
    scores: bool = False
    session_key: str = ""


class RemoveParams(msgspec.Struct, forbid_unknown_fields=True):
    canary_id: int
    agent_id: str = ""
    session_key: str = ""


async def add_canary(call: Call) -> dict:
    """Save a question and answer `{ok, id, created, query, ref, state, rank?}` after its first run.

    One that is saved already keeps its id. One that cannot be embedded now has the state `new` and an advisory.
    """
    p = call.params
    rid, query = parse_ref(p.ref), p.query.strip()
    if rid is None:
        raise InvalidParams(f"ref names a row as mem:N or ep:N, not {p.ref!r}")
    check_question(query, blank=False)
    if not p.agent_id:
        raise InvalidParams("agent_id is empty; name the agent whose question this is")
    check_axes(agent_id=p.agent_id, project_id=p.project_id or "", channel=p.channel or "")
    asked = (p.agent_id, p.project_id, p.channel or "", query, *rid)

    def save(tx: Transaction) -> dict:
        if not records.owns(tx.conn, p.agent_id, rid):
            raise Refused(f"agent {p.agent_id!r} has no row {p.ref}")
        there = rows.same(tx.conn, *asked)
        if there is None and rows.count(tx.conn, p.agent_id) >= MOST:
            raise Refused(f"agent {p.agent_id!r} has {MOST} canaries already; remove some")
        return {"id": rows.insert(tx, *asked) if there is None else there.id, "created": there is None}

    saved = await call.ctx.db.write(save, call.key)
    outcomes, advice = await _first_run(call, p.agent_id)
    outcome = next((o for o in outcomes if o[0].id == saved["id"]), None)
    if outcome is None:
        raise Refused("the canary was removed meanwhile")
    answer = {"ok": True, **saved, **_shown(*outcome)}
    if advice is not None:
        advisories.add(answer, *advice)
    return answer


async def _first_run(call: Call, agent_id: str) -> tuple[list[Outcome], Advice | None]:
    """Return how each canary of an agent fares, or that none was run, and why."""
    ctx = call.ctx
    try:
        return await running.run(ctx, call.settings, agent_id), None
    except EmbeddingFailure as error:
        saved = await ctx.db.read(rows.listed, agent_id)
        return [(canary, "", None) for canary in saved], ctx.embedding.advice(error)


async def list_canaries(call: Call) -> dict:
    """Answer the saved questions, as they fared when they last ran.

    `{canaries: [{id, agent_id, query, ref, state, rank?, created_at, ran_at?, project_id?, channel?}], count}`
    """
    saved = await call.ctx.db.read(rows.listed, call.params.agent_id)
    out = [
        _shown(c, c.state, c.rank) | {"created_at": c.created_at} | ({"ran_at": c.ran_at} if c.ran_at else {})
        for c in saved
    ]
    return {"canaries": out, "count": len(out)}


async def run_canaries(call: Call) -> dict:
    """Answer `{ok, total, found, lost, canaries}`, with ``scores`` what these and unrelated questions score.

    `ok` says that they ran; `lost` counts those whose row did not come back.
    """
    ctx, agent = call.ctx, call.params.agent_id
    if call.params.scores and not agent:
        raise InvalidParams("scores are those of one agent: name agent_id")
    outcomes = await running.run(ctx, call.settings, agent)
    found = sum(state == FOUND for _, state, _ in outcomes)
    drawn = {}
    if call.params.scores:
        known = [_known(canary) for canary, *_ in outcomes]
        drawn["scores"] = await scores.draw_scores(ctx, call.settings, agent, known)
    return {
        "ok": True,
        "total": len(outcomes),
        "found": found,
        "lost": len(outcomes) - found,
        "canaries": [_shown(*outcome) for outcome in outcomes],
        **drawn,
    }


def _known(canary: Canary) -> scores.Known:
    query = replace(running.query_of(canary), limit=QUERY_DEPTH)
    return scores.Known(query, None, (canary.kind, canary.record_id))


async def remove_canary(call: Call) -> dict:
    p = call.params

    def job(tx: Transaction) -> dict:
        if not rows.remove(tx, p.canary_id, p.agent_id):
            raise Refused(f"there is no canary {p.canary_id}" + (f" of agent {p.agent_id!r}" if p.agent_id else ""))
        return {"ok": True, "removed_id": p.canary_id}

    return await call.ctx.db.write(job, call.key)


def _shown(canary: Canary, state: str, rank: int | None) -> dict:
    out: dict = {
        "id": canary.id,
        "agent_id": canary.agent_id,
        "query": canary.query,
        "ref": canary.ref,
        "state": state or "new",
    }
    more = {"rank": rank, "project_id": canary.project_id, "channel": canary.channel or None}
    return out | {name: value for name, value in more.items() if value is not None}


HANDLERS = {
    "add_canary": Handler(AddParams, add_canary),
    "list_canaries": Handler(AgentParams, list_canaries),
    "run_canaries": Handler(RunParams, run_canaries),
    "remove_canary": Handler(RemoveParams, remove_canary),
}
