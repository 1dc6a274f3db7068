"""A recall as of an earlier instant finds rows as they were then: by the words and the vector that they had, also those
that were deleted since.

Contract: time.asof.
"""

from __future__ import annotations

import pytest
from contract_kit import created, episode, memory, reasons, refs

THEN, BEFORE = "2026-01-05T12:00:00Z", "2026-01-05T00:30:00Z"
MODES = ("rrf", "rsf", "cascade", "blend")


def found(agent, query, mode="rrf", as_of=THEN, method="recall", **params):
    """Return the texts of an answer, the best last."""
    answer = agent.own(method, {"recall_mode": mode}, query=query, as_of=as_of, deep=True, **params)
    assert agent.code is None, answer
    return [row["content"] for row in answer["messages"]]


def number(ref: str) -> int:
    return int(ref.split(":")[1])


@pytest.fixture
def old(reader):
    """Three memories and an episode of a morning; a crowd beside them, so that no mode leaves out what has no score."""
    reader.crowd(120)
    reader.refs = reader.load(
        memory("the lamp is walnut", at=1, msg_id="k1", source={"id": "user:1"}),
        memory("the shelf is cherry", at=2, msg_id="k2", source={"id": "user:2"}),
        memory("the stool is maple", at=3, msg_id="k3"),
        episode("we sanded the poplar bench", at=4, keywords="sanding"),
    )
    return reader


@pytest.mark.parametrize("mode", MODES)
def test_a_row_is_found_by_the_words_that_it_had_and_not_by_those_it_has(old, mode):
    old.own("update_memory", memory_id=number(old.refs[0]), content="the lamp is brass")
    assert found(old, "walnut", mode) == ["the lamp is walnut"] and found(old, "brass", mode) == []
    assert found(old, "brass", mode, None) == ["the lamp is brass"] and found(old, "walnut", mode, None) == []
    assert found(old, "walnut", mode, BEFORE) == []


@pytest.mark.parametrize("mode", MODES)
def test_a_deleted_row_is_found_as_long_as_it_was_there(old, mode):
    for ref, words, text in (
        (old.refs[0], "walnut lamp", "the lamp is walnut"),
        (old.refs[3], "poplar", "[Episode] we sanded the poplar bench"),
    ):
        before = old.own("recall", {"recall_mode": mode}, query=words, as_of=THEN, deep=True)["messages"]
        method, name = ("delete_memory", "memory_id") if ref.startswith("mem") else ("delete_episode", "episode_id")
        assert old.own(method, **{name: number(ref)})["ok"]
        assert found(old, words, mode, None) == [] and found(old, words, mode) == [text]
        (row,) = old.own("recall", {"recall_mode": mode}, query=words, as_of=THEN, deep=True)["messages"]
        shown = {key: value for key, value in row.items() if key != "match_reason"}
        assert shown == {key: value for key, value in before[0].items() if key != "match_reason"}


def test_a_row_that_was_away_is_not_found_and_one_that_came_back_is(old):
    old.own("delete_memory", memory_id=number(old.refs[0]))
    old.own("restore_row", ref=old.refs[0])
    assert found(old, "walnut") == ["the lamp is walnut"] == found(old, "walnut", as_of="2100-01-01")


def test_a_purged_row_is_found_no_more_and_counted(old):
    old.own("update_memory", memory_id=number(old.refs[0]), content="the lamp is brass")
    old.own("purge_rows", refs=[old.refs[0]])
    answer = old.own("recall", query="walnut lamp", as_of=THEN, deep=True)
    assert answer["messages"] == [] and answer["as_of"]["deleted_since"] == 1
    assert "shown_as_then" not in answer["as_of"] and "1 row was deleted since" in str(answer["advisory"])


def test_a_blank_question_lists_the_newest_of_then(old):
    before = found(old, "", limit=2)
    assert before == ["the shelf is cherry", "the stool is maple"]
    old.own("delete_memory", memory_id=number(old.refs[2]))
    old.own("update_memory", memory_id=number(old.refs[1]), content="the shelf is glass")
    assert found(old, "", limit=2) == before
    assert found(old, "", limit=2, since=created(2.5)) == ["the stool is maple"]


def test_axes_source_and_times_choose_among_rows_of_then(old):
    old.own("update_memory", memory_id=number(old.refs[0]), content="the lamp is brass")
    old.own("delete_memory", memory_id=number(old.refs[1]))
    assert found(old, "walnut cherry", source_id="user:1") == ["the lamp is walnut"]
    both = found(old, "walnut cherry", source_id="user:")
    assert sorted(both) == ["the lamp is walnut", "the shelf is cherry"]
    assert found(old, "walnut cherry", since=created(1.5)) == ["the shelf is cherry"]
    assert found(old, "walnut cherry", until=created(1.5)) == ["the lamp is walnut"]
    assert found(old, "walnut", project_id="elsewhere") == ["the lamp is walnut"]  # from the global pool
    other = old.ask("recall", agent_id=old.name + "-other", query="walnut", as_of=THEN, deep=True)
    assert other["messages"] == []


