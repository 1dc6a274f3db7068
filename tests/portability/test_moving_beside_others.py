"""A merge and a deletion of an agent take many transactions: what others see and do meanwhile, and what a kill leaves.

Contract: merge.copies, forget.agent.
"""

import base64
import shutil
import struct

import numpy as np
import pytest
from house_kit import House, memory

from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.portability import sweep
from cpersona_daemon.portability.merging import run
from cpersona_daemon.storage import axes, hidden, memories, transfer
from cpersona_daemon.vectors.backend import QueryVectors, Window

ROWS = 60
QUERY = np.array([0.6, 0.8], np.float32)


def vector(i):
    return base64.b64encode(struct.pack("<2f", 0.6, 0.8 + i / 1000)).decode()


def lines(agent="src"):
    rows = [
        memory(
            f"note {i} about ships",
            agent_id=agent,
            id=i + 1,
            msg_id=f"m{i}",
            embedding_b64=vector(i),
            embedding_model="kit",
            created_at=f"2026-01-01 00:00:{i % 60:02}",
        )
        for i in range(ROWS)
    ]
    return [
        *rows,
        {"_type": "episode", "id": 1, "agent_id": agent, "summary": "the ships of spring"},
        {"_type": "profile", "agent_id": agent, "content": "a sailor"},
        {"_type": "entity", "id": 1, "agent_id": agent, "name": "Fleet"},
        {"_type": "mention", "entity": 1, "ref": "mem:1"},
        {
            "_type": "relation",
            "agent_id": agent,
            "subject_kind": "mem",
            "subject_id": 1,
            "predicate": "supports",
            "object_kind": "mem",
            "object_id": 2,
        },
    ]


@pytest.fixture
def small_steps(monkeypatch):
    monkeypatch.setattr(run, "TRANSACTION_SECONDS", 0.0)
    monkeypatch.setattr(run, "ROWS_TOGETHER", 2)
    monkeypatch.setattr(run, "READ_TOGETHER", 7)
    for name in ("FIRST_ROWS", "FEWEST_ROWS", "MOST_ROWS"):
        monkeypatch.setattr(sweep, name, 5)
    for name in ("FIRST_PAGES", "FEWEST_PAGES", "MOST_PAGES"):
        monkeypatch.setattr(sweep, name, 1)


@pytest.fixture
def filled(house, small_steps):
    answer = house.ask(
        "import_memories", input_path=house.write("in.jsonl", *lines(), memory("at home already", agent_id="dst"))
    )
    assert answer["ok"] and "errors" not in answer, answer
    return house


def seen_of(house, agent):
    """Return what every way of reading shows of an agent, counted."""

    def look(conn):
        words = conn.execute("SELECT count(*) FROM memory_fts").fetchone()  # the postings themselves are nobody's view
        assert words
        counts = transfer.counts(conn, agent)
        listed = len(memories.newest(conn, agent, None, 500))
        scope = Scope(agent)
        return (
            *counts.values(),
            listed,
            memories.total(conn, agent),
            memories.count_in_scope(conn, scope, 500),
            len(list(transfer.memory_rows(conn, agent, False))),
            *(value for value in axes.agents(conn) if value == agent),
            len(list(transfer.mention_rows(conn, agent))),
            memories.span(conn, scope),
        )

    near = house.ctx.vectors.search(QueryVectors.one(QUERY, "kit"), MEMORY, Scope(agent), Window(0, 1000), 0.5, 500)[0]
    return (
        *house.ctx.db.read_now(look),
        len(near),
        house.ctx.vectors.background(Scope(agent), 1000, 2, "kit") is not None,
    )


def watch(house, look):
    """Look after each commit, on the writer's thread, and return the list that fills."""
    commit, found = house.ctx.db._commit, []

    def noticed(group):
        outcomes = commit(group)
        found.append(look())
        return outcomes

    house.ctx.db._commit = noticed
    return found


def changes(found):
    """Return what was seen one after another, each state once."""
    return [state for place, state in enumerate(found) if place == 0 or found[place - 1] != state]


@pytest.mark.parametrize("mode", ["copy", "move"])
def test_readers_see_all_of_a_merge_or_nothing(filled, mode):
    def look():
        return seen_of(filled, "src"), seen_of(filled, "dst"), seen_of(filled, "")

    before, states = look(), watch(filled, look)
    answer = filled.ask("merge_memories", source_agent_id="src", target_agent_id="dst", mode=mode)
    assert answer["merged_memories"] == ROWS and len(states) > ROWS / 2
    assert len(changes([before, *states])) == 2, changes([before, *states])
    after = states[-1]
    assert after[1][0] == ROWS + 1 and after[0][0] == (0 if mode == "move" else ROWS)
    assert hidden_rows(filled) == 0 and filled.ask("check_health")["status"] != "unhealthy"


