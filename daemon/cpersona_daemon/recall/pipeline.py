"""A recall from query to rows: retrieve, fuse, weigh, gate, cut, order, read.

The library returns whole rows, best first; reversing, previews and caps belong to the boundary. Everything
that decides runs inside one read snapshot on a reader thread; embedding the query happens before it.

Contract: contracts.md §5 "Order of stages", §6, §7; seeds/behavior-contracts §2 to §8, §12.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import apsw
import numpy as np

from ..context import Context
from ..embedding.turns import QUESTION, Claim
from ..embedding.values import Advice, Profile
from ..errors import EmbeddingFailure
from ..model.identity import Embedded
from ..model.instants import parse_instant
from ..model.kinds import EPISODE, MEMORY, PROFILE, Rid, ref_of
from ..shared.settings import Settings
from ..storage import candidates as candidate_facts
from ..storage import episodes, memories, profiles, vector_counts
from ..storage.candidates import Facts
from ..storage.damaged import Unreadable
from . import account as tracing
from . import advice, uncompared
from .channels.vectors import Notes, VectorQuery, retrieve
from .display import EPISODE_SOURCE, PROFILE_SOURCE, episode_text, episode_timestamp, left_out, profile_text
from .scoring import blend, fusion, gate, penalty, prior
from .scoring.confidence import Frame, confidence
from .stages import autocut as cutting
from .stages import versions
from .stages import weigh as evidence
from .types import Candidate, Query, Ranked, Result, Row
from .why_not import best_missed

BACKLOG_WORTH_WAITING_FOR = 256
POOL_COUNTED = 500
# Below the default deadline, so that a hung backend ends in a lexical answer with an advisory and not in a time-out.
QUERY_VECTOR_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Bench:
    """What one recall works with: its settings and clock, the index, and the numbers measured or declared for it."""

    settings: Settings
    now: float
    vectors: Any
    mode: str
    legacy: bool
    embedder: bool
    admission: float | None
    measured: dict[str, float]
    cosine_floor: float
    cosine_ceil: float
    profile: Profile | None = None
    beta: float = 1.0


@dataclass(slots=True)
class Stages:
    """What each stage left, in order; the trace is drawn from it and from nothing else."""

    lists: list[Ranked] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)
    fused: list[Candidate] = field(default_factory=list)
    weighed: list[Candidate] = field(default_factory=list)
    limits: gate.Thresholds | None = None
    kept: list[Candidate] = field(default_factory=list)
    below: list[Candidate] = field(default_factory=list)
    rescued: bool = False
    cut: list[Candidate] = field(default_factory=list)
    ordered: list[Candidate] = field(default_factory=list)
    final: list[Candidate] = field(default_factory=list)


async def recall(ctx: Context, settings: Settings, query: Query) -> Result:
    """Return the rows that answer a query, best first. An empty result is an answer, not an error."""
    if query.limit <= 0:
        return Result()
    with ctx.embedding.turns.claim(
        QUESTION
    ) as turn:  # what is embedded in the background waits until the rows are read
        made, lack = (None, None) if query.blank or query.wordless else await _embedded(ctx, query, turn)
        result = await ctx.db.read(
            _run, _bench(ctx, settings, query, made), _vector_query(ctx, settings, query, made), query
        )
    if lack is not None:
        if settings.degraded_advisory:
            result.advice.append(lack.advice)
        result.failure = lack.failure
    return result


async def candidates(ctx: Context, settings: Settings, query: Query, made: Embedded | None = None) -> list[Candidate]:
    """Return what a recall would put before the gate: retrieved, fused, weighed. ``made`` spares embedding the query."""
    if made is None and not query.blank and not query.wordless:
        with ctx.embedding.turns.claim(QUESTION) as turn:
            made, _ = await _embedded(ctx, query, turn)
    bench, vector_query = _bench(ctx, settings, query, made), _vector_query(ctx, settings, query, made)

    def read(conn: apsw.Connection) -> list[Candidate]:
        stages = Stages()
        _gather(conn, bench, vector_query, query, stages, _Lookups(conn, query))
        return stages.weighed

    return await ctx.db.read(read)


class _Lack(NamedTuple):
    """Why a question has no vector: what the answer says about it, and the failure, None without an embedder."""

    advice: Advice
    failure: str | None


async def _embedded(ctx: Context, query: Query, turn: Claim) -> tuple[Embedded | None, _Lack | None]:
    """Return the query's vector, or why it has none: there is no embedder, or it failed this time.

    Rows stored a moment ago are waited for, so that what was acknowledged can be found.
    """
    if not ctx.embedding.enabled:
        return None, _Lack(ctx.embedding.advice(), None)
    try:
        made = await ctx.embedding.embed_query(query.text, query.wait_seconds, QUERY_VECTOR_SECONDS)
    except EmbeddingFailure as error:
        return None, _Lack(ctx.embedding.advice(error), str(error))
    if query.wait_seconds > 0 and ctx.backlog.worth_waiting_for(BACKLOG_WORTH_WAITING_FOR, query.wait_seconds):
        turn.give_up()
        await ctx.backlog.wait_until_drained(BACKLOG_WORTH_WAITING_FOR, query.wait_seconds)
        turn.take()
    return made, None


def _number(settings: Settings, name: str, measured: float | None, declared: float | None) -> float:
    """Take a number from the first that has it: set by a person, measured, declared by the embedder, default."""
    if settings.is_set(name):
        return getattr(settings, name)
    return next((v for v in (measured, declared) if v is not None), getattr(settings, name))


def _bench(ctx: Context, settings: Settings, query: Query, made: Embedded | None = None) -> Bench:
    """``made`` is the query's vector: rows are judged by what was measured with the model that made it."""
    mode = settings.recall_mode
    legacy = settings.confidence_enabled and settings.confidence_ordering == "legacy"
    profile, measured = ctx.embedding.profile, {}
    model = ctx.embedding.model.identity if made is None else made.model
    if settings.fused_gate_enabled:
        for signal in ("confidence", "blend", "rsf", "cosine", "rrf"):
            value = ctx.calibration.gate(query.scope.agent_id, mode, signal, model)
            if value is not None:
                measured[signal] = value
    return Bench(
        settings=settings,
        now=ctx.clock.now(),
        vectors=ctx.vectors,
        mode=mode,
        legacy=legacy,
        embedder=ctx.embedding.enabled,
        admission=profile.admission if profile else None,
        measured=measured,
        cosine_floor=_number(settings, "cosine_floor", None, profile.cosine_floor if profile else None),
        cosine_ceil=_number(settings, "cosine_ceil", None, profile.cosine_ceil if profile else None),
        profile=profile,
        beta=ctx.calibration.beta(query.scope.agent_id),
    )


