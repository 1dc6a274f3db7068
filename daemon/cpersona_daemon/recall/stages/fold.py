"""Many rows of one source that say nearly the same: looking behind them for others, and showing them as one with a
count.

Contract: alike.folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from ...model.kinds import MEMORY, Rid
from ...text.question import PAST
from .. import evidence
from ..run import Account, Run
from ..scoring import blend, folding
from ..types import Candidate
from .retrieve import retrieve
from .weigh import weigh

ALIKE = 0.65  # least cosine of two rows of the same words: other numbers and days are far apart to an embedder
EQUAL = 0.05  # rows whose blend is so near to that of the best are as good, and the newest of them stands for all
# By what factor the lists reach further, once, and how far at most: to weigh more rows would take too long.
DEEPER, DEEPEST = 8, 800
FAR_BEHIND = 0.25  # a row with less than this part of the best score is little worth showing


def look_behind(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Ask the channels for more rows where most of what a full list holds is alike or left out.

    Not where the last of its alike rows is far behind the best one: what comes after it is further still.
    """
    if run.depth >= DEEPEST or not _something_is_hidden(run, rows):
        return rows
    run.look_deeper(min(run.depth * DEEPER, DEEPEST))
    run.account = Account()
    return weigh(run, retrieve(run, []))


def _something_is_hidden(run: Run, rows: Sequence[Candidate]) -> bool:
    full = [ranked for ranked in run.lists if len(ranked.rids) >= run.depth]
    if any(2 * len(ranked.excluded) > run.depth for ranked in full):
        return True
    near = _near(rows) if full and _folds(run) else set()
    lists = [set(ranked.rids) for ranked in full if ranked.rids[-1] in near]
    alike = folding.groups(_texts(run, dict.fromkeys(chain(*lists)))) if lists else []
    return any(2 * _spared(rids, alike) > run.depth for rids in lists)


def _near(rows: Sequence[Candidate]) -> set[Rid]:
    """Return the rows that are not far behind the best one."""
    best = (rows[0].blend or 0.0) if rows else 0.0
    least = max(blend.GATE * blend.FOLLOWING, FAR_BEHIND * best)
    return {c.rid for c in rows if (c.blend or 0.0) >= least}


def _spared(rids: set[Rid], alike: Sequence[Sequence[Rid]]) -> int:
    """Return how many fewer rows there are where each group is one."""
    return sum(max(0, len(rids.intersection(group)) - 1) for group in alike)


def fold(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Let the best of the rows that are alike stand for all of them; of equals the newest, where nothing is asked about
    the past.
    """
    if not _folds(run):
        return rows
    by_rid = {c.rid: c for c in rows}
    found = folding.groups(_texts(run, by_rid))
    if not found:
        return rows
    kinships = _Kinships(run, [rid for group in found for rid in group])
    shown: dict[Rid, Candidate | None] = {}
    for group in found:
        for alike in kinships.parted([by_rid[rid] for rid in group]):
            shown |= _folded(run, alike)
    return [c for row in rows if (c := shown.get(row.rid, row)) is not None]


def _folded(run: Run, alike: Sequence[Candidate]) -> dict[Rid, Candidate | None]:
    """Return what is shown at the place of each of some rows that are alike: at that of the best, one for all."""
    best = _foremost(run, alike)
    others = tuple(c.rid for c in alike if c is not best)
    run.account.folded |= dict.fromkeys(others, best.rid)
    return {c.rid: None for c in alike} | {alike[0].rid: best.with_(folded=others)}


def _folds(run: Run) -> bool:
    return run.settings.fold_alike and run.query.fold and not run.query.deep


def _texts(run: Run, rids: Iterable[Rid]) -> dict[Rid, str]:
    return {rid: run.read[rid].text for rid in rids if rid[0] == MEMORY and rid in run.read}


def _foremost(run: Run, alike: Sequence[Candidate]) -> Candidate:
    """Return the row that stands for all: the newest of those that are as good as the best."""
    best = alike[0]
    if run.question.about == PAST:
        return best
    equal = [
        c
        for c in alike
        if run.read[c.rid].terms == run.read[best.rid].terms and (c.blend or 0.0) >= (best.blend or 0.0) - EQUAL
    ]
    return max(equal, key=lambda c: (run.read[c.rid].instant or 0.0, c.rid[1]))


class _Kinships:
    """What else rows must share that are alike in words: their source, and where they have vectors, the meaning."""

    def __init__(self, run: Run, rids: Sequence[Rid]) -> None:
        self._run, self._sources = run, run.rows.sources([row_id for _, row_id in rids])
        found, vectors = evidence.vectors_of(run, rids) if run.vector is not None else ([], None)
        self._vectors = {} if vectors is None else dict(zip(found, vectors, strict=True))

    def parted(self, rows: list[Candidate]) -> list[list[Candidate]]:
        """Return the groups of rows that may stand as one, LEAST_ROWS at least; each begins with its best."""
        out = []
        while len(rows) >= folding.LEAST_ROWS:
            alike = [c for c in rows if self._belongs(c.rid, rows[0].rid)]
            if len(alike) >= folding.LEAST_ROWS:
                out.append(alike)
            taken = {c.rid for c in alike}
            rows = [c for c in rows if c.rid not in taken]
        return out

    def _belongs(self, rid: Rid, best: Rid) -> bool:
        """Tell whether a row says no more of the question than the best one, in the same voice and meaning."""
        if rid == best:
            return True
        one, other = self._vectors.get(rid), self._vectors.get(best)
        if one is not None and other is not None and float(one @ other) < ALIKE:
            return False
        further = self._run.read[rid].terms & ~self._run.read[best].terms
        return not further and self._sources.get(rid[1]) == self._sources.get(best[1])
