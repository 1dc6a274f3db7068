"""The rows that one recall sees, read in its snapshot: those of today, or as of an instant those of then.

As of an instant, what has changed since is read from what is kept of it, whatever the row says today; everything else
from the tables and their indexes. A row of then has the vector that it had, and no passages; a search by meaning has it
in the first window.

Contract: time.asof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import apsw
import numpy as np

from ..model.instants import parse_instant
from ..model.kinds import EPISODE, MEMORY, PASSAGES, Kind, Rid
from ..model.scope import Scope
from ..storage import (
    as_then,
    candidates,
    episodes,
    existence,
    memories,
    passages,
    profiles,
    records,
    stemmer,
    tables,
    vector_counts,
)
from ..storage.as_then import Shown, Was
from ..storage.candidates import Facts
from ..storage.damaged import Unreadable
from ..storage.episodes import Episode
from ..storage.json_columns import source_id
from ..storage.memories import Memory
from ..text.folding import as_matched
from ..text.passages import Span
from ..text.terms import Term
from ..vectors.backend import Ask, Hit, Vectors
from ..vectors.cosine import exact, is_usable
from .display import episode_text, episode_timestamp
from .scoring.neighbours import Place, beside
from .scoring.reading import Reading, SoughtTerm

T = TypeVar("T")
MOST_PASSED_BY = 1_000
Record = Memory | Episode | Unreadable


class Rows:
    """What stages ask of rows, each thing that several of them need at most once. The vectors are asked here too."""

    def __init__(self, conn: apsw.Connection, scope: Scope, vectors: Vectors) -> None:
        self._conn, self._scope, self._vectors = conn, scope, vectors
        self._facts: dict[Rid, Facts] = {}
        self._holding: dict[str, Mapping[Rid, Reading]] = {}

    # -- what has changed since

    @cached_property
    def _pool(self) -> list[Was]:
        """The rows in the axes of the scope that have changed since, of any source and time."""
        return as_then.were(self._conn, self._scope.pool) if self._scope.as_of else []

    @cached_property
    def then(self) -> Mapping[Rid, Was]:
        """The rows in scope that have changed since as they were, the newest memory first."""
        scope = self._scope
        return {
            was.rid: was
            for was in self._pool
            if was.rid[0] in scope.kinds
            and self._in_time(was)
            and (not isinstance(was.record, Memory) or as_then.of_source(was.record.source, scope.source_id))
        }

    def _in_time(self, was: Was) -> bool:
        return self._scope.since <= was.created_at <= self._scope.latest

    @property
    def shown(self) -> Shown:
        """How many of those are known as they were; of what was deleted, whoever said it."""
        gone = [was for was in self._pool if was.gone and self._in_time(was)]
        return as_then.shown([*(was for was in self.then.values() if not was.gone), *gone])

    def of_then(self, kind: Kind) -> list[Was]:
        """Return the rows of a kind that have changed since, the newest first."""
        return [was for was in self.then.values() if was.rid[0] == kind]

    def changed(self, rids: Iterable[Rid]) -> set[Rid]:
        """Return those of the rows that something was done to since, as far as that is kept."""
        return as_then.changed(self._conn, rids, self._scope.as_of) if self._scope.as_of else set()

    def _read(
        self, rids: Iterable[Rid], today: Callable[[apsw.Connection, list[Rid]], dict[Rid, T]], was: Callable[[Was], T]
    ) -> dict[Rid, T]:
        """Return something of each of the rows: as they were where they have changed since."""
        rids, then = list(rids), self.then
        found = today(self._conn, [rid for rid in rids if rid not in then])
        return found | {rid: was(then[rid]) for rid in rids if rid in then} if then else found

    # -- rows

    def records(self, rids: Iterable[Rid]) -> tuple[dict[Rid, Record], set[Rid]]:
        """Return the rows that are in scope, whole, and those of them that are shown as they are today."""
        if not self._scope.as_of:
            return records.by_rids(self._conn, rids, self._scope), set()
        return as_then.by_rids(self._conn, list(rids), self._scope)

    def texts(self, rids: Iterable[Rid]) -> dict[Rid, str]:
        """Return the displayed texts of those rows that exist."""
        return self._read(rids, candidates.texts, _shown_text)

    def readings(self, rids: Iterable[Rid]) -> dict[Rid, tuple[str, float | None]]:
        """Return the indexed text of those rows that exist and the instant they tell of, in epoch seconds."""
        return self._read(rids, candidates.readings, lambda was: (text_of(was), instant_of(was)))

    def facts(self, rids: Iterable[Rid]) -> Mapping[Rid, Facts]:
        """Return the facts of at least these rows, as far as they exist."""
        missing = [rid for rid in rids if rid not in self._facts]
        if missing:
            self._facts |= self._read(missing, candidates.facts, _facts)
        return self._facts

    def sources(self, ids: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Return of those memories that exist who said them and where."""
        found = candidates.sources(self._conn, list(ids))
        for row_id in ids:
            was = self.then.get((MEMORY, row_id))
            if was is not None and isinstance(was.record, Memory):
                found[row_id] = was.record.project_id, was.record.channel, was.record.source
        return found

    def beside(self, ids: Iterable[int], seconds: float) -> list[tuple[int, int]]:
        """Return pairs of memories: each of ``ids`` with the one stored just before it and the one just after."""
        if not self._scope.as_of:
            return candidates.beside(self._conn, ids, seconds, self._scope)
        leaders = list(ids)
        today = [Place(*found) for found in candidates.around(self._conn, leaders, self._scope)]
        changed = self.changed((MEMORY, place.id) for place in today)
        places = [place for place in today if (MEMORY, place.id) not in changed]
        return beside(leaders, [*places, *map(_place, self.of_then(MEMORY))], seconds, candidates.NEAR_IDS)

    # -- words

    def newest_of(self, today: Sequence[int], among: Iterable[Was], limit: int) -> list[int]:
        """Return the newest of memories of today and of then."""
        among = list(among)
        return as_then.in_order(self._conn, today, among, limit) if among else list(today)

    def holding(self, characters: str) -> list[Was]:
        """Return the memories that have changed since and held a text as it stands, ASCII letters in either case."""
        needle = as_matched(characters.strip())
        return [was for was in self.of_then(MEMORY) if needle and needle in as_matched(text_of(was))]

    def of_then_holding(self, term: Term) -> Mapping[Rid, Reading]:
        """Return the rows that have changed since and held a term in any of its forms."""
        if term.text not in self._holding:
            sought = SoughtTerm(term, None, stemmer.stemmer(self._conn))
            self._holding[term.text] = {rid: read for rid, read in self._readings.items() if sought.in_text(read)}
        return self._holding[term.text]

    @cached_property
    def _readings(self) -> dict[Rid, Reading]:
        return {rid: Reading(text_of(was), instant_of(was)) for rid, was in self.then.items()}

    def holds(self, term: Term, reads: Callable[[str], bool] | None = None) -> bool:
        """Tell whether a row in scope holds a term; ``reads`` tells it of a text, where words are not enough."""
        if existence.holds(self._conn, term, self._scope, reads):
            return True
        former = self.of_then_holding(term)
        return bool(former) if reads is None else any(reads(text_of(self.then[rid])) for rid in former)

    # -- how many

    def count(self, kind: Kind, at_most: int) -> int:
        """Count the rows of a kind in the pool of the scope, stopping near ``at_most``."""
        count = {MEMORY: memories, EPISODE: episodes}[kind].count_in_scope(self._conn, self._scope, at_most)
        return min(at_most, count + sum(was.rid[0] == kind for was in self._pool))

    def count_seen(self, at_most: int) -> int:
        """Count rows and passages of the scope but for its source, of each kind ``at_most`` rows."""
        rows = 0
        for kind in self._scope.kinds:
            former = sum(was.rid[0] == kind and self._in_time(was) for was in self._pool)
            rows += min(at_most, tables.count_seen(self._conn, kind.table, self._scope, at_most) + former)
        return rows + vector_counts.passages(self._conn, self._scope, rows)

    @cached_property
    def span(self) -> tuple[float, float] | None:
        """The pool's oldest and newest instant in epoch seconds, None without dated memories."""
        instants = [at for was in self._pool if was.rid[0] == MEMORY and (at := instant_of(was)) is not None]
        instants += memories.span(self._conn, self._scope) or ()
        return (min(instants), max(instants)) if instants else None

    @property
    def boundary(self) -> str | None:
        """When the newest episode of the pool was stored, None without episodes."""
        stored = [was.created_at for was in self._pool if was.rid[0] == EPISODE]
        return max([*stored, episodes.boundary(self._conn, self._scope) or ""]) or None

    @cached_property
    def profile(self) -> str:
        """The text that describes the agent, '' without one."""
        scope = self._scope
        return profiles.get(self._conn, scope.agent_id, scope.since, scope.latest) or ""

    # -- meaning

    def search(self, ask: Ask) -> list[list[Hit]]:
        """Return what the vectors answer for rows, with those of then in the first window and none that has changed
        since.
        """
        if not self.then:
            return self._vectors.search(*ask)
        kind = Kind(ask.kind)
        hits = self._vectors.search(*ask._replace(k=ask.k + self.changed_there(kind)))
        return [
            self._of_its_time(kind, ask, query, found) for query, found in zip(ask.queries.vectors, hits, strict=True)
        ]

    def changed_there(self, kind: Kind) -> int:
        """Return how many rows of today have to be passed by in what an engine answers, at most."""
        return min(MOST_PASSED_BY, sum(not was.gone for was in self.of_then(kind)))

    def _of_its_time(self, kind: Kind, ask: Ask, query: np.ndarray, found: list[Hit]) -> list[Hit]:
        changed = self.changed((kind, hit.id) for hit in found)
        kept = [hit for hit in found if (kind, hit.id) not in changed]
        if ask.window.start == 0:
            scores = self._cosines_of_then(query, [was.rid for was in self.of_then(kind)], ask.queries.model)
            kept += [Hit(row_id, score) for (_, row_id), score in scores.items() if score >= ask.floor]
            kept.sort(key=lambda hit: -hit.score)
        return kept[: ask.k]

    def cosines(self, query: np.ndarray, rids: Sequence[Rid], model: str) -> dict[Rid, float]:
        """Return the exact cosine of each given row that has a vector comparable with ``query``."""
        if not self.then:
            return self._vectors.cosines(query, rids, model)
        today = self._vectors.cosines(query, [rid for rid in rids if rid not in self.then], model)
        return today | self._cosines_of_then(query, [rid for rid in rids if rid in self.then], model)

    def vectors_of(self, rids: Iterable[Rid], width: int, model: str) -> tuple[list[Rid], np.ndarray]:
        """Return those of the rows, or passages, that have a vector comparable with ``width`` and ``model``, and these
        vectors.
        """
        rids = list(rids)
        if not self.then:
            return self._vectors.rows_of(rids, width, model)
        found, vectors = self._vectors.rows_of([rid for rid in rids if rid not in self.then], width, model)
        former, of_then = self._vectors_of_then([rid for rid in rids if rid in self.then], width, model)
        return [*found, *former], np.concatenate([vectors, of_then])

    def _cosines_of_then(self, query: np.ndarray, rids: Sequence[Rid], model: str) -> dict[Rid, float]:
        if not is_usable(query):
            return {}
        found, vectors = self._vectors_of_then(rids, len(query), model)
        return dict(zip(found, exact(vectors, query).tolist(), strict=True))

    def _vectors_of_then(self, rids: Sequence[Rid], width: int, model: str) -> tuple[list[Rid], np.ndarray]:
        found = {rid: vector for rid in rids if (vector := _vector(self.then[rid], width, model)) is not None}
        return list(found), np.array(list(found.values()), np.float32).reshape(len(found), width)

    def having_passages(self, rids: Iterable[Rid]) -> set[Rid]:
        """Return those of the rows that have passages."""
        return passages.having(self._conn, [rid for rid in rids if rid not in self.then])

    def passages_by_ids(self, kind: Kind, ids: Iterable[int]) -> dict[int, tuple[int, Span]]:
        """Return of passages that a search found whose they are and where they stand, but for rows that have changed
        since.
        """
        found = passages.by_ids(self._conn, PASSAGES[kind], ids)
        changed = self.changed((kind, row_id) for row_id, _ in found.values())
        return {i: of for i, of in found.items() if (kind, of[0]) not in changed} if changed else found

    def passages_of(self, rids: Iterable[Rid]) -> dict[Rid, list[tuple[int, Span]]]:
        """Return the passages of those rows that have any, in their order: the id of each and where it stands."""
        return passages.of_rows(self._conn, [rid for rid in rids if rid not in self.then])


