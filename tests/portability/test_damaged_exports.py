"""A file whose header is true and of which a line is damaged, a file that was cut, and the agent that a header names.

Contract: import.lines.
"""

import json

import pytest
from house_kit import memory


def header(**counts):
    return {
        "_type": "header",
        "version": "cpersona-export/1.1",
        "agent_id": counts.pop("agent_id", ""),
        **{f"{kind}_count": n for kind, n in counts.items()},
    }


def load(house, *lines, **params):
    return house.ask("import_memories", input_path=house.write("in.jsonl", *lines), **params)


def raw(house, data, **params):
    path = house.root / "raw.jsonl"
    path.write_bytes(data)
    return house.ask("import_memories", input_path=str(path), **params)


def contents(house, agent="a"):
    return [row["content"] for row in reversed(house.ask("list_memories", agent_id=agent)["memories"])]


DAMAGED = [
    "{broken",
    b'{"_type": "memory", "agent_id": "a", "content": "\xff"}',
    "[" * 5000 + "]" * 5000,
    '{"_type": "memorx", "agent_id": "a", "content": "x"}',
    '{"_type": "memory", "agent_id": "a", "content": "tw',
    "7",
    "{}",
]


@pytest.mark.parametrize("line", DAMAGED)
def test_one_damaged_line_is_reported_and_the_rest_goes_on_under_a_true_header(house, line):
    answer = load(
        house,
        header(memory=3, episode=1),
        memory("before"),
        line,
        memory("after"),
        {"_type": "episode", "agent_id": "a", "summary": "e"},
    )
    assert answer["ok"] is True and answer["imported_memories"] == 2 and answer["imported_episodes"] == 1
    assert answer["errors"][0].startswith("Line 3: ") and (answer["error_count"], answer["rejected"]) == (1, 1)
    assert contents(house) == ["before", "after"]


def test_the_damaged_line_may_be_the_last_one_or_the_only_profile(house):
    assert load(house, header(memory=2), memory("before"), "{broken")["imported_memories"] == 1
    answer = load(
        house,
        {**header(memory=1, profile=1), "has_profile": True},
        memory("with a profile"),
        '{"_type": "profile", "agent_id"',
    )
    assert answer["imported_memories"] == 1 and answer["errors"][0].startswith("Line 3: ")


def whole(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@pytest.mark.parametrize("lost", [2, 20, 60, 61, 100])
def test_a_file_that_was_cut_imports_nothing_wherever_the_cut_falls(house, lost):
    data = whole(header(memory=3), memory("one"), memory("two"), memory("three"))
    answer = raw(house, data[:-lost])
    assert answer["ok"] is False and "not whole" in answer["error"] and contents(house) == []


def test_a_file_without_its_last_newline_is_whole(house):
    assert raw(house, whole(header(memory=2), memory("one"), memory("two"))[:-1])["imported_memories"] == 2


def test_damaged_lines_do_not_stand_for_more_lines_than_they_are(house):
    answer = load(house, header(memory=5), memory("one"), "{broken", memory("two"))
    assert answer["ok"] is False and contents(house) == []
    assert (
        "5 memory lines" in answer["error"]
        and "line 2" not in answer["error"].replace("line 3", "")
        and "line 3" in answer["error"]
    )
    # And a line more than was announced is no damage.
    assert load(house, header(memory=1), memory("one"), "{broken", memory("two"))["ok"] is False


def test_kinds_of_a_later_version_hide_no_cut(house):
    later = {**header(memory=3), "version": "cpersona-export/1.3"}
    answer = load(house, later, memory("one"), {"_type": "shelf", "id": 1}, {"_type": "shelf", "id": 2})
    assert answer["ok"] is False and contents(house) == []
    answer = load(house, {**later, "memory_count": 1}, memory("one"), {"_type": "shelf", "id": 1})
    assert answer["ok"] is True and answer["rejected"] == 1 and contents(house) == ["one"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_header_names_the_agent_of_rows_that_name_none(house, dry_run):
    lines = [
        header(agent_id="of the header"),
        memory("one", agent_id=None),
        memory("two"),
        {"_type": "profile", "content": "somebody"},
        header(agent_id="another"),
        {"_type": "episode", "summary": "e"},
        header(),
        memory("nobody's", agent_id=None),
    ]
    answer = load(house, *lines, dry_run=dry_run)
    assert (answer["imported_memories"], answer["imported_episodes"], answer["profile_updated"]) == (2, 1, True), answer
    assert answer["errors"] == ["Line 8: no agent_id"]
    if not dry_run:
        assert contents(house, "of the header") == ["one"] and contents(house) == ["two"]
        assert (
            house.ask("list_episodes", agent_id="another")["count"] == 1
            and house.ask("get_profile", agent_id="of the header")["profile"] == "somebody"
        )
    assert load(house, header(agent_id=7), memory("x", agent_id=None))["errors"] == [
        "Line 1: agent_id is text, not int",
        "Line 2: no agent_id",
    ]


def test_rejected_lines_and_remarks_are_counted_apart(house):
    answer = load(
        house,
        memory("x", created_at="once upon a time"),
        memory(""),
        "{broken",
        *[memory(f"row {i}", channel=3) for i in range(200)],
    )
    assert (answer["rejected"], answer["error_count"], len(answer["errors"])) == (202, 203, 100)
    assert "rejected" not in load(house, memory("y", created_at="never"))
