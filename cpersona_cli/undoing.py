"""`undo`: take back what a named run wrote.

Contract: interface.md, `undo BATCH` (locked rows excepted).
"""

from cpersona_daemon.wire import fields

from .spec import AGENT, argument, command, option


@command(
    "undo",
    argument("name", "The batch, as --batch named it.", metavar="NAME"),
    option("--all-agents", "Its rows of every agent.", kind="flag", default=False),
    common=AGENT,
)
def undo(session, name, all_agents):
    """Take back a run of `store --batch` or `import --batch`: delete the rows that it wrote. Locked ones stay.

    Rows that were there before, and were skipped or updated by the run, are not touched. Exit 3 when the
    batch has no rows (any more).

    Example:
      cpersona store --jsonl notes.jsonl --batch monday && cpersona undo monday
    """
    params = {"batch": name, "agent_id": session.whom(all_agents)}
    answer = session.ask("undo_batch", params)
    response, out = answer.response, session.out
    deleted = response.get("deleted_memories", 0) + response.get("deleted_episodes", 0)
    if not session.show(answer):
        out.records((key, response.get(key, 0)) for key in ("deleted_memories", "deleted_episodes", "kept_locked"))
    if response.get("persisted") is False:
        out.warn(f"cpersona: nothing was taken back: {response.get('reason', 'persistence is paused')}; `cpersona resume` keeps again")
        return answer.status
    if response.get("kept_locked"):
        shown = response.get("kept", [])
        more = ", …" if len(shown) < response["kept_locked"] else ""
        out.note(f"locked and kept: {', '.join(shown)}{more}; `cpersona unlock` and undo again to delete them too")
    if response.get("other_agents"):
        out.note(f"{response['other_agents']} more rows of this batch belong to other agents; --all-agents takes them back too")
    if not deleted and not response.get("kept_locked"):
        out.note(f"no rows of batch {name!r}" + ("" if all_agents else f" of agent {session.agent!r}"))
        return fields.EXIT_NOTHING
    return answer.status


COMMANDS = (undo,)
