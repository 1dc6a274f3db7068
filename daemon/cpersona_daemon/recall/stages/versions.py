"""Two notes about one thing: a question about now gets the newer one first, a question about the past the older.

Works on the order alone, in rank space: whatever a row scored, it passes at most REACH others, and only ones that say
nearly the same and are a day or more away. Questions that point neither way keep their order.

Pure functions.

Contract: issue "Honest recall", item 4; seeds/one-prior-function §3 (what orders never admits).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...model.kinds import Rid, ref_of
from ..scoring.coverage import dates_of
from ..types import Candidate

NOW, PAST = "now", "past"
REACH = 3  # places
LOOKED_AT = 20  # rows from the best on
ALIKE = 0.35  # similarity above the background from which two rows are about one thing
APART_SECONDS = 86_400.0

_NOW = re.compile(
    r"\b(now|nowadays|current(ly)?|today|present(ly)?|at the moment|these days|still|latest|newest|most recent|up to date|any ?more)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(was|were|did|had|used to|before|previous(ly)?|former(ly)?|earlier|original(ly)?|initial(ly)?|ago|back then|at first|in the past|no longer"
    r"|last (year|month|week|spring|summer|autumn|fall|winter|january|february|march|april|may|june|july|august|september|october|november|december))\b",
    re.IGNORECASE,
)
_PRESENT = re.compile(r"\b(is|are|am|do|does|has|have|can|will|should|must)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Moved:
    """A row stands before ``over``, which says nearly the same, because the question is about ``asked``; it passed ``places`` rows."""

    asked: str
    over: Rid
    places: int

    def told(self) -> dict:
        """Return it as answers and traces carry it."""
        return {"asked": self.asked, "over": ref_of(self.over), "places": self.places}


def asked_about(text: str) -> str | None:
    """Return whether a question is about now or the past; None where nothing in it tells.

    A word for now counts before a past tense, and a past tense or a date before a present one.
    """
    if _NOW.search(text):
        return NOW
    if _PAST.search(text) or dates_of(text):
        return PAST
    return NOW if _PRESENT.search(text) else None


def reorder(
    candidates: Sequence[Candidate], asked: str, instants: Mapping[Rid, float | None], alike: Callable[[Rid, Rid], bool]
) -> list[Candidate]:
    """Return the rows with each one that fits the question better lifted over the highest row within REACH that it is a version of.

    The same rows come back; the profile keeps its place at the end.
    """
    rows = [c for c in candidates if not c.is_profile]
    head = rows[:LOOKED_AT]
    for at in range(1, len(head)):
        row = head[at]
        for place in range(max(0, at - REACH), at):
            other = head[place]
            if _fits_better(instants.get(row.rid), instants.get(other.rid), asked) and alike(row.rid, other.rid):
                head.insert(place, head.pop(at).with_(version=Moved(asked, other.rid, at - place)))
                break
    return head + rows[LOOKED_AT:] + [c for c in candidates if c.is_profile]


def _fits_better(instant: float | None, other: float | None, asked: str) -> bool:
    if instant is None or other is None or abs(instant - other) < APART_SECONDS:
        return False
    return (instant > other) == (asked == NOW)
