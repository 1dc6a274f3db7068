"""Confidence is returned beside each row; it does not rank.

Contract: confidence.beside, confidence.score, confidence.counts.
"""

import math

import pytest
from contract_kit import episode, memory, reasons, refs

ON = {"confidence_enabled": True}
LEGACY = {"confidence_enabled": True, "confidence_ordering": "legacy"}
HOURS_PER_YEAR = 24 * 365


def stripped(answer):
    """The answer without what confidence adds."""
    return [{k: v for k, v in row.items() if k != "confidence"} for row in answer["messages"]]


def old_and_new(agent):
    """The better match is a year older, so that confidence prefers the other one."""
    return agent.load(memory("older and nearer", 0.55, at=-HOURS_PER_YEAR), memory("newer and farther", 0.5, at=0))


def test_confidence_is_off_by_default_and_no_row_carries_it(agent):
    """Contract: confidence.beside."""
    old_and_new(agent)
    assert all("confidence" not in row for row in agent.recall("what was it")["messages"])


def test_confidence_is_added_to_every_returned_row(agent):
    """Contract: confidence.beside."""
    agent.crowd()
    agent.load(memory("by meaning", 0.6), memory("by the word heliotrope"), episode("an episode", 0.7))
    agent.own("update_profile", profile="likes tea")
    answer = agent.recall("where is heliotrope", ON)
    assert len(answer["messages"]) == 4
    for row in answer["messages"]:
        assert {"age_hours", "score"} <= set(row["confidence"])


def test_confidence_on_returns_the_same_rows_in_the_same_order_plus_the_field(agent):
    """Contract: confidence.beside."""
    agent.crowd()
    old_and_new(agent)
    agent.load(memory("a plain word: heliotrope"), episode("an episode", 0.7))
    for mode in ("rrf", "rsf", "cascade"):
        off = agent.recall("where is heliotrope", {"recall_mode": mode})
        assert stripped(agent.recall("where is heliotrope", ON | {"recall_mode": mode})) == off["messages"]


def test_under_fusion_ordering_confidence_does_not_key_the_gate(agent):
    """Contract: gate.signal."""
    (row,) = agent.load(memory("an old match", 0.55, at=-20 * HOURS_PER_YEAR))
    answer = agent.recall("what was it", ON)
    assert answer["messages"][0]["confidence"]["score"] < 0.4665 < answer["messages"][0]["match_reason"]["score"]
    assert reasons(answer)[row]["signal"] == "cosine"


def test_under_legacy_the_result_is_sorted_by_the_confidence_score(agent):
    """Contract: confidence.beside."""
    agent.crowd()
    older, newer = old_and_new(agent)
    assert refs(agent.recall("what was it", ON)) == [newer, older]
    answer = agent.recall("what was it", LEGACY)
    assert refs(answer) == [older, newer]
    scores = [row["confidence"]["score"] for row in answer["messages"]]
    assert scores == sorted(scores)


def test_under_legacy_the_gate_keys_on_confidence_instead_of_the_fused_score(agent):
    """Contract: confidence.beside."""
    (row,) = agent.load(memory("an old match", 0.55, at=-20 * HOURS_PER_YEAR))
    assert refs(agent.recall("what was it", ON)) == [row]
    assert refs(agent.recall("what was it", LEGACY)) == []


def test_under_legacy_rsf_and_rrf_return_identical_rows_in_identical_order(agent):
    """Contract: confidence.beside."""
    agent.crowd()
    agent.load(
        *(memory("heliotrope" + " again" * n, 0.4 + n / 32, at=-100 * n) for n in range(8)),
        *(memory(f"meaning {n}", 0.7 - n / 64, at=-n) for n in range(8)),
    )
    answers = {
        mode: agent.recall("heliotrope again", LEGACY | {"recall_mode": mode}, limit=16, deep=True)
        for mode in ("rrf", "rsf")
    }
    assert refs(answers["rrf"]) == refs(answers["rsf"])
    off = {
        mode: agent.recall("heliotrope again", {"recall_mode": mode}, limit=16, deep=True) for mode in ("rrf", "rsf")
    }
    assert refs(off["rrf"]) != refs(off["rsf"])


