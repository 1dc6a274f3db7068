"""The files of the index: who may read them, when they are used again, and that no damage gives a wrong answer.

Contract: files.damage, files.private.
"""

import errno
import os
import stat
import threading
import time

import apsw
import numpy as np
import pytest
from vector_kit import House, Row, unit

from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.storage import vectors
from cpersona_daemon.vectors.local import files, index, journal, names
from cpersona_daemon.vectors.local.files import Unusable

RNG = np.random.default_rng(3)
POOL = [unit(v) for v in RNG.normal(size=(30, 20))]
QUERY = unit(RNG.normal(size=20))


def some(count, **fixed):
    return [Row(POOL[RNG.integers(30)], int(RNG.integers(0, 500)), **fixed) for _ in range(count)]


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    yield house
    house.stop()


def origin(house, kind=MEMORY):
    return house.store.status()[kind]["origin"]


def put_back(house, contents):
    for path in (house.places.memory_vectors, house.places.episode_vectors):
        for name in (path + suffix for suffix in names.SUFFIXES):
            if os.path.exists(name):
                os.unlink(name)
    for path, data in contents.items():
        with open(path, "wb") as file:
            file.write(data)


def check(house):
    for kind in (MEMORY, EPISODE):
        for stop in (5, 10_000):
            house.check(QUERY, kind=kind, stop=stop, k=40)


def test_files_are_closed_to_others_from_the_first_byte(house, monkeypatch):
    made, really_open = [], os.open

    def watched(path, flags, mode=0o777, **more):
        fd = really_open(path, flags, mode, **more)
        made.append((os.fspath(path), stat.S_IMODE(os.fstat(fd).st_mode)))
        return fd

    before = os.umask(0)
    try:
        monkeypatch.setattr(os, "open", watched)
        house.add(*some(5), *some(5, kind=EPISODE))
        house.store.rebuild()
    finally:
        os.umask(before)
    assert len(made) == 12 and {mode for _, mode in made} == {0o600}
    assert {stat.S_IMODE(os.stat(path).st_mode) for path in house.files()} == {0o600}


def test_a_file_restored_readable_by_others_is_closed_at_start(house):
    house.add(*some(5))
    house.stop()
    for path in house.files():
        os.chmod(path, 0o644)
    house.start()
    assert {stat.S_IMODE(os.stat(path).st_mode) for path in house.files()} == {0o600}


def test_a_store_without_vectors_has_no_files(house):
    house.restart()
    assert house.files() == {} and origin(house) == "empty"
    assert house.search(QUERY) == []


def test_a_clean_restart_uses_the_files(house):
    house.add(*some(300), *some(20, kind=EPISODE))
    house.update((MEMORY, 7), POOL[0])
    house.delete((MEMORY, 9), (MEMORY, 10))
    house.restart()
    assert origin(house) == origin(house, EPISODE) == "file"
    check(house)
    house.add(*some(10))
    house.restart()
    assert origin(house) == "file"
    check(house)


def test_a_kill_after_a_commit_leaves_files_that_are_used_again(house):
    for _ in range(20):
        house.add(*some(2))
    house.add(*some(1, kind=EPISODE))
    contents = house.files()
    house.stop()
    put_back(house, contents)
    house.start()
    assert origin(house) == origin(house, EPISODE) == "file"
    check(house)


def test_a_journal_of_many_commits_is_rewritten_as_one(house, monkeypatch):
    monkeypatch.setattr(index, "CHECKPOINT_BATCHES", 10)
    for _ in range(45):
        house.add(*some(1))
        if len(house.rows) > 20:
            house.delete(min(house.rows))
    assert house.store.engine._parts["mem"].index._stored.batches <= 11
    contents = house.files()
    check(house)
    house.stop()
    put_back(house, contents)
    house.start()
    assert origin(house) == "file"
    check(house)


def test_files_of_any_earlier_moment_are_noticed_as_stale(house):
    moments = []
    for _ in range(6):
        house.add(*some(3))
        house.update((MEMORY, 1), POOL[RNG.integers(30)])
        moments.append(house.files())
    house.add(*some(1, kind=EPISODE))
    for contents in moments:  # the last of them lies two commits back
        house.add(*some(1, kind=EPISODE))
        house.stop()
        put_back(house, contents)
        house.start()
        assert origin(house) == "rebuilt" and "stale" in house.store.status()[MEMORY]["rebuilt_because"]
        check(house)


