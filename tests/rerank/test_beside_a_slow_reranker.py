"""What goes on while a reranker thinks, and what a recall costs it. Contract: rerank.asks, reads.free."""

from __future__ import annotations

import asyncio

import pytest
from models_kit import ModelServer
from store_kit import opened_store

from cpersona_daemon.rerank.service import AT_ONCE
from cpersona_daemon.storage.readers import READERS


@pytest.fixture
def server():
    made = ModelServer()
    made.score = lambda query, text: 0.9
    yield made
    made.stop()


@pytest.fixture
def store(server):
    with opened_store(CPERSONA_RERANK_URL=server.rerank, CPERSONA_RERANK_TIMEOUT_SECS="30") as (store, _):
        for n in range(30):
            store.call("store", {"agent_id": "a", "content": f"red kite {'over the hill ' * n}"})
        yield store


def test_reads_and_writes_go_on_while_more_recalls_wait_for_it_than_there_are_readers(store, server):
    server.fault = "slow"
    ask = {"agent_id": "a", "query": "kite", "limit": 30}

    async def run():
        recalls = [asyncio.ensure_future(store.answer("recall", ask)) for _ in range(READERS + 2)]
        while len(server.asked) < AT_ONCE:
            await asyncio.sleep(0.005)
        listed, _ = await store.answer("list_memories", {"agent_id": "a"})
        stored, _ = await store.answer("store", {"agent_id": "a", "content": "stored meanwhile"})
        other, _ = await store.answer("recall", ask, {"recall_mode": "rrf"})
        waiting = sum(not recall.done() for recall in recalls)
        server.gate.set()
        return listed, stored, other, waiting, [answer for answer, _ in await asyncio.gather(*recalls)]

    listed, stored, other, waiting, answers = store.run(run())
    assert len(listed["memories"]) == 30 and stored["result"] == "stored" and other["messages"]
    assert waiting == READERS + 2
    assert all(answer["messages"][-1]["match_reason"]["rerank"] == 0.9 for answer in answers)


def test_it_is_asked_about_the_best_twenty_rows_once_and_reads_the_beginning_of_each(store, server):
    store.call("store", {"agent_id": "a", "content": "green kite " + "x" * 5_000})
    answer, _ = store.call("recall", {"agent_id": "a", "query": "green kite", "limit": 5})
    ((_, body),) = server.asked
    assert len(body["documents"]) == body["top_n"] == 20 and max(map(len, body["documents"])) == 2_000
    assert answer["messages"][-1]["ref"] == "mem:31"
