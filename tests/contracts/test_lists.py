"""Rows without a question. Contract: lists.newest."""

from contract_kit import episode, memory


def test_lists_begin_with_the_newest_and_within_one_second_with_the_higher_id(reader):
    old, first, second = reader.load(memory("old", at=0), memory("first", at=1), memory("second", at=1))
    assert [row["ref"] for row in reader.own("list_memories")["memories"]] == [second, first, old]
    past, one, two = reader.load(episode("past", at=0), episode("one", at=1), episode("two", at=1))
    assert [row["ref"] for row in reader.own("list_episodes")["episodes"]] == [two, one, past]


def test_a_list_holds_a_hundred_memories_unless_more_are_asked_for_and_never_more_than_five_hundred(reader):
    reader.crowd(502)
    counts = [reader.own("list_memories", **limit)["count"] for limit in ({}, {"limit": 502}, {"limit": 3})]
    assert counts == [100, 500, 3]


def test_a_list_holds_fifty_episodes_unless_more_are_asked_for_and_never_more_than_two_hundred(reader):
    reader.import_lines([episode(f"episode {n}", at=n, agent_id=reader.name) for n in range(202)])
    counts = [reader.own("list_episodes", **limit)["count"] for limit in ({}, {"limit": 202}, {"limit": 3})]
    assert counts == [50, 200, 3]


def test_without_an_agent_the_rows_of_all_are_listed(daemon_with):
    one = daemon_with()
    one.load(memory("of one", at=0))
    one.ask("store", agent_id="another", content="of another")
    assert {row["agent_id"] for row in one.ask("list_memories")["memories"]} == {one.name, "another"}
