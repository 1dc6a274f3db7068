"""Reconstruct: what an ordinary recall finds, bundled into items with their claims, evidence and quotations.

Contract: associations.reconstruct, associations.silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw

from ..context import Context
from ..embedding.values import Advice
from ..model.kinds import ref_of
from ..model.scope import Scope
from ..recall.pipeline import recall
from ..recall.types import Query, Result
from ..shared.settings import Settings
from ..storage import associations as table
from ..text.folding import as_name
from ..text.names import Name, find_names, other_names
from . import bundles, evidence, layout, records, roles
from .quotes import Wanted


@dataclass(frozen=True, slots=True)
class Ask:
    """A reconstruct with every number within its bounds; ``budget`` None means the default."""

    text: str
    scope: Scope
    count: int
    top_k: int
    max_hops: int
    max_evidence: int
    budget: int | None = None
    deep: bool = False
    trace: bool = False
    wait_seconds: float = 5.0


def effective_count(settings: Settings, asked: int | None) -> int:
    """Return how many items an answer may hold: forced, else asked, else the default, at most the maximum."""
    wanted = settings.reconstruct_forced_count or (settings.reconstruct_default_count if asked is None else asked)
    return min(max(wanted, 0), settings.reconstruct_max_count)


async def reconstruct(ctx: Context, settings: Settings, ask: Ask) -> tuple[dict, list[Advice]]:
    """Return the answer to an ask and what it must say about vectors. ``count`` decides how many items are shown, not which."""
    if ask.count == 0:
        return {"items": [], "effective_count": 0, "returned_count": 0, "shortfall_reason": "count_zero"}, []
    found, others = await ctx.db.read(_names_in_question, ask)
    result = await recall(
        ctx,
        settings,
        Query(
            text=ask.text,
            scope=ask.scope,
            limit=ask.top_k,
            deep=ask.deep,
            also_lexical=others,
            wait_seconds=ask.wait_seconds,
            trace=ask.trace,
        ),
    )
    return await ctx.db.read(_compose, settings, ask, result, found, others), result.advice


def _names_in_question(conn: apsw.Connection, ask: Ask) -> tuple[list[Name], tuple[str, ...]]:
    """Return the declared names that the question holds, and the other names of what they name."""
    text = as_name(ask.text)
    found = find_names(text, table.names_within(conn, ask.scope, text)) if text else []
    if not found:
        return [], ()
    return found, other_names(found, table.names_of(conn, sorted({name.entity_id for name in found})))


def _compose(
    conn: apsw.Connection, settings: Settings, ask: Ask, result: Result, found: list[Name], others: tuple[str, ...]
) -> dict:
    candidates = [records.of_row(row.record) for row in result.rows if row.record is not None]
    rids = [record.rid for record in candidates]
    relations = table.record_relations(conn, ask.scope, rids)
    all_items = bundles.bundle(candidates, relations, settings.reconstruct_adjacency_seconds)
    items = all_items[: ask.count]
    walked = evidence.gather(conn, ask.scope, items, rids, ask.max_hops, ask.max_evidence)
    known, without = records.read(conn, ask.scope, [e.rid for item in walked.items for e in item])
    evidences = [[(e, known[e.rid]) for e in item if e.rid in known] for item in walked.items]
    # Evidence may bear a declared role towards what it stands beside, so relations are read again where there is any.
    if known:
        relations = table.record_relations(conn, ask.scope, [*rids, *known])

    sizes = layout.Sizes(
        settings.reconstruct_quote_chars,
        settings.reconstruct_full_quotes,
        settings.reconstruct_tail_quote_chars,
        settings.recall_preview_chars,
    )
    budget = layout.default_budget(len(items), sizes) if ask.budget is None else ask.budget
    wanted = Wanted(result.question.terms, [record.text for record in candidates])
    laid = layout.lay_out(
        [
            (item.head, [*item.records[1:], *(record for _, record in extra)])
            for item, extra in zip(items, evidences, strict=True)
        ],
        budget,
        sizes,
        wanted,
    )
    shown = [
        {
            "content": entry.pop("content"),
            "head_ref": item.head.ref,
            "claims": roles.claims(item.records, item.why, extra, relations),
            **entry,
        }
        for entry, item, extra in zip(laid.items, items, evidences, strict=False)
    ]
    answer: dict[str, Any] = {"items": shown, "effective_count": ask.count, "returned_count": len(shown)}
    reason = _shortfall(ask, result, shown, laid)
    if reason:
        answer["shortfall_reason"] = reason
    omitted = [
        name
        for name, left in (
            ("count", len(all_items) > len(items)),
            ("max_hops", "max_hops" in walked.omitted),
            ("max_evidence", "max_evidence" in walked.omitted),
            ("relations", "relations" in walked.omitted),
            ("budget", laid.heads_left_out + laid.excerpts_left_out > 0),
        )
        if left
    ]
    if omitted:
        answer["bounds"] = {"omitted": omitted}
    if result.left_out or without:
        answer["left_out"] = result.left_out + without
    if result.gate_fallback:
        answer["gate_fallback"] = True
    if ask.trace:
        answer["trace"] = _trace(result, found, others, all_items, walked, laid, budget)
    return answer


def _shortfall(ask: Ask, result: Result, shown: list[dict], laid: layout.Layout) -> str | None:
    """Return why fewer items came back than the answer may hold, or None when none are missing."""
    if len(shown) >= ask.count:
        return None
    if result.gate_fallback or (not shown and result.considered):
        return "below_quality_threshold"
    if not shown:
        return "no_relevant_evidence"
    return "budget_exhausted" if laid.heads_left_out else "exhausted_candidates"


def _trace(
    result: Result,
    found: list[Name],
    others: tuple[str, ...],
    items: list[bundles.Bundle],
    walked: evidence.Found,
    laid: layout.Layout,
    budget: int,
) -> dict:
    return {
        "recall": result.trace,
        "names": [{"entity": name.entity_id, "name": name.written} for name in found],
        "also_searched": list(others),
        "bundles": [
            {
                "refs": [record.ref for record in item.records],
                "links": [{"from": ref_of(k.first), "to": ref_of(k.second), "why": k.why} for k in item.links],
            }
            for item in items
        ],
        "evidence": [[{"ref": ref_of(e.rid), "why": e.why, "hops": e.hops} for e in item] for item in walked.items],
        "budget": {
            "characters": budget,
            "used": laid.used,
            "heads_left_out": laid.heads_left_out,
            "excerpts_left_out": laid.excerpts_left_out,
        },
    }
