"""Scores order one response; they do not say whether an answer exists.

Contract: scores.meaning, scores.rsf, fusion.rrf.
"""

import pytest
from contract_kit import episode, memory, reasons, refs

RSF = {"recall_mode": "rsf"}


def test_match_reason_score_is_the_value_that_the_gate_compared(agent):
    """Contract: scores.meaning."""
    agent.crowd()
    agent.load(memory("by meaning", 0.6), memory("the word heliotrope"), episode("an episode", 0.5))
    for mode in ("rrf", "rsf", "cascade"):
        answer = agent.recall("heliotrope", {"recall_mode": mode}, trace=True)
        traced = {row["ref"]: row for row in answer["trace"]["rows"]}
        for ref, reason in reasons(answer).items():
            assert (reason["signal"], reason["score"]) == (traced[ref]["signal"], traced[ref]["score"])
            assert reason["score"] == reason[reason["signal"]] >= traced[ref]["threshold"]


def test_under_rsf_a_row_that_one_of_two_channels_ranks_first_scores_exactly_one_half(agent):
    """Contract: scores.rsf."""
    meant, worded = agent.load(memory("by meaning", 0.16), memory("the word heliotrope"))
    found = reasons(agent.recall("heliotrope", RSF))
    assert found[meant]["rsf"] == found[worded]["rsf"] == 0.5


def test_under_rsf_a_row_that_both_rank_first_scores_one(agent):
    """Contract: scores.rsf."""
    both, _, _ = agent.load(
        memory("heliotrope heliotrope", 0.9),
        memory("a heliotrope among very many other words", 0.3),
        memory("none", 0.4),
    )
    assert reasons(agent.recall("heliotrope", RSF))[both]["rsf"] == 1.0


def test_under_rsf_the_top_row_of_the_only_active_channel_scores_one(agent):
    """Contract: scores.rsf."""
    top, _ = agent.load(memory("near", 0.3), memory("far", 0.2))
    assert reasons(agent.recall("a question", RSF))[top]["rsf"] == 1.0


def test_under_rsf_a_row_that_one_of_three_channels_ranks_first_scores_a_third(agent):
    """Contract: scores.rsf."""
    agent.crowd()
    rows = agent.load(memory("by meaning", 0.6), memory("the word heliotrope"), episode("an episode of heliotrope"))
    found = reasons(agent.recall("heliotrope", RSF))
    assert [found[row]["rsf"] for row in rows] == [1 / 3] * 3


def test_under_rsf_scores_are_min_max_normalised_within_the_query(agent):
    """Contract: scores.rsf."""
    agent.crowd()
    rows = agent.load(memory("low", 0.25), memory("middle", 0.5), memory("high", 0.75))
    found = reasons(agent.recall("a question", RSF, deep=True))
    assert found[rows[1]]["rsf"] == pytest.approx(0.5, abs=1e-6) and found[rows[2]]["rsf"] == 1.0
    assert rows[0] not in found


def test_under_rsf_a_question_that_the_store_cannot_answer_scores_as_a_known_hit_does(agent):
    """Contract: scores.meaning, scores.rsf."""
    agent.load(memory("a heliotrope grows here", 0.9), memory("something else", 0.16))
    hit = agent.recall("heliotrope", RSF)["messages"][-1]["match_reason"]["score"]
    (strange,) = agent.load(memory("about zinc", 0.151))
    miss = [r["score"] for r in reasons(agent.recall("zinc mines of Mars", RSF)).values()]
    assert hit == 1.0 and max(miss) >= 0.5


def test_under_rrf_the_cosine_of_a_row_that_has_one_is_absolute(agent):
    """Contract: scores.meaning."""
    (row,) = agent.load(memory("a row", 0.625))
    alone = reasons(agent.recall("a question"))[row]
    agent.load(*(memory(f"better {n}", 0.9) for n in range(5)))
    among = reasons(agent.recall("another question"))[row]
    assert alone["signal"] == among["signal"] == "cosine"
    assert alone["score"] == among["score"] == pytest.approx(0.625, abs=1e-6)


def test_under_rrf_a_row_without_a_cosine_has_a_sum_of_reciprocal_ranks(reader):
    """Contract: fusion.rrf."""
    reader.crowd()
    rows = reader.load(*(memory("heliotrope" + " and more words" * n) for n in range(3)))
    found = reasons(reader.recall("heliotrope"))
    assert [found[row]["score"] for row in rows] == [1 / 61, 1 / 62, 1 / 63]
    assert {reason["signal"] for reason in found.values()} == {"rrf"}


def test_an_rrf_score_depends_on_positions_and_not_on_how_close_the_match_is(reader):
    """Contract: fusion.rrf."""
    reader.crowd()
    (row,) = reader.load(memory("heliotrope"))
    assert (
        reasons(reader.recall("heliotrope"))[row]["score"]
        == reasons(reader.recall("heliotrope seven oaks under grey clouds"))[row]["score"]
    )


@pytest.mark.parametrize("mode", ["rrf", "rsf", "cascade"])
def test_match_reason_cosine_is_the_raw_cosine_whatever_the_signal(agent, mode):
    """Contract: scores.meaning."""
    agent.crowd()
    (row,) = agent.load(memory("a row", 0.625))
    assert reasons(agent.recall("a question", {"recall_mode": mode}))[row]["cosine"] == pytest.approx(0.625, abs=1e-6)


def test_only_the_episode_penalty_scales_that_cosine(agent):
    """Contract: penalty.episode."""
    agent.crowd()
    row, _ = agent.load(memory("a row", 0.625, at=-1000), episode("boundary", at=0))
    assert reasons(agent.recall("a question", {"episode_penalty_enabled": True}))[row]["cosine"] == pytest.approx(
        0.3125, abs=1e-6
    )


def test_under_the_defaults_a_recall_whose_every_candidate_is_below_the_gate_returns_no_rows(agent):
    """Contract: gate.signal."""
    agent.load(memory("a row", 0.3), memory("the word heliotrope", 0.2))
    answer = agent.recall("heliotrope")
    assert answer["messages"] == [] and (answer["considered"], answer["gated"]) == (2, 2)


def test_under_rsf_a_pool_of_weak_candidates_still_passes(agent):
    """Contract: scores.meaning, scores.rsf."""
    weak, _ = agent.load(memory("a row", 0.17), memory("another", 0.16))
    assert agent.recall("a question")["messages"] == []
    assert refs(agent.recall("a question", RSF)) == [weak]


def test_a_reconstruct_with_no_candidates_says_no_relevant_evidence(agent):
    """Contract: associations.reconstruct."""
    agent.load(memory("a row", 0.01))
    answer = agent.reconstruct("a question")
    assert (answer["items"], answer["shortfall_reason"]) == ([], "no_relevant_evidence")


def test_a_reconstruct_whose_candidates_are_all_below_the_gate_says_below_quality_threshold(agent):
    """Contract: associations.reconstruct."""
    agent.load(memory("a row", 0.3))
    answer = agent.reconstruct("a question")
    assert (answer["items"], answer["shortfall_reason"]) == ([], "below_quality_threshold")
