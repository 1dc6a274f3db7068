"""Rows come back as they were, or it is said why not. Contract: past.kept, past.acts, locks.hold."""

from __future__ import annotations

from itertools import count

import pytest
from store_kit import opened_store

from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.storage import past


@pytest.fixture(scope="module")
def opened():
    with opened_store() as (store, _):
        yield store


_agents = count()


class _Agent:
    """An agent of its own in a store that others share."""

    def __init__(self, store):
        self.store, self.name, self.code = store, f"agent-{next(_agents)}", None

    def ask(self, method, **params):
        answer, self.code = self.store.call(method, {"agent_id": self.name, **params})
        return answer

    def row(self, content, **more):
        return self.ask("store", content=content, **more)["id"]

    def texts(self):
        return {row["id"]: row["content"] for row in self.ask("list_memories")["memories"]}

    def every_column(self, row):
        sql = (
            "SELECT m.*, NULL AS changed_at, (SELECT batch FROM batches WHERE kind = 'mem' AND id = m.id)"
            " FROM memories m WHERE id = ?"
        )
        return self.store.ctx.db.read_now(
            lambda conn: [
                dict(zip([name for name, _ in cursor.getdescription()], values, strict=True))
                for cursor in [conn.execute(sql, (row,))]
                for values in cursor
            ]
        )


@pytest.fixture
def agent(opened):
    return _Agent(opened)


def test_a_deleted_memory_comes_back_under_its_ref_with_all_that_it_had(agent):
    links = {
        "entities": [{"name": "Rome"}],
        "relations": [{"subject": "Rome", "predicate": "shown in", "object": "Paris"}],
    }
    row = agent.row(
        "the map of Rome " + "x" * 17_000, id="map", batch="run", project_id="p", channel="c", source={"id": "u"},
        metadata={"m": [1]}, timestamp="2020-01-01T00:00:00Z", associations=links,
    )  # fmt: skip
    note = agent.row("a note", project_id="p")
    more = {"relations": [{"subject": f"mem:{row}", "predicate": "answers", "object": f"mem:{note}"}]}
    agent.ask("declare_associations", associations=more, project_id="p", channel="c")
    agent.ask("recall", query="map of Rome")
    before, linked = agent.every_column(row), agent.ask("traverse", entity="Rome")
    agent.ask("delete_memory", memory_id=row)
    assert agent.every_column(row) == [] and agent.ask("recall", query="map of Rome")["messages"] == []
    assert agent.ask("row_history", ref=f"mem:{row}")["now"] is None
    assert agent.ask("restore_row", ref=f"mem:{row}") == {"ok": True, "ref": f"mem:{row}", "result": "returned"}
    assert agent.every_column(row) == before and before[0]["whole_length"] == 17_016
    assert agent.ask("traverse", entity="Rome") == linked
    assert [m["ref"] for m in agent.ask("recall", query="map of Rome")["messages"]] == [f"mem:{row}"]
    kept = agent.store.ctx.db.read_now(
        lambda conn: conn.execute("SELECT predicate FROM relations WHERE agent_id = ?", (agent.name,)).fetchall()
    )
    assert sorted(kept) == [("answers",), ("shown in",)]
    assert not agent.ask("recall", query="map", as_of="2999-01-01")["as_of"]["deleted_since"]


def test_links_to_what_is_gone_stay_away_and_are_counted_and_a_name_declared_anew_is_found(agent):
    row = agent.row("about Oslo and Bergen", associations={"entities": [{"name": "Oslo"}, {"name": "Bergen"}]})
    agent.ask("delete_memory", memory_id=row)
    agent.store.run(
        agent.store.ctx.db.write(
            lambda tx: tx.execute("DELETE FROM entities WHERE agent_id = ?", (agent.name,)).fetchall()
        )
    )
    agent.ask("declare_associations", associations={"entities": [{"name": "Oslo"}]})
    assert agent.ask("restore_row", ref=f"mem:{row}")["dropped_links"] == 1
    assert agent.ask("traverse", entity="Oslo")["entities"][0]["mentions"] == [f"mem:{row}"]


