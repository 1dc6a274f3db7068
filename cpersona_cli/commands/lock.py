"""`lock`: protect memories from change and deletion.

Contract: locks.hold.
"""

from __future__ import annotations

from ..declare.spec import AGENT, WRITES, command
from ._rows import MEMORIES, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command("lock", MEMORIES, common=(*WRITES, *AGENT))
def lock(session: Session, refs: list[str]) -> int:
    """Protect memories from change and deletion. A lock does not make a memory rank higher.

    Example:
      cpersona lock mem:12 mem:13
    """
    return each(session, refs, "locked", {"mem": ("lock_memory", "memory_id")})


COMMANDS = (lock,)
