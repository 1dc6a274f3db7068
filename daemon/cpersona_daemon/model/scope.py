"""Who asks and what is visible to whom: the isolation axes of a read, as values."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .kinds import Kind


@dataclass(frozen=True, slots=True)
class Scope:
    """The axes of one read.

    ``project_id`` None means no filter, '' the global pool only; ``channel`` '' and ``source_id`` '' mean no filter.
    The instants are in created_at's form, both ends included, and '' is none: ``as_of`` is what is known, so that what
    was stored later is not there at all; ``since`` and ``until`` choose among what is there.
    """

    agent_id: str
    project_id: str | None = None
    channel: str = ""
    source_id: str = ""
    as_of: str = ""
    since: str = ""
    until: str = ""

    @property
    def sees_episodes(self) -> bool:
        """With a source given, episodes are left out unless a channel is given too."""
        return not self.source_id or bool(self.channel)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of rows that are seen."""
        return (Kind.MEMORY, Kind.EPISODE) if self.sees_episodes else (Kind.MEMORY,)

    @property
    def latest(self) -> str:
        """The instant after which nothing stored is seen, '' for none."""
        return min(filter(None, (self.until, self.as_of)), default="")

    @property
    def pool(self) -> Scope:
        """All that is there to choose from: neither source nor ``since`` and ``until`` narrow it."""
        return replace(self, source_id="", since="", until="")

    @property
    def of_a_time(self) -> bool:
        """Whether only rows stored at some time are seen."""
        return bool(self.since or self.latest)

    @property
    def source_is_prefix(self) -> bool:
        """Whether the source names every source that begins with it: it ends in no letter or digit."""
        return bool(self.source_id) and not self.source_id[-1].isalnum()
