"""Handlers of recall and recall_with_context: clamp, ask the library, reverse, preview.

Contract: recall.limit, recall.order, recall.uncounted, calibration.precision, preview.prefix, preview.budget,
passages.best.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ...calibration import growth
from ...calibration.measured import BETAS
from ...errors import InvalidParams, ReadOnly, StorageFailure
from ...model.kinds import MEMORY, parse_ref, ref_of
from ...recall.conversation import merge
from ...recall.exclusion import MAX_ENTRIES
from ...recall.pipeline import recall as recall_library
from ...recall.types import BLEND, Query, Result, Row
from ...storage import memories
from .. import advisories
from ..common import QUESTION_WAIT_SECONDS, advise_of_history, bounded, check_question, scope_of
from ..preview import FULL_CONTENT_BUDGET, trim
from ..registry import Call, Handler

DEFAULT_LIMIT, MAX_LIMIT = 10, 100
MAX_FOLDED_REFS = 20  # as many as get_contents takes


Limit = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "integer", "minimum": 0, "maximum": MAX_LIMIT})]


class RecallParams(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    agent_id: str
    query: str = ""
    limit: Limit = None
    project_id: str | None = None
    channel: str | None = None
    source_id: str | None = None
    as_of: str | None = None
    since: str | None = None
    until: str | None = None
    exclude_contents: list[str] | None = None
    full_content: bool = False
    passages: bool = False
    deep: bool = False
    no_wait: bool = False
    trace: bool = False
    absolute: bool = False
    why_not: str | None = None
    precision: str | None = None
    uncounted: bool = False
    session_key: str = ""


class ContextParams(RecallParams, kw_only=True):
    external_context: list[dict] = []


def _query(call: Call, exclude: list[str]) -> Query:
    p = call.params
    check_question(p.query)
    if len(exclude) > MAX_ENTRIES:
        raise InvalidParams(f"exclude_contents holds {len(exclude)} entries, at most {MAX_ENTRIES} are taken")
    why_not = None
    if p.why_not is not None:
        why_not = parse_ref(p.why_not)
        if why_not is None:
            raise InvalidParams(f"why_not names a row as mem:N or ep:N, not {p.why_not!r}")
    return Query(
        text=p.query,
        scope=scope_of(p),
        limit=bounded(p.limit, DEFAULT_LIMIT, 0, MAX_LIMIT),
        deep=p.deep,
        exclude=tuple(exclude),
        wait_seconds=0.0 if p.no_wait else QUESTION_WAIT_SECONDS,
        trace=p.trace,
        why_not=why_not,
        absolute=p.absolute,
        beta=None if p.precision is None else _beta(call, p.precision),
    )


def _beta(call: Call, precision: str) -> float:
    """Return the precision of one recall as a number. Only a blend's gate is worked out while it is asked."""
    if precision not in BETAS:
        raise InvalidParams(f"precision is one of {', '.join(BETAS)}, not {precision!r}")
    if call.settings.recall_mode != BLEND:
        raise InvalidParams(
            f"the gates of {call.settings.recall_mode} are measured for a precision; only a blend takes one with a"
            " recall"
        )
    return BETAS[precision]


async def _recalled(call: Call, query: Query) -> Result:
    """Ask the library, and count the recall where the contract says so."""
    result = await recall_library(call.ctx, call.settings, query)
    counts = not (call.params.uncounted or call.ctx.pauses.is_paused(call.params.session_key))
    if counts:
        call.ctx.recent.add(query, call.settings)
        growth.noticed(call.ctx, query.scope.agent_id, result.size)
    if call.settings.confidence_enabled and not query.deep and not result.gate_fallback and counts:
        ids = [row.candidate.rid[1] for row in result.rows if row.candidate.rid[0] == MEMORY]
        if ids:
            try:
                await call.ctx.db.write(lambda tx: memories.bump_recalls(tx, ids))
            except (StorageFailure, ReadOnly) as error:  # who asks is answered all the same
                call.ctx.status.warn(f"recalls are not counted: {error}")
    return result


async def recall(call: Call) -> dict:
    """Answer the best rows in ascending order: the last is the best."""
    query = _query(call, call.params.exclude_contents or [])
    result = await _recalled(call, query)
    messages = [message(row) for row in reversed(result.rows)]
    return await _advised(call, query, result, _answer(call, result, messages))


async def recall_with_context(call: Call) -> dict:
    """Answer the recalled rows and the caller's conversation merged by instant: undated ones first, then the oldest."""
    entries = call.params.external_context
    said = [text for e in entries if isinstance(text := e.get("content"), str) and text.strip()]
    query = _query(call, [*(call.params.exclude_contents or []), *said])
    result = await _recalled(call, query)
    messages, only_filtered = merge([message(row) for row in reversed(result.rows)], entries)
    answer = _answer(call, result, messages)
    if only_filtered:
        answer["context_entries_not_returned"] = only_filtered
    return await _advised(call, query, result, answer)


async def _advised(call: Call, query: Query, result: Result, answer: dict) -> dict:
    """Add what makes an answer weaker than it looks. A blank question lists memories alone."""
    asked = bool(query.text.strip())
    kinds = query.scope.kinds if asked else (MEMORY,)
    return await advise_of_history(call, answer, query.scope, kinds, profile=asked, shown=result.shown)


def _answer(call: Call, result: Result, messages: list[dict]) -> dict:
    answer: dict[str, Any] = {"messages": messages}
    if trim(messages, call.settings.recall_preview_chars, call.params.full_content, call.params.passages):
        answer["full_content_budget_chars"] = FULL_CONTENT_BUDGET
    if result.question.without:
        answer["without"] = list(result.question.meant.without)
    if result.left_out:
        answer["left_out"] = result.left_out
    if result.absent:
        answer["absent"] = list(result.absent)
    if result.gate_fallback:
        answer["gate_fallback"] = True
    for advice in result.advice:
        advisories.add(answer, *advice)
    if call.params.deep:
        answer["depth"] = "deep"
    if not result.rows:
        answer |= {"considered": result.considered, "gated": result.gated}
        if result.wordless:
            answer["no_words"] = True
        if result.not_held:
            answer["not_held"] = list(result.not_held)
        if result.best_missed is not None:
            answer["best_missed"] = result.best_missed
    if result.trace is not None:
        answer["trace"] = result.trace
    return answer


def message(row: Row) -> dict:
    """Return a row in the answer's shape, whole; optional keys are absent where they do not apply."""
    out: dict[str, Any] = {"content": row.text, "source": row.source}
    if row.ref:
        out["ref"] = row.ref
    if row.timestamp:
        out["timestamp"] = row.timestamp
    if row.msg_id:
        out["id"] = row.msg_id
    if row.confidence is not None:
        out["confidence"] = row.confidence
    if folded := row.candidate.folded:
        out["folded"] = {"count": len(folded), "refs": [ref_of(rid) for rid in folded[:MAX_FOLDED_REFS]]}
    if row.match_reason is not None:
        out["match_reason"] = row.match_reason
    if row.passage is not None:
        out["passage"] = {"start": row.passage.start, "end": row.passage.end}
    if row.changed_since:
        out["changed_since"] = True
    return out


HANDLERS = {"recall": Handler(RecallParams, recall), "recall_with_context": Handler(ContextParams, recall_with_context)}
