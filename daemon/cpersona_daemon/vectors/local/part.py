"""One kind of the local engine: its index, what is wrong with it, and the rebuild that runs or waits to run."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...model.changes import Change
from ...model.kinds import VectorKind
from ...shared.files import make_way
from ...storage.generations import Generation
from .files import Unusable
from .index import NOTHING_HIDDEN, Index
from .names import FRESH, ROWS, SUFFIXES

_LOG = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Part:
    """One kind: its index, None while none can be used, and what a running rebuild still has to learn."""

    kind: VectorKind
    path: str
    index: Index | None = None
    origin: str = "none"
    problem: str | None = None  # why there is no index, or what is wrong with the one there is
    because: str | None = None  # why the last rebuild was made
    aside: list[str] = field(default_factory=list)
    pending: list[tuple[dict[int, Change], Generation]] | None = None
    waiting: Future[None] | None = None
    done: int = 0
    total: int = 0
    tried_at: float = field(default=float("-inf"))
    hidden: np.ndarray = field(default_factory=lambda: NOTHING_HIDDEN)

    @property
    def rebuilding(self) -> bool:
        return self.pending is not None or self.waiting is not None

    def why_rebuild(self) -> str | None:
        """Return why an index should be built now, None where the one there is is fit."""
        return self.problem if self.index is None else self.index.wants_rebuild()

    def status(self) -> dict[str, Any]:
        """Return the state (ready, rebuilding, scanning), where the index came from, counts, sizes and progress."""
        state = "ready" if self.index is not None else "scanning"
        shown: dict[str, Any] = {"state": "rebuilding" if self.rebuilding else state, "origin": self.origin}
        if self.index is not None:
            shown.update(self.index.status())
        if self.pending is not None:
            shown["rebuilt"], shown["rebuild_total"] = self.done, self.total
        if self.problem is not None:
            shown["reason"] = self.problem
        if self.because is not None:
            shown["rebuilt_because"] = self.because
        if self.aside:
            shown["moved_aside"] = list(self.aside)
        return shown

    def put_in_place(self, index: Index) -> None:
        """Give an index the names of this kind's files; one that cannot have them works under the names it has."""
        try:
            self.make_way(self.path)
            index.move_to(self.path)
            self.problem = None
        except (OSError, Unusable) as error:
            self.problem = f"the index cannot take its place and will be built again at the next start: {told(error)}"
            _LOG.warning("vector index of %s: %s", self.kind, self.problem)

    def make_way(self, path: str) -> None:
        """Move aside what is no file and stands where one of an index at ``path`` belongs. Raises Unusable."""
        for place in (*(path + suffix for suffix in SUFFIXES), path + ROWS + FRESH):
            try:
                aside = make_way(place)
            except OSError as error:
                raise Unusable(
                    f"what stands at {place} is no file and cannot be moved aside ({error.strerror});"
                    " move it away, then run `cpersona health --fix`"
                ) from error
            if aside is not None:
                self.aside.append(aside)
                _LOG.warning("%s was no file of the vector index; it is now %s", place, aside)


def told(error: Exception) -> str:
    """Return what a person reads of a failure."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__
