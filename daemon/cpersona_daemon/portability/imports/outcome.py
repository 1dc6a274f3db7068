"""What an import did, and how its answer says so.

Contract: import.lines.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ...model.kinds import MEMORY, Kind
from ..counted import associations
from .records import BadRecord

MAX_ERRORS = 100
_ADDED = (
    "imported_memories",
    "skipped_memories",
    "imported_episodes",
    "skipped_episodes",
    "entities",
    "mentions",
    "relations",
    "other_profiles",
    "uncompared",
    "foreign",
    "unproven",
    "listed",
    "cut",
    "error_count",
    "rejected",
)


@dataclass(slots=True)
class Outcome:
    """What became of the lines so far.

    ``uncompared`` rows have no vector, or a ``foreign`` one, of another model or width than those of the embedder; so
    many are ``listed`` for embedding. ``unproven`` vectors met an embedder that has not said yet which model it is.
    ``unkept`` counts records of kinds that have no place here, by their names.
    ``error_count`` are the rejected lines, and what is to be said of others; a fault is told with its number behind
    ``unit``.
    """

    unit: str = "Line"

    imported_memories: int = 0
    skipped_memories: int = 0
    imported_episodes: int = 0
    skipped_episodes: int = 0
    entities: int = 0
    mentions: int = 0
    relations: int = 0
    profile_updated: bool = False
    other_profiles: int = 0
    uncompared: int = 0
    foreign: int = 0
    unproven: int = 0
    listed: int = 0
    cut: int = 0
    errors: list[str] = field(default_factory=list)
    error_count: int = 0
    rejected: int = 0
    unkept: Counter[str] = field(default_factory=Counter)

    def complain(self, line: int, text: str) -> None:
        self.error_count += 1
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(f"{self.unit} {line}: {text}")

    def count_rows(self, kind: Kind, imported: int, skipped: int) -> None:
        if kind is MEMORY:
            self.imported_memories += imported
            self.skipped_memories += skipped
        else:
            self.imported_episodes += imported
            self.skipped_episodes += skipped

    def reject(self, line: int, error: BadRecord) -> None:
        """Count a line that was left out."""
        self.complain(line, str(error))
        self.rejected += 1
        self.skipped_memories += error.skipped == "memories"
        self.skipped_episodes += error.skipped == "episodes"

    def add(self, other: Outcome) -> None:
        """Take over what another part of the import did."""
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.profile_updated |= other.profile_updated
        self.unkept.update(other.unkept)
        self.errors.extend(other.errors[: MAX_ERRORS - len(self.errors)])

    def answer(self, dry_run: bool) -> dict:
        """Return import_memories' answer but for `ok`."""
        out: dict[str, Any] = {
            "dry_run": dry_run,
            "imported_memories": self.imported_memories,
            "skipped_memories": self.skipped_memories,
            "imported_episodes": self.imported_episodes,
            "skipped_episodes": self.skipped_episodes,
            "profile_updated": self.profile_updated,
        }
        counts = {"entity": self.entities, "mention": self.mentions, "relation": self.relations}
        if declared := associations(counts):
            out["associations"] = declared
        said = {
            "other_profiles": self.other_profiles,
            "listed_for_embedding": self.listed,
            "without_usable_vector": self.uncompared - self.listed,
            "foreign_vectors": self.foreign,
            "vectors_of_unknown_fit": self.unproven,
        }
        out |= {name: count for name, count in said.items() if count}
        if self.unkept:
            out["unkept"] = dict(self.unkept)
        if self.cut:
            out["cut"] = self.cut
        if self.error_count:
            out["errors"], out["error_count"] = self.errors, self.error_count
        if self.rejected:
            out["rejected"] = self.rejected
        return out
