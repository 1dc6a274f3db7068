"""`delete`: remove rows by their refs.

Contract: locks.hold, exit.status, rows.keyed.
"""

from __future__ import annotations

from ..declare.spec import ROWS, WRITES, command
from ._keys import KEYS, rows_named
from ._rows import REFS, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command("delete", REFS, KEYS, common=(*WRITES, *ROWS))
def delete(session: Session, refs: list[str], id: list[str]) -> int:
    """Delete memories and episodes by their refs, memories by your own keys too. A locked memory stays.

    What is deleted is kept for CPERSONA_HISTORY_DAYS (30), and `restore-memory REF` brings it back. After that the
    store knows when it was stored and deleted, its agent, project and channel, so that --as-of can count it;
    `forget-agent` leaves not even that. Each outcome is said; the exit status is 1 if any row is still there.

    Example:
      cpersona delete mem:12 ep:3
      cpersona delete --id deploy-branch
    """
    methods = {"mem": ("delete_memory", "memory_id"), "ep": ("delete_episode", "episode_id")}
    return each(session, rows_named(session, refs, id), "deleted", methods)


COMMANDS = (delete,)
