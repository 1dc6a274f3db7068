"""`batches`: the named runs that can be taken back.

Contract: batch.undo.
"""

from __future__ import annotations

from ..declare.spec import AGENT, command, option
from ..terminal import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command(
    "batches",
    option("-n --limit", "Batches at most, up to 1,000.", kind="int", default=100, metavar="N", least=0),
    option("--all-agents", "Those of every agent, with the agents' names.", kind="flag", default=False),
    common=AGENT,
)
def batches(session: Session, limit: int, all_agents: bool) -> int:
    """List the runs of `store --batch` and `import --batch` that have rows, the latest first. `undo NAME` deletes them.

    Columns: name, memories, episodes, when the first and the last row was stored (UTC), with --all-agents the agents.
    `undo NAME --dry-run` says how many rows would go, `list --batch NAME` shows them.

    Example:
      cpersona batches
      cpersona undo monday --dry-run
    """
    params = {"agent_id": session.whom(all_agents), "limit": session.at_most(limit, 1_000)}
    answer = session.ask("list_batches", params)
    found, out = answer.response["batches"], session.out
    if not session.show(answer):
        columns = ("batch", "memories", "episodes", "first", "last", *(("agents",) if all_agents else ()))
        rows = [[", ".join(row[name]) if name == "agents" else row[name] for name in columns] for row in found]
        render.table(out, columns, rows)
    if not found:
        out.note("no batches" + ("" if all_agents else f" of agent {session.agent!r}"))
    elif answer.response["more"]:
        out.note(f"there are more than {len(found)}; -n shows up to 1,000")
    return answer.status


COMMANDS = (batches,)
