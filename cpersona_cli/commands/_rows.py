"""What the commands about single rows share: their arguments, fields and outcomes.

Contract: locks.hold, exit.status.
"""

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import argument
from ..terminal import ages, render
from ..terminal.output import to_json
from ._keys import within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Answer, Session

_KEYS = {"agent": "agent_id", "project": "project_id", "channel": "channel"}

REFS = argument(
    "refs",
    "Rows as recall shows them: mem:12, ep:3; a bare number is a memory.",
    many=True,
    required=False,
    metavar="REF…",
    values="refs",
)

MEMORIES = argument(
    "refs",
    "Memories as recall shows them: mem:12, or the number alone.",
    many=True,
    required=False,
    metavar="REF…",
    values="memories",
)


def field(row: dict, name: str) -> str:
    """Return one field of a whole row as text."""
    if name == "stored":
        return row.get("created_at", "")
    if name == "age":
        return ages.age(row.get("created_at") or row.get("timestamp", ""))
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


def fetched(session: "Session", refs: list[str], **then: str) -> "Answer":
    """Return one answer for any number of refs, in requests of as many as one may name; ``then``: as of when."""
    first, *others = (refs[at : at + fields.MAX_REFS] for at in range(0, len(refs), fields.MAX_REFS))
    whose = {"agent_id": session.agent, **within(session), **then}
    answer = session.ask("get_contents", {**whose, "refs": first})
    for some in others:
        more = session.ask("get_contents", {**whose, "refs": some}).response
        for key in ("items", "missing", "count"):
            answer.response[key] += more[key]
    return answer


def each(session: "Session", parsed: list[tuple[str, int]], done: str, methods: dict[str, tuple[str, str]]) -> int:
    """Send one request for each row, say each outcome, and return the status of the first that failed."""
    for kind, number in parsed:
        if kind not in methods:
            raise exits.Usage(
                f"{kind}:{number} is {'an episode' if kind == 'ep' else 'a memory'}; {session.name} takes "
                f"{' or '.join(methods)}:{number}"
            )
    status = fields.EXIT_OK

    def ask(item: tuple[str, int]) -> None:
        nonlocal status
        kind, number = item
        named = f"{kind}:{number}"
        method, parameter = methods[kind]
        answer = session.call(method, {"agent_id": session.agent, parameter: number, **within(session)})
        if answer.status:
            tell_apart(session, named, answer)
        session.show(answer)
        if answer.status:
            from ..terminal.failure import failure_line

            session.out.warn("cpersona " + failure_line(f"{session.name} {named}", answer.response, answer.code))
            status = status or answer.status
        elif not session.out.as_json:
            outcome(session, named, done, answer.response)

    from ._runs import each as in_turn

    in_turn(session, parsed, ask, "{0[0]}:{0[1]}".format)
    return status


def tell_apart(session: "Session", ref: str, answer: "Answer") -> None:
    """Say in a refusal whether the row is locked or not there.

    That another agent has it is not told from that it is missing.
    """
    said = answer.response.get("error")
    if said == fields.NOT_EDITABLE.format(ref=ref) and session.call(
        "get_contents", {"agent_id": session.agent, "refs": [ref]}
    ).response.get("items"):
        answer.response["error"] = f"{ref} is locked; `cpersona unlock {ref}` frees it"
    elif said in (fields.NOT_EDITABLE.format(ref=ref), fields.NOT_OWNED.format(ref=ref)):
        lists = "episode list" if ref.startswith("ep:") else "list"
        answer.response["error"] = (
            f"no row {ref} of agent {session.agent!r}; `cpersona {lists}` shows what there is, --agent names another "
            "agent"
        )


def outcome(session: "Session", named: str, done: str, response: dict) -> None:
    if response.get("persisted") is False:
        from ..terminal.failure import paused_line

        session.out.warn(paused_line(f"{named} is as it was", response))
    else:
        session.out.record((named, done))
