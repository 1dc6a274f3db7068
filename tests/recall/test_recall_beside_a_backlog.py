"""A recall while rows are embedded in the background: it goes first until its rows are read, and waits for a few rows
without blocking them.

Contract: embedding.waits.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract_kit import Agent, Embedder, memory
from store_kit import Store, opened_store

from cpersona_daemon.embedding.turns import BACKGROUND, LINGER_SECONDS
from cpersona_daemon.recall import pipeline


class Slow(Embedder):
    seconds = 0.0

    def reply(self, texts: list[str]) -> dict:
        time.sleep(self.seconds * len(texts))
        return super().reply(texts)


@pytest.fixture
def house() -> Iterator[tuple[Store, Path, Slow]]:
    embedder = Slow()
    try:
        with opened_store(**embedder.settings) as (store, directory):
            yield store, directory, embedder
    finally:
        embedder.stop()


def test_the_background_waits_until_a_recall_has_read_its_rows(house, monkeypatch):
    store, *_ = house
    free, run, turns = [], pipeline.answer, store.ctx.embedding.turns

    def looked(*arguments):
        free.append(turns.wait(BACKGROUND, 3 * LINGER_SECONDS))
        return run(*arguments)

    monkeypatch.setattr(pipeline, "answer", looked)
    for query in ("a new question", "a new question", " "):
        store.call("recall", {"agent_id": "a", "query": query})
        assert turns.wait(BACKGROUND, 30.0)
    store.call("recall", {"agent_id": "a", "query": "fails", "why_not": "nonsense"})
    assert free == [False] * 3 and turns.wait(BACKGROUND, 30.0)


def test_a_few_rows_that_wait_are_waited_for_and_not_kept_from_their_vectors(house):
    store, directory, embedder = house
    agent = Agent(store.call, directory, embedder)
    agent.recall("which model is it")
    agent.load(*(memory(f"row {number}") for number in range(20)))
    embedder.seconds = 0.01
    agent.ask("check_health", fix=True, checks=["missing_vectors"])
    started = time.monotonic()
    assert "advisory" not in agent.recall("a question")
    assert time.monotonic() - started < 4.0  # a recall waits for five seconds and then gives up


def test_a_long_backlog_is_not_waited_for(house):
    store, directory, embedder = house
    agent = Agent(store.call, directory, embedder)
    agent.recall("which model is it")
    agent.load(*(memory(f"row {number}") for number in range(400)))
    embedder.seconds = 0.05
    agent.ask("check_health", fix=True, checks=["missing_vectors"])
    started = time.monotonic()
    assert "rows still wait for their vectors" in agent.recall("a question")["advisory"]["reason"]
    assert time.monotonic() - started < 4.0
