"""The vector scan window and the reach beyond it. Contract: window.near, window.reach."""

import pytest
from contract_kit import episode, memory, reasons, refs, with_vector

WINDOW = {"max_memories": 3}
REACH = WINDOW | {"vector_reach": 100}


def ladder(agent, count=6, kind=memory):
    """Rows that no word finds; the oldest is the nearest. Returned newest first."""
    return agent.load(*(kind(f"row {n}", 0.6 + n / 64, at=-n) for n in range(count)))


def test_vector_search_considers_the_most_recent_rows(agent):
    """Contract: window.near."""
    rows = ladder(agent)
    assert set(refs(agent.recall("a question", WINDOW))) == set(rows[:3])
    assert set(refs(agent.recall("a question"))) == set(rows)


def test_most_recent_means_created_at_and_not_the_callers_timestamp(agent):
    """Contract: window.near."""
    late, early = agent.load(
        memory("written late", 0.6, at=5, timestamp="1999-01-01T00:00:00Z"),
        memory("written early", 0.7, at=1, timestamp="2031-01-01T00:00:00Z"),
    )
    assert refs(agent.recall("a question", {"max_memories": 1})) == [late]
    assert set(refs(agent.recall("a question"))) == {late, early}


def test_within_one_second_the_window_takes_the_lower_id_first(agent):
    """Contract: window.near."""
    first, second = agent.load(memory("first", 0.6, at=0), memory("second", 0.7, at=0))
    assert refs(agent.recall("a question", {"max_memories": 1})) == [first]
    assert refs(agent.recall("", limit=1)) == [second]


def test_memories_and_episodes_are_each_scanned_under_the_window(agent):
    """Contract: window.near."""
    memories, episodes = ladder(agent), ladder(agent, kind=episode)
    assert set(refs(agent.recall("a question", WINDOW))) == {*memories[:3], *episodes[:3]}


def test_rows_older_than_the_window_are_reachable_through_the_fts_and_keyword_channels(agent):
    """Contract: window.near, lexical.order."""
    agent.crowd()
    *_, old = agent.load(*(memory(f"row {n}", 0.6, at=-n) for n in range(5)), memory("an old heliotrope", 0.9, at=-9))
    assert old not in refs(agent.recall("a question", WINDOW))
    assert reasons(agent.recall("heliotrope", WINDOW))[old]["signal"] == "rrf"
    assert reasons(agent.recall("heliotrope", WINDOW | {"fts_enabled": False}))[old]["signal"] == "rrf"


def test_the_window_is_not_a_storage_cap(agent):
    """Contract: window.near."""
    rows = ladder(agent)
    agent.recall("a question", WINDOW)
    assert agent.own("list_memories")["count"] == len(rows)
    assert agent.own("get_contents", refs=rows)["count"] == len(rows)


def test_widening_the_window_displaces_recent_rows_from_the_list(agent):
    """Contract: window.near."""
    rows = ladder(agent)
    assert set(refs(agent.recall("a question", WINDOW, limit=3))) == set(rows[:3])
    assert set(refs(agent.recall("a question", limit=3))) == set(rows[3:])


@pytest.mark.parametrize("reach", [0, 2, 3])
def test_a_reach_at_or_below_the_window_changes_nothing(agent, reach):
    """Contract: window.reach."""
    ladder(agent)
    assert agent.recall("a question", WINDOW | {"vector_reach": reach}) == agent.recall("a question", WINDOW)


def lists(answer):
    return {entry["channel"]: entry["rows"] for entry in answer["trace"]["channels"]}


def test_the_rows_between_window_and_reach_are_ranked_as_a_second_list_of_its_own(agent):
    """Contract: window.reach."""
    agent.crowd()
    rows = ladder(agent)
    answer = agent.recall("a question", WINDOW | {"vector_reach": 5}, trace=True)
    assert lists(answer) == {"vector_near": 3, "vector_far": 2}
    # Both lists begin at rank 0: the nearest far row has the vote of a first place.
    assert reasons(answer)[rows[4]]["rrf"] == reasons(answer)[rows[2]]["rrf"] == 1 / 61
    assert rows[5] not in refs(answer)


