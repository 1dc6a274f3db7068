"""`precision`: choose how strict the gate is.

Contract: calibration.precision.
"""

from __future__ import annotations

from ..declare.spec import AGENT, WRITES, argument, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command("precision get", common=AGENT)
def get(session: Session) -> int:
    """Print how strict the agent's gate is: strict, balanced or lenient.

    Example:
      cpersona precision get
    """
    answer = session.ask("get_recall_precision", {"agent_id": session.agent})
    if not session.show(answer):
        session.out.line(str(answer.response.get("precision")))
        if not answer.response.get("overridden"):
            session.out.note("the default; `cpersona precision set strict|balanced|lenient` chooses")
    return answer.status


@command(
    "precision set",
    argument(
        "level",
        "strict: fewer and surer rows; lenient: more rows.",
        metavar="strict|balanced|lenient",
        values=("strict", "balanced", "lenient"),
    ),
    common=(*WRITES, *AGENT),
)
def set_(session: Session, level: str) -> int:
    """Choose how strict the gate is and measure the thresholds again at once.

    In the modes rrf, rsf and cascade nothing changes where they cannot be measured, and the command fails; a blend's
    gate moves in any store.

    Example:
      cpersona precision set strict
    """
    return _set(session, level)


@command("precision clear", common=(*WRITES, *AGENT))
def clear(session: Session) -> int:
    """Go back to the default precision.

    Example:
      cpersona precision clear
    """
    return _set(session, "")


def _set(session: Session, level: str) -> int:
    answer = session.ask(
        "set_recall_precision", {"agent_id": session.agent, "precision": level}, hint="nothing was changed"
    )
    if not session.show(answer):
        session.out.line(str(answer.response.get("precision")))
        if level:
            session.out.note("the gate follows at once; `cpersona recall QUERY --explain` shows it")
    return answer.status


COMMANDS = (get, set_, clear)
