"""Which notes of a history are missing, and what a note of an earlier version gets. Contract: git.notes, git.paths."""

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
