"""All SQL of the lexical channel: postings, the ranked search with its bounded cost, and the substring scan.

Contract: lexical.terms, lexical.order, lexical.keyword, lexical.cost.
"""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import apsw

from ..model.kinds import EPISODE, MEMORY, Kind
from ..model.scope import Scope
from ..text.terms import LexicalQuery, Term, index_text, quoted
from . import former
from .frequencies import Bounded, Frequencies, Own, owner, rewritten
from .scope import kind_sql, memory_sql
from .transaction import Transaction

COMMON_ROWS = 20_000  # a term found in more rows finds none by itself beside a rarer one
VOTING_ROWS = 100_000  # and beyond this it does not even vote: bm25 walks through all rows of every term that does
HALF_FROM = 1_000  # from this many rows on, a word in more than half of them says nothing
SCAN_ROWS = 50_000
FEW_ROWS = 400  # to rank so many costs no more than a second query
NARROW_SHARE = 8  # an agent with no more than this part of the rows is looked for as one more word
_WORD_BETWEEN_BLANKS = re.compile(r"(?<=[ \t\n])[A-Za-z]+(?=[ \t\n])")
WALK = 0.15  # what passing by a row costs beside ranking it
# The name of a row's agent in its postings has no weight.
_BM25 = {MEMORY: "bm25(memory_fts, 1.0, 0.0)", EPISODE: "bm25(episode_fts, 1.0, 1.0, 0.0)"}


# -- postings


def add_memories(conn: apsw.Connection, rows: list[tuple[int, str, str]]) -> None:
    """Write the postings of rows that have none yet: (id, agent, what ``index_text`` made of the content)."""
    conn.execute(
        f"INSERT INTO memory_fts (rowid, body, owner) VALUES {','.join(['(?,?,?)'] * len(rows))}",
        tuple(value for row_id, agent, body in rows for value in (row_id, body, owner(agent))),
    )


def put_memory(conn: apsw.Connection, id: int, content: str) -> None:
    """Write the postings of a stored memory, in place of those it may have. Call it only when the content changed."""
    conn.execute(
        "INSERT OR REPLACE INTO memory_fts (rowid, body, owner) VALUES (?, ?, ?)",
        (id, index_text(content), _owner_of(conn, MEMORY, id)),
    )
    rewritten(conn, MEMORY)


def drop_memory(conn: apsw.Connection, id: int) -> None:
    """Remove the postings of a memory."""
    conn.execute("DELETE FROM memory_fts WHERE rowid = ?", (id,))
    rewritten(conn, MEMORY)


def add_episode(conn: apsw.Connection, id: int, agent_id: str, summary: str, keywords: str) -> None:
    """Write the postings of an episode that has none yet."""
    conn.execute(
        "INSERT INTO episode_fts (rowid, summary, keywords, owner) VALUES (?, ?, ?, ?)",
        (id, index_text(summary), index_text(keywords), owner(agent_id)),
    )


def put_episode(conn: apsw.Connection, id: int, summary: str, keywords: str) -> None:
    """Write the postings of a stored episode, in place of those it may have."""
    conn.execute(
        "INSERT OR REPLACE INTO episode_fts (rowid, summary, keywords, owner) VALUES (?, ?, ?, ?)",
        (id, index_text(summary), index_text(keywords), _owner_of(conn, EPISODE, id)),
    )
    rewritten(conn, EPISODE)


def drop_episode(conn: apsw.Connection, id: int) -> None:
    """Remove the postings of an episode."""
    conn.execute("DELETE FROM episode_fts WHERE rowid = ?", (id,))
    rewritten(conn, EPISODE)


def drop_rows(conn: apsw.Connection, kind: Kind, ids: Sequence[int]) -> None:
    """Remove the postings of many rows of a kind."""
    conn.execute(f"DELETE FROM {kind.index} WHERE rowid IN (SELECT value FROM json_each(?))", (json.dumps(ids),))
    rewritten(conn, kind)


# FTS5 merges a segment of the index anew as soon as a tenth of its rows is deleted, in the very commit that deletes them:
# in a large index that takes seconds. While many rows go, it is told not to; afterwards the merge is done a piece at a time.
_INDEXES = tuple(kind.index for kind in Kind)
_MERGE_SHARE = 10  # per cent, its own default


def pause_tidying(tx: Transaction) -> None:
    """Let deletions leave the index untidy until ``tidy`` says that it is done. Kept in the database, so that a restart knows."""
    for fts in _INDEXES:
        tx.execute(f"INSERT INTO {fts} ({fts}, rank) VALUES ('deletemerge', 0)")


def tidying_is_paused(conn: apsw.Connection) -> bool:
    return any(
        conn.execute(f"SELECT 1 FROM {fts}_config WHERE k = 'deletemerge' AND v = 0").fetchone() for fts in _INDEXES
    )


