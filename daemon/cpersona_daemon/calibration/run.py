"""Measuring a store: its similarity threshold, and a gate for every signal that the recall mode compares.

Reads on reader threads, arithmetic on worker threads, the queries through the live pipeline a few at a time:
the write lock is never held and other requests are answered meanwhile.

Contract: calibration.sample, calibration.gates, calibration.precision.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import apsw
import numpy as np

from ..context import Context
from ..errors import CPersonaError, EmbeddingFailure, Refused
from ..model.identity import Embedded, VectorModel
from ..model.kinds import MEMORY, Rid
from ..model.scope import Scope
from ..model.signals import LEGACY, Signal, compared_in
from ..recall.scoring import blend
from ..recall.types import Candidate, Query
from ..shared.settings import Settings
from ..storage import calibration as rows
from ..storage import memories
from ..storage.calibration import Sampled
from . import measure, noise
from .asking import ask, instants_of, near
from .file import BALANCED, BETAS, EVERY_AGENT, Measured, Threshold, scoring_version

SEPARATION, PERCENTILE, ZSCORE = "separation", "percentile", "zscore"
METHODS = (SEPARATION, PERCENTILE, ZSCORE)
LEAST_SAMPLE = 10
LARGEST_SAMPLE = 5000
QUERY_DEPTH = 20
QUERY_CHARS = 48  # the opening words of a memory, as long as a question: whole memories ask for forty words each
POOL = 2  # the draws share this many times the queries of one, which bounds the work in a large store
Compare = Callable[[Measured, Measured], Awaitable[dict]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure and how. ``agent_id`` '' measures one threshold over all agents, and no gates."""

    agent_id: str = EVERY_AGENT
    sample_size: int = 200
    method: str = SEPARATION
    percentile: float = 0.95
    z_factor: float = 1.0

    def check(self) -> None:
        """Raise Refused for a value out of range."""
        if self.method not in METHODS:
            raise Refused(f"method is one of {', '.join(METHODS)}, not {self.method!r}")
        if not 1 <= self.sample_size <= LARGEST_SAMPLE:
            raise Refused(f"sample_size is a number from 1 to {LARGEST_SAMPLE}, not {self.sample_size}")
        if not 0 <= self.percentile <= 1:
            raise Refused(f"percentile is a number from 0 to 1, not {self.percentile}")
        if not math.isfinite(self.z_factor):
            raise Refused("z_factor is not a finite number")


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What one read of the store brought: the sample, its pairs in time, the draws of queries and their texts, and how many memories there are."""

    sample: list[Sampled]
    pairs: list[tuple[Sampled, Sampled]]
    draws: list[list[Sampled]]
    texts: dict[int, str]
    rows: int = 0


async def calibrate(
    ctx: Context,
    settings: Settings,
    plan: Plan,
    *,
    dry_run: bool = False,
    beta: Callable[[Measured], Measured] | None = None,
    compare: Compare | None = None,
) -> dict:
    """Measure a threshold, with an agent its gates too, keep both and return the answer of `calibrate_threshold`.

    ``beta`` changes the agent's precision together with what is measured under it. ``compare(before, after)`` is asked what
    changes, before anything is kept; its map joins the answer. With ``dry_run`` nothing is kept.
    Raises Refused when there is too little to measure, and StorageFailure; both leave everything as it was.
    """
    plan.check()
    async with ctx.calibration.turn:
        with ctx.status.at_work("calibration"):
            return await _calibrate(ctx, settings, plan, dry_run, beta or (lambda held: held), compare)


async def _calibrate(
    ctx: Context,
    settings: Settings,
    plan: Plan,
    dry_run: bool,
    beta: Callable[[Measured], Measured],
    compare: Compare | None,
) -> dict:
    agent, book = plan.agent_id, ctx.calibration
    forgets = book.forgets(agent)
    # Told once: a service may be another model by the time that its former vectors are measured.
    at_work = ctx.embedding.model
    drawn = await ctx.db.read(_draw, plan, at_work, settings)
    if len(drawn.sample) < LEAST_SAMPLE:
        whose = f"agent {agent!r} has" if agent else "the store has"
        raise Refused(f"{whose} {len(drawn.sample)} embedded memories to sample; a calibration needs {LEAST_SAMPLE}")
    value, proxy = await asyncio.to_thread(_threshold, drawn, plan, settings)
    threshold = Threshold(value, plan.method, plan.sample_size, plan.percentile, plan.z_factor)
    model, version = at_work.identity, scoring_version(ctx.settings)
    dimension = at_work.dimension or len(drawn.sample[0].vector)

    def measured(held: Measured) -> Measured:
        return beta(held.for_model(model, dimension, version)).with_threshold(agent, threshold, drawn.rows)

    # The queries run against the threshold just measured, not the one in force: the same store then gives the same gates.
    trial = measured(book.current)
    signals = LEGACY if _legacy(settings) else compared_in(settings.recall_mode)
    gates = await _gates(ctx.under(trial), settings, agent, signals, drawn, model) if agent else {}

    def keep(held: Measured) -> Measured:
        if book.forgets(agent) != forgets:
            raise Refused(f"the data of agent {agent!r} was deleted meanwhile; nothing was kept")
        changed = measured(held)
        return changed.with_gates(agent, settings.recall_mode, signals, gates) if agent else changed

    answer = {
        "ok": True,
        "scope": "per_agent" if agent else "global",
        "agent_id": agent,
        "method": plan.method,
        "sampled_embeddings": len(drawn.sample),
        "old_threshold": in_force(ctx, settings, agent),
        "new_threshold": value,
        "gates": gates,
    }
    if proxy is not None:
        answer["proxy_source"] = proxy
    if compare is not None:
        before = book.current
        answer |= await compare(before, keep(before))
    if dry_run:
        answer["dry_run"] = True
    else:
        await asyncio.to_thread(book.update, keep)
    return answer


def _legacy(settings: Settings) -> bool:
    return settings.confidence_enabled and settings.confidence_ordering == "legacy"


def in_force(ctx: Context, settings: Settings, agent: str) -> float:
    """Return the threshold measured so far, else the one declared by the embedder, else the setting."""
    found = ctx.calibration.threshold(agent, ctx.embedding.model.identity)
    if found is not None:
        return found
    profile = ctx.embedding.profile
    return (
        settings.vector_min_similarity
        if profile is None or settings.is_set("vector_min_similarity")
        else profile.min_similarity
    )


def gates_in_force(ctx: Context, settings: Settings, agent: str) -> dict[str, float]:
    """Return an agent's gates by signal: what was measured, and the gate that a blend ships with where none was."""
    mode, book = settings.recall_mode, ctx.calibration
    shipped = {"blend": blend.GATE} if agent and mode == "blend" and not _legacy(settings) else {}
    found = {
        signal: book.gate(agent, mode, signal, ctx.embedding.model.identity) for signal in (*compared_in(mode), *LEGACY)
    }
    return shipped | {signal.value: value for signal, value in found.items() if value is not None}