def test_under_legacy_the_fusion_mode_still_selects_which_candidates_enter(agent):
    """Contract: confidence.beside."""
    agent.crowd()
    worded, *meant = agent.load(memory("heliotrope", 0.5), *(memory(f"meaning {n}", 0.7, at=n) for n in range(2)))
    # Cascade fills up with words only while there is room; the floor of the vector channel keeps the worded row out of
    # it.
    set = LEGACY | {"vector_min_similarity": 0.6, "rrf_threshold_factor": 1.0}
    assert worded not in refs(agent.recall("heliotrope", set | {"recall_mode": "cascade"}, limit=2))
    assert worded in refs(agent.recall("heliotrope", set, limit=3))


def test_the_gate_signal_is_rsf_before_cosine_before_rrf(agent):
    """Contract: gate.signal."""
    agent.crowd()
    meant, worded = agent.load(memory("by meaning", 0.6), memory("by the word heliotrope"))
    assert {r["signal"] for r in reasons(agent.recall("heliotrope", {"recall_mode": "rsf"})).values()} == {"rsf"}
    found = reasons(agent.recall("heliotrope"))
    assert (found[meant]["signal"], found[worded]["signal"]) == ("cosine", "rrf")


def test_confidence_comes_first_in_the_chain_only_under_legacy(agent):
    """Contract: gate.signal."""
    agent.crowd()
    (row,) = agent.load(memory("by meaning", 0.6))
    for mode in ("rrf", "rsf", "cascade"):
        assert reasons(agent.recall("a question", LEGACY | {"recall_mode": mode}))[row]["signal"] == "confidence"
        assert reasons(agent.recall("a question", ON | {"recall_mode": mode}))[row]["signal"] != "confidence"


def test_match_reason_prior_reports_the_weight_that_ordered_the_row_when_the_age_weight_is_set(agent):
    """Contract: prior.age."""
    new, old = agent.load(memory("new", 0.6, at=0), memory("old", 0.6, at=-100))
    assert all("prior" not in reason for reason in reasons(agent.recall("a question")).values())
    found = reasons(agent.recall("a question", {"prior_age_rate": 0.01}))
    assert (found[new]["prior"], found[old]["prior"]) == (1.0, 0.5)


def test_rows_that_were_never_scored_omit_match_reason(agent):
    """Contract: answer.rows."""
    agent.crowd()
    meant, worded = agent.load(memory("by meaning", 0.6), memory("by the word heliotrope"))
    agent.own("update_profile", profile="likes tea")
    answer = agent.recall("heliotrope", {"recall_mode": "cascade"})
    assert set(refs(answer)) == {meant, worded, "profile"}
    assert set(reasons(answer)) == {meant}


def test_keyword_rows_of_a_cascade_omit_match_reason_too(reader):
    """Contract: answer.rows, lexical.keyword."""
    reader.crowd()
    (row,) = reader.load(memory("the heliotrope stands there"))
    answer = reader.recall("heliotrope", {"recall_mode": "cascade", "fts_enabled": False})
    assert refs(answer) == [row] and reasons(answer) == {}


def test_under_legacy_the_profile_row_carries_match_reason_too(agent):
    """Contract: answer.rows."""
    agent.crowd(50)
    agent.own("update_profile", profile="likes tea")
    assert reasons(agent.recall("a question", LEGACY))["profile"]["signal"] == "confidence"
    assert reasons(agent.recall("a question", ON)) == {}


def test_confidence_is_not_match_strength_and_an_exact_match_can_score_below_a_paraphrase(agent):
    """Contract: confidence.score."""
    agent.crowd()
    exact, paraphrase = agent.load(
        memory("which heliotrope", 1.0, at=-5 * HOURS_PER_YEAR), memory("a purple flower", 0.6, at=0)
    )
    values = {row["ref"]: row["confidence"]["score"] for row in agent.recall("which heliotrope", ON)["messages"]}
    assert values[exact] < values[paraphrase]


def value_of(agent, row, **params):
    return next(m["confidence"] for m in agent.recall("a question", ON, **params)["messages"] if m.get("ref") == row)


