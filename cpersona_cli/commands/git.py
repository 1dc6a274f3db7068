"""`git`: keep a note of every commit, from a hook as it is made and from history.

Contract: git.notes, git.hooks, git.blame.
"""

from __future__ import annotations

import os

from cpersona_daemon.shared import fields

from .. import exits, githook
from ..declare.spec import WRITES, argument, command, option
from ..git import commits
from ..terminal import cuts
from ..terminal.output import counted
from ..terminal.shaping import Shape, shape_options
from ._rows import field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cpersona_daemon.shared.settings import Settings

    from ..session import Session

_HERE = ("agent", "project", "json", "quiet", "db")  # hooks keep their notes on this machine
_COMMON = (*_HERE, "host")
_NOTE_FIELDS = ("commit", "timestamp", "age", "ref", "id", "source", "content", "length")


@command("git install", common=_HERE)
def install(session: Session) -> None:
    """Note every commit that is made here from now on: hooks for this repository, beside those that are there already.

    A commit, a merge, a pull that merges, a picked, reverted or mailed patch is noted; amend and rebase replace the
    notes. What a fast-forward brings was made by others and is not; `git backfill` notes that too.

    They take a moment, need no daemon and never fail a commit. What they are told here (--db, --agent,
    --project) is kept for them; everything else they read where it applies when they run, so options stay out
    unless they are given. Again it renews them, after an upgrade for instance.

    Example:
      cpersona git install
      cpersona git install --agent backend
    """
    from ..git import hooks

    repository = commits.Repository.open()
    given = {"db": "db_path", "agent": "agent", "project": "project"}
    state = {name: session.options[option] for option, name in given.items() if session.options.get(option) is not None}
    if "db_path" in state:
        state["db_path"] = os.path.abspath(os.path.expanduser(state["db_path"]))
    if session.settings.host:
        session.out.warn(
            f"cpersona git install: hooks keep their notes on this machine, not on {session.settings.host}; there "
            "`cpersona git backfill` brings them"
        )
    repository.state = state
    try:
        repository.root()
    except commits.GitFailed:
        pass  # no commit yet; the first one is the root
    _try_hook()
    commits.write_state(repository.common, state)
    where, done = hooks.install(repository)
    if session.out.as_json:
        session.out.json(
            {
                "ok": True,
                "hooks_directory": where,
                "hooks": done,
                "repository": repository.name,
                "root": state.get("root", ""),
            }
        )
    else:
        session.out.records((name, done[name], os.path.join(where, name)) for name in hooks.NAMES)
    inside = _inside_work_tree(repository, where)
    if inside:
        session.out.note(
            f"core.hooksPath lies in the work tree ({inside}): do not commit the marked block, it holds paths of this "
            "machine"
        )
    for variable in ("CPERSONA_DB_PATH", "CPERSONA_AGENT", "CPERSONA_PROJECT"):
        if os.environ.get(variable) and variable[9:].lower() not in state:
            session.out.note(
                f"{variable} is set here; a hook that runs without it uses its own settings; give the option to "
                "install to fix it"
            )
    session.out.note("`cpersona git backfill` notes the commits that are there already")