def tidy(tx: Transaction, kind: Kind, pages: int, begin: bool) -> bool:
    """Merge a piece of the index of a kind, about so many pages; ``begin`` takes in all of it as it is now. Tell whether there was something to do."""
    fts, before = kind.index, tx.conn.total_changes()
    tx.execute(f"INSERT INTO {fts} ({fts}, rank) VALUES ('merge', ?)", (-pages if begin else pages,))
    return tx.conn.total_changes() - before > 1


def resume_tidying(tx: Transaction) -> None:
    """Let deletions keep the index tidy by themselves again."""
    for fts in _INDEXES:
        tx.execute(f"INSERT INTO {fts} ({fts}, rank) VALUES ('deletemerge', {_MERGE_SHARE})")


def _owner_of(conn: apsw.Connection, kind: Kind, id: int) -> str:
    ((agent_id,),) = conn.execute(f"SELECT agent_id FROM {kind.table} WHERE id = ?", (id,)).fetchall()
    return owner(agent_id)


# -- ranked search


def search(
    conn: apsw.Connection,
    kind: Kind,
    query: LexicalQuery,
    scope: Scope,
    depth: int,
    trace: dict | None = None,
    *,
    common_rows: int = COMMON_ROWS,
    voting_rows: int = VOTING_ROWS,
    half_from: int = HALF_FROM,
) -> list[tuple[int, float]]:
    """Return the best ``depth`` rows of ``kind`` in scope as (id, bm25), best (lowest) first, ties by id ascending.

    bm25 has the statistics of the whole table; which rows are found hangs on the agent's own alone. Whatever the size of
    the table, about ``common_rows`` rows a term are ranked; ``trace`` is told the terms and everything that was left out
    for it. Same database and query, same answer.

    Contract: lexical.cost.
    """
    table = Frequencies(conn, kind, common_rows)
    own = Own(table, scope.agent_id)
    plan = _Plan(table, own, query, voting_rows, half_from)
    if trace is not None:
        trace.update(plan.trace)
    if depth <= 0:
        return []
    view = _View(conn, table, own, scope, depth, plan.close or own.about * NARROW_SHARE <= table.rows)
    found: list[tuple[int, float]] = []
    if plan.rare:
        found = _pruned(view, plan.rare, plan.voting, 0)
    if not found and plan.whole:
        found = _ranked(view, plan.whole, 0)
    if not found and plan.newest:
        driver, votes, lowest = plan.newest
        found = _pruned(view, [driver], votes, lowest)
        if found and trace is not None:
            trace["newest_rows_only"] = common_rows
    if former.present(conn):
        found = sorted(
            found + former.search(conn, kind, query.terms, scope, depth), key=lambda pair: (pair[1], pair[0])
        )[:depth]
    return found


@dataclass(frozen=True, slots=True)
class _View:
    """Where a search looks. ``close``: among the agent's rows alone, which the index finds as it finds a word."""

    conn: apsw.Connection
    table: Frequencies
    own: Own
    scope: Scope
    depth: int
    close: bool


def _pruned(view: _View, finding: list[Bounded], voting: list[Bounded], lowest: int) -> list[tuple[int, float]]:
    """Return the same best rows as ranking all from ``lowest`` on that hold one of ``finding`` would, mostly by ranking few of them.

    Computing a bm25 costs ten times what finding the row does. A term lends a row no more than its bound, so once
    ``depth`` rows are known, terms that cannot reach the last of them, alone or with all that come after, need not be
    looked at. Terms go from the highest bound down: first the rows of a term that hold another one too, then, where
    the term by itself may still matter, all of its rows. What a later query finds of a row again is less than the row
    has, and so less than what keeps it out already.
    """
    terms = sorted(finding, key=lambda term: (-term.most, term.expression)) + voting
    finders, depth = len(finding), view.depth
    rows = [term.rows for term in terms]
    reach = [sum(term.most for term in terms[place:]) for place in range(len(terms))]
    best: dict[int, float] = {}

    def merge(expression: str) -> float:
        """Take in what an expression finds and return what a row must have from now on."""
        for row_id, score in _ranked(view, expression, lowest):
            best[row_id] = min(score, best.get(row_id, 0.0))
        for row_id in sorted(best, key=lambda row_id: (best[row_id], row_id))[depth:]:
            del best[row_id]
        return -max(best.values()) if len(best) == depth else 0.0

    def with_another(place: int) -> str:
        return f"({terms[place].expression}) AND ({' OR '.join(term.expression for term in terms[place + 1 :])})"

    few = sum(rows) <= FEW_ROWS or view.close and view.own.all
    least = merge(with_another(0)) if len(terms) > 1 and not few else 0.0
    wanted = [place for place in range(finders) if reach[place] >= least]
    alone = [place for place in wanted if terms[place].most >= least]
    in_turn = sum(rows[place] for place in alone) + WALK * sum(sum(rows[place:]) for place in wanted[1:])
    at_once = sum(rows[place] for place in wanted) + WALK * 2 * sum(rows)
    if few or at_once <= in_turn:
        # The terms left out stand after the wanted ones, or among those that only vote.
        merge(
            _driven([terms[place].expression for place in wanted], [term.expression for term in terms[len(wanted) :]])
        )
    else:
        for place in wanted:
            if reach[place] < least:
                break
            if place and place + 1 < len(terms):
                least = merge(with_another(place))
            if terms[place].most >= least:
                least = merge(terms[place].expression)
    return sorted(best.items(), key=lambda pair: (pair[1], pair[0]))


