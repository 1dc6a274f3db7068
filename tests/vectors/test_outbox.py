"""The outbox: what a service elsewhere has yet to hear of, and the thread that brings it there.

Contract: outbox.durable, outbox.now, outbox.drained, outbox.anew.
"""

import threading

import numpy as np
import pytest
from vector_kit import House, Row, unit

from cpersona_daemon.model.changes import Hidden, Purged
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.kinds import EPISODE, MEMORY, PassageKind
from cpersona_daemon.storage import hidden, outbox
from cpersona_daemon.storage import vectors as rows
from cpersona_daemon.storage.outbox import Entry
from cpersona_daemon.vectors.drainer import Drainer, Undelivered

RNG = np.random.default_rng(3)
SECONDS = 20.0


class Shelf:
    """A service that keeps what it is told: the vectors of rows that are seen."""

    kinds = (MEMORY, EPISODE, *PassageKind)
    most = 4

    def __init__(self, target="shelf"):
        self.target = target
        self.held = {}
        self.deliveries = []
        self.levels = []
        self.failing = None
        self.gate = None  # where set, a delivery waits for it
        self.arrived = threading.Event()

    def check(self):
        pass

    def clear(self):
        self.held.clear()

    following = staticmethod(outbox.following)

    def read(self, conn, entries):
        there = []
        for entry in entries:
            seen = not entry.purges and not hidden.holds(conn, entry.of.rows.table, entry.id)
            found = rows.with_vectors(conn, entry.of, np.array([entry.id])) if seen else []
            there.append((entry, found[0].agent_id if found else None))
        return there

    def deliver(self, read):
        self.arrived.set()
        if self.gate is not None:
            assert self.gate.wait(SECONDS)
        if self.failing is not None and (why := self.failing(read)) is not None:
            raise why
        for entry, agent in read:
            if entry.purges:
                self.held = {row: whose for row, whose in self.held.items() if whose != entry.agent_id}
            elif agent is None:
                self.held.pop((entry.kind, entry.id), None)
            else:
                self.held[entry.kind, entry.id] = agent
        self.deliveries.append([entry for entry, _ in read])

    def level(self, reached):
        self.levels.append(reached.number)

    def close(self):
        if self.gate is not None:
            self.gate.set()


def row(second=0, agent="a", kind=MEMORY):
    return Row(unit(RNG.normal(size=8)), second, agent=agent, kind=kind)


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    house.drainers = []
    yield house
    for drainer in house.drainers:
        drainer.stop()
    house.stop()


def drained(house, shelf, pause=0.01):
    drainer = Drainer(shelf, SystemClock(), first_pause=pause)
    house.drainers.append(drainer)
    apply = house.store.apply
    house.db.on_commit = lambda changes, reached: (apply(changes, reached), drainer.wake())
    drainer.start(house.db)
    return drainer


def ids(house):
    return {
        (kind, row_id): agent
        for kind in (MEMORY, EPISODE)
        for row_id, agent in house.db.read_now(
            lambda conn, kind=kind: conn.execute(
                f"SELECT m.id, m.agent_id FROM {kind.table} m JOIN {kind.vectors} v ON v.id = m.id"
            ).fetchall()
        )
    }


def status(house, drainer):
    return house.db.read_now(drainer.status)


def added(house, *new):
    return [(one.kind, row_id) for one, row_id in zip(new, house.add(*new), strict=True)]


def listed(house):
    return house.db.read_now(outbox.oldest, 1000)


def test_nothing_is_listed_where_no_service_is_configured(house):
    house.add(row(1), row(2))
    assert listed(house) == [] and house.db.read_now(outbox.length) == 0


def test_a_service_is_sent_all_that_is_there_and_then_what_changes(house):
    house.add(*(row(i, kind=EPISODE if i % 3 == 0 else MEMORY) for i in range(11)))
    shelf = Shelf()
    drainer = drained(house, shelf)
    assert drainer.wait(SECONDS) and shelf.held == ids(house) and len(shelf.held) == 11
    before = len(shelf.deliveries)
    (new,) = added(house, row(20, agent="b"))
    house.delete((MEMORY, 1))
    assert drainer.wait(SECONDS) and shelf.held == ids(house)
    assert new in shelf.held and (MEMORY, 1) not in shelf.held
    assert {(entry.kind, entry.id) for batch in shelf.deliveries[before:] for entry in batch} == {new, (MEMORY, 1)}
    assert listed(house) == [] and shelf.levels[-1] == status(house, drainer)["generation"]


def test_what_could_not_be_delivered_stays_listed_and_is_tried_again(house):
    shelf = Shelf()
    shelf.failing = lambda read: Undelivered("it is down")
    drainer = drained(house, shelf)
    house.add(row(1), row(2))
    assert not drainer.wait(SECONDS)
    told = status(house, drainer)
    assert told["pending"] == 2 and told["problem"] == "it is down" and told["oldest_seconds"] is not None
    shelf.failing = None
    while not drainer.wait(SECONDS):
        pass
    told = status(house, drainer)
    assert shelf.held == ids(house) and (told["pending"], told["problem"], told["paused_seconds"]) == (0, None, 0.0)


def test_a_row_that_changes_while_it_is_delivered_is_delivered_again(house):
    shelf = Shelf()
    drainer = drained(house, shelf)
    assert drainer.wait(SECONDS)
    shelf.gate = threading.Event()
    shelf.arrived.clear()
    (first,) = added(house, row(1))
    assert shelf.arrived.wait(SECONDS)  # read, and on its way
    house.delete(first)  # no write waits for the service
    assert [(entry.kind, entry.id) for entry in listed(house)] == [first]
    shelf.gate.set()
    assert drainer.wait(SECONDS) and shelf.held == {} and len(shelf.deliveries) == 2