def _draw(conn: apsw.Connection, plan: Plan, fit: VectorModel, settings: Settings) -> _Drawn:
    """Read everything that a calibration looks at in one snapshot. The seed follows from the agent and its row count."""
    agent = plan.agent_id
    ids = rows.memory_ids(conn, agent)
    sample = rows.sample(conn, ids, plan.sample_size, fit, agent, len(ids), "threshold")
    if len(sample) < LEAST_SAMPLE:
        return _Drawn(sample, [], [], {}, len(ids))
    # The first draw settles the width where the embedder does not know it yet.
    fit = VectorModel(fit.identity, len(sample[0].vector))
    window = settings.calibrate_temporal_window_min * 60
    pairs = rows.next_in_time(conn, sample, window) if plan.method == SEPARATION else []
    pairs = [(a, b) for a, b in pairs if fit.fits(b.model, len(b.vector))]
    draws: list[list[Sampled]] = []
    if agent:
        queries = settings.fused_gate_sample_queries
        pool = {row.id: row for row in rows.sample(conn, ids, POOL * queries, fit, agent, len(ids), "queries")}
        numbers = np.array(sorted(pool), np.int64)
        draws = [
            [pool[i] for i in rows.shuffled(numbers, agent, len(ids), "draw", n)[:queries].tolist()]
            for n in range(settings.fused_gate_calibration_draws)
        ]
    return _Drawn(
        sample, pairs, draws, rows.contents(conn, sorted({row.id for draw in draws for row in draw})), len(ids)
    )