def _vector_query(ctx: Context, settings: Settings, query: Query, made: Embedded | None) -> VectorQuery | None:
    if made is None:
        return None
    (vector, model), profile = made, ctx.embedding.profile
    if settings.recall_mode == "blend":
        # Nothing but the gate decides, so only what points the other way is left out.
        return VectorQuery(vector, model, 0.0, _part_of(vector, profile))
    threshold = _number(
        settings,
        "vector_min_similarity",
        ctx.calibration.threshold(query.scope.agent_id, model),
        profile.min_similarity if profile else None,
    )
    floor = threshold if settings.recall_mode == "cascade" else threshold * settings.rrf_threshold_factor
    return VectorQuery(vector, model, floor)


def _part_of(vector: np.ndarray, profile: Profile | None) -> np.ndarray | None:
    """Return the query with nothing but its multilingual part, of unit length."""
    if profile is None or profile.part is None or len(vector) < profile.part.stop:
        return None
    alone = np.zeros_like(vector)
    alone[profile.part.start : profile.part.stop] = vector[profile.part.start : profile.part.stop]
    norm = float(np.linalg.norm(alone))
    return alone / np.float32(norm) if norm > 0 else None


class _Lookups:
    """Reads that several stages may need, each done at most once."""

    def __init__(self, conn: apsw.Connection, query: Query):
        self._conn, self._query = conn, query
        self._facts: dict[Rid, Facts] = {}
        self._span: tuple[float, float] | None = None
        self._span_known = False

    def facts(self, rows: list[Candidate]) -> dict[Rid, Facts]:
        missing = [c.rid for c in rows if c.rid not in self._facts and not c.is_profile]
        if missing:
            self._facts.update(candidate_facts.facts(self._conn, missing))
        return self._facts

    @property
    def span(self) -> tuple[float, float] | None:
        if not self._span_known:
            self._span, self._span_known = memories.span(self._conn, self._query.scope), True
        return self._span


def _gather(
    conn: apsw.Connection, bench: Bench, vector: VectorQuery | None, query: Query, stages: Stages, look: _Lookups
) -> None:
    """Retrieve, fuse, weigh: everything before the gate."""
    s = bench.settings
    stages.lists = retrieve(conn, bench.vectors, s, query, vector, stages.notes)
    if query.blank or bench.mode == "cascade":
        rows = fusion.cascade(stages.lists, query.limit)
    elif bench.mode == "blend":
        rows = evidence.weigh(conn, bench, vector, query, stages.lists, stages.notes)
    else:
        rows = fusion.fuse(stages.lists, bench.mode, s.rrf_k, s.prior_far_weight)
    rows = _usable_vectors(bench, vector, rows)
    if bench.mode == "rrf" and bench.profile is not None and not bench.legacy and not query.blank:
        rows = _with_identified(conn, bench, query, rows)
    stages.fused = rows
    if s.episode_penalty_enabled:
        boundary = parse_instant(episodes.boundary(conn, query.scope))
        rows = penalty.apply(rows, look.facts(rows), boundary, rate=s.episode_decay_rate, floor=s.episode_decay_floor)
    if bench.legacy:
        rows = _by_confidence(bench, query, rows + [Candidate(PROFILE)], look)
    stages.weighed = rows


