"""A long text as windows of a model, and their vectors as one.

Contract: embedding.builtin.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def split(ids: list[int], longest: int) -> list[list[int]]:
    """Cut token ids into as few windows as hold them, of nearly equal length; no ids make one empty window.

    Equal lengths, because a last window of three tokens would be a sentence torn from its context.
    """
    count = max(1, -(-len(ids) // longest))
    bounds = [len(ids) * n // count for n in range(count + 1)]
    return [ids[low:high] for low, high in zip(bounds, bounds[1:], strict=False)]


def embed_windows(ids: list[int], longest: int, encode: Callable[[list[int]], np.ndarray]) -> np.ndarray:
    """Return the unit vector of a text: the mean of its windows' unit vectors, weighted by their tokens.

    Each window is encoded by itself: int8 activations are scaled over everything in a run, so a text in
    a batch would get another vector than the same text alone.
    """

    def weighed(window: list[int]) -> np.ndarray:
        vector = encode(window).astype(np.float64)
        vector *= max(1, len(window)) / np.sqrt(vector @ vector)
        return vector

    first, *others = split(ids, longest)
    total = weighed(first)
    for window in others:
        total = total + weighed(window)
    return total / np.sqrt(total @ total)
