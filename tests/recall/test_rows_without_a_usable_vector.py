"""A recall says how many rows of its scope it could not compare by meaning: without a vector, of another model, of
another width.

Contract: advisory.says, embedding.identity.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from contract_kit import MODEL, Agent, Embedder, at_cosine, episode, memory, with_vector
from store_kit import Store, opened_store


@pytest.fixture(scope="module")
def house() -> Iterator[tuple[Store, Path, Embedder]]:
    embedder = Embedder()
    try:
        with opened_store(**embedder.settings) as (store, directory):
            yield store, directory, embedder
    finally:
        embedder.stop()


@pytest.fixture
def agent(house) -> Agent:
    store, directory, embedder = house
    return Agent(store.call, directory, embedder)


def foreign(content: str, **fields) -> dict:
    return memory(content, **with_vector(at_cosine(0.9), "of another model"), **fields)


def narrow(content: str, **fields) -> dict:
    return memory(content, **with_vector(at_cosine(0.9)[:4], MODEL), **fields)


def said(answer: dict) -> str:
    advisory = answer["advisory"]
    assert (advisory["degraded"], advisory["severity"]) == (True, "hint")
    return advisory["reason"]


def test_nothing_is_said_where_every_row_can_be_compared(agent):
    agent.load(memory("apples", cosine=0.9), episode("pears", cosine=0.8))
    assert "advisory" not in agent.recall("fruit")


def test_rows_without_a_vector_of_another_model_and_of_another_width_are_counted_together(agent):
    agent.load(
        memory("apples", cosine=0.9),
        memory("none"),
        foreign("foreign"),
        narrow("narrow"),
        episode("an episode without one"),
    )
    answer = agent.recall("fruit")
    assert said(answer).startswith("4 rows have no vector that this question can be compared with")
    assert "words alone" in said(answer) and "health --fix" in answer["advisory"]["runbook"]


@pytest.mark.parametrize("method", ["recall_with_context", "reconstruct"])
def test_every_kind_of_recall_says_it(agent, method):
    agent.load(memory("none"))
    assert said(agent.own(method, query="fruit")).startswith("1 row has no vector")


def test_only_rows_of_the_scope_are_counted(agent, house):
    store, directory, embedder = house
    Agent(store.call, directory, embedder).load(memory("somebody else's"))
    agent.load(
        memory("global"),
        memory("in p", project_id="p"),
        memory("in q", project_id="q"),
        memory("in p and c", project_id="p", channel="c"),
    )
    counts = {}
    for project, channel in ((None, ""), ("p", ""), ("", ""), ("q", "c"), ("p", "c")):
        counts[project, channel] = int(said(agent.recall("fruit", project_id=project, channel=channel)).split()[0])
    assert counts == {(None, ""): 4, ("p", ""): 3, ("", ""): 1, ("q", "c"): 2, ("p", "c"): 3}


def test_where_a_source_or_an_instant_narrows_the_scope_the_number_is_an_upper_bound(agent):
    agent.load(memory("none", source={"id": "u1"}))
    for narrowed in ({"source_id": "u2"}, {"as_of": "2020-01-01T00:00:00Z"}):
        answer = agent.recall("fruit", **narrowed)
        advisories = [answer["advisory"], *answer["advisory"].get("also", [])]
        assert any(advisory["reason"].startswith("up to 1 row has no vector") for advisory in advisories)


def test_the_setting_silences_it_and_a_blank_question_compares_nothing(agent):
    agent.load(memory("none"))
    assert "advisory" not in agent.recall("fruit", set={"degraded_advisory": False})
    assert "advisory" not in agent.recall(" ")


def test_once_repaired_nothing_is_said(agent, house):
    store, *_ = house
    agent.load(memory("none"), foreign("foreign"))
    agent.recall("fruit")
    assert agent.ask("check_health", fix=True, checks=["missing_vectors", "foreign_vectors"])["fixed"]
    assert store.run(store.ctx.backlog.wait_until_drained(10_000, 30))
    assert "advisory" not in agent.recall("fruit")


def test_rows_that_wait_are_told_from_rows_that_nobody_will_embed(agent, house):
    store, *_ = house
    refs = agent.load(memory("none"), memory("forgotten"))
    store.run(store.ctx.backlog.stop())
    store.ctx.db.write_now(
        lambda tx: tx.execute("INSERT INTO embedding_backlog VALUES ('mem', ?)", (int(refs[0][4:]),)) and None
    )
    assert (
        said(agent.recall("fruit"))
        == "2 rows have no vector that this question can be compared with and are found by words alone; "
        "1 of them waits for one"
    )
    assert agent.ask("check_health", fix=True, checks=["missing_vectors"])["fixed"]
    assert said(agent.recall("fruit")) == "2 rows still wait for their vectors and are found by words alone until then"
    store.run(_started(store.ctx.backlog))


async def _started(backlog) -> None:
    backlog.start()
