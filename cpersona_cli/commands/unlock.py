"""`unlock`: free memories again.

Contract: locks.hold, rows.keyed.
"""

from __future__ import annotations

from ..declare.spec import ROWS, WRITES, command
from ._keys import KEYS, rows_named
from ._rows import MEMORIES, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command("unlock", MEMORIES, KEYS, common=(*WRITES, *ROWS))
def unlock(session: Session, refs: list[str], id: list[str]) -> int:
    """Let memories be changed and deleted again.

    Example:
      cpersona unlock mem:12
    """
    return each(session, rows_named(session, refs, id), "unlocked", {"mem": ("unlock_memory", "memory_id")})


COMMANDS = (unlock,)
