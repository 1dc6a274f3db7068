"""`get`, `list`, `update`, `delete`, `lock`, `unlock`: rows by their ref.

Contract: contracts.md §2, §7 (get_contents), §13; recall-preview-tier.
"""

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import AGENT, AXES, WRITES, argument, command, option
from ..terminal import cuts, reading, render, times
from ..terminal.output import one_line, to_json, without_controls
from ..terminal.shaping import Shape, shape_options

_KEYS = {"agent": "agent_id", "project": "project_id", "channel": "channel"}
_GET_FIELDS = ("ref", "timestamp", "age", "id", "source", "resolved", "content", "length", "truncated")
_LIST_FIELDS = (
    "ref",
    "stored",
    "age",
    "locked",
    "agent",
    "project",
    "channel",
    "id",
    "source",
    "timestamp",
    "metadata",
    "content",
    "length",
    "truncated",
)
_REFS = argument(
    "refs",
    "Rows as recall shows them: mem:12, ep:3; a bare number is a memory.",
    many=True,
    metavar="REF…",
    values="refs",
)
_MEMORIES = argument(
    "refs", "Memories as recall shows them: mem:12, or the number alone.", many=True, metavar="REF…", values="memories"
)


@command(
    "get",
    _REFS,
    option("--raw", "The texts alone, as they are.", kind="flag", default=False),
    *shape_options(_GET_FIELDS),
    common=AGENT,
)
def get(session, refs, raw, **shape):
    """Show whole rows by their refs.

    Off a terminal one row a line: ref, time, id, text with line breaks as \\n. A ref that names no row of
    this agent is said on stderr, and the exit status is 1.

    Example:
      cpersona get mem:12 ep:3
      cpersona get mem:12 --raw > note.txt
      cpersona get mem:12 mem:13 --format '{ref} of {timestamp}: {content}'
    """
    shape = Shape(_GET_FIELDS, session.out.as_json, **shape)
    if raw and (shape.chosen or session.out.as_json):
        raise exits.Usage("--raw prints the texts alone; leave --fields, --format and --json out")
    asked = ["{}:{}".format(*reading.ref(text)) for text in refs]
    answer = session.ask("get_contents", {"agent_id": session.agent, "refs": asked[: fields.MAX_REFS]})
    for at in range(fields.MAX_REFS, len(asked), fields.MAX_REFS):
        more = session.ask(
            "get_contents", {"agent_id": session.agent, "refs": asked[at : at + fields.MAX_REFS]}
        ).response
        for key in ("items", "missing", "count"):
            answer.response[key] += more[key]
    out, missing = session.out, answer.response.get("missing", [])
    items = shape.within(out, answer.response, "items")
    if not session.show(answer):
        if raw:
            for item in items:
                out.write(item["content"] + ("\0" if shape.null else "\n"))
        elif out.draws and not shape.chosen and not shape.null:
            for item in items:
                _draw(out, item)
        else:
            shape.print(out, items, _field, ("ref", "timestamp", "id", "content"), whole=True)
    for item in items:
        if item.get("cut"):
            out.note(f"{item['ref']} is the beginning of a longer text: {cuts.kept(item['cut'])}")
    if missing:
        out.warn(
            f"cpersona get: no such row of agent {session.agent!r}: {', '.join(map(str, missing))}; `cpersona list` shows what there is"
        )
        return fields.EXIT_FAILED
    return answer.status


def _draw(out, item):
    """Print one row on a terminal: what it is on one line, then its text."""
    from rich.text import Text

    about = [item["ref"], item.get("timestamp", ""), item.get("id", "")]
    if item.get("source"):
        about.append(to_json(item["source"]))
    if item.get("resolved"):
        about.append("resolved")
    console = render.console(out)
    console.print(Text(one_line("  ".join(part for part in about if part)), style="dim"))
    console.print(Text(without_controls(item["content"])), "")


@command(
    "list",
    option("-n --limit", "Rows at most, up to 500.", kind="int", default=100, metavar="N", least=0),
    option("--since", "Stored at this time or later: an instant, a date, or an age like 3h.", metavar="TIME"),
    option("--until", "Stored at this time or before; a date is its whole day.", metavar="TIME"),
    option(
        "--as-of",
        "Only rows stored by then, with what they say today; how many were changed or deleted since is said.",
        metavar="TIME",
    ),
    option("--all-agents", "Memories of every agent.", kind="flag", default=False),
    *shape_options(_LIST_FIELDS),
    common=AXES,
)
def list_(session, limit, since, until, as_of, all_agents, **shape):
    """List the newest memories, newest first.

    Columns: ref, when it was stored (UTC), lock, project, channel, content. --since and --until compare
    when a row was stored, not the time that it speaks of.

    Example:
      cpersona list -n 20
      cpersona list --since 2026-03-01 --until 2026-03-01
      cpersona list --fields ref -0 | xargs -0 cpersona lock
    """
    shape = Shape(_LIST_FIELDS, session.out.as_json, **shape)
    params = {**session.axes(), "agent_id": session.whom(all_agents), "limit": session.at_most(limit, 500)}
    for name, text in (("since", since), ("until", until), ("as_of", as_of)):
        if text is not None:
            params[name] = session.instant(text, end=name != "since")
    for name, option in (("until", "--until"), ("as_of", "--as-of")):
        if params.get("since", "") > params.get(name, "9"):
            raise exits.Usage(
                f"list: --since {since} lies after {option} {until if name == 'until' else as_of}; nothing can be between them"
            )
    answer = session.ask("list_memories", params)
    rows = shape.within(session.out, answer.response, "memories")
    if session.show(answer):
        return answer.status
    names = ("ref", "stored", "locked", "project", "channel", "content")
    drawn = ("ref", "age", *names[2:])
    if all_agents:
        names, drawn = ("agent", *names), ("agent", *drawn)
    shape.print(session.out, rows, _field, names, drawn)
    render.warnings(session.out, answer.response)
    if not rows and limit:
        which = " like that" if params.keys() - {"agent_id", "limit"} else ""
        session.out.note(
            f"no memories{which} of agent {params['agent_id']!r}" if params["agent_id"] else f"no memories{which}"
        )
    return answer.status


