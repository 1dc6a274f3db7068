"""`profile`: the one text that describes an agent.

Contract: profile.one.
"""

from __future__ import annotations

from ..declare.spec import AGENT, WRITES, argument, command
from ..terminal import cuts, reading
from ..terminal.failure import paused_line
from ..terminal.output import without_controls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command("profile show", common=AGENT)
def show(session: Session) -> int:
    """Print the agent's profile as it is.

    Example:
      cpersona profile show
    """
    answer = session.ask("get_profile", {"agent_id": session.agent})
    if not session.show(answer):
        text = answer.response.get("profile")
        if text:
            session.out.line(without_controls(text) if session.out.draws else text)
        else:
            session.out.note(f"agent {session.agent!r} has no profile; `cpersona profile set TEXT` gives it one")
    return answer.status


@command(
    "profile set",
    argument(
        "text", "The profile; - or nothing at all reads it from standard input.", required=False, metavar="TEXT|-"
    ),
    cuts.FAIL_IF_CUT,
    common=(*WRITES, *AGENT),
)
def set_(session: Session, text: str | None, fail_if_cut: bool) -> int:
    """Replace the agent's profile.

    A recall may show the profile as a row without a score; that is no promise. What must always be in a
    prompt belongs into the prompt.

    Example:
      cpersona profile set "Keeps the build green; answers in German."
    """
    params: dict = {"agent_id": session.agent, "profile": reading.text_or_stdin(text, "profile", session.out)}
    if fail_if_cut:
        params["fail_if_cut"] = True
    answer = session.ask("update_profile", params)
    if not session.show(answer):
        if answer.response.get("persisted") is False:
            session.out.warn(paused_line("the profile is as it was", answer.response))
        else:
            session.out.note("profile replaced")
    cuts.warn(session.out, answer.response, "the profile", "max_profile_length")
    return answer.status


COMMANDS = (show, set_)
