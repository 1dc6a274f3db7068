"""`reconstruct`, `traverse`, `associate`: what was declared about entities, and items with their evidence.

Contract: contracts.md §9; seeds/behavior-contracts §11.
"""

from .. import exits
from ..declare.spec import AXES, WRITES, argument, command, option
from ..terminal import explain, reading, render
from ..terminal.output import counted, one_line


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
def reconstruct(session, query, set, trace, deep, no_wait, **given):
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
    _say_bounds(out, response)
    render.warnings(out, response)
    return answer.status


def _item(item):
    """Return an item's claims with their roles and quotations as branches of a tree."""
    quotes = {}
    for excerpt in item.get("excerpts", ()):
        if isinstance(excerpt, dict):
            quotes.setdefault(excerpt.get("ref"), []).append(str(excerpt.get("content", "")))
    branches = []
    for claim in item.get("claims", ()):
        said = [str(claim.get("ref")), claim.get("as_of") or "undated"]
        if claim.get("why"):
            said.append(claim["why"])
        if claim.get("hops"):
            said.append(f"{claim['hops']} hops" if claim["hops"] > 1 else "1 hop")
        below = [
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
# Parts of a declaration whose name on the wire says little.
_PLACES = {"anchor_ref": "the --anchor"}


@command(
    "traverse",
    argument("entity", "An entity's name or alias.", metavar="ENTITY"),
    option("--max-hops", "Steps along relations, 0 to 5.", kind="int", metavar="N", least=0),
    option("-n --limit", "Entities at most, 1 to 100.", kind="int", metavar="N", least=0),
    option("--source-id", "Only mentions in memories of this source.", metavar="ID"),
    common=AXES,
)
def traverse(session, entity, **given):
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
    _print_entities(out, f"{entity}", found, response.get("relations", []))
    _say_bounds(out, response)
    return answer.status


def _say_bounds(out, response):
    """Say which bounds left something out, by the options that move them."""
    omitted = (response.get("bounds") or {}).get("omitted", ())
    moved = [
        "-n" if name in ("count", "limit") else "--" + name.replace("_", "-") for name in omitted if name != "relations"
    ]
    if moved:
        out.note(
            f"there is more than {' and '.join(moved)} {'lets' if len(moved) == 1 else 'let'} through; a larger number shows it"
        )
    if "relations" in omitted:
        out.note("an entity has more relations than are followed, so some evidence may be missing")


def _print_entities(out, title, entities, relations):
    names = {entity["id"]: entity["name"] for entity in entities}
    by_hop = []
    for entity in entities:
        said = [entity["name"]]
        if "hops" in entity:
            said.append(f"{entity['hops']} hops" if entity["hops"] != 1 else "1 hop")
        below = []
        if entity.get("aliases"):
            below.append((f"also {', '.join(entity['aliases'])}", []))
        if entity.get("mentions"):
            more = f" and {entity['mentions_omitted']} more" if entity.get("mentions_omitted") else ""
            refs = (
                [m if isinstance(m, str) else m.get("ref", "") for m in entity["mentions"]]
                if isinstance(entity["mentions"], list)
                else [str(entity["mentions"])]
            )
            below.append((f"in {', '.join(refs)}{more}", []))
        by_hop.append(("  ".join(said), below))
    lines = [
        (f"{_end(names, r, 'subject')} {r['predicate']} {_end(names, r, 'object')}  (relation {r['id']})", [])
        for r in relations
    ]
    render.tree(out, title, [*by_hop, *([("relations", lines)] if lines else [])])


def _end(names, relation, side):
    """Return one end of a relation by name: an entity's name, a record's ref, else what the daemon said."""
    value = relation.get(side)
    return str(relation.get(f"{side}_name") or names.get(value, value))


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
def declare(session, associations, entity, alias, relation, anchor):
    """Declare entities, their other names, and relations. Nothing is ever inferred; declaring twice is harmless.

    What cannot be declared is left out, said on stderr, and makes the exit status 1.

    Example:
      cpersona associate declare --alias Postgres=pg --relation "queue | runs on | Postgres"
    """
    # Before the JSON: what follows `--alias NAME` without its sign would be taken for it.
    aliased = [_parts(text, "=", 2, "--alias", "NAME=ALIAS") for text in alias]
    related = [_parts(text, "|", 3, "--relation", "'SUBJECT | PREDICATE | OBJECT'") for text in relation]
    value = (
        reading.json_argument(
            reading.read_text("-", session.out) if associations == "-" else associations, "the associations"
        )
        if associations is not None
        else {}
    )
    entities, relations = list(value.get("entities", ())), list(value.get("relations", ()))
    aliases = {}
    for name in entity:
        aliases.setdefault(name, [])
    for name, other in aliased:
        aliases.setdefault(name, []).append(other)
    entities += [{"name": name, "aliases": others} if others else {"name": name} for name, others in aliases.items()]
    relations += [
        {"subject": subject, "predicate": predicate, "object": object} for subject, predicate, object in related
    ]
    if not entities and not relations:
        raise exits.Usage("name an --entity, an --alias or a --relation, or give them as JSON")
    value = {**value, **({"entities": entities} if entities else {}), **({"relations": relations} if relations else {})}
    params = {**session.axes(), "associations": value}
    if anchor is not None:
        params["anchor_ref"] = "{}:{}".format(*reading.ref(anchor))
    answer = session.ask("declare_associations", params)
    shown = session.show(answer)
    if not shown:
        for row in answer.response.get("entities", ()):
            session.out.record(("entity", row.get("id"), row.get("name"), "new" if row.get("created") else "known"))
        for number in answer.response.get("relations", ()):
            session.out.record(("relation", number))
    return _dropped(session, answer)


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
def retract(session, relation, mention):
    """Take back relations and mentions that were declared.

    Example:
      cpersona associate retract --relation 3 --mention Postgres=mem:12
    """
    if not relation and not mention:
        raise exits.Usage("name a --relation or a --mention; `cpersona associate list` shows them")
    asked = {}
    if relation:
        asked["relations"] = list(relation)
    if mention:
        named = (_parts(text, "=", 2, "--mention", "ENTITY=REF") for text in mention)
        asked["mentions"] = [
            {"entity": int(name) if name.isdigit() else name, "ref": "{}:{}".format(*reading.ref(ref))}
            for name, ref in named
        ]
    answer = session.ask("declare_associations", {**session.axes(), "associations": {}, "retract": asked})
    if not session.show(answer):
        taken = answer.response.get("retracted")
        for name, value in taken.items() if isinstance(taken, dict) else [("retracted", taken)]:
            session.out.record((name, one_line(str(value))))
    return _dropped(session, answer)


@command("associate list", common=AXES)
def list_(session):
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
        _print_entities(session.out, f"entities of {session.agent}", found, relations)
    else:
        session.out.note("nothing declared")
    return answer.status


def _parts(text, sign, count, option, form):
    """Return the parts of an option's value between ``sign``. Raises Usage that shows the form."""
    parts = [part.strip() for part in text.split(sign)]
    if len(parts) != count or not all(parts):
        raise exits.Usage(f"{option} takes {form}, not {text!r}; a name that holds {sign!r} can be given as JSON")
    return parts


def _dropped(session, answer):
    """Say what was left out of a declaration, and return the exit status that says so too."""
    dropped = answer.response.get("dropped", ())
    for item in dropped:
        place = str(item.get("item"))
        session.out.warn(
            f"cpersona {session.name}: {_PLACES.get(place, one_line(place))} was left out: {item.get('reason')}"
        )
    return answer.status or (1 if dropped else 0)


COMMANDS = (reconstruct, traverse, declare, retract, list_)
