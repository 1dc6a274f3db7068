"""What a scope and a window are to Qdrant: a payload for each point, and a filter over it, in the form of its REST API.

The created instant and the row's id stand in the payload, so that a scan position is a range: a window is what lies
between two rows of SQLite's order (created_at descending, id ascending).

Contract: qdrant.filters.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ...model.changes import VectorPut
from ...model.instants import created_seconds
from ...model.scope import Scope

AGENT, PROJECT, CHANNEL, SOURCE, CREATED, ROW = "agent", "project", "channel", "source", "created", "row"
KEYWORDS, INTEGERS = (AGENT, PROJECT, CHANNEL, SOURCE), (CREATED, ROW)  # what is indexed, and how

Filter = dict[str, Any]
# Where a source may be cut that names all that begin with it: behind what is neither letter nor digit.
_HEAD = re.compile(r"[\W_]")


class Place(NamedTuple):
    """Where a row stands in the scan order."""

    created_at: str
    id: int

    def before(self, other: Place) -> bool:
        """Tell whether it is scanned earlier."""
        return (self.created_at, -self.id) > (other.created_at, -other.id)


class Bounds(NamedTuple):
    """The places between which a window lies: behind ``after``, up to ``last``, None where it is open there."""

    after: Place | None = None
    last: Place | None = None

    def hold(self, place: Place) -> bool:
        """Tell whether a row that stands there is in the window."""
        if self.after is not None and not self.after.before(place):
            return False
        return self.last is None or not self.last.before(place)


def payload(put: VectorPut) -> dict[str, Any]:
    """Return what a point says of its row. ``source`` lists all that a question may name it by."""
    return {
        AGENT: put.agent_id,
        PROJECT: put.project_id,
        CHANNEL: put.channel,
        SOURCE: _names(put.source_id or ""),
        CREATED: created_seconds(put.created_at),
        ROW: put.id,
    }


def _names(source: str) -> list[str]:
    heads = [source[: found.end()] for found in _HEAD.finditer(source)]
    return list(dict.fromkeys([*heads, source]))


def of_agent(agent_id: str) -> Filter:
    """Return what all points of an agent match."""
    return {"must": [_equal(AGENT, agent_id)]}


def of_scope(scope: Scope, bounds: Bounds = Bounds(), with_source: bool = True) -> Filter:  # noqa: B008
    """Return what the points of a scope match that lie in a window; ``with_source`` false for episodes, which have
    none.
    """
    must = [_equal(AGENT, scope.agent_id)]
    if scope.project_id == "":
        must.append(_equal(PROJECT, ""))
    elif scope.project_id is not None:
        must.append(_any(PROJECT, [scope.project_id, ""]))
    if scope.channel:
        must.append(_any(CHANNEL, [scope.channel, ""]))
    if scope.source_id and with_source:
        must.append(_equal(SOURCE, scope.source_id))
    stored = {
        name: created_seconds(instant) for name, instant in (("gte", scope.since), ("lte", scope.latest)) if instant
    }
    if stored:
        must.append(_range(CREATED, **stored))
    must += [_scanned(bounds.last, "gt", "lte")] if bounds.last is not None else []
    must += [_scanned(bounds.after, "lt", "gt")] if bounds.after is not None else []
    return {"must": must}


def _scanned(place: Place, created: str, row: str) -> Filter:
    """Return what lies on one side of a place: of another second, or of the same and another id."""
    second = created_seconds(place.created_at)
    same = {"must": [_range(CREATED, gte=second, lte=second), _range(ROW, **{row: place.id})]}
    return {"should": [_range(CREATED, **{created: second}), same]}


def _equal(key: str, value: str) -> Filter:
    return {"key": key, "match": {"value": value}}


def _any(key: str, values: list[str]) -> Filter:
    return {"key": key, "match": {"any": list(dict.fromkeys(values))}}


def _range(key: str, **limits: int) -> Filter:
    return {"key": key, "range": limits}
