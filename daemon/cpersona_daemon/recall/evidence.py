"""What is read of rows to score them: their vectors, and the words of the question as the agent's own rows weigh them.

Contract: blend.score, coverage.share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..model.kinds import Rid
from ..model.scope import Scope
from ..storage import stemmer, word_counts
from ..vectors.backend import Background
from .run import Run
from .scoring.coverage import Sought
from .scoring.reading import holder


def sought(run: Run) -> Sought:
    """Return the question weighed by the statistics of the agent's rows; other names that were given for it only
    add.
    """
    question, stem = run.question, stemmer.stemmer(run.conn)
    if not run.settings.fts_enabled:
        return Sought(question, stem)
    scope, at = run.query.scope, len(question.terms)
    found = word_counts.counted(run.conn, scope.agent_id, scope.kinds, (*question.terms, *question.other_terms))
    return Sought(question, stem, found.rows, found.terms[:at], found.terms[at:], found.all)


def unwanted(run: Run) -> Callable[[str], bool] | None:
    """Return a test for the texts that the question leaves out, None where it leaves out none."""
    return holder(run.question.without, stemmer.stemmer(run.conn)) if run.question.without else None


def cosines(run: Run, rids: Sequence[Rid]) -> dict[Rid, float]:
    """Return the cosine of the question with each row that has a vector to compare; none of a question without one."""
    if run.vector is None or not rids:
        return {}
    return run.vectors.cosines(run.vector.vector, rids, run.vector.model)


def vectors_of(run: Run, rids: Iterable[Rid]) -> tuple[list[Rid], np.ndarray]:
    """Return the rows that have a vector to compare, and those vectors: float32, unit length. The question has one."""
    assert run.vector is not None
    return run.vectors.rows_of(rids, len(run.vector.vector), run.vector.model)


def background(run: Run) -> Background | None:
    """Return what the agent's store is about in the mean, None without anything to average or compare.

    The whole agent is the background whatever part of it is asked: a narrow scope may hold nothing but answers.
    """
    if run.vector is None:
        return None
    whole, window = Scope(run.query.scope.agent_id), run.scans[0].stop
    return run.vectors.background(whole, window, len(run.vector.vector), run.vector.model)