def text_of(was: Was) -> str:
    """Return the text by which a row was found."""
    record = was.record
    return record.content if isinstance(record, Memory) else f"{record.summary}\n{record.keywords}"


def instant_of(was: Was) -> float | None:
    """Return the instant that a row told of, in epoch seconds, None where it named none."""
    return was.record.instant if isinstance(was.record, Memory) else parse_instant(episode_timestamp(was.record))


def _shown_text(was: Was) -> str:
    return was.record.content if isinstance(was.record, Memory) else episode_text(was.record)


def _facts(was: Was) -> Facts:
    record, instant = was.record, instant_of(was)
    if isinstance(record, Memory):
        return Facts(instant, record.recall_count, parse_instant(record.last_recalled_at))
    return Facts(instant, resolved=bool(record.resolved), is_episode=True)


def _place(was: Was) -> Place:
    assert isinstance(was.record, Memory)
    record = was.record
    axes = record.agent_id, record.project_id, record.channel, source_id(record.source)
    return Place(record.id, axes, record.instant)


def _vector(was: Was, width: int, model: str) -> np.ndarray | None:
    """Return the vector that a row had, None where it had none that can be compared."""
    if was.vector is None or len(was.vector) != 4 * width or model and was.model and was.model != model:
        return None
    vector = np.frombuffer(was.vector, "<f4")
    return vector if is_usable(vector) else None