def _usable_vectors(bench: Bench, vector: VectorQuery | None, rows: list[Candidate]) -> list[Candidate]:
    """Note which rows no vector list could have held, and under legacy give rows found by words their real cosine."""
    missing = [c.rid for c in rows if c.cosine is None]
    if not missing:
        return rows
    found = bench.vectors.cosines(vector.vector, missing, vector.model) if vector is not None else {}
    out = []
    for c in rows:
        if c.cosine is None:
            c = c.with_(has_vector=c.rid in found, cosine=found.get(c.rid) if bench.legacy else None)
        out.append(c)
    return out


def _with_identified(conn: apsw.Connection, bench: Bench, query: Query, rows: list[Candidate]) -> list[Candidate]:
    """Note which rows found by words hold an identifier of the question: beside the builtin embedder these pass.

    Its cosines say little about a hash or a path, so that a look-up would vanish with the first calibration. Whoever brings
    an embedder of their own gets the gate of the contracts alone.
    """
    found = evidence.identified(conn, bench, query, [c.rid for c in rows if c.lexical])
    return [c.with_(identified=True) if c.rid in found else c for c in rows]


def _frame(bench: Bench, query: Query, look: _Lookups) -> Frame:
    return Frame(bench.settings, bench.now, look.span, bench.cosine_floor, bench.cosine_ceil, query.deep)


def _by_confidence(bench: Bench, query: Query, rows: list[Candidate], look: _Lookups) -> list[Candidate]:
    frame, facts = _frame(bench, query, look), look.facts(rows)
    scored = [c.with_(confidence=confidence(frame, facts.get(c.rid, Facts(None)), c.cosine)["score"]) for c in rows]
    return sorted(scored, key=lambda c: -c.confidence)


def _run(conn: apsw.Connection, bench: Bench, vector: VectorQuery | None, query: Query) -> Result:
    stages, look, s = Stages(), _Lookups(conn, query), bench.settings
    _gather(conn, bench, vector, query, stages, look)
    profile = profiles.get(conn, query.scope.agent_id, query.scope.as_of)
    rows = [c for c in stages.weighed if profile or not c.is_profile]
    if profile and not bench.legacy and not (query.wordless and bench.mode == "blend"):
        rows.append(Candidate(PROFILE))

    pool = memories.count_in_scope(conn, query.scope, POOL_COUNTED) + episodes.count_in_scope(
        conn, query.scope, POOL_COUNTED
    )
    stages.limits = gate.thresholds(
        pool,
        k=s.rrf_k,
        deep=query.deep,
        blank=query.blank,
        admission=bench.admission,
        measured=bench.measured,
        blend_gate=blend.gate_of(bench.measured.get("blend"), bench.beta, stages.notes.unfamiliarity),
    )
    asked, stages.limits = stages.limits, stages.limits.opened(rows)
    stages.kept, stages.below = gate.split(rows, stages.limits, bench.legacy)
    if query.also_lexical:
        admitted = _admitted_as_written(conn, bench, vector, query, asked, look)
        stages.kept, stages.below = [c for c in rows if c.rid in admitted], [c for c in rows if c.rid not in admitted]
    rows = stages.kept
    if bench.legacy and not any(not c.is_profile for c in rows):
        rescue = [c for c in stages.below if c.lexical and c.cosine is not None]
        if rescue:
            stages.rescued, rows = True, rescue
    if s.autocut_enabled and not stages.rescued:
        rows, stages.cut = cutting.autocut(
            rows, legacy=bench.legacy, min_results=s.autocut_min_results, min_gap_ratio=s.autocut_min_gap_ratio
        )
    if s.prior_age_rate > 0 and not bench.legacy:
        rows = prior.apply(
            rows,
            look.facts(rows),
            look.span,
            mode=bench.mode,
            rate=s.prior_age_rate,
            floor=s.prior_age_floor,
            anchor=s.prior_age_anchor,
            now=bench.now,
        )
    if (
        s.version_order
        and vector is not None
        and not bench.legacy
        and (asked_about := versions.asked_about(query.text))
    ):
        rows = versions.reorder(
            rows,
            asked_about,
            {rid: f.instant for rid, f in look.facts(rows[: versions.LOOKED_AT]).items()},
            evidence.alike(bench, vector, query, rows),
        )
    stages.ordered = rows
    stages.final = rows[: query.limit]

    result = Result(
        wordless=query.wordless,
        gate_fallback=stages.rescued,
        considered=len(stages.fused),
        gated=sum(not c.is_profile for c in stages.below),
    )
    result.rows, result.left_out = _read_rows(conn, bench, vector, query, stages.final, look, profile)
    if query.wordless:
        result.advice.append(advice.advice(query.text, bool(result.rows)))
    if vector is not None and s.degraded_advisory:
        unusable = vector_counts.unusable(conn, query.scope, vector.vector.size, vector.model)
        said = uncompared.advice(unusable, vector_counts.waiting(conn, query.scope) if unusable else 0, query.scope)
        result.advice += [said] if said is not None else []
    if not result.rows:
        result.best_missed = best_missed(bench, vector, query, stages.below, stages.limits)
    if query.trace or query.why_not:
        result.trace = tracing.draw(conn, bench, vector, query, stages)
    return result


