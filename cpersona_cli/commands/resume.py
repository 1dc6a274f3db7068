"""`resume`: keep again.

Contract: pause.answers.
"""

from __future__ import annotations

from ..declare.spec import PLAIN, WRITES, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command("resume", common=(*WRITES, *PLAIN))
def resume(session: Session) -> int:
    """End a pause; with --session that session's.

    Example:
      cpersona resume
    """
    answer = session.ask("resume_persistence", {})
    if not session.show(answer):
        session.out.line("keeping")
        if not answer.response.get("was_active"):
            session.out.note("no pause was on")
    return answer.status


COMMANDS = (resume,)
