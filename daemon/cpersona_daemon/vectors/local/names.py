"""The names of the files that the local engine keeps; light, so that who only looks after files need not load numpy."""

from __future__ import annotations

from typing import Protocol

from ...model.kinds import EPISODE, MEMORY, PassageKind, VectorKind

MATRIX, SKETCHES, ROWS = "", ".int8", ".rows"  # what each file's name adds to the path of the index
SUFFIXES = (MATRIX, SKETCHES, ROWS)
FRESH = ".new"  # what is added to a name by what is to take that name


class IndexPlaces(Protocol):
    """Where the indexes of one database begin, and itself; ``shared.paths.Places`` is one."""

    db: str
    memory_vectors: str
    episode_vectors: str
    memory_passages: str
    episode_passages: str


def paths(places: IndexPlaces) -> dict[VectorKind, str]:
    """Return the path of each kind's index."""
    return {
        MEMORY: places.memory_vectors,
        EPISODE: places.episode_vectors,
        PassageKind.OF_MEMORY: places.memory_passages,
        PassageKind.OF_EPISODE: places.episode_passages,
    }


def files_of(places: IndexPlaces) -> tuple[str, ...]:
    """Return every file that an index of a database is kept in; each may be missing."""
    return tuple(path + suffix for path in paths(places).values() for suffix in SUFFIXES)
