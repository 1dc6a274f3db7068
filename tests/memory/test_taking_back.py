"""The last write of an agent is taken back, and that too. Contract: past.acts, locks.hold, batch.undo."""

from __future__ import annotations

import json
from itertools import count

import pytest
from store_kit import opened_store

from cpersona_daemon.memory import taking_back


@pytest.fixture(scope="module")
def opened():
    with opened_store() as (store, root):
        store.root = root
        yield store


_agents = count()


class _Agent:
    """An agent of its own in a store that others share."""

    def __init__(self, store):
        self.store, self.name = store, f"agent-{next(_agents)}"

    def ask(self, method, **params):
        return self.store.call(method, {"agent_id": self.name, **params})[0]

    def row(self, content, **more):
        return self.ask("store", content=content, **more)["id"]

    def texts(self):
        return {row["id"]: row["content"] for row in self.ask("list_memories")["memories"]}

    def undo(self):
        return self.ask("undo_last")


@pytest.fixture
def agent(opened):
    return _Agent(opened)


def test_a_store_is_taken_back_and_its_undo_brings_the_row_back_with_its_ref(agent):
    agent.row("one")
    row = agent.row("two", id="k")
    told = agent.ask("undo_last", dry_run=True)
    assert (told["undone"], told["refs"], told["dry_run"]) == ("store", [f"mem:{row}"], True) and row in agent.texts()
    undone = agent.undo()
    assert (undone["undone"], undone["refs"], undone["results"]) == ("store", [f"mem:{row}"], ["removed"])
    assert list(agent.texts().values()) == ["one"]
    again = agent.undo()
    assert (again["undone"], again["results"]) == ("delete", ["returned"])
    assert agent.texts()[row] == "two" and agent.ask("find_ids", ids=["k"])["found"][0]["ref"] == f"mem:{row}"
    assert agent.undo()["results"] == ["removed"] and agent.undo()["results"] == ["returned"]


def test_an_update_a_delete_a_restore_and_an_episode_are_taken_back(agent):
    row = agent.row("one")
    agent.ask("update_memory", memory_id=row, content="two")
    assert agent.undo()["results"] == ["changed"] and agent.texts() == {row: "one"}
    assert agent.undo()["undone"] == "return" and agent.texts() == {row: "two"}
    agent.ask("restore_row", ref=f"mem:{row}", version=3)
    assert agent.texts() == {row: "one"} and agent.undo()["results"] == ["changed"] and agent.texts() == {row: "two"}
    agent.ask("delete_memory", memory_id=row)
    assert agent.undo()["results"] == ["returned"] and agent.texts() == {row: "two"}
    episode = agent.ask("archive_episode", summary="the day")["episode_id"]
    assert agent.undo()["refs"] == [f"ep:{episode}"] and agent.ask("list_episodes")["count"] == 0
    assert agent.undo()["results"] == ["returned"] and agent.ask("list_episodes")["count"] == 1


def test_the_last_write_is_the_agents_own_and_what_was_skipped_was_none(agent, opened):
    mine, other = agent.row("one"), _Agent(opened)
    theirs = other.row("one")
    other.ask("update_memory", memory_id=theirs, content="two")
    agent.row("one")
    assert agent.undo()["refs"] == [f"mem:{mine}"] and other.texts() == {theirs: "two"}
    assert "nothing that agent" in _Agent(opened).undo()["error"]


def test_what_one_request_did_to_several_rows_is_taken_back_together(agent):
    notes = [{"id": f"n{n}", "content": f"note {n}"} for n in range(3)]
    rows = [note["id"] for note in agent.ask("replace_notes", notes=notes)["notes"]]
    changed = [{**note, "content": note["content"] + " anew"} for note in notes[:2]]
    agent.ask("replace_notes", notes=changed, gone=["n2"], on_conflict="update")
    undone = agent.undo()
    assert undone["rows"] == 3 and sorted(undone["refs"]) == sorted(f"mem:{row}" for row in rows)
    assert agent.texts() == {row: f"note {n}" for n, row in enumerate(rows)}


