"""One kind's index: columns in memory beside the mapped matrix, and the frozen view that readers scan.

A slot is a row of the matrix together with its entries in the columns. Slots are only ever added; a slot
dies by the number of the change that killed it, so a reader that holds an older view still sees it alive.
Slots stand in order of created_at but for *late* ones, rows older than one already there (an import of
old rows), which are listed apart and put in place by the next rebuild.

Threads: one thread at a time changes an index (the store's lock sees to it); any number reads ``view``.

Contract: contracts.md §3 (vector_near: which rows a scan takes).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .changes import VectorPut
from .codes import Codes, SlotMap, created_column
from .files import ROW, Batch, Identity, MatrixFile, RowsFile, Unusable

ALIVE = np.uint32(0xFFFFFFFF)
WRITE_CHUNK = 1024
_MIN_CAPACITY = 1024
_NO_SLOTS = np.zeros(0, np.int32)
# A journal of this many batches is rewritten as one, so that a start never replays more than a share of the rows.
CHECKPOINT_BATCHES = 4096
# Below these counts a rebuild for tidiness is not worth its reading.
REBUILD_MIN_DEAD = 256
REBUILD_MIN_LATE = 20_000
# Any odd numbers do, as long as they never change: they make the sum depend on where a word stands.
_WEIGHTS = np.random.Generator(np.random.PCG64(20240501)).integers(0, 2**62, 1 << 13, np.uint64) * np.uint64(2) + np.uint64(1)


class Columns:
    """The entries of every slot, one array each; what a scan compares lies together."""

    __slots__ = (*ROW.names, "died", "late", "verified")

    def __init__(self, capacity: int):
        for name in ROW.names:
            setattr(self, name, np.zeros(capacity, ROW[name]))
        self.died = np.full(capacity, ALIVE)
        self.late = np.zeros(capacity, bool)
        self.verified = np.zeros(capacity, bool)

    def __len__(self) -> int:
        return len(self.id)

    def grown(self, count: int, capacity: int) -> Columns:
        """Return larger columns with the first ``count`` entries. Older views keep the ones they hold."""
        larger = Columns(capacity)
        for name in self.__slots__:
            getattr(larger, name)[:count] = getattr(self, name)[:count]
        return larger


@dataclass(frozen=True, slots=True)
class View:
    """What a reader scans: consistent as of one commit, whatever happens meanwhile.

    ``matrix`` has shape (>= count, stride) with zero padding after ``width`` floats. A slot is alive here
    when ``columns.died[slot] > change``. ``late`` lists the slots that stand out of order.
    """

    columns: Columns
    matrix: np.ndarray
    codes: Codes
    width: int
    count: int
    change: np.uint32
    late: np.ndarray
    max_norm: float
    widths: dict[int, int]


class Index:
    """The index of one kind. Without a vector there are no files and ``width`` is 0; the first vector fixes it."""

    def __init__(self, kind: str, path: str, store_id: bytes, generation: int):
        self.kind, self.path, self.store_id, self.generation = kind, path, store_id, generation
        self.codes, self.slots, self.columns = Codes(), SlotMap(), Columns(_MIN_CAPACITY)
        self.width = self.count = self.live = 0
        self.widths: dict[int, int] = {}
        self._written_codes = 1
        self._late = np.zeros(0, np.int32)
        self._late_count = 0
        self._newest = np.iinfo(np.int64).min
        self._max_norm = 0.0
        self._change = 1
        self._matrix: MatrixFile | None = None
        self._rows: RowsFile | None = None
        self._publish()

    # -- life

    @classmethod
    def load(cls, kind: str, path: str, store_id: bytes, oldest: int, newest: int) -> Index:
        """Open the files of a database; they must stand at a generation from ``oldest`` to ``newest``.

        Raises Unusable with the reason when they do not fit.
        """
        self = cls(kind, path, store_id, 0)
        rows, whole, reached = RowsFile.open(path + ".rows")
        self._rows = rows
        try:
            if rows.identity.kind != kind or rows.identity.store_id != store_id:
                raise Unusable("index of another database")
            if not oldest <= reached <= newest:
                raise Unusable(f"stale: the index stands at {reached}, the database at {newest}")
            self._matrix = MatrixFile.open(path, len(whole.rows))
            if self._matrix.identity != rows.identity:
                raise Unusable("matrix and journal are not of one piece")
            self._take(whole)
            rows.cut()
            self.generation = reached
        except BaseException:
            self.close(tidy=False)
            raise
        return self

    def close(self, tidy: bool = True) -> None:
        """Close the files; with ``tidy`` first make them small and quick to open. Views held by readers stay valid."""
        matrix, rows, self._matrix, self._rows = self._matrix, self._rows, None, None
        try:
            if tidy and rows is not None and rows.batches > 64:
                rows = self._checkpointed(rows)
        finally:
            if matrix is not None:
                matrix.close(self.count if tidy else None)
            if rows is not None:
                rows.close()

    def move_to(self, path: str) -> None:
        """Take the place of the index at ``path``. A crash between the two renames leaves a pair that does not match."""
        for suffix in ("", ".rows"):
            if self._matrix is not None:
                os.rename(self.path + suffix, path + suffix)
            elif os.path.exists(path + suffix):
                os.unlink(path + suffix)
        self.path = path

    def discard(self) -> None:
        """Close and remove an unfinished index."""
        self.close(tidy=False)
        for suffix in ("", ".rows"):
            if os.path.exists(self.path + suffix):
                os.unlink(self.path + suffix)

    # -- change

    def fix_width(self, width: int) -> None:
        """Decide which width the matrix holds; once, while the index is empty."""
        identity = Identity(self.kind, width, os.urandom(16), self.store_id)
        self._matrix = MatrixFile.create(self.path, identity)
        self._rows = RowsFile.create(self.path + ".rows", identity)
        self.width = width
        self._publish()

    def apply(self, puts: Iterable[VectorPut], gone: Iterable[int], generation: int) -> None:
        """Bring one commit in: ``gone`` names every row whose earlier vector is void, ``puts`` what stands now.

        Each id occurs once in ``puts``. A vector that is not finite or is zero counts as none. Readers see
        all of it or nothing. Raises OSError when it cannot be written; the index is of no use after that.
        """
        doomed = [slot for slot in map(self.slots.get, gone) if slot >= 0]
        first, waiting = self.count, []
        norm = self._max_norm
        for put in puts:
            waiting.append(put)
            if len(waiting) == WRITE_CHUNK:
                norm = max(norm, self._write(waiting))
                waiting.clear()
        if waiting:
            norm = max(norm, self._write(waiting))
        count, self._max_norm = self.count, norm
        if self._rows is not None:
            if count > first or doomed:
                added = self._journal_rows(first, count)
                self._rows.append(Batch(self.codes.since(self._written_codes), added, np.array(doomed, np.int32), norm), generation)
                self._written_codes = len(self.codes)
            else:
                self._rows.seal(generation)
        self._settle(first, doomed)
        self.generation = generation
        self._publish()
        if self._rows is not None and self._rows.batches > max(CHECKPOINT_BATCHES, count // 8):
            self._rows = self._checkpointed(self._rows)

    def wants_rebuild(self) -> str | None:
        """Return why a fresh index would be better, None while this one is fit."""
        dead = self.count - self.live
        if dead > max(REBUILD_MIN_DEAD, self.live):
            return "more than half of the slots are dead"
        if self._late_count > max(REBUILD_MIN_LATE, self.count // 3):
            return "many rows out of order"
        if self.widths and self.widths.get(self.width, 0) < max(self.widths.values()):
            return "most vectors have another width"
        return None

    def holds(self, row_id: int, stored: bytes) -> bool:
        """Say whether a row's vector is this one, byte for byte. One that counts as none must be absent."""
        slot = self.slots.get(row_id)
        if not is_usable(np.frombuffer(stored, "<f4")):
            return slot < 0
        return slot >= 0 and self._matrix.view[slot, :self.width].tobytes() == stored

    def common_width(self) -> int | None:
        """Return the width that most living rows have, None without rows."""
        return max(self.widths, key=self.widths.get) if self.widths else None

    def status(self) -> dict:
        """Return counts and sizes for people."""
        return {"rows": self.live, "dead": self.count - self.live, "late": self._late_count, "width": self.width or None,
                "generation": self.generation, "bytes": self._matrix.size + self._rows.length if self._matrix and self._rows else 0}

    # -- inside

    def _write(self, puts: list[VectorPut]) -> float:
        """Write rows into the next slots, invisible as yet, and return the largest norm among them."""
        puts = [put for put in puts if put.vector.ndim == 1 and put.vector.size]
        widths = np.array([put.vector.size for put in puts], np.int32)
        if not self.width:
            fit = next((put for put in puts if is_usable(put.vector)), None)
            if fit is None:
                return 0.0
            self.fix_width(fit.vector.size)
        usable = widths == self.width
        block = np.zeros((len(puts), self._matrix.stride), "<f4")
        for row, put in enumerate(puts):
            if usable[row]:
                block[row, :self.width] = put.vector
        good = np.isfinite(block).all(axis=1) & block.any(axis=1)
        for row in np.flatnonzero(~usable).tolist():
            good[row] = is_usable(puts[row].vector)
        if not good.all():
            keep = np.flatnonzero(good)
            puts, block, widths, usable = [puts[row] for row in keep.tolist()], np.ascontiguousarray(block[keep]), widths[keep], usable[keep]
        first, count = self.count, self.count + len(puts)
        if count == first:
            return 0.0
        if count > len(self.columns):
            self.columns = self.columns.grown(first, max(count, len(self.columns) * 3 // 2))
        self._matrix.reserve(count)
        if usable.any():
            self._matrix.write(first, block)
        columns, code = self.columns, self.codes.add
        columns.id[first:count] = [put.id for put in puts]
        columns.created[first:count] = created_column([put.created_at for put in puts])
        columns.agent[first:count] = [code(put.agent_id) for put in puts]
        columns.project[first:count] = [code(put.project_id) for put in puts]
        columns.channel[first:count] = [code(put.channel) for put in puts]
        columns.source[first:count] = [code(put.source_id) for put in puts]
        columns.model[first:count] = [code(put.model) for put in puts]
        columns.width[first:count] = widths
        columns.sum[first:count] = row_sums(block)
        columns.verified[first:count] = True
        self.count = count
        return float(np.sqrt(np.einsum("ij,ij->i", block, block, dtype=np.float64).max()))

    def _settle(self, first: int, doomed: list[int]) -> None:
        """Enter the slots from ``first`` on and the dead ones into the books; readers still see the last view."""
        columns, count = self.columns, self.count
        self._change += 1
        if doomed:
            slots = np.array(doomed)
            columns.died[slots] = self._change
            self.slots.put(columns.id[slots], np.full(len(slots), -1))
            self._count_widths(columns.width[slots], -1)
        if count > first:
            new = np.arange(first, count, dtype=np.int32)
            highest = np.maximum.accumulate(columns.created[first:count])
            np.maximum(highest, self._newest, out=highest)
            late = columns.created[first:count] < highest
            self._newest = int(highest[-1])
            if late.any():
                columns.late[first:count] = late
                self._add_late(new[late])
            self.slots.put(columns.id[first:count], new)
            self._count_widths(columns.width[first:count], 1)
        self.live += count - first - len(doomed)

    def _add_late(self, slots: np.ndarray) -> None:
        need = self._late_count + len(slots)
        if need > len(self._late):
            self._late = np.concatenate([self._late[:self._late_count], np.zeros(need + 1024, np.int32)])
        self._late[self._late_count:need] = slots
        self._late_count = need

    def _count_widths(self, widths: np.ndarray, sign: int) -> None:
        changed = dict(self.widths)
        for width, count in Counter(widths.tolist()).items():
            changed[width] = changed.get(width, 0) + sign * count
        self.widths = {width: count for width, count in changed.items() if count}

    def _publish(self) -> None:
        matrix = self._matrix.view if self._matrix is not None else np.zeros((0, 1), "<f4")
        self.view = View(self.columns, matrix, self.codes, self.width, self.count, np.uint32(self._change),
                         self._late[:self._late_count], self._max_norm, self.widths)

    def _journal_rows(self, first: int, count: int) -> np.ndarray:
        rows = np.zeros(count - first, ROW)
        for name in ROW.names:
            rows[name] = getattr(self.columns, name)[first:count]
        return rows

    def _checkpointed(self, old: RowsFile) -> RowsFile:
        """Replace the journal by one of a single batch that says the same, and return it."""
        fresh = RowsFile.create(self.path + ".rows.new", old.identity)
        dead = np.flatnonzero(self.columns.died[:self.count] != ALIVE)
        fresh.append(Batch(self.codes.since(1), self._journal_rows(0, self.count), dead, self._max_norm), self.generation)
        os.rename(self.path + ".rows.new", self.path + ".rows")
        old.close()
        return fresh

    def _take(self, whole: Batch) -> None:
        """Fill the empty index from the journal. Raises Unusable where the numbers do not fit together."""
        rows, dead = whole.rows, whole.dead
        self.codes = Codes(whole.texts)
        self._written_codes = len(self.codes)
        axes = [rows[name] for name in ("agent", "project", "channel", "source", "model")]
        if len(rows) and (min(a.min() for a in axes) < 0 or max(a.max() for a in axes) >= len(self.codes) or rows["id"].min() < 0):
            raise Unusable("journal with impossible codes")
        if len(dead) and not 0 <= dead.min() <= dead.max() < len(rows):
            raise Unusable("journal with impossible slots")
        self.width, self.count, self._max_norm = self._matrix.identity.width, len(rows), whole.max_norm
        self.columns = Columns(max(_MIN_CAPACITY, len(rows) + len(rows) // 8))
        for name in ROW.names:
            getattr(self.columns, name)[:len(rows)] = rows[name]
        self.live = 0
        self._settle(0, [])
        slots = np.unique(dead)
        living = np.ones(len(rows), bool)
        living[slots] = False
        self.columns.died[slots] = self._change
        self.slots, self.widths, self.live = SlotMap(), {}, int(living.sum())
        if self.live:
            alive = np.flatnonzero(living)
            self.slots.put(self.columns.id[alive], alive)
            self._count_widths(self.columns.width[alive], 1)
        self._publish()


def row_sums(rows: np.ndarray) -> np.ndarray:
    """Return the checksum of each matrix row: its 64-bit words times odd weights, modulo 2**64. Shape (n,) uint64."""
    words = rows.view("<u8")
    return np.einsum("ij,j->i", words, _weights(words.shape[1]))


def _weights(count: int) -> np.ndarray:
    return _WEIGHTS[:count] if count <= len(_WEIGHTS) else np.resize(_WEIGHTS, count)


def is_usable(vector: np.ndarray) -> bool:
    """Say whether a stored vector counts: finite and not zero."""
    return bool(np.isfinite(vector).all() and vector.any())