def _threshold(drawn: _Drawn, plan: Plan, settings: Settings) -> tuple[float, str | None]:
    """Return the threshold and, for the separation, where its positives come from. Raises Refused above 1.0."""
    vectors = np.stack([row.vector for row in drawn.sample])
    null, proxy = measure.pair_similarities(vectors), None
    if plan.method == PERCENTILE:
        value = measure.quantile(null, plan.percentile)
    elif plan.method == ZSCORE:
        value = measure.zscore(null, plan.z_factor)
    else:
        proxy = measure.TEMPORAL if len(drawn.pairs) >= measure.LEAST_POSITIVE_PAIRS else measure.NEAREST
        if proxy == measure.TEMPORAL:
            positive = np.array([a.vector.astype(np.float64) @ b.vector for a, b in drawn.pairs])
        else:
            positive = measure.nearest_similarities(vectors)
        value = measure.separation(null, positive, BETAS[BALANCED])
    value = round(max(value, settings.calibrate_floor), 4)
    if value > 1.0:
        raise Refused(f"the measured threshold {value} is above 1.0, the largest similarity there is; nothing was kept")
    return value, proxy


async def _gates(
    ctx: Context, settings: Settings, agent: str, signals: tuple[Signal, ...], drawn: _Drawn, model: str
) -> dict[str, float]:
    """Return the gate of each signal that has scores enough, by running the drawn memories as queries."""
    if Signal.BLEND in signals:
        openings = [(row, opening_words(drawn.texts.get(row.id, ""))) for row in drawn.draws[0]]
        measured = await noise.gate_of(ctx, settings, agent, openings, drawn.rows, model)
        return {} if measured is None else {"blend": measured}
    asked = {row.id: row for draw in drawn.draws for row in draw if drawn.texts.get(row.id, "").strip()}
    # The vector that the row was stored with is the query's vector, so nothing is embedded again.
    # Without an embedder the live pipeline has no vectors, and neither has the measurement.
    queries = [
        (
            Query(opening_words(drawn.texts[row.id]), Scope(agent), QUERY_DEPTH),
            Embedded(row.vector, model) if ctx.embedding.enabled else None,
        )
        for row in asked.values()
    ]
    found = await ask(ctx, settings, queries)
    instants = await instants_of(ctx, found)
    return await asyncio.to_thread(
        _sweep,
        drawn.draws,
        dict(zip(asked, found, strict=True)),
        instants,
        signals,
        ctx.calibration.beta(agent),
        settings,
    )


def opening_words(text: str) -> str:
    """Return the head of a text, cut between words where there are words."""
    head = text.strip()[: QUERY_CHARS + 1]
    if len(head) <= QUERY_CHARS:
        return head
    return head.rsplit(maxsplit=1)[0] if len(head.split()) > 1 else head[:QUERY_CHARS]


def _sweep(
    draws: list[list[Sampled]],
    found: dict[int, list[Candidate]],
    instants: dict[Rid, float | None],
    signals: tuple[Signal, ...],
    beta: float,
    settings: Settings,
) -> dict[str, float]:
    """Return the gate of each signal from what the queries of each draw found. A row within the window of its query is related to it."""
    window = settings.calibrate_temporal_window_min * 60
    gates = {}
    for signal in signals:
        scored: list[tuple[list[float], list[bool]]] = []
        for draw in draws:
            scores, related = [], []
            for row in draw:
                for candidate in found.get(row.id, ()):
                    value = _compared(candidate, signal)
                    if candidate.rid == (MEMORY, row.id) or value is None:
                        continue
                    scores.append(value)
                    related.append(near(row.instant, instants.get(candidate.rid), window))
            scored.append((scores, related))
        least = measure.least_gate(signal, settings.calibrate_floor, settings.rrf_k)
        value = measure.gate(scored, beta, least, signal.digits)
        if value is not None:
            gates[signal.value] = value
    return gates


def _compared(candidate: Candidate, signal: Signal) -> float | None:
    """Return a row's value of a signal. Rank fusion gates only rows without a cosine, so it is measured on those:
    rows that two lists voted for would lift its gate above what one list can give.
    """
    if signal is Signal.RRF and candidate.cosine is not None:
        return None
    return candidate.value(signal)


# -- precision