def test_files_one_commit_behind_catch_up_with_what_that_commit_touched(house):
    house.add(*some(8), *some(4, kind=EPISODE))
    changes = (
        lambda: house.add(*some(3), *some(2, kind=EPISODE)),
        lambda: house.update((MEMORY, 2), POOL[5]),
        lambda: house.delete((MEMORY, 4), (EPISODE, 1)),
        lambda: house.update((MEMORY, 5), np.zeros(20, np.float32)),
        lambda: house.add(*some(2)),
    )
    for change in changes:
        contents = house.files()
        change()
        torn = house.files()
        for kept in (contents, {path: data[:-3] if path.endswith(".rows") else data for path, data in torn.items()}):
            house.stop()
            put_back(house, kept)
            house.start()
            assert origin(house) == "file"
            check(house)
            assert house.store.status()[MEMORY]["rows"] == sum(
                kind == MEMORY and bool(row.vector.any()) for (kind, _), row in house.rows.items()
            )


def test_a_matrix_and_a_journal_of_different_moments_are_noticed(house):
    house.add(*some(30))
    before = house.files()
    house.store.rebuild()
    after = house.files()
    house.stop()
    put_back(house, {path: (before if path.endswith(".rows") else after)[path] for path in after})
    house.start()
    assert origin(house) == "rebuilt"
    check(house)


def test_files_cut_anywhere_give_right_answers(house):
    for _ in range(8):
        house.add(*some(5))
    house.add(*some(3, kind=EPISODE))
    house.stop()
    contents = house.files()
    for path, data in contents.items():
        for length in {0, 1, 50, 100, 127, 128, 140, len(data) - 1, *RNG.integers(0, len(data), 6).tolist()}:
            put_back(house, contents | {path: data[:length]})
            house.start()
            check(house)
            house.stop()
    house.start()


def test_flipped_bytes_give_right_answers_and_a_fresh_index(house):
    for _ in range(6):
        house.add(*some(6))
    house.add(*some(3, kind=EPISODE))
    house.delete((MEMORY, 3))
    house.stop()
    contents = house.files()
    for path, data in contents.items():
        for place in {*range(0, 128, 16), *RNG.integers(0, len(data), 8).tolist()}:
            damaged = bytearray(data)
            damaged[place] ^= 1 << int(RNG.integers(8))
            put_back(house, contents | {path: bytes(damaged)})
            house.start()
            check(house)
            assert house.store.cosines(QUERY, list(house.rows), "m").keys() == house.rows.keys()
            house.stop()
    house.start()


@pytest.mark.parametrize(("form", "row_bytes"), [(names.MATRIX, 128), (names.SKETCHES, 64)])
def test_a_damaged_row_is_noticed_when_it_is_read_and_the_index_is_rebuilt(house, form, row_bytes):
    house.add(*some(40))
    house.stop()
    with open(house.places.memory_vectors + form, "r+b") as file:
        file.seek(files.MATRIX_HEADER + row_bytes * 11 + 5)
        file.write(b"\xff")
    house.start()
    assert origin(house) == "file"
    check(house)
    house.store.wait()
    assert origin(house) == "rebuilt" and house.store.status()[MEMORY]["state"] == "ready"
    check(house)


@pytest.mark.parametrize(("form", "page"), [(names.MATRIX, 3), (names.SKETCHES, 2)])
def test_zeroed_pages_after_a_power_loss_are_noticed(house, form, page):
    house.add(*some(200))
    house.stop()
    with open(house.places.memory_vectors + form, "r+b") as file:
        file.seek(4096 * page)
        file.write(bytes(4096))
    house.start()
    check(house)
    house.store.wait()
    check(house)


def test_an_index_built_before_the_first_commit_with_vectors_is_used_again(house):
    house.db.write_now(lambda tx: house._insert(tx, Row(POOL[0])) and tx.changes.clear())
    house.store.rebuild()
    assert house.store.status()[MEMORY]["rows"] == 1 and house.store.status()["mem"]["generation"] == 0
    house.restart()
    assert origin(house) == "file"


def test_the_index_of_another_database_is_not_used(tmp_path):
    (tmp_path / "one").mkdir(), (tmp_path / "two").mkdir()
    one, two = House(tmp_path / "one"), House(tmp_path / "two")
    for house in (one, two):
        house.add(*some(10))
        house.stop()
    put_back(two, {path.replace("/one/", "/two/"): data for path, data in one.files().items()})
    two.start()
    assert origin(two) == "rebuilt" and "another database" in two.store.status()[MEMORY]["rebuilt_because"]
    check(two)
    two.stop()