def _try_hook() -> None:
    """Run what the hooks will run, so that what cannot work is said now and not at a commit."""
    import subprocess

    from ..git import hooks

    program, *arguments = hooks.command("print('ready')")
    tried = subprocess.run([program, *arguments], env={}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if tried.stdout != "ready\n":
        said = (tried.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise exits.Stop(
            f"git install: {program} cannot run the hook by itself: {said}; install cpersona-cli into an environment "
            "of its own"
        )


def _inside_work_tree(repository: commits.Repository, where: str) -> str:
    try:
        top = os.path.realpath(repository.git.line("rev-parse", "--show-toplevel"))
    except commits.GitFailed:
        return ""
    inside = where.startswith(top + os.sep) and not where.startswith(repository.common + os.sep)
    return os.path.relpath(where, top) if inside else ""


@command("git uninstall", common=("json", "quiet"))
def uninstall(session: Session) -> None:
    """Remove the hooks of this repository and leave the others' as they were. The notes stay.

    Example:
      cpersona git uninstall
    """
    from ..git import hooks

    repository = commits.Repository.open()
    where, done = hooks.uninstall(repository)
    try:
        os.unlink(os.path.join(repository.common, commits.STATE))
    except FileNotFoundError:
        pass
    if session.out.as_json:
        session.out.json({"ok": True, "hooks_directory": where, "hooks": done})
    else:
        session.out.records((name, done[name], os.path.join(where, name)) for name in hooks.NAMES)


@command("git status", common=_HERE)
def status(session: Session) -> int:
    """Show whether commits here are noted, where the hooks are, and what waits for a daemon. Starts none.

    Exit 0 when they are installed and sound, 3 when not installed, 1 when something is wrong with them.

    Example:
      cpersona git status
    """
    from cpersona_daemon.shared.paths import places

    from ..git import hooks
    from ..wire import spool as spooling

    repository = commits.Repository.open()
    where, found = hooks.state(repository)
    armed = repository.state is not None
    settings = githook.settings_of(repository) if armed else session.settings
    here = places(settings)
    waiting, failed = spooling.counts(here.spool)
    facts = {
        "repository": repository.name,
        "branch": repository.branch(),
        "root": _root(repository),
        "hooks_directory": where,
        "hooks": found,
        "agent": settings.agent,
        "project": settings.project,
        "db": here.db,
        "queued": waiting,
        "refused": failed,
        "state": _judged(armed, found),
    }
    if session.out.as_json:
        session.out.json(facts)
    else:
        rows: list[tuple] = [(name, facts[name]) for name in ("state", "repository", "branch", "root")]
        rows += [(name, found[name], os.path.join(where, name)) for name in hooks.NAMES]
        rows += [(name, facts[name]) for name in ("agent", "project", "db", "queued", "refused")]
        session.out.records(rows)
    if facts["state"] == "damaged":
        named = ", ".join(f"{name} is {state}" for name, state in found.items() if state != "installed")
        session.out.warn(
            f"cpersona git status: the hooks are not as they should be ({named or 'what they were told is gone'}); "
            "run `cpersona git install` again"
        )
        return fields.EXIT_FAILED
    if failed:
        session.out.warn(
            f"cpersona git status: {failed} queued writes were refused; their reasons lie in {here.spool}/failed"
        )
    return fields.EXIT_OK if armed else fields.EXIT_NOTHING


def _root(repository: commits.Repository) -> str:
    """Return the id of the root commit, '' before there is a commit."""
    try:
        return repository.root()
    except commits.GitFailed:
        return ""


def _judged(armed: bool, found: dict[str, str]) -> str:
    """Return how the hooks are in one word: what each file is, and whether they were told what to do."""
    if armed and set(found.values()) == {"installed"}:
        return "installed"
    return "damaged" if armed or "installed" in found.values() else "not installed"


@command(
    "git note",
    argument("revisions", "Commits to note; without any the latest one.", many=True, required=False, metavar="REV…"),
    option(
        "--queue", "Where no daemon can be reached, keep them for the next one and exit 0.", kind="flag", default=False
    ),
    common=(*WRITES, *_COMMON),
)
def note(session: Session, revisions: list[str], queue: bool) -> int:
    """Note single commits now, whether or not hooks are installed. A commit that is noted already is skipped.

    Example:
      cpersona git note
      cpersona git note v1.0 HEAD~3 --queue
    """
    from ._runs import each

    repository, status = commits.Repository.open(), fields.EXIT_OK
    settings = _settings(session, repository)

    def keep(commit: dict) -> None:
        nonlocal status
        params = commits.store_params(commit, repository, settings, commits.branch_of(repository, commit))
        answer = session.ask("store", params, queue=queue)
        status = status or answer.status
        if not session.show(answer):
            session.out.record((commit["commit"], answer.response.get("result"), _ref(answer.response)))
        if cut := commits.cut_of(params):
            session.out.warn(f"cpersona git note: the message of {commit['commit'][:12]} was cut: {cuts.kept(cut)}")

    each(
        session,
        list(repository.commits(*(_revisions(repository, revisions) or ["HEAD"]))),
        keep,
        lambda commit: commit["commit"][:12],
    )
    return status


@command(
    "git backfill",
    argument(
        "range",
        "A branch, a tag or A..B, as git log takes it; without it all that led to HEAD.",
        required=False,
        metavar="RANGE",
    ),
    option("--all", "Every branch and tag.", kind="flag", default=False),
    option("--batch", "Name this run, so that `cpersona undo NAME` can take it back.", metavar="NAME"),
    common=(*WRITES, *_COMMON),
)
def backfill(session: Session, range: str | None, all: bool, batch: str | None) -> int:
    """Note the commits of history, oldest first. What is noted already is skipped, so it may be stopped and run again.

    Ends with totals; progress is shown on a terminal. A message is kept up to its first 15,000 characters; how many
    messages were longer is counted as cut. Vectors follow in the background.

    A note lists the first of the paths that its commit changed, and is found by them. Notes of a version that did not
    list them get theirs now, counted as updated; those that were edited or are locked stay as they are.

    Example:
      cpersona git backfill
      cpersona git backfill v1.0..main
    """
    repository = commits.Repository.open()
    settings = _settings(session, repository)
    if all and range:
        raise exits.Usage("git backfill takes a RANGE or --all, not both")
    asked = ["--all"] if all else [range or "HEAD"]
    if asked[0].startswith("-") and not all:
        raise exits.Usage(f"{range!r} is no range of commits; give a branch or A..B")
    from ._backfill import Backfill, note_history

    with Backfill(session, settings, batch) as run:
        note_history(session, repository, settings, asked, run)
    counts = run.counted()
    if session.out.as_json:
        session.out.json({"ok": not run.counts["rejected"], "commits": run.total, **counts})
    else:
        session.out.records(counts.items())
    if run.paused:
        session.out.warn(
            f"cpersona git backfill: {run.paused:,} of the skipped are kept nowhere: persistence is paused; `cpersona "
            "resume` keeps again"
        )
    return run.status


@command(
    "git blame-note",
    argument("file", "A file, as its path from here, and a line of it.", metavar="FILE[:LINE]", values="files"),
    option("-n --limit", "Notes at most.", kind="int", default=20, metavar="N", least=1),
    *shape_options(_NOTE_FIELDS),
    common=_COMMON,
)
def blame_note(session: Session, file: str, limit: int, **shaped: Any) -> int:
    """Show the notes of the commits that touched a file, or a line of it, newest first.

    Git names the commits, through renames of the file; a directory is all that is in it. A line is counted in the file
    as it lies here, and its commits are those that wrote it and what stood in its place before. Exit 3 where none of
    them has a note.

    Columns: commit, its time, ref, note. `cpersona get REF` shows one whole.

    Example:
      cpersona git blame-note src/session.py
      cpersona git blame-note src/session.py:42 -n 3
      cpersona git blame-note src/session.py --format '{commit} {content}' -0
    """
    from ..git import touching
    from . import _notes
    from ._rows import fetched

    shape = Shape(_NOTE_FIELDS, session.out, **shaped)
    repository = commits.Repository.open()
    path, line = touching.place_of(file)
    touched, settings = touching.commits_of(repository, path, line), _settings(session, repository)
    ids = {commits.message_id(repository.root(), commit): commit for commit in touched}
    refs: dict[str, str] = {}
    for answer in _notes.found(session, settings, list(ids), refs=True):
        refs |= answer["refs"]
    noted = [refs[id] for id in ids if id in refs]
    notes = fetched(session, noted[:limit]).response["items"] if noted else []
    told = {
        "ok": True,
        "file": path,
        "line": line,
        "order": "newest_first",
        "commits": len(touched),
        "without_note": [commit for id, commit in ids.items() if id not in refs],
        "notes": [{**note, "commit": ids.get(note["id"], "")} for note in notes],
    }
    rows = shape.within(session.out, told, "notes")
    if session.out.as_json:
        session.out.json({**told, **shape.chosen_json("notes", rows, _note_field)})
    else:
        shape.print(session.out, rows, _note_field, ("commit", "timestamp", "ref", "content"))
    return _say_without_note(session, file, told, len(noted), limit)


def _note_field(row: dict, name: str) -> str:
    return row["commit"][:12] if name == "commit" else field(row, name)


def _say_without_note(session: Session, file: str, told: dict, noted: int, limit: int) -> int:
    """Say how many notes are not there or not shown, and return the exit status."""
    touched = counted(told["commits"], "commits")
    if not noted:
        session.out.warn(
            f"cpersona git blame-note: no note yet of the {touched} that touched {file}; `cpersona git backfill` notes "
            "all of history"
        )
        return fields.EXIT_NOTHING
    if noted > limit:
        session.out.note(f"left out: {counted(noted - limit, 'older notes')}; -n {noted} shows all")
    if told["without_note"]:
        session.out.note(
            f"no note yet: {len(told['without_note']):,} of the {touched}; `cpersona git backfill` notes all of history"
        )
    return fields.EXIT_OK


def _settings(session: Session, repository: commits.Repository) -> Settings:
    """Return the settings of this command; what `git install` was told stands where no option does."""
    state, options = repository.state or {}, session.options
    for key, name in (("db", "db_path"), ("agent", "agent"), ("project", "project")):
        if options.get(key) is None and isinstance(state.get(name), str):
            options[key] = state[name]
    return session.settings


def _revisions(repository: commits.Repository, revisions: list[str]) -> list[str]:
    """Return the ids that revisions name. Raises GitFailed for one that names no commit."""
    return [
        repository.git.line("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        for revision in revisions
    ]


def _ref(response: dict) -> str:
    number = response.get("id")
    return f"mem:{number}" if isinstance(number, int) else response.get("queued", "")


COMMANDS = (install, uninstall, status, note, backfill, blame_note)
