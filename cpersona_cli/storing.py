"""`store`: one memory, or a file of them as JSON lines.

Contract: interface.md, `store`; contracts.md §2; seeds/behavior-contracts §5.
"""

import os
import sys

from cpersona_daemon.wire import fields

from . import exits, reading
from .output import to_json
from .spec import AXES, argument, command, option

# What one line of --jsonl may hold: store's parameters.
LINE_KEYS = frozenset(("agent_id", "content", "id", "source", "timestamp", "metadata", "channel", "project_id", "associations", "lock", "on_conflict", "batch", "check_secrets",
                       "message"))
# Requests on their way at once: enough to fill the writer's group commits, below what a connection may have in flight.
IN_FLIGHT = 64


@command(
    "store",
    argument("text", "The memory; - or nothing at all reads it from standard input.", required=False, metavar="TEXT|-"),
    option("--id", "Your own key for this memory; one that exists is skipped.", metavar="KEY"),
    option("--source", "Where it comes from: a word (user, assistant) or a JSON object.", metavar="SOURCE"),
    option("--at", "When it was so: an instant, a date, or an age like 3h.", metavar="TIME"),
    option("--metadata", "Anything to keep beside it, as a JSON object.", metavar="JSON"),
    option("--associations", "Entities and relations to declare with it, as JSON.", metavar="JSON"),
    option("--lock", "Protect it from change and deletion.", kind="flag", default=False),
    option("--on-conflict", "What happens when the key exists already.", default="skip", choices=("skip", "update", "fail")),
    option("--batch", "Name this run, so that `cpersona undo NAME` can take it back.", metavar="NAME"),
    option("--queue", "Where no daemon can be reached, keep it for the next one and exit 0.", kind="flag", default=False),
    option("--check-secrets", "Point out tokens, keys and passwords in it: warn stores it all the same, refuse does not.", choices=("warn", "refuse")),
    option("--fail-if-skipped", "Exit 3 when nothing new was stored.", kind="flag", default=False),
    option("--jsonl", "Store each line of a file: an object of these parameters, or a string.", metavar="FILE|-"),
    common=AXES,
)
def store(session, text, id, source, at, metadata, associations, lock, on_conflict, batch, queue, check_secrets, fail_if_skipped, jsonl):
    """Keep one memory, or a file of them, and print its ref.

    A text that is already there is skipped, which is success: running the same command again is harmless.
    To change a memory use `update`, or --on-conflict update with its --id. --queue never starts a daemon
    nor fails for want of one: the memory is written durably beside the database and stored once, in order, when
    one runs. A file of lines that was interrupted is given again: what is stored already is skipped.

    Example:
      cpersona store "Deploys run from the release branch" --id deploy-branch
      git log -1 --format=%B | cpersona store --source '{"System": "git"}'
      cpersona store --jsonl notes.jsonl --batch monday
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
    if jsonl is not None:
        for given, name in ((text, "TEXT"), (id, "--id"), (associations, "--associations")):
            if given is not None:
                raise exits.Usage(f"with --jsonl every line brings its own; leave {name} out")
        if jsonl == "-":
            reading.announce(session.out)
        return _each_line(session, jsonl, params, queue, fail_if_skipped)
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
        out.warn(f"cpersona: nothing was kept: {response.get('reason', 'persistence is paused')}; `cpersona resume` keeps again")
    elif result == "skipped":
        out.note(f"skipped ({response.get('reason', 'already stored')})")
        if response.get("content_differs"):
            out.note(f"the stored text differs and stays as it is; `cpersona update mem:{number}` or --on-conflict update changes it")
    elif result != "stored":
        out.note(str(result))
    if response.get("truncated"):
        out.warn("cpersona: the text was too long and was cut; `cpersona config show` names the limit (max_content_length)")
    for found in response.get("secrets", ()):
        out.warn(f"cpersona: what looks like a secret is in the {found.get('in', 'text')}, {found.get('kind')} at character {found.get('at')}"
                 + (f"; `cpersona delete mem:{number}` removes it" if isinstance(number, int) else ""))
    ahead = response.get("timestamp_ahead_of_clock")
    if isinstance(ahead, dict):
        out.warn(f"cpersona: the time {ahead.get('timestamp')} lies {ahead.get('ahead_by_seconds')} s ahead of the clock")
    for dropped in (response.get("associations") or {}).get("dropped", ()):
        out.warn(f"cpersona: an association was left out: {dropped.get('reason')}")


def _each_line(session, name, defaults, queue, fail_if_skipped):
    """Store each line of a file or of standard input and print an outcome for each, in the order of the lines, as they come."""
    descriptor = sys.stdin.fileno() if name == "-" else os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    if name != "-" and os.path.isdir(descriptor):
        raise IsADirectoryError(21, "Is a directory", name)
    batch = Batch(session, queue)
    lines = reading.Lines(descriptor)
    try:
        while True:
            while batch.waiting and not lines.ready():
                batch.receive()
            try:
                line = lines.next()
            except reading.LineTooLong as error:
                batch.reject(str(error))
                continue
            if line is None:
                break
            batch.add(line, defaults)
        while batch.waiting:
            batch.receive()
    except BrokenPipeError:
        raise
    except BaseException:
        # A person's interrupt too: an input that was not read to its end must not look finished.
        session.out.warn(f"cpersona: ended early: {batch.totals()}; run the same command again, what is stored already is skipped")
        raise
    finally:
        if name != "-":
            os.close(descriptor)
    if session.out.as_json:
        session.out.json({"totals": {"lines": sum(batch.counts.values()), **batch.counts}})
    else:
        session.out.note(batch.totals())
    if batch.counts["rejected"]:
        return batch.status
    return fields.EXIT_NOTHING if fail_if_skipped and batch.counts["skipped"] else fields.EXIT_OK


class Batch:
    """Stores on their way over one connection; outcomes leave in input order whatever order the answers come in.

    Two lines with the same key or the same text are never on their way together: the second must see what
    the first did, so that a file means the same as its lines typed one by one.
    """

    def __init__(self, session, queue=False):
        self.session = session
        self._queue = None
        if queue:
            from .spooling import Queue

            self._queue = Queue(session)
        self.line = 0
        self.counts = {"stored": 0, "skipped": 0, "updated": 0, "queued": 0, "rejected": 0}
        self.status = fields.EXIT_FAILED
        self._sent = {}          # request id -> (line number, marks, parameters and key while they may still be queued)
        self._done = {}          # line number -> outcome, kept until its turn
        self._next = 1
        self._marks = {}         # what must not be sent twice at once -> how many are on their way
        self._blank = set()

    @property
    def waiting(self):
        return len(self._sent)

    def add(self, line, defaults):
        """Send one line, or reject it here; a blank line is passed over."""
        from .client import CallFailed

        if not line.strip():
            self.line += 1
            self._blank.add(self.line)
            self._print()
            return
        try:
            params = line_params(line, defaults)
        except ValueError as error:
            self.reject(str(error))
            return
        self.line += 1
        marks = [mark for mark in (("id", params.get("id")), ("content", params.get("content"))) if isinstance(mark[1], str)]
        while self._sent and (self.waiting >= IN_FLIGHT or any(mark in self._marks for mark in marks)):
            self.receive()
        key = os.urandom(16).hex()
        if self._queue is not None:
            from .spooling import stamped

            params = stamped("store", params)
        try:
            if self._queue is None:
                request = self.session.connection.send("store", params, key=key)
            elif self._queue.connection is not None:
                request = self._queue.connection.send("store", params, key=key)
            else:
                return self._put_aside(self.line, params, key)
        except CallFailed as error:
            if error.code == "invalid_params":
                return self._finish(self.line, {"result": "rejected", "reason": str(error)})
            if not self._lost(error):
                raise
            return self._put_aside(self.line, params, key)
        self._sent[request] = self.line, marks, (params, key) if self._queue is not None else None
        for mark in marks:
            self._marks[mark] = self._marks.get(mark, 0) + 1

    def reject(self, reason):
        self.line += 1
        self._finish(self.line, {"result": "rejected", "reason": reason})

    def receive(self):
        """Wait for one answer and print every outcome whose turn has come."""
        from .client import CallFailed

        try:
            request, response, code = (self.session if self._queue is None else self._queue).connection.receive()
        except CallFailed as error:
            if not self._lost(error):
                raise
            return
        line, marks, kept = self._sent.pop(request)
        for mark in marks:
            self._marks[mark] -= 1
            if not self._marks[mark]:
                del self._marks[mark]
        if kept is not None:
            from .spooling import undecided

            if undecided(code):
                return self._put_aside(line, *kept)
        if exits.status_of(response, code) != fields.EXIT_OK:
            if response.get("error") == "permission_denied":
                self.status = fields.EXIT_DENIED
            self._finish(line, {"result": "rejected", "reason": exits.reason_of(response)})
            return
        outcome = {"result": response.get("result", "stored")}
        for key in ("id", "reason"):
            if key in response:
                outcome[key] = response[key]
        for key in ("truncated", "content_differs"):
            if response.get(key):
                outcome[key] = True
        if response.get("secrets"):
            outcome["secrets"] = response["secrets"]
        self._finish(line, outcome)

    def _lost(self, error):
        """Queue everything that is on its way to a daemon that went away; false where it may not be queued."""
        from .spooling import may_wait

        if self._queue is None or not may_wait(error.code):
            return False
        self._queue.close()
        waiting, self._sent, self._marks = self._sent, {}, {}
        for line, _, (params, key) in waiting.values():
            self._put_aside(line, params, key)
        return True

    def _put_aside(self, line, params, key):
        self._finish(line, {"result": self._queue.put("store", params, key)["result"]})

    def totals(self):
        counts = self.counts
        parts = [f"{counts[name]} {name}" for name in ("stored", "skipped", "updated", "queued", "rejected") if counts[name] or name in ("stored", "skipped", "rejected")]
        return f"{', '.join(parts)} of {sum(counts.values())} lines"

    def _finish(self, line, outcome):
        self._done[line] = outcome
        self._print()

    def _print(self):
        while True:
            if self._next in self._blank:
                self._blank.discard(self._next)
            elif self._next in self._done:
                outcome = self._done.pop(self._next)
                self.counts[outcome["result"]] = self.counts.get(outcome["result"], 0) + 1
                self.session.out.line(to_json({"line": self._next, **outcome}))
            else:
                break
            self._next += 1
        if not self._done:
            self.session.out.flush()


def line_params(line, defaults):
    """Return store's parameters for one line of --jsonl. Raises ValueError with what is wrong with the line."""
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not valid UTF-8 (byte {error.start + 1})") from None
    try:
        value = reading.parse_json(text)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if isinstance(value, str):
        value = {"content": value}
    if not isinstance(value, dict):
        raise ValueError("neither an object nor a string")
    unknown = sorted(set(value) - LINE_KEYS)
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}; the keys are {', '.join(sorted(LINE_KEYS))}")
    return {**defaults, **value}


COMMANDS = (store,)
