"""`undo`: take back what a named run wrote.

Contract: batch.undo.
"""

from __future__ import annotations

import sys

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import AGENT, WRITES, argument, command, option
from ..terminal.failure import paused_line
from ..terminal.output import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session
    from ..terminal.output import Output

ASKS_FROM = 21  # rows: more than what a person sees at a glance is asked about


@command(
    "undo",
    argument("name", "The batch, as --batch named it.", metavar="NAME"),
    option("--all-agents", "Its rows of every agent.", kind="flag", default=False),
    option("--dry-run", "Count what would be deleted and delete nothing.", kind="flag", default=False),
    option("--yes", "Do not ask.", kind="flag", default=False),
    common=(*WRITES, *AGENT),
)
def undo(session: Session, name: str, all_agents: bool, dry_run: bool, yes: bool) -> int:
    """Take back a run of `store --batch` or `import --batch`: delete the rows that it wrote. Locked ones stay.

    Rows that were there before, and were skipped or updated by the run, are not touched. On a terminal more than 20
    rows are asked about first. Exit 3 when the batch has no rows (any more).

    Example:
      cpersona store --jsonl notes.jsonl --batch monday && cpersona undo monday
    """
    params = {"batch": name, "agent_id": session.whom(all_agents)}
    if not (dry_run or yes) and sys.stdin.isatty():
        _confirm(session, params)
    if dry_run:
        answer = session.ask("undo_batch", {**params, "dry_run": True})
    else:
        from ._runs import watch

        answer = watch(session, "undo_batch", params, _early, grace=True)
    response, out = answer.response, session.out
    if not session.show(answer):
        out.records((key, response.get(key, 0)) for key in ("deleted_memories", "deleted_episodes", "kept_locked"))
    if response.get("persisted") is False:
        out.warn(paused_line("nothing was taken back", response))
        return answer.status
    if dry_run:
        out.note("a dry run: nothing was deleted")
    _say_kept(out, response)
    if not any(response.get(key) for key in ("deleted_memories", "deleted_episodes", "kept_locked")):
        out.note(f"no rows of batch {name!r}" + ("" if all_agents else f" of agent {session.agent!r}"))
        return fields.EXIT_NOTHING
    return answer.status


def _say_kept(out: Output, response: dict) -> None:
    """Say which rows of the batch are still there, and why."""
    if locked := response.get("kept_locked"):
        shown = response.get("kept", [])
        more = ", …" if len(shown) < locked else ""
        out.note(f"locked and kept: {', '.join(shown)}{more}; `cpersona unlock` and undo again to delete them too")
    if others := response.get("other_agents"):
        out.note(f"{others} more rows of this batch belong to other agents; --all-agents takes them back too")


def _confirm(session: Session, params: dict) -> None:
    """Ask about a batch of many rows. Raises Stop where the answer is not yes."""
    found = session.call("undo_batch", {**params, "dry_run": True}).response
    memories, episodes = found.get("deleted_memories", 0), found.get("deleted_episodes", 0)
    if memories + episodes < ASKS_FROM or found.get("persisted") is False:
        return
    what = " and ".join(
        counted(count, things) for count, things in ((memories, "memories"), (episodes, "episodes")) if count
    )
    print(f"Delete {what} of batch {params['batch']!r}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise exits.Stop("undo: nothing was deleted; answer y, or give --yes")


def _early(reached: dict) -> str:
    far = (
        f"at least {reached['done']:,} of {reached['total']:,} rows are deleted"
        if "done" in reached
        else "how many rows are deleted is not known"
    )
    return f"{far}; run the same command again for the others"


COMMANDS = (undo,)
