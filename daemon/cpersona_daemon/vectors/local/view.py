"""What readers of an index see: a column per property of a slot, the rows, and one commit's frozen view of both.

Contract: window.near.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .codes import Codes
from .files import MatrixFile
from .held import HeldRows
from .journal import ROW, ROW_NAMES
from .rows import as_slice

ALIVE = np.uint32(0xFFFFFFFF)


class Columns:
    """The entries of every slot, one array each; what a scan compares lies together."""

    __slots__ = (*ROW_NAMES, "died", "late", "journalled")

    id: np.ndarray
    created: np.ndarray
    sum: np.ndarray
    sketch_sum: np.ndarray
    scale: np.ndarray
    residual: np.ndarray
    agent: np.ndarray
    project: np.ndarray
    channel: np.ndarray
    source: np.ndarray
    model: np.ndarray
    width: np.ndarray

    def __init__(self, capacity: int) -> None:
        for name in ROW_NAMES:
            setattr(self, name, np.zeros(capacity, ROW[name]))
        self.journalled = tuple(getattr(self, name) for name in ROW_NAMES)
        self.died = np.full(capacity, ALIVE)
        self.late = np.zeros(capacity, bool)

    def __len__(self) -> int:
        return len(self.id)

    def grown(self, count: int, capacity: int) -> Columns:
        """Return larger columns with the first ``count`` entries. Older views keep the ones they hold."""
        larger = Columns(capacity)
        for name in (*ROW_NAMES, "died", "late"):
            getattr(larger, name)[:count] = getattr(self, name)[:count]
        return larger


@dataclass(frozen=True, slots=True)
class View:
    """What a reader scans: consistent as of one commit, whatever happens meanwhile.

    ``matrix`` and ``sketches`` hold the rows as float32 and as int8; without a vector both are None. A slot is alive
    here when ``columns.died[slot] > change``. ``late`` lists the slots that stand out of order, ascending by
    created_at. ``hidden`` are ids that no scan takes, ascending. ``widths`` and ``models`` count the living rows: by
    width, and by the code of the model.
    """

    columns: Columns
    matrix: MatrixFile | None
    sketches: HeldRows | None
    codes: Codes
    width: int
    count: int
    change: np.uint32
    late: np.ndarray
    max_norm: float
    widths: dict[int, int]
    models: dict[int, int]
    hidden: np.ndarray

    def rows(self, slots: np.ndarray) -> np.ndarray:
        """Return the float32 rows at ``slots``, (n, width), read anew and compared with their sums.

        Raises DamagedRows.
        """
        assert self.matrix is not None  # without a vector there are no slots to ask for
        return self.matrix.read(slots, self.columns.sum[slots])[:, : self.width]

    @property
    def held(self) -> HeldRows:
        """The int8 rows, which whoever has slots to ask for may ask."""
        assert self.sketches is not None
        return self.sketches

    def comparable(self, slots: np.ndarray, model: str) -> np.ndarray:
        """Return those of the slots that have the matrix's width, and a model that is the same or not known."""
        if len(self.widths) > 1:
            slots = slots[self.columns.width[as_slice(slots)] == self.width]
        known = (
            {code for code in map(self.codes.find, (model, "")) if code is not None} if model else self.models.keys()
        )
        if self.models.keys() <= known:
            return slots
        allowed = np.zeros(len(self.codes), bool)
        allowed[list(known)] = True
        return slots[allowed[self.columns.model[as_slice(slots)]]]
