"""What a merge is asked to do, and how its answer says what was done.

Contract: merge.copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import Refused
from ...model.kinds import EPISODE, MEMORY, Kind

MODES = ("copy", "move")
STRATEGIES = ("skip",)
MOST_NAMED = 100  # rows that an answer names as left out

LeftOut = dict[Kind, dict[int, str]]  # the rows of each kind that no answer can carry, and why


@dataclass(frozen=True, slots=True)
class Request:
    """Whose memory goes where. Making one that makes no sense raises Refused."""

    source: str
    target: str
    mode: str
    strategy: str

    def __post_init__(self) -> None:
        if not self.source or not self.target:
            raise Refused("source_agent_id and target_agent_id must both be named")
        if self.source == self.target:
            raise Refused(f"source and target are the same agent, {self.source!r}")
        if self.mode not in MODES:
            raise Refused(f"mode is one of {', '.join(MODES)}, not {self.mode!r}")
        if self.strategy not in STRATEGIES:
            raise Refused(f"strategy is {', '.join(STRATEGIES)}, not {self.strategy!r}")

    @property
    def moves(self) -> bool:
        return self.mode == "move"


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did or would do: (copied, skipped) rows of each kind, and those that stay at the source."""

    counts: dict[Kind, tuple[int, int]]
    profiles_copied: int
    profiles_skipped: int
    left_out: LeftOut

    def answer(self, request: Request, dry_run: bool) -> dict:
        """Return merge_memories' answer."""
        (copied, skipped), (episodes_copied, episodes_skipped) = self.counts[MEMORY], self.counts[EPISODE]
        answer: dict[str, Any] = {
            "ok": True,
            "dry_run": dry_run,
            "source_agent_id": request.source,
            "target_agent_id": request.target,
            "strategy": request.strategy,
            "mode": request.mode,
            "merged_memories": copied,
            "skipped_memories": skipped,
            "merged_episodes": episodes_copied,
            "skipped_episodes": episodes_skipped,
            "profile_copied": self.profiles_copied > 0,
            "skipped_profile": self.profiles_skipped > 0,
        }
        if request.moves and not dry_run:
            answer["source_deleted"] = {
                "ok": True,
                "agent_id": request.source,
                "deleted_memories": copied,
                "deleted_profiles": self.profiles_copied,
                "deleted_episodes": episodes_copied,
            }
        if request.moves:
            answer["left_at_source"] = {
                "memories": skipped + len(self.left_out[MEMORY]),
                "episodes": episodes_skipped + len(self.left_out[EPISODE]),
                "profiles": self.profiles_skipped,
            }
        if named := [
            {"ref": kind.ref(row_id), "reason": reason}
            for kind, rows in self.left_out.items()
            for row_id, reason in rows.items()
        ]:
            answer["left_out"] = named[:MOST_NAMED]
        return answer
