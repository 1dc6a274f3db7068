"""The books of an index: which slot holds a row, which are late, how many rows there are of each width and model.

Contract: window.near.
"""

from __future__ import annotations

import numpy as np

from .codes import SlotMap
from .view import Columns

FEW = 4  # changes up to this many are cheaper one by one than as arrays


class Books:
    """What is known of the slots in ``Columns`` beyond their entries. One thread settles changes.

    ``late``, ``widths`` and ``models`` are made anew with each change, so that views keep theirs. ``late`` ascends by
    created_at; ``change`` numbers the changes, and a dead slot bears the number of the one that killed it.
    """

    __slots__ = ("slots", "live", "late", "widths", "models", "change", "_newest")

    def __init__(self) -> None:
        self.slots = SlotMap()
        self.live = 0
        self.late = np.zeros(0, np.int32)
        self.widths: dict[int, int] = {}
        self.models: dict[int, int] = {}
        self.change = 1
        self._newest = np.iinfo(np.int64).min

    def settle(self, columns: Columns, first: int, count: int, doomed: list[int]) -> None:
        """Enter the slots [first, count) and the dead ones; readers still see the last view."""
        self.change += 1
        if count - first <= FEW and len(doomed) <= FEW:
            self._settle_few(columns, first, count, doomed)
        else:
            self._settle_many(columns, first, count, doomed)
        self.live += count - first - len(doomed)

    def bury(self, columns: Columns, dead: np.ndarray, count: int) -> None:
        """Enter that of all slots these are dead: a row may have lived in several, and only the living one counts."""
        living = np.ones(count, bool)
        living[dead] = False
        columns.died[dead] = self.change
        alive = np.flatnonzero(living)
        self.slots, self.widths, self.models, self.live = SlotMap(), {}, {}, len(alive)
        self.slots.put(columns.id[alive], alive)
        self._tally(columns, alive, 1)

    def common_width(self) -> int | None:
        """Return the width that most living rows have, None without rows."""
        return max(self.widths, key=self.widths.__getitem__) if self.widths else None

    def _settle_few(self, columns: Columns, first: int, count: int, doomed: list[int]) -> None:
        widths, models = dict(self.widths), dict(self.models)
        for sign, slots in ((-1, doomed), (1, range(first, count))):
            for slot in slots:
                row_id, created = columns.id.item(slot), columns.created.item(slot)
                for counts, key in ((widths, columns.width.item(slot)), (models, columns.model.item(slot))):
                    counts[key] = counts.get(key, 0) + sign
                    if not counts[key]:
                        del counts[key]
                if sign < 0:
                    columns.died[slot] = self.change
                    self.slots.set(row_id, -1)
                    continue
                if created < self._newest:
                    columns.late[slot] = True
                    self._add_late(columns, np.array([slot], np.int32))
                self._newest = max(self._newest, created)
                self.slots.set(row_id, slot)
        self.widths, self.models = widths, models

    def _settle_many(self, columns: Columns, first: int, count: int, doomed: list[int]) -> None:
        if doomed:
            slots = np.array(doomed)
            columns.died[slots] = self.change
            self.slots.put(columns.id[slots], np.full(len(slots), -1))
            self._tally(columns, slots, -1)
        if count > first:
            new = np.arange(first, count, dtype=np.int32)
            highest = np.maximum.accumulate(columns.created[first:count])
            np.maximum(highest, self._newest, out=highest)
            late = columns.created[first:count] < highest
            self._newest = int(highest[-1])
            if late.any():
                columns.late[first:count] = late
                self._add_late(columns, new[late])
            self.slots.put(columns.id[first:count], new)
            self._tally(columns, slice(first, count), 1)

    def _add_late(self, columns: Columns, slots: np.ndarray) -> None:
        created = columns.created
        slots = slots[np.argsort(created[slots], kind="stable")]
        self.late = np.insert(self.late, np.searchsorted(created[self.late], created[slots], "right"), slots)

    def _tally(self, columns: Columns, slots: slice | np.ndarray, sign: int) -> None:
        self.widths = _with(self.widths, columns.width[slots], sign)
        self.models = _with(self.models, columns.model[slots], sign)


def _with(counts: dict[int, int], values: np.ndarray, sign: int) -> dict[int, int]:
    """Return counts with these values added or taken away; a reader may hold the old ones."""
    changed, ordered = dict(counts), np.sort(values)  # np.unique would import half of numpy first
    edges = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(ordered)]
    for first, end in zip(edges, edges[1:], strict=False):
        if first < end:
            key = ordered.item(first)
            changed[key] = changed.get(key, 0) + sign * (end - first)
    return {key: count for key, count in changed.items() if count}
