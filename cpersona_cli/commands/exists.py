"""`exists`: is there a row that holds this text? A yes-or-no question with an exit status.

Contract: exists.words, exit.status.
"""

from __future__ import annotations

from cpersona_daemon.shared import fields

from ..declare.spec import AXES, argument, command, option
from ..terminal import reading
from ._times import SINCE, UNTIL, between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..session import Session


@command(
    "exists",
    argument("text", "What a row must hold; - reads it from standard input."),
    option("--source-id", "Only memories of this source; one that ends in a sign is a prefix.", metavar="ID"),
    SINCE,
    UNTIL,
    common=AXES,
)
def exists(session: Session, text: str, source_id: str | None, **given: Any) -> int:
    """Say whether a row holds a text: all of its words in one row, in any order. Print the row's ref; with -q nothing.

    Words only: no meaning, no threshold, no score. --since and --until compare when a row was stored, both included.
    Exit 0 when there is one, 3 when there is none.

    Example:
      cpersona exists E1042 -q && echo known
      cpersona exists "deploy branch" || cpersona store "Deploys run from main"
    """
    params = {**session.axes(), "text": reading.read_text("-", session.out).strip("\n") if text == "-" else text}
    if source_id is not None:
        params["source_id"] = source_id
    params |= between(session, given)
    answer = session.ask("exists", params)
    there = answer.response.get("exists")
    if not session.show(answer) and not session.out.quiet:
        if there:
            session.out.line(answer.response.get("ref", ""))
            if answer.response.get("match") == "words":
                session.out.note("it holds the words; the text itself stands in no row")
        else:
            session.out.note("no row holds it")
    return fields.EXIT_OK if there else fields.EXIT_NOTHING


COMMANDS = (exists,)
