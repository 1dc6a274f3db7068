"""A server of Qdrant, as its client speaks to one: what goes wrong there, one thing at a time.

The server is one of the tests.

Contract: qdrant.faults, qdrant.authority, qdrant.extra, services.keys.
"""

import dataclasses
import logging
import random
import time

import numpy as np
import pytest
from qdrant_kit import SECONDS, QdrantHouse, pool, rows
from qdrant_server import KEY, QdrantServer
from vector_kit import Row

from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.services.key import Key
from cpersona_daemon.vectors.backend import Ask, NoAnswer, NotReady, QueryVectors, Window
from cpersona_daemon.vectors.qdrant.client import Served

pytest.importorskip("qdrant_client")

WIDTH = 12
RNG = np.random.default_rng(11)
VECTORS = pool(RNG, 30, WIDTH)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr("cpersona_daemon.vectors.drainer.LONGEST_PAUSE_SECONDS", 0.05)


@pytest.fixture
def server():
    server = QdrantServer()
    yield server
    server.close()


@pytest.fixture
def house(tmp_path, server):
    key = Key("CPERSONA_QDRANT_API_KEY", KEY)
    house = QdrantHouse(tmp_path, lambda: Served(server.url, f"127.0.0.1:{server.port}", key))
    house.key = key
    yield house
    server.fault = None
    server.gate.set()
    house.stop()


def filled(house):
    house.add(*rows(60, np.random.default_rng(4), VECTORS, MEMORY), *rows(20, RNG, VECTORS, EPISODE))
    house.level()


def equal(house, questions=3):
    for query in VECTORS[:questions]:
        for kind in (MEMORY, EPISODE):
            for window in (Window(0, 1000), Window(0, 7), Window(7, 30)):
                found, expected = house.ask([query], kind, Scope("a", project_id="p"), window, floor=-1.0, k=6)
                assert found == expected


def asked(house, seconds=SECONDS):
    ask = Ask(QueryVectors.one(VECTORS[0], "m"), MEMORY, Scope("a"), Window(0, 1000), -1.0, 5)
    return house.engine.ask([ask], "", time.monotonic() + seconds)


def caught_up(house):
    while not house.engine.outbox.wait(SECONDS):
        pass


def test_a_server_answers_as_the_plain_scan_does_and_has_its_indexes(house, server):
    server.key = KEY
    filled(house)
    equal(house, 12)
    (memories,) = [c for name, c in server.collections.items() if "-mem-" in name and c["width"] == WIDTH][:1] or [None]
    assert memories["indexes"] == ["agent", "project", "channel", "source", "created", "row"]


@pytest.mark.parametrize(
    ("fault", "said"), [("broken", "HTTP 500"), ("nonsense", "failed"), ("dead", "failed|reached")]
)
def test_a_server_that_fails_has_no_answer_loses_nothing_and_catches_up(house, server, fault, said):
    filled(house)
    server.fault = fault
    with pytest.raises(NoAnswer, match=said):
        asked(house)
    house.add(*(Row(vector) for vector in VECTORS[:3]))  # is acknowledged all the same
    assert not house.engine.outbox.wait(SECONDS)
    told = house.db.read_now(house.engine.outbox.status)
    assert told["pending"] == 3 and told["problem"] and told["failures"] >= 1
    server.fault = None
    caught_up(house)
    equal(house)
    assert house.db.read_now(house.engine.outbox.status)["pending"] == 0


def test_a_server_that_is_down_is_said_to_be(tmp_path):
    house = QdrantHouse(tmp_path, lambda: Served("http://127.0.0.1:9", "127.0.0.1:9", Key("K")))
    house.add(Row(VECTORS[0], agent="a"))
    assert not house.engine.outbox.wait(SECONDS)
    assert "cannot be reached" in house.engine.outbox.problem
    with pytest.raises(NotReady, match="being sent everything.*cannot be reached"):
        asked(house)
    assert {status["state"] for status in house.engine.status().values()} == {"scanning"}
    house.stop()


def test_a_slow_server_has_no_answer_at_the_deadline(house, server, monkeypatch):
    monkeypatch.setattr("cpersona_daemon.vectors.qdrant.client.TIMEOUT_SECONDS", 1)
    filled(house)
    house.client.close()  # the next call connects with the shorter time-out
    server.fault = "slow"
    begun = time.monotonic()
    with pytest.raises(NoAnswer, match="in time"):
        asked(house, 1.0)
    assert time.monotonic() - begun < 4
    server.fault = None
    server.gate.set()
    equal(house)


