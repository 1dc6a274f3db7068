"""What a committed transaction tells the vector index. SQLite is the authority, the index is derived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .kinds import VectorKind

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class VectorPut:
    """A row, or a passage of one, now has this vector; any earlier one of it is gone. ``vector`` is float32, unit
    length.
    """

    kind: VectorKind
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
    """A row, a passage, or its vector, is gone. Whose it was is known of rows alone."""

    kind: VectorKind
    id: int
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Many rows of one kind with their vectors, a sequence per property.

    ``vectors`` are the bytes of float32, or arrays.
    """

    ids: Sequence[int]
    created: Sequence[str]
    agents: Sequence[str]
    projects: Sequence[str]
    channels: Sequence[str]
    sources: Sequence[str | None]
    models: Sequence[str]
    vectors: Sequence[bytes | np.ndarray]

    @classmethod
    def of(cls, puts: list[VectorPut]) -> VectorRows:
        import numpy as np  # a start answers what needs no vector before this is loaded

        return cls(
            *zip(
                *(
                    (
                        p.id,
                        p.created_at,
                        p.agent_id,
                        p.project_id,
                        p.channel,
                        p.source_id,
                        p.model,
                        np.ascontiguousarray(p.vector, "<f4"),
                    )
                    for p in puts
                ),
                strict=True,
            )
        )


@dataclass(frozen=True, slots=True)
class Hidden:
    """From now on exactly these rows of a kind are there and seen by nobody. ``ids`` ascend, int64."""

    kind: VectorKind
    ids: np.ndarray


@dataclass(frozen=True, slots=True)
class Purged:
    """Nothing of an agent is seen from now on, and all of it is being deleted: said beside ``Hidden``."""

    agent_id: str


Change = VectorPut | VectorDrop | Hidden | Purged
