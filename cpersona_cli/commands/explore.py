"""`explore`: look at what a recall answers, while its question is typed.

Contract: explore.screen, exit.status.
"""

from __future__ import annotations

import os
import sys

from .. import exits
from ..declare.spec import AXES, WRITES, argument, command
from ._question import DEEP, LIMIT
from ._times import SINCE, UNTIL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session

_LIMIT = 20


@command(
    "explore",
    argument("query", "The question to begin with; the newest rows without one.", required=False),
    LIMIT,
    DEEP,
    SINCE,
    UNTIL,
    common=(*WRITES, *(name for name in AXES if name != "json")),
)
def explore(
    session: Session, query: str | None, limit: int | None, deep: bool, since: str | None, until: str | None
) -> int:
    """Look at a recall while you type: its rows, each one's whole text, its score as bars.

    Every keystroke asks anew; the best row is the first one, nearest the question. For the row under the cursor its
    text has the question's words marked and the best passage of a long one, and bars show what its score is made of
    and what the gate asked. `w` shows rows that were not returned and says why, `m` and `p` ask the same under another
    mode or precision side by side. A row can be opened, copied, edited, locked, deleted, or saved as a canary.

    Enter leads from the question to the rows and their keys, / back, F1 shows every key, Ctrl-C quits. Nothing asked
    here counts as a recall. It needs a terminal, and the extra `explore`.

    Example:
      cpersona explore
      cpersona explore "which branch deploys" --project site --since monday
    """
    from ..explore.state import Filters, Setup

    axes = session.axes()
    filters = Filters(axes["agent_id"], axes.get("project_id"), axes.get("channel"), since, until)
    filters.params()  # what is wrong with a time is said first, as by every command that takes one
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") in (None, "", "dumb"):
        raise exits.Stop(
            "explore draws on a terminal, and there is none here; `cpersona recall QUERY --explain` prints"
        )
    try:
        from ..explore import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise exits.Stop(
            "explore: Textual, which draws the screen, is not installed; `pip install 'cpersona-cli[explore]'` brings "
            f"it, or `{sys.executable} -m pip install 'textual>=8,<9'`"
        ) from None
    from ..explore.asking import Asker
    from ..wire import client

    setup = Setup(
        query or "",
        filters,
        session.settings.recall_mode,
        session.at_most(_LIMIT if limit is None else limit, 100),
        deep,
        session.signed,
    )
    connection = session.connection

    def connect() -> client.Connection:
        return client.connect(session.settings, create=False, again=True)

    screen = app.Explore(setup, lambda deliver: Asker(connection, connect, deliver, app.ORDER))
    screen.run(mouse=False)
    return screen.return_code or 0


COMMANDS = (explore,)
