"""`update`: give a memory a new text.

Contract: edit.update.
"""

from __future__ import annotations

from ..declare.spec import AGENT, WRITES, argument, command
from ..terminal import cuts, reading
from ._rows import outcome, tell_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command(
    "update",
    argument("ref", "The memory, like mem:12.", values="memories"),
    argument(
        "text", "Its new text; - or nothing at all reads it from standard input.", required=False, metavar="TEXT|-"
    ),
    cuts.FAIL_IF_CUT,
    common=(*WRITES, *AGENT),
)
def update(session: Session, ref: str, text: str | None, fail_if_cut: bool) -> int:
    """Give a memory a new text; it is found by the new text at once.

    A locked memory is not changed, and neither is one when another memory already has that text. A text that is too
    long is cut, and how much of how much is said.

    Example:
      cpersona update mem:12 "Deploys run from the main branch"
    """
    number = reading.memory_id(ref)
    params = {
        "agent_id": session.agent,
        "memory_id": number,
        "content": reading.text_or_stdin(text, "text", session.out),
    }
    if fail_if_cut:
        params["fail_if_cut"] = True
    answer = session.ask("update_memory", params, refused=lambda answer: tell_apart(session, f"mem:{number}", answer))
    if not session.show(answer):
        outcome(session, f"mem:{number}", "updated", answer.response)
    cuts.warn(session.out, answer.response)
    return answer.status


COMMANDS = (update,)
