"""`context`: recall, and merge the rows with a dialogue.

Contract: context.merge.
"""

from __future__ import annotations

from .. import exits
from ..declare.spec import AXES, argument, command, option
from ..terminal import reading, render
from ..terminal.shaping import Shape, shape_options
from ._question import AS_OF, DEEP, FULL, LIMIT, NO_WAIT, SET, SOURCE_ID, nothing, question
from ._times import SINCE, UNTIL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..session import Session

_FIELDS = ("from", "ref", "time", "age", "id", "source", "content", "length", "truncated")


@command(
    "context",
    argument("query", "The question; - reads it from standard input."),
    option(
        "--history",
        "The dialogue: JSON, an array or a line for each {role, content, timestamp?}.",
        metavar="FILE|-",
        values="files",
    ),
    LIMIT,
    SOURCE_ID,
    FULL,
    DEEP,
    SINCE,
    UNTIL,
    AS_OF,
    SET,
    NO_WAIT,
    *shape_options(_FIELDS),
    common=AXES,
)
def context(session: Session, query: str, history: str | None, set: list[str], **given: Any) -> int:
    """Recall and merge the rows with a dialogue, in chronological order.

    What the dialogue already holds is not recalled again. Rows without a time stand first.
    The order is by time, not by match: the last row is the latest, not the best. --since and --until compare when a
    row was stored, both included.

    Example:
      cpersona context "what did we decide?" --history dialogue.json
    """
    if query == "-" and history == "-":
        raise exits.Usage("only one of the question and the history can come from standard input")
    shape = Shape.taken(_FIELDS, session.out, given)
    params = question(session, query, given)
    params["external_context"] = reading.json_objects(history, session.out) if history is not None else []
    answer = session.ask("recall_with_context", params, overrides=reading.pairs(set) or None)
    out = session.out
    rows = shape.within(out, answer.response, "messages", backwards=True)
    if session.show(answer, order="chronological", **shape.chosen_json("messages", rows, _field)):
        return answer.status
    shape.print(out, rows, _field, ("from", "ref", "time", "content"), whole=given["full"])
    render.warnings(out, answer.response)
    if not rows and not answer.response.get("no_words"):
        out.note(nothing(answer.response))
    elif rows and out.draws:
        out.note("in chronological order: the last row is the latest, not the best")
    return answer.status


def _field(row: dict, name: str) -> str:
    return _role(row) if name == "from" else row.get("timestamp", "") if name == "time" else render.field(row, name)


def _role(row: dict) -> str:
    source = row.get("source")
    if row.get("context_type") == "conversation":
        return str(source.get("type", "") if isinstance(source, dict) else "").lower() or "dialogue"
    return "memory"


COMMANDS = (context,)
