"""`get`: whole rows by their refs.

Contract: contracts.md §2, §7 (get_contents), §13; recall-preview-tier.
"""

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import AGENT, command, option
from ..terminal import cuts, reading, render
from ..terminal.output import one_line, to_json, without_controls
from ..terminal.shaping import Shape, shape_options
from ._rows import REFS, field

_FIELDS = ("ref", "timestamp", "age", "id", "source", "resolved", "content", "length", "truncated")


@command(
    "get",
    REFS,
    option("--raw", "The texts alone, as they are.", kind="flag", default=False),
    *shape_options(_FIELDS),
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
    shape = Shape(_FIELDS, session.out.as_json, **shape)
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
            shape.print(out, items, field, ("ref", "timestamp", "id", "content"), whole=True)
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


COMMANDS = (get,)
