"""What a ranked search asks the full-text index for, so that its cost stays bounded whatever the size of the table.

Contract: lexical.cost, lexical.terms.
"""

from __future__ import annotations

from typing import Any

from ..text.terms import LexicalQuery, Term, quoted
from .frequencies import Bounded, Frequencies, Own

VOTING_ROWS = 100_000  # a term in more rows does not even vote: bm25 walks through all rows of every term that does
HALF_FROM = 1_000  # from this many rows on, a word in more than half of them says nothing
NARROW_SHARE = 8  # an agent with no more than this part of the rows is looked for as one more word


class SearchPlan:
    """What to ask FTS5 for, the next only when the last found nothing: ``whole``, one expression for all of a small
    table, or ``rare`` terms that find rows while ``voting`` ones only count; then ``newest``, (the one that finds,
    those that count, the lowest rowid). ``close``: a term finds rows that is rare among the agent's alone. ``trace``
    tells the terms and everything that was left out.
    """

    def __init__(self, table: Frequencies, own: Own, query: LexicalQuery, voting_rows: int, half_from: int) -> None:
        self._table, self._own = table, own
        self.whole = ""
        self.rare: list[Bounded] = []
        self.voting: list[Bounded] = []
        self.newest: tuple[Bounded, list[Bounded], int] | None = None
        self.close = False
        self.trace: dict[str, Any] = _told(query)
        terms = list(query.terms)
        if terms and own.rows >= half_from:
            terms = self._without_most_frequent(terms)
        if not terms or not own.rows:
            return
        if table.matter:
            self._weigh(terms, voting_rows)
        else:
            self.whole = " OR ".join(form for term in terms for form in term.forms)

    def _weigh(self, terms: list[Term], voting_rows: int) -> None:
        """Part the terms into rare ones, which find rows, and common ones, which vote at most."""
        common: list[tuple[int, str, str]] = []
        for term in terms:
            self._sort_in(term, common)
        common.sort()
        votes = [token for _, token, _ in common if self._table.of(token) <= voting_rows]
        self.voting = [self._table.bounded(token) for token in votes]
        if common:
            # No rarer term: the rarest of the common ones finds the candidates, among its newest rows.
            begins, driver, _ = common[0]
            self.newest = (
                self._table.bounded(driver),
                [vote for vote in self.voting if vote.expression != driver],
                begins,
            )
            self.trace["common_terms"] = [text for _, _, text in common]
            if silent := [text for _, token, text in common if token not in votes]:
                self.trace["terms_without_vote"] = silent

    def _without_most_frequent(self, terms: list[Term]) -> list[Term]:
        """Leave out the words that stand in more than half of the rows, unless nothing else is left."""
        frequent = {
            term.text for term in terms if term.kind != "identifier" and self._own.of(term.token) * 2 > self._own.rows
        }
        if not frequent or len(frequent) == len(terms):
            return terms
        self.trace["too_frequent"] = sorted(frequent)
        return [term for term in terms if term.text not in frequent]

    def _sort_in(self, term: Term, common: list[tuple[int, str, str]]) -> None:
        """Take in what finds a term: its token, its beginning and its phrase, each where it is rare enough."""
        count = self._table.of(term.token)
        if count > self._table.limit:
            self._sort_in_common(term, common)
        elif count:
            self.rare.append(self._table.bounded(term.token))
        if term.prefix:
            starts = self._table.of_prefix(term.prefix)
            self._find_by(quoted(term.prefix) + "*", starts, "prefixes_left_out", term)
        if term.phrase:
            self._find_by(term.phrase, self._holders(term.words), "phrases_left_out", term)
        for other in term.others:
            rows = self._holders(tuple(map(quoted, other.words.split())))
            self._find_by(quoted(other.words), rows, "spellings_left_out", term)

    def _find_by(self, expression: str, rows: int, left_out: str, term: Term) -> None:
        """Let an expression find rows, or say that it is left out as one of too many."""
        if rows > self._table.limit:
            self.trace.setdefault(left_out, []).append(term.text)
        elif rows:
            self.rare.append(self._table.unbounded(expression, rows))

    def _holders(self, words: tuple[str, ...]) -> int:
        """Return how many rows may hold a phrase: in the table, or where those are too many, among the agent's own."""
        limit = self._table.limit
        holders = min(map(self._table.of, words))
        if holders > limit:
            holders = min(self._own.up_to(word, limit) for word in words)
            self.close = self.close or holders <= limit
        return holders

    def _sort_in_common(self, term: Term, common: list[tuple[int, str, str]]) -> None:
        """A term of many rows: common where so many are the agent's, and else rare among those."""
        own = self._own.up_to(term.token, self._table.limit)
        if own > self._table.limit:
            common.append((self._own.begins(term.token), term.token, term.text))
        elif own:
            known = self._table.bounded(term.token)
            close = own * NARROW_SHARE <= known.rows
            self.close = self.close or close
            self.rare.append(Bounded(term.token, known.most, own) if close else known)


def _told(query: LexicalQuery) -> dict[str, Any]:
    """Return what the account says of a question: its terms, and what of it was no term."""
    told: dict[str, Any] = {"terms": [term.text for term in query.terms]}
    if query.stop_words:
        told["stop_words"] = list(query.stop_words)
    if query.beyond_limit:
        told["terms_beyond_limit"] = query.beyond_limit
    return told
