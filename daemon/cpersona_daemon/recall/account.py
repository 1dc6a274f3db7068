"""Why each candidate came back, or did not: drawn from the stages of the very recall that answered.

Contract: issue "Every contract of the seeds" (Explain); seeds/behavior-contracts §2, §4, §12 for the numbers shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from ..model.kinds import EPISODE, MEMORY, Rid, ref_of
from ..model.scope import Scope
from ..storage import episodes, lexical, memories
from ..text.terms import parse_query
from .channels.vectors import depth_of, scan, vector_scans
from .scoring import fusion
from .types import EPISODE_FTS, MEMORY_FTS, NEAR, Candidate, Query, Ranked

if TYPE_CHECKING:
    from .channels.vectors import VectorQuery
    from .pipeline import Bench, Stages

PROFILE_NAME = "profile"
_DEEP_LOOK = 10_000


def draw(conn: apsw.Connection, bench: Bench, vector: VectorQuery | None, query: Query, stages: Stages) -> dict:
    """Return the account of one recall: numbers of every stage, one entry per candidate, and the answer to ``why_not``."""
    s, ordered = bench.settings, {c.rid for c in stages.ordered}
    out: dict[str, Any] = {
        "mode": "recency" if query.blank else bench.mode,
        "limit": query.limit,
        "depth": depth_of(s, query),
        "window": s.max_memories,
        "reach": s.vector_reach,
        "vector_floor": vector.floor if vector else None,
        "pool": stages.limits.pool,
        "thresholds": {
            n: {"value": getattr(stages.limits, n), "from": stages.limits.origins[n]}
            for n in ("blend", "cosine", "rrf", "rsf", "confidence")
        }
        | {"rrf_words_only": {"value": stages.limits.word_rrf, "from": "smaller of rrf and 1/(k+1)"}},
        "channels": [_channel(r, stages) for r in stages.lists],
        "stages": {
            "considered": len(stages.fused),
            "excluded": len({rid for r in stages.lists for rid in r.excluded}),
            "below_gate": sum(not c.is_profile and c.rid not in ordered for c in stages.below),
            "autocut": len(stages.cut),
            "over_limit": len(stages.ordered) - len(stages.final),
            "returned": len(stages.final),
        },
        "rows": rows(bench, query, stages),
    }
    if stages.notes.unfamiliarity > 1:
        out["unfamiliarity"] = round(stages.notes.unfamiliarity, 4)
    if stages.notes.keyword_reason:
        out["keyword_fallback"] = stages.notes.keyword_reason
    if query.why_not is not None:
        out["why_not"] = why_not(conn, bench, vector, query, stages)
    return out


def _channel(ranked: Ranked, stages: Stages) -> dict:
    entry: dict[str, Any] = {"channel": ranked.channel, "rows": len(ranked.rids)}
    if ranked.excluded:
        entry["excluded"] = len(ranked.excluded)
    if notes := stages.notes.lexical.get(ranked.channel):
        entry["words"] = notes
    return entry


def votes(bench: Bench, query: Query, stages: Stages) -> tuple[dict[Rid, list[tuple[str, float]]], int]:
    """Return what each list contributed to each row, and the divisor of the sum."""
    s = bench.settings
    if query.blank or bench.mode in ("blend", "cascade"):
        return {}, 1
    if bench.mode == "rrf":
        return fusion.rrf_votes(stages.lists, s.rrf_k, s.prior_far_weight), 1
    return fusion.rsf_votes(stages.lists, s.prior_far_weight)


def rows(bench: Bench, query: Query, stages: Stages) -> list[dict]:
    """Return one entry per candidate in the order the gate saw them; the contributions of a row add up to its fused score."""
    parts, divisor = votes(bench, query, stages)
    fused = {c.rid: c for c in stages.fused}
    final = {c.rid: c for c in stages.ordered}
    fates, kept = _fates(stages), {c.rid for c in stages.kept}
    return [
        _row(bench, stages, c, fused.get(c.rid), final.get(c.rid), parts.get(c.rid, []), divisor, fates[c.rid])
        | {"passes": c.rid in kept}
        for c in (*stages.kept, *stages.below)
    ]


def _fates(stages: Stages) -> dict[Rid, str]:
    # What passed and is not among the ordered rows is the profile, where rescued rows came back in its stead.
    fates = {c.rid: "gate_fallback" for c in stages.kept} | {c.rid: "gate" for c in stages.below}
    fates |= {c.rid: "autocut" for c in stages.cut}
    fates |= {c.rid: "limit" for c in stages.ordered[len(stages.final) :]}
    return fates | {c.rid: "returned" for c in stages.final}


def _row(
    bench: Bench,
    stages: Stages,
    candidate: Candidate,
    fused: Candidate | None,
    final: Candidate | None,
    parts: list[tuple[str, float]],
    divisor: int,
    fate: str,
) -> dict:
    entry: dict[str, Any] = {"ref": ref_of(candidate.rid) or PROFILE_NAME, "fate": fate}
    contributions = {channel: value / divisor for channel, value in parts}
    entry["lists"] = [
        _place(ranked, candidate.rid, contributions) for ranked in stages.lists if candidate.rid in ranked.rids
    ]
    before = fused or candidate
    score = _fused(before)
    if score is not None:
        entry["fused"] = score
        after = _fused(candidate)
        if after != score:
            entry["episode_penalty"] = after / score if score else 1.0
    if before.scored is not None:
        weighed = before.scored
        entry |= {
            "cosine": weighed.cosine,
            "coverage": weighed.coverage,
            "similarity": weighed.similarity,
            "words": weighed.words,
            "neighbours": weighed.lent,
        }
    if before.identified:
        entry["identifier"] = True
    signal = candidate.signal(bench.legacy)
    if signal is not None:
        entry |= {"signal": signal[0], "score": signal[1], "threshold": stages.limits.of(candidate, signal[0])}
    if final is not None and final.version is not None:
        entry["version"] = final.version.told()
    if final is not None and final.prior is not None:
        entry["prior"] = final.prior
    return entry


def _fused(candidate: Candidate) -> float | None:
    return next((value for value in (candidate.blend, candidate.rsf, candidate.rrf) if value is not None), None)


def _place(ranked: Ranked, rid: Rid, contributions: dict[str, float]) -> dict:
    rank = ranked.rids.index(rid)
    place: dict[str, Any] = {"channel": ranked.channel, "rank": rank}
    if ranked.scores is not None:
        place["score"] = ranked.scores[rank]
    if ranked.channel in contributions:
        place["contribution"] = contributions[ranked.channel]
    return place


def why_not(conn: apsw.Connection, bench: Bench, vector: VectorQuery | None, query: Query, stages: Stages) -> dict:
    """Return the stage that dropped one row and the number it missed by."""
    rid = query.why_not
    answer: dict[str, Any] = {"ref": ref_of(rid)}
    outside = _outside_scope(conn, query.scope, rid)
    if outside:
        return answer | {"stage": "scope", "text": outside}
    entry = next((r for r in rows(bench, query, stages) if r["ref"] == answer["ref"]), None)
    if entry is not None:
        return answer | _fate_of(entry, rid, stages, query)
    if any(rid in r.excluded for r in stages.lists):
        return answer | {"stage": "exclusion", "text": "its text is among exclude_contents"}
    if rid in stages.notes.weightless:
        return answer | {
            "stage": "weighing",
            "text": "it shares no word with the question, and its similarity does not stand above what unrelated memories have",
        }
    held = next((r for r in stages.lists if rid in r.rids), None)
    if held is not None:
        text = "a cascade fills up with words only to the limit, and what stands before it filled it"
        return answer | {
            "stage": "limit",
            "channel": held.channel,
            "rank": held.rids.index(rid),
            "limit": query.limit,
            "text": text,
        }
    if query.blank:
        return answer | {
            "stage": "limit",
            "text": f"a blank query lists the newest {query.limit} memories and this is not among them",
        }
    return answer | {
        "stage": "retrieval",
        "channels": [_missed_by_vectors(bench, vector, query, rid), _missed_by_words(conn, bench, query, rid)],
    }


def _outside_scope(conn: apsw.Connection, scope: Scope, rid: Rid) -> str | None:
    kind, row_id = rid
    table = memories if kind == MEMORY else episodes
    if not table.by_ids(conn, [row_id], agent_id=scope.agent_id):
        return f"agent {scope.agent_id!r} has no such row"
    if kind == EPISODE and not scope.sees_episodes:
        return "a source was given without a channel, so episodes are left out"
    if not table.by_ids(conn, [row_id], scope=scope):
        return "its project, channel or source is outside what was asked"
    return None


def _fate_of(entry: dict, rid: Rid, stages: Stages, query: Query) -> dict:
    if entry["fate"] == "gate":
        if "threshold" not in entry:
            return {
                "stage": "gate",
                "text": f"it has no score, and the pool of {stages.limits.pool} rows is too small for unscored rows",
            }
        missed = entry["threshold"] - entry["score"]
        return {
            "stage": "gate",
            "signal": entry["signal"],
            "score": entry["score"],
            "threshold": entry["threshold"],
            "missed_by": missed,
        }
    position = next((i for i, c in enumerate(stages.ordered) if c.rid == rid), None)
    if entry["fate"] == "limit":
        return {"stage": "limit", "rank": position, "limit": query.limit, "missed_by": position - query.limit + 1}
    if entry["fate"] == "autocut":
        return {
            "stage": "autocut",
            "score": entry.get("score"),
            "text": "it stands behind the largest gap in similarity",
        }
    return {"stage": "returned", "rank": position}


def _missed_by_vectors(bench: Bench, vector: VectorQuery | None, query: Query, rid: Rid) -> dict:
    out: dict[str, Any] = {"channel": NEAR}
    if vector is None:
        return out | {"reason": "no_query_vector"}
    cosine = bench.vectors.cosines(vector.vector, [rid], vector.model).get(rid)
    if cosine is None:
        return out | {"reason": "no_usable_vector"}
    out["cosine"] = cosine
    if cosine < vector.floor:
        return out | {"reason": "floor", "floor": vector.floor, "missed_by": vector.floor - cosine}
    s = bench.settings
    for channel, start, stop, cut in vector_scans(s, depth_of(s, query)):
        ranked = scan(bench.vectors, query, vector, start, stop, _DEEP_LOOK)
        rank = next((i for i, (found, _) in enumerate(ranked) if found == rid), None)
        if rank is not None:
            return out | {
                "channel": channel,
                "reason": "depth",
                "rank": rank,
                "depth": cut,
                "missed_by": rank - cut + 1,
            }
    return out | {"reason": "window", "window": s.max_memories, "reach": s.vector_reach}


def _missed_by_words(conn: apsw.Connection, bench: Bench, query: Query, rid: Rid) -> dict:
    kind, row_id = rid
    out: dict[str, Any] = {"channel": MEMORY_FTS if kind == MEMORY else EPISODE_FTS}
    if not bench.settings.fts_enabled:
        return out | {"reason": "disabled"}
    hits = lexical.search(conn, kind, parse_query(query.text), query.scope, _DEEP_LOOK, {})
    rank = next((i for i, (hit, _) in enumerate(hits) if hit == row_id), None)
    if rank is None:
        return out | {"reason": "no_word_in_common"}
    depth = depth_of(bench.settings, query)
    return out | {"reason": "depth", "rank": rank, "depth": depth, "missed_by": rank - depth + 1}
