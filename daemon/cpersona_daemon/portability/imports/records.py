"""What a file that is imported brings: its records, checked and cleaned, whatever format they came in.

Contract: import.lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...model.kinds import EPISODE, MEMORY, Kind
from ...storage.associations import ENTITY
from ...storage.episodes import NewEpisode
from ...storage.memories import NewMemory, Prepared

RECORD_KINDS = (MEMORY, EPISODE)
ENDPOINT_KINDS = (ENTITY, *RECORD_KINDS)


class BadRecord(ValueError):
    """A record that cannot be stored; the message says why. ``skipped`` names the counter that it also moves."""

    def __init__(self, reason: str, skipped: str | None = None) -> None:
        super().__init__(reason)
        self.skipped = skipped


@dataclass(slots=True)
class Row:
    """A memory or an episode, with the id that it has in the file.

    ``vector`` is a unit vector (float32) of the model named beside it, None where the file has none that can be used.
    ``remarks`` are faults that did not keep the row out; ``cut`` is `{kept, of}` where its text is longer than what
    is kept.
    """

    kind: ClassVar[Kind]
    old_id: Any
    new: NewMemory | NewEpisode
    vector: np.ndarray | None
    model: str
    remarks: list[str]
    cut: dict | None


@dataclass(slots=True)
class MemoryRow(Row):
    """A memory; ``prepared`` is the same ready to be written, once that has been worked out."""

    kind = MEMORY
    new: NewMemory
    prepared: Prepared | None = None


@dataclass(slots=True)
class EpisodeRow(Row):
    kind = EPISODE
    new: NewEpisode


@dataclass(slots=True)
class Profile:
    """A profile; ``user_id`` is '' for the agent's own, which every write replaces."""

    agent_id: str
    content: str
    updated_at: str | None
    project_id: str
    remarks: list[str]
    cut: dict | None
    user_id: str = ""


@dataclass(slots=True)
class Entity:
    old_id: Any
    agent_id: str
    project_id: str
    channel: str
    name: str
    aliases: list[str]
    declared_by: str
    created_at: str | None  # any stamp that names an instant


@dataclass(slots=True)
class Mention:
    entity: Any
    kind: str
    record: int
    declared_by: str
    created_at: str | None


@dataclass(slots=True)
class Relation:
    agent_id: str
    project_id: str
    channel: str
    subject: tuple[str, Any]
    predicate: str
    object: tuple[str, Any]
    anchor: tuple[str, int] | None
    declared_by: str
    declared_at: str | None


@dataclass(slots=True)
class NewPart:
    """Here another file begins: files may be joined, each with its header, and ids are those of one file.

    ``agent_id`` is whose the records are that name nobody.
    """

    agent_id: str = ""


@dataclass(slots=True)
class Unkept:
    """A sound record of a kind that has no place here: so many of ``what`` are counted and said, and no fault."""

    what: str
    count: int = 1


Record = Row | Profile | Entity | Mention | Relation | NewPart | Unkept
