"""Weighing candidates for the blend: their texts, vectors and neighbours are read, and the pure functions score them.

Contract: blend.score, blend.gate, passages.best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from ...model.kinds import MEMORY, Rid
from ...model.scope import Scope
from ...storage import vector_counts
from ...text.passages import Span
from .. import evidence
from ..exclusion import matcher
from ..run import Run
from ..scoring import blend, similarity
from ..scoring.coverage import Held, share_of_words
from ..scoring.reading import Reading
from ..types import KEYWORD, VECTOR_CHANNELS, Candidate, Meant, Read, Scored

LONG_DEPTH = 15  # places of a list from which long rows are weighed, unless more rows are asked for
BY_WORDS = 2  # passages of a long row that are looked at for their words, beside those that are near
NOTHING_MEANT = Meant(None, None)  # a row without a vector to compare, or a question without one
# A part of a word says less than its share: postgresq says nearly all that postgresql does, art nothing of start.
PART_POWER = 3


def weigh(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Return the rows of the lists, and the neighbours that the best of them lift, with their blend, best first.

    Where there is no vector, of equal scores the row that says most of the question's words comes first; of what is
    equal then, the newest. (The order of the full-text lists hangs on what other agents store.) A row that scores
    nothing and that no word found is no candidate. The run learns how much better the question must be met for its
    unfamiliar words.
    """
    weighing = _Weighing(run)
    found = weighing.rows()
    run.unfamiliarity = weighing.unfamiliarity
    return found


def long_depth(run: Run) -> int:
    """Return from how many places of each list long rows are weighed."""
    return max(LONG_DEPTH, run.query.limit)


