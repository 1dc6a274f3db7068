"""`edit`: give a memory a new text in an editor.

Contract: edit.update, edit.kept, rows.keyed.
"""

from __future__ import annotations

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import ROWS, WRITES, argument, command
from ..terminal import cuts
from ..terminal.editor import Draft
from ._keys import KEY, one, within
from ._rows import outcome, tell_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command(
    "edit",
    argument("ref", "The memory, like mem:12; none with --id.", required=False, values="memories"),
    KEY,
    cuts.FAIL_IF_CUT,
    common=(*WRITES, *ROWS),
)
def edit(session: Session, ref: str | None, id: str | None, fail_if_cut: bool) -> int:
    """Open a memory's text in your editor, VISUAL or EDITOR (else vi), and give the memory what you leave there.

    A text that is as it was, or empty, changes nothing. Where the memory was changed meanwhile, is locked, or the
    editor fails, nothing is changed either, and it is said in which private file your text is kept.

    Example:
      cpersona edit mem:12
      EDITOR="code --wait" cpersona edit --id deploy-branch
    """
    number, out = one(session, ref, id), session.out
    named, whose = f"mem:{number}", {"agent_id": session.agent, **within(session)}
    found = session.ask("get_contents", {**whose, "refs": [named]}).response["items"]
    if not found:
        raise exits.Stop(
            f"edit: no row {named} of agent {session.agent!r}; `cpersona list` shows what there is, --agent names"
            " another agent"
        )
    was = found[0]["content"]
    if found[0].get("cut"):
        out.note(f"{named} is the beginning of a longer text: {cuts.kept(found[0]['cut'])}")
    with Draft(out, "edit", f"{named.replace(':', '-')}.txt", was) as draft:
        text = draft.edited()
        if text is None or not text.strip():
            out.note(f"the text is {'as it was' if text is None else 'empty'}; {named} is not changed")
            if out.as_json:
                out.json({"ok": True, "ref": named, "changed": False})
            return fields.EXIT_OK
        params = {**whose, "memory_id": number, "content": text, "if_content": was}
        if fail_if_cut:
            params["fail_if_cut"] = True
        answer = session.ask("update_memory", params, refused=lambda answer: tell_apart(session, named, answer))
        if not session.show(answer):
            outcome(session, named, "updated", answer.response)
        cuts.warn(out, answer.response)
        if answer.response.get("persisted") is False or answer.response.get("cut"):
            draft.keep()
    return answer.status


COMMANDS = (edit,)
