"""`undo`: take back the last write, or what a named run wrote.

Contract: batch.undo, past.acts.
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
    from ..session import Answer, Session
    from ..terminal.output import Output

ASKS_FROM = 21  # rows: more than what a person sees at a glance is asked about


@command(
    "undo",
    argument(
        "name",
        "The batch, as --batch named it; without it the last write.",
        required=False,
        metavar="NAME",
        values="batches",
    ),
    option("--all-agents", "Rows of every agent; with NAME.", kind="flag", default=False),
    option("--dry-run", "Say what would be done and do nothing.", kind="flag", default=False),
    option("--yes", "Do not ask.", kind="flag", default=False),
    common=(*WRITES, *AGENT),
)
def undo(session: Session, name: str | None, all_agents: bool, dry_run: bool, yes: bool) -> int:
    """Take back the last write of the agent or, with NAME, a run of `store --batch` or `import --batch`.

    The last write is what was stored, changed, deleted or brought back last: undo deletes the row, or makes the rows
    what they were. It is a write itself, so that a second undo takes the first one back; what is older `history` and
    `restore-memory` bring back. Locks, profiles and associations are no such writes.

    Of a batch the rows that it wrote are deleted; those that it skipped or updated are not touched. Locked rows stay.
    On a terminal more than 20 rows are asked about first. Exit 3 when the batch has no rows (any more).

    Example:
      cpersona delete mem:12 && cpersona undo
      cpersona undo --dry-run
      cpersona store --jsonl notes.jsonl --batch monday && cpersona undo monday
    """
    if name is None:
        return _last(session, all_agents, dry_run, yes)
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
        out.note(f"no rows of batch {name!r}{_of(session, all_agents)}{_instead(name)}")
        return fields.EXIT_NOTHING
    return answer.status


def _of(session: Session, all_agents: bool) -> str:
    return "" if all_agents else f" of agent {session.agent!r}"


def _instead(name: str) -> str:
    """Return what to type instead where no batch was meant but a row."""
    kind, _, number = name.partition(":")
    meant = kind in ("mem", "ep") and number.isdecimal()
    return f"; `cpersona restore-memory {name}` makes a row what it was" if meant else ""


# What was done, and what undoing it makes of a row.
_UNDONE = {
    "store": ("stored", "deleted"),
    "update": ("changed", "changed back"),
    "delete": ("deleted", "brought back"),
    "return": ("brought back", "as it was before that"),
}
_BECAME = {"removed": "deleted", "returned": "brought back", "changed": "changed back", "unchanged": "unchanged"}


def _last(session: Session, all_agents: bool, dry_run: bool, yes: bool) -> int:
    """Take the last write of the agent back."""
    if all_agents:
        raise exits.Usage("undo: --all-agents goes with the NAME of a batch; the last write is one agent's")
    params, out = {"agent_id": session.agent}, session.out
    if dry_run:
        return _say_last(session, session.ask("undo_last", {**params, "dry_run": True}))
    if not yes and sys.stdin.isatty():
        looked = session.ask("undo_last", {**params, "dry_run": True}).response
        if looked.get("rows", 0) >= ASKS_FROM:
            done = _UNDONE[looked["undone"]][0]
            _ask_for_yes(f"Take back that {counted(looked['rows'], 'rows')} were {done}?", "taken back")
    from ._runs import watch

    answer = watch(session, "undo_last", params, _early_last, grace=True)
    response = answer.response
    if not session.show(answer):
        for ref, became in zip(response.get("refs", ()), response.get("results", ()), strict=False):
            out.record((ref, _BECAME.get(became, became)))
    if response.get("persisted") is False:
        out.warn(paused_line("nothing was taken back", response))
        return answer.status
    _say_rest(out, response)
    return answer.status or (fields.EXIT_FAILED if response.get("kept") else fields.EXIT_OK)


def _say_rest(out: Output, response: dict) -> None:
    """Say of an undone write which rows stay, and what is not shown."""
    if len(response.get("refs", ())) < response.get("rows", 0):
        out.note(f"and {response['rows'] - len(response['refs'])} more rows")
    for row in response.get("kept", ()):
        out.warn(f"cpersona undo: {row['ref']} stays as it is: {row['reason']}")
    if dropped := response.get("dropped_links"):
        out.note(f"{dropped} mentions and relations name what is gone, and stay away")


def _say_last(session: Session, looked: Answer) -> int:
    response, out = looked.response, session.out
    if not session.show(looked):
        done, becomes = _UNDONE[response["undone"]]
        for ref in response["refs"]:
            out.record((ref, f"{done} {response['at']}, would be {becomes}"))
    out.note("a dry run: nothing was changed")
    return looked.status


def _early_last(reached: dict) -> str:
    far = f"at least {reached['done']:,} of {reached['total']:,} rows are" if "done" in reached else "some rows may be"
    return f"{far} as they were before; `cpersona undo --dry-run` says what was done last"


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
    _ask_for_yes(f"Delete {what} of batch {params['batch']!r}?", "deleted")


def _ask_for_yes(question: str, done: str) -> None:
    """Raise Stop where a question is not answered with yes; ``done``: what then is not."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise exits.Stop(f"undo: nothing was {done}; answer y, or give --yes")


def _early(reached: dict) -> str:
    far = (
        f"at least {reached['done']:,} of {reached['total']:,} rows are deleted"
        if "done" in reached
        else "how many rows are deleted is not known"
    )
    return f"{far}; run the same command again for the others"


COMMANDS = (undo,)