class _Weighing:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._excluded, self._unwanted = matcher(run.query.exclude), evidence.unwanted(run)
        self._form = similarity.Form(run.question.english, run.question.sentence, run.sense)
        self._sought = evidence.sought(run)
        self._background = evidence.background(run)
        self._scored: dict[Rid, Scored] = {}
        self._said: dict[Rid, float] = {}
        self._held = 0  # the terms that some row weighed holds
        self._quoted: set[Rid] = set()
        self._passages: dict[Rid, Span] = {}
        self._long: set[Rid] = set()
        self._quotes = sum({1 << phrase.place for phrase in run.question.phrases})
        # These hold the question's very text.
        self._literal = {rid for ranked in run.lists if ranked.channel == KEYWORD for rid in ranked.rids}
        self.unfamiliarity = 1.0

    def rows(self) -> list[Candidate]:
        run = self._run
        by_words = {rid for ranked in run.lists if ranked.channel not in VECTOR_CHANNELS for rid in ranked.rids}
        self._score(self._found())
        run.size = self._size()
        self.unfamiliarity = self._unfamiliarity()
        lent = self._lent()
        if run.question.wording and not self._quoted:
            run.account.not_held = run.question.meant.quoted
            return []
        run.account.weightless = weightless = self._weightless(lent, by_words)
        whole = {
            rid: blend.with_lent(s, lent.get(rid, 0.0)) for rid, s in self._scored.items() if rid not in weightless
        }
        found = [(scored.score, self._said.get(rid, 0.0), rid, scored) for rid, scored in whole.items()]
        found.sort(key=lambda entry: (-entry[0], -entry[1], -entry[2][1]))
        return [
            Candidate(
                rid,
                cosine=scored.cosine,
                blend=score,
                coverage=scored.coverage,
                identified=scored.identified,
                scored=scored,
                lexical=rid in by_words,
                quoted=rid in self._quoted,
                passage=self._passages.get(rid),
            )
            for score, _, rid, scored in found
        ]

    def _found(self) -> list[Rid]:
        """Return the rows of the lists, long ones from the best places alone: to read one takes as long as to read
        forty others.
        """
        lists = self._run.lists
        found = dict.fromkeys(rid for ranked in lists for rid in ranked.rids if rid not in ranked.excluded)
        if self._run.vector is None:
            return list(found)
        self._long = self._run.rows.having_passages(found)
        behind = self._long.difference(*(ranked.rids[: long_depth(self._run)] for ranked in lists))
        return [rid for rid in found if rid not in behind]

    def _size(self) -> int | None:
        """Return how many rows and passages are in scope where that is the agent's whole store, which is counted
        already.
        """
        whole = self._run.query.scope == Scope(self._run.query.scope.agent_id)
        counted = (self._sought.rows, self._background.rows if self._background is not None else 0)
        if not whole or not max(counted):
            return None
        # A passage may be the best of noise as well as a row.
        return max(counted) + vector_counts.passages(self._run.conn, self._run.query.scope)

    def _weightless(self, lent: Mapping[Rid, float], by_words: Set[Rid]) -> frozenset[Rid]:
        """Return the rows that score nothing, are lent nothing and were found by no word."""
        return frozenset(
            rid for rid, s in self._scored.items() if s.own <= 0 and rid not in lent and rid not in by_words
        )

    def _score(self, rids: Iterable[Rid]) -> None:
        run = self._run
        readings = run.rows.readings(rids)
        # In the order asked for, whatever order they were read in.
        readings = {
            rid: readings[rid] for rid in rids if rid in readings and not self._is_excluded(rid, readings[rid][0])
        }
        meant = self._meant(readings)
        for rid, (text, instant) in readings.items():
            reading = Reading(text, instant)
            held = self._sought.held(reading)
            if run.vector is None or not run.sense:
                self._said[rid] = self._sought.said(reading)
            if wording := 0 < self._quotes == held.terms & self._quotes:
                self._quoted.add(rid)
            if rid in self._literal:
                share = share_of_words(text, run.question.characters) ** PART_POWER
                held = held._replace(coverage=max(held.coverage, share))
            named = held.identified or wording and run.question.wording
            self._scored[rid] = self._best(rid, text, instant, meant.get(rid, [NOTHING_MEANT]), held, named)
            self._held |= held.terms
            run.read[rid] = Read(text, instant, held.terms)

    def _meant(self, readings: Mapping[Rid, tuple[str, float | None]]) -> dict[Rid, list[Meant]]:
        """Return how near the rows are to the question: of a long one how near those of its passages are that are near
        at all, or where the question's words stand.
        """
        if self._run.vector is None:
            return {}
        among: dict[Rid, dict[int, Span]] = {}
        for rid, listed in self._run.rows.passages_of(self._long.intersection(readings)).items():
            by_words = self._sought.places(readings[rid][0], [span for _, span in listed], BY_WORDS)
            among[rid] = self._run.near.get(rid, {}) | dict(listed[place] for place in by_words)
            if not among[rid]:
                among[rid] = dict(listed[:1])
        return evidence.meant(self._run, list(readings), self._form, self._background, among)

    def _best(self, rid: Rid, text: str, instant: float | None, meant: list[Meant], held: Held, named: bool) -> Scored:
        """Return what a row scores: of a long one, what that of its nearest passages does that answers best."""
        sentence = self._form.sentence
        if meant[0].passage is None:
            return blend.scored(meant[0].cosine, meant[0].similarity, held.coverage, named, sentence)
        best: Scored | None = None
        for cosine, similar, passage in meant:
            assert passage is not None
            there = self._sought.held(Reading(text[passage.start : passage.end], instant))
            coverage = blend.in_passage(there.coverage, held.coverage)
            scored = blend.scored(cosine, similar, coverage, named and there.identified >= held.identified, sentence)
            if best is None or scored.own > best.own:
                best, self._passages[rid] = scored, passage
        assert best is not None
        return replace(best, identified=named)

    def _unfamiliarity(self) -> float:
        """Return by what factor better the question must be met: the same whatever rows it is asked for or spared."""
        if not self._scored and not any(term.naming for term in self._run.question.terms):
            return 1.0
        run, rows = self._run, self._sought.rows if self._background is None else self._background.rows
        unmet = self._sought.unmet(rows, self._held, run.rows.holds)
        run.absent = tuple(map(run.question.typed, unmet.absent))
        if unmet.bare:
            return blend.ABSENT_IDENTIFIER
        return blend.unfamiliarity(rows, unmet.name, unmet.familiar, unmet.share)

    def _is_excluded(self, rid: Rid, text: str) -> bool:
        # An episode is compared as displayed, which the lists have done already; neighbours are memories.
        if self._unwanted is not None and self._unwanted(text):
            return True
        return self._excluded is not None and rid[0] == MEMORY and self._excluded(text)

    def _lent(self) -> dict[Rid, float]:
        """Return what neighbours lend to the best memories and get from them."""
        leaders = sorted(
            (rid for rid in self._scored if rid[0] == MEMORY and self._scored[rid].own > 0),
            key=lambda rid: -self._scored[rid].own,
        )[: blend.LEADERS]
        pairs: list[tuple[Rid, Rid]] = [
            ((MEMORY, a), (MEMORY, b))
            for a, b in self._run.rows.beside((row_id for _, row_id in leaders), blend.NEIGHBOUR_SECONDS)
        ]
        self._score([rid for rid in dict.fromkeys(other for _, other in pairs) if rid not in self._scored])
        return blend.lend(self._scored, pairs)
