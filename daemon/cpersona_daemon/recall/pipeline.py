"""A recall from question to rows. ``PLANS`` says what is done in which order; one loop does it.

The library returns whole rows, best first; reversing, previews and caps belong to ``rpc``. Everything that decides runs
inside one read snapshot on a reader thread; embedding the question happens before it. A reranker is asked between two:
the first finds what it is asked about, the second begins anew with what it said.

Contract: recall.stages, recall.order, rerank.asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import apsw

from ..context import Context
from ..embedding.turns import QUESTION
from ..model.identity import Embedded
from ..model.kinds import Rid
from ..shared.settings import Settings
from ..text import operators
from ..text.question import Question
from . import account, elsewhere, prepare, reranking
from .advice import advice_of
from .hydrate import hydrate
from .run import Run
from .stages.age import penalise, weigh_age
from .stages.autocut import cut_confidences, cut_cosines
from .stages.confidence import by_confidence
from .stages.fold import fold, look_behind
from .stages.fuse import fuse_ranks, fuse_scores, line_up
from .stages.gate import gate, rescue, seat_profile
from .stages.limit import limit
from .stages.mark import backfill_cosines, mark_identified, mark_vectorless
from .stages.quoted import as_stored, quoted_first
from .stages.rerank import rerank, texts_of
from .stages.reserve import reserve
from .stages.retrieve import list_recent, retrieve
from .stages.tails import cut_tail
from .stages.times import order_times
from .stages.versions import order_versions
from .stages.weigh import weigh
from .types import BLEND, Candidate, Query, Result
from .why_not import best_missed

Stage = Callable[[Run, list[Candidate]], list[Candidate]]

BLANK, WORDLESS, LEGACY = "blank", "wordless", "legacy "
# What follows once the rows have a score that they are ordered by.
_IN_FUSED_ORDER: tuple[Stage, ...] = (penalise, seat_profile, gate, weigh_age, order_versions, limit)
_IN_CONFIDENCE_ORDER: tuple[Stage, ...] = (penalise, by_confidence, gate, rescue, cut_confidences, limit)

PLANS: dict[str, tuple[Stage, ...]] = {
    "blend": (
        retrieve,
        weigh,
        look_behind,
        rerank,
        penalise,
        seat_profile,
        gate,
        cut_tail,
        weigh_age,
        order_versions,
        order_times,
        quoted_first,
        fold,
        limit,
    ),
    "rrf": (retrieve, fuse_ranks, mark_vectorless, mark_identified, *_IN_FUSED_ORDER, reserve),
    "rsf": (retrieve, fuse_scores, *_IN_FUSED_ORDER, reserve),
    "cascade": (retrieve, line_up, penalise, seat_profile, gate, cut_cosines, order_versions, limit, reserve),
    BLANK: (list_recent, line_up, penalise, seat_profile, gate, limit),
    # What has no word has no meaning either: a blend finds nothing, the others know rows by their characters.
    WORDLESS: (gate, limit),
    LEGACY + "blend": (retrieve, weigh, backfill_cosines, *_IN_CONFIDENCE_ORDER),
    LEGACY + "rrf": (retrieve, fuse_ranks, backfill_cosines, *_IN_CONFIDENCE_ORDER, reserve),
    LEGACY + "rsf": (retrieve, fuse_scores, backfill_cosines, *_IN_CONFIDENCE_ORDER, reserve),
    LEGACY + "cascade": (retrieve, line_up, backfill_cosines, *_IN_CONFIDENCE_ORDER, reserve),
    LEGACY + BLANK: (list_recent, line_up, *_IN_CONFIDENCE_ORDER),
    LEGACY + WORDLESS: _IN_CONFIDENCE_ORDER,
}


def plan_of(settings: Settings, question: Question) -> str:
    """Return the name of the plan that a question is answered by."""
    ordering = LEGACY if settings.confidence_enabled and settings.confidence_ordering == "legacy" else ""
    if question.blank:
        return ordering + BLANK
    return ordering + (WORDLESS if question.wordless and settings.recall_mode == "blend" else settings.recall_mode)


def question_of(settings: Settings, query: Query) -> Question:
    """Return the question as its mode reads it: a blend knows the other spellings of an identifier, and what quotes
    and hyphens say. In the other modes the text is a contract.
    """
    if settings.recall_mode != BLEND:
        return Question(query.text, query.also_lexical)
    return Question(query.text, query.also_lexical, with_spellings=True, meant=operators.read(query.text))


async def recall(ctx: Context, settings: Settings, query: Query) -> Result:
    """Return the rows that answer a query, best first. An empty result is an answer, not an error."""
    question = question_of(settings, query)
    if query.limit <= 0:
        return Result(question)
    made, lack = None, None
    # What is embedded in the background waits until the rows are read.
    with ctx.embedding.turns.claim(QUESTION) as turn:
        if not question.blank and not question.wordless:
            made, lack = await prepare.embed_question(ctx, query, question, turn)
        reader = await elsewhere.reader(ctx, prepare.run_of(ctx, settings, query, question, made))
        said = reranking.Reranked({})
        if ctx.reranker is not None and rerank in PLANS[plan_of(settings, question)]:
            texts = await reader.read(_for_the_reranker)
            turn.give_up()
            said = await reranking.ask(ctx, question, texts)
            turn.take()
            reader.make = partial(reader.make, reranked=said.scores)
        result = await reader.read(answer)
    reader.tell(result, settings.degraded_advisory)
    if lack is not None:
        if settings.degraded_advisory:
            result.advice.append(lack.advice)
        result.failure = lack.failure
    if said.advice is not None and settings.degraded_advisory:
        result.advice.append(said.advice)
    return result


async def candidates(ctx: Context, settings: Settings, query: Query, made: Embedded | None = None) -> list[Candidate]:
    """Return what a recall would put before the gate: retrieved, fused, weighed. ``made`` spares embedding the
    question.
    """
    question = question_of(settings, query)
    if made is None and not question.blank and not question.wordless:
        with ctx.embedding.turns.claim(QUESTION) as turn:
            made, _ = await prepare.embed_question(ctx, query, question, turn)
    make = prepare.run_of(ctx, settings, replace(query, fold=False), question, made)
    reader = await elsewhere.reader(ctx, make)
    return await reader.read(lambda conn, make: _before_the_gate(as_stored(make(conn))))


def answer(conn: apsw.Connection, make: Callable[[apsw.Connection], Run]) -> Result:
    """Run a recall inside its read snapshot; ``make`` makes the run of a connection."""
    run = as_stored(make(conn))
    if run.query.also_lexical:
        run.as_written = _before_the_gate(run.without_other_names())
    final = _walk(run, PLANS[plan_of(run.settings, run.question)])
    noted = run.account
    result = Result(
        run.question,
        absent=run.absent,
        not_held=noted.not_held,
        gate_fallback=run.rescued,
        considered=len(noted.considered),
        size=run.size or 0,
        gated=sum(not c.is_profile for c in noted.below),
    )
    result.rows, result.left_out = hydrate(run, final)
    result.advice = advice_of(run, bool(result.rows))
    if not result.rows:
        result.best_missed = best_missed(run)
    if run.query.scope.as_of:
        result.shown = run.rows.shown
    if run.query.accounted:
        result.trace = account.draw(run)
    return result


def _walk(run: Run, stages: Sequence[Stage]) -> list[Candidate]:
    rows: list[Candidate] = []
    for stage in stages:
        rows = stage(run, rows)
    return rows


def _for_the_reranker(conn: apsw.Connection, make: Callable[[apsw.Connection], Run]) -> dict[Rid, str]:
    run = as_stored(make(conn))
    return texts_of(run, _before(rerank, run))


def _before_the_gate(run: Run) -> list[Candidate]:
    return _before(gate, run)


def _before(stage: Stage, run: Run) -> list[Candidate]:
    stages = PLANS[plan_of(run.settings, run.question)]
    return _walk(run, stages[: stages.index(stage)])
