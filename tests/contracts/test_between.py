"""Reads between two instants see the rows that were stored between them, whatever finds them.

Contract: time.between.
"""

import pytest
from contract_kit import created, episode, memory

BETWEEN = {"since": created(10), "until": created(20)}  # of rows at 0, 10, 15, 20 and 30 hours


@pytest.fixture
def rows(agent):
    agent.load(*(memory(f"walnut number {at}", 0.9, at) for at in (0, 10, 20, 30)), episode("walnut", 0.9, 15))
    return agent


def found(answer):
    return sorted(row["content"].split()[-1] for row in answer["messages"])


@pytest.mark.parametrize("mode", ["blend", "rrf", "rsf", "cascade"])
@pytest.mark.parametrize("question", ["walnut", "something else"])
def test_a_recall_sees_both_kinds_by_meaning_and_by_words_and_both_ends_count(rows, mode, question):
    answer = rows.recall(question, {"recall_mode": mode}, deep=True, **BETWEEN)
    assert found(answer) == ["10", "20", "walnut"]
    assert found(rows.recall(question, {"recall_mode": mode}, deep=True, since=created(20.001))) == ["30"]
    assert found(rows.recall(question, {"recall_mode": mode}, deep=True, until=created(9.999))) == ["0"]


def test_the_lists_without_a_vector_and_the_newest_rows_obey_too(reader):
    reader.load(*(memory(f"walnut number {at}", at=at) for at in (0, 10, 20, 30)), episode("walnut", at=15))
    assert found(reader.own("recall", query="walnut", deep=True, **BETWEEN)) == ["10", "20", "walnut"]
    assert found(reader.own("recall", query="", **BETWEEN)) == ["10", "20"]
    assert found(reader.own("recall_with_context", query="walnut", deep=True, **BETWEEN)) == ["10", "20", "walnut"]
    assert reader.own("exists", text="number", **BETWEEN)["ref"] and reader.own("exists", text="30")["exists"]
    assert reader.own("exists", text="30", **BETWEEN) == {"exists": False}
    assert [row["content"][-2:] for row in reader.own("list_memories", **BETWEEN)["memories"]] == ["20", "10"]


def test_what_was_found_beside_another_row_obeys_too(agent):
    source = {"type": "User", "id": "u1"}
    agent.load(*(memory(text, 0.9, at, source=source) for text, at in (("walnut 1", 1.0), ("oak 2", 1.01))))
    under = {"recall_mode": "blend"}
    assert found(agent.recall("walnut", under, deep=True)) == ["1", "2"]
    assert found(agent.recall("walnut", under, deep=True, until=created(1.0))) == ["1"]
    assert found(agent.recall("walnut", under, deep=True, as_of=created(1.0))) == ["1"]


def test_as_of_bounds_what_between_chooses_from(reader):
    reader.load(*(memory(f"walnut number {at}", at=at) for at in (0, 10, 20)))
    assert found(reader.own("recall", query="walnut", deep=True, since=created(5), as_of=created(15))) == ["10"]


@pytest.mark.parametrize("method", ["recall", "recall_with_context", "exists", "list_memories"])
@pytest.mark.parametrize(
    "given, said",
    [
        ({"since": "noon"}, "since names no instant"),
        ({"until": "noon"}, "until names no instant"),
        ({"since": created(2), "until": created(1)}, "nothing can be between them"),
    ],
)
def test_what_names_no_time_between_is_refused(reader, method, given, said):
    asked = {"text": "x"} if method == "exists" else {} if method == "list_memories" else {"query": "x"}
    assert said in reader.own(method, **asked, **given)["error"] and reader.code == "invalid_params"
