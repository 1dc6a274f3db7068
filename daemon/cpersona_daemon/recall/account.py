"""The account of a recall: what the stages noted, drawn for whoever asks why each candidate came back or did not.

Contract: explain.account.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model.kinds import Rid, ref_of
from ..model.signals import FUSED, LISTED
from .run import Account, Run
from .scoring import blend
from .types import Candidate, Ranked
from .why_not import why_not

PROFILE_NAME = "profile"
RECENCY = "recency"


def draw(run: Run) -> dict[str, Any]:
    """Return the numbers of every stage, one entry per candidate, and the answer to ``why_not``."""
    s, account, limits = run.settings, run.account, run.limits
    ordered, entries = {c.rid for c in account.ordered}, rows(run)
    out: dict[str, Any] = {
        "mode": RECENCY if run.question.blank else s.recall_mode,
        "limit": run.query.limit,
        "depth": run.depth,
        "window": s.max_memories,
        "reach": s.vector_reach,
        "vector_floor": run.vector.floor if run.vector else None,
        "pool": limits.pool,
        "thresholds": {n.value: {"value": limits.values[n], "from": limits.origins[n]} for n in LISTED}
        | {"rrf_words_only": {"value": limits.word_rrf, "from": "smaller of rrf and 1/(k+1)"}},
        "channels": [_channel(ranked, account.words) for ranked in run.lists],
        "stages": {
            "considered": len(account.considered),
            "excluded": len({rid for r in run.lists for rid in r.excluded}),
            "below_gate": sum(not c.is_profile and c.rid not in ordered for c in account.below),
            "autocut": len(account.cut),
            "over_limit": len(account.ordered) - len(account.returned),
            "returned": len(account.returned),
        }
        | _behind(account),
        "rows": entries,
    }
    out |= _of_blend(run) | _unmet(run) | _wording(run)
    if account.keyword_fallback:
        out["keyword_fallback"] = account.keyword_fallback
    if run.query.why_not is not None:
        out["why_not"] = why_not(run, run.query.why_not, entries)
    return out


def _behind(account: Account) -> dict[str, int]:
    """Return how many rows of those that passed a blend left out, by why, where it did."""
    counts = {"folded": len(account.folded), "tail": len(account.tail)}
    return {why: count for why, count in counts.items() if count}


def _of_blend(run: Run) -> dict[str, Any]:
    """Return how many rows are in scope, which the gate of a blend hangs on, and of how many a reranker spoke."""
    out: dict[str, Any] = {} if run.size is None else {"size": run.size}
    return out | {"reranked": len(run.reranked)} if run.reranked else out


def _unmet(run: Run) -> dict[str, Any]:
    """Return what no row holds of the question, and how much better it must be met for that."""
    more = round(blend.GATE * (run.unfamiliarity - 1.0), 4)
    out: dict[str, Any] = {"unfamiliarity": more} if more > 0 else {}
    return out | {"absent": list(run.absent)} if run.absent else out


def _wording(run: Run) -> dict[str, Any]:
    """Return what quotes, hyphens and the name of a time said in the question, as far as they did."""
    meant = run.question.meant
    said = {"quoted": meant.quoted, "without": meant.without, "not_held": run.account.not_held}
    told: dict[str, Any] = {name: list(texts) for name, texts in said.items() if texts}
    return told if run.account.time is None else told | {"time": run.account.time.told()}


def _channel(ranked: Ranked, words: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    entry: dict[str, Any] = {"channel": ranked.channel, "rows": len(ranked.rids)}
    if ranked.excluded:
        entry["excluded"] = len(ranked.excluded)
    if notes := words.get(ranked.channel):
        entry["words"] = notes
    return entry


def rows(run: Run) -> list[dict[str, Any]]:
    """Return one entry per candidate in the order the gate saw them; the contributions of a row add up to its fused
    score.
    """
    account = run.account
    before = {c.rid: c for c in account.considered}
    after = {c.rid: c for c in account.ordered}
    fates, kept = _fates(account), {c.rid for c in account.kept}
    return [
        {"ref": ref_of(c.rid) or PROFILE_NAME, "fate": fates[c.rid], "lists": _places(run, c.rid)}
        | _scores(before.get(c.rid, c), c)
        | _compared(run, c)
        | _ordered(after.get(c.rid))
        | _folded(account, after.get(c.rid), c.rid)
        | {"passes": c.rid in kept}
        for c in (*account.kept, *account.below)
    ]


def _folded(account: Account, shown: Candidate | None, rid: Rid) -> dict[str, Any]:
    """Return which row a row stands in, or how many stand in it."""
    if rid in account.folded:
        return {"folded_into": ref_of(account.folded[rid])}
    return {"alike": len(shown.folded)} if shown is not None and shown.folded else {}


def _fates(account: Account) -> dict[Rid, str]:
    # What passed and is not among the ordered rows is the profile, where rescued rows came back in its stead.
    fates = {c.rid: "gate_fallback" for c in account.kept} | {c.rid: "gate" for c in account.below}
    fates |= {c.rid: "autocut" for c in account.cut} | {c.rid: "tail" for c in account.tail}
    fates |= dict.fromkeys(account.folded, "folded")
    fates |= {c.rid: "limit" for c in account.ordered[len(account.returned) :]}
    return fates | {c.rid: "returned" for c in account.returned} | dict.fromkeys(account.reserved, "block")


def _places(run: Run, rid: Rid) -> list[dict[str, Any]]:
    """Return where a row stands in each list, and what that contributed to its score."""
    votes = run.account.votes
    worth = {channel: value / votes.divisor for channel, value in votes.of.get(rid, ())}
    places = []
    for ranked in run.lists:
        if rid in ranked.rids:
            rank = ranked.rids.index(rid)
            place: dict[str, Any] = {"channel": ranked.channel, "rank": rank}
            if ranked.scores is not None:
                place["score"] = ranked.scores[rank]
            if ranked.channel in worth:
                place["contribution"] = worth[ranked.channel]
            places.append(place)
    return places


def _scores(before: Candidate, candidate: Candidate) -> dict[str, Any]:
    """Return a row's fused score as it was ``before`` any weight, what the penalty made of it, and the parts of a
    blend.
    """
    out: dict[str, Any] = {}
    score, after = before.first(FUSED), candidate.first(FUSED)
    if score is not None and after is not None:
        out["fused"] = score
        if after != score:
            out["episode_penalty"] = after / score if score else 1.0
    if before.scored is not None:
        parts = before.scored
        out |= {
            "cosine": parts.cosine,
            "coverage": parts.coverage,
            "similarity": parts.similarity,
            "words": parts.words,
            "neighbours": parts.lent,
        }
    if before.rerank is not None:
        out["rerank"] = before.rerank
    if before.scored is not None and before.scored.reranked:
        out["reranked"] = before.scored.reranked
    if before.identified:
        out["identifier"] = True
    if before.passage is not None:
        out["passage"] = before.passage._asdict()
    return out


def _compared(run: Run, candidate: Candidate) -> dict[str, Any]:
    compared = candidate.signal()
    if compared is None:
        return {}
    signal, score = compared
    return {"signal": signal.value, "score": score, "threshold": run.limits.of(candidate, signal)}


def _ordered(candidate: Candidate | None) -> dict[str, Any]:
    """Return what moved a row behind the gate; None for one that did not come so far."""
    out: dict[str, Any] = {}
    if candidate is not None and candidate.version is not None:
        out["version"] = candidate.version.told()
    if candidate is not None and candidate.lifted is not None:
        out["time"] = candidate.lifted.told()
    if candidate is not None and candidate.prior is not None:
        out["prior"] = candidate.prior
    return out
