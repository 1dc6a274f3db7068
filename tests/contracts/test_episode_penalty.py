"""The episode boundary penalty. Contract: penalty.episode."""

import math

import pytest
from contract_kit import episode, memory, reasons, refs

ON = {"episode_penalty_enabled": True}


def weights(agent, set=ON, query="a question", **params):
    """What the penalty made of each row's cosine, by ref."""
    off, on = reasons(agent.recall(query, **params)), reasons(agent.recall(query, set, **params))
    return {ref: on[ref]["cosine"] / off[ref]["cosine"] for ref in on if "cosine" in off[ref]}


def test_the_penalty_is_off_by_default(agent):
    """Contract: penalty.episode."""
    (old,) = agent.load(memory("old", 0.8, at=-1000), episode("boundary", at=0))[:1]
    assert reasons(agent.recall("a question"))[old]["cosine"] == pytest.approx(0.8, abs=1e-6)


def test_memories_older_than_the_boundary_are_multiplied_by_an_exponential_decay_with_a_floor(agent):
    """Contract: penalty.episode."""
    agent.crowd()
    ten, forty, month = agent.load(
        memory("ten", 0.8, at=-10),
        memory("forty", 0.8, at=-40),
        memory("month", 0.8, at=-720),
        episode("boundary", at=0),
    )[:3]
    found = weights(agent)
    assert found[ten] == pytest.approx(math.exp(-0.1))
    assert found[forty] == pytest.approx(math.exp(-0.4))
    assert found[month] == pytest.approx(0.5)


def test_rate_and_floor_are_settings(agent):
    """Contract: penalty.episode."""
    agent.crowd()
    ten, month = agent.load(memory("ten", 0.8, at=-10), memory("month", 0.8, at=-720), episode("boundary", at=0))[:2]
    found = weights(agent, ON | {"episode_decay_rate": 0.02, "episode_decay_floor": 0.25})
    assert (found[ten], found[month]) == (pytest.approx(math.exp(-0.2)), pytest.approx(0.25))


def test_fused_scores_are_multiplied_too_and_the_list_is_sorted_again(agent):
    """Contract: penalty.episode."""
    agent.crowd()
    answer, unrelated = agent.load(
        memory("the answer", 0.8, at=-1000), memory("unrelated", 0.5, at=1), episode("boundary", at=0)
    )[:2]
    assert refs(agent.recall("a question")) == [unrelated, answer]
    for mode, signal in (("rrf", "rrf"), ("rsf", "rsf")):
        off, on = (
            reasons(agent.recall("a question", set | {"recall_mode": mode, "fused_gate_enabled": False}))
            for set in ({}, ON)
        )
        assert on[answer][signal] == pytest.approx(off[answer][signal] / 2)
    assert refs(agent.recall("a question", ON)) == [answer, unrelated]


def test_the_boundary_is_the_latest_episodes_created_at_and_not_its_time_span(agent):
    """Contract: penalty.episode."""
    agent.crowd()
    (row,) = agent.load(
        memory("a row", 0.8, at=-10),
        episode("older", at=-500),
        episode("latest", at=0, start_time="2031-01-01T00:00:00Z", end_time="2031-01-02T00:00:00Z"),
    )[:1]
    assert weights(agent)[row] == pytest.approx(math.exp(-0.1))


@pytest.mark.parametrize("axis", ["project_id", "channel"])
def test_the_boundary_is_scoped_to_the_same_axes_as_the_query(agent, axis):
    """Contract: penalty.episode, scope.axes."""
    agent.crowd()
    mine, theirs = {axis: "mine"}, {axis: "theirs"}
    (row,) = agent.load(memory("a row", 0.8, at=-10, **mine), episode("elsewhere", at=100, **theirs))[:1]
    assert weights(agent, **mine)[row] == 1.0
    agent.load(episode("here", at=0, **mine))
    assert weights(agent, **mine)[row] == pytest.approx(math.exp(-0.1))
    assert weights(agent)[row] == pytest.approx(max(0.5, math.exp(-1.1)))


def test_another_agents_episode_does_not_move_the_boundary(agent, other):
    """Contract: penalty.episode, scope.axes."""
    (row,) = agent.load(memory("a row", 0.8, at=-10))
    other.load(episode("elsewhere", at=0))
    assert weights(agent)[row] == 1.0


def test_memories_at_or_after_the_boundary_are_untouched(agent):
    """Contract: penalty.episode."""
    at, after = agent.load(memory("at", 0.8, at=0), memory("after", 0.8, at=1), episode("boundary", at=0))[:2]
    assert weights(agent) == {at: 1.0, after: 1.0}


def test_with_the_defaults_everything_older_than_three_days_is_uniformly_halved(agent):
    """Contract: penalty.episode."""
    agent.crowd()
    before, after, year = agent.load(
        memory("69 h", 0.8, at=-69),
        memory("70 h", 0.8, at=-70),
        memory("a year", 0.8, at=-8760),
        episode("boundary", at=0),
    )[:3]
    found = weights(agent)
    assert found[before] > 0.5 and found[after] == found[year] == 0.5


def test_a_rate_of_two_thousandths_stretches_the_ramp_to_two_weeks(agent):
    """Contract: penalty.episode."""
    agent.crowd()
    week, month = agent.load(
        memory("a week", 0.8, at=-168), memory("15 days", 0.8, at=-360), episode("boundary", at=0)
    )[:2]
    found = weights(agent, ON | {"episode_decay_rate": 0.002})
    assert found[week] == pytest.approx(math.exp(-0.336)) and found[month] == 0.5


def test_backfilling_with_archive_episode_makes_the_import_time_the_boundary(agent):
    """Contract: penalty.episode."""
    agent.crowd()
    (row,) = agent.load(memory("of long ago", 0.8, at=-5000), episode("its session", at=-5000))[:1]
    assert weights(agent)[row] == 1.0
    history = [{"timestamp": "2019-01-01T00:00:00Z"}]
    assert agent.own("archive_episode", summary="a conversation of 2019", history=history)["ok"]
    assert weights(agent)[row] == 0.5


def test_episodes_and_undated_rows_are_exempt(agent):
    """Contract: penalty.episode."""
    undated, early = agent.load(
        memory("undated", 0.8, at=-100, timestamp="no date"), episode("early", 0.8, at=-100), episode("boundary", at=0)
    )[:2]
    assert weights(agent) == {undated: 1.0, early: 1.0}


def test_the_penalty_reaches_the_quality_gate(agent):
    """Contract: penalty.episode, gate.signal."""
    (row,) = agent.load(memory("old", 0.6, at=-1000), episode("boundary", at=0))[:1]
    assert refs(agent.recall("a question")) == [row]
    assert refs(agent.recall("a question", ON)) == []
