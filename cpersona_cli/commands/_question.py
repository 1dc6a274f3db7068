"""What the commands that ask a question share: their options, the request, and what an empty answer says.

Contract: recall.order, output.shapes.
"""

from ..declare.spec import option
from ..terminal import reading, render
from ._times import between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..session import Rows, Session

LIMIT = option("-n --limit", "Rows at most, 0 to 100.", kind="int", metavar="N", least=0)

SOURCE_ID = option("--source-id", "Only memories of this source; one that ends in a sign is a prefix.", metavar="ID")

DEEP = option("--deep", "Let weaker matches pass.", kind="flag", default=False)

FULL = option("--full", "Whole texts, as far as the daemon's budget goes.", kind="flag", default=False)

NO_WAIT = option(
    "--no-wait", "Do not wait for the embedder to load; words alone decide then.", kind="flag", default=False
)

AS_OF = option(
    "--as-of",
    "Rows as they were then, deleted ones too, as far as that is kept: a time as --since takes it.",
    metavar="TIME",
)

SET = option(
    "--set",
    "A retrieval setting for this call alone; may be repeated.",
    metavar="NAME=VALUE",
    many=True,
    values="overrides",
)


# Option -> parameter, for every command that asks.
ASKED: "Rows" = (
    ("limit", "limit", lambda session, limit: session.at_most(limit, 100)),
    ("source_id", "source_id", None),
    ("full", "full_content", None),
    ("deep", "deep", None),
    ("no_wait", "no_wait", None),
)


def question(session: "Session", query: str, given: "Mapping[str, Any]", table: "Rows" = ASKED) -> dict:
    """Return the parameters of a question: the axes, its text, and what ``table`` makes of the options given."""
    return {
        **session.axes(),
        "query": reading.question(query, session.out),
        **session.parameters(given, table),
        **between(session, given),
    }


def nothing(response: dict) -> str:
    """Return what an empty answer says: how many candidates there were and by how much the best one missed."""
    if response.get("absent"):
        return f"nothing found: no row holds {', '.join(response['absent'])}; --explain shows what was cut"
    if response.get("not_held"):
        held = " and ".join(f'"{text}"' for text in response["not_held"])
        return f"nothing found: no row holds {held}; without the quotes its words are looked for"
    missed, considered = response.get("best_missed"), response.get("considered")
    if not considered and not missed:
        return "nothing found: no row came into question" if considered is not None else "nothing found"
    if considered:
        rows = "row" if considered == 1 else "rows"
        gated = response.get("gated", 0)
        said = f"nothing found: {considered} {rows} came into question, {gated} did not pass the gate"
    else:
        said = "nothing found: no row was near enough to come into question"
    if missed:
        said += (
            f"; the nearest, {missed.get('ref')}, has {missed.get('signal')} {render.number(missed.get('score'))}"
            f" where {render.number(missed.get('threshold'))} is asked"
        )
    return f"{said}; --deep lets weaker matches pass, --explain shows what was cut"
