"""`reconstruct`: items with their evidence.

Contract: associations.reconstruct.
"""

from __future__ import annotations

from ..declare.spec import AXES, argument, command, option
from ..terminal import explain, reading, render
from ..terminal.output import counted
from ._entities import say_bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..session import Session
    from ..terminal.render import Branch


@command(
    "reconstruct",
    argument("query", "The question; - reads it from standard input."),
    option("-n --count", "Items at most.", kind="int", metavar="N", least=0),
    option("--top-k", "Rows that the recall behind it may hand over, 1 to 100.", kind="int", metavar="N", least=0),
    option("--max-hops", "Steps along relations between entities, 0 to 5.", kind="int", metavar="N", least=0),
    option("--max-evidence", "Claims at most, 1 to 100.", kind="int", metavar="N", least=0),
    option("--budget", "Characters of quoted text at most.", kind="int", metavar="N", least=0),
    option("--source-id", "Only memories of this source.", metavar="ID"),
    option("--deep", "Let weaker matches pass.", kind="flag", default=False),
    option("--no-wait", "Do not wait for the embedder to load; words alone decide then.", kind="flag", default=False),
    option("--trace", "Show how items came to be.", kind="flag", default=False),
    option(
        "--set",
        "A retrieval setting for this call alone; may be repeated.",
        metavar="NAME=VALUE",
        many=True,
        values="overrides",
    ),
    common=AXES,
)
def reconstruct(
    session: Session, query: str, set: list[str], trace: bool, deep: bool, no_wait: bool, **given: Any
) -> int:
    """Answer with items: what belongs together as one, each with its evidence and quotations.

    Items stand best first. Below each: its claims, newest first, with the rule that brought them and their
    roles towards each other. A quotation is always text of the stored row.

    Example:
      cpersona reconstruct "why did we leave Redis?" -n 3
    """
    params = session.axes()
    params["query"] = reading.question(query, session.out)
    params.update({name: value for name, value in given.items() if value is not None})
    for name, value in (("deep", deep), ("trace", trace), ("no_wait", no_wait)):
        if value:
            params[name] = True
    answer = session.ask("reconstruct", params, overrides=reading.pairs(set) or None)
    if session.show(answer):
        return answer.status
    response, out = answer.response, session.out
    if response.get("trace") is not None:
        explain.show(out, response["trace"])
    for item in response.get("items", ()):
        render.tree(out, f"{item.get('head_ref')}  {item.get('content', '')}", _item(item))
    if response.get("shortfall_reason"):
        why = response["shortfall_reason"]
        out.note(f"{counted(response.get('returned_count', 0), 'items')}: {_SHORTFALLS.get(why, why)}")
    say_bounds(out, response)
    render.warnings(out, response)
    return answer.status


def _item(item: dict) -> list[Branch]:
    """Return an item's claims with their roles and quotations as branches of a tree."""
    quotes: dict[object, list[str]] = {}
    for excerpt in item.get("excerpts", ()):
        if isinstance(excerpt, dict):
            quotes.setdefault(excerpt.get("ref"), []).append(str(excerpt.get("content", "")))
    branches: list[Branch] = []
    for claim in item.get("claims", ()):
        said = [str(claim.get("ref")), claim.get("as_of") or "undated"]
        if claim.get("why"):
            said.append(claim["why"])
        if claim.get("hops"):
            said.append(f"{claim['hops']} hops" if claim["hops"] > 1 else "1 hop")
        below: list[Branch] = [
            (
                f"{role.get('role')} by {role.get('ref')}"
                if role.get("role") != "temporal_predecessor"
                else f"preceded by {role.get('ref')}",
                [],
            )
            for role in claim.get("roles", ())
        ]
        below += [(f"“{quote}”", []) for quote in quotes.get(claim.get("ref"), ())]
        branches.append(("  ".join(said), below))
    return branches


# What `shortfall_reason` means to who asked.
_SHORTFALLS = {
    "no_relevant_evidence": "nothing in the store came into question",
    "below_quality_threshold": "what came into question did not pass the gate; --deep lets weaker matches pass",
    "exhausted_candidates": "nothing else came into question",
    "budget_exhausted": "the room for text is used up; --budget gives more",
    "count_zero": "none were asked for",
}


COMMANDS = (reconstruct,)