def _admitted_as_written(
    conn: apsw.Connection,
    bench: Bench,
    vector: VectorQuery | None,
    query: Query,
    limits: gate.Thresholds,
    look: _Lookups,
) -> set[Rid]:
    """Return what passes the gate for the query as written: another name adds a vote to a row, never a pass."""
    written = Stages()
    _gather(conn, bench, vector, replace(query, also_lexical=()), written, look)
    kept, _ = gate.split([*written.weighed, Candidate(PROFILE)], limits.opened(written.weighed), bench.legacy)
    return {c.rid for c in kept}


def _read_rows(
    conn: apsw.Connection,
    bench: Bench,
    vector: VectorQuery | None,
    query: Query,
    final: list[Candidate],
    look: _Lookups,
    profile: str,
) -> tuple[list[Row], list[dict]]:
    """Read the survivors once and dress them; return beside them those that cannot be given out.

    A row deleted since the index saw it is neither.
    """
    found_memories = memories.by_ids(conn, [c.rid[1] for c in final if c.rid[0] == MEMORY], scope=query.scope)
    found_episodes = episodes.by_ids(conn, [c.rid[1] for c in final if c.rid[0] == EPISODE], scope=query.scope)
    frame = facts = None
    if bench.settings.confidence_enabled:
        frame, facts = _frame(bench, query, look), look.facts(final)
    if bench.settings.confidence_enabled or query.absolute:
        final = _with_display_cosines(bench, vector, final)
    rows: list[Row] = []
    without: list[dict] = []
    for c in final:
        values = None if frame is None else confidence(frame, facts.get(c.rid, Facts(None)), c.cosine)
        common = {
            "candidate": c,
            "ref": ref_of(c.rid),
            "match_reason": match_reason(c, bench.legacy),
            "confidence": values,
        }
        kind, row_id = c.rid
        found = (found_memories if kind == MEMORY else found_episodes).get(row_id)
        if isinstance(found, Unreadable):
            without.append(left_out(kind, found))
        elif kind == MEMORY and found is not None:
            m = found
            rows.append(
                Row(
                    text=m.content,
                    source=memories.load_source(m.source),
                    timestamp=m.timestamp,
                    msg_id=m.msg_id,
                    record=m,
                    **common,
                )
            )
        elif kind == EPISODE and found is not None:
            e = found
            rows.append(
                Row(
                    text=episode_text(e),
                    source=dict(EPISODE_SOURCE),
                    timestamp=episode_timestamp(e),
                    record=e,
                    **common,
                )
            )
        elif c.is_profile:
            rows.append(Row(text=profile_text(profile), source=dict(PROFILE_SOURCE), timestamp="", **common))
    return rows, without


def _with_display_cosines(bench: Bench, vector: VectorQuery | None, final: list[Candidate]) -> list[Candidate]:
    """Give rows found only by words their real cosine for display; order and gate are decided already."""
    missing = [c.rid for c in final if c.cosine is None and not c.is_profile]
    if vector is None or not missing or bench.legacy:
        return final
    found = bench.vectors.cosines(vector.vector, missing, vector.model)
    return [c.with_(cosine=found[c.rid], shown_only=True) if c.rid in found else c for c in final]


def match_reason(candidate: Candidate, legacy: bool) -> dict | None:
    """Return `{signal, score, cosine?, rrf?, rsf?, coverage?, version?, prior?}`, None for a row that no branch scored."""
    signal = candidate.signal(legacy)
    if signal is None:
        return None
    reason: dict[str, Any] = {"signal": signal[0], "score": signal[1]}
    for name in ("cosine", "rrf", "rsf", "coverage"):
        value = getattr(candidate, name)
        if value is not None:
            reason[name] = value
    if candidate.version is not None:
        reason["version"] = candidate.version.told()
    if candidate.prior is not None:
        reason["prior"] = round(candidate.prior, 4)
    return reason
