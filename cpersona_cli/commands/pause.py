"""`pause`: keep nothing for a while.

Contract: pause.answers.
"""

from __future__ import annotations

from .. import exits
from ..declare.spec import PLAIN, WRITES, command, option
from ..terminal import times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command(
    "pause",
    option("--for", "How long: 30m, 2h; at most a day, 30m without it.", metavar="AGE", name="length"),
    option("--status", "Say whether a pause is on, change nothing.", kind="flag", default=False),
    common=(*WRITES, *PLAIN),
)
def pause(session: Session, length: str | None, status: bool) -> int:
    """Keep nothing for a while: writes answer as usual but leave the store as it is. Reads work.

    The pause lives in the daemon's memory: it ends by itself, with `resume`, or when the daemon leaves. It holds for
    whoever writes without a session; with --session for the writes alone that name the same session.

    Example:
      cpersona pause --for 1h
      cpersona pause --session s1 && cpersona store "kept nowhere" --session s1
    """
    if status:
        if length is not None:
            raise exits.Usage("pause: --status changes nothing and --for begins a pause; give one of them")
        answer = session.ask("persistence_status", {})
        if not session.show(answer):
            left = answer.response.get("ttl_remaining_seconds")
            if answer.response.get("paused"):
                session.out.line("paused" if left is None else f"paused\t{left:g} s left")
            else:
                session.out.line("keeping")
        return answer.status
    asked = round(times.seconds("30m" if length is None else length))
    answer = session.ask("pause_persistence", {"ttl_seconds": asked})
    if not session.show(answer):
        session.out.line(f"paused\tuntil {answer.response.get('expires_at')}")
    granted = answer.response.get("ttl_seconds", asked)
    if granted != asked:
        session.out.warn(f"cpersona: a pause lasts from a second to a day; this one lasts {granted:g} s")
    return answer.status


COMMANDS = (pause,)