def _ranked(view: _View, expression: str, lowest: int) -> list[tuple[int, float]]:
    """Return the best ``depth`` rows of an expression in scope, from the rowid ``lowest`` on.

    Where the agent has a good part of the table, the rows are ranked first, and only the best are looked up in the scope.
    """
    conn, own, kind = view.conn, view.own, view.table.kind
    fts, table = kind.index, kind.table
    axes, params = kind_sql(view.scope, kind, "m.")
    if not view.close and not own.is_narrow(view.scope):
        enough = 4 * view.depth + 40
        best = conn.execute(
            f"SELECT rowid, {_BM25[kind]} AS score FROM {fts} WHERE {fts} MATCH ? AND rowid >= ? ORDER BY score, rowid LIMIT ?",
            (expression, lowest, enough),
        ).fetchall()
        ids = json.dumps([row_id for row_id, _ in best])
        inside = {
            i
            for (i,) in conn.execute(
                f"SELECT m.id FROM json_each(?) j CROSS JOIN {table} m ON m.id = j.value WHERE {axes}", (ids, *params)
            )
        }
        found = [row for row in best if row[0] in inside][: view.depth]
        if len(found) == view.depth or len(best) < enough:
            return found
        own.note_narrow(view.scope)
    if view.close or own.about * 2 <= view.table.rows:
        expression = own.within(expression)
    return conn.execute(
        f"SELECT f.rowid, {_BM25[kind]} AS score FROM {fts} AS f CROSS JOIN {table} m ON m.id = f.rowid"
        f" WHERE {fts} MATCH ? AND f.rowid >= ? AND {axes} ORDER BY score, f.rowid LIMIT ?",
        (expression, lowest, *params, view.depth),
    ).fetchall()


class _Plan:
    """What to ask FTS5 for, the next only when the last found nothing: ``whole``, one expression for all of a small
    table, or ``rare`` terms that find rows while ``voting`` ones only count; then ``newest``, (the one that finds, those that
    count, the lowest rowid). ``close``: a term finds rows that is rare among the agent's alone.
    """

    def __init__(self, table: Frequencies, own: Own, query: LexicalQuery, voting_rows: int, half_from: int):
        self._table, self._own = table, own
        self.whole = ""
        self.rare: list[Bounded] = []
        self.voting: list[Bounded] = []
        self.newest: tuple[Bounded, list[Bounded], int] | None = None
        self.close = False
        self.trace: dict = {"terms": [term.text for term in query.terms]}
        if query.stop_words:
            self.trace["stop_words"] = list(query.stop_words)
        if query.beyond_limit:
            self.trace["terms_beyond_limit"] = query.beyond_limit
        terms = list(query.terms)
        if terms and own.rows >= half_from:
            terms = self._without_most_frequent(terms)
        if not terms or not own.rows:
            return
        if not table.matter:
            self.whole = " OR ".join(
                form
                for term in terms
                for form in (term.token, term.prefix and quoted(term.prefix) + "*", term.phrase)
                if form
            )
            return
        common: list[tuple[int, str, str]] = []
        for term in terms:
            self._sort_in(term, common)
        common.sort()
        votes = [token for _, token, _ in common if table.of(token) <= voting_rows]
        self.voting = [table.bounded(token) for token in votes]
        if common:
            # No rarer term: the rarest of the common ones finds the candidates, among its newest rows.
            begins, driver, _ = common[0]
            self.newest = table.bounded(driver), [vote for vote in self.voting if vote.expression != driver], begins
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
        table, limit = self._table, self._table.limit
        count = table.of(term.token)
        if count > limit:
            self._sort_in_common(term, common)
        elif count:
            self.rare.append(table.bounded(term.token))
        if term.prefix:
            starts = table.of_prefix(term.prefix)
            if starts > limit:
                self.trace.setdefault("prefixes_left_out", []).append(term.text)
            elif starts:
                self.rare.append(table.unbounded(quoted(term.prefix) + "*", starts))
        if term.phrase:
            holders = min(map(table.of, term.words))
            if holders > limit:
                holders = min(self._own.up_to(word, limit) for word in term.words)
                self.close = self.close or holders <= limit
            if holders > limit:
                self.trace.setdefault("phrases_left_out", []).append(term.text)
            elif holders:
                self.rare.append(table.unbounded(term.phrase, holders))

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


