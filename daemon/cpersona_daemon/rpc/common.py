"""What several handlers share: the axes, numbers with a default, and what a history does not tell.

Contract: scope.axes, recall.limit.
"""

from __future__ import annotations

from typing import Annotated, Any

import apsw
import msgspec

from ..errors import InvalidParams
from ..model.instants import created_text, parse_instant
from ..model.kinds import Kind
from ..model.scope import Scope
from ..storage import as_then, history, profiles
from . import advisories
from .registry import Call

MAX_QUERY_LENGTH = 8000
# What a question waits for an embedder that loads and for rows just stored, unless it says no_wait.
QUESTION_WAIT_SECONDS = 5.0


# What a parameter that is taken as it comes is meant to be: told to whoever reads the schema, and not held against it.
Text = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "string"})]
Whole = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "integer"})]
Map = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "object"})]
Maps = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "array", "items": {"type": "object"}})]
# Of what is linked: store and declare_associations take the same.
Associations = Annotated[
    Any,
    msgspec.Meta(
        extra_json_schema={
            "type": "object",
            "properties": {
                "entities": {"type": "array", "items": {"type": "object", "required": ["name"]}},
                "relations": {
                    "type": "array",
                    "items": {"type": "object", "required": ["subject", "predicate", "object"]},
                },
            },
        }
    ),
]


class AgentParams(msgspec.Struct, forbid_unknown_fields=True):
    """The agent alone; '' is every agent."""

    agent_id: str = ""


def check_question(text: str, name: str = "query", blank: bool = True) -> None:
    """Raise InvalidParams for a question that is too long, holds a NUL, or is blank where that asks for nothing."""
    if not (blank or text.strip()):
        raise InvalidParams(f"the {name} is blank; give 1 to {MAX_QUERY_LENGTH} characters")
    if len(text) > MAX_QUERY_LENGTH:
        raise InvalidParams(
            f"the {name} has {len(text)} characters, at most {MAX_QUERY_LENGTH} are taken; ask for less at a time"
        )
    if "\0" in text:
        raise InvalidParams(f"the {name} holds a NUL character; remove it")


def whole(value: Any) -> int | None:
    """Return a whole number as it is, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def bounded(value: Any, default: int, low: int, high: int) -> int:
    """Return a whole number within bounds; a wrong type becomes the default."""
    asked = whole(value)
    return min(max(default if asked is None else asked, low), high)


def scope_of(params: Any) -> Scope:
    """Return the scope that a read's params name.

    Raises InvalidParams for an instant that is none, and where no row can lie between two of them.
    """
    as_of, since, until = (stored_at(getattr(params, name, None), name) for name in ("as_of", "since", "until"))
    for name, instant in (("until", until), ("as_of", as_of)):
        if instant and since > instant:
            raise InvalidParams(f"since ({since}) lies after {name} ({instant}); nothing can be between them")
    return Scope(
        params.agent_id,
        params.project_id,
        params.channel or "",
        getattr(params, "source_id", None) or "",
        as_of,
        since,
        until,
    )


def stored_at(value: str | None, name: str) -> str:
    """Return an instant in the form that created_at has, '' for none.

    Raises InvalidParams for what names no instant.
    """
    if not value:
        return ""
    instant = parse_instant(value)
    try:
        if instant is not None:
            return created_text(instant)
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidParams(f"{name} names no instant; give one like 2026-03-01T09:30:00Z")


async def advise_of_history(
    call: Call,
    answer: dict,
    scope: Scope,
    kinds: tuple[Kind, ...],
    *,
    everyone: bool = False,
    profile: bool = False,
    shown: as_then.Shown | None = None,
) -> dict:
    """Add to an answer as of an instant for how many rows it cannot know what they were then, and return it.

    ``as_of`` holds the numbers: `{at, changed_since, deleted_since, recorded_since?, shown_as_then?}`; the advisory
    says for how many of them the answer is not true. ``everyone``: as ``history.unknown`` takes it; ``profile``:
    whether a profile may be among the rows; ``shown``: of how many the answer knows what they were, None where it shows
    none. An answer about now stays as it is.
    """
    if not scope.as_of:
        return answer

    def read(conn: apsw.Connection) -> tuple[history.Unknown, bool]:
        return history.unknown(conn, scope, kinds, everyone), profile and profiles.written_after(
            conn, scope.agent_id, scope.as_of
        )

    found, rewritten = await call.ctx.db.read(read)
    answer["as_of"] = {"at": scope.as_of, "changed_since": found.changed, "deleted_since": found.deleted}
    if found.recorded_since:
        answer["as_of"]["recorded_since"] = found.recorded_since
    if shown is not None and (shown.changed or shown.deleted):
        answer["as_of"]["shown_as_then"] = {"changed": shown.changed, "deleted": shown.deleted}
    said = _untrue(found, shown, " of any source" if scope.source_id else "")
    if rewritten:
        said.append("the profile was written since")
    if scope.as_of < found.recorded_since:
        said.append(f"what was changed or deleted before {found.recorded_since} UTC is not recorded")
    if said:
        advisories.add(
            answer,
            advisories.HINT,
            f"what stood here at {scope.as_of} UTC is not fully known: {'; '.join(said)}",
            f"changed since then: {found.changed}, deleted since then: {found.deleted}",
            "`cpersona help time` says what an answer as of an instant can know",
        )
    return answer


def _untrue(found: history.Unknown, shown: as_then.Shown | None, which: str) -> list[str]:
    """Return what is said of the rows for which an answer is not true of then; ``shown``: those for which it is."""
    if shown is None:
        return []
    changed, deleted = max(found.changed - shown.changed, 0), max(found.deleted - shown.deleted, 0)
    said = []
    if changed:
        kept = "is not kept as it was" if changed == 1 else "are not kept as they were"
        said.append(f"{_counted(changed)} changed since and {kept}")
    if deleted:
        said.append(f"{_counted(deleted)} deleted since{',' if which else ''}{which} and not kept")
    return said


def _counted(rows: int) -> str:
    return "1 row was" if rows == 1 else f"{rows}{' or more' if rows >= history.COUNTED else ''} rows were"