def test_a_row_is_listed_once_however_often_it_changes_and_stands_where_it_changed_last(house):
    shelf = Shelf()
    drainer = drained(house, shelf)
    assert drainer.wait(SECONDS)
    drainer.stop()  # feeding goes on
    one, two = added(house, row(1), row(2))
    house.update(one, row().vector)
    assert [(entry.kind, entry.id) for entry in listed(house)] == [two, one]


def test_one_row_that_a_service_refuses_is_passed_over_and_the_others_arrive(house):
    shelf = Shelf()
    drainer = drained(house, shelf)
    assert drainer.wait(SECONDS)
    shelf.failing = lambda read: (
        Undelivered("it will not have it", refused=True) if any(entry.id == 3 for entry, _ in read) else None
    )
    house.add(*(row(i) for i in range(6)))
    assert drainer.wait(SECONDS)
    assert sorted(row_id for _, row_id in shelf.held) == [1, 2, 4, 5, 6]
    assert status(house, drainer)["refused"] == 1


def test_a_store_that_was_written_without_the_service_is_sent_anew(house):
    shelf = Shelf()
    drainer = drained(house, shelf)
    house.add(row(1), row(2))
    assert drainer.wait(SECONDS)
    drainer.stop()
    house.db.feed = None  # as in another mode
    house.delete((MEMORY, 1))
    house.add(row(3))
    shelf.held[MEMORY, 77] = "a"  # what it should not have
    assert drained(house, shelf).wait(SECONDS)
    assert shelf.held == ids(house) and sorted(row_id for _, row_id in shelf.held) == [2, 3]


def test_a_store_that_was_not_written_meanwhile_is_not_sent_anew(house):
    shelf = Shelf()
    drainer = drained(house, shelf)
    house.add(row(1), row(2))
    assert drainer.wait(SECONDS)
    drainer.stop()
    sent = len(shelf.deliveries)
    assert drained(house, shelf).wait(SECONDS) and len(shelf.deliveries) == sent


def test_another_service_is_sent_everything(house):
    house.add(row(1), row(2))
    one, other = Shelf("one"), Shelf("other")
    drainer = drained(house, one)
    assert drainer.wait(SECONDS)
    drainer.stop()
    assert drained(house, other).wait(SECONDS) and other.held == ids(house) != {}


def test_a_service_that_lost_what_it_had_is_sent_everything(house):
    shelf = Shelf()
    drainer = drained(house, shelf)
    house.add(row(1), row(2))
    assert drainer.wait(SECONDS)
    shelf.held.clear()
    failing = [Undelivered("it is empty", lost=True)]
    shelf.failing = lambda read: failing.pop() if failing else None
    house.add(row(3))
    while not drainer.wait(SECONDS):
        pass
    assert shelf.held == ids(house) and len(shelf.held) == 3


def test_hidden_rows_are_taken_from_a_service_and_shown_ones_are_put_back(house):
    shelf = Shelf()
    drainer = drained(house, shelf)
    house.add(row(1), row(2), row(3, agent="b"))
    assert drainer.wait(SECONDS)

    def hide(tx):
        hidden.hide(tx, "memories", [1])
        tx.changes.append(Hidden(MEMORY, np.array([1], np.int64)))

    def show(tx):
        hidden.show_all(tx)
        tx.changes.append(Hidden(MEMORY, np.zeros(0, np.int64)))

    house.db.write_now(hide)
    assert drainer.wait(SECONDS) and sorted(row_id for _, row_id in shelf.held) == [2, 3]
    house.db.write_now(show)
    assert drainer.wait(SECONDS) and sorted(row_id for _, row_id in shelf.held) == [1, 2, 3]


def test_an_agent_that_is_erased_is_one_entry(house):
    shelf = Shelf()
    drainer = drained(house, shelf)
    house.add(*(row(i) for i in range(5)), row(6, agent="b"))
    assert drainer.wait(SECONDS)
    drainer.stop()

    def erase(tx):
        gone = hidden.hide_agent(tx, "memories", "a")
        tx.changes += [Hidden(MEMORY, np.array(gone, np.int64)), Purged("a")]

    house.db.write_now(erase)
    (entry,) = listed(house)
    assert entry == Entry(outbox.PURGE, 0, "a", entry.generation) and entry.purges
    assert drained(house, shelf).wait(SECONDS) and shelf.held == {(MEMORY, 6): "b"}


def test_a_transaction_that_fails_lists_nothing(house):
    shelf = Shelf()
    drainer = drained(house, shelf)
    assert drainer.wait(SECONDS)
    drainer.stop()

    def breaks(tx):
        tx.execute("DELETE FROM memory_vectors")
        tx.changes.append(Hidden(MEMORY, np.array([1], np.int64)))
        raise RuntimeError("no")

    house.add(row(1))
    before = listed(house)
    with pytest.raises(RuntimeError):
        house.db.write_now(breaks)
    assert listed(house) == before != []


def test_the_statements_of_the_outbox_use_its_indexes(house):
    def plan(conn, sql, *params):
        return " ".join(row[3] for row in conn.execute("EXPLAIN QUERY PLAN " + sql, params))

    def look(conn):
        order = plan(conn, "SELECT kind, id, agent_id, generation FROM outbox ORDER BY generation, id LIMIT 5")
        gone = plan(conn, "DELETE FROM outbox WHERE kind='mem' AND id=1 AND agent_id='a' AND generation=1")
        return order, gone, plan(conn, "SELECT min(at) FROM outbox")

    order, gone, age = house.db.read_now(look)
    assert "outbox_order" in order and "TEMP B-TREE" not in order
    assert "PRIMARY KEY" in gone and "outbox_age" in age
