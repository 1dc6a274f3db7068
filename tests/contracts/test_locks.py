"""lock_memory protects; it does not boost. Contract: locks.hold."""

from contract_kit import memory, refs


def number(ref):
    return int(ref.partition(":")[2])


def test_a_locked_row_is_protected_from_deletion_and_editing(reader):
    """Contract: locks.hold."""
    (row,) = reader.load(memory("kept"))
    assert reader.own("lock_memory", memory_id=number(row)) == {"ok": True, "locked_id": number(row)}
    for method, params in (("delete_memory", {}), ("update_memory", {"content": "changed"})):
        answer = reader.own(method, memory_id=number(row), **params)
        assert answer["ok"] is False and answer["error"]
    assert reader.own("get_contents", refs=[row])["items"][0]["content"] == "kept"


def test_an_unlocked_row_may_change_again(reader):
    """Contract: locks.hold."""
    (row,) = reader.load(memory("kept", locked=1))
    for _ in range(2):
        assert reader.own("unlock_memory", memory_id=number(row)) == {"ok": True, "unlocked_id": number(row)}
    assert reader.own("delete_memory", memory_id=number(row)) == {"ok": True, "deleted_id": number(row)}


def test_an_update_on_conflict_does_not_change_a_locked_row(reader):
    """Contract: locks.hold, dedup.conflict."""
    (row,) = reader.load(memory("kept", msg_id="m1", locked=1))
    assert reader.own("store", content="changed", id="m1", on_conflict="update")["result"] == "rejected"
    assert reader.own("get_contents", refs=[row])["items"][0]["content"] == "kept"


def test_a_lock_does_not_affect_ranking(agent, other):
    """Contract: locks.hold."""
    texts = [("far", 0.6), ("near", 0.7), ("nearest", 0.8)]
    plain = agent.load(*(memory(text, cosine) for text, cosine in texts))
    locked = other.load(*(memory(text, cosine, locked=int(text == "far")) for text, cosine in texts))
    for mode in ("rrf", "rsf", "cascade"):
        answers = [
            [r["match_reason"] for r in who.recall("a question", {"recall_mode": mode})["messages"]]
            for who in (agent, other)
        ]
        assert answers[0] == answers[1]
    assert refs(agent.recall("a question")) == plain and refs(other.recall("a question")) == locked


def test_a_locked_memory_can_still_lose_a_recall(agent):
    """Contract: locks.hold."""
    locked, best = agent.load(memory("locked", 0.5, locked=1), memory("better", 0.9))
    assert refs(agent.recall("a question", limit=1)) == [best]
    (hidden,) = agent.load(memory("locked and below the gate", 0.2, locked=1))
    assert hidden not in refs(agent.recall("a question")) and locked in refs(agent.recall("a question"))


def test_deleting_an_agents_data_deletes_locked_rows_too(reader):
    """Contract: forget.agent."""
    reader.load(memory("kept", locked=1))
    assert reader.own("delete_agent_data")["deleted_memories"] == 1
    assert reader.own("list_memories")["count"] == 0


def test_with_an_agent_given_locked_missing_and_foreign_rows_are_one_refusal(agent, other):
    """Contract: edit.update."""
    (locked,) = agent.load(memory("locked", locked=1))
    (foreign,) = other.load(memory("foreign"))
    texts = set()
    for row in (number(locked), number(foreign), 2**40):
        answer = agent.own("delete_memory", memory_id=row)
        texts.add(answer["error"].replace(str(row), "N"))
    assert len(texts) == 1


def test_a_project_given_binds_what_is_done_to_a_single_row_to_it_and_the_pool(reader):
    """Contract: edit.within."""
    mine, pool, elsewhere = (reader.own("store", content=f"in {p}", project_id=p)["id"] for p in ("p", "", "q"))
    archived = {p: reader.own("archive_episode", summary=f"of {p}", project_id=p)["episode_id"] for p in ("p", "q")}
    edits = (("lock_memory", {}), ("unlock_memory", {}), ("update_memory", {"content": "new"}), ("delete_memory", {}))
    for method, more in edits:
        params = {"project_id": "p", **more}
        said = [reader.own(method, memory_id=row, **params)["error"] for row in (elsewhere, 2**40)]
        assert said[0].replace(str(elsewhere), str(2**40)) == said[1] and "another project" in said[1]
        assert reader.ask(method, memory_id=elsewhere, **params)["ok"] is False, "without an agent too"
        assert reader.own(method, memory_id=mine, **params)["ok"] is True, method
    assert reader.own("delete_episode", episode_id=archived["q"], project_id="p")["ok"] is False
    assert reader.own("delete_episode", episode_id=archived["p"], project_id="p")["ok"] is True
    assert reader.own("update_memory", memory_id=pool, content="changed", project_id="p")["ok"] is True
    refs_of = [f"mem:{elsewhere}", f"ep:{archived['q']}", f"mem:{pool}"]
    read = {p: reader.own("get_contents", refs=refs_of, project_id=p)["missing"] for p in ("p", "q", "", None)}
    assert read == {"p": refs_of[:2], "q": [], "": refs_of[:2], None: []}
