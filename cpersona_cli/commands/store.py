"""`store`: one memory, or a file of them as JSON lines.

Contract: store.answer, dedup.skip, store.lines.
"""

import os

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import AXES, PROGRESS, WAIT, WRITES, argument, command, option
from ..terminal import cuts, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..session import Rows, Session
    from ..terminal.output import Output


def _json(option: str) -> "Callable[[Session, str], Any]":
    return lambda session, text: reading.json_argument(text, option)


def _source(session: "Session", text: str) -> "Any":
    return reading.json_argument(text, "--source") if text.lstrip().startswith("{") else text


# Option -> parameter: what every line of a file gets as well, and what one memory alone has.
_OF_ALL: "Rows" = (
    ("source", "source", _source),
    ("at", "timestamp", lambda session, text: session.instant(text)),
    ("metadata", "metadata", _json("--metadata")),
    ("lock", "lock", None),
    ("on_conflict", "on_conflict", None),
    ("batch", "batch", None),
    ("check_secrets", "check_secrets", None),
    ("fail_if_cut", "fail_if_cut", None),
)
_LOST = {"content_differs", "cut"}  # what an answer says where a text is not in the store, or not whole
_OF_ONE: "Rows" = (("id", "id", None), ("associations", "associations", _json("--associations")))


@command(
    "store",
    argument("text", "The memory; - or nothing at all reads it from standard input.", required=False, metavar="TEXT|-"),
    option("--id", "Your own key for this memory; one that exists is skipped.", metavar="KEY"),
    option("--source", "Where it comes from: a word (user, assistant) or a JSON object.", metavar="SOURCE"),
    option("--at", "When it was so: an instant, a date, or an age like 3h.", metavar="TIME"),
    option("--metadata", "Anything to keep beside it, as a JSON object.", metavar="JSON"),
    option("--associations", "Entities and relations to declare with it, as JSON.", metavar="JSON"),
    option("--lock", "Protect it from change and deletion.", kind="flag", default=False),
    option(
        "--on-conflict", "What happens when the key exists already.", default="skip", choices=("skip", "update", "fail")
    ),
    option("--batch", "Name this run, so that `cpersona undo NAME` can take it back.", metavar="NAME"),
    option(
        "--queue", "Where no daemon can be reached, keep it for the next one and exit 0.", kind="flag", default=False
    ),
    option(
        "--check-secrets",
        "Point out tokens, keys and passwords in it: warn stores it all the same, refuse does not.",
        choices=("warn", "refuse"),
    ),
    option("--fail-if-skipped", "Exit 3 when nothing new was stored.", kind="flag", default=False),
    cuts.FAIL_IF_CUT,
    WAIT,
    PROGRESS,
    option(
        "--edit",
        "Write the text in your editor, VISUAL or EDITOR; TEXT is what it begins with.",
        kind="flag",
        default=False,
    ),
    option(
        "--jsonl",
        "Store each line of a file: an object of these parameters, or a string.",
        metavar="FILE|-",
        values="files",
    ),
    common=(*WRITES, *AXES),
)
def store(
    session: "Session",
    text: str | None,
    jsonl: str | None,
    queue: bool,
    wait: bool,
    progress: bool,
    edit: bool,
    **given: "Any",
) -> int:
    """Keep one memory, or a file of them, and print its ref.

    A text that is already there is skipped, which is success: running the same command again is harmless.
    To change a memory use `update`, or --on-conflict update with its --id. --queue never starts a daemon
    nor fails for want of one: the memory is written durably beside the database and stored once, in order, when
    one runs.

    A text is kept up to its first 16,000 characters (`cpersona config show max_content_length`); how much of how much
    is said, and --fail-if-cut stores nothing of a longer one. What was cut still tells two texts apart.

    --jsonl reads one object a line, whose keys are called as these options are, or as the wire calls them (content,
    id or msg_id, agent, project, channel, source, at or timestamp, metadata, lock, …); a line that is a string is a
    text. What `list --json` and `get --json` print is stored back. Off a terminal each line has its outcome, as JSON;
    on one, what was rejected is said. A file that was interrupted is given again: what is stored already is skipped.

    Example:
      cpersona store "Deploys run from the release branch" --id deploy-branch
      git log -1 --format=%B | cpersona store --source '{"System": "git"}'
      cpersona store --jsonl notes.jsonl --batch monday
      cpersona store --jsonl notes.jsonl --progress --wait > outcomes.jsonl
      cpersona --db old.db list --json | cpersona store --jsonl -
      cpersona store --edit --id release-notes
      cpersona store "backup done" --queue
    """
    if queue and wait:
        raise exits.Usage("--queue waits for no daemon and --wait for the vectors that one makes; give one of them")
    if given["on_conflict"] == "skip":
        given["on_conflict"] = None  # what happens anyway
    params = {**session.axes(), **session.parameters(given, _OF_ALL)}
    if edit:
        status = _store_edited(session, text, params, queue, {**given, "jsonl": jsonl})
    elif jsonl is None:
        status = _store_one(session, reading.text_or_stdin(text, "text", session.out), params, queue, given)
        if text is not None and os.path.isfile(text):
            _say_file(session.out, text)
    else:
        status = _store_lines(session, text, params, jsonl, queue, progress, given)
    if wait:
        from ._waiting import until_embedded

        return until_embedded(session, progress) or status
    return status


