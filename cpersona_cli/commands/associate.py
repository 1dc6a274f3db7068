"""`associate`: declare, retract and list entities and relations.

Contract: associations.declare.
"""

from __future__ import annotations

from .. import exits
from ..declare.spec import AXES, WRITES, argument, command, option
from ..terminal import reading
from ..terminal.output import one_line
from ._entities import print_entities

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..session import Answer, Session

# Parts of a declaration whose name on the wire says little.
_PLACES = {"anchor_ref": "the --anchor"}


@command(
    "associate declare",
    argument(
        "associations",
        "Entities and relations as JSON; - reads them from standard input.",
        required=False,
        metavar="JSON|-",
    ),
    option("--entity", "Declare an entity; may be repeated.", metavar="NAME", many=True),
    option("--alias", "Another name of an entity; may be repeated.", metavar="NAME=ALIAS", many=True),
    option(
        "--relation",
        "Entity names or refs around a predicate; may be repeated.",
        metavar="'SUBJECT | PREDICATE | OBJECT'",
        many=True,
    ),
    option("--anchor", "The memory or episode that says so.", metavar="REF", values="refs"),
    common=(*WRITES, *AXES),
)
def declare(
    session: Session,
    associations: str | None,
    entity: list[str],
    alias: list[str],
    relation: list[str],
    anchor: str | None,
) -> int:
    """Declare entities, their other names, and relations. Nothing is ever inferred; declaring twice is harmless.

    What cannot be declared is left out, said on stderr, and makes the exit status 1.

    Example:
      cpersona associate declare --alias Postgres=pg
      cpersona associate declare --relation "queue | runs on | Postgres"
    """
    # Before the JSON: what follows `--alias NAME` without its sign would be taken for it.
    aliased = [_parts(text, "=", 2, "--alias", "NAME=ALIAS") for text in alias]
    related = [_parts(text, "|", 3, "--relation", "'SUBJECT | PREDICATE | OBJECT'") for text in relation]
    value = _declared(_json(session, associations), entity, aliased, related)
    if not value.get("entities") and not value.get("relations"):
        raise exits.Usage("name an --entity, an --alias or a --relation, or give them as JSON")
    params = {**session.axes(), "associations": value}
    if anchor is not None:
        params["anchor_ref"] = reading.canonical(anchor)
    answer = session.ask("declare_associations", params)
    if not session.show(answer):
        for row in answer.response.get("entities", ()):
            session.out.record(("entity", row.get("id"), row.get("name"), "new" if row.get("created") else "known"))
        for number in answer.response.get("relations", ()):
            session.out.record(("relation", number))
    return _dropped(session, answer)


def _json(session: Session, text: str | None) -> dict:
    """Return the associations that an argument holds, - for standard input, none for none."""
    if text is None:
        return {}
    return reading.json_argument(reading.read_text("-", session.out) if text == "-" else text, "the associations")


def _declared(value: dict, entity: list[str], aliased: list[list[str]], related: list[list[str]]) -> dict:
    """Return the associations ``value`` with those that options name behind its own."""
    aliases: dict[str, list[str]] = {name: [] for name in entity}
    for name, other in aliased:
        aliases.setdefault(name, []).append(other)
    more: dict[str, list] = {
        "entities": [
            {"name": name, "aliases": others} if others else {"name": name} for name, others in aliases.items()
        ],
        "relations": [dict(zip(("subject", "predicate", "object"), parts)) for parts in related],
    }
    return {**value, **{key: [*value.get(key, ()), *added] for key, added in more.items() if added}}


@command(
    "associate retract",
    option("--relation", "A relation's number; may be repeated.", kind="int", metavar="ID", many=True, least=1),
    option(
        "--mention",
        "An entity (name or number) and the row that no longer mentions it.",
        metavar="ENTITY=REF",
        many=True,
    ),
    common=(*WRITES, *AXES),
)
def retract(session: Session, relation: list[int], mention: list[str]) -> int:
    """Take back relations and mentions that were declared.

    Example:
      cpersona associate retract --relation 3 --mention Postgres=mem:12
    """
    if not relation and not mention:
        raise exits.Usage("name a --relation or a --mention; `cpersona associate list` shows them")
    asked: dict[str, Any] = {}
    if relation:
        asked["relations"] = list(relation)
    if mention:
        named = (_parts(text, "=", 2, "--mention", "ENTITY=REF") for text in mention)
        asked["mentions"] = [
            {"entity": int(name) if name.isdigit() else name, "ref": reading.canonical(ref)} for name, ref in named
        ]
    answer = session.ask("declare_associations", {**session.axes(), "associations": {}, "retract": asked})
    if not session.show(answer):
        taken = answer.response.get("retracted")
        for name, value in taken.items() if isinstance(taken, dict) else [("retracted", taken)]:
            session.out.record((name, one_line(str(value))))
    return _dropped(session, answer)


@command("associate list", common=AXES)
def list_(session: Session) -> int:
    """List the declared entities with their aliases and mentions, and the relations with their numbers.

    Example:
      cpersona associate list
    """
    params = {**session.axes(), "limit": 500}
    answer = session.ask("list_associations", params)
    while following := answer.response.pop("next", None):
        page = session.ask("list_associations", {**params, **following}).response
        for name in ("entities", "relations"):
            answer.response[name] += page[name]
        if "next" in page:
            answer.response["next"] = page["next"]
    if session.show(answer):
        return answer.status
    found, relations = answer.response.get("entities", []), answer.response.get("relations", [])
    if found or relations:
        print_entities(session.out, f"entities of {session.agent}", found, relations)
    else:
        session.out.note("nothing declared")
    return answer.status


def _parts(text: str, sign: str, count: int, option: str, form: str) -> list[str]:
    """Return the parts of an option's value between ``sign``. Raises Usage that shows the form."""
    parts = [part.strip() for part in text.split(sign)]
    if len(parts) != count or not all(parts):
        raise exits.Usage(f"{option} takes {form}, not {text!r}; a name that holds {sign!r} can be given as JSON")
    return parts


def _dropped(session: Session, answer: Answer) -> int:
    """Say what was left out of a declaration, and return the exit status that says so too."""
    dropped = answer.response.get("dropped", ())
    for item in dropped:
        place = str(item.get("item"))
        session.out.warn(
            f"cpersona {session.name}: {_PLACES.get(place, one_line(place))} was left out: {item.get('reason')}"
        )
    return answer.status or (1 if dropped else 0)


COMMANDS = (declare, retract, list_)
