"""What is asked: whose memory, which part of it, in which way. Values, and the requests that they make.

Contract: explore.order, time.typed, time.between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import exits
from ..terminal import times

MODES = ("blend", "rrf", "rsf", "cascade")
PRECISIONS = ("strict", "balanced", "lenient")
_POOL = "''"  # how the global pool is typed where an empty field means every project


class Filters(NamedTuple):
    """The part of the memory that is looked at. ``since`` and ``until`` stand as they were typed; None is no limit."""

    agent: str
    project: str | None = None
    channel: str | None = None
    since: str | None = None
    until: str | None = None

    def params(self) -> dict[str, Any]:
        """Return them as parameters of a recall. Raises Usage where a time is none, or nothing can lie between two."""
        params: dict[str, Any] = {"agent_id": self.agent}
        if self.project is not None:
            params["project_id"] = self.project
        if self.channel:
            params["channel"] = self.channel
        if self.since:
            params["since"] = times.parse(self.since).start.astimezone(times.UTC).isoformat()
        if self.until:
            params["until"] = times.parse(self.until).end.astimezone(times.UTC).isoformat()
        if params.get("since", "") > params.get("until", "9"):
            raise exits.Usage(f"since {self.since} lies after until {self.until}; nothing can be between them")
        return params

    def axes(self) -> dict[str, Any]:
        """Return agent, project and channel alone, for a write that keeps a question."""
        return self._replace(since=None, until=None).params()

    def fields(self) -> dict[str, str]:
        """Return what each field of the form holds."""
        project = _POOL if self.project == "" else self.project or ""
        return {
            "agent": self.agent,
            "project": project,
            "channel": self.channel or "",
            "since": self.since or "",
            "until": self.until or "",
        }

    @staticmethod
    def typed(fields: dict[str, str]) -> Filters:
        """Return the filters of a form; a field left empty is no limit. Raises Usage."""
        given = {name: text.strip() for name, text in fields.items()}
        if not given["agent"]:
            raise exits.Usage("name an agent: every memory belongs to one")
        project = "" if given["project"] == _POOL else given["project"] or None
        found = Filters(
            given["agent"], project, given["channel"] or None, given["since"] or None, given["until"] or None
        )
        found.params()
        return found

    def told(self) -> str:
        """Return them as one line says them."""
        project = "global pool" if self.project == "" else f"project {self.project}" if self.project else "any project"
        channel = f"channel {self.channel}" if self.channel else "any channel"
        bounds = [f"{name} {text}" for name, text in (("since", self.since), ("until", self.until)) if text]
        return " · ".join((f"agent {self.agent}", project, channel, " ".join(bounds) or "any time"))


class Way(NamedTuple):
    """A way of asking: under a mode or with a precision other than the store's own, '' for these."""

    mode: str = ""
    precision: str = ""

    @property
    def overrides(self) -> dict[str, str] | None:
        return {"recall_mode": self.mode} if self.mode else None

    @property
    def params(self) -> dict[str, str]:
        return {"precision": self.precision} if self.precision else {}

    def told(self, mode: str) -> str:
        """Return its name, where ``mode`` is the store's own."""
        return ", ".join(filter(None, (self.mode or mode, self.precision)))


AS_SET = Way()


def next_mode(way: Way, own: str) -> Way:
    """Return the way to look at beside the store's own with the next mode; AS_SET behind the last."""
    others = ["", *(mode for mode in MODES if mode != own)]
    at = others.index(way.mode) if way.mode in others and not way.precision else 0
    return Way(others[(at + 1) % len(others)])


def next_precision(way: Way, own: str) -> Way:
    """Return the same with the next precision, which only a blend takes with a question."""
    levels = ["", *PRECISIONS]
    level = levels[(levels.index(way.precision) + 1) % len(levels)]
    return Way("blend" if level and own != "blend" else "", level)


class Asked(NamedTuple):
    """A question as it stands: its text, where it is looked for, and how many rows at most."""

    text: str
    filters: Filters
    limit: int
    deep: bool = False

    def params(self, way: Way = AS_SET, why_not: str | None = None) -> dict[str, Any]:
        """Return the parameters of a recall that counts nowhere. Raises Usage.

        ``why_not`` names a row whose absence is to be explained, and nothing else is then.
        """
        params = {**self.filters.params(), "query": self.text, "limit": self.limit, "passages": True, **way.params}
        if self.deep:
            params["deep"] = True
        told: dict[str, Any] = {"trace": True} if why_not is None else {"why_not": why_not}
        return {**params, **told, "uncounted": True}


class Setup(NamedTuple):
    """What the screen begins with. ``mode`` and ``limit`` hold for every question; ``signed`` adds what every write
    carries.
    """

    question: str
    filters: Filters
    mode: str
    limit: int
    deep: bool
    signed: Callable[[str, dict[str, Any]], dict[str, Any]]
