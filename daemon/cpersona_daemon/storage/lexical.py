"""The ranked search by words: the best rows of a kind in scope by bm25, at a bounded cost.

Contract: lexical.order, lexical.cost.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from ..model.kinds import EPISODE, MEMORY, Kind
from ..model.scope import Scope
from ..text.terms import LexicalQuery, Term
from . import former
from .frequencies import COMMON_ROWS, Bounded, Frequencies, Own
from .lexical_plan import HALF_FROM, NARROW_SHARE, VOTING_ROWS, SearchPlan
from .scope import kind_sql

FEW_ROWS = 400  # to rank so many costs no more than a second query
WALK = 0.15  # what passing by a row costs beside ranking it
# The name of a row's agent in its postings has no weight.
_BM25 = {MEMORY: "bm25(memory_fts, 1.0, 0.0)", EPISODE: "bm25(episode_fts, 1.0, 1.0, 0.0)"}


def search(
    conn: apsw.Connection,
    kind: Kind,
    query: LexicalQuery,
    scope: Scope,
    depth: int,
    trace: dict[str, Any] | None = None,
    *,
    without: Sequence[Term] = (),
    common_rows: int = COMMON_ROWS,
    voting_rows: int = VOTING_ROWS,
    half_from: int = HALF_FROM,
) -> list[tuple[int, float]]:
    """Return the best ``depth`` rows of ``kind`` in scope as (id, bm25), best (lowest) first, ties by id ascending.

    bm25 has the statistics of the whole table; which rows are found hangs on the agent's own alone. Whatever the size
    of the table, about ``common_rows`` rows a term are ranked; ``trace`` is told the terms and everything that was left
    out for it. Rows that hold a term of ``without`` are passed by. Same database and query, same answer.

    Contract: lexical.cost.
    """
    table = Frequencies(conn, kind, common_rows)
    own = Own(table, scope.agent_id)
    plan = SearchPlan(table, own, query, voting_rows, half_from)
    if trace is not None:
        trace.update(plan.trace)
    if depth <= 0:
        return []
    close = plan.close or own.about * NARROW_SHARE <= table.rows
    reader = _Reader(conn, table, own, scope, depth, close, _any_of(without))
    found: list[tuple[int, float]] = []
    if plan.rare:
        found = _pruned(reader, plan.rare, plan.voting, 0)
    if not found and plan.whole:
        found = _ranked(reader, plan.whole, 0)
    if not found and plan.newest:
        driver, votes, lowest = plan.newest
        found = _pruned(reader, [driver], votes, lowest)
        if found and trace is not None:
            trace["newest_rows_only"] = common_rows
    if former.present(conn):
        found = sorted(
            found + former.search(conn, kind, query.terms, scope, depth), key=lambda pair: (pair[1], pair[0])
        )[:depth]
    return found


def _any_of(terms: Sequence[Term]) -> str:
    return " OR ".join(form for term in terms for form in term.forms)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Where a search looks. ``close``: among the agent's rows alone, which the index finds as it finds a word.
    ``without`` is the expression of rows that are passed by, '' for none.
    """

    conn: apsw.Connection
    table: Frequencies
    own: Own
    scope: Scope
    depth: int
    close: bool
    without: str = ""


class _Best:
    """The best ``depth`` rows known so far, each with the lowest score that any expression gave it."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._scores: dict[int, float] = {}

    def take(self, found: list[tuple[int, float]]) -> float:
        """Take in what an expression found and return what a row must have from now on."""
        best = self._scores
        for row_id, score in found:
            best[row_id] = min(score, best.get(row_id, 0.0))
        for row_id in sorted(best, key=lambda row_id: (best[row_id], row_id))[self._depth :]:
            del best[row_id]
        return -max(best.values()) if len(best) == self._depth else 0.0

    def ranked(self) -> list[tuple[int, float]]:
        """Return the rows as (id, bm25), best (lowest) first, ties by id ascending."""
        return sorted(self._scores.items(), key=lambda pair: (pair[1], pair[0]))


class _Descending:
    """The terms that find rows from the highest bound down, behind them those that only vote, and what asking for them
    costs.

    A place is a position in that order. ``reach`` is the most that a row has of a term and all that come after it.
    """

    def __init__(self, finding: list[Bounded], voting: list[Bounded]) -> None:
        self._terms = sorted(finding, key=lambda term: (-term.most, term.expression)) + voting
        self._finders = len(finding)
        self._rows = [term.rows for term in self._terms]
        self.reach = [sum(term.most for term in self._terms[place:]) for place in range(len(self._terms))]
        self.last = len(self._terms) - 1
        self.rows = sum(self._rows)

    def wanted(self, least: float) -> list[int]:
        """Return the places of terms that, with all after them, may still give a row ``least``."""
        return [place for place in range(self._finders) if self.reach[place] >= least]

    def alone(self, place: int) -> str:
        return self._terms[place].expression

    def most(self, place: int) -> float:
        """Return what the term by itself lends a row at most."""
        return self._terms[place].most

    def with_another(self, place: int) -> str:
        """Return the expression of the term's rows that hold a later one too."""
        others = " OR ".join(term.expression for term in self._terms[place + 1 :])
        return f"({self._terms[place].expression}) AND ({others})"

    def together(self, wanted: list[int]) -> str:
        """Return the expression of all rows that the wanted terms find."""
        # The terms left out stand after the wanted ones, or among those that only vote.
        return _driven(
            [self._terms[place].expression for place in wanted],
            [term.expression for term in self._terms[len(wanted) :]],
        )

    def cheaper_together(self, wanted: list[int], least: float) -> bool:
        """Tell whether ranking the rows of all wanted terms at once costs no more than one after the other."""
        in_turn = sum(self._rows[place] for place in wanted if self.most(place) >= least) + WALK * sum(
            sum(self._rows[place:]) for place in wanted[1:]
        )
        at_once = sum(self._rows[place] for place in wanted) + WALK * 2 * self.rows
        return at_once <= in_turn


