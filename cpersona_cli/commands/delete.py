"""`delete`: remove rows by their refs.

Contract: locks.hold, exit.status.
"""

from __future__ import annotations

from ..declare.spec import AGENT, WRITES, command
from ._rows import REFS, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command("delete", REFS, common=(*WRITES, *AGENT))
def delete(session: Session, refs: list[str]) -> int:
    """Delete memories and episodes by their refs. A locked memory stays.

    Of a deleted row the store keeps when it was stored and deleted, its agent, project and channel, so that --as-of can
    count it; `forget-agent` leaves not even that. Each outcome is said; the exit status is 1 if any row is still there.

    Example:
      cpersona delete mem:12 ep:3
    """
    return each(
        session, refs, "deleted", {"mem": ("delete_memory", "memory_id"), "ep": ("delete_episode", "episode_id")}
    )


COMMANDS = (delete,)
