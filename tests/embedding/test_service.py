"""The embedding service: states, cache, advisory, lanes, against a real http service.

Contract: embedding.waits, advisory.says.
"""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from cpersona_daemon.embedding import turns
from cpersona_daemon.embedding.builtin.embedder import BuiltinEmbedder
from cpersona_daemon.embedding.builtin.parts import Parts
from cpersona_daemon.embedding.cache import CACHE_ENTRIES, CACHE_SECONDS
from cpersona_daemon.embedding.loading import RETRY_LOAD_SECONDS
from cpersona_daemon.embedding.service import SLICE_SECONDS, EmbeddingService
from cpersona_daemon.embedding.turns import QUESTION
from cpersona_daemon.errors import EmbeddingFailure, SettingsConflict


def served(make_settings, embed_service, clock, test):
    """Run ``test(service)`` with a started service over the http embedder."""

    async def run():
        service = EmbeddingService(make_settings("http", embed_service.url), clock)
        service.start()
        try:
            await test(service)
        finally:
            await service.close()

    asyncio.run(run())


async def failure_of(awaitable):
    with pytest.raises(EmbeddingFailure) as failure:
        await awaitable
    return failure.value


async def fails(awaitable):
    return str(await failure_of(awaitable))


def test_without_an_embedder_a_query_has_no_vector_and_the_advisory_is_a_hint(make_settings, held_clock):
    async def run():
        service = EmbeddingService(make_settings("none"), held_clock)
        service.start()
        assert (service.mode, service.state, *service.model, service.declared) == ("none", "off", "", None, None)
        assert await service.embed_query("a", 1.0) is None
        await fails(service.embed_documents(["a"]))
        assert service.advice().severity == "hint"
        await service.close()

    asyncio.run(run())


def test_an_address_that_is_none_keeps_the_service_from_being_built(make_settings, held_clock):
    with pytest.raises(SettingsConflict):
        EmbeddingService(make_settings("http", "not-an-address"), held_clock)


def test_a_query_and_documents_become_unit_rows(make_settings, embed_service, held_clock):
    async def test(service):
        assert (service.mode, service.state) == ("http", "ready")
        query = (await service.embed_query("a", 1.0)).vector
        assert query.dtype == np.float32 and query.shape == (8,)
        rows, _ = await service.embed_documents(["a"] * 70)
        assert rows.shape == (70, 8) and np.array_equal(rows[69], query)
        assert (await service.embed_documents([])).vectors.shape == (0, 8)

    served(make_settings, embed_service, held_clock, test)


def test_the_same_query_is_asked_once_within_300_seconds(make_settings, embed_service, held_clock):
    async def test(service):
        first = await service.embed_query("a", 1.0)
        held_clock.seconds += CACHE_SECONDS - 1
        assert await service.embed_query("a", 1.0) is first
        assert len(embed_service.asked) == 1
        held_clock.seconds += 1
        assert await service.embed_query("a", 1.0) is not first
        assert len(embed_service.asked) == 2

    served(make_settings, embed_service, held_clock, test)


def test_the_cache_keeps_the_256_queries_used_last(make_settings, embed_service, held_clock):
    async def test(service):
        for n in range(CACHE_ENTRIES):
            await service.embed_query(str(n), 1.0)
        await service.embed_query("0", 1.0)
        await service.embed_query("one more", 1.0)
        asked = len(embed_service.asked)
        await service.embed_query("0", 1.0)
        assert len(embed_service.asked) == asked
        await service.embed_query("1", 1.0)
        assert len(embed_service.asked) == asked + 1

    served(make_settings, embed_service, held_clock, test)


def test_a_remembered_query_is_not_used_once_the_model_is_another(make_settings, embed_service, held_clock):
    async def test(service):
        embed_service.model = "one"
        await service.embed_query("a", 1.0)
        embed_service.model = "two"
        await service.embed_query("b", 1.0)
        await service.embed_query("a", 1.0)
        assert embed_service.asked == [["a"], ["b"], ["a"]]

    served(make_settings, embed_service, held_clock, test)


def test_a_remembered_vector_cannot_be_written_to(make_settings, embed_service, held_clock):
    async def test(service):
        with pytest.raises(ValueError):
            (await service.embed_query("a", 1.0)).vector[0] = 1

    served(make_settings, embed_service, held_clock, test)


def test_the_second_failed_query_in_a_row_is_a_fault_and_the_next_success_clears_it(
    make_settings, embed_service, held_clock
):
    async def test(service):
        embed_service.say(b"", 500)
        said = [service.advice(await failure_of(service.embed_query("a", 1.0))) for _ in range(2)]
        assert [advice.severity for advice in said] == ["hint", "fault"] and all(
            "HTTP 500" in advice.evidence for advice in said
        )
        assert service.status()["consecutive_failures"] == 2
        embed_service.answer = embed_service.good
        await service.embed_query("a", 1.0)
        assert service.problem is None
        embed_service.say(b"", 500)
        assert service.advice(await failure_of(service.embed_query("b", 1.0))).severity == "hint"
        assert (service.status()["consecutive_failures"], service.status()["failed_queries"]) == (1, 3)

    served(make_settings, embed_service, held_clock, test)


def test_failed_documents_are_no_failed_queries(make_settings, embed_service, held_clock):
    async def test(service):
        embed_service.say(b"", 500)
        for _ in range(3):
            await fails(service.embed_documents(["a"]))
        assert service.advice(await failure_of(service.embed_query("a", 1.0))).severity == "hint"

    served(make_settings, embed_service, held_clock, test)


