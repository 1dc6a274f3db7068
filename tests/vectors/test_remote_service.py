"""How a vector service is asked, and what of its answers is taken.

Contract: remote.search, remote.told.
"""

import json
import time
from urllib.parse import urlsplit

import pytest
from remote_kit import VectorServer
from vector_kit import House, Row, unit

from cpersona_daemon.errors import VectorServiceFailure
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.kinds import EPISODE, MEMORY, PassageKind
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.services.answers import Unfit
from cpersona_daemon.shared.settings import load
from cpersona_daemon.vectors.backend import Ask, NotReady, QueryVectors, Window
from cpersona_daemon.vectors.drainer import Undelivered
from cpersona_daemon.vectors.remote import engine as remote
from cpersona_daemon.vectors.remote import shapes
from cpersona_daemon.vectors.remote.engine import RemoteEngine
from cpersona_daemon.vectors.remote.service import Service

SECONDS = 20.0
QUESTION = unit([1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("embed", "expected"),
    [
        ("http://h:8401/embed", "http://h:8401/search"),
        ("https://h/a/b/embed?key=abc&x=1", "https://h/a/b/search?key=abc&x=1"),
        ("http://u:p@h/embed#f", "http://u:p@h/search#f"),
        ("http://h/embed/embed", "http://h/embed/search"),
    ],
)
def test_the_other_paths_stand_in_the_place_of_embed(embed, expected):
    assert shapes.sibling(urlsplit(embed), shapes.SEARCH).geturl() == expected


def test_requests_name_the_agent_as_a_namespace():
    assert json.loads(shapes.search_body("a b", "what?", 900, 0.25)) == {
        "namespace": "cpersona:a b",
        "query": "what?",
        "limit": 500,
        "min_similarity": 0.25,
    }
    assert json.loads(shapes.index_body("a", [shapes.Item("mem:1", "naïve")])) == {
        "namespace": "cpersona:a",
        "items": [{"id": "mem:1", "text": "naïve"}],
    }
    assert json.loads(shapes.remove_body("a", ["ep:2"])) == {"namespace": "cpersona:a", "ids": ["ep:2"]}
    assert json.loads(shapes.purge_body("a")) == {"namespace": "cpersona:a"}


def test_an_answer_is_taken_with_rows_of_known_form_each_once():
    body = b'{"results": [{"id": "mem:2", "score": 1}, {"id": "note", "score": 0.9}, {"id": "ep:3", "score": 0.5},'
    body += b' {"id": "mem:2", "score": 0.4}], "took": 3}'
    assert shapes.found(body) == [((MEMORY, 2), 1.0), ((EPISODE, 3), 0.5)]
    assert shapes.found(b'{"results": []}') == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"results": null}',
        b'{"results": {}}',
        b'{"results": [7]}',
        b'{"results": [{"id": "mem:1"}]}',
        b'{"results": [{"id": "mem:1", "score": "0.9"}]}',
        b'{"results": [{"id": "mem:1", "score": null}]}',
        b'{"results": [{"id": "x", "score": true}]}',
        b'{"results": [{"id": "x", "score": NaN}]}',
        b'{"results": [{"id": "x", "score": 1e999}]}',
        b'{"results": [{"id": "\xff", "score": 1}]}',
    ],
)
def test_an_answer_without_results_or_with_a_score_that_is_no_number_is_refused_whole(body):
    with pytest.raises(Unfit):
        shapes.found(body)


@pytest.fixture
def server():
    server = VectorServer()
    yield server
    server.stop()


def service_of(server, **more):
    given = {"embedding_mode": "http", "embedding_url": server.url, "vector_search_mode": "remote", **more}
    return Service(load({"HOME": "/"}, given))


def test_a_service_that_hangs_costs_the_deadline_and_says_so(server):
    server.faults["/search"] = "slow"
    begun = time.monotonic()
    with pytest.raises(VectorServiceFailure, match="did not answer in time"):
        service_of(server).search("a", "q", 5, 0.1, time.monotonic() + 0.1)
    assert time.monotonic() - begun < 3


