"""`forget-agent`: erase an agent.

Contract: forget.agent.
"""

from __future__ import annotations

import sys

from .. import exits
from ..declare.spec import PLAIN, WRITES, argument, command, option
from ._agents import refuse_unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command(
    "forget-agent",
    argument("name", "The agent to erase.", metavar="NAME", values="agents"),
    option("--yes", "Do not ask.", kind="flag", default=False),
    common=(*WRITES, *PLAIN),
)
def forget_agent(session: Session, name: str, yes: bool) -> int:
    """Erase everything of one agent: memories (locked ones too), episodes, profile, associations, calibration, history.

    Nothing of it stays in any file of the store: indexes and database are written anew, and writes wait while the
    database is. Backups, exports and services elsewhere are not reached; `cpersona help history` says more.
    Asks on a terminal; elsewhere it needs --yes. Nothing brings the rows back but an export made before.

    Example:
      cpersona --agent old export old.jsonl && cpersona forget-agent old --yes
    """
    if not yes:
        if not sys.stdin.isatty():
            raise exits.Usage(f"forget-agent erases everything of {name!r}; add --yes where nobody can be asked")
        print(
            f"Erase everything of agent {name!r}, locked memories too? Type its name to go on: ",
            end="",
            file=sys.stderr,
            flush=True,
        )
        if sys.stdin.readline().strip() != name:
            raise exits.Stop("forget-agent: nothing was erased; type the agent's name to confirm, or give --yes")
    from ._runs import watch

    answer = watch(
        session,
        "delete_agent_data",
        {"agent_id": name},
        lambda reached: (
            "nobody sees anything of the agent any more; what is left is deleted without this command"
            if reached.get("stage")
            else "the agent is erased as a whole or not at all; run the same command again to see"
        ),
        grace=True,
    )
    shown = session.show(answer)
    refuse_unknown(session, answer, name)
    if not shown:
        for key, value in answer.response.items():
            if key.startswith("deleted_"):
                session.out.record(
                    (
                        key,
                        ", ".join(f"{count} {name}" for name, count in value.items())
                        if isinstance(value, dict)
                        else value,
                    )
                )
    return answer.status


COMMANDS = (forget_agent,)