def test_a_database_that_went_another_way_to_the_same_generation_is_noticed(house):
    house.add(*some(10))
    house.stop()
    with open(house.path, "rb") as file:
        earlier = file.read()
    house.start()
    (row_id,) = house.add(Row(POOL[1], 501))
    house.stop()
    contents = house.files()
    with open(house.path, "wb") as file:
        file.write(earlier)
    house.start()
    del house.rows[MEMORY, row_id]
    house.add(Row(POOL[2], 501))
    house.stop()
    put_back(house, contents)
    house.start()
    assert origin(house) == "rebuilt"
    check(house)


@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize(
    ("here", "there"),
    [
        (lambda house: house.delete((MEMORY, 3)), lambda house: house.delete((MEMORY, 7))),
        (lambda house: house.update((MEMORY, 3), POOL[1]), lambda house: house.update((MEMORY, 7), POOL[2])),
        (lambda house: house.update((MEMORY, 5), POOL[1]), lambda house: house.update((MEMORY, 5), POOL[2])),
        (lambda house: house.delete((EPISODE, 1)), lambda house: house.delete((MEMORY, 3))),
    ],
)
def test_the_index_of_a_copy_that_went_another_way_is_not_used(house, here, there, behind):
    house.add(*some(12), *some(3, kind=EPISODE))
    house.stop()
    with open(house.path, "rb") as file:
        copied = file.read()
    common, rows = house.files(), dict(house.rows)
    house.start()
    here(house)
    house.stop()
    ours = house.files()
    with open(house.path, "wb") as file:
        file.write(copied)
    put_back(house, common)
    house.rows = rows
    house.start()
    assert origin(house) == origin(house, EPISODE) == "file"
    there(house)
    for _ in range(behind):
        house.update((MEMORY, 1), POOL[4])
    house.stop()
    put_back(house, ours)
    house.start()
    assert (
        origin(house) == origin(house, EPISODE) == "rebuilt"
        and "another copy" in house.store.status()[MEMORY]["rebuilt_because"]
    )
    check(house)
    assert house.store.status()[MEMORY]["rows"] == sum(kind == "mem" for kind, _ in house.rows)


def test_a_database_of_the_schema_before_stamps_gets_one_and_its_index_is_built_anew(house):
    house.add(*some(12))
    house.stop()
    conn = apsw.Connection(house.path)
    conn.execute(
        "DELETE FROM schema_migrations"
        " WHERE version = (SELECT version FROM schema_migrations WHERE name = 'stamped generations')"
    )
    conn.execute(
        "DELETE FROM meta WHERE key = 'vector_stamp'; UPDATE meta SET value = x'9192a36d656d01'"
        " WHERE key = 'vector_changes'"
    )
    conn.close()
    house.start()
    assert origin(house) == "rebuilt"
    check(house)
    house.delete((MEMORY, 2))
    house.restart()
    assert origin(house) == "file"
    check(house)


@pytest.mark.parametrize("noted", [None, b"", b"\xc1", b"\x91\x01", "text", 7])
def test_a_database_that_does_not_say_what_its_last_commit_changed_still_has_its_index(house, noted):
    house.add(*some(12))
    house.stop()
    conn = apsw.Connection(house.path)
    conn.execute("INSERT OR REPLACE INTO meta VALUES ('vector_changes', ?)", (noted,))
    conn.close()
    house.start()
    assert origin(house) == "file"
    house.update((MEMORY, 2), POOL[3])
    house.restart()
    assert origin(house) == "file"
    check(house)


def test_a_missing_commit_is_noticed(house):
    house.add(*some(10))
    house.db.on_commit = lambda changes, generation: None
    house.add(*some(1))
    house.db.on_commit = house.store.apply
    house.add(*some(1))
    house.store.wait()
    assert origin(house) == "rebuilt"
    check(house)


def test_an_index_that_cannot_be_written_is_replaced_by_plain_scans_until_it_can(house, monkeypatch):
    house.add(*some(10))

    def full(fd, data, offset):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        house.add(*some(5))
        house.store.wait()
        assert house.store.status()[MEMORY]["state"] == "scanning"
        check(house)
        assert len(house.search(QUERY, k=100)) == 15
    house.store.rebuild()
    assert house.store.status()[MEMORY]["state"] == "ready"
    check(house)


def test_after_many_deletes_the_files_shrink(house):
    ids = house.add(*some(2000))
    before = sum(map(len, house.files().values()))
    house.delete(*((MEMORY, row_id) for row_id in ids[:1500]))
    house.store.wait()
    assert sum(map(len, house.files().values())) < before / 2
    assert house.store.status()[MEMORY]["dead"] == 0
    check(house)
    house.delete(*list(house.rows))
    house.restart()
    assert house.files() == {}