def test_readers_see_all_of_an_agent_or_nothing_while_it_is_forgotten(filled):
    def look():
        return seen_of(filled, "src"), seen_of(filled, "dst"), seen_of(filled, "")

    before, states = look(), watch(filled, look)
    answer = filled.ask("delete_agent_data", agent_id="src")
    assert (answer["deleted_memories"], answer["deleted_associations"]) == (
        ROWS,
        {"entities": 1, "mentions": 1, "relations": 1},
    )
    assert len(changes([before, *states])) == 2 and len(states) > ROWS / 6
    assert filled.sql("SELECT count(*) FROM memories") == [(1,)] and hidden_rows(filled) == 0
    for name in ("memory_vectors", "embedding_backlog", "entities", "relations", "entity_mentions", "entity_aliases"):
        assert filled.sql(f"SELECT count(*) FROM {name}") == [(0,)], name


def hidden_rows(house):
    return sum(house.sql(f"SELECT count(*) FROM hidden_{table}")[0][0] for table in hidden.TABLES)


def test_other_writers_come_in_between(filled):
    states = watch(filled, lambda: None)
    running = filled.start("merge_memories", source_agent_id="src", target_agent_id="dst", mode="move")
    stored = []
    while not running.done():
        stored.append(filled.ask("store", agent_id="other", content=f"meanwhile {len(stored)}")["result"])
    assert running.result()[0]["merged_memories"] == ROWS and set(stored) == {"stored"} and len(stored) > 5 and states


def at_commit(house, when, act):
    """Do something once on the writer's thread, after the commit of this number or after the first one for which
    ``when()`` holds.
    """
    commit, seen, waiting = house.ctx.db._commit, [0], [True]

    def noticed(group):
        outcomes = commit(group)
        seen[0] += 1
        if waiting and (seen[0] == when if isinstance(when, int) else when()):
            waiting.clear()
            act()
        return outcomes

    house.ctx.db._commit = noticed


@pytest.mark.parametrize("mode", ["copy", "move"])
def test_what_changes_at_the_source_meanwhile_is_merged_as_it_is_then(filled, mode):
    futures = []

    def meanwhile():
        futures.extend(
            [
                filled.start("update_memory", memory_id=1, content="another text"),
                filled.start("delete_memory", memory_id=2),
                filled.start("lock_memory", memory_id=3),
                filled.start("store", agent_id="src", content="too late to be merged"),
            ]
        )

    at_commit(filled, 15, meanwhile)
    answer = filled.ask("merge_memories", source_agent_id="src", target_agent_id="dst", mode=mode)
    assert [future.result(30)[1] for future in futures] == [None] * 4
    merged = {row["content"]: row for row in filled.ask("list_memories", agent_id="dst")["memories"]}
    assert "another text" in merged and "note 0 about ships" not in merged and "note 1 about ships" not in merged
    assert merged["note 2 about ships"]["locked"] is True and answer["merged_memories"] == ROWS - 1
    left = {row["content"] for row in filled.ask("list_memories", agent_id="src")["memories"]}
    assert "too late to be merged" in left and len(left) == (1 if mode == "move" else ROWS)
    assert hidden_rows(filled) == 0


def test_what_the_target_gets_meanwhile_wins_over_its_copy(filled):
    futures = []
    at_commit(
        filled,
        20,
        lambda: futures.extend(
            [
                filled.start("store", agent_id="dst", content="note 0 about ships"),
                filled.start("store", agent_id="dst", content="of another text", id="m1"),
            ]
        ),
    )
    answer = filled.ask("merge_memories", source_agent_id="src", target_agent_id="dst", mode="move")
    assert [future.result(30)[0]["result"] for future in futures] == ["stored", "stored"]
    assert (answer["merged_memories"], answer["skipped_memories"]) == (ROWS - 2, 2)
    assert filled.sql("SELECT content FROM memories WHERE agent_id = 'src' ORDER BY id") == [
        ("note 0 about ships",),
        ("note 1 about ships",),
    ]
    assert filled.sql("SELECT count(*) FROM memories WHERE agent_id = 'dst' AND content = 'note 0 about ships'") == [
        (1,)
    ]
    # The mention is of the row that stands in the copy's place.
    ((ref,),) = filled.sql(
        "SELECT record_id FROM entity_mentions x JOIN entities e ON e.id = x.entity_id WHERE e.agent_id = 'dst'"
    )
    assert filled.sql("SELECT content FROM memories WHERE id = ?", ref) == [("note 0 about ships",)]


def test_a_forgotten_text_can_be_stored_again_at_once(filled):
    futures = []
    at_commit(
        filled,
        1,
        lambda: futures.extend(
            [
                filled.start(
                    "store",
                    agent_id="src",
                    content="note 59 about ships",
                    associations={"entities": [{"name": "Fleet"}]},
                ),
                filled.start("archive_episode", agent_id="src", summary="the ships of spring"),
            ]
        ),
    )
    filled.ask("delete_agent_data", agent_id="src")
    assert futures[0].result(30)[0]["result"] == "stored" and futures[1].result(30)[1] is None
    assert [row["content"] for row in filled.ask("list_memories", agent_id="src")["memories"]] == [
        "note 59 about ships"
    ]
    assert filled.ask("traverse", agent_id="src", entity="Fleet")["entities"][0]["mentions"] == [f"mem:{ROWS + 2}"]
    assert filled.ask("list_episodes", agent_id="src")["count"] == 1 and hidden_rows(filled) == 0


