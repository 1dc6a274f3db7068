"""The plain scan of the database as a decorator: whatever an engine cannot answer is answered all the same.

It is slower and never different. Engines therefore may be missing, behind, damaged or down without anyone who asks
having to know.

Contract: vectors.exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..model.changes import Change
from ..model.kinds import Rid, VectorKind
from ..model.scope import Scope
from ..storage import vectors as rows
from ..storage.database import Database
from ..storage.generations import Generation
from . import plain
from .ahead import Asking
from .backend import Background, Capabilities, Hit, NoAnswer, QueryVectors, VectorBackend, Window
from .drainer import Drainer


class WithFallback:
    """A VectorBackend that asks another one, and the database where that one has no answer.

    ``elsewhere`` asks an engine that is no part of this process before a snapshot; None for one that is.
    """

    def __init__(self, engine: VectorBackend, elsewhere: Asking | None = None) -> None:
        self.engine = engine
        self.elsewhere = elsewhere
        self._db_path = ""

    @property
    def capabilities(self) -> Capabilities:
        return self.engine.capabilities

    def open(self, db: Database, background: bool = False) -> None:
        self._db_path = db.path
        self.engine.open(db, background)

    @property
    def outbox(self) -> Drainer | None:
        return self.engine.outbox

    @property
    def path(self) -> str:
        """The database's file."""
        return self._db_path

    def leave(self) -> None:
        if self.elsewhere is not None:
            self.elsewhere.close()
        self.engine.leave()

    def close(self) -> None:
        self.engine.close()

    def search(
        self, queries: QueryVectors, kind: VectorKind, scope: Scope, window: Window, floor: float, k: int
    ) -> list[list[Hit]]:
        try:
            return self.engine.search(queries, kind, scope, window, floor, k)
        except NoAnswer:
            with rows.reader(self._db_path) as conn:
                return plain.search(conn, queries, kind, scope, window, floor, k)

    def cosines(self, query: np.ndarray, rids: Iterable[Rid], model: str) -> dict[Rid, float]:
        wanted = list(rids)
        try:
            return self.engine.cosines(query, wanted, model)
        except NoAnswer:
            with rows.reader(self._db_path) as conn:
                return plain.cosines(conn, query, wanted, model)

    def rows_of(self, rids: Iterable[Rid], width: int, model: str) -> tuple[list[Rid], np.ndarray]:
        wanted = list(rids)
        try:
            return self.engine.rows_of(wanted, width, model)
        except NoAnswer:
            with rows.reader(self._db_path) as conn:
                return plain.rows_of(conn, wanted, width, model)

    def background(self, scope: Scope, window_rows: int, width: int, model: str, size: int = 256) -> Background | None:
        try:
            return self.engine.background(scope, window_rows, width, model, size)
        except NoAnswer:
            with rows.reader(self._db_path) as conn:
                return plain.background(conn, scope, window_rows, width, model, size)

    def apply(self, changes: list[Change], reached: Generation) -> None:
        self.engine.apply(changes, reached)

    def rebuild(self) -> None:
        self.engine.rebuild()

    def wait(self) -> None:
        self.engine.wait()

    def differing(self, kind: VectorKind) -> list[int] | None:
        return self.engine.differing(kind)

    def status(self) -> dict[VectorKind, dict[str, Any]]:
        return self.engine.status()