# -- what a question weighs


@dataclass(frozen=True, slots=True)
class Counted:
    """In how many of an agent's newest ``rows`` each term of a question stands. ``all``: the agent has no others."""

    rows: int
    terms: tuple[int, ...]
    all: bool = True


def counted(
    conn: apsw.Connection,
    agent_id: str,
    kinds: Sequence[Kind],
    terms: Sequence[Term],
    *,
    common_rows: int = COMMON_ROWS,
) -> Counted:
    """Count the terms of a question in the agent's newest rows of ``kinds``; what others store is none of it."""
    tables = [(table, Own(table, agent_id)) for table in (Frequencies(conn, kind, common_rows) for kind in kinds)]
    found = tuple(sum(own.of(_asked(table, term)) for table, own in tables) for term in terms)
    return Counted(
        sum(own.rows for _, own in tables), found, all(own.all for _, own in tables) and not former.present(conn)
    )


def _asked(table: Frequencies, term: Term) -> str:
    """Return the term with its other forms, less a beginning that is dear to look for in a large table."""
    forms = [term.token]
    if term.prefix and (not table.matter or table.of_prefix(term.prefix) <= table.limit):
        forms.append(quoted(term.prefix) + "*")
    if term.phrase:
        forms.append(term.phrase)
    return " OR ".join(forms)


_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])  # what the tables are made with, see schema
_STEMS_KEPT = 20_000
_tokenizers: weakref.WeakKeyDictionary[apsw.Connection, apsw.FTS5Tokenizer] = weakref.WeakKeyDictionary()
_stems: dict[str, tuple[str, ...]] = {}


def stemmer(conn: apsw.Connection) -> Callable[[str], tuple[str, ...]]:
    """Return a function from a text to its tokens as the index holds them."""
    tokenizer = _tokenizers.get(conn)
    if tokenizer is None:
        tokenizer = _tokenizers[conn] = conn.fts5_tokenizer(*_TOKENIZER)

    def stem(text: str) -> tuple[str, ...]:
        found = _stems.get(text)
        if found is None:
            found = tuple(
                tokenizer(
                    text.encode("utf-8", "replace"),
                    apsw.FTS5_TOKENIZE_DOCUMENT,
                    None,
                    include_offsets=False,
                    include_colocated=False,
                )
            )
            if len(_stems) >= _STEMS_KEPT:
                _stems.clear()
            _stems[text] = found
        return found

    return stem


# -- without a score


def keyword_scan(
    conn: apsw.Connection, text: str, scope: Scope, depth: int, *, scan_rows: int = SCAN_ROWS
) -> list[int]:
    """Return the newest ``depth`` memories in scope that hold the stripped text, ASCII letters in either case.

    Looks at the newest ``scan_rows`` rows in scope. Contract: lexical.keyword.
    """
    needle = text.strip()
    if not needle or depth <= 0 or "\0" in needle or _stands_nowhere(conn, needle):
        return []
    pattern = "%" + needle.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    axes, params = memory_sql(scope)
    found = conn.execute(
        f"SELECT id FROM (SELECT id, created_at, content FROM memories WHERE {axes} ORDER BY created_at DESC, id DESC LIMIT ?)"
        " WHERE content LIKE ? ESCAPE '\\' ORDER BY created_at DESC, id DESC LIMIT ?",
        (*params, scan_rows, pattern, depth),
    )
    return [row_id for (row_id,) in found]


def _stands_nowhere(conn: apsw.Connection, needle: str) -> bool:
    """Tell whether the index rules a text out: a plain word with blanks around it must stand in whatever row holds the text.

    A row without postings (damage that check_health mends) could hold any word, so it counts only while every row has them.
    """
    frequencies = Frequencies(conn, MEMORY, COMMON_ROWS)
    if not any(frequencies.of(quoted(word)) == 0 for word in _WORD_BETWEEN_BLANKS.findall(needle)):
        return False
    return conn.execute("SELECT count(*) FROM memories").fetchall() == [(frequencies.rows,)]


def recent(conn: apsw.Connection, scope: Scope, n: int) -> list[int]:
    """Return the ``n`` newest memories in scope: created_at DESC, id DESC. What a blank query lists."""
    axes, params = memory_sql(scope)
    return [
        id
        for (id,) in conn.execute(
            f"SELECT id FROM memories WHERE {axes} ORDER BY created_at DESC, id DESC LIMIT ?", (*params, max(0, n))
        )
    ]