def killed(house, tmp_path, number, method, **params):
    """Return a house over the files as they were when a daemon was killed after so many commits of a request."""
    other = tmp_path / "restarted"

    def take():
        (other / "db").mkdir(parents=True)
        for name in ("", "-wal"):
            shutil.copyfile(house.places.db + name, other / "db" / f"t.db{name}")

    at_commit(house, number, take)
    assert house.ask(method, **params).get("ok"), method
    return House(other)


@pytest.mark.parametrize("number", [2, 12, 30])
def test_a_merge_that_is_killed_before_it_is_seen_leaves_nothing_and_can_be_run_again(filled, tmp_path, number):
    house = killed(
        filled, tmp_path, number, "merge_memories", source_agent_id="src", target_agent_id="dst", mode="move"
    )
    try:
        wait_for_leftovers(house)
        assert seen_of(house, "src")[0] == ROWS and seen_of(house, "dst")[0] == 1 and hidden_rows(house) == 0
        assert (
            house.sql("SELECT count(*) FROM memories") == [(ROWS + 1,)]
            and house.ctx.vectors.status()["mem"]["rows"] == ROWS
        )
        again = house.ask("merge_memories", source_agent_id="src", target_agent_id="dst", mode="move")
        assert (
            again["merged_memories"] == ROWS
            and seen_of(house, "src")[:2] == (0, 0)
            and seen_of(house, "dst")[0] == ROWS + 1
        )
        assert house.ask("check_health")["status"] != "unhealthy"
    finally:
        house.close()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("merge_memories", {"source_agent_id": "src", "target_agent_id": "dst", "mode": "move"}),
        ("delete_agent_data", {"agent_id": "src"}),
    ],
)
def test_what_was_decided_before_a_kill_is_finished_after_it(filled, tmp_path, method, params):
    number = 4 if method == "delete_agent_data" else 40
    house = killed(filled, tmp_path, number, method, **params)
    try:
        assert seen_of(house, "src")[0] == 0
        wait_for_leftovers(house)
        assert house.sql("SELECT count(*) FROM memories WHERE agent_id = 'src'") == [(0,)] and hidden_rows(house) == 0
        assert house.sql("SELECT v FROM memory_fts_config WHERE k = 'deletemerge'") in ([], [(10,)])
        assert seen_of(house, "dst")[0] == (ROWS + 1 if method == "merge_memories" else 1)
    finally:
        house.close()


def wait_for_leftovers(house):
    """Return when what a start or an early end set going is done."""

    async def settled(ctx):
        async with ctx.moving:
            pass

    house.run(settled(house.ctx))


def test_a_merge_that_is_given_up_has_done_nothing(filled):
    running = filled.start("merge_memories", source_agent_id="src", target_agent_id="dst", mode="move")
    while not hidden_rows(filled):
        pass
    running.cancel()
    while hidden_rows(filled):
        wait_for_leftovers(filled)
    assert seen_of(filled, "src")[0] == ROWS and seen_of(filled, "dst")[0] == 1 and hidden_rows(filled) == 0
    assert filled.sql("SELECT count(*) FROM memories") == [(ROWS + 1,)]
    assert (
        filled.ask("merge_memories", source_agent_id="src", target_agent_id="dst", mode="move")["merged_memories"]
        == ROWS
    )


def test_the_word_index_is_tidied_a_piece_at_a_time_and_left_as_it_was(filled):
    filled.ask("delete_agent_data", agent_id="src")
    assert filled.sql("SELECT v FROM memory_fts_config WHERE k = 'deletemerge'") == [(10,)]
    assert filled.ask("recall", agent_id="src", query="ships") == {"messages": []} or filled.code is None
    assert filled.ask("check_health", checks=["lexical_index"])["issues"] == []


def test_two_episodes_that_say_the_same_become_one_though_the_first_is_changed_meanwhile(house, small_steps):
    house.ask("import_memories", input_path=house.write("in.jsonl", *lines()))
    first, second = (house.ask("archive_episode", agent_id="src", summary="twice said")["episode_id"] for _ in range(2))
    futures = []
    at_commit(
        house,
        lambda: len(house.sql("SELECT id FROM hidden_episodes")) == 2,
        lambda: futures.append(house.start("delete_episode", episode_id=first)),
    )
    answer = house.ask("merge_memories", source_agent_id="src", target_agent_id="dst")
    assert futures[0].result(30)[1] is None and second
    assert answer["merged_episodes"] == 2
    assert house.sql("SELECT count(*) FROM episodes WHERE agent_id = 'dst' AND summary = 'twice said'") == [(1,)]