def test_questions_and_texts_get_what_stands_before_them_for_the_embedder(server):
    service = service_of(server, embedding_query_prefix="query: ", embedding_document_prefix="passage: ")
    service.index("a", [shapes.Item("mem:1", "one")])
    service.search("a", "what?", 5, 0.1)
    assert server.held == {"cpersona:a": {"mem:1": "passage: one"}}
    assert server.sent("/search")[0]["query"] == "query: what?"
    assert service.target != service_of(server).target and "tenant" not in service.target


@pytest.fixture
def engine(tmp_path, server):
    house = House(tmp_path)
    engine = RemoteEngine(house.places, SystemClock(), service_of(server))
    house.store.close()
    house.store = engine
    house.db.on_commit = engine.apply
    engine.open(house.db)
    engine.house = house
    yield engine
    engine.leave()
    house.stop()


def ask(kind=MEMORY, window=(0, 100), k=5, floor=-1.0, agent="a"):
    return Ask(QueryVectors.one(QUESTION, "m"), kind, Scope(agent), Window(*window), floor, k)


def asked(engine, *asks):
    return engine.ask(asks, "what?", time.monotonic() + SECONDS)


def test_passages_and_rows_behind_the_window_are_not_asked_of_a_service(engine, server):
    assert engine.outbox.wait(SECONDS)
    assert asked(engine, ask(window=(100, 200)), ask(PassageKind.OF_MEMORY)) == [[[]], [[]]]
    assert server.sent("/search") == []
    told = engine.capabilities
    assert not told.exact and not told.window and not told.reach and told.elsewhere


def test_one_search_is_made_for_both_kinds_and_says_where_it_was_cut_off(engine, server):
    engine.house.add(Row(QUESTION), Row(QUESTION, 1), Row(QUESTION, kind=EPISODE))
    assert engine.outbox.wait(SECONDS)
    server.results = [{"id": ref, "score": score} for ref, score in (("ep:1", 0.9), ("mem:2", 0.8), ("mem:1", 0.1))]
    (memories,), (episodes,) = asked(engine, ask(floor=0.2, k=3), ask(EPISODE, floor=0.2, k=3))
    assert memories == [(2, 0.8)] and episodes == [(1, 0.9)] and memories.more
    assert len(server.sent("/search")) == 1
    ((memories,),) = asked(engine, ask(k=4))
    assert [hit.id for hit in memories] == [2, 1] and not memories.more


def test_a_service_is_not_asked_where_too_much_is_news_to_it(engine, server, monkeypatch):
    assert engine.outbox.wait(SECONDS)
    server.faults["/index"] = "broken"
    monkeypatch.setattr(remote, "MOST_WAITING", 2)
    engine.house.add(*(Row(QUESTION, n) for n in range(3)))
    assert not engine.outbox.wait(SECONDS)
    with pytest.raises(NotReady, match="yet to hear of more than 2 rows .*HTTP 500"):
        asked(engine, ask())
    assert server.sent("/search") == []
    monkeypatch.setattr(remote, "MOST_WAITING", 3)
    ((hits,),) = asked(engine, ask())
    assert [hit.id for hit in hits] == [3, 2, 1] or sorted(hit.id for hit in hits) == [1, 2, 3]


def test_a_service_that_is_being_sent_everything_is_not_asked(engine, server):
    assert engine.outbox.wait(SECONDS)
    server.faults["/index"] = server.faults["/purge"] = "broken"
    engine.house.add(Row(QUESTION))
    engine.outbox.send_everything()
    with pytest.raises(NotReady, match="still being sent"):
        asked(engine, ask())


def test_a_service_that_finds_nothing_of_its_own_is_sent_everything_once(engine, server):
    engine.house.add(Row(QUESTION), Row(QUESTION, 1))
    assert engine.outbox.wait(SECONDS) and len(server.held["cpersona:a"]) == 2
    telling = engine.outbox._receiver
    telling.check()  # it finds them
    server.held.clear()
    with pytest.raises(Undelivered) as lost:
        telling.check()
    assert lost.value.lost
    telling.check()
    server.faults["/search"] = "broken"
    telling.check()