def _field(row, name):
    """Return one field of a whole row as text."""
    if name == "stored":
        return row.get("created_at", "")
    if name == "age":
        return times.age(row.get("created_at") or row.get("timestamp", ""))
    if name == "locked":
        return "locked" if row.get("locked") else ""
    if name == "resolved":
        return "resolved" if row.get("resolved") else ""
    if name == "id":
        # The list of the contract names the key msg_id; its `id` is the number that stands in the ref.
        return row.get("msg_id", row.get("id", ""))
    if name == "metadata":
        return to_json(row["metadata"]) if row.get("metadata") else ""
    return str(row.get(_KEYS[name]) or "") if name in _KEYS else render.field(row, name)


@command(
    "update",
    argument("ref", "The memory, like mem:12.", values="memories"),
    argument(
        "text", "Its new text; - or nothing at all reads it from standard input.", required=False, metavar="TEXT|-"
    ),
    cuts.FAIL_IF_CUT,
    common=(*WRITES, *AGENT),
)
def update(session, ref, text, fail_if_cut):
    """Give a memory a new text; it is found by the new text at once.

    A locked memory is not changed, and neither is one when another memory already has that text. A text that is too
    long is cut, and how much of how much is said.

    Example:
      cpersona update mem:12 "Deploys run from the main branch"
    """
    number = reading.memory_id(ref)
    params = {
        "agent_id": session.agent,
        "memory_id": number,
        "content": reading.text_or_stdin(text, "text", session.out),
    }
    if fail_if_cut:
        params["fail_if_cut"] = True
    answer = session.ask("update_memory", params, refused=lambda answer: _tell_apart(session, f"mem:{number}", answer))
    if not session.show(answer):
        _outcome(session, f"mem:{number}", "updated", answer.response)
    cuts.warn(session.out, answer.response)
    return answer.status


@command("delete", _REFS, common=(*WRITES, *AGENT))
def delete(session, refs):
    """Delete memories and episodes by their refs. A locked memory stays.

    Of a deleted row the store keeps when it was stored and deleted, its agent, project and channel, so that --as-of can
    count it; `forget-agent` leaves not even that. Each outcome is said; the exit status is 1 if any row is still there.

    Example:
      cpersona delete mem:12 ep:3
    """
    return each(
        session, refs, "deleted", {"mem": ("delete_memory", "memory_id"), "ep": ("delete_episode", "episode_id")}
    )


@command("lock", _MEMORIES, common=(*WRITES, *AGENT))
def lock(session, refs):
    """Protect memories from change and deletion. A lock does not make a memory rank higher.

    Example:
      cpersona lock mem:12 mem:13
    """
    return each(session, refs, "locked", {"mem": ("lock_memory", "memory_id")})


@command("unlock", _MEMORIES, common=(*WRITES, *AGENT))
def unlock(session, refs):
    """Let memories be changed and deleted again.

    Example:
      cpersona unlock mem:12
    """
    return each(session, refs, "unlocked", {"mem": ("unlock_memory", "memory_id")})


def each(session, refs, done, methods):
    """Send one request for each ref, say each outcome, and return the status of the first that failed."""
    parsed = [reading.ref(text) for text in refs]
    for kind, number in parsed:
        if kind not in methods:
            raise exits.Usage(
                f"{kind}:{number} is {'an episode' if kind == 'ep' else 'a memory'}; {session.name} takes {' or '.join(methods)}:{number}"
            )
    status = fields.EXIT_OK

    def ask(item):
        nonlocal status
        kind, number = item
        named = f"{kind}:{number}"
        method, parameter = methods[kind]
        answer = session.call(method, {"agent_id": session.agent, parameter: number})
        if answer.status:
            _tell_apart(session, named, answer)
        session.show(answer)
        if answer.status:
            session.out.warn("cpersona " + exits.failure_line(f"{session.name} {named}", answer.response, answer.code))
            status = status or answer.status
        elif not session.out.as_json:
            _outcome(session, named, done, answer.response)

    from ..wire.interrupts import each as in_turn

    in_turn(session, parsed, ask, "{0[0]}:{0[1]}".format)
    return status


def _tell_apart(session, ref, answer):
    """Say in a refusal whether the row is locked or not there; that another agent has it is not told from that it is missing."""
    said = answer.response.get("error")
    if said == fields.NOT_EDITABLE.format(ref=ref) and session.call(
        "get_contents", {"agent_id": session.agent, "refs": [ref]}
    ).response.get("items"):
        answer.response["error"] = f"{ref} is locked; `cpersona unlock {ref}` frees it"
    elif said in (fields.NOT_EDITABLE.format(ref=ref), fields.NOT_OWNED.format(ref=ref)):
        lists = "episode list" if ref.startswith("ep:") else "list"
        answer.response["error"] = (
            f"no row {ref} of agent {session.agent!r}; `cpersona {lists}` shows what there is, --agent names another agent"
        )


def _outcome(session, named, done, response):
    if response.get("persisted") is False:
        session.out.warn(
            f"cpersona: {named} is as it was: {response.get('reason', 'persistence is paused')}; `cpersona resume` keeps again"
        )
    else:
        session.out.record((named, done))


COMMANDS = (get, list_, update, delete, lock, unlock)
