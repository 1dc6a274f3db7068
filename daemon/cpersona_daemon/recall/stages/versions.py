"""Two notes about one thing: a question about now gets the newer one first, a question about the past the older.

Works on the order alone, in rank space: whatever a row scored, it passes at most REACH others, and only ones that say
nearly the same and are a day or more away. Questions that point neither way keep their order.

Contract: versions.order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...model.kinds import Rid
from ...text.question import NOW
from .. import evidence
from ..run import Run
from ..scoring import similarity
from ..types import Candidate, Moved

REACH = 3  # places
LOOKED_AT = 20  # rows from the best on
ALIKE = 0.35  # similarity above the background from which two rows are about one thing
APART_SECONDS = 86_400.0


def order_versions(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Lift the version of a note that fits the question, where that is switched on and there are vectors to compare."""
    if not run.settings.version_order or run.vector is None or (asked := run.question.about) is None:
        return rows
    head = rows[:LOOKED_AT]
    instants = {rid: facts.instant for rid, facts in run.rows.facts(c.rid for c in head if not c.is_profile).items()}
    return reorder(rows, asked, instants, _alike(run, head))


def reorder(
    candidates: Sequence[Candidate], asked: str, instants: Mapping[Rid, float | None], alike: Callable[[Rid, Rid], bool]
) -> list[Candidate]:
    """Return the rows with each one that fits the question better lifted over the highest row within REACH that it is a
    version of.

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


def _alike(run: Run, rows: Sequence[Candidate]) -> Callable[[Rid, Rid], bool]:
    """Return a test for two of the rows: whether they say nearly the same. Those without a comparable vector never
    do.
    """
    rids, vectors = evidence.vectors_of(run, [c.rid for c in rows if not c.is_profile])
    above = similarity.alike(vectors, evidence.background(run), run.declared)
    place = {rid: i for i, rid in enumerate(rids)}
    return lambda one, other: one in place and other in place and bool(above[place[one], place[other]] >= ALIKE)
