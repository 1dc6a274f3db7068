"""`list`: the newest memories.

Contract: lists.newest, lists.narrowed, output.shapes.
"""

from ..declare.spec import AXES, command, option
from ..terminal import render
from ..terminal.shaping import Shape, shape_options
from ._question import SOURCE_ID
from ._rows import field
from ._times import SINCE, UNTIL, between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..session import Rows, Session

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
_NARROWED: "Rows" = tuple((name, name, None) for name in ("source_id", "locked", "batch", "id_prefix"))


@command(
    "list",
    option("-n --limit", "Rows at most, up to 500.", kind="int", default=100, metavar="N", least=0),
    SINCE,
    UNTIL,
    option(
        "--as-of",
        "Rows as they were then, as far as that is kept; how many were changed or deleted since is said.",
        metavar="TIME",
    ),
    SOURCE_ID,
    option("--locked", "Only locked ones.", kind="flag", default=False),
    option("--batch", "Only what the runs of this name wrote.", metavar="NAME"),
    option("--id-prefix", "Only those whose key, your own, begins with this, as it is written.", metavar="TEXT"),
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
    **given: "Any",
) -> int:
    """List the newest memories, newest first.

    Columns: ref, when it was stored (UTC), lock, project, channel, content. --since and --until compare
    when a row was stored, not the time that it speaks of; both are included.

    Example:
      cpersona list -n 20
      cpersona list --since 2026-03-01 --until 2026-03-01
      cpersona list --batch monday --locked
      cpersona list --id-prefix deploy- --fields ref,id
      cpersona list --fields ref -0 | xargs -0 cpersona lock
    """
    shape = Shape.taken(_FIELDS, session.out, given)
    params = {**session.axes(), "agent_id": session.whom(all_agents), "limit": session.at_most(limit, 500)}
    params |= between(session, {"since": since, "until": until, "as_of": as_of})
    params |= session.parameters(given, _NARROWED)
    answer = session.ask("list_memories", params)
    rows = shape.within(session.out, answer.response, "memories")
    if session.show(answer, **shape.chosen_json("memories", rows, field)):
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
