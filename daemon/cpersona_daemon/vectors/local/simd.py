"""The first pass over int8 codes by SIMD: a quarter of the bytes of the float32 scan, and cheaper sums.

Two threads share a large scan. They take pieces from one queue, so that a second thread that starts late, or
not at all on a busy machine, costs nothing; the calling thread alone would finish too.

Contract: vectors.exact.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .rows import as_slice
from .sketch import MAX_WIDTH, QuerySketch
from .topk import FirstPass, float32_scan
from .view import View

Kernel = Callable[..., Any]  # simsimd's ``cdist``
_LOG = logging.getLogger(__name__)
_GATHER_CHUNK = 512  # rows copied at a time: they stay in the processor's cache until they are multiplied
_PIECE_BYTES = 4 << 20  # what a thread takes at once at least: half a millisecond, well above what handing over costs
_PIECES = 8  # and no more pieces than needed: after each one a thread waits for its turn in the interpreter
_SHARED_FROM_BYTES = _PIECE_BYTES


def _kernel() -> Kernel | None:
    """Return simsimd's ``cdist``, None where it is missing or does not multiply as it should."""
    try:
        from simsimd import cdist
    except ImportError:
        return None
    # (``out=`` is never used: version 6.5 returns None there without counting the reference, which ends the process one
    # day.) Every bound rests on exact integer sums, so they are tried on the numbers that overflow first, once per
    # process.
    rows = np.random.default_rng(1).integers(-127, 128, (9, 1024)).astype(np.int8)
    rows[0], rows[1] = 127, -127
    for query in rows[:3]:
        if not np.array_equal(_products(cdist, query[None], rows), rows.astype(np.int64) @ query.astype(np.int64)):
            _LOG.warning("simsimd multiplies wrongly on this machine; vectors are scanned as float32")
            return None
    return cdist


def _products(cdist: Kernel, codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the products of a query's codes, (1, stride), with those of rows, (n, stride): int32, (n,).

    Frees the GIL meanwhile.
    """
    return np.asarray(cdist(codes, rows, "dot", out_dtype="int32"))[0]


class SimdPass:
    """A ``FirstPass``. ``close`` ends its threads."""

    def __init__(self, cdist: Kernel) -> None:
        self._cdist = cdist
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        helpers = min(processors, 4) - 1
        self._helpers = helpers
        self._pool = ThreadPoolExecutor(helpers, "vector-scan") if helpers else None

    def __call__(self, view: View, slots: np.ndarray, query: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        """Return scores and margins by the bound of sketch.py. Raises DamagedRows."""
        if view.width > MAX_WIDTH:
            return float32_scan(view, slots, query)
        where = as_slice(slots)
        asked = QuerySketch(query, view.held.stride, view.max_norm)
        scores = np.multiply(self._multiply(view, slots, asked.codes), view.columns.scale[where], dtype=np.float64)
        scores *= asked.scale
        margins = np.multiply(view.columns.residual[where], asked.per_residual, dtype=np.float64)
        margins += asked.fixed
        return scores, margins

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def _multiply(self, view: View, slots: np.ndarray, codes: np.ndarray) -> np.ndarray:
        row_bytes, count = view.held.stride, len(slots)
        if self._pool is None or count * row_bytes < _SHARED_FROM_BYTES:
            return self._piece(view, slots, codes)
        products = np.empty(count, np.int32)
        step = max(_GATHER_CHUNK, _PIECE_BYTES // row_bytes, count // _PIECES)
        pieces = deque(range(0, count, step))

        def work() -> None:
            while True:
                try:
                    at = pieces.popleft()
                except IndexError:
                    return
                products[at : at + step] = self._piece(view, slots[at : at + step], codes)

        try:
            shared = [self._pool.submit(work) for _ in range(self._helpers)]
        except RuntimeError:  # the store is being closed
            shared = []
        work()
        for future in shared:
            if not future.cancel():
                future.result()
        return products

    def _piece(self, view: View, slots: np.ndarray, codes: np.ndarray) -> np.ndarray:
        products = np.empty(len(slots), np.int32)
        for first, end, base, rows in view.held.parts(slots, view.columns.sketch_sum):
            self._part(rows, slots[first:end] - base, codes, products[first:end])
        return products

    def _part(self, sketches: np.ndarray, wanted: np.ndarray, codes: np.ndarray, products: np.ndarray) -> None:
        """Write the products of the ``wanted`` rows, which ascend, into ``products``."""
        where = as_slice(wanted)
        if isinstance(where, slice):
            products[:] = _products(self._cdist, codes, sketches[where])
            return
        gathered = np.empty((min(_GATHER_CHUNK, len(wanted)), sketches.shape[1]), np.int8)
        at = 0
        while at < len(wanted):
            end = _dense_run(wanted, at, len(wanted))
            if end > at:
                low = int(wanted[at])
                near = _products(self._cdist, codes, sketches[low : int(wanted[end - 1]) + 1])
                products[at:end] = near[wanted[at:end] - low]
            else:
                end = min(at + _GATHER_CHUNK, len(wanted))
                part = np.take(sketches, wanted[at:end], axis=0, out=gathered[: end - at], mode="clip")
                products[at:end] = _products(self._cdist, codes, part)
            at = end


def _dense_run(wanted: np.ndarray, at: int, end: int) -> int:
    """Return the end of a stretch from ``at`` on in which every other row is wanted at least, else ``at``."""
    size = end - at
    while size >= 16 or size == end - at > 0:
        if wanted[at + size - 1] - wanted[at] < 2 * size:
            return at + size
        size //= 2
    return at


def first_pass() -> FirstPass:
    """Return the quickest first pass of this process."""
    cdist = _kernel()
    return float32_scan if cdist is None else SimdPass(cdist)
