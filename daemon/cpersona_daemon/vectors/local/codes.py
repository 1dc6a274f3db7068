"""Axis values as small integers, so that a scan compares numbers and never text."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

import numpy as np

NO_VALUE = 0  # the code of None: no text ever gets it
_PREFIXES_KEPT = 32
_PAGE_BITS = 12
_PAGE = 1 << _PAGE_BITS


class Codes:
    """Texts and their codes, 1 and up in order of arrival. One thread adds; any thread looks up."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[str] = [""]  # in the place of None, which is no text
        self._codes: dict[str | None, int] = {None: NO_VALUE}
        self._prefixes: OrderedDict[str, np.ndarray] = OrderedDict()
        self._guard = threading.Lock()
        for text in texts:
            self.add(text)

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, text: str | None) -> int:
        """Return the code of a text, a new one for a text not seen before."""
        code = self._codes.get(text)
        if code is None:
            code = len(self._texts)
            self._texts.append(text or "")
            self._codes[text] = code
        return code

    def find(self, text: str | None) -> int | None:
        """Return the code of a text, None when no row ever bore it."""
        return self._codes.get(text)

    def since(self, code: int) -> list[str]:
        """Return the texts from ``code`` on, in order of their codes."""
        return self._texts[max(code, 1) :]

    def starting_with(self, prefix: str) -> np.ndarray:
        """Return a bool per code: whether its text starts with ``prefix``.

        Only texts new since the last call are looked at.
        """
        with self._guard:
            known = self._prefixes.pop(prefix, np.zeros(1, bool))
            fresh = self._texts[len(known) :]
            if fresh:
                known = np.concatenate([known, np.array([text.startswith(prefix) for text in fresh], bool)])
            self._prefixes[prefix] = known
            if len(self._prefixes) > _PREFIXES_KEPT:
                self._prefixes.popitem(last=False)
            return known


class SlotMap:
    """Which slot holds the living vector of a row id: pages of int32, four bytes a row where ids are dense."""

    def __init__(self) -> None:
        self._pages: dict[int, np.ndarray] = {}

    def get(self, row_id: int) -> int:
        """Return the slot of a row, -1 when it has none."""
        page = self._pages.get(row_id >> _PAGE_BITS)
        return -1 if page is None else int(page[row_id & (_PAGE - 1)])

    def set(self, row_id: int, slot: int) -> None:
        """Note the slot of one row; -1 forgets it."""
        self._page(row_id >> _PAGE_BITS)[row_id & (_PAGE - 1)] = slot

    def put(self, ids: np.ndarray, slots: np.ndarray) -> None:
        """Note the slots of many rows; -1 forgets a row. Of a row named twice the last one counts."""
        numbers = ids >> _PAGE_BITS
        if not (numbers[1:] >= numbers[:-1]).all():
            order = np.argsort(numbers, kind="stable")
            ids, slots, numbers = ids[order], slots[order], numbers[order]
        edges = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(ids)]
        for first, end in zip(edges, edges[1:], strict=False):
            if first < end:
                self._page(int(numbers[first]))[ids[first:end] & (_PAGE - 1)] = slots[first:end]

    def _page(self, number: int) -> np.ndarray:
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = np.full(_PAGE, -1, np.int32)
        return page
