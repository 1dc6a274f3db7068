"""The int8 form of a vector, and how far a score computed from it can be off.

A row x becomes s c + e: c are int8 codes, s a scale, e what the codes leave out. A query q likewise becomes
t d + f. The quick score is s t (c . d): an integer sum, exact in any order, times one number.

    x . q - s t (c . d)  =  s c . (q - t d) + e . q  =  (x - e) . f + e . q
    |x . q - s t (c . d)|  <=  |x| |f| + |e| |f| + |e| |q|  <=  N |f| + r (|f| + |q|)

by Cauchy-Schwarz, for every N >= |x| and r >= |e|. So an r per row and one N for all bound the error, and
they need not be the exact norms, only never too small:

- s and c may be anything at all: e is taken as it comes out. s c is exact in float64 (24 + 7 bits), each
  difference is rounded once, by 2^-53 of itself, and the norm of n of them is off by less than (n + 2) 2^-53
  of itself. Raising it by 2^-19 of itself covers that for n < 2^32, and its rounding to float32 (2^-24 of itself,
  or half of the smallest step, which is added as well). N is raised likewise.
- s t is exact (24 + 24 bits), c . d is an integer below 2^31 (``MAX_WIDTH``), so the quick score is rounded
  twice, by less than 2^-52 (N + r) (|q| + |f|). What is compared with it is itself computed in float64, off by
  less than n 2^-52 N |q|. ``QuerySketch`` adds (n + 16) 2^-52 N (|q| + |f|) for both, and raises the factor of
  r by 2^-19, which covers the share of r.

Contract: vectors.exact.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

MAX_WIDTH = (2**31 - 1) // 127**2  # wider, and the sum of the products might not fit into 32 bits
_LOWEST_SCALE = np.float32(2.0**-100)  # rows so close to zero keep no codes: their whole norm is the residual
_RAISED = 1 + 2.0**-19
_LEAST = 2.0**-148  # twice float32's smallest step
_HIGHEST = float(np.finfo(np.float32).max)
_CHUNK = 128  # rows whose float64 forms stay in the processor's cache


def sketch(rows: np.ndarray, width: int, stride: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (codes, scales, residuals, norms) of float32 rows, finite and of shape (n, >= width).

    codes: int8, (n, stride), zeros after ``width``. The others: float32, (n,); residuals and norms are upper bounds.
    """
    count = len(rows)
    codes = np.zeros((count, stride), np.int8)
    scales, residuals, norms = np.empty(count, np.float32), np.empty(count, np.float32), np.empty(count, np.float32)
    for at in range(0, count, _CHUNK):
        end = min(at + _CHUNK, count)
        exact = rows[at:end, :width].astype(np.float64)
        norms[at:end] = _raised(np.sqrt(np.einsum("ij,ij->i", exact, exact)))
        scale = (np.maximum(exact.max(axis=1), -exact.min(axis=1)) / 127).astype(np.float32)
        scale[scale < _LOWEST_SCALE] = 0
        wide = scale.astype(np.float64)
        rounded = exact * np.divide(1.0, wide, out=np.zeros(end - at), where=wide > 0)[:, None]
        np.rint(rounded, out=rounded)
        codes[at:end, :width] = rounded
        rounded *= wide[:, None]
        exact -= rounded
        scales[at:end], residuals[at:end] = scale, _raised(np.sqrt(np.einsum("ij,ij->i", exact, exact)))
    return codes, scales, residuals, norms


def sketch_one(row: np.ndarray, stride: int) -> tuple[np.ndarray, float, float, float] | None:
    """Return what ``sketch`` says of a single row of shape (width,); None for one that is zero or not finite."""
    exact = row.astype(np.float64)
    square = float(exact.dot(exact))
    if not 0 < square < inf:
        return None
    norm = _raised_one(sqrt(square))
    codes = np.zeros(stride, np.int8)
    scale = np.float32(abs(exact.item(np.abs(exact).argmax())) / 127)
    if scale < _LOWEST_SCALE:
        return codes, 0.0, norm, norm
    wide = float(scale)
    rounded = exact * (1.0 / wide)
    np.rint(rounded, out=rounded)
    codes[: len(row)] = rounded
    rounded *= wide
    exact -= rounded
    return codes, wide, _raised_one(sqrt(exact.dot(exact))), norm


def _raised(values: np.ndarray) -> np.ndarray:
    """Return float64 numbers as float32 ones that are never smaller, infinity where float32 ends."""
    with np.errstate(over="ignore"):
        return (values * _RAISED + _LEAST).astype(np.float32)


def _raised_one(value: float) -> float:
    higher = value * _RAISED + _LEAST
    return higher if higher < _HIGHEST else inf


class QuerySketch:
    """A query's int8 form: ``codes`` of shape (1, stride), ``scale``, and the two numbers of the bound.

    A row's margin is residual * ``per_residual`` + ``fixed``; ``largest_norm`` bounds the norms of all rows.
    """

    __slots__ = ("codes", "scale", "per_residual", "fixed")

    def __init__(self, query: np.ndarray, stride: int, largest_norm: float) -> None:
        made = sketch_one(query, stride)
        assert made is not None  # a question that is none was answered before
        codes, scale, residual, norm = made
        self.codes, self.scale = codes[None], float(scale)
        both = float(norm) + float(residual)
        self.per_residual = both * _RAISED
        self.fixed = float(largest_norm) * (float(residual) + (len(query) + 16) * 2.0**-52 * both)
