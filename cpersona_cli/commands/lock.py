"""`lock`: protect memories from change and deletion.

Contract: locks.hold, rows.keyed.
"""

from __future__ import annotations

from ..declare.spec import ROWS, WRITES, command
from ._keys import KEYS, rows_named
from ._rows import MEMORIES, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command("lock", MEMORIES, KEYS, common=(*WRITES, *ROWS))
def lock(session: Session, refs: list[str], id: list[str]) -> int:
    """Protect memories from change and deletion. A lock does not make a memory rank higher.

    Example:
      cpersona lock mem:12 mem:13
      cpersona lock --id deploy-branch
    """
    return each(session, rows_named(session, refs, id), "locked", {"mem": ("lock_memory", "memory_id")})


COMMANDS = (lock,)
