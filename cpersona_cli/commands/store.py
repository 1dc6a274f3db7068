"""`store`: one memory, or a file of them as JSON lines.

Contract: store.answer, dedup.skip, store.lines.
"""

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import AXES, WRITES, argument, command, option
from ..terminal import cuts, reading


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
    option(
        "--jsonl",
        "Store each line of a file: an object of these parameters, or a string.",
        metavar="FILE|-",
        values="files",
    ),
    common=(*WRITES, *AXES),
)
def store(
    session,
    text,
    id,
    source,
    at,
    metadata,
    associations,
    lock,
    on_conflict,
    batch,
    queue,
    check_secrets,
    fail_if_skipped,
    fail_if_cut,
    jsonl,
):
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
      cpersona --db old.db list --json | cpersona store --jsonl -
      cpersona store "backup done" --queue
    """
    params = session.axes()
    if source is not None:
        params["source"] = reading.json_argument(source, "--source") if source.lstrip().startswith("{") else source
    if at is not None:
        params["timestamp"] = session.instant(at)
    if metadata is not None:
        params["metadata"] = reading.json_argument(metadata, "--metadata")
    if lock:
        params["lock"] = True
    if on_conflict != "skip":
        params["on_conflict"] = on_conflict
    if batch is not None:
        params["batch"] = batch
    if check_secrets is not None:
        params["check_secrets"] = check_secrets
    if fail_if_cut:
        params["fail_if_cut"] = True
    if jsonl is not None:
        for given, name in ((text, "TEXT"), (id, "--id"), (associations, "--associations")):
            if given is not None:
                raise exits.Usage(f"with --jsonl every line brings its own; leave {name} out")
        from ._lines import store_lines

        if jsonl == "-":
            reading.announce(session.out)
        return store_lines(session, jsonl, session.signed("store", params), queue, fail_if_skipped)
    if id is not None:
        params["id"] = id
    if associations is not None:
        params["associations"] = reading.json_argument(associations, "--associations")
    params["content"] = reading.text_or_stdin(text, "text", session.out)
    answer = session.ask("store", params, queue=queue)
    skipped = answer.response.get("result") == "skipped"
    if not session.show(answer):
        _say(session, answer.response)
    return fields.EXIT_NOTHING if skipped and fail_if_skipped else answer.status


def _say(session, response):
    """Print the ref on stdout, and on stderr whatever the ref alone would hide."""
    out, number = session.out, response.get("id")
    if response.get("result") == "queued":
        out.note(f"queued as {response['queued']}; the next daemon stores it")
        return
    if isinstance(number, int):
        out.line(f"mem:{number}")
    result = response.get("result")
    if response.get("persisted") is False:
        out.warn(
            f"cpersona: nothing was kept: {response.get('reason', 'persistence is paused')}; `cpersona resume` keeps again"
        )
    elif result == "skipped":
        out.note(f"skipped ({response.get('reason', 'already stored')})")
        if response.get("content_differs"):
            out.note(
                f"the stored text differs and stays as it is; `cpersona update mem:{number}` or --on-conflict update changes it"
            )
    elif result != "stored":
        out.note(str(result))
    cuts.warn(out, response)
    for found in response.get("secrets", ()):
        out.warn(
            f"cpersona: what looks like a secret is in the {found.get('in', 'text')}, {found.get('kind')} at character {found.get('at')}"
            + (f"; `cpersona delete mem:{number}` removes it" if isinstance(number, int) else "")
        )
    ahead = response.get("timestamp_ahead_of_clock")
    if isinstance(ahead, dict):
        out.warn(
            f"cpersona: the time {ahead.get('timestamp')} lies {ahead.get('ahead_by_seconds')} s ahead of the clock"
        )
    for dropped in (response.get("associations") or {}).get("dropped", ()):
        out.warn(f"cpersona: an association was left out: {dropped.get('reason')}")


COMMANDS = (store,)
