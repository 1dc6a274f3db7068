"""Which notes of a history or a directory are there, and what becomes of one that is.

Contract: git.notes, git.paths, notes.upsert.
"""

import pytest

END = f"\n\ncommit {'0a' * 20}"
EARLIER, TODAY = f"Keep the order{END}", f"Keep the order\n\nfiles: src/order.py{END}"
PATHS = {"commit": "0a" * 20, "paths": ["src/order.py"], "paths_total": 1}


def replaced(house, *notes, **more):
    return house.ask("replace_notes", agent_id="a", notes=list(notes), **more)["notes"]


def missing(house, *ids, **more):
    return house.ask("find_notes", **{"agent_id": "a", "ids": list(ids)} | more)


def test_a_note_of_an_earlier_version_gets_its_paths_and_keeps_its_vector(house):
    (first,) = replaced(house, {"id": "n", "content": EARLIER, "metadata": PATHS})
    house.change("INSERT INTO memory_vectors VALUES (?, 'm', x'0000803f')", first["id"])
    assert missing(house, "new", "n") == {"missing": ["new"], "outdated": ["n"]}
    note = {"id": "n", "content": TODAY, "metadata": PATHS}
    assert replaced(house, note) == [{"note": "n", "result": "updated", "id": first["id"]}]
    assert house.sql("SELECT content, (SELECT count(*) FROM memory_vectors) FROM memories") == [(TODAY, 1)]
    assert missing(house, "n") == {"missing": [], "outdated": []}
    assert replaced(house, note)[0]["result"] == "skipped"
    found = house.ask("recall", agent_id="a", query="src/order.py")["messages"]
    assert [row["id"] for row in found] == ["n"]


@pytest.mark.parametrize("harm", ["edited", "locked", "another row has the text"])
def test_what_somebody_changed_or_locked_stays_as_it_is(house, harm):
    (first,) = replaced(house, {"id": "n", "content": EARLIER, "metadata": PATHS})
    if harm == "edited":
        house.ask("update_memory", agent_id="a", memory_id=first["id"], content=f"Mine now{END}")
    elif harm == "locked":
        house.ask("lock_memory", agent_id="a", memory_id=first["id"])
        assert missing(house, "n") == {"missing": [], "outdated": []}
    else:
        replaced(house, {"id": "other", "content": TODAY})
    before = house.sql("SELECT content FROM memories")
    assert replaced(house, {"id": "n", "content": TODAY, "metadata": PATHS})[0]["result"] == "skipped"
    assert house.sql("SELECT content FROM memories") == before


def test_a_note_is_missing_where_neither_its_project_nor_the_global_one_has_it(house):
    replaced(house, {"id": "global", "content": "one"})
    replaced(house, {"id": "mine", "content": "two"}, project_id="p")
    ids = ("mine", "never", "global", "mine")
    assert missing(house, *ids, project_id="p")["missing"] == ["never"]
    assert missing(house, *ids)["missing"] == ["mine", "never", "mine"]
    assert missing(house, *ids, agent_id="b")["missing"] == list(ids)
    assert "ids holds 10001 entries" in missing(house, *["x"] * 10_001)["error"]


def test_notes_of_a_named_run_are_taken_back_together(house):
    replaced(house, {"id": "kept", "content": "one"})
    replaced(house, {"id": "kept", "content": "one"}, {"id": "new", "content": "two"}, batch="b")
    assert house.ask("undo_batch", agent_id="a", batch="b")["deleted_memories"] == 1
    assert house.sql("SELECT msg_id FROM memories") == [("kept",)]


def updated(house, *notes, **more):
    return house.ask("replace_notes", agent_id="a", notes=list(notes), on_conflict="update", **more)


def listed(house, **more):
    return house.ask("find_notes", **{"agent_id": "a", "prefix": "md:"} | more)


NOTE = {"id": "md:n", "content": "one", "source": {"type": "File", "id": "d/n.md"}, "metadata": {"digest": "d1"}}


