"""`restore-memory`: make rows what they were.

Contract: past.kept, locks.hold.
"""

from __future__ import annotations

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import ROWS, WRITES, argument, command
from ..terminal import reading
from ._keys import within
from ._rows import outcome, tell_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session

_DONE = {"returned": "brought back", "changed": "changed back", "unchanged": "unchanged"}


@command(
    "restore-memory",
    argument("ref", "The row, like mem:12 or ep:3; mem:12@2 is what it was two acts ago.", metavar="REF[@N]"),
    common=(*WRITES, *ROWS),
)
def restore_memory(session: Session, ref: str) -> int:
    """Make a row what it was before its last change, or before it was deleted; @N means the N that `history` shows.

    A deleted row comes back under its ref, with its times, labels, mentions and relations. A changed one gets its text,
    time, source and metadata back; its lock and its counts stay. A locked row is not changed, and nothing is where
    another row has the text or the key by now. `history` keeps what was there, and `undo` takes this back.

    Example:
      cpersona delete mem:12 && cpersona restore-memory mem:12
      cpersona restore-memory mem:12@2
    """
    named, at, number = ref.partition("@")
    if at and not (number.isascii() and number.isdigit() and 0 < len(number) <= 9 and int(number)):
        raise exits.Usage(f"{ref!r} names no text; give one like mem:12@2, with the N that `cpersona history` shows")
    named = reading.canonical(named)
    params = {"agent_id": session.agent, **within(session), "ref": named, "version": int(number) if at else 1}
    answer = session.ask("restore_row", params, refused=lambda answer: tell_apart(session, named, answer))
    done = answer.response.get("result", "")
    if not session.show(answer):
        outcome(session, named, _DONE.get(done, done), answer.response)
    if dropped := answer.response.get("dropped_links"):
        session.out.note(f"{dropped} of its mentions and relations name what is gone, and stay away")
    return answer.status or (fields.EXIT_NOTHING if done == "unchanged" else fields.EXIT_OK)


COMMANDS = (restore_memory,)
