"""`list`: the newest memories.

Contract: lists.newest, output.shapes.
"""

from ..declare.spec import AXES, command, option
from ..terminal import render
from ..terminal.shaping import Shape, shape_options
from ._rows import field
from ._times import SINCE, UNTIL, between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..session import Session

_FIELDS = (
    "ref",
    "stored",
    "age",
    "locked",
    "agent",
    "project",
    "channel",
    "id",
    "source",
    "timestamp",
    "metadata",
    "content",
    "length",
    "truncated",
)


@command(
    "list",
    option("-n --limit", "Rows at most, up to 500.", kind="int", default=100, metavar="N", least=0),
    SINCE,
    UNTIL,
    option(
        "--as-of",
        "Only rows stored by then, with what they say today; how many were changed or deleted since is said.",
        metavar="TIME",
    ),
    option("--all-agents", "Memories of every agent.", kind="flag", default=False),
    *shape_options(_FIELDS),
    common=AXES,
)
def list_(
    session: "Session",
    limit: int,
    since: str | None,
    until: str | None,
    as_of: str | None,
    all_agents: bool,
    **shaped: "Any",
) -> int:
    """List the newest memories, newest first.

    Columns: ref, when it was stored (UTC), lock, project, channel, content. --since and --until compare
    when a row was stored, not the time that it speaks of; both are included.

    Example:
      cpersona list -n 20
      cpersona list --since 2026-03-01 --until 2026-03-01
      cpersona list --fields ref -0 | xargs -0 cpersona lock
    """
    shape = Shape(_FIELDS, session.out.as_json, **shaped)
    params = {**session.axes(), "agent_id": session.whom(all_agents), "limit": session.at_most(limit, 500)}
    params |= between(session, {"since": since, "until": until, "as_of": as_of})
    answer = session.ask("list_memories", params)
    rows = shape.within(session.out, answer.response, "memories")
    if session.show(answer):
        return answer.status
    whose, rest = ["agent"] if all_agents else [], ["locked", "project", "channel", "content"]
    shape.print(session.out, rows, field, [*whose, "ref", "stored", *rest], [*whose, "ref", "age", *rest])
    render.warnings(session.out, answer.response)
    if not rows and limit:
        which = " like that" if params.keys() - {"agent_id", "limit"} else ""
        session.out.note(
            f"no memories{which} of agent {params['agent_id']!r}" if params["agent_id"] else f"no memories{which}"
        )
    return answer.status


COMMANDS = (list_,)
