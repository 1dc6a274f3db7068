"""Weighing candidates for the blend: their texts, vectors and neighbours are read, and the pure functions score them.

Contract: issue "Honest recall", items 2 and 3; contracts.md §13 "blend".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import apsw

from ...model.kinds import MEMORY, Rid
from ...model.scope import Scope
from ...storage import candidates as stored
from ...storage import existence, lexical
from ...text.language import is_english
from ...text.terms import parse_query
from ..exclusion import matcher
from ..scoring import blend
from ..scoring.coverage import Question, Reading, share_of_words
from ..types import FAR, KEYWORD, NEAR, PART, Candidate, Query, Ranked
from . import versions

if TYPE_CHECKING:
    from ..channels.vectors import Notes, VectorQuery
    from ..pipeline import Bench

WHOLE = 0.999  # the coverage of a row that holds the whole question, whatever rounding left of it
PART_POWER = (
    3  # a part of a word says less than its share: postgresq says nearly all that postgresql does, art nothing of start
)
_VECTOR_LISTS = (NEAR, PART, FAR)


def weigh(
    conn: apsw.Connection, bench: Bench, vector: VectorQuery | None, query: Query, lists: Sequence[Ranked], notes: Notes
) -> list[Candidate]:
    """Return the rows of the lists, and the neighbours that the best of them lift, with their blend, best first.

    Where there is no vector, of equal scores the row that says most of the question's words comes first; of what is equal then,
    the newest. (The order of the full-text lists hangs on what other agents store.) A row that scores nothing and that no word
    found is no candidate. ``notes`` is told which those are, and how much better the question must be met for its unfamiliar words.
    """
    return _Weighing(conn, bench, vector, query, lists, notes).run()


def identified(conn: apsw.Connection, bench: Bench, query: Query, rids: Iterable[Rid]) -> set[Rid]:
    """Return which rows hold an identifier of the question that few rows hold, or all of a question that has an identifier."""
    if not any(term.kind == "identifier" for term in parse_query(query.text).terms):
        return set()
    question = _asked(conn, bench, query)
    held = {rid: question.held(Reading(text, instant)) for rid, (text, instant) in stored.readings(conn, rids).items()}
    return {rid for rid, part in held.items() if part.identified or part.coverage >= WHOLE}


def alike(
    bench: Bench, vector: VectorQuery, query: Query, candidates: Sequence[Candidate]
) -> Callable[[Rid, Rid], bool]:
    """Return a test for two of the first rows: whether they say nearly the same. Rows without a comparable vector never do."""
    rids, rows = bench.vectors.rows_of(
        [c.rid for c in candidates[: versions.LOOKED_AT] if not c.is_profile], len(vector.vector), vector.model
    )
    above, place = (
        blend.alike(rows, _background(bench, vector, query), bench.profile),
        {rid: i for i, rid in enumerate(rids)},
    )
    return lambda one, other: one in place and other in place and above[place[one], place[other]] >= versions.ALIKE


def _background(bench: Bench, vector: VectorQuery, query: Query) -> blend.Background | None:
    # The whole agent is the background whatever part of it is asked: a narrow scope may hold nothing but answers.
    averaged = bench.vectors.background(
        Scope(query.scope.agent_id), bench.settings.max_memories, len(vector.vector), vector.model
    )
    return None if averaged is None else blend.Background(*averaged)


def _asked(conn: apsw.Connection, bench: Bench, query: Query) -> Question:
    """Read the question against the statistics of the agent's rows; other names that were given for it only add."""
    written = parse_query(query.text)
    known = {term.text for term in written.terms}
    also = [term for text in query.also_lexical for term in parse_query(text).terms if term.text not in known]
    if not bench.settings.fts_enabled:
        return Question(query.text, written, lexical.stemmer(conn), also=also)
    found = lexical.counted(conn, query.scope.agent_id, query.scope.kinds, (*written.terms, *also))
    at = len(written.terms)
    return Question(
        query.text, written, lexical.stemmer(conn), found.rows, found.terms[:at], also, found.terms[at:], found.all
    )


