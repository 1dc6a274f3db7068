"""`status`: short for `daemon status`.

Contract: daemon.tells, progress.measured.
"""

from __future__ import annotations

from ..declare.spec import PLAIN, command
from .daemon import WATCH, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command("status", WATCH, common=PLAIN)
def status(session: Session, watch: bool) -> int:
    """Show how the daemon is: short for `daemon status`. Exit 0 running, 4 not running, 6 silent.

    What is still to be embedded stands under `store`, with the rate and the time that is left once they were measured.
    Nothing is started for it.

    Example:
      cpersona status
      cpersona status --watch
    """
    return shown(session, watch)


COMMANDS = (status,)
