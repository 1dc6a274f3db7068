"""`delete`: remove rows by their refs.

Contract: locks.hold, exit.status, rows.keyed, past.purged.
"""

from __future__ import annotations

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import ROWS, WRITES, command, option
from ._keys import KEYS, rows_named, within
from ._rows import REFS, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session

MOST = 1_000  # rows of one request


@command(
    "delete",
    REFS,
    KEYS,
    option("--purge", "For good: nothing of the rows stays in any file of the store.", kind="flag", default=False),
    common=(*WRITES, *ROWS),
)
def delete(session: Session, refs: list[str], id: list[str], purge: bool) -> int:
    """Delete memories and episodes by their refs, memories by your own keys too. A locked memory stays.

    What is deleted is kept for CPERSONA_HISTORY_DAYS (30), and `restore-memory REF` brings it back. After that the
    store knows when it was stored and deleted, its agent, project and channel, so that --as-of can count it;
    `forget-agent` leaves not even that. Each outcome is said; the exit status is 1 if any row is still there.

    --purge keeps nothing of them, and removes what is kept of rows that are deleted already: from history, indexes,
    free pages and the log. The database is written anew for that, and writes wait meanwhile. Backups, exports and
    services elsewhere are not reached; `cpersona help history` says more.

    Example:
      cpersona delete mem:12 ep:3
      cpersona delete --id deploy-branch
      cpersona delete --purge mem:12
    """
    if purge:
        return _purge(session, rows_named(session, refs, id))
    methods = {"mem": ("delete_memory", "memory_id"), "ep": ("delete_episode", "episode_id")}
    return each(session, rows_named(session, refs, id), "deleted", methods)


def _purge(session: Session, rows: list[tuple[str, int]]) -> int:
    """Delete rows for good, all in one request: the files are written anew once."""
    if len(rows) > MOST:
        raise exits.Usage(f"delete --purge takes {MOST:,} rows at a time, not {len(rows):,}")
    from ._runs import watch

    params = {"agent_id": session.agent, **within(session), "refs": [f"{kind}:{number}" for kind, number in rows]}
    answer = watch(session, "purge_rows", params, _early, grace=True)
    response, out = answer.response, session.out
    if not session.show(answer):
        for ref in response.get("purged", ()):
            out.record((ref, "deleted for good"))
    if response.get("persisted") is False:
        from ..terminal.failure import paused_line

        out.warn(paused_line("nothing was deleted", response))
    for row in response.get("kept", ()):
        out.warn(f"cpersona delete: {row['ref']} stays: {row['reason']}")
    if response.get("log_held"):
        out.warn(
            "cpersona delete: another program reads the database, so that its log could not be emptied; end that, and"
            " `cpersona daemon restart` empties it"
        )
    return answer.status or (fields.EXIT_FAILED if response.get("kept") else fields.EXIT_OK)


def _early(reached: dict) -> str:
    if not reached:
        return "the rows are deleted for good or not at all; run the same command again to see"
    return "the rows are deleted, but what they said may still stand in the store's files; run the same command again"


COMMANDS = (delete,)
