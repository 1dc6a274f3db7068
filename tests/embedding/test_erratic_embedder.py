"""An embedder that answers otherwise each time, too little, or nonsense: what is stored and what is searched stay the
same.

Contract: embedding.http, embedding.identity.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator

import pytest
from embed_kit import EmbedServer
from store_kit import Store, opened_store

from cpersona_daemon.storage import backlog

WIDTH = 8
AGENT = "erratic"


class Erratic(EmbedServer):
    """Answers each time with ``answer(texts)``; a new random vector for each text unless a test says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.random = random.Random(5)
        self.answer = self.anew

    def anew(self, texts: list[str]) -> dict:
        return {"embeddings": [[self.random.gauss(0, 1) for _ in range(WIDTH)] for _ in texts], "model": "m"}

    def reply(self, texts: list[str]) -> dict:
        return self.answer(texts)


@pytest.fixture
def erratic() -> Iterator[Erratic]:
    server = Erratic()
    yield server
    server.stop()


@pytest.fixture
def store(erratic) -> Iterator[Store]:
    with opened_store(CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=erratic.url) as (opened, _):
        yield opened


def together(*calls) -> None:
    """Run each of the calls in a thread of its own and wait for all; what one raises is raised here."""
    failed: list[BaseException] = []

    def run(call) -> None:
        try:
            call()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def stored(store: Store, kind: str = "memory") -> dict[int, tuple[str, bytes]]:
    rows = store.ctx.db.read_now(lambda conn: conn.execute(f"SELECT id, model, vector FROM {kind}_vectors").fetchall())
    return {row_id: (model, data) for row_id, model, data in rows}


def assert_index_holds_what_is_stored(store: Store) -> None:
    store.ctx.vectors.wait()
    for kind, table in (("mem", "memory"), ("ep", "episode")):
        known = stored(store, table)
        found, block = store.ctx.vectors.rows_of([(kind, row_id) for row_id in range(1, 5000)], WIDTH, "")
        assert {rid[1]: vector.tobytes() for rid, vector in zip(found, block, strict=True)} == {
            i: data for i, (_, data) in known.items()
        }
        assert store.ctx.vectors.status()[kind]["rows"] == len(known)


def test_a_vector_is_filed_under_the_model_that_made_it_while_the_service_changes_its_model(erratic, store):
    """Each text names its model; other calls meanwhile are answered by another one."""
    erratic.answer = lambda texts: {"embeddings": [[1.0] * WIDTH] * len(texts), "model": texts[0].split()[0]}

    def stores(model: str) -> None:
        for number in range(25):
            row = store.call("store", {"agent_id": AGENT, "content": f"{model} {number}"})[0]
            store.call("update_memory", {"memory_id": row["id"], "content": f"{model} {number} again"})
            store.call("archive_episode", {"agent_id": AGENT, "summary": f"{model} {number}"})

    def asks(model: str) -> None:
        for number in range(60):
            store.call("recall", {"agent_id": AGENT, "query": f"{model} {number}", "no_wait": True})

    together(
        *(lambda model=model: stores(model) for model in ("one", "two", "three")),
        lambda: asks("four"),
        lambda: asks("five"),
    )
    for kind, table, column in (("memory", "memories", "content"), ("episode", "episodes", "summary")):
        texts = dict(store.ctx.db.read_now(lambda conn: conn.execute(f"SELECT id, {column} FROM {table}").fetchall()))
        wrong = [
            (texts[row_id], model)
            for row_id, (model, _) in stored(store, kind).items()
            if texts[row_id].split()[0] != model
        ]
        assert not wrong


SPOILT = {
    "too few vectors": lambda rows: rows[:-1],
    "a number that is not finite": lambda rows: [[1e999, *rows[0][1:]], *rows[1:]],
    "a vector of zeros": lambda rows: [[0.0] * WIDTH, *rows[1:]],
    "another width": lambda rows: [row[:4] for row in rows],
    "vectors of different widths": lambda rows: [rows[0][:4], *rows[1:]],
    "no vectors at all": lambda rows: "none",
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_an_answer_that_is_nonsense_leaves_rows_waiting_and_both_sides_alike(erratic, store, spoil):
    store.run(store.ctx.backlog.stop())
    store.call("store", {"agent_id": AGENT, "content": "well embedded"})
    erratic.answer = lambda texts: {"embeddings": spoil(erratic.anew(texts)["embeddings"]), "model": "m"}
    rows = [store.call("store", {"agent_id": AGENT, "content": f"text {number}"})[0] for number in range(3)]
    store.call("update_memory", {"memory_id": 1, "content": "embedded badly"})
    assert [row["embedded"] for row in rows] == [False] * 3 and stored(store) == {}
    assert_index_holds_what_is_stored(store)
    erratic.answer = erratic.anew
    store.call("store", {"agent_id": AGENT, "content": "well again"})
    assert set(stored(store)) == {5}
    assert_index_holds_what_is_stored(store)


@pytest.mark.stress
def test_rows_embedded_by_stores_updates_and_the_background_at_once_have_one_vector(erratic, store):
    """The background embeds the same rows over and over, while they are updated, deleted and indexed anew."""
    rounds = 600 if os.environ.get("CPERSONA_STRESS") == "full" else 20
    store.ctx.backlog._first_pause = 0.001
    # One answer in three is nonsense, and the next one differs from it anyway.
    erratic.answer = lambda texts: erratic.random.choice([erratic.anew, erratic.anew, lambda _: {"embeddings": []}])(
        texts
    )

    def edits(seed: int) -> None:
        chance = random.Random(seed)
        for number in range(rounds):
            store.call(
                "store",
                {
                    "agent_id": AGENT,
                    "content": f"text {chance.randrange(40)}",
                    "id": str(chance.randrange(20)),
                    "on_conflict": "update",
                },
            )
            store.call(
                "update_memory", {"memory_id": chance.randrange(1, 20), "content": f"text {chance.randrange(40)}"}
            )
            store.call("archive_episode", {"agent_id": AGENT, "summary": f"episode {seed} {number}"})
            if chance.random() < 0.2:
                store.call("delete_memory", {"memory_id": chance.randrange(1, 20)})

    def listed_again(tx) -> None:
        for (row_id,) in tx.execute("SELECT id FROM memories").fetchall():
            backlog.enqueue(tx, "mem", row_id)

    async def wake() -> None:
        store.ctx.backlog.wake()

    def embeds_again() -> None:
        for _ in range(rounds):
            store.ctx.db.write_now(listed_again)
            store.run(wake())

    def indexes_again() -> None:
        for _ in range(rounds // 3):
            store.ctx.vectors.rebuild()

    together(*(lambda seed=seed: edits(seed) for seed in range(4)), embeds_again, indexes_again, indexes_again)
    store.run(store.ctx.backlog.stop())
    assert stored(store)
    assert_index_holds_what_is_stored(store)
