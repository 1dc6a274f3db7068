"""What became of the rows that a merge copies.

Contract: merge.copies.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ...model.kinds import Kind

# A row of the source, the one of the target in its place (0: none), and whether it was written for it.
Outcome = tuple[int, int, bool]
Outcomes = dict[Kind, dict[int, tuple[int, bool]]]  # the same by kind and row of the source


@dataclass(slots=True)
class Copies:
    """What became of each row of the source that was looked at, by ascending id.

    That is a row of the target, and whether it was written for it.
    """

    old: array = field(default_factory=lambda: array("q"))
    new: array = field(default_factory=lambda: array("q"))
    written: bytearray = field(default_factory=bytearray)

    def add(self, outcomes: Iterable[Outcome]) -> None:
        for old, new, written in outcomes:
            self.old.append(old)
            self.new.append(new)
            self.written.append(written)

    def place(self, old: int) -> int:
        """Return where a row of the source stands here, -1 for one that was not looked at."""
        at = bisect_left(self.old, old)
        return at if at < len(self.old) and self.old[at] == old else -1

    def concerned(self, row_id: int) -> list[int]:
        """Return the rows of the source that a row is, or whose place at the target it takes."""
        if self.place(row_id) >= 0:
            return [row_id]
        return (
            [self.old[at] for at in np.flatnonzero(np.frombuffer(self.new, np.int64) == row_id)]
            if len(self.new)
            else []
        )

    def get(self, old: int) -> int:
        """Return the row of the target, 0 where there is none."""
        at = self.place(old)
        return self.new[at] if at >= 0 else 0

    def copied(self, which: str = "old") -> np.ndarray:
        """Return the ids of the rows that were written, at the source or (``new``) at the target, ascending. int64."""
        ids = (
            np.frombuffer(getattr(self, which), np.int64)[np.frombuffer(self.written, np.uint8) == 1]
            if len(self.old)
            else np.zeros(0, np.int64)
        )
        return np.sort(ids)

    def counts(self) -> tuple[int, int]:
        """Return how many rows were copied and how many skipped; those that are gone by now count as neither."""
        copied = sum(self.written)
        return copied, sum(1 for new in self.new if new) - copied

    def changed(self, outcomes: dict[int, tuple[int, bool]]) -> Copies:
        """Return the same with other outcomes for some rows of the source."""
        other = Copies(self.old, array("q", self.new), bytearray(self.written))
        for old, (new, written) in outcomes.items():
            at = self.place(old)
            other.new[at], other.written[at] = new, written
        return other