def test_many_late_rows_are_put_in_order_by_a_rebuild(house, monkeypatch):
    monkeypatch.setattr(index, "REBUILD_MIN_LATE", 50)
    house.add(*(Row(POOL[second % 30], 10_000 - second) for second in range(400)))
    check(house)
    house.store.wait()
    assert house.store.status()[MEMORY]["late"] == 0
    check(house)


def test_commits_during_a_rebuild_are_not_lost(house, monkeypatch):
    house.add(*some(1200))
    halfway, go_on = threading.Event(), threading.Event()
    read = vectors.in_bulk
    reads = []

    def slow(*arguments):
        reads.append(1)
        if len(reads) == 2:
            halfway.set()
            go_on.wait(60)
        return read(*arguments)

    monkeypatch.setattr(vectors, "in_bulk", slow)
    rebuilding = threading.Thread(target=house.store.rebuild)
    rebuilding.start()
    assert halfway.wait(60)
    assert house.store.status()[MEMORY]["state"] == "rebuilding"
    house.add(*some(50))
    for row_id in (1, 600, 1199, 1210):
        house.update((MEMORY, row_id), POOL[4])
    house.delete((MEMORY, 2), (MEMORY, 700), (MEMORY, 1205))
    check(house)
    go_on.set()
    rebuilding.join()
    assert house.store.status()[MEMORY]["state"] == "ready"
    check(house)
    house.restart()
    assert origin(house) == "file"
    check(house)


def test_a_rebuild_asked_for_while_one_runs_loses_no_commit_between_the_two(house, monkeypatch):
    house.add(*some(1200))
    halfway, go_on = threading.Event(), threading.Event()
    read = vectors.in_bulk

    def slow(*arguments):
        halfway.set()
        go_on.wait(60)
        return read(*arguments)

    monkeypatch.setattr(vectors, "in_bulk", slow)
    first, *others = [threading.Thread(target=house.store.rebuild) for _ in range(3)]
    first.start()
    assert halfway.wait(60)
    house.update((MEMORY, 1), POOL[4])
    for other in others:
        other.start()
    while house.store.engine._worker._work_queue.qsize() < 2:
        time.sleep(0.001)
    go_on.set()
    first.join()
    check(house)
    house.update((MEMORY, 2), POOL[5])
    for other in others:
        other.join()
    house.store.wait()
    assert (house.store.status()[MEMORY]["state"], house.store.status()[MEMORY]["generation"]) == ("ready", 3)
    check(house)


def test_a_start_in_the_background_answers_from_the_database_meanwhile(house):
    house.add(*some(100))
    house.stop()
    put_back(house, {})
    house.start(background=True)
    check(house)
    house.store.wait()
    assert origin(house) == "rebuilt"
    check(house)


def test_closing_in_the_middle_of_a_rebuild_leaves_nothing_behind(house):
    house.add(*some(3000))
    house.stop()
    put_back(house, {})
    house.start(background=True)
    house.stop()
    assert not [name for name in os.listdir(os.path.dirname(house.path)) if ".new" in name]
    house.start()
    check(house)


def test_readers_see_whole_commits_while_the_writer_goes_on(house):
    """Each commit moves the mark from one row to the next: a reader must always find exactly one."""
    mark, plain = np.eye(8, dtype=np.float32)[:2]
    house.add(*(Row(mark if n == 0 else plain, n) for n in range(50)))
    done, failures = threading.Event(), []

    def read():
        while not done.is_set():
            found = house.search(mark, floor=0.5, k=50)
            if len(found) != 1 or len(house.search(plain, floor=0.5, k=10_000)) < 49:
                failures.append(found)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    current = 1
    try:
        for step in range(100):
            following = current % 50 + 1

            def job(tx, current=current, following=following, step=step):
                house._put(tx, Row(plain, current - 1), current)
                house._put(tx, Row(mark, following - 1), following)
                house._insert(tx, Row(plain, 100 + step))

            house.db.write_now(job)
            current = following
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert failures == []


def test_searches_work_inside_a_read_transaction(house):
    house.add(*some(5), Row(unit([1, 1]), 9))
    assert len(house.db.read_now(lambda conn: house.search(unit([1, 1])))) == 1


def test_a_closed_store_ignores_commits_and_the_next_start_rebuilds(house):
    house.add(*some(5))
    house.store.close()
    house.add(*some(5))
    house.add(*some(5))
    house.restart()
    assert origin(house) == "rebuilt"
    check(house)


def test_a_foreign_file_in_the_place_of_the_journal_is_unusable(tmp_path):
    path = tmp_path / "x.rows"
    apsw.Connection(str(path)).execute("CREATE TABLE t (x)")
    with pytest.raises(Unusable):
        journal.RowsFile.open(str(path))
