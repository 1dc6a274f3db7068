"""The second pass over a file: its records again, a chunk at a time, with everything worked out that needs no writer.

Contract: import.lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...storage.memories import Prepared
from .records import BadRecord, MemoryRow, Record, Row

CHUNK_LINES = 1000
CHUNK_BYTES = 8 * 1024 * 1024
# A statement writes so many rows at once: the next chunk is read meanwhile, on the other processor.
ROWS_TOGETHER = 64


@dataclass(slots=True)
class Chunk:
    """Records that were read, each with its line (or what ``unit`` names), and the number of the last one."""

    items: list[tuple[int, Record | BadRecord]]
    last_line: int
    unit: str = "Line"

    def rows_from(self, place: int) -> list[tuple[int, Row]]:
        """Return the rows of one kind that stand together from here on, so many as one statement writes."""
        kind, end = type(self.items[place][1]), place + 1
        stop = min(len(self.items), place + ROWS_TOGETHER)
        while end < stop and type(self.items[end][1]) is kind:
            end += 1
        return self.items[place:end]  # type: ignore[return-value]  # all of them are of the kind of the first


class Reader:
    """The records of a file, a chunk at a time. ``prepare``: have memories ready to be written."""

    def __init__(
        self,
        records: Iterator[tuple[int, int, Record | BadRecord]],
        prepare: bool,
        fail_if_cut: bool,
        unit: str = "Line",
    ) -> None:
        self._records, self._prepare, self._fail_if_cut, self._unit = records, prepare, fail_if_cut, unit

    def chunk(self) -> Chunk:
        """Return the next records, none at the end of the file."""
        with np.errstate(over="ignore", invalid="ignore"):  # such vectors are reported, with their line
            return self._chunk()

    def _chunk(self) -> Chunk:
        items: list[tuple[int, Record | BadRecord]] = []
        size = number = 0
        for number, length, record in self._records:
            size += length
            if self._fail_if_cut and (cut := getattr(record, "cut", None)):
                record = _too_long(cut)
            elif self._prepare and type(record) is MemoryRow:
                record.prepared = Prepared.of(record.new)
            items.append((number, record))
            if len(items) >= CHUNK_LINES or size >= CHUNK_BYTES:
                break
        return Chunk(items, number, self._unit)


def _too_long(cut: dict) -> BadRecord:
    return BadRecord(f"its text has {cut['of']:,} characters, {cut['kept']:,} would be kept; the line was left out")
