"""`unlock`: free memories again.

Contract: locks.hold.
"""

from __future__ import annotations

from ..declare.spec import AGENT, WRITES, command
from ._rows import MEMORIES, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command("unlock", MEMORIES, common=(*WRITES, *AGENT))
def unlock(session: Session, refs: list[str]) -> int:
    """Let memories be changed and deleted again.

    Example:
      cpersona unlock mem:12
    """
    return each(session, refs, "unlocked", {"mem": ("unlock_memory", "memory_id")})


COMMANDS = (unlock,)
