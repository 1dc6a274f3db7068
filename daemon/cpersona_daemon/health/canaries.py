"""Running saved questions: does the row that must come back still come back, and what does a calibration change?

Questions go through the live pipeline a few at a time and count as no recall. A row that is gone is told apart from one
that recall no longer finds; both are losses.

Contract: canary.run, calibration.rollback.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from .. import __version__
from ..calibration.in_force import gates_in_force
from ..calibration.measured import Measured, scoring_version
from ..context import Context
from ..errors import CPersonaError, EmbeddingFailure
from ..model.scope import Scope
from ..recall.pipeline import recall
from ..recall.types import Query, Result
from ..shared.settings import Settings
from ..storage import canaries as rows
from ..storage import records
from ..storage.canaries import FOUND, GONE, LOST, Canary

log = logging.getLogger("cpersona.canaries")

LIMIT = 10  # the rows of an ordinary recall: a canary must be among them
AT_ONCE = 2  # of four readers: the others stay free for requests
EVERY_ROW, SETTLING_SECONDS = 2**31, 600.0  # rows that wait for their vector are waited for: they are not lost yet
WAIT_SECONDS = 30.0  # in the background nobody waits, and a loading model must not look like a loss


def query_of(canary: Canary, wait_seconds: float = WAIT_SECONDS) -> Query:
    scope = Scope(canary.agent_id, canary.project_id, canary.channel, "")
    return Query(canary.query, scope, LIMIT, wait_seconds=wait_seconds, fold=False)


async def run(ctx: Context, settings: Settings, agent_id: str = "") -> list[tuple[Canary, str, int | None]]:
    """Run the canaries of an agent ('' = all), keep how each went, and return (canary, state, rank) in their order.

    Raises EmbeddingFailure, with nothing kept, when a question could not be embedded: found by words alone, a row that
    does not come back is not lost.
    """
    saved = await ctx.db.read(rows.listed, agent_id)
    if not saved:
        return []
    results = await _asked(ctx, [(query_of(canary), settings) for canary in saved])
    failures = [result.failure for result in results if result.failure is not None]
    if failures:
        raise EmbeddingFailure(
            f"{len(failures)} of {len(saved)} saved questions could not be embedded,"
            f" so nothing is known of their rows: {failures[0]}"
        )
    answers = [_refs(result) for result in results]
    outcomes: list[tuple[Canary, str, int | None]] = []
    for canary, refs in zip(saved, answers, strict=True):
        if canary.ref in refs:
            outcomes.append((canary, FOUND, refs.index(canary.ref) + 1))
        else:
            there = await ctx.db.read(records.owns, canary.agent_id, (canary.kind, canary.record_id))
            outcomes.append((canary, LOST if there else GONE, None))
    await ctx.db.write(lambda tx: rows.record(tx, [(canary.id, state, rank) for canary, state, rank in outcomes]))
    return outcomes


async def _asked(ctx: Context, questions: Sequence[tuple[Query, Settings]]) -> list[Result]:
    """Return what each question finds."""
    free = asyncio.Semaphore(AT_ONCE)

    async def ask(query: Query, settings: Settings) -> Result:
        async with free:
            return await recall(ctx, settings, query)

    return list(await asyncio.gather(*(ask(*question) for question in questions)))


def _refs(result: Result) -> list[str]:
    """Return the refs of what was found, best first."""
    return [row.ref for row in result.rows if row.ref]


# -- what a calibration changes


def comparison(ctx: Context, settings: Settings, agent_id: str) -> Callable[[Measured, Measured], Awaitable[dict]]:
    """Return what `calibrate` asks before it keeps anything: saved and recent questions under both calibrations."""

    async def compare(before: Measured, after: Measured) -> dict:
        saved = await ctx.db.read(rows.listed, agent_id)
        canaries = [(query_of(canary), settings) for canary in saved]
        questions = [*canaries, *ctx.recent.of(agent_id)]
        old, new = [await _asked(ctx.under(held), questions) for held in (before, after)]
        # One that lacked its vector under either calibration tells nothing about the calibrations.
        told = [
            None if was.failure or now.failure else (_refs(was), _refs(now)) for was, now in zip(old, new, strict=True)
        ]
        answer: dict[str, Any] = {
            "old_gates": gates_in_force(ctx.under(before), settings, agent_id),
            "canaries": _fared(saved, told[: len(saved)]),
            "recent_recalls": _moved(told[len(saved) :]),
        }
        if None in told:
            answer["not_embedded"] = told.count(None)
        return answer

    return compare


Told = tuple[list[str], list[str]] | None  # the refs of one question's rows under either calibration


def _fared(saved: Sequence[Canary], told: Sequence[Told]) -> dict[str, Any]:
    """Return what became of the canaries' rows: how many are found in one answer and not in the other."""
    held = [
        (canary, canary.ref in pair[0], canary.ref in pair[1])
        for canary, pair in zip(saved, told, strict=True)
        if pair is not None
    ]
    return {
        "total": len(held),
        "changed": sum(was != now for _, was, now in held),
        "lost": sum(not now for *_, now in held),
        "newly_lost": [{"id": canary.id, "ref": canary.ref} for canary, was, now in held if was and not now],
    }


def _moved(told: Sequence[Told]) -> dict[str, int]:
    pairs = [pair for pair in told if pair is not None]
    return {"total": len(pairs), "changed": sum(was != now for was, now in pairs)}


# -- by itself


async def run_after(ctx: Context, what: str, agent_id: str = "") -> None:
    """Run the canaries of an agent ('' = all) after something that may have moved them; for the background.

    Raises only CancelledError.
    """
    try:
        if not await ctx.db.read(rows.listed, agent_id):
            return
        with ctx.status.at_work("canaries"):
            await ctx.backlog.wait_until_drained(EVERY_ROW, SETTLING_SECONDS)
            await ctx.embedding.learn(WAIT_SECONDS)
            ran_with = stamp(ctx)  # told before: a service that is another model by the end has them run again
            outcomes = await run(ctx, ctx.settings, agent_id)
            if not agent_id:
                await ctx.db.write(lambda tx: rows.keep_ran_with(tx, ran_with))
    except CPersonaError as error:
        log.warning("the canaries could not run after %s: %s", what, error)
        return
    lost = sum(state != FOUND for _, state, _ in outcomes)
    if lost:
        log.warning("%d of %d canaries are lost after %s; `cpersona canary list` names them", lost, len(outcomes), what)


async def run_if_changed(ctx: Context) -> None:
    """Run all canaries when program, model or scoring are others than at their last run. Raises only CancelledError."""
    try:
        if not await ctx.db.read(rows.listed):
            return
        if ctx.embedding.enabled and not ctx.embedding.model.identity:
            await ctx.embedding.embed_documents(
                ["canary"], WAIT_SECONDS
            )  # a service tells its model only with an answer
        if await ctx.db.read(rows.ran_with) == stamp(ctx):
            return
    except CPersonaError as error:
        log.warning("the canaries could not be looked at: %s", error)
        return
    await run_after(ctx, "a change of version, model or scoring")


def stamp(ctx: Context) -> str:
    """Return what recall's answers depend on besides the rows."""
    return f"{__version__} {ctx.embedding.model.identity} {scoring_version(ctx.settings)} {ctx.settings.recall_mode}"
