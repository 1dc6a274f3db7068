"""`export`, `import`, `merge`, `forget-agent`: move whole stores, and erase one.

Contract: contracts.md §10, §13; interface.md, "The commands".
"""

import os
import shutil
import sys
import tempfile

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import AGENT, PLAIN, WRITES, argument, command, option
from ..terminal import reading
from ..terminal.output import counted


@command(
    "export",
    argument("file", "Where to write; - writes to standard output.", metavar="FILE|-", values="files"),
    option("--all-agents", "Everything, not one agent's rows.", kind="flag", default=False),
    option("--embeddings", "Take the vectors along, so that importing needs no embedding.", kind="flag", default=False),
    common=AGENT,
)
def export(session, file, all_agents, embeddings):
    """Write an agent's memories, episodes, profile and associations as JSON lines.

    The file appears whole or not at all.

    Example:
      cpersona export backup.jsonl --all-agents
      cpersona export - | gzip > backup.jsonl.gz
    """
    params = {"agent_id": session.whom(all_agents)}
    if embeddings:
        params["include_embeddings"] = True
    if file != "-":
        params["output_path"] = os.path.abspath(file)
        answer = session.ask("export_memories", params)
        if not session.show(answer):
            session.out.line(answer.response.get("path", params["output_path"]))
            session.out.note(_counts(answer.response, "exported"))
            _say_empty(session, answer.response, all_agents)
        return answer.status
    if session.out.as_json:
        raise exits.Usage("export - writes the records themselves; leave --json out, or name a file")
    with _PrivateDirectory(session) as directory:
        params["output_path"] = os.path.join(directory, "export.jsonl")
        answer = session.ask("export_memories", params)
        with open(params["output_path"], "rb") as handle:
            while data := handle.read(1 << 20):
                session.out.write(data)
    session.out.note(_counts(answer.response, "exported"))
    _say_empty(session, answer.response, all_agents)
    return answer.status


def _say_empty(session, response, all_agents):
    """Say of an export without a record that it is one, and of what."""
    if not any(response.get(name) for name in ("memories", "episodes", "profiles", "associations")):
        whose = "nothing" if all_agents else f"nothing for an agent {session.agent!r}"
        session.out.warn(
            f"cpersona export: {whose} is stored in {session.connection.places.db}, so the export is empty; check --agent and --db"
        )


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
    with _PrivateDirectory(session) as directory:
        path = os.path.join(directory, "import.jsonl")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as handle:
            reading.announce(session.out)
            while data := os.read(sys.stdin.fileno(), 1 << 20):
                handle.write(data)
        return _import(session, {**params, "input_path": path})


_SHOWN = 5  # lines of an import that are said one by one


def _import(session, params, file=None):
    from ..wire.interrupts import watch

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
        raise exits.Stop(exits.failure_line("import", response, answer.code, hint), answer.status)
    if response.get("dry_run"):
        out.note("a dry run: nothing was written")
    return fields.EXIT_FAILED if errors else fields.EXIT_OK


@command(
    "merge",
    argument("source", "The agent whose rows are taken.", metavar="FROM", values="agents"),
    argument("target", "The agent that gets them.", metavar="INTO", values="agents"),
    option("--move", "Delete what was copied from the source.", kind="flag", default=False),
    option("--dry-run", "Count what would be merged and write nothing.", kind="flag", default=False),
    common=(*WRITES, *PLAIN),
)
def merge(session, source, target, move, dry_run):
    """Copy one agent's memories, episodes and profile to another; what is there already is skipped.

    Others go on reading and writing meanwhile, and see all of it or nothing. Interrupted before that, it has
    done nothing; run it again.

    Example:
      cpersona merge scratch default --dry-run
      cpersona merge scratch default --move
    """
    from ..wire.interrupts import watch

    def early(reached):
        if dry_run:
            return "nothing was written"
        if reached.get("stage") == "deleting":
            return f"the rows are merged; what is left of them at {source!r} is seen by nobody, and is deleted without this command"
        return f"it was done as a whole or not at all; `cpersona merge {source} {target} --dry-run` counts what is left"

    answer = watch(
        session,
        "merge_memories",
        {
            "source_agent_id": source,
            "target_agent_id": target,
            "mode": "move" if move else "copy",
            "strategy": "skip",
            "dry_run": dry_run,
        },
        early,
        grace=True,
    )
    shown = session.show(answer)
    _refuse_unknown(session, answer, source)
    if not shown:
        for name in ("merged_memories", "skipped_memories", "merged_episodes", "skipped_episodes", "profile_copied"):
            if name in answer.response:
                session.out.record((name, str(answer.response[name]).lower()))
        if dry_run:
            session.out.note("a dry run: nothing was written")
    return answer.status


@command(
    "forget-agent",
    argument("name", "The agent to erase.", metavar="NAME", values="agents"),
    option("--yes", "Do not ask.", kind="flag", default=False),
    common=(*WRITES, *PLAIN),
)
def forget_agent(session, name, yes):
    """Erase everything of one agent: memories (locked ones too), episodes, profile, associations, calibration.

    Asks on a terminal; elsewhere it needs --yes. Nothing brings the rows back but an export made before.

    Example:
      cpersona --agent scratch export scratch.jsonl && cpersona forget-agent scratch --yes
    """
    if not yes:
        if not sys.stdin.isatty():
            raise exits.Usage(f"forget-agent erases everything of {name!r}; add --yes where nobody can be asked")
        print(
            f"Erase everything of agent {name!r}, locked memories too? Type its name to go on: ",
            end="",
            file=sys.stderr,
            flush=True,
        )
        if sys.stdin.readline().strip() != name:
            raise exits.Stop("forget-agent: nothing was erased; type the agent's name to confirm, or give --yes")
    from ..wire.interrupts import watch

    answer = watch(
        session,
        "delete_agent_data",
        {"agent_id": name},
        lambda reached: (
            "nobody sees anything of the agent any more; what is left is deleted without this command"
            if reached.get("stage") == "deleting"
            else "the agent is erased as a whole or not at all; run the same command again to see"
        ),
        grace=True,
    )
    shown = session.show(answer)
    _refuse_unknown(session, answer, name)
    if not shown:
        for key, value in answer.response.items():
            if key.startswith("deleted_"):
                session.out.record(
                    (
                        key,
                        ", ".join(f"{count} {name}" for name, count in value.items())
                        if isinstance(value, dict)
                        else value,
                    )
                )
    return answer.status


def _refuse_unknown(session, answer, agent):
    """Raise Stop where nothing was done, because nothing is stored for the agent that was named."""
    if answer.response.get("unknown_agent"):
        from cpersona_daemon.shared.paths import places

        raise exits.Stop(
            f"{session.name}: nothing is stored for an agent {agent!r} in {places(session.settings).db}; check the name, and nothing was changed"
        )


class _PrivateDirectory:
    """A temporary 0700 directory that the daemon may use: below CPERSONA_EXPORT_DIR where that confines it."""

    def __init__(self, session):
        self._parent = session.settings.export_dir or None

    def __enter__(self):
        self._path = tempfile.mkdtemp(prefix="cpersona-", dir=self._parent)
        return os.path.abspath(self._path)

    def __exit__(self, *_):
        shutil.rmtree(self._path, ignore_errors=True)


def _counts(response, done):
    parts = [counted(response[name], name) for name in ("memories", "episodes", "profiles") if name in response]
    parts += [counted(count, name) for name, count in (response.get("associations") or {}).items()]
    return f"{done} {', '.join(parts)}"


COMMANDS = (export, import_, merge, forget_agent)
