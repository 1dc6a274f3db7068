"""`import`: read a JSONL file.

Contract: import.lines.
"""

from __future__ import annotations

import os
import sys

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import AXES, PROGRESS, WAIT, WRITES, argument, command, option
from ..terminal import reading
from ..terminal.failure import failure_line
from . import _markdown
from ._runs import watch
from ._waiting import tempo, until_embedded
from .export import PrivateDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from ..session import Answer, Rows, Session
    from ..terminal.output import Output

_SHOWN = 5  # lines of an import that are said one by one
_ROWS = ("imported_memories", "skipped_memories", "imported_episodes", "skipped_episodes")
_ASKED: Rows = (
    ("dry_run", "dry_run", None),
    ("to_agent", "target_agent_id", None),
    ("batch", "batch", None),
    ("fail_if_cut", "fail_if_cut", None),
    ("keep_vectors", "keep_vectors", None),
)


@command(
    "import",
    argument(
        "files",
        "What to read; - reads standard input. With --markdown files and directories.",
        many=True,
        metavar="FILE|-",
        values="files",
    ),
    option("--dry-run", "Count what would be imported and write nothing.", kind="flag", default=False),
    option("--to-agent", "Give every row to this agent.", metavar="NAME", values="agents"),
    option("--batch", "Name this run, so that `cpersona undo NAME` can take it back.", metavar="NAME"),
    WAIT,
    PROGRESS,
    option("--fail-if-cut", "Leave out lines whose text is too long to be kept whole.", kind="flag", default=False),
    option("--keep-vectors", "Leave vectors of another model as they are.", kind="flag", default=False),
    *_markdown.OPTIONS,
    common=(*WRITES, *AXES),
)
def import_(session: Session, files: list[str], wait: bool, progress: bool, **given: Any) -> int:
    """Read a file that export wrote, here or in the reference implementation, or the reference's database.

    It is recognised by its content, and the reference's database is only read: `man cpersona-import` says what becomes
    of each field. What is there already is skipped; importing twice is harmless.

    Ends with totals. Vectors of another model are made anew in the background, unless --keep-vectors. Lines that cannot
    be read are counted, the first with their numbers, the rest goes on, and the exit status is 1; so it is with one
    whose text is too long and was cut, or with --fail-if-cut left out. A file that was cut imports nothing, and of one
    that is no export it is said what it seems to be and which command takes it. Rows that name no agent belong to the
    header's. An import that was interrupted goes on where it stopped when it is run again.

    --markdown reads notes: a file is one memory, and where it is long each of its sections is one, under its headings.
    Again it stores what changed and skips the rest; notes of files that are gone stay, unless --prune. What git ignores
    is not read. `cpersona help notes` says more. --agent, --project and --channel say whose these notes are.

    Example:
      cpersona import backup.jsonl --dry-run
      cpersona import backup.jsonl --wait
      zcat backup.jsonl.gz | cpersona import -
      cpersona import ~/.claude/cpersona.db
      cpersona import --markdown ~/notes --prune
    """
    if _markdown.asked(session, given):
        return _markdown.run(session, files, {**given, "wait": wait, "progress": progress})
    _markdown.refuse(files)
    (file,) = files
    if session.settings.host:
        from ._elsewhere import read

        return read(session, import_, file, {**given, "wait": wait, "progress": progress})
    params = {"embed": True, **session.parameters(given, _ASKED)}
    if file != "-" and not _markdown.is_pipe(file):
        return _import(session, {**params, "input_path": os.path.abspath(file)}, file, wait, progress)
    with PrivateDirectory(session) as directory:
        path = os.path.join(directory, "import.jsonl")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as handle:
            if file == "-":
                reading.announce(session.out)
                _copy(sys.stdin.fileno(), handle)
            else:
                with open(file, "rb") as pipe:
                    _copy(pipe.fileno(), handle)
        return _import(session, {**params, "input_path": path}, None, wait, progress)


def _copy(descriptor: int, to: BinaryIO) -> None:
    while data := os.read(descriptor, 1 << 20):
        to.write(data)


def _import(session: Session, params: dict, file: str | None, wait: bool, lines: bool) -> int:
    out, dry_run = session.out, "dry_run" in params
    answer = watch(
        session, "import_memories", params, lambda reached: _early(reached, dry_run), ask=session.call, lines=lines
    )
    shown = session.show(answer)
    _say_faults(out, answer.response)
    if "imported_memories" in answer.response and not shown:
        out.records(_totals(answer.response))
    _say_vectors(session, answer.response, wait)
    _say_unkept(out, answer.response)
    if answer.status:
        raise exits.Stop(_refusal(answer, file), answer.status)
    if answer.response.get("dry_run"):
        out.note("a dry run: nothing was written")
    if wait and not dry_run and (status := until_embedded(session, lines)):
        return status
    return fields.EXIT_FAILED if answer.response.get("errors") else fields.EXIT_OK


