"""What git's hooks run: keep a note of a new commit, and let a rewritten one take its place.

It writes a durable file beside the database and talks to nobody, so a commit never waits for the store
nor fails because of it: whatever goes wrong is one line on stderr and exit status 0.

Contract: git.notes, spool.queue.
"""

from __future__ import annotations

import os
import sys

from cpersona_daemon.shared import files

from .git import commits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cpersona_daemon.shared.settings import Settings

NOTES_A_REQUEST = 500


def main(arguments: list[str]) -> None:
    """Run as the hook that ``arguments`` name, with what git tells it.

    That is what rewrote for post-rewrite, and for post-merge whether it squashes.
    """
    try:
        run(arguments, sys.stdin)
    except BaseException as error:
        print(
            f"cpersona: this commit is not noted ({' '.join(str(error).split()) or type(error).__name__}); `cpersona "
            "git backfill` catches up",
            file=sys.stderr,
        )


def run(arguments: list[str], stdin: Iterable[str]) -> None:
    """The same with its failures."""
    repository = commits.Repository.of_hook()
    if repository.state is None:
        return  # hooks may be shared by many repositories; this one was not asked about
    rebase = repository.rebase()
    if arguments[0] == "post-merge" and not _merged_here(repository, arguments[1:]):
        return
    if arguments[0] != "post-rewrite":
        if rebase:
            _hold(rebase, [repository.git.line("rev-parse", "HEAD")])
        else:
            _note(repository)
        return
    mapped = [line.split()[:2] for line in stdin if len(line.split()) >= 2]
    if rebase and arguments[1:2] == ["amend"]:
        # A step of the rebase, such as a squash: only what is left at its end is worth a note.
        _hold(rebase, [new for _, new in mapped])
    else:
        _rewrite(repository, rebase, mapped)


def _merged_here(repository: commits.Repository, told: list[str]) -> bool:
    """Tell whether a merge that is over made a commit.

    A squash leaves that to `git commit`, a fast-forward takes what others made.
    """
    if told[:1] == ["1"]:
        return False
    git = repository.git
    parents, committer = git.line("log", "-1", "--format=%P%n%ce", "HEAD").split("\n")
    if len(parents.split()) < 2:
        return False
    try:
        done = git.line("log", "-1", "--walk-reflogs", "--format=%gs", "HEAD")
    except commits.GitFailed:
        done = ""
    if done:
        return not done.endswith(": Fast-forward")
    # Without a log of HEAD: a merge of somebody else's that a fast-forward brought has another committer.
    return f"<{committer}>" in git.line("var", "GIT_COMMITTER_IDENT")


def _note(repository: commits.Repository) -> None:
    settings = settings_of(repository)
    for commit in repository.commits("HEAD"):
        params = commits.store_params(commit, repository, settings, repository.branch())
        _put(settings, "store", params)
        _say_cut(params)


def _rewrite(repository: commits.Repository, rebase: str | None, mapped: list[list[str]]) -> None:
    """Queue the notes of the new commits, each with the old ones whose place it takes."""
    replaces: dict[str, list[str]] = {}
    for old, new in mapped:
        replaces.setdefault(new, []).append(old)
    for new in _kept(repository, rebase):
        replaces.setdefault(new, [])
    if not replaces:
        return
    settings, root, branch = settings_of(repository), repository.root(), repository.branch(rebase)
    notes = []
    for commit in repository.named(replaces):
        params = commits.store_params(commit, repository, settings, branch)
        _say_cut(params)
        notes.append(
            {name: params[name] for name in ("id", "content", "source", "timestamp", "metadata")}
            | {"replaces": [commits.message_id(root, old) for old in replaces[commit["commit"]]]}
        )
    for at in range(0, len(notes), NOTES_A_REQUEST):
        _put(settings, "replace_notes", commits.axes(settings) | {"notes": notes[at : at + NOTES_A_REQUEST]})


def _say_cut(params: dict) -> None:
    if cut := commits.cut_of(params):
        print(f"cpersona: the note keeps {cut['kept']:,} of the message's {cut['of']:,} characters", file=sys.stderr)


def _hold(rebase: str, ids: list[str]) -> None:
    held = files.opened(os.path.join(rebase, commits.HELD), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with open(held, "a", encoding="ascii") as handle:
        handle.writelines(f"{id}\n" for id in ids)


def _kept(repository: commits.Repository, rebase: str | None) -> list[str]:
    """Return the commits made by hand during a rebase that are part of what came out of it."""
    if not rebase:
        return []
    try:
        with open(files.opened(os.path.join(rebase, commits.HELD)), encoding="ascii") as handle:
            held = list(dict.fromkeys(handle.read().split()))
    except FileNotFoundError:
        return []
    onto = commits.read_line(os.path.join(rebase, "onto"))
    reachable = set(repository.git.line("rev-list", "HEAD", *([f"^{onto}"] if onto else [])).split("\n"))
    return [id for id in held if id in reachable]


def settings_of(repository: commits.Repository) -> Settings:
    """Return the settings of the environment, with what `git install` was told on top."""
    from cpersona_daemon.shared.settings import load

    state = repository.state or {}
    return load(
        options={name: state[name] for name in ("db_path", "agent", "project") if isinstance(state.get(name), str)}
    )


def _put(settings: Settings, method: str, params: dict) -> None:
    from cpersona_daemon.shared.paths import places

    from .wire.spool import put

    put(places(settings).spool, method, params, token=settings.token)
