"""`episode`: archive, list and delete the summaries of whole sessions.

Contract: episode.archive, lists.newest.
"""

from __future__ import annotations

from .. import exits
from ..declare.spec import AGENT, AXES, WRITES, argument, command, option
from ..terminal import cuts, reading
from ..terminal.failure import paused_line
from ..terminal.shaping import Shape, shape_options
from ._rows import each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..session import Session

_KEYS = {"start": "start_time", "end": "end_time", "stored": "created_at", "agent": "agent_id", "project": "project_id"}
_FIELDS = ("ref", "start", "end", "stored", "state", "agent", "project", "channel", "keywords", "summary")


@command(
    "episode archive",
    argument(
        "summary", "The summary; - or nothing at all reads it from standard input.", required=False, metavar="SUMMARY|-"
    ),
    option("--keywords", "Words that should find it.", metavar="WORDS"),
    option(
        "--history",
        "The session itself: JSON objects whose timestamps give start and end.",
        metavar="FILE|-",
        values="files",
    ),
    option("--resolved", "The matter is closed.", kind="flag", default=False),
    cuts.FAIL_IF_CUT,
    common=(*WRITES, *AXES),
)
def archive(
    session: Session, summary: str | None, keywords: str | None, history: str | None, resolved: bool, fail_if_cut: bool
) -> int:
    """Keep the summary of a session as an episode and print its ref.

    Example:
      cpersona episode archive "Moved to Postgres" --keywords "queue migration"
    """
    if history == "-" and summary in (None, "-"):
        raise exits.Usage("only one of the summary and the history can come from standard input")
    params = session.axes()
    params["summary"] = reading.text_or_stdin(summary, "summary", session.out)
    if keywords is not None:
        params["keywords"] = keywords
    if history is not None:
        params["history"] = reading.json_objects(history, session.out)
    if resolved:
        params["resolved"] = True
    if fail_if_cut:
        params["fail_if_cut"] = True
    answer = session.ask("archive_episode", params)
    if not session.show(answer):
        if answer.response.get("episode_id") is None:
            session.out.warn(paused_line("nothing was kept", answer.response))
        else:
            session.out.line(f"ep:{answer.response['episode_id']}")
    cuts.warn(session.out, answer.response, "the summary")
    return answer.status


@command(
    "episode list",
    option("-n --limit", "Episodes at most, up to 200.", kind="int", default=50, metavar="N", least=0),
    option("--all-agents", "Episodes of every agent.", kind="flag", default=False),
    *shape_options(_FIELDS),
    common=AXES,
)
def list_(session: Session, limit: int, all_agents: bool, **shaped: Any) -> int:
    """List the newest episodes, newest first: ref, start, end, state, keywords, summary.

    Example:
      cpersona episode list -n 10
      cpersona episode list --format '{ref} {keywords}'
    """
    shape = Shape(_FIELDS, session.out, **shaped)
    params = {**session.axes(), "agent_id": session.whom(all_agents), "limit": session.at_most(limit, 200)}
    answer = session.ask("list_episodes", params)
    found = shape.within(session.out, answer.response, "episodes", "summary")
    if session.show(answer, **shape.chosen_json("episodes", found, _field)):
        return answer.status
    shape.print(session.out, found, _field, ("ref", "start", "end", "state", "keywords", "summary"))
    if not found:
        session.out.note("no episodes")
    return answer.status


def _field(row: dict, name: str) -> str:
    """Return one field of an episode as text."""
    if name == "state":
        return "resolved" if row.get("resolved") else "open"
    return str(row.get(_KEYS.get(name, name)) or "")


@command(
    "episode delete",
    argument(
        "refs", "Episodes, like ep:3; a bare number is an episode here.", many=True, metavar="REF…", values="episodes"
    ),
    common=(*WRITES, *AGENT),
)
def delete(session: Session, refs: list[str]) -> int:
    """Delete episodes by their refs.

    Example:
      cpersona episode delete ep:3
    """
    named = [reading.ref(f"ep:{text}" if text.isdigit() else text) for text in refs]
    return each(session, named, "deleted", {"ep": ("delete_episode", "episode_id")})


COMMANDS = (archive, list_, delete)
