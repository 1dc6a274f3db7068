"""`get`: whole rows by their refs.

Contract: contents.refs, rows.keyed.
"""

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import ROWS, command, option
from ..terminal import cuts, render
from ..terminal.output import one_line, to_json, without_controls
from ..terminal.shaping import Shape, shape_options
from ._keys import KEYS, rows_named
from ._rows import REFS, fetched, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..session import Session
    from ..terminal.output import Output

_FIELDS = ("ref", "timestamp", "age", "id", "source", "resolved", "content", "length", "truncated")


@command(
    "get",
    REFS,
    KEYS,
    option("--as-of", "As they were then, deleted ones too, as far as that is kept.", metavar="TIME"),
    option("--raw", "The texts alone, as they are.", kind="flag", default=False),
    *shape_options(_FIELDS),
    common=ROWS,
)
def get(session: "Session", refs: list[str], id: list[str], as_of: str | None, raw: bool, **shaped: "Any") -> int:
    """Show whole rows by their refs, memories by your own keys too.

    Off a terminal one row a line: ref, time, id, text with line breaks as \\n. A ref that names no row of
    this agent is said on stderr, and the exit status is 1.

    Example:
      cpersona get mem:12 ep:3
      cpersona get --id deploy-branch
      cpersona get mem:12 --raw > note.txt
      cpersona get mem:12 --as-of yesterday
      cpersona get mem:12 mem:13 --format '{ref} of {timestamp}: {content}'
    """
    shape = Shape(_FIELDS, session.out, **shaped)
    if raw and (shape.chosen or session.out.as_json):
        raise exits.Usage("--raw prints the texts alone; leave --fields, --format and --json out")
    then = {} if as_of is None else {"as_of": session.instant(as_of, end=True, name="as_of")}
    answer = fetched(session, list(map("{0[0]}:{0[1]}".format, rows_named(session, refs, id))), **then)
    out, missing = session.out, answer.response.get("missing", [])
    items = shape.within(out, answer.response, "items")
    if not session.show(answer, **shape.chosen_json("items", items, field)):
        _print(out, items, shape, raw)
    render.changed_since(out, items)
    for item in items:
        if item.get("cut"):
            out.note(f"{item['ref']} is the beginning of a longer text: {cuts.kept(item['cut'])}")
    if missing:
        named = ", ".join(map(str, missing))
        out.warn(f"cpersona get: no such row of agent {session.agent!r}: {named}; `cpersona list` shows what there is")
        return fields.EXIT_FAILED
    return answer.status


def _print(out: "Output", items: list[dict], shape: "Shape", raw: bool) -> None:
    if raw:
        for item in items:
            out.write(item["content"] + ("\0" if shape.null else "\n"))
    elif out.draws and not shape.chosen and not shape.null:
        for item in items:
            _draw(out, item)
    else:
        shape.print(out, items, field, ("ref", "timestamp", "id", "content"), whole=True)


def _draw(out: "Output", item: dict) -> None:
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