def test_confidence_blends_similarity_with_a_time_decay(agent):
    """Contract: confidence.score."""
    far, near, old = agent.load(
        memory("far", 0.55, at=0), memory("near", 0.65, at=0), memory("old", 0.65, at=-HOURS_PER_YEAR)
    )
    found = {m["ref"]: m["confidence"] for m in agent.recall("a question", ON)["messages"]}
    rate = 0.005 / (HOURS_PER_YEAR / 168)
    for row, cosine in ((far, 0.55), (near, 0.65), (old, 0.65)):
        decay = max(0.3, 1 / (1 + found[row]["age_hours"] * rate))
        assert found[row]["score"] == pytest.approx(math.sqrt((cosine - 0.2) / 0.55 * decay), abs=2e-4)
    assert found[old]["score"] < found[near]["score"]


def test_a_resolved_episode_scores_three_tenths_of_an_open_one(agent):
    """Contract: confidence.score."""
    open_, resolved = agent.load(episode("open", 0.6, at=0), episode("resolved", 0.6, at=0, resolved=True))
    assert value_of(agent, resolved)["score"] == pytest.approx(0.3 * value_of(agent, open_)["score"], abs=1e-4)
    assert value_of(agent, resolved)["resolved"] is True


def test_recall_count_lifts_the_floor_of_the_time_decay(agent):
    """Contract: confidence.score."""
    never, often = agent.load(
        memory("never recalled", 0.6, at=-50 * HOURS_PER_YEAR),
        memory("often recalled", 0.6, at=-50 * HOURS_PER_YEAR, recall_count=1000),
    )
    set = ON | {"recent_recall_penalty": 1.0}
    found = {m["ref"]: m["confidence"]["score"] for m in agent.recall("a question", set)["messages"]}
    assert found[often] > found[never]


def test_a_row_of_unknown_age_takes_the_middle_of_the_span_and_says_so(agent):
    """Contract: confidence.score."""
    new, old, undated = agent.load(
        memory("new", 0.6, at=0), memory("old", 0.6, at=-100), memory("undated", 0.6, timestamp="")
    )
    found = {row: value_of(agent, row) for row in (new, old, undated)}
    assert found[undated]["age_unknown"] is True and "age_unknown" not in found[new]
    assert found[undated]["age_hours"] == pytest.approx(
        (found[new]["age_hours"] + found[old]["age_hours"]) / 2, abs=0.11
    )


def test_rows_found_by_words_show_their_real_cosine_and_nothing_else_moves(agent):
    """Contract: confidence.beside."""
    agent.crowd()
    (row,) = agent.load(memory("the word heliotrope", 0.1))
    off, on = agent.recall("heliotrope"), agent.recall("heliotrope", ON)
    assert "cosine" not in reasons(off)[row]
    assert reasons(on)[row]["cosine"] == pytest.approx(0.1, abs=1e-6)
    assert (reasons(on)[row]["signal"], reasons(on)[row]["score"]) == (
        reasons(off)[row]["signal"],
        reasons(off)[row]["score"],
    )


def test_a_recall_with_confidence_on_counts_the_returned_memories(agent):
    """Contract: confidence.counts."""
    returned, left_out = agent.load(memory("returned", 0.6), memory("left out", 0.5))
    agent.recall("a question", ON, limit=1)
    count, last = agent.counted(returned)
    assert count == 1 and last is not None
    assert agent.counted(left_out) == (0, None)


@pytest.mark.parametrize(
    ("set", "params"),
    [({}, {}), (ON, {"deep": True}), (ON, {"session_key": "paused"}), (ON, {"uncounted": True})],
    ids=["off", "deep", "paused", "uncounted"],
)
def test_a_recall_with_confidence_off_or_deep_or_paused_or_uncounted_writes_nothing(agent, set, params):
    """Contract: confidence.counts, recall.uncounted."""
    (row,) = agent.load(memory("a row", 0.6))
    agent.ask("pause_persistence", session_key="paused")
    assert refs(agent.recall("a question", set, **params)) == [row]
    assert agent.counted(row) == (0, None)