def _store_one(
    session: "Session", text: str, params: dict, queue: bool, given: dict, keep: "Callable[[], None] | None" = None
) -> int:
    """Store one text; ``keep`` is called where not all of it is in the store afterwards."""
    params |= session.parameters(given, _OF_ONE)
    params["content"] = text
    answer = session.ask("store", params, queue=queue)
    skipped = answer.response.get("result") == "skipped"
    if not session.show(answer):
        _say(session.out, answer.response)
    if keep is not None and (answer.response.get("persisted") is False or _LOST & answer.response.keys()):
        keep()
    return fields.EXIT_NOTHING if skipped and given["fail_if_skipped"] else answer.status


def _store_edited(session: "Session", text: str | None, params: dict, queue: bool, given: dict) -> int:
    """Store what is left in an editor; nothing where that is empty. A text that is not kept is kept in its file."""
    if given["jsonl"] is not None:
        raise exits.Usage("--edit writes one text and --jsonl reads many; give one of them")
    from ..terminal.editor import Draft

    begun = "" if text is None else reading.text_or_stdin(text, "text", session.out)
    with Draft(session.out, "store", "memory.txt", begun) as draft:
        written = draft.edited()
        if written is None or not written.strip():
            empty = written is not None or not begun.strip()
            session.out.note(f"the text is {'empty' if empty else 'as it began'}; nothing is stored")
            if session.out.as_json:
                session.out.json({"ok": True, "result": "unchanged"})
            return fields.EXIT_OK
        return _store_one(session, written, params, queue, given, draft.keep)


def _store_lines(
    session: "Session", text: str | None, params: dict, jsonl: str, queue: bool, progress: bool, given: dict
) -> int:
    for own, name in ((text, "TEXT"), (given["id"], "--id"), (given["associations"], "--associations")):
        if own is not None:
            raise exits.Usage(f"with --jsonl every line brings its own; leave {name} out")
    from ._batch import store_lines

    if jsonl == "-":
        reading.announce(session.out)
    return store_lines(session, jsonl, session.signed("store", params), queue, given["fail_if_skipped"], progress)


def _say_file(out: "Output", name: str) -> None:
    """Say that a text is taken as it is, where it is the name of a file."""
    import shlex

    out.note(f"the memory is the name, not the file; `cpersona store < {shlex.quote(name)}` keeps what the file says")


def _say(out: "Output", response: dict) -> None:
    """Print the ref on stdout, and on stderr whatever the ref alone would hide."""
    if response.get("result") == "queued":
        out.note(f"queued as {response['queued']}; the next daemon stores it")
        return
    ref = f"mem:{response['id']}" if isinstance(response.get("id"), int) else ""
    if ref:
        out.line(ref)
    _say_result(out, response, ref)
    cuts.warn(out, response)
    _say_secrets(out, response, ref)
    ahead = response.get("timestamp_ahead_of_clock")
    if isinstance(ahead, dict):
        out.warn(
            f"cpersona: the time {ahead.get('timestamp')} lies {ahead.get('ahead_by_seconds')} s ahead of the clock"
        )
    for dropped in (response.get("associations") or {}).get("dropped", ()):
        out.warn(f"cpersona: an association was left out: {dropped.get('reason')}")


def _say_result(out: "Output", response: dict, ref: str) -> None:
    """Say what became of a memory that was not simply stored."""
    result = response.get("result")
    if response.get("persisted") is False:
        from ..terminal.failure import paused_line

        out.warn(paused_line("nothing was kept", response))
    elif result == "skipped":
        out.note(f"skipped ({response.get('reason', 'already stored')})")
        if response.get("content_differs"):
            out.note(
                f"the stored text differs and stays as it is; `cpersona update {ref}` or --on-conflict update"
                " changes it"
            )
    elif result != "stored":
        out.note(str(result))


def _say_secrets(out: "Output", response: dict, ref: str) -> None:
    removes = f"; `cpersona delete {ref}` removes it" if ref else ""
    for found in response.get("secrets", ()):
        out.warn(
            f"cpersona: what looks like a secret is in the {found.get('in', 'text')}, {found.get('kind')} at character"
            f" {found.get('at')}{removes}"
        )


COMMANDS = (store,)
