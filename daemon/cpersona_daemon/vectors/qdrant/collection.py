"""Which collections a database has in Qdrant, what they are called, and whether they are what it left there.

One for each kind of rows, width and model: what a question can be compared with is known before it is asked. Their
names begin with the store's identity, so that two databases share none unless they are told to. One more of a single
point says which database filled them, when, and how far it had got.

Contract: qdrant.collections.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, NamedTuple

import apsw

from ...model.kinds import Kind, PassageKind, VectorKind
from ...storage import vector_counts
from .client import Client, Failed

KINDS: tuple[VectorKind, ...] = (*Kind, *PassageKind)
_WORDS: dict[VectorKind, str] = {kind: kind.value.replace("+", "-passages") for kind in KINDS}
_STATE, _POINT = "state", 1
ALIVE_SECONDS = 180.0  # who wrote the mark so lately is at work


class Mark(NamedTuple):
    """What the one point says: which filling the collections are of, how far they follow the database's generations,
    who wrote that, and when, in epoch seconds.
    """

    filling: str
    generation: int
    owner: str
    at: float


class Collections:
    """The collections of one database at one Qdrant. ``prefix`` begins every name."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client, self.prefix = client, prefix
        self._known: set[str] | None = None
        kinds = "|".join(map(re.escape, _WORDS.values()))
        self._ours = re.compile(rf"{re.escape(prefix)}-(?:{_STATE}|(?:{kinds})-\d+-[0-9a-f]{{8}})")

    def name(self, kind: VectorKind, width: int, model: str) -> str:
        """Return what the collection of some vectors is called."""
        return f"{self.prefix}-{_WORDS[kind]}-{width}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"

    def comparable(
        self, conn: apsw.Connection, kind: VectorKind, agent_id: str, width: int, model: str
    ) -> dict[str, int]:
        """Return the collections that hold what an agent has of a kind and a question can be compared with, and how
        many rows that is.
        """
        return {
            self.name(kind, wide, of): count
            for wide, of, count in vector_counts.forms(conn, kind, agent_id)
            if wide == width and (not model or not of or of == model)
        }

    def of_kind(self, kind: VectorKind) -> list[str]:
        """Return the collections that are there of a kind."""
        return sorted(name for name in self._there() if name.startswith(f"{self.prefix}-{_WORDS[kind]}-"))

    def ready(self, kind: VectorKind, width: int, model: str) -> str:
        """Return the collection of some vectors, which is made where it is not there."""
        name = self.name(kind, width, model)
        if name not in self._there():
            self._client.create(name, width)
            self._there().add(name)
        return name

    def forget(self) -> None:
        """Look anew at what is there when that is asked for next."""
        self._known = None

    def clear(self) -> None:
        """Take all of them away, and nothing else."""
        self.forget()
        for name in sorted(self._there()):
            self._client.drop(name)
        self.forget()

    def counts(self) -> dict[str, int]:
        """Return how many points each has."""
        return {name: self._client.count(name) for name in sorted(self._there()) if name != self._state}

    @property
    def _state(self) -> str:
        return f"{self.prefix}-{_STATE}"

    def _there(self) -> set[str]:
        if self._known is None:
            self._known = {name for name in self._client.collections() if self._ours.fullmatch(name)}
        return self._known

    def mark(self) -> Mark | None:
        """Return what the one point says, None where there is none that can be read."""
        said = self._client.payload(self._state, _POINT)
        return None if said is None else _mark(said)

    def set_mark(self, mark: Mark) -> None:
        """Have the one point say this."""
        try:
            self._client.set_payload(self._state, _POINT, mark._asdict())
        except Failed as error:
            if not error.missing:
                raise
            self._client.create(self._state, 1)
            self._there().add(self._state)
            self._client.set_payload(self._state, _POINT, mark._asdict())


def _mark(said: dict[str, Any]) -> Mark | None:
    try:
        return Mark(str(said["filling"]), int(said["generation"]), str(said["owner"]), float(said["at"]))
    except (KeyError, TypeError, ValueError):
        return None


def somebody_else(mark: Mark | None, owner: str, now: float) -> bool:
    """Tell whether another database is at work on the collections."""
    if mark is None or mark.owner == owner:
        return False
    return now - mark.at < ALIVE_SECONDS
