"""Vectors searched by Qdrant's engine in a folder, for real: its answers are those of the plain scan.

Contract: qdrant.authority, qdrant.exact, qdrant.filters, qdrant.embedded, qdrant.collections, outbox.anew.
"""

import contextlib
import os
import shutil
import signal
import stat
import time

import numpy as np
import pytest
from qdrant_kit import QdrantHouse, pool, rows
from vector_kit import Row, created, unit

from cpersona_daemon.model.changes import Hidden, Purged
from cpersona_daemon.model.kinds import EPISODE, MEMORY, PassageKind
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage import hidden
from cpersona_daemon.storage.vectors import reader, scan_order, with_vectors
from cpersona_daemon.vectors import plain
from cpersona_daemon.vectors.backend import Ask, NotReady, QueryVectors, Window
from cpersona_daemon.vectors.qdrant import engine as module
from cpersona_daemon.vectors.qdrant.client import Failed, Point, Search
from cpersona_daemon.vectors.qdrant.embedded import Embedded
from cpersona_daemon.vectors.qdrant.hosted import Hosted

pytest.importorskip("qdrant_edge")

QUESTIONS = 200
WIDTH = 16
KINDS = (MEMORY, EPISODE, *PassageKind)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A store that no test changes."""
    rng = np.random.default_rng(5)
    house = QdrantHouse(tmp_path_factory.mktemp("qdrant"))
    vectors = pool(rng, 40, WIDTH)
    for kind in (MEMORY, EPISODE):
        ids = house.add(
            *rows(360, rng, vectors, kind), Row(unit(np.ones(7)), 5, kind=kind), Row(vectors[0], 9, kind=kind)
        )
        for row_id in ids[::4]:
            house.add_passages(kind, row_id, *(vectors[int(i)] for i in rng.integers(len(vectors), size=3)))
    house.level()
    yield house
    house.stop()


def scopes(rng):
    pick = lambda *of: of[int(rng.integers(len(of)))]  # noqa: E731
    since, until = sorted(created(int(s)) for s in rng.integers(120, size=2))
    return Scope(
        pick("a", "a", "a", "b", "b", "nobody"),
        project_id=pick(None, None, "", "p", "unknown"),
        channel=pick("", "", "c"),
        source_id=pick("", "", "", "me", "git:", "git:x/", "git:x/1", "gi"),
        as_of=pick("", "", created(80)),
        **({"since": since, "until": until} if rng.integers(3) == 0 else {}),
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_two_hundred_questions_of_a_kind_are_answered_as_by_the_plain_scan(filled, kind):
    rng = np.random.default_rng(len(str(kind)) + (kind.rows == MEMORY))
    answered = 0
    for _ in range(QUESTIONS):
        start = int(rng.choice([0, 0, 0, 5, 40]))
        window = Window(start, start + int(rng.choice([0, 1, 10, 60, 10_000])))
        queries = [unit(v) for v in rng.normal(size=(1 + int(rng.integers(2)), WIDTH))]
        floor, k, model = float(rng.choice([-2.0, 0.0, 0.3])), int(rng.choice([1, 5, 100])), str(rng.choice(["m", ""]))
        found, expected = filled.ask(queries, kind, scopes(rng), window, floor, k, model)
        assert found == expected
        answered += any(expected)
    assert answered > QUESTIONS // 6


def test_a_window_is_a_filter_so_that_nothing_outside_of_it_is_proposed(filled):
    scope, window = Scope("a"), Window(5, 12)
    with reader(filled.path) as conn:
        order = scan_order(conn, MEMORY, scope)
        having = with_vectors(conn, MEMORY, order)
        ask = Ask(QueryVectors.one(np.eye(WIDTH, dtype=np.float32)[0], "m"), MEMORY, scope, window, -2.0, 50)
        asked = filled.engine._prepared(conn, ask)
    (proposed,) = filled.engine._proposed(asked, list(ask.queries.vectors), 1000, time.monotonic() + 30)
    inside = {put.id for put in having[5:12] if put.vector.size == WIDTH and put.model in ("m", "")}
    assert {row_id for row_id, _ in proposed} == inside != set()


def test_the_mean_of_a_scope_is_that_of_the_plain_scan(filled):
    for scope in (Scope("a"), Scope("b", project_id="p"), Scope("nobody")):
        for window, model in ((10_000, "m"), (50, "m"), (10_000, "")):
            mine = filled.engine.background(scope, window, WIDTH, model, 32)
            with reader(filled.path) as conn:
                plainly = plain.background(conn, scope, window, WIDTH, model, 32)
            assert (mine is None) == (plainly is None)
            if plainly is not None:
                assert mine[:2] == plainly[:2] and np.array_equal(mine.mean, plainly.mean)


def test_collections_are_named_after_the_store_the_kind_and_the_width(filled):
    names = filled.client.collections()
    assert all(name.startswith("cpersona-") for name in names)
    assert {name.split("-")[2] for name in names} == {"mem", "ep", "state"}
    assert sum("-mem-16-" in name for name in names) == 3 and sum("-mem-7-" in name for name in names) == 1
    assert sum("-passages-16-" in name for name in names) == 2
    assert stat.S_IMODE(os.stat(filled.folder).st_mode) == 0o700


# -- what changes


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr("cpersona_daemon.vectors.drainer.LONGEST_PAUSE_SECONDS", 0.05)


@pytest.fixture
def house(tmp_path):
    house = QdrantHouse(tmp_path)
    yield house
    house.stop()


def test_what_the_engine_has_not_heard_of_yet_is_found_and_what_is_gone_is_not(house):
    vectors = pool(np.random.default_rng(1), 6, WIDTH)
    ids = house.add(*(Row(vector, i) for i, vector in enumerate(vectors[:4])))
    house.level()
    house.engine.leave()  # nothing is brought there any more; the list grows
    (new,) = house.add(Row(vectors[4], 9))
    house.delete((MEMORY, ids[0]))
    house.update((MEMORY, ids[1]), vectors[5])
    for query in vectors:
        found, expected = house.ask([query], MEMORY, Scope("a"))
        assert found == expected
    assert new in [hit.id for hit in found[0]] and ids[0] not in [hit.id for hit in found[0]]


def test_more_rows_with_one_score_than_are_asked_for_go_by_their_position(house):
    (vector,) = pool(np.random.default_rng(2), 1, WIDTH)
    house.add(*(Row(vector, i % 7) for i in range(120)))
    house.level()
    found, expected = house.ask([vector], MEMORY, Scope("a"), k=3)
    assert found == expected


def test_hidden_rows_are_not_found_and_those_of_an_erased_agent_are_taken_away(house):
    vectors = pool(np.random.default_rng(3), 8, WIDTH)
    house.add(*(Row(vector, i, agent="ab"[i % 2]) for i, vector in enumerate(vectors)))
    house.level()

    def hide(tx):
        gone = hidden.hide_agent(tx, "memories", "a")
        tx.changes += [Hidden(MEMORY, np.array(gone, np.int64)), Purged("a")]

    house.db.write_now(hide)
    house.level()
    found, expected = house.ask([vectors[0]], MEMORY, Scope("a"))
    assert found == expected == [[]]
    (name,) = [name for name in house.client.collections() if "-mem-" in name]
    assert house.client.count(name) == 4


def test_a_row_of_another_model_leaves_the_collection_of_the_former_one(house):
    one, other = pool(np.random.default_rng(4), 2, WIDTH)
    (row_id,) = house.add(Row(one))
    house.level()
    house.update((MEMORY, row_id), other, model="n")
    house.level()
    assert sorted(house.client.count(name) for name in house.client.collections() if "-mem-" in name) == [0, 1]
    assert house.ask([other], MEMORY, Scope("a"), model="n")[0] == [[(row_id, pytest.approx(1.0))]]


def test_too_many_changes_that_wait_are_said(house, monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITING", 3)
    vectors = pool(np.random.default_rng(5), 5, WIDTH)
    house.add(Row(vectors[0]))
    house.level()
    house.engine.leave()
    house.add(*(Row(vector) for vector in vectors))
    with pytest.raises(NotReady, match="not heard of 5 changes"):
        house.ask([vectors[0]], MEMORY, Scope("a"))


# -- what is there of another time


def filled_house(tmp_path, count=12):
    house = QdrantHouse(tmp_path)
    house.vectors = pool(np.random.default_rng(6), count, WIDTH)
    house.add(*(Row(vector, i) for i, vector in enumerate(house.vectors)))
    house.level()
    return house


def answers(house):
    for query in house.vectors:
        found, expected = house.ask([query], MEMORY, Scope("a"), k=50)
        assert found == expected
    return len(expected[0])


def collection(house):
    (name,) = [name for name in house.client.collections() if "-mem-" in name]
    return name


def test_a_restart_finds_what_was_left_and_sends_nothing_again(tmp_path):
    house = filled_house(tmp_path)
    house.restart()
    house.level()
    assert house.engine.outbox._done == 0 and answers(house) == 12
    house.stop()


def _garbage(house, other, name):
    for path, _, files in os.walk(os.path.join(house.folder, name)):
        for file in files:
            with open(os.path.join(path, file), "wb") as out:
                out.write(b"\x00garbage")


def _foreign(house, other, name):
    state = f"{name.partition('-mem-')[0]}-state"
    other.set_payload(state, 1, other.payload(state, 1) | {"filling": "another"})


HARMS = {
    "removed": lambda house, other, name: shutil.rmtree(os.path.join(house.folder, name)),
    "smaller": lambda house, other, name: other.delete(name, [3, 4]),
    "garbage": _garbage,
    "foreign": _foreign,
    "larger": lambda house, other, name: other.upsert(name, [point(house.vectors[0], 99)]),
}


def test_a_folder_that_is_not_what_was_left_there_is_filled_anew(tmp_path):
    house = filled_house(tmp_path)
    for harm in HARMS.values():
        name = collection(house)
        house.stop()
        other = Embedded(house.folder)
        harm(house, other, name)
        other.close()
        house.start()
        while not house.engine.outbox.wait(30.0):
            pass
        assert answers(house) == 12 and house.client.count(collection(house)) == 12
        assert house.db.read_now(house.engine.outbox.status)["delivered"] >= 12
    house.stop()


def point(vector, row_id):
    axes = {"agent": "a", "project": "", "channel": "", "source": [""], "created": 0, "row": row_id}
    return Point(row_id, vector, axes)


def test_a_collection_that_goes_while_it_is_used_is_filled_anew(tmp_path):
    house = filled_house(tmp_path)
    house.client.drop(collection(house))
    house.engine.outbox.doubt()
    while not house.engine.outbox.wait(30.0) or house.engine.outbox.problem:
        pass
    assert answers(house) == 12
    house.stop()


def test_two_databases_share_no_collection(tmp_path):
    one_folder, other_folder = tmp_path / "one", tmp_path / "other"
    one_folder.mkdir(), other_folder.mkdir()
    shared = str(tmp_path / "shared")
    one = QdrantHouse(one_folder, lambda: Embedded(shared))
    one.add(Row(pool(np.random.default_rng(7), 1, WIDTH)[0]))
    one.level()
    one.stop()
    other = QdrantHouse(other_folder, lambda: Embedded(shared))
    other.add(Row(pool(np.random.default_rng(8), 1, WIDTH)[0]))
    other.level()
    names = [name for name in other.client.collections() if "-mem-" in name]
    assert len(names) == 2 and all(other.client.count(name) == 1 for name in names)
    other.stop()


def test_a_copy_of_a_database_that_is_at_work_is_told_from_it(tmp_path):
    house = filled_house(tmp_path)
    house.stop()
    house.owner = "another place"
    house.start()
    assert not house.engine.outbox.wait(30.0)
    assert "same identity" in house.engine.outbox.problem
    house.stop()


def test_a_folder_in_use_by_another_process_is_said(tmp_path):
    house = filled_house(tmp_path)
    name = collection(house)
    other = Embedded(house.folder)
    with pytest.raises(Failed, match="in use by another process"):
        other.count(name)
    other.close()
    house.stop()


def test_a_process_of_the_engine_that_was_killed_is_started_again_with_what_it_had(tmp_path):
    hosted = Hosted(str(tmp_path / "q"))
    hosted.create("c", WIDTH)
    hosted.upsert("c", [point(pool(np.random.default_rng(1), 1, WIDTH)[0], 5)])
    os.kill(hosted.pid, signal.SIGKILL)
    with contextlib.suppress(Failed):  # the call that finds it gone
        hosted.count("c")
    assert hosted.count("c") == 1
    pid = hosted.pid
    hosted.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(Failed, match="closed"):
        hosted.count("c")


def test_an_answer_that_comes_too_late_is_no_answer_to_the_next_call(tmp_path):
    hosted = Hosted(str(tmp_path / "q"))
    with pytest.raises(Failed, match="in time"):  # it has not even begun
        hosted.search("c", [Search(np.ones(WIDTH, np.float32), {"must": []}, 5, 0.0, True)], time.monotonic() + 0.01)
    assert hosted.collections() == []
    hosted.create("c", WIDTH)
    assert hosted.count("c") == 0 and hosted.collections() == ["c"]
    hosted.close()
