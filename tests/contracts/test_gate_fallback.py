"""gate_fallback responses are low-confidence. Contract: gate.fallback."""

import pytest
from contract_kit import memory, refs

ON = {"confidence_enabled": True}
LEGACY = ON | {"confidence_ordering": "legacy"}


def hash_lookup(agent):
    """The row that holds the identifier is far in meaning from the question."""
    return agent.load(memory("the fix is in 9f8e7d6c5b", 0.22), memory("something near and useless", 0.3))


def test_when_every_candidate_is_below_the_gate_the_lexical_matches_come_back_marked(agent):
    """Contract: gate.fallback."""
    exact, _ = hash_lookup(agent)
    answer = agent.recall("9f8e7d6c5b", LEGACY)
    assert answer["gate_fallback"] is True
    assert refs(answer) == [exact]


def test_the_rescued_rows_stand_in_confidence_order(agent):
    """Contract: gate.fallback."""
    low, high = agent.load(memory("one 9f8e7d6c5b", 0.21), memory("two 9f8e7d6c5b", 0.25))
    answer = agent.recall("9f8e7d6c5b", LEGACY)
    assert (answer["gate_fallback"], refs(answer)) == (True, [low, high])


def test_gate_fallback_is_absent_where_some_row_passed(agent):
    """Contract: gate.fallback."""
    agent.crowd()
    hash_lookup(agent)
    (found,) = agent.load(memory("a good match", 0.9, at=0))
    answer = agent.recall("9f8e7d6c5b", LEGACY)
    assert found in refs(answer) and "gate_fallback" not in answer


@pytest.mark.parametrize("set", [{}, ON, {"recall_mode": "cascade"}], ids=["defaults", "confidence on", "cascade"])
def test_without_confidence_ordering_an_all_below_gate_recall_returns_nothing(agent, set):
    """Contract: gate.fallback."""
    hash_lookup(agent)
    agent.own("update_profile", profile="too small a pool for it")
    answer = agent.recall("9f8e7d6c5b", set)
    assert answer["messages"] == [] and "gate_fallback" not in answer
    assert answer["considered"] == 2 == answer["gated"]


def test_the_rescued_rows_come_back_without_the_profile_and_a_trace_accounts_for_both(agent):
    """Contract: gate.fallback, explain.account."""
    agent.crowd(60)
    agent.own("update_profile", profile="likes tea")
    exact, near = agent.load(memory("the fix is in 9f8e7d6c5b", 0.22), memory("something near and useless", 0.24))
    answer = agent.recall("9f8e7d6c5b", LEGACY, trace=True)
    assert (answer["gate_fallback"], refs(answer)) == (True, [exact])
    assert {row["ref"]: row["fate"] for row in answer["trace"]["rows"]} == {
        exact: "returned",
        near: "gate",
        "profile": "gate_fallback",
    }
    stages = answer["trace"]["stages"]
    assert (stages["considered"], stages["returned"], stages["below_gate"]) == (2, 1, 1)


def test_only_rows_whose_cosine_was_backfilled_are_rescued(reader):
    """Contract: gate.fallback."""
    reader.load(memory("the fix is in 9f8e7d6c5b"))
    answer = reader.recall("9f8e7d6c5b", LEGACY | {"decay_floor": 0.0, "decay_ceil": 0.0, "decay_rate": 1000})
    assert answer["messages"] == [] and "gate_fallback" not in answer


def test_a_rescued_recall_counts_no_recalls(agent):
    """Contract: confidence.counts, gate.fallback."""
    exact, _ = hash_lookup(agent)
    assert agent.recall("9f8e7d6c5b", LEGACY)["gate_fallback"] is True
    assert agent.counted(exact) == (0, None)