def test_texts_are_numbered_from_the_latest_and_each_comes_back(agent):
    row = agent.row("one", timestamp="2020-01-01T00:00:00Z")
    for text in ("two", "three"):
        agent.ask("update_memory", memory_id=row, content=text)
    told = agent.ask("row_history", ref=f"mem:{row}")
    assert told["now"]["content"] == "three"
    assert [(e["n"], e["done"], e["content"]) for e in told["entries"]] == [
        (1, "updated", "two"),
        (2, "updated", "one"),
    ]
    assert agent.ask("restore_row", ref=f"mem:{row}", version=2)["result"] == "changed" and agent.texts() == {
        row: "one"
    }
    assert agent.ask("recall", query="one")["messages"][-1]["ref"] == f"mem:{row}"
    assert agent.ask("restore_row", ref=f"mem:{row}", version=3)["result"] == "unchanged"
    assert agent.ask("restore_row", ref=f"mem:{row}")["result"] == "changed" and agent.texts() == {row: "three"}
    entries = agent.ask("row_history", ref=f"mem:{row}", limit=2)
    assert [e["done"] for e in entries["entries"]] == ["brought back"] * 2 and entries["more"]
    assert "4 earlier texts are kept" in agent.ask("restore_row", ref=f"mem:{row}", version=9)["error"]


def test_an_update_by_key_and_replaced_notes_are_kept_too(agent):
    row = agent.row("one", id="k")
    agent.ask("store", content="two", id="k", on_conflict="update")
    note = {"id": "k", "content": "three", "metadata": {"digest": "d"}}
    agent.ask("replace_notes", notes=[note], on_conflict="update")
    agent.ask("replace_notes", notes=[], gone=["k"])
    entries = agent.ask("row_history", ref=f"mem:{row}")["entries"]
    assert [(e["done"], e["content"]) for e in entries] == [
        ("deleted", "three"),
        ("updated", "two"),
        ("updated", "one"),
    ]


def test_nothing_comes_back_over_a_row_that_has_its_text_or_its_key_and_that_row_is_named(agent):
    row = agent.row("one", id="k")
    agent.ask("delete_memory", memory_id=row)
    same = agent.row("one")
    assert f"mem:{same} has this content already" in agent.ask("restore_row", ref=f"mem:{row}")["error"]
    agent.ask("delete_memory", memory_id=same)
    keyed = agent.row("other", id="k")
    assert f"mem:{keyed} has its key 'k' now" in agent.ask("restore_row", ref=f"mem:{row}")["error"]
    agent.ask("update_memory", memory_id=keyed, content="third")
    agent.ask("store", content="other")
    assert "has this content already" in agent.ask("restore_row", ref=f"mem:{keyed}")["error"]
    assert agent.texts()[keyed] == "third"


def test_a_locked_row_is_not_changed_and_the_lock_stays_its_own(agent):
    row = agent.row("one")
    agent.ask("update_memory", memory_id=row, content="two")
    agent.ask("lock_memory", memory_id=row)
    assert "locked" in agent.ask("restore_row", ref=f"mem:{row}")["error"] and agent.texts() == {row: "two"}
    agent.ask("unlock_memory", memory_id=row)
    assert agent.ask("restore_row", ref=f"mem:{row}")["result"] == "changed"


def test_another_agent_and_another_project_see_and_restore_nothing(agent, opened):
    row, other = agent.row("one", project_id="p"), _Agent(opened)
    agent.ask("delete_memory", memory_id=row)
    for asked, axes in ((other, {}), (agent, {"project_id": "q"})):
        assert asked.ask("row_history", ref=f"mem:{row}", **axes)["entries"] == []
        assert "nothing is kept" in asked.ask("restore_row", ref=f"mem:{row}", **axes)["error"]
    assert agent.ask("restore_row", ref=f"mem:{row}", project_id="p")["result"] == "returned"