def test_a_batch_that_was_taken_back_comes_back_whole_but_for_what_cannot_and_goes_again(agent, monkeypatch):
    monkeypatch.setattr(taking_back, "ROWS_A_TRANSACTION", 2)
    rows = [agent.row(f"row {n}", batch=f"{agent.name} b") for n in range(5)]
    assert f"undo '{agent.name} b'" in agent.undo()["error"] and len(agent.texts()) == 5
    agent.ask("undo_batch", batch=f"{agent.name} b")
    taken = agent.store.call("store", {"agent_id": agent.name, "content": "row 3"})[0]["id"]
    agent.ask("update_memory", memory_id=taken, content="x")
    agent.ask("update_memory", memory_id=taken, content="row 3")
    agent.store.ctx.db.write_now(lambda tx: tx.execute("DELETE FROM past WHERE row_id = ?", (taken,)).fetchall())
    agent.store.ctx.db.write_now(
        lambda tx: tx.execute("UPDATE past SET newest_memory = 1 << 40 WHERE agent_id = ?", (agent.name,)).fetchall()
    )
    undone = agent.undo()
    assert undone["rows"] == 4 and undone["kept_rows"] == 1
    assert undone["kept"] == [
        {"ref": f"mem:{rows[3]}", "reason": f"mem:{rows[3]} cannot come back: mem:{taken} has this content already;"
         f" `cpersona get mem:{taken}` shows it"}
    ]  # fmt: skip
    assert set(agent.texts()) == {*rows, taken} - {rows[3]}
    assert agent.ask("undo_batch", batch=f"{agent.name} b", dry_run=True)["deleted_memories"] == 4
    agent.store.ctx.db.write_now(
        lambda tx: tx.execute("UPDATE past SET newest_memory = 1 << 40 WHERE agent_id = ?", (agent.name,)).fetchall()
    )
    assert agent.undo()["results"] == ["removed"] * 4 and set(agent.texts()) == {taken}


def test_locks_hold(agent):
    row = agent.row("one", lock=True)
    assert "locked" in agent.undo()["error"] and agent.texts() == {row: "one"}
    agent.ask("unlock_memory", memory_id=row)
    agent.ask("update_memory", memory_id=row, content="two")
    agent.ask("lock_memory", memory_id=row)
    assert "locked" in agent.undo()["error"] and agent.texts() == {row: "two"}


def test_rows_of_a_file_without_a_batch_are_not_taken_back_one_by_one(agent):
    path = agent.store.root / "old.jsonl"
    rows = [
        {"_type": "memory", "agent_id": agent.name, "content": f"old {n}", "created_at": "2020-01-01 00:00:00"}
        for n in range(2)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert agent.store.call("import_memories", {"input_path": str(path)})[0]["imported_memories"] == 2
    assert "an import or a merge" in agent.undo()["error"] and len(agent.texts()) == 2


def test_what_is_older_than_the_days_that_are_kept_stays_and_without_days_all_does(agent):
    row, db = agent.row("one"), agent.store.ctx.db
    db.write_now(
        lambda tx: tx.execute("UPDATE memories SET created_at = '2020-01-01 00:00:00' WHERE id = ?", (row,)).fetchall()
    )
    assert "more than 30 days ago" in agent.undo()["error"]
    db.history_days = 0
    try:
        assert "CPERSONA_HISTORY_DAYS is 0" in agent.undo()["error"] and agent.texts() == {row: "one"}
    finally:
        db.history_days = 30.0


def test_an_undo_that_is_asked_again_under_its_key_is_done_once(agent, opened):
    from cpersona_daemon.storage.idempotency import Key

    row = agent.row("one")
    agent.ask("update_memory", memory_id=row, content="two")
    key = Key.of("once", "me", "undo_last", {})
    first, second = (opened.run(taking_back.undo_last(opened.ctx, agent.name, key)) for _ in range(2))
    assert first == second and agent.texts() == {row: "one"}


def test_batches_are_listed_with_their_rows_and_times_and_the_agents_where_all_are_asked_for(agent, opened):
    name, other = f"{agent.name} run", _Agent(opened)
    agent.row("one", batch=name)
    agent.row("two", batch=name, lock=True)
    other.row("three", batch=name)
    (mine,) = agent.ask("list_batches")["batches"]
    assert (mine["batch"], mine["memories"], mine["episodes"], mine["locked"]) == (name, 2, 0, 1)
    assert mine["first"] <= mine["last"] and "agents" not in mine
    (every,) = [row for row in opened.call("list_batches", {})[0]["batches"] if row["batch"] == name]
    assert every["memories"] == 3 and sorted(every["agents"]) == sorted([agent.name, other.name])
    agent.row("four", batch=f"{name} 2")
    assert agent.ask("list_batches", limit=1)["more"] and not agent.ask("list_batches", limit=2)["more"]
