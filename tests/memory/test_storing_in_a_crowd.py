"""Many clients that store at once: nobody waits long for a vector, and every row gets one. Contract: store.embeds."""

from __future__ import annotations

import threading
import time

import pytest
from contract_kit import Embedder
from store_kit import opened_store

CLIENTS, TEXT_SECONDS = 24, 0.1


class Slow(Embedder):
    def reply(self, texts):
        time.sleep(TEXT_SECONDS * len(texts))
        return super().reply(texts)


@pytest.fixture
def store():
    embedder = Slow()
    try:
        with opened_store(**embedder.settings) as (opened, _):
            yield opened
    finally:
        embedder.stop()


def test_a_crowd_of_stores_is_acknowledged_before_its_vectors_are_made(store):
    assert store.call("store", {"agent_id": "a", "content": "alone"})[0]["embedded"]
    answers: list[dict] = []
    clients = [
        threading.Thread(
            target=lambda n=n: answers.append(store.call("store", {"agent_id": "a", "content": f"text {n}"})[0])
        )
        for n in range(CLIENTS)
    ]
    started = time.monotonic()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert time.monotonic() - started < CLIENTS * TEXT_SECONDS
    assert {answer["result"] for answer in answers} == {"stored"} and sum(
        not answer["embedded"] for answer in answers
    ) >= CLIENTS // 2
    assert store.run(store.ctx.backlog.wait_until_drained(1000, 30))
    assert store.ctx.vectors.status()["mem"]["rows"] == CLIENTS + 1
