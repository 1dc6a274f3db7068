"""Why one row did not come back, and by how much the best row missed where none did: numbers and refs, never content.

Contract: explain.account, missed.best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..model.kinds import EPISODE, MEMORY, Rid, ref_of
from ..model.signals import Signal
from ..storage import lexical, records
from . import evidence
from .channels.vectors import looked_at
from .channels.words import with_those_of_then
from .run import Run
from .stages.weigh import long_depth
from .types import BLEND, EPISODE_FTS, MEMORY_FTS, NEAR, Candidate

_DEEP_LOOK = 10_000
_NO_FLOOR = -1.0
Told = dict[str, Any]


def why_not(run: Run, rid: Rid, entries: Sequence[Told]) -> Told:
    """Return the stage that dropped one row and the number it missed by; ``entries`` are the account's rows."""
    answer: Told = {"ref": ref_of(rid)}
    outside = _outside_scope(run, rid)
    if outside:
        return answer | {"stage": "scope", "text": outside}
    entry = next((r for r in entries if r["ref"] == answer["ref"]), None)
    return answer | (_before_the_gate(run, rid) if entry is None else _fate_of(run, rid, entry))


def _outside_scope(run: Run, rid: Rid) -> str | None:
    scope = run.query.scope
    if rid in run.rows.then:
        return None
    if run.rows.changed([rid]):
        return f"it was not there at {scope.as_of} UTC or not on these axes, or what it was is not kept"
    if not records.by_rids(run.conn, [rid], agent_id=scope.agent_id):
        return f"agent {scope.agent_id!r} has no such row"
    if rid[0] == EPISODE and not scope.sees_episodes:
        return "a source was given without a channel, so episodes are left out"
    if not records.by_rids(run.conn, [rid], scope=scope):
        return "its project, channel or source is outside what was asked"
    return None


def _before_the_gate(run: Run, rid: Rid) -> Told:
    """Return what happened to a row that no stage scored."""
    if any(rid in ranked.excluded for ranked in run.lists):
        return {"stage": "exclusion", "text": _left_out(run, rid)}
    if run.account.not_held:
        return {"stage": "weighing", "text": f"no row holds the quoted words {run.account.not_held[0]!r}"}
    if rid in run.account.weightless:
        return {
            "stage": "weighing",
            "text": "it shares no word with the question, and its similarity does not stand above what unrelated "
            "memories have",
        }
    limit, held = run.query.limit, next((ranked for ranked in run.lists if rid in ranked.rids), None)
    if held is not None and run.settings.recall_mode == BLEND:
        return _behind(run, rid)
    if held is not None:
        return {
            "stage": "limit",
            "channel": held.channel,
            "rank": held.rids.index(rid),
            "limit": limit,
            "text": "a cascade fills up with words only to the limit, and what stands before it filled it",
        }
    if run.question.blank:
        text = f"a blank query lists the newest {limit} memories and this is not among them"
        return {"stage": "limit", "text": text}
    return {"stage": "retrieval", "channels": [_missed_by_vectors(run, rid), _missed_by_words(run, rid)]}


def _behind(run: Run, rid: Rid) -> Told:
    """Return where the lists have a long row that was not weighed."""
    rank, channel = min((ranked.rids.index(rid), ranked.channel) for ranked in run.lists if rid in ranked.rids)
    depth = long_depth(run)
    text = (
        f"it is long, and such rows are weighed from the first {depth} places of each list; a larger limit takes more"
    )
    return {"stage": "weighing", "channel": channel, "rank": rank, "depth": depth, "text": text}


def _left_out(run: Run, rid: Rid) -> str:
    unwanted = evidence.unwanted(run)
    if unwanted is not None and any(unwanted(text) for text, _ in run.rows.readings([rid]).values()):
        return f"it holds what the question leaves out: {', '.join(run.question.meant.without)}"
    return "its text is among exclude_contents"


