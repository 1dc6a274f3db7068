"""The int8 rows of an index in memory of this process, each read from its file once and compared with its sum.

A first pass looks at every row of its window, which is too much to read each time, and a mapped file is not ours:
whoever cuts it short ends the process with a signal, and whoever writes into it changes what was already checked. What
is held here nobody else can reach. Rows are held in segments; memory is touched only where a row was wanted.
Where there are more than ``HELD_BYTES``, the newest rows are held and older ones are read anew each time.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator

import numpy as np

from .files import MatrixFile
from .rows import as_slice

SEGMENT_BYTES = 16 << 20
HELD_BYTES = 512 << 20
_READ_BYTES = 1 << 20


class _Segment:
    __slots__ = ("rows", "held", "guard")

    def __init__(self, count: int, stride: int) -> None:
        # A mapping of no file and of this process alone: pages that nobody wrote to take no memory.
        memory = mmap.mmap(-1, count * stride, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.rows = np.frombuffer(memory, np.int8).reshape(count, stride)
        self.held = np.zeros(count, bool)
        self.guard = threading.Lock()


class HeldRows:
    """The rows of an int8 file. One thread writes; any thread reads rows that were written before."""

    def __init__(self, file: MatrixFile) -> None:
        self._file, self.stride = file, file.stride
        self._count = max(1, SEGMENT_BYTES // file.stride)
        self._most = max(1, HELD_BYTES // SEGMENT_BYTES)
        self._segments: dict[int, _Segment] = {}
        self._guard = threading.Lock()

    def write(self, slot: int, rows: np.ndarray) -> None:
        """Write C-contiguous rows, (n, stride), from ``slot`` on; room must be reserved in the file. Raises OSError."""
        self._file.write(slot, rows)
        end = slot + len(rows)
        for number in range(slot // self._count, (end - 1) // self._count + 1):
            segment = self._segments.get(number)
            if segment is not None:  # else the rows are read from the file once somebody wants them
                base = number * self._count
                low, high = max(slot, base), min(end, base + self._count)
                segment.rows[low - base : high - base] = rows[low - slot : high - slot]
                segment.held[low - base : high - base] = True

    def parts(self, slots: np.ndarray, sums: np.ndarray) -> Iterator[tuple[int, int, int, np.ndarray]]:
        """Yield (first, end, base, rows): slot ``s`` among ``slots[first:end]`` is row ``s - base`` of ``rows``.

        ``slots`` ascend; ``sums`` is the column of every slot's sum. Raises DamagedRows.
        """
        at = 0
        while at < len(slots):
            number = int(slots[at]) // self._count
            base = number * self._count
            end = at + int(np.searchsorted(slots[at:], base + self._count))
            segment = self._segment(number)
            self._hold(segment, base, slots[at:end], sums)
            yield at, end, base, segment.rows
            at = end

    def verify(self, slots: np.ndarray, sums: np.ndarray) -> None:
        """Compare rows in the file with their sums, held or not. Raises DamagedRows."""
        self._file.read(slots, sums[slots])

    @property
    def bytes_held(self) -> int:
        """How much memory the rows take that were read."""
        return sum(int(segment.held.sum()) for segment in list(self._segments.values())) * self.stride

    def _segment(self, number: int) -> _Segment:
        segment = self._segments.get(number)
        if segment is None:
            with self._guard:
                segment = self._segments.get(number)
                if segment is None:
                    segment = self._segments[number] = _Segment(self._count, self.stride)
                    if len(self._segments) > self._most:
                        del self._segments[min(self._segments)]  # perhaps this one: it is then read for this once
        return segment

    def _hold(self, segment: _Segment, base: int, slots: np.ndarray, sums: np.ndarray) -> None:
        """Read the rows that are not held yet. A row is marked only once it is whole, and is never written again."""
        local = as_slice(slots - base)
        if segment.held[local].all():
            return
        step = max(1, _READ_BYTES // self.stride)
        with segment.guard:
            missing = slots[~segment.held[local]]
            for at in range(0, len(missing), step):
                part = missing[at : at + step]
                place = as_slice(part - base)
                segment.rows[place] = self._file.read(part, sums[as_slice(part)])
                segment.held[place] = True
