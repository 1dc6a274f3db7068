"""Rows stored after an instant take no places in the window. Contract: time.asof, window.near."""

import random

import numpy as np
from vector_kit import following

from cpersona_daemon.model.changes import VectorPut
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage.generations import NOTHING
from cpersona_daemon.vectors.local import window as window_module
from cpersona_daemon.vectors.local.index import Index
from cpersona_daemon.vectors.local.window import window


def test_the_window_begins_at_the_instant_and_late_rows_obey_it_too(tmp_path):
    index = Index(MEMORY, str(tmp_path / "m.vec"), b"s" * 16, NOTHING)
    days = [1, 2, 3, 5, 6, 4]  # the last one comes late
    puts = [
        VectorPut(MEMORY, n, f"2026-01-{day:02d} 00:00:00", "a", "", "", None, "", np.ones(4, np.float32))
        for n, day in enumerate(days, 1)
    ]
    index.apply(puts, [], following(NOTHING))

    def ids(stop, as_of="", **between):
        return sorted(index.view.columns.id[window(index.view, Scope("a", as_of=as_of, **between), 0, stop)].tolist())

    assert ids(2, "") == [4, 5]
    assert ids(2, "2026-01-04 00:00:00") == [3, 6]
    assert ids(2, "2026-01-03 23:59:59") == [2, 3]
    assert ids(9, "2025-12-31 00:00:00") == []
    assert ids(9, since="2026-01-04 00:00:00") == [4, 5, 6]
    assert ids(2, since="2026-01-02 00:00:00", until="2026-01-04 00:00:00") == [3, 6]
    assert ids(9, as_of="2026-01-03 00:00:00", since="2026-01-02 00:00:01", until="2026-01-09 00:00:00") == [3]
    index.close()


def stamp(second):
    return f"2026-01-01 00:{second // 60:02d}:{second % 60:02d}"


def test_any_window_over_rows_that_mostly_came_late_is_the_newest_by_created_and_id(tmp_path, monkeypatch):
    monkeypatch.setattr(window_module, "_MIN_BLOCK", 4)
    monkeypatch.setattr(window_module, "_MAX_BLOCK", 16)
    pick = random.Random(3)
    index, rows = Index(MEMORY, str(tmp_path / "m.vec"), b"s" * 16, NOTHING), {}
    reached = NOTHING
    for generation in range(1, 41):
        # Every stretch is younger than the one before, and within it rows come in any order; some seconds are shared.
        fresh = [
            (1000 * generation + n, generation * 20 + pick.randrange(40), pick.choice("aab"))
            for n in range(pick.randrange(1, 15))
        ]
        rows |= {row_id: (second, agent) for row_id, second, agent in fresh}
        dead = [row_id for row_id in pick.sample(sorted(rows), 1) if row_id not in {new for new, _, _ in fresh}]
        puts = [
            VectorPut(MEMORY, row_id, stamp(second), agent, "", "", None, "", np.ones(4, np.float32))
            for row_id, second, agent in fresh
        ]
        reached = following(reached)
        index.apply(puts, [*(row_id for row_id, _, _ in fresh), *dead], reached)
        for row_id in dead:
            rows.pop(row_id)
        for agent in "ab":
            living = {row_id for row_id in rows if rows[row_id][1] == agent}
            order = sorted(living, key=lambda row_id: (-rows[row_id][0], row_id))
            for _ in range(6):
                start = pick.randrange(0, 30)
                stop = start + pick.randrange(1, 60)
                since, until = (
                    sorted((pick.randrange(0, 840), pick.randrange(0, 840))) if pick.random() < 0.5 else (0, 840)
                )
                between = {"since": stamp(since), "until": stamp(until)} if (since, until) != (0, 840) else {}
                found = window(index.view, Scope(agent, **between), start, stop)
                seen = [row_id for row_id in order if since <= rows[row_id][0] <= until]
                assert list(found) == sorted(found)
                assert set(index.view.columns.id[found].tolist()) == set(seen[start:stop]), (
                    generation,
                    agent,
                    start,
                    stop,
                )
    assert len(index.view.late) > 100
    index.close()
