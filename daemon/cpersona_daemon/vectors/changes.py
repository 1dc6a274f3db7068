"""What a committed transaction tells the vector index. SQLite is the authority, the index is derived."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MEMORY, EPISODE = "mem", "ep"
Rid = tuple[str, int]


@dataclass(frozen=True, slots=True)
class VectorPut:
    """A row now has this vector; any earlier one of the same rid is gone. ``vector`` is float32, unit length."""

    kind: str
    id: int
    created_at: str
    agent_id: str
    project_id: str
    channel: str
    source_id: str | None
    model: str
    vector: np.ndarray


@dataclass(frozen=True, slots=True)
class VectorDrop:
    """A row, or its vector, is gone."""

    kind: str
    id: int


Change = VectorPut | VectorDrop