async def set_precision(ctx: Context, settings: Settings, agent_id: str, precision: str) -> dict:
    """Set how strict an agent's gate is and measure it again at once; '' clears it.

    Raises Refused, with nothing changed, for an unknown name and, in every mode but blend, where there is too little to measure.
    """
    if not agent_id:
        raise Refused("agent_id is empty; name the agent whose precision this is")
    if precision and precision not in BETAS:
        raise Refused(f"precision is one of {', '.join(BETAS)}, or empty to clear it, not {precision!r}")
    plan = _plan_of(ctx.calibration.current, agent_id)
    if precision:
        beta = BETAS[precision]
        await _with_beta(ctx, settings, plan, beta)
        return {"ok": True, "agent_id": agent_id, "precision": precision, "beta": beta, "cleared": False}
    if agent_id in ctx.calibration.current.betas:
        try:
            await calibrate(ctx, settings, plan, beta=lambda held: held.with_beta(agent_id, None))
        except Refused:
            # Too little is left to measure: the gates of the old precision must not outlive it.
            await asyncio.to_thread(
                ctx.calibration.update, lambda held: held.with_beta(agent_id, None).without_gates(agent_id)
            )
    return {"ok": True, "agent_id": agent_id, "precision": "default", "beta": BETAS[BALANCED], "cleared": True}


async def _with_beta(ctx: Context, settings: Settings, plan: Plan, beta: float) -> None:
    """Set a beta and measure under it. A blend needs no measurement for it: a precision moves whatever gate there is."""
    try:
        await calibrate(ctx, settings, plan, beta=lambda held: held.with_beta(plan.agent_id, beta))
    except Refused:
        if settings.recall_mode != "blend" or _legacy(settings):
            raise
        await asyncio.to_thread(ctx.calibration.update, lambda held: held.with_beta(plan.agent_id, beta))


def get_precision(ctx: Context, agent_id: str) -> dict:
    """Return an agent's precision; balanced when none was set."""
    name = ctx.calibration.precision(agent_id)
    return {
        "ok": True,
        "agent_id": agent_id,
        "precision": name or BALANCED,
        "beta": ctx.calibration.beta(agent_id),
        "overridden": name is not None,
    }


def _plan_of(held: Measured, agent_id: str) -> Plan:
    """Return how an agent was measured last, so that measuring again does not change what a person chose."""
    last = held.thresholds.get(agent_id)
    return (
        Plan(agent_id)
        if last is None
        else Plan(agent_id, last.sample_size, last.method, last.percentile, last.z_factor)
    )


# -- at start


async def recalibrate_if_stale(ctx: Context) -> None:
    """Measure every agent again when model, dimension or scoring changed since, or nothing is measured yet; and an
    agent that has twice or half the memories it had.

    Run it as a task once the embedder is ready. Betas are kept and the old file is backed up; an agent with fewer
    than 10 embedded memories stays uncalibrated. Raises only CancelledError.
    """
    settings = ctx.settings
    if ctx.calibration.problem:
        ctx.status.warn(ctx.calibration.problem)
    if not settings.calibrate_on_model_change or not ctx.embedding.enabled:
        return
    try:
        if ctx.embedding.model.dimension is None and (ctx.calibration.exists or await ctx.db.read(rows.agents)):
            # A service tells its model only with an answer.
            await ctx.embedding.embed_documents(["calibration"])
        await _recalibrate(ctx, settings)
    except EmbeddingFailure as error:
        ctx.status.warn(f"calibration at start was left out, the embedder does not answer: {error}")
    except CPersonaError as error:
        ctx.status.warn(f"calibration at start failed: {error}")


async def _recalibrate(ctx: Context, settings: Settings) -> None:
    (model, dimension), version = ctx.embedding.model, scoring_version(settings)
    before = ctx.calibration.current
    agents = await ctx.db.read(rows.agents)
    if ctx.calibration.stale(model, dimension, version):
        if before.stale(model, dimension, version):
            await asyncio.to_thread(ctx.calibration.update, lambda held: held.for_model(model, dimension or 0, version))
        if EVERY_AGENT in before.thresholds:
            agents = [EVERY_AGENT, *agents]
    else:
        # A precision holds in the mode it was measured in; after a change of mode it is measured again.
        unmeasured = {a for a in agents if a in before.betas and settings.recall_mode not in before.gates.get(a, {})}
        agents = [a for a in agents if a in unmeasured or before.outgrown(a, await ctx.db.read(memories.total, a))]
    for agent in agents:
        try:
            await calibrate(ctx, settings, _plan_of(before, agent))
        except Refused:
            continue  # too few embedded memories; the shipped numbers stand in
