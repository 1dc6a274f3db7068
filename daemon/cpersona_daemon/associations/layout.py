"""What of an item's text an answer can hold: heads first, then excerpts in turn, while the budget lasts.

Pure functions.

Contract: associations.quotes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .quotes import Wanted, quote
from .records import Record

LEAST_DEFAULT_BUDGET, MOST_BUDGET = 4_000, 20_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """Characters: a head of the first ``full_heads`` items, a head after those, an excerpt (0 = as long as the row)."""

    head: int
    full_heads: int
    tail_head: int
    excerpt: int

    def head_limit(self, place: int) -> int:
        return self.head if place < self.full_heads else self.tail_head


@dataclass(slots=True)
class Layout:
    """The quoted text of each item that fits: ``content``, and ``excerpts`` where there are any.

    ``used`` characters of the ``budget`` are taken; so many heads and excerpts that did not fit were left out.
    """

    budget: int
    items: list[dict] = field(default_factory=list)
    used: int = 0
    heads_left_out: int = 0
    excerpts_left_out: int = 0


def default_budget(items: int, sizes: Sizes) -> int:
    """Return the budget of a call that names none: room for every head, at least and at most so many characters."""
    return min(MOST_BUDGET, max(LEAST_DEFAULT_BUDGET, sum(sizes.head_limit(place) for place in range(items))))


def lay_out(items: Sequence[tuple[Record, Sequence[Record]]], budget: int, sizes: Sizes, wanted: Wanted) -> Layout:
    """Quote the head of each item and then the others, one of each item in turn; the first head is always there.

    ``items`` are (head, others in the order of their worth). The items end with the first head that does not fit, so
    that what is returned is always the best of them.
    """
    out = Layout(budget)
    for place, (head, _) in enumerate(items):
        entry, size = _quoted(head, sizes.head_limit(place), wanted)
        if place and out.used + size > budget:
            out.heads_left_out = len(items) - place
            break
        out.items.append(entry)
        out.used += size
    waiting = [list(others) for _, others in items[: len(out.items)]]
    for turn in range(max(map(len, waiting), default=0)):
        for entry, others in zip(out.items, waiting, strict=True):
            if turn >= len(others):
                continue
            record = others[turn]
            excerpt, size = _quoted(record, sizes.excerpt or len(record.text), wanted)
            if out.used + size > budget:
                out.excerpts_left_out += 1
                continue
            entry.setdefault("excerpts", []).append({"ref": record.ref, **excerpt})
            out.used += size
    return out


def _quoted(record: Record, limit: int, wanted: Wanted) -> tuple[dict, int]:
    quoted = quote(record.text, limit, wanted)
    entry: dict[str, Any] = {"content": quoted.text}
    if not quoted.whole:
        entry |= {"content_len": len(record.text), "content_truncated": True}
    return entry, len(quoted.text)