def test_a_note_that_is_there_becomes_what_it_is_given_and_the_same_text_keeps_its_vector(house):
    first = updated(house, NOTE | {"timestamp": "2024-01-02T00:00:00+00:00"}, batch="b")["notes"][0]
    assert first["result"] == "stored"
    house.change("INSERT INTO memory_vectors VALUES (?, 'm', x'0000803f')", first["id"])
    told = NOTE | {"metadata": {"digest": "d2"}, "source": {"type": "File", "id": "e/n.md"}}
    assert updated(house, told, batch="b")["notes"] == [{"note": "md:n", "result": "updated", "id": first["id"]}]
    (row,) = house.sql("SELECT metadata, source_id, instant IS NULL, changed_at IS NULL FROM memories")
    assert row == ('{"digest": "d2"}', "e/n.md", 0, 0)
    assert house.sql("SELECT count(*) FROM memory_vectors") == [(1,)]
    assert updated(house, told | {"content": "two"})["notes"][0]["result"] == "updated"
    assert house.sql("SELECT content, (SELECT count(*) FROM memory_vectors) FROM memories") == [("two", 0)]
    assert [row["content"] for row in house.ask("recall", agent_id="a", query="two")["messages"]] == ["two"]
    assert house.ask("undo_batch", agent_id="a", batch="b")["deleted_memories"] == 1


def test_a_note_that_is_what_it_is_given_is_skipped(house):
    note = NOTE | {"timestamp": "2024-01-02T00:00:00+00:00"}
    updated(house, note)
    assert updated(house, note)["notes"][0] == {
        "note": "md:n",
        "result": "skipped",
        "id": 1,
        "reason": "duplicate msg_id",
    }
    assert house.sql("SELECT changed_at FROM memories") == [(None,)]


def test_a_locked_note_and_one_whose_text_another_row_has_stay(house):
    updated(house, NOTE, NOTE | {"id": "md:o", "content": "other"})
    assert updated(house, NOTE | {"content": "other"})["notes"][0]["reason"] == "duplicate content"
    house.ask("lock_memory", agent_id="a", memory_id=1)
    assert updated(house, NOTE | {"content": "two"})["notes"][0]["reason"] == "locked"
    assert house.sql("SELECT content FROM memories ORDER BY id") == [("one",), ("other",)]


def test_what_is_gone_makes_room_for_its_text_in_the_same_request(house):
    updated(house, NOTE, NOTE | {"id": "md:locked", "content": "kept"})
    house.ask("lock_memory", agent_id="a", memory_id=2)
    told = updated(house, NOTE | {"id": "md:new"}, gone=["md:n", "md:locked", "md:never"])
    assert (told["deleted"], told["kept_locked"], told["notes"][0]["result"]) == (1, ["mem:2"], "stored")
    assert updated(house, gone=["md:new"])["deleted"] == 1
    assert "notes holds 0 entries" in updated(house)["error"]
    assert (
        "on_conflict is one of"
        in house.ask("replace_notes", agent_id="a", gone=["x"], notes=[], on_conflict="no")["error"]
    )


def test_notes_are_listed_by_the_beginning_of_their_ids(house):
    updated(
        house, NOTE, NOTE | {"id": "md:o", "content": "other", "metadata": {}}, NOTE | {"id": "me:n", "content": "x"}
    )
    updated(house, NOTE | {"id": "md:n", "content": "mine"}, NOTE | {"id": "md:p", "content": "y"}, project_id="p")
    house.ask("lock_memory", agent_id="a", memory_id=2)
    one = {"id": "md:n", "ref": "mem:1", "locked": False, "own": True, "digest": "d1"}
    other = {"id": "md:o", "ref": "mem:2", "locked": True, "own": True}
    assert listed(house) == {"notes": [one, other], "more": False}
    in_project = [(note["id"], note["own"]) for note in listed(house, project_id="p")["notes"]]
    assert in_project == [("md:n", False), ("md:o", False), ("md:p", True)]
    assert [note["id"] for note in listed(house, after="md:n")["notes"]] == ["md:o"]
    assert listed(house, agent_id="b")["notes"] == []


def test_a_list_that_is_longer_than_an_answer_goes_on_behind_its_last_id(house, monkeypatch):
    monkeypatch.setattr("cpersona_daemon.rpc.handlers.notes.MAX_IDS", 2)
    updated(house, *[NOTE | {"id": f"md:{n}", "content": f"text {n}"} for n in range(3)])
    first = listed(house)
    assert [note["id"] for note in first["notes"]] == ["md:0", "md:1"] and first["more"]
    rest = listed(house, after="md:1")
    assert [note["id"] for note in rest["notes"]] == ["md:2"] and not rest["more"]
