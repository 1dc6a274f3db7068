"""Rows stored after an instant take no places in the window. Contract: interface.md, `--as-of`; contracts.md §3."""

import numpy as np

from cpersona_daemon.storage.scope import Scope
from cpersona_daemon.vectors.changes import VectorPut
from cpersona_daemon.vectors.index import Index
from cpersona_daemon.vectors.window import window


def test_the_window_begins_at_the_instant_and_late_rows_obey_it_too(tmp_path):
    index = Index("mem", str(tmp_path / "m.vec"), b"s" * 16, 0)
    days = [1, 2, 3, 5, 6, 4]  # the last one comes late
    puts = [VectorPut("mem", n, f"2026-01-{day:02d} 00:00:00", "a", "", "", None, "", np.ones(4, np.float32)) for n, day in enumerate(days, 1)]
    index.apply(puts, [], 1)
    ids = lambda stop, as_of: sorted(index.view.columns.id[window(index.view, Scope("a", as_of=as_of), 0, stop)].tolist())  # noqa: E731
    assert ids(2, "") == [4, 5]
    assert ids(2, "2026-01-04 00:00:00") == [3, 6]
    assert ids(2, "2026-01-03 23:59:59") == [2, 3]
    assert ids(9, "2025-12-31 00:00:00") == []
    index.close()
