"""What is read of rows to score them: their vectors, and the words of the question as the agent's own rows weigh them.

Contract: blend.score, coverage.share, passages.best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from ..model.kinds import PASSAGES, Kind, Rid
from ..model.scope import Scope
from ..storage import stemmer, word_counts
from ..text.passages import Span
from ..vectors.backend import Background
from .run import Run
from .scoring import similarity
from .scoring.coverage import Sought
from .scoring.reading import holder
from .types import Meant


def sought(run: Run) -> Sought:
    """Return the question weighed by the statistics of the agent's rows; other names that were given for it only
    add.
    """
    question, stem = run.question, stemmer.stemmer(run.conn)
    if not run.settings.fts_enabled:
        return Sought(question, stem)
    scope, at = run.query.scope, len(question.terms)
    terms = (*question.terms, *question.other_terms)
    found = word_counts.counted(run.conn, scope.agent_id, scope.kinds, terms)
    former = [len(run.rows.of_then_holding(term)) for term in terms]
    counts = [of_today + of_then for of_today, of_then in zip(found.terms, former, strict=True)]
    return Sought(question, stem, found.rows + len(run.rows.then), counts[:at], counts[at:], found.all)


def unwanted(run: Run) -> Callable[[str], bool] | None:
    """Return a test for the texts that the question leaves out, None where it leaves out none."""
    return holder(run.question.without, stemmer.stemmer(run.conn)) if run.question.without else None


def cosines(run: Run, rids: Sequence[Rid]) -> dict[Rid, float]:
    """Return the cosine of the question with each row that has a vector to compare; none of a question without one."""
    if run.vector is None or not rids:
        return {}
    return run.rows.cosines(run.vector.vector, rids, run.vector.model)


def vectors_of(run: Run, rids: Iterable[Rid]) -> tuple[list[Rid], np.ndarray]:
    """Return the rows that have a vector to compare, and those vectors: float32, unit length. The question has one."""
    assert run.vector is not None
    return run.rows.vectors_of(rids, len(run.vector.vector), run.vector.model)


def meant(
    run: Run,
    rids: Sequence[Rid],
    form: similarity.Form,
    behind: Background | None,
    among: Mapping[Rid, Mapping[int, Span]],
) -> dict[Rid, list[Meant]]:
    """Return of the rows that have a vector to compare how near they are to the question, ``behind`` which the store
    stands: of a long one how near the passages ``among`` are, by their ids. The question has a vector.
    """
    assert run.vector is not None
    found, vectors = vectors_of(run, rids)
    place = {rid: at for at, rid in enumerate(found)}
    whole = list(range(len(found)))
    spans: list[Span | None] = [None] * len(found)
    listed: dict[Rid, tuple[int, Span]] = {
        (PASSAGES[Kind(rid[0])], passage_id): (place[rid], span)
        for rid, of_one in among.items()
        if rid in place
        for passage_id, span in of_one.items()
    }
    if listed:
        named, of_passages = run.rows.vectors_of(listed, len(run.vector.vector), run.vector.model)
        vectors = np.concatenate([vectors, of_passages])
        whole += [listed[name][0] for name in named]
        spans += [listed[name][1] for name in named]
    cosines, similarities = similarity.similarities(
        vectors, run.vector.vector, behind, run.declared, form, np.array(whole, np.int64)
    )
    out: dict[Rid, list[Meant]] = {}
    for at, *of_one in zip(whole, cosines.tolist(), similarities.tolist(), spans, strict=True):
        out.setdefault(found[at], []).append(Meant(*of_one))
    return {rid: of_its_passages or [of_row] for rid, (of_row, *of_its_passages) in out.items()}


def background(run: Run) -> Background | None:
    """Return what the agent's store is about in the mean, None without anything to average or compare.

    The whole agent is the background whatever part of it is asked: a narrow scope may hold nothing but answers.
    """
    if run.vector is None:
        return None
    whole, window = Scope(run.query.scope.agent_id), run.scans[0].stop
    return run.vectors.background(whole, window, len(run.vector.vector), run.vector.model)
