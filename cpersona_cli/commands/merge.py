"""`merge`: move one agent's rows into another.

Contract: merge.copies.
"""

from __future__ import annotations

from ..declare.spec import PLAIN, WRITES, argument, command, option
from ._agents import refuse_unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command(
    "merge",
    argument("source", "The agent whose rows are taken.", metavar="FROM", values="agents"),
    argument("target", "The agent that gets them.", metavar="INTO", values="agents"),
    option("--move", "Delete what was copied from the source.", kind="flag", default=False),
    option("--dry-run", "Count what would be merged and write nothing.", kind="flag", default=False),
    common=(*WRITES, *PLAIN),
)
def merge(session: Session, source: str, target: str, move: bool, dry_run: bool) -> int:
    """Copy one agent's memories, episodes and profile to another; what is there already is skipped.

    Others go on reading and writing meanwhile, and see all of it or nothing. Interrupted before that, it has
    done nothing; run it again.

    Example:
      cpersona merge scratch default --dry-run
      cpersona merge scratch default --move
    """
    from ._runs import watch

    def early(reached: dict) -> str:
        if dry_run:
            return "nothing was written"
        if reached.get("stage") == "deleting":
            left = f"what is left of them at {source!r} is seen by nobody, and is deleted without this command"
            return f"the rows are merged; {left}"
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
    refuse_unknown(session, answer, source)
    if not shown:
        for name in ("merged_memories", "skipped_memories", "merged_episodes", "skipped_episodes", "profile_copied"):
            if name in answer.response:
                session.out.record((name, str(answer.response[name]).lower()))
        if dry_run:
            session.out.note("a dry run: nothing was written")
    return answer.status


COMMANDS = (merge,)
