"""An answer as of an earlier instant counts the rows that were changed or deleted since, whichever way it was done, and
says for how many of them it cannot know what they were then.

Contract: time.asof.
"""

from __future__ import annotations

import json

import pytest
from contract_kit import episode, memory

THEN, BEFORE = "2026-01-05T12:00:00Z", "2026-01-01T00:00:00Z"
AT = "2026-01-05 12:00:00"


@pytest.fixture
def old(reader):
    """Two memories and an episode of the morning, which came by an import; ``reader.refs`` names them."""
    reader.refs = reader.load(
        memory("walnut one", at=1, msg_id="k1"), memory("walnut two", at=2, msg_id="k2"), episode("walnut three", at=3)
    )
    return reader


def told(reader, method="recall", as_of=THEN, **params):
    """Return what the answer says of the past without when its records begin, and the reasons of its advisory."""
    answer = reader.own(method, as_of=as_of, **({"query": "walnut", **params} if method != "list_memories" else params))
    assert reader.code is None, answer
    advisory = answer.get("advisory", {})
    reasons = [
        part["reason"] for part in (advisory, *advisory.get("also", ())) if "fully known" in part.get("reason", "")
    ]
    return {key: value for key, value in answer["as_of"].items() if key != "recorded_since"}, reasons[
        0
    ] if reasons else ""


