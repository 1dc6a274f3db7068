"""The isolation axes of a read, in one place: as SQL, and as the values the vector scan compares.

Contract: contracts.md §1 "Isolation axes, on every read"; seeds/behavior-contracts §3, §5.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..vectors.changes import EPISODE, MEMORY
from .hidden import seen


@dataclass(frozen=True, slots=True)
class Scope:
    """Who asks and what is visible. ``project_id`` None means no filter, '' the global pool only;
    ``channel`` '' and ``source_id`` '' mean no filter. ``as_of``, in created_at's form, hides what was stored later; '' hides nothing."""

    agent_id: str
    project_id: str | None = None
    channel: str = ""
    source_id: str = ""
    as_of: str = ""

    @property
    def sees_episodes(self) -> bool:
        """With a source given, episodes are left out unless a channel is given too."""
        return not self.source_id or bool(self.channel)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of rows that are seen."""
        return (MEMORY, EPISODE) if self.sees_episodes else (MEMORY,)

    @property
    def source_is_prefix(self) -> bool:
        return bool(self.source_id) and not self.source_id[-1].isalnum()

    def axes_sql(self, alias: str = "", everyone: bool = False) -> tuple[str, list]:
        """Return the condition on agent, project and channel with its parameters; with ``everyone`` on the last two. ``alias`` ends in a dot."""
        sql, params = ("1", []) if everyone else (f"{alias}agent_id = ?", [self.agent_id])
        if self.project_id == "":
            sql += f" AND {alias}project_id = ''"
        elif self.project_id is not None:
            sql += f" AND {alias}project_id IN (?, '')"
            params.append(self.project_id)
        if self.channel:
            sql += f" AND {alias}channel IN (?, '')"
            params.append(self.channel)
        return sql, params

    def stored_sql(self, alias: str = "", everyone: bool = False) -> tuple[str, list]:
        """Return the condition on the axes, and on when a row was stored."""
        sql, params = self.axes_sql(alias, everyone)
        if self.as_of:
            sql += f" AND {alias}created_at <= ?"
            params.append(self.as_of)
        return sql, params

    def row_sql(self, table: str, alias: str = "", everyone: bool = False) -> tuple[str, list]:
        """Return the condition on rows of a table, of any source: the axes, when they were stored, and that they are not hidden. The whole one on episodes."""
        sql, params = self.stored_sql(alias, everyone)
        return f"{sql} AND {seen(table, f'{alias}id')}", params

    def sql(self, kind: str, alias: str = "") -> tuple[str, list]:
        """Return the whole condition on rows of a kind."""
        return self.memory_sql(alias) if kind == MEMORY else self.row_sql("episodes", alias)

    def memory_sql(self, alias: str = "") -> tuple[str, list]:
        """Return the whole condition on memories, the source included."""
        sql, params = self.row_sql("memories", alias)
        if self.source_id and self.source_is_prefix:
            sql += f" AND substr({alias}source_id, 1, ?) = ?"
            params += [len(self.source_id), self.source_id]
        elif self.source_id:
            sql += f" AND {alias}source_id = ?"
            params.append(self.source_id)
        return sql, params
