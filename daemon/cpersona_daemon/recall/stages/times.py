"""A question that names a time: rows that tell of it a few places further up.

Works on the order alone, in rank space, behind the gate: no row comes or goes by it. A row of the time passes at most
REACH others, and only such that are of another time and not far better.

Contract: time.asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...model.kinds import Rid
from ...text.times import AskedTime, asked_time
from ..run import Run
from ..types import Candidate, Lifted

REACH = 3  # places
LOOKED_AT = 20  # rows from the best on
BETTER = 2.0  # by what factor a row is too good to be passed


def order_times(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Lift the rows that tell of the time that the question names, where that is switched on."""
    if not run.settings.time_order or (asked := asked_time(run.question.text, run.now)) is None:
        return rows
    run.account.time = asked
    return reorder(
        rows,
        asked,
        {
            rid: facts.instant
            for rid, facts in run.rows.facts(c.rid for c in rows[:LOOKED_AT] if not c.is_profile).items()
        },
    )


def reorder(candidates: Sequence[Candidate], asked: AskedTime, instants: Mapping[Rid, float | None]) -> list[Candidate]:
    """Return the rows with each one of the time lifted over the rows of other times before it, REACH at most.

    The same rows come back, those of the time in their order; the profile keeps its place at the end.
    """
    rows = [c for c in candidates if not c.is_profile]
    head: list[Candidate] = []
    of_the_time: list[bool] = []
    for row in rows[:LOOKED_AT]:
        is_of = asked.holds(instants.get(row.rid))
        passed = _passed(row, head, of_the_time) if is_of else 0
        place = len(head) - passed
        head.insert(place, row.with_(lifted=Lifted(asked.words, passed)) if passed else row)
        of_the_time.insert(place, is_of)
    return head + rows[LOOKED_AT:] + [c for c in candidates if c.is_profile]


def _passed(row: Candidate, head: Sequence[Candidate], of_the_time: Sequence[bool]) -> int:
    """Return how many of the last rows before a row it passes."""
    passed = 0
    for other, is_of in list(zip(head, of_the_time, strict=True))[: -REACH - 1 : -1]:
        if is_of or (other.blend or 0.0) > BETTER * (row.blend or 0.0):
            break
        passed += 1
    return passed