def test_a_query_is_answered_while_documents_wait_for_theirs(make_settings, embed_service, held_clock):
    async def test(service):
        embed_service.gate.clear()
        documents = asyncio.ensure_future(service.embed_documents(["slow"]))
        await asyncio.get_running_loop().run_in_executor(None, embed_service.entered.wait, 20)
        query = asyncio.ensure_future(service.embed_query("quick", 1.0))
        while len(embed_service.asked) < 2:
            await asyncio.sleep(0.001)
        assert not documents.done()
        embed_service.gate.set()
        assert (await query).vector.shape == (8,) and (await documents).vectors.shape == (1, 8)

    served(make_settings, embed_service, held_clock, test)


@pytest.fixture
def endless_patience(monkeypatch):
    """The background does nothing before its turn, however long a busy machine takes over a question."""
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 60.0)
    monkeypatch.setattr(turns, "PATIENCE_TIMES", 1e9)


def test_while_somebody_goes_first_the_background_begins_nothing_more(
    make_settings, embed_service, held_clock, endless_patience
):
    """Not with the next request to the service either: between two questions there is at most the one that was under
    way.
    """

    async def test(service):
        embed_service.gate.clear()
        rows = asyncio.ensure_future(service.embed_documents([str(n) for n in range(100)], background=True))
        await asyncio.get_running_loop().run_in_executor(None, embed_service.entered.wait, 20)
        with service.turns.claim(QUESTION):
            embed_service.gate.set()
            for n in range(20):
                await service.embed_query(f"question {n}", 1.0)
            assert [texts[0] for texts in embed_service.asked] == ["0", *(f"question {n}" for n in range(20))]
        assert (await rows).vectors.shape == (100, 8)

    served(make_settings, embed_service, held_clock, test)


def test_while_questions_come_a_request_of_the_background_takes_no_longer_than_a_slice(
    make_settings, embed_service, held_clock
):
    async def test(service):
        def slow(texts):
            time.sleep(0.004 * len(texts))
            return embed_service.good(texts)

        embed_service.answer = slow
        await service.embed_documents(["quiet"] * 64, background=True)
        await service.embed_query("question", 1.0)
        await service.embed_documents(["busy"] * 12, background=True)
        held_clock.seconds += 60
        await service.embed_documents(["quiet again"] * 64, background=True)
        sizes = {
            text: [len(texts) for texts in embed_service.asked if texts[0] == text]
            for text in ("quiet", "busy", "quiet again")
        }
        assert sizes["quiet"] == sizes["quiet again"] == [32, 32]
        assert max(sizes["busy"]) * 4 <= SLICE_SECONDS * 1e3

    served(make_settings, embed_service, held_clock, test)


def test_rows_being_stored_go_before_the_background(make_settings, embed_service, held_clock, endless_patience):
    async def test(service):
        embed_service.gate.clear()
        rows = asyncio.ensure_future(service.embed_documents([str(n) for n in range(100)], background=True))
        await asyncio.get_running_loop().run_in_executor(None, embed_service.entered.wait, 20)
        stored = [asyncio.ensure_future(service.embed_documents([f"stored {n}"])) for n in range(5)]
        await asyncio.sleep(0)
        embed_service.gate.set()
        await asyncio.gather(*stored)
        asked = [texts[0] for texts in embed_service.asked]
        assert asked[:1] == ["0"] and "32" not in asked[:6]
        await rows

    served(make_settings, embed_service, held_clock, test)


def test_where_rows_being_stored_would_wait_for_each_other_it_is_said(make_settings, embed_service, held_clock):
    async def test(service):
        def slow(texts):
            time.sleep(0.1)
            return embed_service.good(texts)

        embed_service.answer = slow
        await service.embed_documents(["one"])
        assert not service.crowded
        stored = [asyncio.ensure_future(service.embed_documents([f"{n}"])) for n in range(6)]
        await asyncio.sleep(0)
        assert service.crowded
        await asyncio.gather(*stored)
        assert not service.crowded

    served(make_settings, embed_service, held_clock, test)


def test_a_query_that_reaches_its_limit_is_a_counted_failure(make_settings, embed_service, held_clock):
    async def test(service):
        embed_service.gate.clear()
        first, second = [await failure_of(service.embed_query("a", 1.0, limit_seconds=0.05)) for _ in range(2)]
        assert "did not answer" in str(first) and service.advice(second).severity == "fault"

    served(make_settings, embed_service, held_clock, test)


def test_closing_ends_a_query_that_hangs(make_settings, embed_service, held_clock):
    async def test(service):
        embed_service.gate.clear()
        query = asyncio.ensure_future(service.embed_query("a", 1.0))
        await asyncio.get_running_loop().run_in_executor(None, embed_service.entered.wait, 20)
        await service.close()
        await fails(query)
        await fails(service.embed_query("b", 1.0))

    served(make_settings, embed_service, held_clock, test)


def test_a_model_that_cannot_be_loaded_is_a_fault_at_once_and_is_tried_again_after_a_minute(
    make_settings, held_clock, tmp_path
):
    async def run():
        gone = Parts(*(str(tmp_path / name) for name in ("model", "vocabulary", "weights", "pieces")))
        service = EmbeddingService(make_settings("builtin"), held_clock, BuiltinEmbedder(gone))
        service.start()
        assert service.state == "loading" and service.model.dimension == 896
        early = await failure_of(service.embed_query("a", 0.0))
        assert "still loading" in str(early) and service.advice(early).severity == "hint"
        late = await failure_of(service.embed_query("a", 20.0))
        assert "is missing" in str(late) and service.state == "failed" and "is missing" in service.problem
        advice = service.advice(late)
        assert advice.severity == "fault" and "model" in advice.evidence
        await fails(service.embed_documents(["a"]))
        assert service.state == "failed"
        held_clock.seconds += RETRY_LOAD_SECONDS
        assert "still loading" in await fails(service.embed_query("a", 0.0))
        await service.close()

    asyncio.run(run())
