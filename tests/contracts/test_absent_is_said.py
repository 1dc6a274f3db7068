"""An empty recall says what it looked at. Contract: missed.best."""

import pytest
from contract_kit import memory


def test_an_empty_recall_names_the_row_that_came_nearest_and_by_how_much_it_missed(agent):
    _, near = agent.load(memory("the gate dropped it", 0.2), memory("this came nearer", 0.31))
    answer = agent.recall("a question")
    assert answer["messages"] == [] and (answer["considered"], answer["gated"]) == (2, 2)
    missed = answer["best_missed"]
    assert (missed["ref"], missed["signal"], missed["threshold"]) == (near, "cosine", 0.447)
    assert missed["score"] == pytest.approx(0.31, abs=1e-6)


def test_where_no_row_was_a_candidate_the_most_similar_one_is_compared_with_the_floor(agent):
    _, near = agent.load(memory("far away", -0.2), memory("not quite so far", 0.1))
    answer = agent.recall("a question")
    assert (answer["messages"], answer["considered"]) == ([], 0)
    assert (answer["best_missed"]["ref"], answer["best_missed"]["threshold"]) == (near, 0.15)


def test_an_empty_store_has_nothing_that_missed(agent, reader):
    for one in (agent, reader):
        answer = one.recall("a question")
        assert answer["considered"] == 0 and "best_missed" not in answer


def test_a_full_answer_says_nothing_about_what_missed(agent):
    agent.load(memory("a match", 0.9), memory("none", 0.2))
    assert not {"best_missed", "considered", "gated"} & set(agent.recall("a question"))


def test_what_missed_is_told_without_any_content(agent):
    agent.load(memory("the vault's number is 4711", 0.2))
    assert "4711" not in str(agent.recall("a question"))


def test_absolute_gives_rows_found_by_words_their_real_cosine_and_moves_nothing(agent):
    agent.crowd()
    (word,) = agent.load(memory("the word heliotrope", 0.05))
    plain, absolute = agent.recall("heliotrope"), agent.recall("heliotrope", absolute=True)
    assert "cosine" not in plain["messages"][0]["match_reason"]
    reason = absolute["messages"][0]["match_reason"]
    assert (absolute["messages"][0]["ref"], reason["signal"], reason["score"]) == (
        word,
        "rrf",
        plain["messages"][0]["match_reason"]["score"],
    )
    assert reason["cosine"] == pytest.approx(0.05, abs=1e-6)
