"""One kind's index: columns in memory beside the files of the rows, and the frozen view that readers scan.

A slot is a row of the matrix together with its entries in the columns. Slots are only ever added; a slot
dies by the number of the change that killed it, so a reader that holds an older view still sees it alive.
Slots stand in order of created_at but for *late* ones, rows older than one already there (an import of
old rows), which are listed apart and put in place by the next rebuild.

Threads: one thread at a time changes an index (the store's lock sees to it); any number reads ``view``.

Contract: window.near.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import compress, islice
from typing import Any

import numpy as np

from ...model.changes import VectorPut, VectorRows
from ...model.instants import created_seconds
from ...model.kinds import VectorKind
from ...storage.generations import NOTHING, Generation
from ...storage.vectors import created_column
from ..cosine import is_usable
from .books import FEW, Books
from .codes import Codes
from .files import Unusable
from .journal import ROW, ROW_NAMES, ROW_PACKING, Batch
from .rows import row_sum, row_sums
from .sketch import sketch, sketch_one
from .stored import StoredRows, move, remove
from .view import ALIVE, Columns, View

WRITE_CHUNK = 1024
_MIN_CAPACITY = 1024
_created = lru_cache(64)(created_seconds)  # stores come in bursts, and a stamp has whole seconds
_NO_SLOTS = np.zeros(0, np.int32)
NOTHING_HIDDEN = np.zeros(0, np.int64)
# A journal of this many batches is rewritten as one, so that a start never replays more than a share of the rows.
CHECKPOINT_BATCHES = 4096
# Below these counts a rebuild for tidiness is not worth its reading.
REBUILD_MIN_DEAD = 256
REBUILD_MIN_LATE = 20_000


class Index:
    """The index of one kind. Without a vector there are no files and ``width`` is 0; the first vector fixes it."""

    def __init__(self, kind: VectorKind, path: str, store_id: bytes, generation: Generation) -> None:
        self.kind, self.path, self.store_id, self.generation = kind, path, store_id, generation
        self.codes, self.books, self.columns = Codes(), Books(), Columns(_MIN_CAPACITY)
        self.width = self.count = 0
        self._written_codes = 1
        self._max_norm = 0.0
        self._stored: StoredRows | None = None
        self.hidden = NOTHING_HIDDEN  # what the next view leaves out of every scan
        self._publish()

    # -- life

    @classmethod
    def load(cls, kind: VectorKind, path: str, store_id: bytes, wanted: Generation) -> Index:
        """Open the files of a database; they must stand at the generation ``wanted``, or at the one before it.

        Raises Unusable with the reason when they do not fit.
        """
        self = cls(kind, path, store_id, NOTHING)
        self._stored, whole, reached = StoredRows.open(path, kind, store_id, wanted)
        try:
            self._take(whole, self._stored.width)
            self._stored.cut()
            self.generation = reached
        except BaseException:
            self.close(tidy=False)
            raise
        return self

    def close(self, tidy: bool = True) -> None:
        """Let go of the files; with ``tidy`` first make them small and quick to open. Raises OSError.

        Views held by readers stay valid: the last of them closes the rows.
        """
        stored, self._stored = self._stored, None
        if stored is None:
            return
        try:
            if tidy:
                if stored.long:
                    stored.checkpoint(self.path, self._whole(), self.generation)
                stored.give_back(self.count)
        finally:
            stored.close()

    def move_to(self, path: str) -> None:
        """Take the place of the index at ``path``. Raises OSError."""
        move(self.path, path, there=self._stored is not None)
        self.path = path

    def discard(self) -> None:
        """Close and remove an unfinished index."""
        self.close(tidy=False)
        remove(self.path)

    # -- change

    def fix_width(self, width: int) -> StoredRows:
        """Decide which width the matrix holds; once, while the index is empty. Returns the files. Raises OSError."""
        self._stored = StoredRows.create(self.path, self.kind, width, self.store_id)
        self.width = width
        self._publish()
        return self._stored

    def apply(self, puts: Iterable[VectorPut] | VectorRows, gone: Iterable[int], reached: Generation) -> None:
        """Bring one commit in: ``gone`` names every row whose earlier vector is void, ``puts`` what stands now.

        Each id occurs once in ``puts``. A vector that is not finite or is zero counts as none. Readers see
        all of it or nothing. Raises OSError when it cannot be written; the index is of no use after that.
        """
        doomed = [slot for slot in map(self.books.slots.get, gone) if slot >= 0]
        first = self.count
        added = self._written(puts)
        self._journal(added, doomed, reached)
        self.books.settle(self.columns, first, self.count, doomed)
        self.generation = reached
        self._publish()
        stored = self._stored
        if stored is not None and stored.batches > max(CHECKPOINT_BATCHES, self.count // 8):
            stored.checkpoint(self.path, self._whole(), reached)

    def hide(self, ids: np.ndarray) -> None:
        """Leave these rows, and no others, out of every scan from the next view on, which is made now."""
        self.hidden = ids
        self._publish()

    def wants_rebuild(self) -> str | None:
        """Return why a fresh index would be better, None while this one is fit."""
        books = self.books
        if self.count - books.live > max(REBUILD_MIN_DEAD, books.live):
            return "more than half of the slots are dead"
        if len(books.late) > max(REBUILD_MIN_LATE, self.count // 3):
            return "many rows out of order"
        if books.widths and books.widths.get(self.width, 0) < max(books.widths.values()):
            return "most vectors have another width"
        return None

    def differing(self, stored: Iterable[tuple[int, bytes]]) -> list[int]:
        """Return the ids among (id, vector) whose vector here is another one, byte for byte. Raises DamagedRows.

        A vector that counts as none must be absent, of one of another width only the width is known.
        """
        found: list[int] = []
        rows = iter(stored)
        while part := list(islice(rows, WRITE_CHUNK)):
            same = []
            for row_id, vector in part:
                slot = self.books.slots.get(row_id)
                if not self._agrees(slot, vector):
                    found.append(row_id)
                elif slot >= 0 and len(vector) == self.width * 4:
                    same.append((row_id, slot, vector))
            if same:
                ids, slots, vectors = zip(*same, strict=True)
                expected = np.frombuffer(b"".join(vectors), "<f4").reshape(len(same), -1)
                found += compress(ids, (self.view.rows(np.array(slots)) != expected).any(axis=1))
        return found

    def _agrees(self, slot: int, vector: bytes) -> bool:
        """Say whether a row that has this vector in the database may stand in this slot, -1 for none."""
        if len(vector) % 4 or not _is_usable(vector):
            return slot < 0
        return slot >= 0 and self.columns.width.item(slot) * 4 == len(vector)

    def living(self, ids: list[int]) -> tuple[View, np.ndarray] | None:
        """Return a view and the living slots of ``ids`` in it; None when a commit came in between."""
        slots = np.array([slot for slot in map(self.books.slots.get, dict.fromkeys(ids)) if slot >= 0], np.int64)
        view = self.view
        if len(slots) and (slots.max() >= view.count or not (view.columns.died[slots] > view.change).all()):
            return None
        return view, slots

    def verify(self) -> None:
        """Read every living row of both files. Raises DamagedRows."""
        view = self.view
        died, widths = view.columns.died[: view.count], view.columns.width[: view.count]
        living = np.flatnonzero((died > view.change) & (widths == view.width))
        for at in range(0, len(living), WRITE_CHUNK):
            part = living[at : at + WRITE_CHUNK]
            view.rows(part)
            view.held.verify(part, view.columns.sketch_sum)

    def status(self) -> dict[str, Any]:
        """Return counts and sizes for people: ``bytes`` on disk, ``memory_bytes`` of rows that were read into it."""
        stored = self._stored
        return {
            "rows": self.books.live,
            "dead": self.count - self.books.live,
            "late": len(self.books.late),
            "width": self.width or None,
            "generation": self.generation.number,
            "bytes": 0 if stored is None else stored.size,
            "memory_bytes": 0 if stored is None else stored.sketches.bytes_held,
        }

    # -- inside

    def _written(self, puts: Iterable[VectorPut] | VectorRows) -> np.ndarray:
        """Write rows into the next slots, invisible as yet, and return what the journal says of them."""
        first = self.count
        if isinstance(puts, VectorRows):
            self._write(puts)
        elif len(puts := list(puts)) <= FEW:
            return np.frombuffer(b"".join(map(self._write_one, puts)), ROW)
        else:
            for at in range(0, len(puts), WRITE_CHUNK):
                self._write(VectorRows.of(puts[at : at + WRITE_CHUNK]))
        return self._journal_rows(first)

    def _journal(self, added: np.ndarray, doomed: list[int], reached: Generation) -> None:
        """Let the journal say what one commit did."""
        if self._stored is None:
            return
        if len(added) or doomed:
            dead = np.array(doomed, np.int32) if doomed else _NO_SLOTS
            self._stored.append(Batch(self.codes.since(self._written_codes), added, dead, self._max_norm), reached)
            self._written_codes = len(self.codes)
        else:
            self._stored.seal(reached)

    def _write_one(self, put: VectorPut) -> bytes:
        """Write one row and return what the journal says of it. ``_write`` does the same for many."""
        width, slot = put.vector.size, self.count
        if width != self.width and not is_usable(put.vector):
            return b""
        stored = self._stored or self.fix_width(width)
        scale = residual = 0.0
        total = sketch_total = 0
        if width == self.width:
            made = sketch_one(put.vector, stored.sketches.stride)
            if made is None:
                return b""
            row = np.ascontiguousarray(put.vector, "<f4")
            if width != stored.matrix.stride:
                row = np.concatenate([row, np.zeros(stored.matrix.stride - width, "<f4")])
            sketched, scale, residual, norm = made
            total, sketch_total = row_sum(row), row_sum(sketched)
            self._max_norm = max(self._max_norm, norm)
        self._make_room(stored, slot + 1)
        if width == self.width:
            stored.write(slot, row[None], sketched[None])
        code = self.codes.add
        entries = (
            put.id,
            _created(put.created_at),
            total,
            sketch_total,
            scale,
            residual,
            code(put.agent_id),
            code(put.project_id),
            code(put.channel),
            code(put.source_id),
            code(put.model),
            width,
        )
        columns = self.columns
        for column, entry in zip(columns.journalled, entries, strict=True):
            column[slot] = entry
        self.count = slot + 1
        return ROW_PACKING.pack(*entries)

    def _write(self, rows: VectorRows) -> None:
        stored = self._stored
        if stored is None:
            fit = next((vector for vector in rows.vectors if _is_usable(vector)), None)
            if fit is None:
                return
            stored = self.fix_width(_bytes_of(fit) // 4)
        rows, sizes, block = self._counted(rows, stored.matrix.stride)
        first, count = self.count, self.count + len(sizes)
        if count == first:
            return
        self._make_room(stored, count)
        sketched, scales, residuals, norms = sketch(block, self.width, stored.sketches.stride)
        if (sizes == self.width).any():
            stored.write(first, block, sketched)
        columns = self.columns
        columns.id[first:count], columns.created[first:count] = rows.ids, created_column(rows.created)
        columns.width[first:count] = sizes
        for column, texts in (
            (columns.agent, rows.agents),
            (columns.project, rows.projects),
            (columns.channel, rows.channels),
            (columns.source, rows.sources),
            (columns.model, rows.models),
        ):
            known = {text: self.codes.add(text) for text in dict.fromkeys(texts)}
            column[first:count] = [known[text] for text in texts]
        columns.sum[first:count], columns.sketch_sum[first:count] = row_sums(block), row_sums(sketched)
        columns.scale[first:count], columns.residual[first:count] = scales, residuals
        self.count, self._max_norm = count, max(self._max_norm, float(norms.max()))

    def _counted(self, rows: VectorRows, stride: int) -> tuple[VectorRows, np.ndarray, np.ndarray]:
        """Return the rows whose vector counts, their widths, and the vectors: float32, (n, stride), else zeros."""
        sizes = np.array([_bytes_of(vector) // 4 for vector in rows.vectors], np.int32)
        fitting = sizes == self.width
        joined = b"".join(compress(rows.vectors, fitting))  # type: ignore[arg-type]  # arrays are buffers
        block = np.frombuffer(joined, "<f4").reshape(-1, self.width)
        if len(block) < len(sizes) or self.width < stride:
            padded = np.zeros((len(sizes), stride), "<f4")
            padded[fitting, : self.width] = block
            block = padded
        good = np.isfinite(block).all(axis=1) & block.any(axis=1)
        for row in np.flatnonzero(~fitting).tolist():
            good[row] = _is_usable(rows.vectors[row])
        if good.all():
            return rows, sizes, block
        kept = VectorRows(*(tuple(compress(getattr(rows, name), good)) for name in VectorRows.__slots__))
        return kept, sizes[good], block[good]

    def _make_room(self, stored: StoredRows, count: int) -> None:
        if count > len(self.columns):
            self.columns = self.columns.grown(self.count, max(count, len(self.columns) * 3 // 2))
        stored.reserve(count)

    def _publish(self) -> None:
        stored = self._stored
        self.view = View(
            self.columns,
            None if stored is None else stored.matrix,
            None if stored is None else stored.sketches,
            self.codes,
            self.width,
            self.count,
            np.uint32(self.books.change),
            self.books.late,
            self._max_norm,
            self.books.widths,
            self.books.models,
            self.hidden,
        )

    def _journal_rows(self, first: int) -> np.ndarray:
        rows = np.empty(self.count - first, ROW)
        for name, column in zip(ROW_NAMES, self.columns.journalled, strict=True):
            rows[name] = column[first : self.count]
        return rows

    def _whole(self) -> Batch:
        """Return everything that happened here as one batch."""
        dead = np.flatnonzero(self.columns.died[: self.count] != ALIVE)
        return Batch(self.codes.since(1), self._journal_rows(0), dead, self._max_norm)

    def _take(self, whole: Batch, width: int) -> None:
        """Fill the empty index from the journal. Raises Unusable where the numbers do not fit together."""
        count, dead = len(whole.rows), whole.dead
        self.codes = Codes(whole.texts)
        self._written_codes = len(self.codes)
        self.columns = Columns(max(_MIN_CAPACITY, count + count // 8))
        for name, column in zip(ROW_NAMES, self.columns.journalled, strict=True):
            column[:count] = whole.rows[name]
        _check(self.columns, count, dead, len(self.codes))
        self.width, self.count, self._max_norm = width, count, whole.max_norm
        self.books.settle(self.columns, 0, count, [])
        if len(dead):
            self.books.bury(self.columns, dead, count)
        self._publish()


def _check(columns: Columns, count: int, dead: np.ndarray, codes: int) -> None:
    """Raise Unusable where the entries of a journal name what cannot be."""
    if count:
        for axis in (columns.agent, columns.project, columns.channel, columns.source, columns.model):
            if not 0 <= axis[:count].min() <= axis[:count].max() < codes:
                raise Unusable("journal with impossible codes")
        if columns.id[:count].min() < 0:
            raise Unusable("journal with impossible ids")
    if len(dead) and not 0 <= dead.min() <= dead.max() < count:
        raise Unusable("journal with impossible slots")


def _bytes_of(vector: bytes | np.ndarray) -> int:
    return len(vector) if isinstance(vector, bytes) else vector.nbytes


def _is_usable(vector: bytes | np.ndarray) -> bool:
    return _bytes_of(vector) > 0 and is_usable(np.frombuffer(vector, "<f4"))
