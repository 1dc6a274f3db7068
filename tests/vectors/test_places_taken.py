"""Things that are no index file where one belongs: there is an index all the same, nothing is lost, and it is said.

Contract: files.damage.
"""

import errno
import os
import socket
import time

import numpy as np
import pytest
from vector_kit import House, Row, unit

from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.vectors.local import files, part
from cpersona_daemon.vectors.local.names import FRESH, MATRIX, ROWS, SKETCHES

RNG = np.random.default_rng(5)
QUERY = unit(RNG.normal(size=20))
PLACES = [MATRIX, SKETCHES, ROWS, FRESH + MATRIX, FRESH + SKETCHES, FRESH + ROWS, ROWS + FRESH]


def some(count, **fixed):
    return [Row(unit(RNG.normal(size=20)), second, **fixed) for second in range(count)]


def directory(path):
    os.mkdir(path)
    with open(path + "/kept", "w") as file:
        file.write("somebody's")


def link(path):
    with open(path + "-target", "w") as file:
        file.write("somebody's")
    os.symlink(path + "-target", path)


def dangling(path):
    os.symlink(path + "-nowhere", path)


def a_socket(path):
    made = socket.socket(socket.AF_UNIX)
    made.bind(path)
    made.close()


THINGS = {
    "a directory": directory,
    "a link": link,
    "a link to nowhere": dangling,
    "a named pipe": os.mkfifo,
    "a socket": a_socket,
}


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    yield house
    house.stop()


def take(path, thing):
    if os.path.lexists(path):
        os.unlink(path)
    THINGS[thing](path)


def check(house):
    for kind in (MEMORY, EPISODE):
        house.check(QUERY, kind=kind, k=7)
        assert house.store.status()[kind]["state"] == "ready"


@pytest.mark.parametrize("thing", THINGS)
def test_what_stands_in_the_place_of_a_file_is_moved_aside_at_the_start(house, thing):
    house.add(*some(40), *some(3, kind=EPISODE))
    for place in PLACES:
        house.stop()
        path = house.places.memory_vectors + place
        take(path, thing)
        house.start()
        check(house)
        house.store.rebuild()
        house.add(*some(1))
        check(house)
        status = house.store.status()[MEMORY]
        assert "reason" not in status
        if os.path.lexists(path + ".aside-1"):
            assert path + ".aside-1" in status["moved_aside"]
        assert not os.path.exists(path) or os.path.isfile(path)
        if thing in ("a directory", "a link"):
            with open(path + (".aside-1/kept" if thing == "a directory" else "-target")) as file:
                assert file.read() == "somebody's"
        house.restart()
        assert house.store.status()[MEMORY]["origin"] == "file"


@pytest.mark.parametrize("place", [MATRIX, SKETCHES, ROWS, FRESH + ROWS])
def test_a_directory_that_comes_while_the_store_is_empty_does_not_keep_the_first_vectors_out(house, place):
    directory(house.places.memory_vectors + place)
    house.add(*some(3))
    house.store.wait()
    check(house)
    house.restart()
    check(house)
    assert house.store.status()[MEMORY]["origin"] == "file"


@pytest.mark.parametrize("place", [MATRIX, SKETCHES, ROWS])
def test_an_index_whose_place_cannot_be_cleared_is_used_and_the_way_out_is_said(house, place, monkeypatch):
    house.add(*some(40))
    house.stop()
    path = house.places.memory_vectors + place
    take(path, "a directory")

    def held(path):
        if os.path.isdir(path):
            raise OSError(16, "Device or resource busy", path)

    with monkeypatch.context() as patched:
        patched.setattr(part, "make_way", held)
        house.start()
        check(house)
        house.add(*some(5))
        check(house)
        said = house.store.status()[MEMORY]["reason"]
        assert path in said and "move it away" in said and "cpersona health --fix" in said
    house.store.rebuild()  # which is what that command does
    check(house)
    assert "reason" not in house.store.status()[MEMORY]
    house.restart()
    assert house.store.status()[MEMORY]["origin"] == "file"


def test_where_the_index_cannot_be_built_it_is_said_and_tried_again_without_a_commit(house, monkeypatch):
    house.add(*some(40))
    house.stop()
    os.unlink(house.places.memory_vectors)
    directory(house.places.memory_vectors + FRESH)
    now = [time.monotonic()]
    with monkeypatch.context() as patched:
        patched.setattr(part, "make_way", lambda path: None)
        house.start()
        house.store.engine._monotonic = lambda: now[0]
        house.check(QUERY)
        status = house.store.status()[MEMORY]
        assert status["state"] == "scanning" and house.places.memory_vectors + FRESH in status["reason"]
    now[0] += 31
    house.check(QUERY)
    house.store.wait()
    check(house)


def test_a_reason_goes_with_what_it_was_the_reason_of(house):
    house.add(*some(10))
    contents = house.files()
    house.add(*some(1))
    house.add(*some(1))
    house.stop()
    for path, data in contents.items():
        with open(path, "wb") as file:
            file.write(data)
    house.start()
    status = house.store.status()[MEMORY]
    assert status["state"] == "ready" and "reason" not in status and "stale" in status["rebuilt_because"]


def test_a_file_with_a_second_name_is_not_written_to(house):
    house.add(*some(10))
    house.stop()
    path = house.places.memory_vectors
    os.link(path, path + "-snapshot")
    with open(path, "rb") as file:
        before = file.read()
    house.start()
    house.add(*some(3))
    check(house)
    with open(path + "-snapshot", "rb") as file:
        assert file.read() == before


def test_files_that_cannot_be_written_to_are_read_as_they_are(house, monkeypatch):
    house.add(*some(10))
    house.stop()
    really_opened = files.opened

    def read_only(path, flags=os.O_RDONLY):
        if flags & os.O_RDWR:
            raise OSError(errno.EROFS, "Read-only file system", path)
        return really_opened(path, flags)

    monkeypatch.setattr(files, "opened", read_only)
    house.start()
    assert house.store.status()[MEMORY]["origin"] == "file"
    check(house)
