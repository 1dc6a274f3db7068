"""What is deleted for good stands in no file of the store any more. Contract: past.purged, forget.agent, locks.hold."""

from __future__ import annotations

import os

import numpy as np
import pytest
from store_kit import opened_store

from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.storage import backlog
from cpersona_daemon.storage.idempotency import Key

SECRET = "xylographic quintessence"
WORDS = ("xylograph", "quintess")  # as the word index has them


@pytest.fixture
def store():
    with opened_store() as (opened, root):
        opened.root = root
        yield opened


def found(store, *needles: bytes) -> set[str]:
    """The files of the store that hold any of these bytes, whatever the case of letters."""
    held = set()
    for directory, _, names in os.walk(store.root):
        for name in names:
            with open(os.path.join(directory, name), "rb") as handle:
                data = handle.read().lower()
            held |= {name for needle in needles if needle.lower() in data}
    return held


def vector_of(seed: int) -> np.ndarray:
    vector = np.random.default_rng(seed).standard_normal(64).astype(np.float32)
    return vector / np.linalg.norm(vector)


def give_vector(store, row: int, seed: int) -> None:
    store.run(
        store.ctx.db.write(lambda tx: backlog.attach_vector(tx, MEMORY, row, Embedded(vector_of(seed), "m")) and None)
    )


def codes_of(vector: np.ndarray) -> bytes:
    """The codes by which an index file knows a vector."""
    return np.round(vector * (127 / np.abs(vector).max())).astype(np.int8).tobytes()[8:40]


def ask(store, method, agent="a", **params):
    return store.call(method, {"agent_id": agent, **params})[0]


def fill(store) -> int:
    """Rows of two agents with vectors, one of them with a secret, changed and with an answer that tells of it."""
    for n in range(40):
        row = ask(store, "store", agent="ab"[n % 2], content=f"an everyday note, the {n}th")["id"]
        give_vector(store, row, n)
    row = ask(store, "store", content=f"The {SECRET} was first", id="secret-key")["id"]
    give_vector(store, row, 1000)
    assert store.run(store.ctx.db.rewrite()) and found(store, *NEEDLES) == {"t.db", "t.db.memories.vec"}
    ask(store, "update_memory", memory_id=row, content=f"Now the {SECRET} is second")
    give_vector(store, row, 1001)
    key = Key.of("told", "me", "declare_associations", {})
    store.run(store.ctx.db.write(lambda tx: {"ok": True, "entities": [{"name": SECRET}]}, key))
    return row


NEEDLES = (SECRET.encode(), *(word.encode() for word in WORDS), vector_of(1000).tobytes(), vector_of(1001).tobytes())
ALL = (*NEEDLES, codes_of(vector_of(1000)), codes_of(vector_of(1001)), b"secret-key")


def test_a_purged_row_stands_in_no_file_and_the_others_are_as_they_were(store):
    row = fill(store)
    assert all(found(store, needle) for needle in ALL)
    others = [ask(store, "list_memories", agent=agent)["memories"] for agent in "ab"]
    assert ask(store, "purge_rows", refs=[f"mem:{row}"]) == {"ok": True, "purged": [f"mem:{row}"]}
    assert found(store, *ALL) == set()
    assert [ask(store, "list_memories", agent=agent)["memories"] for agent in "ab"] == [
        [one for one in rows if one["id"] != row] for rows in others
    ]
    assert ask(store, "recall", query="everyday note")["messages"] and store.call("check_health", {"deep": True})[0][
        "status"
    ] in ("healthy", "degraded")
    assert [e["done"] for e in ask(store, "row_history", ref=f"mem:{row}")["entries"]] == ["deleted for good"]
    assert "nothing is kept" in ask(store, "restore_row", ref=f"mem:{row}")["error"]
    assert "for good" in ask(store, "undo_last")["error"]
    again = ask(store, "store", content="a later row")["id"]
    assert again > row and ask(store, "undo_last")["refs"] == [f"mem:{again}"]


def test_a_row_that_was_deleted_before_is_purged_of_what_is_kept_and_an_episode_too(store):
    row = fill(store)
    episode = ask(store, "archive_episode", summary=f"a day of {SECRET}")["episode_id"]
    ask(store, "delete_memory", memory_id=row)
    ask(store, "delete_episode", episode_id=episode)
    assert found(store, SECRET.encode())
    refs = [f"mem:{row}", f"ep:{episode}"]
    assert ask(store, "purge_rows", refs=refs)["purged"] == refs
    assert found(store, *ALL) == set()


def test_a_forgotten_agent_stands_in_no_file(store):
    row = fill(store)
    ask(store, "lock_memory", memory_id=row)
    ask(store, "archive_episode", summary=f"a day of {SECRET}")
    ask(store, "update_profile", profile=f"likes {SECRET}")
    ask(store, "delete_agent_data")
    assert found(store, *ALL) == set()
    assert (
        ask(store, "list_memories", agent="b")["count"] == 20 and ask(store, "row_history", ref="mem:1")["now"] is None
    )


def test_a_locked_row_a_row_of_another_and_one_of_another_project_stay_and_are_named(store):
    locked, theirs = ask(store, "store", content="one", lock=True)["id"], ask(store, "store", "b", content="two")["id"]
    mine = ask(store, "store", content="three")["id"]
    answer = ask(store, "purge_rows", refs=[f"mem:{n}" for n in (locked, theirs, mine)])
    assert answer["purged"] == [f"mem:{mine}"] and [row["ref"] for row in answer["kept"]] == [
        f"mem:{locked}",
        f"mem:{theirs}",
    ]
    assert "mem:99" in ask(store, "purge_rows", refs=["mem:99"])["error"]
    assert "names no row" in ask(store, "purge_rows", refs=["x"])["error"]
    assert "send 1 to" in ask(store, "purge_rows", refs=[])["error"]


def test_writes_and_reads_go_on_beside_a_purge(store):
    import asyncio

    row = fill(store)

    async def together():
        return await asyncio.gather(
            store.answer("purge_rows", {"agent_id": "a", "refs": [f"mem:{row}"]}),
            *(store.answer("store", {"agent_id": "c", "content": f"beside {n}"}) for n in range(20)),
            *(store.answer("recall", {"agent_id": "b", "query": "everyday note"}) for _ in range(10)),
        )

    answers = store.run(together())
    assert all(code is None for _, code in answers) and ask(store, "list_memories", agent="c")["count"] == 20


def test_an_answer_that_tells_nothing_of_rows_is_still_kept_after_a_purge(store):
    row = fill(store)
    key = Key.of("kept", "me", "store", {})
    store.run(store.ctx.db.write(lambda tx: {"ok": True, "result": "stored", "id": 7}, key))
    ask(store, "purge_rows", refs=[f"mem:{row}"])
    assert store.run(store.ctx.db.write(lambda tx: {"ok": False}, key))["id"] == 7
