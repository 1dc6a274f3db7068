"""Profile rows carry no score. Contract: profile.row, profile.one."""

import pytest
from contract_kit import episode, memory, refs

ON = {"confidence_enabled": True}
LEGACY = ON | {"confidence_ordering": "legacy"}


def profiled(agent, pool):
    agent.crowd(pool)
    assert agent.own("update_profile", profile="likes tea")["ok"]
    return agent


def test_the_profile_is_appended_as_a_row_that_does_not_participate_in_scoring(agent):
    """Contract: profile.row."""
    answer = profiled(agent, 50).recall("a question")
    assert answer["messages"] == [{"content": "[Profile] likes tea", "source": {"System": "profile"}}]


def test_a_second_update_profile_replaces_the_first(agent):
    """Contract: profile.one."""
    profiled(agent, 50)
    agent.own("update_profile", profile="likes coffee")
    assert [row["content"] for row in agent.recall("a question")["messages"]] == ["[Profile] likes coffee"]
    assert agent.own("get_profile") == {"profile": "likes coffee"}


@pytest.mark.parametrize("set", [{}, ON, LEGACY], ids=["confidence off", "confidence on", "legacy"])
def test_the_row_is_dropped_on_a_pool_of_fewer_than_fifty_rows_with_confidence_on_or_off(agent, set):
    """Contract: profile.row, gate.minimum."""
    profiled(agent, 49)
    assert refs(agent.recall("a question", set)) == []
    agent.load(memory("the fiftieth row"))
    assert refs(agent.recall("a question", set)) == ["profile"]


def test_the_pool_is_the_summed_memories_and_episodes(agent):
    """Contract: profile.row, gate.minimum."""
    profiled(agent, 25)
    agent.load(*(episode(f"episode {n}") for n in range(24)))
    assert refs(agent.recall("a question")) == []
    agent.load(episode("the fiftieth row"))
    assert refs(agent.recall("a question")) == ["profile"]


def test_a_narrowly_scoped_corpus_gets_no_profile_row(agent):
    """Contract: profile.row, gate.minimum."""
    profiled(agent, 0)
    agent.load(*(memory(f"row {n}", project_id="p", channel="c") for n in range(50)))
    assert refs(agent.recall("a question")) == ["profile"]
    assert refs(agent.recall("a question", project_id="q")) == []
    assert refs(agent.recall("a question", channel="d")) == []


def test_a_source_does_not_narrow_the_pool(agent):
    """Contract: profile.row, gate.minimum."""
    profiled(agent, 50)
    assert refs(agent.recall("a question", source_id="nobody")) == ["profile"]


@pytest.mark.parametrize("set", [{}, ON], ids=["confidence off", "confidence on"])
def test_the_profile_sorts_last_and_so_stands_at_the_head_of_the_response(agent, set):
    """Contract: profile.row."""
    profiled(agent, 500)
    (row,) = agent.load(memory("found", 0.6))
    assert refs(agent.recall("a question", set)) == ["profile", row]


@pytest.mark.parametrize("set", [{}, ON], ids=["confidence off", "confidence on"])
def test_the_profile_is_cut_by_limit_when_the_scored_results_fill_it(agent, set):
    """Contract: profile.row, recall.limit."""
    profiled(agent, 500)
    agent.load(*(memory(f"found {n}", 0.6) for n in range(3)))
    assert "profile" not in refs(agent.recall("a question", set, limit=3))
    assert "profile" in refs(agent.recall("a question", set, limit=4))


def test_under_legacy_the_profile_receives_a_high_confidence_and_surfaces_near_the_top(agent):
    """Contract: profile.row."""
    profiled(agent, 500)
    rows = agent.load(*(memory(f"found {n}", 0.4, at=0) for n in range(3)))
    answer = agent.recall("a question", LEGACY, limit=3)
    assert refs(answer)[-1] == "profile" and len(answer["messages"]) == 3 and set(refs(answer)) < {*rows, "profile"}
    assert answer["messages"][-1]["confidence"]["score"] > answer["messages"][-2]["confidence"]["score"]


def test_a_query_that_no_row_answers_returns_nothing_from_thirty_rows_and_the_profile_from_fifty(agent, other):
    """Contract: profile.row."""
    assert profiled(agent, 30).recall("a question", ON)["messages"] == []
    assert refs(profiled(other, 50).recall("a question", ON)) == ["profile"]


def test_the_profile_is_whole_however_long_it_is(agent):
    """Contract: preview.prefix."""
    profiled(agent, 50)
    agent.own("update_profile", profile="x" * 1500)
    (row,) = agent.recall("a question")["messages"]
    assert row["content"] == "[Profile] " + "x" * 1500 and "content_truncated" not in row
