"""What somebody does to index files that a store has open: an answer may be slow, none is wrong, the process lives.

Contract: files.damage, vectors.exact.
"""

import os

import numpy as np
import pytest
from vector_kit import House, Row, unit

from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.vectors import plain
from cpersona_daemon.vectors.local import files, held, names
from cpersona_daemon.vectors.local.topk import float32_scan

RNG = np.random.default_rng(8)
WIDTH, COUNT = 200, 300
BASE = unit(RNG.normal(size=WIDTH))
QUERIES = [unit(BASE + 0.05 * RNG.normal(size=WIDTH)) for _ in range(2)]


def flipped(path):
    """Change a byte of every row."""
    data = np.fromfile(path, np.uint8)
    data[files.MATRIX_HEADER + 7 :: 64] ^= 0x41
    data.tofile(path)


DAMAGES = {
    "empty": lambda path: os.truncate(path, 0),
    "without rows": lambda path: os.truncate(path, files.MATRIX_HEADER),
    "cut short": lambda path: os.truncate(path, os.stat(path).st_size // 2),
    "flipped bytes": flipped,
    "zeros": lambda path: (size := os.stat(path).st_size, os.truncate(path, 0), os.truncate(path, size)),
}


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    house.add(*some(COUNT), *some(10, kind=EPISODE))
    yield house
    house.stop()


def some(count, **fixed):
    """Rows so alike that codes of eight bits cannot tell them apart: each search reads many as float32."""
    return [Row(unit(BASE + 0.05 * RNG.normal(size=WIDTH)), int(RNG.integers(0, 500)), **fixed) for _ in range(count)]


def by_search(house):
    for query in QUERIES:
        for kind in (MEMORY, EPISODE):
            house.check(query, kind=kind, k=20)
            house.check(query, kind=kind, start=3, stop=100, k=5)


def by_cosines(house):
    ids = [row_id for kind, row_id in house.rows if kind == MEMORY][::7]
    with house.db_reader() as conn:
        expected = plain.cosines(conn, QUERIES[0], [("mem", row_id) for row_id in ids], "m")
    assert house.store.cosines(QUERIES[0], [("mem", row_id) for row_id in ids], "m") == expected


def by_rows(house):
    ids = [row_id for kind, row_id in house.rows if kind == MEMORY][::7]
    with house.db_reader() as conn:
        expected, block = plain.rows_of(conn, [("mem", row_id) for row_id in ids], WIDTH, "m")
    found, rows = house.store.rows_of([("mem", row_id) for row_id in ids], WIDTH, "m")
    assert found == expected and np.array_equal(rows, block)


def by_background(house):
    with house.db_reader() as conn:
        count, total, mean = plain.background(conn, Scope("a"), 10_000, WIDTH, "m", 64)
    found = house.store.background(Scope("a"), 10_000, WIDTH, "m", 64)
    assert found[:2] == (count, total) and np.array_equal(found[2], mean)


QUESTIONS = {"search": by_search, "cosines": by_cosines, "rows": by_rows, "background": by_background}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("form", [names.MATRIX, names.SKETCHES])
@pytest.mark.parametrize("origin", ["checked before", "opened anew"])
def test_no_answer_is_wrong_after_damage_to_files_in_use(house, origin, form, question):
    for damage in DAMAGES.values():
        if origin == "opened anew":
            house.restart()
        else:
            QUESTIONS[question](house)
        damage(house.places.memory_vectors + form)
        QUESTIONS[question](house)
        house.add(*some(2))
        QUESTIONS[question](house)
        house.store.wait()
    for ask in QUESTIONS.values():
        ask(house)
    assert house.store.status()[MEMORY]["state"] == "ready"
    house.restart()
    by_search(house)


def another(make):
    """Return what gives a path to something new, as `rm` and then this would."""

    def put(path, older):
        os.unlink(path)
        make(path, older)

    return put


def in_place(path, data):
    with open(path, "wb") as file:  # as `cp` does: the same file, other bytes
        file.write(data)


REPLACEMENTS = {
    "nothing": another(lambda path, older: None),
    "a directory": another(lambda path, older: os.mkdir(path)),
    "a link to nowhere": another(lambda path, older: os.symlink(path + "-nowhere", path)),
    "a named pipe": another(lambda path, older: os.mkfifo(path)),
    "another file of random bytes": another(lambda path, older: in_place(path, RNG.bytes(50_000))),
    "another file, an older copy": another(in_place),
    "random bytes": lambda path, older: in_place(path, RNG.bytes(50_000)),
    "an older copy": in_place,
}


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_no_answer_is_wrong_after_a_file_in_use_was_replaced(house, replacement):
    for suffix in names.SUFFIXES:
        path = house.places.memory_vectors + suffix
        with open(path, "rb") as file:
            older = file.read()
        house.add(*some(5))
        house.delete((MEMORY, min(row_id for kind, row_id in house.rows if kind == MEMORY)))
        REPLACEMENTS[replacement](path, older)
        by_search(house)
        house.add(*some(2))
        by_search(house)
        house.store.wait()
        house.restart()
        by_search(house)
        assert house.store.status()[MEMORY]["state"] == "ready" and house.store.differing(MEMORY) == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_damaged_rows_are_told_and_the_index_is_built_anew(house, question, caplog):
    DAMAGES["flipped bytes"](house.places.memory_vectors)
    QUESTIONS[question](house)
    house.store.wait()
    assert house.store.status()[MEMORY]["origin"] == "rebuilt" and "damaged rows" in caplog.text


def test_no_index_file_is_mapped(house):
    for question in QUESTIONS.values():
        question(house)
    with open("/proc/self/maps") as maps:
        assert house.places.memory_vectors not in maps.read()


@pytest.mark.parametrize("form", [names.MATRIX, names.SKETCHES])
def test_the_scan_for_machines_without_the_quick_one_is_never_wrong_either(house, form):
    house.store.engine._first_pass = float32_scan
    house.restart()
    house.store.engine._first_pass = float32_scan
    DAMAGES["cut short"](house.places.memory_vectors + form)
    by_search(house)


def test_more_codes_than_memory_may_take_give_the_same_answers(house, monkeypatch):
    monkeypatch.setattr(held, "SEGMENT_BYTES", 100 * 256)
    monkeypatch.setattr(held, "HELD_BYTES", 300 * 256)
    house.restart()
    for _ in range(2):
        by_search(house)
    index = house.store.engine._parts["mem"].index
    assert 0 < house.store.status()["mem"]["memory_bytes"] <= 300 * 256
    assert max(index.view.sketches._segments) == COUNT // 100 - 1, "the newest rows are the ones that are held"
    house.add(*some(150))
    by_search(house)
    DAMAGES["flipped bytes"](house.places.memory_vectors + names.SKETCHES)
    by_search(house)
    house.store.wait()
    by_search(house)


def test_rows_stored_while_their_segment_is_held_are_found_without_reading_it_again(house, monkeypatch):
    by_search(house)
    house.add(*some(5))
    DAMAGES["empty"](house.places.memory_vectors + names.SKETCHES)
    by_search(house)
    assert house.store.status()[MEMORY]["origin"] != "rebuilt"
