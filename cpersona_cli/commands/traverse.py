"""`traverse`: an entity's neighbours.

Contract: associations.traverse.
"""

from __future__ import annotations

from ..declare.spec import AXES, argument, command, option
from ._entities import print_entities, say_bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..session import Session


@command(
    "traverse",
    argument("entity", "An entity's name or alias.", metavar="ENTITY"),
    option("--max-hops", "Steps along relations, 0 to 5.", kind="int", metavar="N", least=0),
    option("-n --limit", "Entities at most, 1 to 100.", kind="int", metavar="N", least=0),
    option("--source-id", "Only mentions in memories of this source.", metavar="ID"),
    common=AXES,
)
def traverse(session: Session, entity: str, **given: Any) -> int:
    """Show an entity, its neighbours along declared relations, and where they are mentioned.

    Example:
      cpersona traverse "payments service" --max-hops 2
    """
    params = {**session.axes(), "entity": entity, **{name: value for name, value in given.items() if value is not None}}
    answer = session.ask("traverse", params)
    if session.show(answer):
        return answer.status
    response, out = answer.response, session.out
    found = response.get("entities", [])
    if not found:
        out.note(f"no entity is declared under the name {entity!r}; `cpersona associate list` shows what was")
        return answer.status
    print_entities(out, f"{entity}", found, response.get("relations", []))
    say_bounds(out, response)
    return answer.status


COMMANDS = (traverse,)
