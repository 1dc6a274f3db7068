"""The one door to vectors: what every engine answers, and the values it is asked with.

An engine derives what it holds from the database, which stays the authority. Where it cannot answer it raises
``NoAnswer``; ``WithFallback`` then answers from the database itself. Health, recall and calibration know this module
and no engine.

Contract: window.near, window.reach, vectors.exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..model.changes import Change
from ..model.kinds import Rid, VectorKind
from ..model.scope import Scope
from ..storage.database import Database
from ..storage.generations import Generation
from .drainer import Drainer


class NoAnswer(Exception):
    """An engine cannot answer now, and why. Whoever asks looks into the database instead."""


class NotReady(NoAnswer):
    """An engine is up and does not have everything yet: it is being filled, or too much waits in the outbox."""


class Hit(NamedTuple):
    """A row, or a passage, and its cosine."""

    id: int
    score: float


class Hits(list[Hit]):
    """Hits of an engine that was cut off where others of this kind may follow (``more``), however few these are."""

    def __init__(self, hits: Iterable[Hit], more: bool) -> None:
        super().__init__(hits)
        self.more = more


class Window(NamedTuple):
    """The positions [start, stop) of a scan: rows in scope that have a vector, created_at DESC, id ASC."""

    start: int
    stop: int


class Background(NamedTuple):
    """The mean, float64, of memories evenly spaced in a scan window: how many were averaged, and of how many."""

    averaged: int
    rows: int
    mean: np.ndarray


class Capabilities(NamedTuple):
    """What an engine's search keeps to.

    ``exact``: the float64 sum of the exact products, whatever the engine. ``window``: the scan positions asked for; an
    engine without ranks under a window of its own. ``filters``: the axes of a Scope it filters by. ``reach``: whether
    it also ranks what lies behind the first window. ``elsewhere``: it is no part of this process, so that it is asked
    before a snapshot and never inside one.
    """

    exact: bool
    window: bool
    filters: frozenset[str]
    reach: bool
    elsewhere: bool = False


EVERY_AXIS = frozenset({"agent_id", "project_id", "channel", "source_id", "as_of", "since", "until"})


@dataclass(frozen=True, slots=True)
class QueryVectors:
    """Questions that are asked together.

    ``vectors``: float32, (n, width), a unit vector a row; ``model`` '': unknown.
    """

    vectors: np.ndarray
    model: str

    @classmethod
    def one(cls, vector: np.ndarray, model: str) -> QueryVectors:
        """Return a batch of a single question."""
        return cls(np.ascontiguousarray(vector, np.float32)[None], model)

    @property
    def width(self) -> int:
        return self.vectors.shape[1]


class Ask(NamedTuple):
    """What ``search`` is asked with, as a value."""

    queries: QueryVectors
    kind: VectorKind
    scope: Scope
    window: Window
    floor: float
    k: int


class Vectors(Protocol):
    """What a recall asks.

    Rows and passages are asked for alike: a passage is a row of its own with the axes and the time of the row that it
    belongs to. A row of another width, or of another known model than the question's, keeps its position in a scan and
    is never returned. What is asked raises NoAnswer where the engine cannot answer it.
    """

    def search(
        self, queries: QueryVectors, kind: VectorKind, scope: Scope, window: Window, floor: float, k: int
    ) -> list[list[Hit]]:
        """Return for each question the best ``k`` rows of the window with cosine >= ``floor``, best first.

        Ties go by scan position. A question that is not finite or is zero finds nothing.
        """

    def cosines(self, query: np.ndarray, rids: Iterable[Rid], model: str) -> dict[Rid, float]:
        """Return the exact cosine of each given row that has a vector comparable with ``query``."""

    def rows_of(self, rids: Iterable[Rid], width: int, model: str) -> tuple[list[Rid], np.ndarray]:
        """Return those of the rows that have a vector comparable with ``width`` and ``model``, and these vectors.

        Memories come first; the vectors are float32, a row each.
        """

    def background(self, scope: Scope, window_rows: int, width: int, model: str, size: int = 256) -> Background | None:
        """Return the mean of at most ``size`` memories evenly spaced in the scan window of a scope.

        None where no memory can be compared. The same rows give the same mean.
        """


class VectorBackend(Vectors, Protocol):
    """An engine over the vectors of one database. ``open`` first; then any thread may ask."""

    @property
    def capabilities(self) -> Capabilities: ...

    def open(self, db: Database, background: bool = False) -> None:
        """Make ready for an open database; with ``background`` return at once, and be ready a little later."""

    @property
    def outbox(self) -> Drainer | None:
        """What tells a service elsewhere of every change; None where there is none."""

    def leave(self) -> None:
        """End what reads and writes the database by itself. Before ``Database.close``."""

    def close(self) -> None:
        """End what runs and let go of everything. After ``Database.close``, whose last commits still arrive here."""

    def apply(self, changes: list[Change], reached: Generation) -> None:
        """Bring a committed transaction in. Runs on the writer thread; never raises: the commit itself stands."""

    def rebuild(self) -> None:
        """Derive everything anew from the database and return when that is in use."""

    def wait(self) -> None:
        """Return when nothing is being derived anew any more."""

    def differing(self, kind: VectorKind) -> list[int] | None:
        """Return the ids of rows whose vector here is another than in the database; None where that cannot be said."""

    def status(self) -> dict[VectorKind, dict[str, Any]]:
        """Return for each kind its ``state`` (ready, rebuilding, scanning: the database answers) and more for people.

        ``rows`` and ``generation`` say what is held and up to which commit, ``reason`` what is wrong, ``moved_aside``
        what stood in the way.
        """


class Elsewhere(VectorBackend, Protocol):
    """An engine that is no part of this process. Its ``search`` is what stands in for it, or has no answer.

    ``place`` says where it is, without what is secret of that.
    """

    place: str

    def ask(self, asks: Sequence[Ask], text: str, deadline: float) -> list[list[list[Hit]]]:
        """Return of each of the asks what ``search`` would; ``text`` is the question in words.

        No snapshot is open. ``deadline`` is of time.monotonic. Raises NoAnswer, whose words an answer may carry.
        """