def test_a_wrong_key_is_said_and_never_shown_and_a_renewed_one_is_taken(house, server, caplog):
    caplog.set_level(logging.DEBUG, "cpersona_daemon")
    server.key = "another"
    house.add(Row(VECTORS[0]))
    assert not house.engine.outbox.wait(SECONDS)
    problem = house.engine.outbox.problem
    assert "does not take the key" in problem and "CPERSONA_QDRANT_API_KEY" in problem
    assert KEY not in problem + caplog.text + str(house.db.read_now(house.engine.outbox.status))
    server.key = KEY
    caught_up(house)
    assert asked(house)


@pytest.mark.parametrize("harm", ["missing", "smaller"])
def test_a_collection_that_is_missing_or_smaller_is_noticed_and_filled_anew(house, server, harm):
    filled(house)
    name = max((n for n in server.collections if "-mem-" in n), key=lambda n: len(server.collections[n]["points"]))
    if harm == "missing":
        del server.collections[name]
        with pytest.raises(NoAnswer, match="has not the collection"):
            asked(house)
    else:
        server.collections[name]["points"].popitem()
        house.engine.outbox.doubt()  # as it does by itself now and then
    caught_up(house)
    equal(house)


def test_twenty_outages_at_random_moments_lose_nothing_and_end_with_both_equal(house, server):
    filled(house)
    moments = random.Random(3)
    for _ in range(20):
        server.fault = moments.choice(["dead", "broken", None])
        ids = house.add(*(Row(moments.choice(VECTORS), moments.randrange(500)) for _ in range(4)))
        house.delete((MEMORY, ids[0]))
        house.update((MEMORY, ids[1]), moments.choice(VECTORS), model=moments.choice("mn"))
        house.engine.outbox.wait(moments.random() * 0.05)
    server.fault = None
    caught_up(house)
    equal(house)
    there = {row for name, c in server.collections.items() if "-mem-" in name for row in c["points"]}
    assert there == {row for kind, row in house.rows if kind == MEMORY}
    assert house.db.read_now(house.engine.outbox.status)["refused"] == 0


def test_a_collection_of_another_width_in_the_place_of_ours_is_filled_anew(house, server):
    filled(house)
    name = max((n for n in server.collections if "-mem-" in n), key=lambda n: len(server.collections[n]["points"]))
    server.collections[name] = {"width": 5, "points": {}, "indexes": []}
    house.engine.outbox.doubt()
    caught_up(house)
    assert server.collections[name]["width"] == WIDTH
    equal(house)


def test_rows_that_a_collection_of_another_width_refuses_are_not_lost(house, server):
    filled(house)
    name = max((n for n in server.collections if "-mem-" in n), key=lambda n: len(server.collections[n]["points"]))
    server.collections[name]["width"] = 5  # it is refused from now on, row by row
    house.add(Row(VECTORS[0]), Row(VECTORS[1]))
    caught_up(house)
    assert server.collections[name]["width"] == WIDTH
    equal(house)


def test_what_waits_is_brought_as_soon_as_a_question_is_answered_again(house, server, monkeypatch):
    filled(house)
    server.fault = "broken"
    house.engine.outbox._first_pause = 600.0
    monkeypatch.setattr("cpersona_daemon.vectors.drainer.LONGEST_PAUSE_SECONDS", 600.0)
    house.add(Row(VECTORS[0]))
    assert not house.engine.outbox.wait(SECONDS)
    server.fault = None
    assert asked(house) and house.engine.outbox.wait(SECONDS)


def test_a_question_of_a_width_that_no_row_has_finds_nothing(house, server):
    filled(house)
    before = len(server.asked)
    ask = Ask(QueryVectors.one(np.ones(5, np.float32), "m"), MEMORY, Scope("a"), Window(0, 1000), -1.0, 5)
    assert house.engine.ask([ask], "", time.monotonic() + SECONDS) == [[[]]] and len(server.asked) == before


def test_an_address_of_a_folder_that_is_not_whole_and_a_missing_extra_are_refused(monkeypatch):
    from cpersona_daemon.errors import SettingsConflict
    from cpersona_daemon.vectors import choice

    @dataclasses.dataclass
    class Settings:
        qdrant_url: str
        vector_search_mode: str = "qdrant"

    refused = {"": "needs CPERSONA_QDRANT_URL", "path:q": "from the root on", "http://me:pw@h": "holds a user name"}
    for url, said in refused.items():
        with pytest.raises(SettingsConflict, match=said) as raised:
            choice.check(Settings(url))
        assert "pw" not in str(raised.value)
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    for url in ("path:/q", "http://localhost:6333"):
        with pytest.raises(SettingsConflict, match=r"pip install 'cpersona-cli\[qdrant\]'"):
            choice.check(Settings(url))
