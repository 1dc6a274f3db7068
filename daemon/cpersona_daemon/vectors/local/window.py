"""Which slots a scan may look at: the rows in scope, newest first, and of those the positions asked for.

Contract: scope.axes, window.near, window.reach, time.between.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from ...model.instants import created_seconds
from ...model.scope import Scope
from .view import View

_MIN_BLOCK, _MAX_BLOCK = 1 << 13, 1 << 17
# A column, and what it must be: a code, one of several codes, a bool per code, or a range.
Test = tuple[np.ndarray, int | list[int] | range | np.ndarray]
_NEVER = -(1 << 62)  # in epoch seconds: before any row
_NOTHING = np.zeros(0, np.int64)


def window(view: View, scope: Scope, start: int, stop: int, with_source: bool = True) -> np.ndarray:
    """Return the slots at the positions [start, stop) of the scan, ascending by slot. int64.

    Cost grows with ``stop`` and with the rows of other scopes that lie between; not with the store.
    """
    tests = _tests(view, scope, with_source)
    if tests is None or stop <= start or stop <= 0:
        return _NOTHING
    created = view.columns.created
    oldest = created_seconds(scope.since) if scope.since else None
    late = _newest_late(view, tests, stop, oldest)
    if not len(late):
        found = _newest_in_order(view, tests, stop, oldest)
        return found[_between(view, found, start, stop)]
    # Rows older than so many late ones are beyond the window, however few rows in order there are before them.
    if len(late) >= stop:
        oldest = max(int(created[late[len(late) - stop]]), _NEVER if oldest is None else oldest)
    found = _newest_in_order(view, tests, stop, oldest)
    found = np.insert(found, np.searchsorted(created[found], created[late]), late)
    return np.sort(found[_between(view, found, start, stop)], kind="stable")


def _between(view: View, found: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return a bool per slot of ``found``, which ascends by created_at: whether its position is in [start, stop)."""
    taken = np.zeros(len(found), bool)
    _mark_first(view, found, stop, taken, True)
    if start > 0:
        _mark_first(view, found, start, taken, False)
    return taken


def _mark_first(view: View, found: np.ndarray, count: int, taken: np.ndarray, mark: bool) -> None:
    """Mark the first ``count`` by (created DESC, id ASC).

    Only the rows that share the last one's second need a look at their ids.
    """
    if count >= len(found):
        taken[:] = mark
        return
    created = view.columns.created
    edge = created.item(found[len(found) - count])
    low, high = (search(found, edge, key=created.item) for search in (bisect_left, bisect_right))
    taken[high:] = mark
    room = count - (len(found) - high)
    taken[low + np.argpartition(view.columns.id[found[low:high]], room - 1)[:room]] = mark


def _tests(view: View, scope: Scope, with_source: bool) -> list[Test] | None:
    """Return what each column must be: (column, a code, several codes, a bool per code, or a range).

    None: no row can match.
    """
    columns, codes = view.columns, view.codes
    agent = codes.find(scope.agent_id)
    if agent is None:
        return None
    tests: list[Test] = [(columns.agent, agent)]
    for column, value, axis_filters in (
        (columns.project, scope.project_id, scope.project_id is not None),
        (columns.channel, scope.channel, bool(scope.channel)),
    ):
        if axis_filters:
            allowed = [code for code in map(codes.find, {value, ""}) if code is not None]
            if not allowed:
                return None
            tests.append((column, allowed))
    if with_source and scope.source_id:
        if scope.source_is_prefix:
            tests.append((columns.source, codes.starting_with(scope.source_id)))
        else:
            source = codes.find(scope.source_id)
            if source is None:
                return None
            tests.append((columns.source, source))
    if scope.of_a_time:
        tests.append((columns.created, _stored(scope)))
    return tests


def _stored(scope: Scope) -> range:
    """Return the seconds in which a row may have been stored."""
    return range(
        created_seconds(scope.since) if scope.since else _NEVER,
        created_seconds(scope.latest) + 1 if scope.latest else -_NEVER,
    )


def _passing(view: View, tests: list[Test], where: slice | np.ndarray) -> np.ndarray:
    passing: np.ndarray = view.columns.died[where] > view.change
    if len(view.hidden):
        ids = view.columns.id[where]
        passing &= view.hidden.take(np.searchsorted(view.hidden, ids), mode="clip") != ids
    for column, wanted in tests:
        values = column[where]
        if isinstance(wanted, np.ndarray):
            passing &= wanted[values]
        elif isinstance(wanted, list):
            passing &= values == wanted[0] if len(wanted) == 1 else (values == wanted[0]) | (values == wanted[1])
        elif isinstance(wanted, range):
            passing &= values < wanted.stop
            if wanted.start > _NEVER:
                passing &= values >= wanted.start
        else:
            passing &= values == wanted
    return passing


def _newest_late(view: View, tests: list[Test], stop: int, oldest: int | None) -> np.ndarray:
    """Return late in-scope slots, ascending by created_at: the newest ``stop`` and all of the last one's second.

    Those stored before the second ``oldest`` may be left out.
    """
    created, pieces, got, high, boundary = view.columns.created, [], 0, len(view.late), None
    while high > 0:
        low = max(0, high - max(stop + stop // 4, _MIN_BLOCK))
        slots = view.late[low:high]
        slots = slots[_passing(view, tests, slots)]
        if len(slots):
            if boundary is None and got + len(slots) >= stop:
                boundary = created[slots[got - stop]]
            pieces.append(slots)
            got += len(slots)
            if boundary is not None and created[slots[0]] < boundary:
                break
        if oldest is not None and created[view.late[low]] < oldest:
            break
        high = low
    return np.concatenate(pieces[::-1]) if pieces else _NOTHING


def _newest_in_order(view: View, tests: list[Test], stop: int, oldest: int | None = None) -> np.ndarray:
    """Return in-scope slots that are not late, ascending: the newest ``stop`` and all that share the last one's second.

    With ``oldest`` those stored before that second may be left out.
    """
    columns, pieces, got = view.columns, [], 0
    block = min(max(stop + stop // 4, _MIN_BLOCK), _MAX_BLOCK)
    high = view.count
    boundary = None
    while high > 0:
        low = max(0, high - block)
        passing = _passing(view, tests, slice(low, high))
        if len(view.late):
            passing &= ~columns.late[low:high]
        slots = np.flatnonzero(passing) + low
        if len(slots):
            if boundary is None and got + len(slots) >= stop:
                boundary = columns.created[slots[got - stop]]
            pieces.append(slots)
            got += len(slots)
            if boundary is not None and columns.created[slots[0]] < boundary:
                break
        # Whatever its scope, a row in order tells that those before it are no newer.
        if oldest is not None and columns.created[low] < oldest and not columns.late[low]:
            break
        high = low
    return np.concatenate(pieces[::-1]) if pieces else _NOTHING
