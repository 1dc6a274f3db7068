"""`update`: give a memory a new text.

Contract: edit.update, rows.keyed.
"""

from __future__ import annotations

from ..declare.spec import ROWS, WRITES, argument, command
from ..terminal import cuts, reading
from ._keys import KEY, one, within
from ._rows import outcome, tell_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command(
    "update",
    argument("ref", "The memory, like mem:12; none with --id.", required=False, values="memories"),
    argument(
        "text", "Its new text; - or nothing at all reads it from standard input.", required=False, metavar="TEXT|-"
    ),
    KEY,
    cuts.FAIL_IF_CUT,
    common=(*WRITES, *ROWS),
)
def update(session: Session, ref: str | None, text: str | None, id: str | None, fail_if_cut: bool) -> int:
    """Give a memory a new text; it is found by the new text at once.

    What it said is kept: `history REF` shows it, `restore-memory REF` brings it back. A locked memory is not changed,
    and neither is one when another memory already has that text. A text that is too long is cut, and how much of how
    much is said.

    Example:
      cpersona update mem:12 "Deploys run from the main branch"
      cpersona update --id deploy-branch "Deploys run from the main branch"
    """
    if id is not None and text is None:
        ref, text = None, ref  # the first word is the text then
    number = one(session, ref, id)
    params = {
        "agent_id": session.agent,
        **within(session),
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