class _Weighing:
    def __init__(
        self,
        conn: apsw.Connection,
        bench: Bench,
        vector: VectorQuery | None,
        query: Query,
        lists: Sequence[Ranked],
        notes: Notes,
    ):
        self._conn, self._bench, self._vector, self._query, self._lists = conn, bench, vector, query, lists
        self._excluded = matcher(query.exclude)
        self._question, self._notes = _asked(conn, bench, query), notes
        self._english = is_english(query.text)
        self._background = None if vector is None else _background(bench, vector, query)
        self._scored: dict[Rid, blend.Scored] = {}
        self._said: dict[Rid, float] = {}
        self._held = 0  # the terms that some row weighed holds
        self._literal = {
            rid for ranked in lists if ranked.channel == KEYWORD for rid in ranked.rids
        }  # hold the question's very text

    def run(self) -> list[Candidate]:
        rids = dict.fromkeys(rid for ranked in self._lists for rid in ranked.rids if rid not in ranked.excluded)
        lexical_rids = {rid for ranked in self._lists if ranked.channel not in _VECTOR_LISTS for rid in ranked.rids}
        self._score(rids)
        self._notes.unfamiliarity = self._unfamiliarity()
        lent = self._lent()
        weightless = (rid for rid, scored in self._scored.items() if scored.own <= 0 and rid not in lent)
        self._notes.weightless = frozenset(weightless) - lexical_rids
        found = []
        for rid, scored in self._scored.items():
            if rid in self._notes.weightless:
                continue
            scored = blend.with_lent(scored, lent.get(rid, 0.0))
            found.append(
                Candidate(
                    rid,
                    cosine=scored.cosine,
                    blend=scored.score,
                    coverage=scored.coverage,
                    identified=scored.identified,
                    scored=scored,
                    lexical=rid in lexical_rids,
                )
            )
        found.sort(key=lambda c: (-c.blend, -self._said.get(c.rid, 0.0), -c.rid[1]))
        return found

    def _score(self, rids: Iterable[Rid]) -> None:
        readings = stored.readings(self._conn, rids)
        # In the order asked for, whatever order they were read in.
        readings = {
            rid: readings[rid] for rid in rids if rid in readings and not self._is_excluded(rid, readings[rid][0])
        }
        meant = self._similarities(readings)
        for rid, (text, instant) in readings.items():
            reading = Reading(text, instant)
            held = self._question.held(reading)
            if self._vector is None:
                self._said[rid] = self._question.said(reading)
            coverage = (
                max(held.coverage, share_of_words(text, self._query.text) ** PART_POWER)
                if rid in self._literal
                else held.coverage
            )
            cosine, similarity = meant.get(rid, (None, None))
            self._scored[rid] = blend.scored(cosine, similarity, coverage, held.identified)
            self._held |= held.terms

    def _unfamiliarity(self) -> float:
        """Return by what factor better the question must be met: the same whatever rows it is asked for or spared."""
        if not self._scored:
            return 1.0
        rows = self._question.rows if self._background is None else self._background.total
        unmet = self._question.unmet(
            rows, self._held, lambda term: existence.holds(self._conn, term, self._query.scope)
        )
        return blend.unfamiliarity(rows, unmet.name, unmet.familiar, unmet.share)

    def _is_excluded(self, rid: Rid, text: str) -> bool:
        # An episode is compared as displayed, which the lists have done already; neighbours are memories.
        return self._excluded is not None and rid[0] == MEMORY and self._excluded(text)

    def _similarities(self, rids: Iterable[Rid]) -> dict[Rid, tuple[float, float]]:
        if self._vector is None:
            return {}
        found, rows = self._bench.vectors.rows_of(rids, len(self._vector.vector), self._vector.model)
        cosines, similarities = blend.similarities(
            rows, self._vector.vector, self._background, self._bench.profile, self._english
        )
        return dict(zip(found, zip(cosines.tolist(), similarities.tolist(), strict=True), strict=True))

    def _lent(self) -> dict[Rid, float]:
        """Return what neighbours lend to the best memories and get from them."""
        leaders = sorted(
            (rid for rid in self._scored if rid[0] == MEMORY and self._scored[rid].own > 0),
            key=lambda rid: -self._scored[rid].own,
        )[: blend.LEADERS]
        pairs = [
            ((MEMORY, a), (MEMORY, b))
            for a, b in stored.beside(self._conn, (row_id for _, row_id in leaders), blend.NEIGHBOUR_SECONDS)
        ]
        self._score([rid for rid in dict.fromkeys(other for _, other in pairs) if rid not in self._scored])
        return blend.lend(self._scored, pairs)