def _pruned(reader: _Reader, finding: list[Bounded], voting: list[Bounded], lowest: int) -> list[tuple[int, float]]:
    """Return the same best rows as ranking all from ``lowest`` on that hold one of ``finding`` would, mostly by ranking
    few of them.

    Computing a bm25 costs ten times what finding the row does. A term lends a row no more than its bound, so once
    ``depth`` rows are known, terms that cannot reach the last of them, alone or with all that come after, need not be
    looked at. Terms go from the highest bound down: first the rows of a term that hold another one too, then, where
    the term by itself may still matter, all of its rows. What a later query finds of a row again is less than the row
    has, and so less than what keeps it out already.
    """
    terms, best = _Descending(finding, voting), _Best(reader.depth)
    few = terms.rows <= FEW_ROWS or reader.close and reader.own.all
    least = best.take(_ranked(reader, terms.with_another(0), lowest)) if terms.last > 0 and not few else 0.0
    wanted = terms.wanted(least)
    if few or terms.cheaper_together(wanted, least):
        best.take(_ranked(reader, terms.together(wanted), lowest))
        return best.ranked()
    for place in wanted:
        if terms.reach[place] < least:
            break
        if 0 < place < terms.last:
            least = best.take(_ranked(reader, terms.with_another(place), lowest))
        if terms.most(place) >= least:
            least = best.take(_ranked(reader, terms.alone(place), lowest))
    return best.ranked()


def _ranked(reader: _Reader, expression: str, lowest: int) -> list[tuple[int, float]]:
    """Return the best ``depth`` rows of an expression in scope, from the rowid ``lowest`` on.

    Where the agent has a good part of the table, the rows are ranked first, and only the best are looked up in the
    scope.
    """
    conn, own, kind = reader.conn, reader.own, reader.table.kind
    fts, table = kind.fts, kind.table
    axes, params = kind_sql(reader.scope, kind, "m.")
    if reader.without:
        expression = f"({expression}) NOT ({reader.without})"
    # Of a time that was named there are few rows as a rule, and one that moves with the clock is not remembered.
    if not reader.close and not reader.scope.of_a_time and not own.is_narrow(reader.scope):
        enough = 4 * reader.depth + 40
        best: list[Any] = conn.execute(
            f"SELECT rowid, {_BM25[kind]} AS score FROM {fts} WHERE {fts} MATCH ? AND rowid >= ?"
            " ORDER BY score, rowid LIMIT ?",
            (expression, lowest, enough),
        ).fetchall()
        ids = json.dumps([row_id for row_id, _ in best])
        inside = {
            i
            for (i,) in conn.execute(
                f"SELECT m.id FROM json_each(?) j CROSS JOIN {table} m ON m.id = j.value WHERE {axes}", (ids, *params)
            )
        }
        found = [row for row in best if row[0] in inside][: reader.depth]
        if len(found) == reader.depth or len(best) < enough:
            return found
        own.note_narrow(reader.scope)
    if reader.close or own.about * 2 <= reader.table.rows:
        expression = own.within(expression)
    ranked: list[Any] = conn.execute(
        f"SELECT f.rowid, {_BM25[kind]} AS score FROM {fts} AS f CROSS JOIN {table} m ON m.id = f.rowid"
        f" WHERE {fts} MATCH ? AND f.rowid >= ? AND {axes} ORDER BY score, f.rowid LIMIT ?",
        (expression, lowest, *params, reader.depth),
    ).fetchall()
    return ranked


def _driven(finding: list[str], voting: list[str]) -> str:
    """Return the expression whose rows are those of ``finding``, while ``voting`` counts for bm25 where it stands too.

    Each side of the OR holds for a row or does not, so that no term is counted twice; FTS5 seeks the voting terms
    from row to row instead of walking through them.
    """
    found = " OR ".join(finding)
    if not voting:
        return found
    votes = " OR ".join(voting)
    return f"(({found}) NOT ({votes})) OR (({found}) AND ({votes}))"