WAYS = {
    "an update": lambda reader: reader.own(
        "update_memory", memory_id=int(reader.refs[0][4:]), content="walnut otherwise"
    ),
    "a store that updates": lambda reader: reader.own(
        "store", content="walnut otherwise", id="k1", on_conflict="update"
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ["recall", "recall_with_context"])
def test_a_text_that_was_changed_since_is_counted_in_every_answer_that_takes_as_of(old, way, method):
    assert told(old, method)[0] == {"at": AT, "changed_since": 0, "deleted_since": 0}
    assert WAYS[way](old)["ok"]
    numbers, reason = told(old, method)
    assert numbers == {"at": AT, "changed_since": 1, "deleted_since": 0, "shown_as_then": {"changed": 1, "deleted": 0}}
    assert "changed since" not in reason
    assert told(old, method, BEFORE)[0]["changed_since"] == 0


ENDS = {
    "a deletion": (lambda reader: reader.own("delete_memory", memory_id=int(reader.refs[0][4:])), 1, 1, True),
    "the deletion of an episode": (
        lambda reader: reader.own("delete_episode", episode_id=int(reader.refs[2][3:])),
        1,
        0,
        True,
    ),
    "a rewritten note": (
        lambda reader: reader.own(
            "replace_notes", notes=[{"id": "new", "content": "walnut anew", "replaces": ["k1", "k2"]}]
        ),
        2,
        2,
        True,
    ),
    "a merge that moves": (
        lambda reader: reader.ask(
            "merge_memories", source_agent_id=reader.name, target_agent_id=reader.name + "-2", mode="move"
        ),
        3,
        2,
        False,
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_rows_that_were_deleted_since_are_counted_whoever_deleted_them(old, end):
    """What is kept as it was is shown so; what only moved to another agent is not kept."""
    act, recalled, listed, kept = ENDS[end]
    assert act(old)["ok"]
    numbers, reason = told(old)
    assert numbers["deleted_since"] == recalled
    assert numbers.get("shown_as_then") == ({"changed": 0, "deleted": recalled} if kept else None)
    assert kept != (f"{recalled} row{'s were' if recalled > 1 else ' was'} deleted since" in reason)
    assert told(old, "list_memories")[0]["deleted_since"] == listed == told(old, query="")[0]["deleted_since"]


def test_a_batch_that_was_taken_back_is_counted(reader, tmp_path):
    path = tmp_path / "batch.jsonl"
    path.write_text(json.dumps({**memory("walnut", at=1), "agent_id": reader.name}) + "\n")
    assert (
        reader.ask("import_memories", input_path=str(path), batch="monday")["ok"]
        and reader.own("undo_batch", batch="monday")["deleted_memories"] == 1
    )
    assert told(reader)[0]["deleted_since"] == 1


def test_rows_that_came_with_their_old_time_say_from_when_on_more_is_known(old, reader):
    answer = old.own("recall", query="walnut", as_of=THEN)
    assert (
        answer["as_of"]["recorded_since"] > AT
        and f"before {answer['as_of']['recorded_since']} UTC is not recorded" in told(old)[1]
    )
    assert old.ask("merge_memories", source_agent_id=old.name, target_agent_id=old.name + "-3")["merged_memories"] == 2
    assert old.ask("list_memories", agent_id=old.name + "-3", as_of=THEN)["as_of"]["recorded_since"] > AT
    assert "recorded_since" not in old.ask("list_memories", agent_id=old.name + "-never", as_of=THEN)["as_of"]


def test_a_profile_that_was_written_since_is_said(old):
    old.own("update_profile", profile="answers in German")
    assert "the profile was written since" in told(old)[1] and "profile" not in told(old, "list_memories")[1]


def test_an_answer_about_now_says_nothing_of_the_past(old):
    WAYS["an update"](old)
    assert (
        "as_of" not in old.own("recall", query="walnut")
        and "as_of" not in old.own("list_memories")
        and "advisory" not in old.own("list_memories")
    )
    assert told(old, as_of="2100-01-01") == ({"at": "2100-01-01 00:00:00", "changed_since": 0, "deleted_since": 0}, "")


def test_another_agent_learns_nothing_of_it(old, reader):
    ENDS["a deletion"][0](old)
    answer = old.ask("recall", agent_id=old.name + "-other", query="walnut", as_of=THEN)
    assert answer["as_of"] == {"at": AT, "changed_since": 0, "deleted_since": 0}


def test_a_forgotten_agent_leaves_nothing_anywhere(module_home, shared_daemon, old):
    import apsw

    ENDS["a deletion"][0](old)
    assert old.own("delete_agent_data")["ok"]
    assert told(old) == ({"at": AT, "changed_since": 0, "deleted_since": 0}, "")
    conn = apsw.Connection(module_home["CPERSONA_DB_PATH"], flags=apsw.SQLITE_OPEN_READONLY)
    tables = [
        name
        for (name,) in conn.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        )
    ]
    held = [
        table
        for table in tables
        if table != "idempotency" and any(old.name in map(str, row) for row in conn.execute(f"SELECT * FROM {table}"))
    ]
    conn.close()
    assert held == []


# -- a list is true within what is kept


def listed(reader, as_of=THEN, **params):
    """Return the texts that a list as of an instant has, newest first, what it says of then, and its reason."""
    answer = reader.own("list_memories", as_of=as_of, **params)
    assert reader.code is None, answer
    reason = answer.get("advisory", {}).get("reason", "")
    return [row["content"] for row in answer["memories"]], answer["as_of"].get("shown_as_then"), reason


def test_a_list_shows_rows_as_they_were_whatever_was_done_to_them_since(old):
    """Contract: time.asof, past.kept."""
    before = old.own("list_memories", as_of=THEN)["memories"]
    one, two = (int(ref[4:]) for ref in old.refs[:2])
    assert listed(old)[:2] == (["walnut two", "walnut one"], None)
    old.own("update_memory", memory_id=one, content="walnut otherwise")
    old.own("update_memory", memory_id=one, content="walnut again")
    assert listed(old)[:2] == (["walnut two", "walnut one"], {"changed": 1, "deleted": 0})
    old.own("delete_memory", memory_id=two)
    texts, shown, reason = listed(old)
    assert (texts, shown) == (["walnut two", "walnut one"], {"changed": 1, "deleted": 1})
    assert "changed since" not in reason and "deleted since" not in reason
    old.own("delete_memory", memory_id=one)
    old.own("restore_row", ref=f"mem:{one}", version=2)
    assert listed(old)[0] == ["walnut two", "walnut one"]
    assert old.own("list_memories", as_of=THEN)["memories"] == before
    assert listed(old, limit=1)[0] == ["walnut two"] and listed(old, BEFORE)[:2] == ([], None)
    assert listed(old, "2100-01-01")[:2] == (["walnut otherwise"], None)


def test_a_list_of_then_keeps_to_its_axes_and_narrowing(old):
    """Contract: time.asof, lists.narrowed."""
    one, two = (int(ref[4:]) for ref in old.refs[:2])
    old.own("update_memory", memory_id=one, content="walnut otherwise")
    old.own("delete_memory", memory_id=two)
    assert listed(old, id_prefix="k1")[0] == ["walnut one"] and listed(old, locked=True)[0] == []
    assert listed(old, project_id="p")[0] == ["walnut two", "walnut one"] and listed(old, source_id="user:9")[0] == []
    assert listed(old, batch="b")[0] == []
    assert old.ask("list_memories", agent_id=old.name + "-no", as_of=THEN)["memories"] == []


def test_what_is_not_kept_as_it_was_is_said(old):
    """Contract: time.asof."""
    one, two = (int(ref[4:]) for ref in old.refs[:2])
    old.own("update_memory", memory_id=one, content="walnut otherwise")
    old.own("delete_memory", memory_id=two)
    old.own("purge_rows", refs=[f"mem:{two}"])
    texts, shown, reason = listed(old)
    assert (texts, shown) == (
        ["walnut one"],
        {"changed": 1, "deleted": 0},
    ) and "1 row was deleted since and not kept" in reason


def test_rows_by_ref_are_as_they_were_too_and_one_that_is_not_kept_so_is_marked(old):
    """Contract: time.asof, contents.refs."""
    one, two, three = old.refs
    old.own("update_memory", memory_id=int(one[4:]), content="walnut otherwise")
    old.own("delete_memory", memory_id=int(two[4:]))
    old.own("delete_episode", episode_id=int(three[3:]))
    found = old.own("get_contents", refs=old.refs, as_of=THEN)
    assert [item["content"] for item in found["items"]] == ["walnut one", "walnut two", "[Episode] walnut three"]
    assert not [item for item in found["items"] if "changed_since" in item]
    assert old.own("get_contents", refs=old.refs, as_of=BEFORE)["missing"] == old.refs
    assert old.own("get_contents", refs=old.refs)["missing"] == [two, three]
    old.own("restore_row", ref=two)
    assert old.own("get_contents", refs=[two], as_of=THEN)["items"][0]["content"] == "walnut two"
    old.own("purge_rows", refs=[two])
    assert old.own("get_contents", refs=[two], as_of=THEN)["missing"] == [two]
