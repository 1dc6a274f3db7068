"""`import`: read a JSONL file.

Contract: import.lines.
"""

import os
import sys

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import PLAIN, WRITES, argument, command, option
from ..terminal import reading
from ..terminal.failure import failure_line
from .export import PrivateDirectory


@command(
    "import",
    argument("file", "What to read; - reads standard input.", metavar="FILE|-", values="files"),
    option("--dry-run", "Count what would be imported and write nothing.", kind="flag", default=False),
    option("--to-agent", "Give every row to this agent.", metavar="NAME", values="agents"),
    option("--batch", "Name this run, so that `cpersona undo NAME` can take it back.", metavar="NAME"),
    option("--fail-if-cut", "Leave out lines whose text is too long to be kept whole.", kind="flag", default=False),
    common=(*WRITES, *PLAIN),
)
def import_(session, file, dry_run, to_agent, batch, fail_if_cut):
    """Read a file that export wrote. What is there already is skipped; importing twice is harmless.

    Ends with totals. Lines that cannot be read are counted, the first with their numbers, the rest goes on, and the
    exit status is 1; so it is with one whose text is too long and was cut, or with --fail-if-cut left out. A file that
    was cut imports nothing, and of one that is no export it is said what it seems to be and which command takes it.
    Rows that name no agent belong to the header's. An import that was interrupted goes on where it stopped when it is
    run again.

    Example:
      cpersona import backup.jsonl --dry-run
      zcat backup.jsonl.gz | cpersona import -
    """
    params = {"embed": True}
    if dry_run:
        params["dry_run"] = True
    if to_agent is not None:
        params["target_agent_id"] = to_agent
    if batch is not None:
        params["batch"] = batch
    if fail_if_cut:
        params["fail_if_cut"] = True
    if file != "-":
        if os.path.isdir(file):
            raise exits.Stop(f"import: {file!r} is a directory; give the path of a file that export wrote")
        if not os.path.isfile(file):
            raise exits.Stop(f"import: there is no file {file!r}; give the path of a file that export wrote")
        return _import(session, {**params, "input_path": os.path.abspath(file)}, file)
    with PrivateDirectory(session) as directory:
        path = os.path.join(directory, "import.jsonl")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as handle:
            reading.announce(session.out)
            while data := os.read(sys.stdin.fileno(), 1 << 20):
                handle.write(data)
        return _import(session, {**params, "input_path": path})


_SHOWN = 5  # lines of an import that are said one by one


def _import(session, params, file=None):
    from ._runs import watch

    out = session.out

    def early(reached):
        # What an interrupted import leaves must not look finished.
        if params.get("dry_run"):
            return "nothing was written"
        far = (
            f"at least lines 1 to {reached['done']:,} of {reached['total']:,} are in, and stay"
            if "done" in reached
            else "what is imported stays"
        )
        return f"{far}; run the same command again, it goes on from there"

    answer = watch(session, "import_memories", params, early, ask=session.call)
    response, errors = answer.response, answer.response.get("errors") or []
    shown = session.show(answer)
    for line in errors[:_SHOWN]:
        out.warn(f"cpersona import: {line}")
    if count := response.get("error_count", 0):
        rejected = response.get("rejected", 0)
        said = [
            f"{n:,} {what}" for n, what in ((rejected, "rejected"), (count - rejected, "imported with a remark")) if n
        ]
        out.warn(
            f"cpersona import: {', '.join(said)}{f', first {_SHOWN} shown; --json has {len(errors)}' if count > _SHOWN else ''}"
        )
    counted = "imported_memories" in response
    if counted and not shown:
        rows = [
            (name, response.get(name, 0))
            for name in ("imported_memories", "skipped_memories", "imported_episodes", "skipped_episodes")
        ]
        rows.append(("profile_updated", str(bool(response.get("profile_updated"))).lower()))
        out.records(
            [
                *rows,
                *((f"imported_{name}", count) for name, count in (response.get("associations") or {}).items()),
                *([("cut", response["cut"])] if response.get("cut") else []),
            ]
        )
    if listed := response.get("listed_for_embedding"):
        out.note(
            f"{listed:,} of the rows came without a vector that this store's embedder can compare; they are embedded in the background and found by"
            " words alone until then: `cpersona daemon status` shows how many are left"
        )
    elif lacking := response.get("without_usable_vector"):
        out.note(
            f"{lacking} of the rows have no vector that this store's embedder can compare; an import has them embedded in the background"
        )
    if answer.status:
        if file is not None and isinstance(response.get("error"), str):
            import shlex

            response["error"] = response["error"].replace(" FILE", f" {shlex.quote(file)}")
        imported = any(
            response.get(name)
            for name in ("imported_memories", "imported_episodes", "skipped_memories", "skipped_episodes")
        )
        hint = "correct the file and import it again, what is stored already is skipped" if imported else ""
        raise exits.Stop(failure_line("import", response, answer.code, hint), answer.status)
    if response.get("dry_run"):
        out.note("a dry run: nothing was written")
    return fields.EXIT_FAILED if errors else fields.EXIT_OK


COMMANDS = (import_,)