def test_what_the_caller_holds_is_left_out_by_its_text_of_then(old):
    old.own("update_memory", memory_id=number(old.refs[0]), content="the lamp is brass")
    assert found(old, "walnut lamp", exclude_contents=["the lamp is walnut"]) == []
    assert found(old, "walnut lamp", exclude_contents=["the lamp is brass"]) == ["the lamp is walnut"]
    assert found(old, "lamp -walnut", "blend") == []


def test_a_context_has_rows_as_they_were(old):
    old.own("update_memory", memory_id=number(old.refs[0]), content="the lamp is brass")
    said = [{"role": "user", "content": "hello", "timestamp": created(1.5)}]
    texts = found(old, "walnut", method="recall_with_context", external_context=said)
    assert texts == ["the lamp is walnut", "hello"]


@pytest.mark.parametrize("mode", ("rrf", "blend"))
def test_a_text_that_no_index_has_is_found_as_it_stood(old, mode):
    """The scan of characters sees rows of then too."""
    old.own("update_memory", memory_id=number(old.refs[0]), content="the lamp is brass")
    assert found(old, "alnu", mode) == ["the lamp is walnut"] and found(old, "ras", mode) == []


def test_an_identifier_that_only_a_former_text_holds_is_not_said_to_be_absent(reader):
    (ref,) = reader.load(memory("the port is BK-2041 for the relay", at=1))
    reader.own("update_memory", memory_id=number(ref), content="the port is BK-9000 for the relay")
    ask = {"query": "relay port BK-2041", "deep": True}
    now = reader.own("recall", {"recall_mode": "blend"}, **ask)
    then = reader.own("recall", {"recall_mode": "blend"}, as_of=THEN, **ask)
    assert now["absent"] == ["BK-2041"] and "absent" not in then
    assert [row["content"] for row in then["messages"]] == ["the port is BK-2041 for the relay"]


def test_a_row_that_changed_and_is_not_kept_is_marked(daemon_with):
    agent = daemon_with(CPERSONA_HISTORY_DAYS="0")
    (ref,) = agent.load(memory("the lamp is walnut", at=1))
    agent.own("update_memory", memory_id=number(ref), content="the walnut lamp is brass")
    answer = agent.own("recall", query="walnut", as_of=THEN, deep=True)
    (row,) = answer["messages"]
    assert row["content"] == "the walnut lamp is brass" and row["changed_since"] is True
    assert answer["as_of"]["changed_since"] == 1 and "shown_as_then" not in answer["as_of"]
    assert "1 row was changed since" in str(answer["advisory"])
    assert "changed_since" not in agent.own("recall", query="walnut", deep=True)["messages"][0]


def test_why_not_says_that_a_row_was_not_there_then(old):
    old.own("update_memory", memory_id=number(old.refs[0]), content="the lamp is brass")
    old.own("delete_memory", memory_id=number(old.refs[1]))
    old.own("restore_row", ref=old.refs[1])

    def told(ref, query, as_of=THEN):
        answer = old.own("recall", query=query, as_of=as_of, why_not=ref, trace=True)
        return answer["trace"]["why_not"]

    assert told(old.refs[0], "walnut")["stage"] in ("returned", "gate")
    assert told(old.refs[0], "brass")["stage"] == "retrieval"
    assert told(old.refs[1], "cherry", BEFORE)["stage"] == "scope"


# -- by meaning


@pytest.mark.parametrize("mode", MODES)
def test_a_row_is_as_near_as_the_vector_that_it_had(agent, mode):
    agent.crowd()
    ref, still, gone = agent.load(
        memory("about one thing", 0.9, at=1), memory("about another", 0.7, at=2), memory("about a third", 0.8, at=3)
    )
    before = agent.recall("what is near", {"recall_mode": mode}, as_of=THEN, deep=True)
    near = [gone, ref] if mode == "rsf" else [still, gone, ref]  # under rsf the farthest scores nothing
    assert refs(before) == near
    agent.own("update_memory", memory_id=number(ref), content="now about something else")
    agent.own("delete_memory", memory_id=number(gone))
    then = agent.recall("what is near", {"recall_mode": mode}, as_of=THEN, deep=True)
    assert refs(then) == near
    assert [row["content"] for row in then["messages"]][-2:] == ["about a third", "about one thing"]
    if mode != "blend":
        assert reasons(then) == reasons(before)
