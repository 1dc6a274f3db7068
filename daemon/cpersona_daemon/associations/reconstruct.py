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
from . import bundles, evidence, layout, records
from .items import Item, with_evidence
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
    """Return the answer to an ask and what it must say about vectors.

    ``count`` decides how many items are shown, not which.
    """
    if ask.count == 0:
        return {"items": [], "effective_count": 0, "returned_count": 0, "shortfall_reason": "count_zero"}, []
    names = await ctx.db.read(_names_in_question, ask)
    result = await _recalled(ctx, settings, ask, names)
    return await ctx.db.read(_compose, settings, ask, result, names), result.advice


async def _recalled(ctx: Context, settings: Settings, ask: Ask, names: _Names) -> Result:
    """Return what an ordinary recall finds, other names of what the question names included."""
    query = Query(
        text=ask.text,
        scope=ask.scope,
        limit=ask.top_k,
        deep=ask.deep,
        also_lexical=names.others,
        wait_seconds=ask.wait_seconds,
        trace=ask.trace,
    )
    return await recall(ctx, settings, query)


@dataclass(frozen=True, slots=True)
class _Names:
    """The declared names that a question holds, and the other names of what they name."""

    found: tuple[Name, ...] = ()
    others: tuple[str, ...] = ()


def _names_in_question(conn: apsw.Connection, ask: Ask) -> _Names:
    text = as_name(ask.text)
    found = find_names(text, table.names_within(conn, ask.scope, text)) if text else []
    if not found:
        return _Names()
    entities = sorted({name.entity_id for name in found})
    return _Names(tuple(found), other_names(found, table.names_of(conn, entities)))


def _compose(conn: apsw.Connection, settings: Settings, ask: Ask, result: Result, names: _Names) -> dict:
    """Return the answer: bundles of what was recalled, each with its evidence, its claims and its quotations."""
    candidates = [records.of_row(row.record) for row in result.rows if row.record is not None]
    rids = [record.rid for record in candidates]
    relations = table.record_relations(conn, ask.scope, rids)
    found = bundles.bundle(candidates, relations, settings.reconstruct_adjacency_seconds)
    chosen = found[: ask.count]
    gathered = evidence.gather(conn, ask.scope, chosen, rids, ask.max_hops, ask.max_evidence)
    items, without = with_evidence(conn, ask.scope, chosen, gathered.items)
    # Evidence may bear a declared role towards what it stands beside, so relations are read again where there is any.
    if beside := [record.rid for item in items for _, record in item.evidence]:
        relations = table.record_relations(conn, ask.scope, [*rids, *beside])

    wanted = Wanted(result.question.terms, [record.text for record in candidates])
    laid = _laid_out(settings, ask, items, wanted)
    shown = [item.shown(quoted, relations) for item, quoted in zip(items, laid.items, strict=False)]

    told = {
        "shortfall_reason": _shortfall(ask, result, shown, laid),
        "bounds": _bounds(len(found) > len(items), gathered, laid),
        "left_out": result.left_out + without,
        "gate_fallback": result.gate_fallback,
    }
    answer: dict[str, Any] = {"items": shown, "effective_count": ask.count, "returned_count": len(shown)}
    answer |= {name: value for name, value in told.items() if value}
    if ask.trace:
        answer["trace"] = _trace(result, names, found, gathered, laid)
    return answer


def _laid_out(settings: Settings, ask: Ask, items: list[Item], wanted: Wanted) -> layout.Layout:
    """Quote what fits into the budget of the call."""
    sizes = layout.Sizes(
        settings.reconstruct_quote_chars,
        settings.reconstruct_full_quotes,
        settings.reconstruct_tail_quote_chars,
        settings.recall_preview_chars,
    )
    budget = layout.default_budget(len(items), sizes) if ask.budget is None else ask.budget
    return layout.lay_out([item.texts for item in items], budget, sizes, wanted)


def _bounds(more_items: bool, gathered: evidence.Gathered, laid: layout.Layout) -> dict[str, list[str]]:
    """Return `{omitted}`, the bounds that left something out; {} where none did."""
    bounds = (
        ("count", more_items),
        *((name, name in gathered.omitted) for name in ("max_hops", "max_evidence", "relations")),
        ("budget", laid.heads_left_out + laid.excerpts_left_out > 0),
    )
    omitted = [name for name, left_out in bounds if left_out]
    return {"omitted": omitted} if omitted else {}


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
    result: Result, names: _Names, found: list[bundles.Bundle], gathered: evidence.Gathered, laid: layout.Layout
) -> dict:
    return {
        "recall": result.trace,
        "names": [{"entity": name.entity_id, "name": name.written} for name in names.found],
        "also_searched": list(names.others),
        "bundles": [
            {
                "refs": [record.ref for record in item.records],
                "links": [{"from": ref_of(k.first), "to": ref_of(k.second), "why": k.why} for k in item.links],
            }
            for item in found
        ],
        "evidence": [[{"ref": ref_of(e.rid), "why": e.why, "hops": e.hops} for e in item] for item in gathered.items],
        "budget": {
            "characters": laid.budget,
            "used": laid.used,
            "heads_left_out": laid.heads_left_out,
            "excerpts_left_out": laid.excerpts_left_out,
        },
    }