def test_an_episode_comes_back_too(agent):
    row = agent.ask("archive_episode", summary="the day", keywords="sun", history=[{"timestamp": "2020-01-01"}])
    before = agent.ask("list_episodes")
    agent.ask("delete_episode", episode_id=row["episode_id"])
    ref = f"ep:{row['episode_id']}"
    assert agent.ask("row_history", ref=ref)["entries"][0]["content"] == "the day"
    assert agent.ask("restore_row", ref=ref)["result"] == "returned" and agent.ask("list_episodes") == before
    assert agent.ask("recall", query="sun")["messages"][-1]["ref"] == ref


def test_a_forgotten_agent_has_no_history(agent):
    row = agent.row("one")
    agent.ask("update_memory", memory_id=row, content="two")
    agent.ask("delete_agent_data")
    assert agent.ask("row_history", ref=f"mem:{row}")["entries"] == []


def test_a_kept_vector_is_given_back_where_it_is_of_todays_model(agent):
    ctx, row = agent.store.ctx, agent.row("one")
    vector = b"\0\0\0\x3f" * 4

    def give(tx):
        tx.execute("INSERT INTO memory_vectors VALUES (?, 'model', ?)", (row, vector))
        tx.execute("INSERT OR REPLACE INTO meta VALUES ('embedding_dimension', 4), ('embedding_model', 'model')")

    ctx.db.write_now(give)
    agent.ask("delete_memory", memory_id=row)
    agent.ask("restore_row", ref=f"mem:{row}")
    found = lambda conn: conn.execute("SELECT model, vector FROM memory_vectors WHERE id = ?", (row,)).fetchall()  # noqa: E731
    assert ctx.db.read_now(found) == [("model", vector)]
    agent.ask("delete_memory", memory_id=row)
    ctx.db.write_now(lambda tx: tx.execute("DELETE FROM meta WHERE key LIKE 'embedding_%'").fetchall())
    agent.ask("restore_row", ref=f"mem:{row}")
    assert ctx.db.read_now(found) == []


def test_a_batch_that_is_taken_back_is_kept_as_any_deletion(agent):
    rows = [agent.row(f"row {n}", batch="b") for n in range(3)]
    agent.ask("undo_batch", batch="b")
    entries = [agent.store.ctx.db.read_now(past.of_row, (MEMORY, row), "", None, 1)[0][0] for row in rows]
    assert [e.text for e in entries] == ["row 0", "row 1", "row 2"] and len({e.together for e in entries}) == 1


def test_what_is_no_ref_is_refused_and_status_and_health_say_how_much_is_kept(agent):
    assert "names no row" in agent.ask("row_history", ref="mem:x")["error"] and agent.code == "invalid_params"
    assert "nothing is kept" in agent.ask("restore_row", ref="mem:99999", version=1)["error"]
    assert agent.store.call("check_health", {})[0]["history"]["entries"] > 0


def test_a_row_of_then_that_is_not_kept_as_it_was_is_marked(agent):
    """Contract: time.asof."""
    row, db = agent.row("one"), agent.store.ctx.db
    db.write_now(
        lambda tx: tx.execute("UPDATE memories SET created_at = '2020-01-01 00:00:00' WHERE id = ?", (row,)).fetchall()
    )
    asked = {"refs": [f"mem:{row}"], "as_of": "2021-01-01T00:00:00Z"}
    agent.ask("update_memory", memory_id=row, content="two")
    assert agent.ask("get_contents", **asked)["items"][0]["content"] == "one"
    db.write_now(lambda tx: tx.execute("DELETE FROM past WHERE row_id = ?", (row,)).fetchall())
    (item,) = agent.ask("get_contents", **asked)["items"]
    assert (item["content"], item["changed_since"]) == ("two", True)
    agent.ask("update_memory", memory_id=row, content="three")
    (item,) = agent.ask("get_contents", **asked)["items"]
    assert (item["content"], item["changed_since"]) == ("two", True)
    listed = agent.ask("list_memories", as_of=asked["as_of"])
    assert "1 row was changed since and is not kept as it was" in listed["advisory"]["reason"]
