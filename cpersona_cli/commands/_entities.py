"""How declared entities are shown, and which bounds left something out.

Contract: associations.declare.
"""

from __future__ import annotations

from ..terminal import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..terminal.output import Output


def say_bounds(out: Output, response: dict) -> None:
    """Say which bounds left something out, by the options that move them."""
    omitted = (response.get("bounds") or {}).get("omitted", ())
    moved = [
        "-n" if name in ("count", "limit") else "--" + name.replace("_", "-") for name in omitted if name != "relations"
    ]
    if moved:
        out.note(
            f"there is more than {' and '.join(moved)} {'lets' if len(moved) == 1 else 'let'} through;"
            " a larger number shows it"
        )
    if "relations" in omitted:
        out.note("an entity has more relations than are followed, so some evidence may be missing")


def print_entities(out: Output, title: str, entities: list[dict], relations: list[dict]) -> None:
    names = {entity["id"]: entity["name"] for entity in entities}
    by_hop = []
    for entity in entities:
        said = [entity["name"]]
        if "hops" in entity:
            said.append(f"{entity['hops']} hops" if entity["hops"] != 1 else "1 hop")
        below: list = []
        if entity.get("aliases"):
            below.append((f"also {', '.join(entity['aliases'])}", []))
        if entity.get("mentions"):
            more = f" and {entity['mentions_omitted']} more" if entity.get("mentions_omitted") else ""
            below.append((f"in {', '.join(_refs(entity['mentions']))}{more}", []))
        by_hop.append(("  ".join(said), below))
    lines: list = [
        (f"{_end(names, r, 'subject')} {r['predicate']} {_end(names, r, 'object')}  (relation {r['id']})", [])
        for r in relations
    ]
    render.tree(out, title, [*by_hop, *([("relations", lines)] if lines else [])])


def _refs(mentions: object) -> list[str]:
    if not isinstance(mentions, list):
        return [str(mentions)]
    return [mention if isinstance(mention, str) else mention.get("ref", "") for mention in mentions]


def _end(names: Mapping[Any, Any], relation: dict, side: str) -> str:
    """Return one end of a relation by name: an entity's name, a record's ref, else what the daemon said."""
    value = relation.get(side)
    return str(relation.get(f"{side}_name") or names.get(value, value))
