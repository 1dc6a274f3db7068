"""Asking a reranker in both shapes, and every way in which it can go wrong.

Contract: rerank.asks, rerank.blend, services.keys.
"""

from __future__ import annotations

import asyncio
import json
import math
import time

import pytest
from models_kit import KEY, ModelServer

from cpersona_daemon.errors import RerankFailure, SettingsConflict
from cpersona_daemon.rerank import service, shapes
from cpersona_daemon.services.answers import Unfit
from cpersona_daemon.shared.settings import load

TEXTS = ["red", "green", "blue"]


class HeldClock:
    seconds = 1_000.0

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def server():
    made = ModelServer()
    made.score = lambda query, text: {"red": 0.1, "green": 0.9, "blue": 0.5}[text]
    yield made
    made.stop()


def reranker_at(server, clock=None, **options):
    return service.Reranker(settings_for(server, **options), clock or HeldClock())


def settings_for(server, **options):
    return load({"HOME": "/nowhere"}, {"rerank_url": server.rerank, **options})


def asked(reranker, texts=TEXTS):
    async def run():
        return await reranker.scores("which colour?", texts)

    return asyncio.run(run())


@pytest.mark.parametrize("speaks", ["cohere", "tei"])
def test_each_text_gets_its_own_score_in_whatever_order_they_are_answered(server, speaks):
    server.speaks = speaks
    reranker = reranker_at(server, rerank_model="m")
    assert asked(reranker) == [0.1, 0.9, 0.5]
    asked(reranker)
    # What was understood once is asked first from then on.
    assert len(server.asked) == (2 if speaks == "cohere" else 3)
    body = server.asked[-1][1]
    if speaks == "cohere":
        assert body == {"model": "m", "query": "which colour?", "documents": TEXTS, "top_n": 3}
    else:
        assert body == {"query": "which colour?", "texts": TEXTS, "truncate": True}
    reranker.close()


@pytest.mark.parametrize("api", ["cohere", "tei"])
def test_a_setting_names_the_one_shape_that_is_asked_in(server, api):
    server.speaks = "tei" if api == "cohere" else "cohere"
    with pytest.raises(RerankFailure, match="HTTP 422"):
        asked(reranker_at(server, rerank_api=api))
    assert len(server.asked) == 1


@pytest.mark.parametrize("speaks", ["cohere", "tei"])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("key", r"HTTP 401: it does not take the key or password \(CPERSONA_RERANK_API_KEY or"),
        ("slow", "did not answer"),
        ("dead", "failed|no answer in HTTP"),
        ("fewer", "has 2 scores for 3 texts"),
        ("nan", "is not what was asked for"),
        ("twice", "one is there twice"),
        ("beyond", "belongs to none"),
        ("nonsense", "is not what was asked for"),
    ],
)
def test_a_server_that_goes_wrong_is_a_failure_that_says_how(server, speaks, fault, said):
    server.speaks, server.fault = speaks, fault
    reranker = reranker_at(server, rerank_timeout_secs=0.2 if fault == "slow" else 5, rerank_api_key=KEY)
    with pytest.raises(RerankFailure, match=said) as failure:
        asked(reranker)
    assert "k3y" not in str(failure.value) and reranker.failures == 1
    server.gate.set()
    server.fault = None
    assert asked(reranker) == [0.1, 0.9, 0.5] and reranker.failures == 0
    assert server.headers["Authorization"] == f"Bearer {KEY}"
    reranker.close()


def test_a_request_ends_at_its_deadline_whatever_a_server_does(server):
    server.fault = "slow"
    started = time.monotonic()
    with pytest.raises(RerankFailure):
        asked(reranker_at(server, rerank_timeout_secs=0.1))
    assert time.monotonic() - started < 5


def test_one_that_fails_again_and_again_is_left_alone_for_a_while(server):
    clock = HeldClock()
    reranker = reranker_at(server, clock)
    server.fault = "key"
    for _ in range(service.FAILURES):
        with pytest.raises(RerankFailure, match="401"):
            asked(reranker)
    server.fault, before = None, len(server.asked)
    with pytest.raises(RerankFailure, match="left alone for 30 s more: 3 failures, .*401"):
        asked(reranker)
    assert len(server.asked) == before
    clock.seconds += service.REST_SECONDS
    assert asked(reranker) == [0.1, 0.9, 0.5]
    assert reranker.status()["failed_queries"] == 3 and reranker.status()["problem"] is None
    reranker.close()


@pytest.mark.parametrize("url", ["localhost:1/rerank", "ftp://h/", "http://h:port/"])
def test_an_address_that_is_none_is_a_conflict_of_settings(url):
    with pytest.raises(SettingsConflict, match="CPERSONA_RERANK_URL"):
        service.Asker(load({"HOME": "/nowhere"}, {"rerank_url": url}))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.0, 0.25, 1.0], [0.0, 0.25, 1.0]),
        ([2.0, -2.0, 0.0], [0.8808, 0.1192, 0.5]),
        ([-800.0, 800.0], [0.0, 1.0]),
        ([1.5, 0.5], [0.8176, 0.6225]),
        ([], []),
    ],
)
def test_scores_of_any_scale_become_shares_of_one_in_the_same_order(scores, expected):
    made = shapes.probabilities(scores)
    assert made == pytest.approx(expected, abs=1e-4)
    assert sorted(range(len(made)), key=made.__getitem__) == sorted(range(len(scores)), key=scores.__getitem__)


@pytest.mark.parametrize(
    "body",
    [
        {"results": []},
        {"results": [{"index": 0, "relevance_score": 1}]},
        {"results": [{"index": 0, "relevance_score": "1"}, {"index": 1, "relevance_score": 0}]},
        {"results": [{"index": True, "relevance_score": 1}, {"index": 0, "relevance_score": 0}]},
        {"results": [{"index": -1, "relevance_score": 1}, {"index": 0, "relevance_score": 0}]},
        {"results": [{"index": 0, "relevance_score": None}, {"index": 1, "relevance_score": 0}]},
        {"results": [{"index": 0, "relevance_score": 1}] * 2},
        {"results": None},
        [{"index": 0, "score": 1}, {"index": 1, "score": 0}],
        b'{"results": [{"index": 0, "relevance_score": 1e999}, {"index": 1, "relevance_score": 0}]}',
        b"",
        b"\xff",
    ],
)
def test_an_answer_that_is_not_a_score_for_each_text_is_refused_whole(body):
    (cohere,) = shapes.shapes_of("cohere")
    with pytest.raises(Unfit):
        cohere.read(body if isinstance(body, bytes) else json.dumps(body).encode(), 2)


def test_an_answer_may_hold_what_nobody_asked_for():
    (cohere,), (tei,) = shapes.shapes_of("cohere"), shapes.shapes_of("tei")
    more = {"document": {"text": "a"}}
    results = [{"index": 1, "relevance_score": -3, **more}, {"index": 0, "relevance_score": 2.5, **more}]
    assert cohere.read(json.dumps({"id": "x", "meta": {}, "results": results}).encode(), 2) == [2.5, -3.0]
    assert tei.read(b'[{"index":1,"score":0.25,"text":"b"},{"index":0,"score":1}]', 2) == [1.0, 0.25]
    assert math.isfinite(shapes.probabilities([2.5, -3.0])[0])