def test_the_window_keeps_its_width_and_every_row_in_it_the_vote_it_has(agent):
    """Contract: window.reach."""
    agent.crowd()
    ladder(agent)
    without, with_reach = reasons(agent.recall("a question", WINDOW)), reasons(agent.recall("a question", REACH))
    assert with_reach.keys() > without.keys()
    assert all(with_reach[ref] == reason for ref, reason in without.items())


def test_the_far_list_has_the_same_threshold(agent):
    """Contract: window.reach."""
    agent.crowd()
    ladder(agent)
    (low,) = agent.load(memory("far and below the floor", 0.14, at=-50))
    (edge,) = agent.load(memory("far and above the floor", 0.21, at=-51))
    found = refs(agent.recall("a question", REACH))
    assert edge in found and low not in found


def test_the_far_list_has_the_same_cut(agent):
    """Contract: window.reach."""
    agent.crowd()
    ladder(agent, 8)
    assert lists(agent.recall("a question", REACH, limit=2, trace=True)) == {"vector_near": 2, "vector_far": 2}


def test_a_far_limit_takes_the_smaller_number_from_the_head_of_the_same_list(agent):
    """Contract: window.reach."""
    agent.crowd()
    ladder(agent, 8)
    whole = reasons(agent.recall("a question", REACH))
    limited = reasons(agent.recall("a question", REACH | {"vector_far_limit": 2}))
    far = [
        ref
        for ref in refs(agent.recall("a question", REACH, limit=100))
        if ref not in refs(agent.recall("a question", WINDOW))
    ]
    assert set(whole) - set(limited) == set(sorted(far, key=lambda ref: -whole[ref]["cosine"])[2:])
    assert lists(agent.recall("a question", REACH | {"vector_far_limit": 50}, limit=3, trace=True))["vector_far"] == 3


def test_a_far_limit_decides_how_many_may_vote_and_nothing_about_how_a_row_is_scored(agent):
    """Contract: window.reach."""
    agent.crowd()
    ladder(agent, 8)
    whole = reasons(agent.recall("a question", REACH))
    for ref, reason in reasons(agent.recall("a question", REACH | {"vector_far_limit": 2})).items():
        assert reason == whole[ref]


def test_cascade_ignores_the_reach(agent):
    """Contract: window.reach."""
    ladder(agent)
    assert agent.recall("a question", REACH | {"recall_mode": "cascade"}) == agent.recall(
        "a question", WINDOW | {"recall_mode": "cascade"}
    )


def test_under_rsf_the_far_list_is_a_channel_more_and_lowers_every_fused_score(agent):
    """Contract: window.reach, scores.rsf."""
    agent.crowd()
    ladder(agent)
    rsf = {"recall_mode": "rsf"}
    without, with_reach = (
        reasons(agent.recall("a question", WINDOW | rsf, deep=True)),
        reasons(agent.recall("a question", REACH | rsf, deep=True)),
    )
    for ref in without.keys() & with_reach.keys():
        assert with_reach[ref]["rsf"] == pytest.approx(without[ref]["rsf"] / 2)


def test_a_row_of_another_width_keeps_its_place_in_the_window_and_is_skipped(agent):
    """Contract: window.near."""
    agent.load(memory("of another width", at=2, **with_vector([1.0, 0.0, 0.0, 0.0], "narrow")))
    near, old = agent.load(memory("near", 0.7, at=1), memory("old", 0.9, at=0))
    assert refs(agent.recall("a question", {"max_memories": 2})) == [near]
    assert set(refs(agent.recall("a question"))) == {near, old}


def test_rows_without_a_vector_take_no_place_in_the_window(agent):
    """Contract: window.near."""
    agent.load(memory("without a vector", at=9))
    (row,) = agent.load(memory("with one", 0.7, at=0))
    assert refs(agent.recall("a question", {"max_memories": 1})) == [row]
