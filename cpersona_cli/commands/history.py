"""`history`: what a row was before it was changed or deleted.

Contract: past.kept, rows.keyed.
"""

from __future__ import annotations

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import ROWS, argument, command, option
from ..terminal import ages, reading, render
from ..terminal.output import counted
from ._keys import KEY, one, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command(
    "history",
    argument("ref", "The row, like mem:12 or ep:3, there or deleted; none with --id.", required=False, values="refs"),
    KEY,
    option("-n --limit", "Acts at most, up to 500.", kind="int", default=50, metavar="N", least=0),
    common=ROWS,
)
def history(session: Session, ref: str | None, id: str | None, limit: int) -> int:
    """Show what a row was before each change and deletion, newest first. `restore-memory REF@N` brings one back.

    Columns: N, until when it was so (UTC), what was done then, the text; the row `now` is what it is today. Kept for
    CPERSONA_HISTORY_DAYS (30); `cpersona help history` says what is kept where. Exit 1 when nothing of a row is left.

    Example:
      cpersona history mem:12
      cpersona history mem:12 --json | jq -r '.entries[0].content'
    """
    if ref is not None and id is not None:
        raise exits.Usage("history: a ref and --id both name the row; give one of them")
    named = f"mem:{one(session, None, id)}" if ref is None else reading.canonical(ref)
    params = {"agent_id": session.agent, **within(session), "ref": named, "limit": session.at_most(limit, 500)}
    answer = session.ask("row_history", params)
    found, out = answer.response, session.out
    now, entries = found.get("now"), found.get("entries", [])
    if not session.show(answer):
        rows = [] if now is None else [("now", "", "", _text(now))]
        when = ages.age if out.draws else str
        rows += [(entry.get("n", ""), when(entry["at"]), entry["done"], _text(entry)) for entry in entries]
        render.table(out, ("n", "until", "done", "text"), rows, whole=True)
    if now is None and not entries:
        out.warn(
            f"cpersona history: no row {named} of agent {session.agent!r}, and nothing is kept of one;"
            " `cpersona help history` says what is, and for how long"
        )
        return fields.EXIT_FAILED
    if not entries:
        out.note(f"nothing else is kept of {named}; {_days(found['days'])}")
    elif found.get("more"):
        out.note(f"{counted(len(entries), 'acts')} shown, there are more; -n shows up to 500")
    return answer.status


def _text(row: dict) -> str:
    return row["left_out"] if "left_out" in row else row.get("content", "")


def _days(days: float) -> str:
    if not days:
        return "CPERSONA_HISTORY_DAYS is 0, so that nothing is"
    return f"a change or deletion is for {days:g} days"


COMMANDS = (history,)