def _early(reached: dict, dry_run: bool) -> str:
    """Return what an import that ends early leaves, so that it does not look finished."""
    if dry_run:
        return "nothing was written"
    if reached.get("final"):
        done = ", ".join(f"{reached[name]:,} {name.replace('_', ' ')}" for name in _ROWS if reached.get(name))
        lines = f"lines 1 to {reached['done']:,} of {reached['total']:,} are in, and stay: {done}"
        return f"{lines if reached['done'] else 'nothing is in'}; run the same command again, it goes on from there"
    far = (
        f"at least lines 1 to {reached['done']:,} of {reached['total']:,} are in, and stay"
        if "done" in reached
        else "what is imported stays"
    )
    return f"{far}; run the same command again, it goes on from there"


def _say_faults(out: Output, response: dict) -> None:
    """Say the first lines that went wrong, and how many there are of each kind."""
    errors, count = response.get("errors") or [], response.get("error_count", 0)
    for line in errors[:_SHOWN]:
        out.warn(f"cpersona import: {line}")
    if not count:
        return
    rejected = response.get("rejected", 0)
    kinds = ((rejected, "rejected"), (count - rejected, "imported with a remark"))
    said = ", ".join(f"{number:,} {what}" for number, what in kinds if number)
    more = f", first {_SHOWN} shown; --json has {len(errors)}" if count > _SHOWN else ""
    out.warn(f"cpersona import: {said}{more}")


def _totals(response: dict) -> Iterator[tuple[str, object]]:
    """Return what became of the lines, as (what, how many) pairs."""
    for name in _ROWS:
        yield name, response.get(name, 0)
    yield "profile_updated", str(bool(response.get("profile_updated"))).lower()
    for name, count in (response.get("associations") or {}).items():
        yield f"imported_{name}", count
    if response.get("cut"):
        yield "cut", response["cut"]


def _say_vectors(session: Session, response: dict, wait: bool) -> None:
    """Say how many rows have no vector that this store's embedder can compare, and what becomes of them, unless that is
    what the command does next.
    """
    out = session.out
    foreign, lacking = response.get("foreign_vectors", 0), response.get("without_usable_vector", 0)
    of_another = f", {foreign:,} of them with one of another model" if foreign else ""
    if (listed := response.get("listed_for_embedding")) and not wait:
        out.note(
            f"{listed:,} of the rows came without a vector that this store's embedder can compare"
            f"{'' if lacking else of_another}; they are embedded in the background and found by words alone until then:"
            f" `cpersona status --watch` shows how far it is{tempo(session)}"
        )
    if lacking and response.get("dry_run"):
        out.note(
            f"{lacking:,} of the rows have no vector that this store's embedder can compare{of_another}; an import has"
            " them embedded in the background"
        )
    elif lacking:
        out.note(
            f"{lacking:,} of the rows keep a vector of another model and are found by words alone; `cpersona reindex`"
            " makes theirs anew"
        )
    if unknown := response.get("vectors_of_unknown_fit"):
        out.note(
            f"the embedder has not answered which model it is, so that nobody knows whether the {unknown:,} vectors are"
            " of its kind; `cpersona health` says it once it answers, and `cpersona reindex` makes them anew"
        )


def _say_unkept(out: Output, response: dict) -> None:
    """Say what a file brought that has no place here, and whose profiles are kept beside the agent's own."""
    if unkept := response.get("unkept"):
        said = ", ".join(f"{count:,} {name}" for name, count in unkept.items())
        out.note(f"left out, there is no place for them here: {said}; `man cpersona-import` says why")
    if others := response.get("other_profiles"):
        out.note(
            f"{others:,} profile{'s' if others > 1 else ''} of other users are kept beside the agent's own, which comes"
            " first; an export writes them again"
        )


def _refusal(answer: Answer, file: str | None) -> str:
    """Return the line of an import that failed, with the file's name where the reason says FILE."""
    response = answer.response
    if file is not None and isinstance(response.get("error"), str):
        import shlex

        response["error"] = response["error"].replace(" FILE", f" {shlex.quote(file)}")
    imported = any(response.get(name) for name in _ROWS)
    hint = "correct the file and import it again, what is stored already is skipped" if imported else ""
    return failure_line("import", response, answer.code, hint)


COMMANDS = (import_,)