def _fate_of(run: Run, rid: Rid, entry: Told) -> Told:
    """Return what happened to a row that the gate saw."""
    rank = next((i for i, c in enumerate(run.account.ordered) if c.rid == rid), None)
    if entry["fate"] == "gate":
        return _missed_gate(run, entry)
    if entry["fate"] == "limit" and rank is not None:
        limit = run.query.limit
        return {"stage": "limit", "rank": rank, "limit": limit, "missed_by": rank - limit + 1}
    if entry["fate"] == "autocut":
        text = "it stands behind the largest gap in similarity"
        return {"stage": "autocut", "score": entry.get("score"), "text": text}
    if entry["fate"] == "folded":
        into = entry["folded_into"]
        return {"stage": "folded", "into": into, "text": f"it says nearly the same as {into}, which stands for it"}
    if entry["fate"] == "tail":
        text = f"it is below {run.settings.tail_share:g} of the best row's score"
        return {"stage": "tail", "score": entry.get("score"), "text": text}
    return {"stage": "returned", "rank": rank}


def _missed_gate(run: Run, entry: Told) -> Told:
    if "threshold" not in entry:
        pool = run.limits.pool
        return {"stage": "gate", "text": f"it has no score, and the pool of {pool} rows is too small for unscored rows"}
    compared = {key: entry[key] for key in ("signal", "score", "threshold")}
    return {"stage": "gate", **compared, "missed_by": entry["threshold"] - entry["score"]}


def _missed_by_vectors(run: Run, rid: Rid) -> Told:
    out: Told = {"channel": NEAR}
    if run.vector is None:
        return out | {"reason": "no_query_vector"}
    cosine, floor = evidence.cosines(run, [rid]).get(rid), run.vector.floor
    if cosine is None:
        return out | {"reason": "no_usable_vector"}
    out["cosine"] = cosine
    if cosine < floor:
        return out | {"reason": "floor", "floor": floor, "missed_by": floor - cosine}
    for scan in run.scans:
        (ranked,) = looked_at(run, [run.vector.vector], scan, _DEEP_LOOK)
        rank = next((i for i, (found, _) in enumerate(ranked) if found == rid), None)
        if rank is not None:
            return out | {"channel": scan.channel} | _too_deep(rank, scan.cut)
    return out | {"reason": "window", "window": run.settings.max_memories, "reach": run.settings.vector_reach}


def _missed_by_words(run: Run, rid: Rid) -> Told:
    kind, channel = (MEMORY, MEMORY_FTS) if rid[0] == MEMORY else (EPISODE, EPISODE_FTS)
    out: Told = {"channel": channel}
    if not run.settings.fts_enabled:
        return out | {"reason": "disabled"}
    asked, without = run.question.written, run.question.without
    hits = lexical.search(run.conn, kind, asked, run.query.scope, _DEEP_LOOK, {}, without=without)
    hits = with_those_of_then(run, kind, hits, _DEEP_LOOK)
    rank = next((i for i, (hit, _) in enumerate(hits) if hit == rid[1]), None)
    return out | ({"reason": "no_word_in_common"} if rank is None else _too_deep(rank, run.depth))


def _too_deep(rank: int, depth: int) -> Told:
    return {"reason": "depth", "rank": rank, "depth": depth, "missed_by": rank - depth + 1}


def best_missed(run: Run) -> Told | None:
    """Return `{ref, signal, score, threshold}` of the row that came nearest, None where nothing could be compared.

    Nearest is the largest share of its own threshold, so that signals of different scales compare. Where not even a
    candidate was found it is the most similar row of the window, against the floor of the vector search.
    """
    compared = [_against_its_threshold(run, c) for c in run.account.below if not c.is_profile]
    scored = [told for told in compared if told is not None]
    if scored:
        return max(scored, key=lambda told: told["score"] / told["threshold"] if told["threshold"] else 0.0)
    if run.vector is None:
        return None
    window = run.scans[0]._replace(cut=1)
    (hits,) = looked_at(run, [run.vector.vector], window, 1, _NO_FLOOR)
    # A row above the floor was a candidate; that it is none now means that exclude_contents took it out.
    if not hits or hits[0][1] >= run.vector.floor:
        return None
    rid, score = hits[0]
    return {"ref": ref_of(rid), "signal": Signal.COSINE.value, "score": score, "threshold": run.vector.floor}


def _against_its_threshold(run: Run, candidate: Candidate) -> Told | None:
    compared = candidate.signal()
    if compared is None:
        return None
    signal, score = compared
    threshold = run.limits.of(candidate, signal)
    return {"ref": ref_of(candidate.rid), "signal": signal.value, "score": score, "threshold": threshold}
