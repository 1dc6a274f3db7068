"""`import --markdown`: which options go with it, and what was asked for.

Contract: import.markdown, import.prune.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys

from .. import exits
from ..declare.spec import option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..session import Session

FORMATS = ("basic-memory",)
# What has no format that could be relied on, and what helps.
_NO_FORMATS = {
    "claude-memory": "it is plain Markdown, without a format of its own; `cpersona import --markdown DIR` reads it, "
    "CLAUDE.md and a directory of memories alike",
    "mem0": "its exports have the schema that the caller gives and no format of their own; write one object of "
    '`{"id", "content", "timestamp", "metadata"}` a line for `cpersona store --jsonl FILE`',
}
OPTIONS = (
    option("--markdown", "Read Markdown files, and directories of them.", kind="flag", default=False),
    option("--format", "The same, of files that another memory wrote: basic-memory.", metavar="NAME", values=FORMATS),
    option("--prune", "Delete the notes of files that are gone; asks first.", kind="flag", default=False),
    option("--yes", "Do not ask.", kind="flag", default=False),
    option("--watch", "Go on: whatever changes is brought up to date until Ctrl-C.", kind="flag", default=False),
    option("--every", "With --watch, look so often, and ask the system for nothing.", kind="float", metavar="SECONDS"),
)
_ONLY_WITH = ("prune", "yes", "watch", "every")
_AXES = ("agent", "project", "channel")


def asked(session: Session, given: Mapping[str, Any]) -> bool:
    """Tell whether files of notes are meant. Raises Usage for an option that goes with them alone."""
    if given["format"] is not None and given["format"] not in FORMATS:
        why = _NO_FORMATS.get(given["format"], f"the formats are {', '.join(FORMATS)}")
        raise exits.Usage(f"import --format {given['format']}: {why}")
    if given["markdown"] or given["format"]:
        return True
    named = [name for name in _ONLY_WITH if given[name]]
    named += [name for name in _AXES if session.options.get(name) is not None]
    if named:
        raise exits.Usage(
            f"import: --{named[0]} goes with --markdown; `cpersona import --help` shows what a file takes"
        )
    return False


def run(session: Session, paths: Sequence[str], given: Mapping[str, Any]) -> int:
    """Bring the notes of files and directories up to date, and return the exit status."""
    _check(paths, given)
    if given["to_agent"] is not None:
        if session.options.get("agent") not in (None, given["to_agent"]):
            raise exits.Usage("import: --agent and --to-agent name two agents; give one of them")
        session.options["agent"] = given["to_agent"]
    from . import _directories

    sources = _directories.sources(paths, given["format"] or "markdown")
    if given["watch"]:
        from . import _watching

        return _watching.keep(session, sources, given)
    return _directories.bring(session, sources, given)


def _check(paths: Sequence[str], given: Mapping[str, Any]) -> None:
    """Raise Usage for what cannot go together."""
    watched, every = given["watch"], given["every"]
    for wrong, why in (
        ("-" in paths, "--markdown reads files and directories; `cpersona store -` keeps what it is given"),
        (watched and given["dry_run"], "--watch keeps notes up to date and --dry-run writes none; give one of them"),
        (watched and given["wait"], "--watch goes on while vectors are made; leave out --wait"),
        (given["keep_vectors"], "notes bring no vectors; leave out --keep-vectors"),
    ):
        if wrong:
            raise exits.Usage(f"import: {why}")
    if every is not None and not (watched and 0.05 <= every <= 86_400):
        raise exits.Usage("import: --every says how many seconds --watch waits, 0.05 to 86400")
    answered = given["yes"] or given["dry_run"] or (sys.stdin.isatty() and not watched)
    if given["prune"] and not answered:
        raise exits.Usage("import: --prune deletes notes; add --yes where nobody can be asked")


def refuse(paths: Sequence[str]) -> None:
    """Raise Stop where what is there is no single file that export could have written."""
    if len(paths) > 1:
        raise exits.Usage(f"import reads one file, {len(paths)} are given; --markdown reads several files of notes")
    (path,) = paths
    if os.path.isdir(path):
        raise exits.Stop(
            f"import: {path!r} is a directory; `cpersona import --markdown {shlex.quote(path)}` reads its Markdown "
            "files, else give the path of a file that export wrote"
        )
    if path != "-" and not (os.path.isfile(path) or is_pipe(path)):
        raise exits.Stop(f"import: there is no file {path!r}; give the path of a file that export wrote")


def is_pipe(path: str) -> bool:
    """Tell whether a path is a pipe, as a shell's <(command) is: it is read once, from its beginning to its end."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False
