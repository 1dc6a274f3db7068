"""`canary`: saved questions with the row that must come back.

Contract: canary.run, exit.status.
"""

from __future__ import annotations

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import AGENT, AXES, WRITES, argument, command, option
from ..terminal import reading, render
from ..terminal.failure import paused_line
from . import _plots
from ._keys import KEY, one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session
    from ..terminal.output import Output

_COLUMNS = ("id", "state", "rank", "ref", "query")


@command(
    "canary add",
    argument("query", "The question."),
    argument("ref", "The row that must come back, as mem:12 or ep:3; none with --id.", required=False, values="refs"),
    KEY,
    common=(*WRITES, *AXES),
)
def add(session: Session, query: str, ref: str | None, id: str | None) -> int:
    """Save a question and the row that must come back, run it once, and print its number.

    Canaries run by themselves after calibrate, import, reindex, a change of model and an upgrade. One that is lost
    shows in `health` and `daemon status`.

    Example:
      cpersona canary add "which branch do deploys use?" mem:12
      cpersona canary add "which branch do deploys use?" --id deploy-branch
    """
    if id is not None or ref is None:
        ref = f"mem:{one(session, ref, id)}"
    answer = session.ask("add_canary", {**session.axes(), "query": query, "ref": reading.canonical(ref)})
    response, out = answer.response, session.out
    lost = response.get("state") in ("lost", "gone")
    if not session.show(answer):
        if response.get("persisted") is False:
            out.warn(paused_line("nothing was kept", response))
        else:
            out.line(str(response.get("id")))
            asked = {
                "found": f"comes back at rank {response.get('rank')}",
                "new": "saved, and not asked yet; `cpersona canary run` asks it",
            }
            out.note(
                asked.get(str(response.get("state")), "the row does not come back now; --explain of recall says why")
                + ("" if response.get("created") else "; it was saved already")
            )
            render.warnings(out, response)
    return fields.EXIT_FAILED if lost else answer.status


@command("canary list", option("--all-agents", "Those of every agent.", kind="flag", default=False), common=AGENT)
def list_(session: Session, all_agents: bool) -> int:
    """List the saved questions and how their last run went: found, lost, gone (the row is deleted), or new.

    Columns: number, state, rank, ref, question.

    Example:
      cpersona canary list
    """
    answer = session.ask("list_canaries", {"agent_id": session.whom(all_agents)})
    if not session.show(answer):
        _print(session.out, answer.response.get("canaries", ()))
        if not answer.response.get("count"):
            session.out.note("no canaries; `cpersona canary add QUERY REF` saves one")
    return answer.status


@command(
    "canary run",
    option("--all-agents", "Those of every agent.", kind="flag", default=False),
    _plots.PLOT,
    _plots.SVG,
    common=AGENT,
)
def run(session: Session, all_agents: bool, plot: bool, svg: str | None) -> int:
    """Ask every saved question now. Exit 1 when a row does not come back.

    --plot draws two histograms: what the questions score with their rows, and what questions about anything find.

    Example:
      cpersona canary run || cpersona calibrate --rollback
      cpersona canary run --plot
    """
    drawn = plot or svg is not None
    if drawn and all_agents:
        raise exits.Usage("canary run: --plot and --svg draw one agent's questions; leave --all-agents out")
    params = {"agent_id": session.whom(all_agents), **({"scores": True} if drawn else {})}
    answer = session.ask("run_canaries", params)
    response, out = answer.response, session.out
    if drawn:
        _plots.show(out, response.get("scores") or {}, plot, svg)
    if not session.show(answer):
        _print(out, response.get("canaries", ()))
        out.note(f"{response.get('found')} of {response.get('total')} found")
    lost = response.get("lost", 0)
    if lost:
        raise exits.Stop(
            f"canary run: {lost} of {response.get('total')} are lost; `cpersona recall QUERY --why-not REF` says why, "
            "`cpersona calibrate --rollback` returns to the calibration before"
        )
    return answer.status


@command("canary remove", argument("number", "Its number, as list prints it.", metavar="ID"), common=(*WRITES, *AGENT))
def remove(session: Session, number: str) -> int:
    """Remove a saved question.

    Example:
      cpersona canary remove 3
    """
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise exits.Usage(f"a canary is named by its number, not {number!r}; see `cpersona canary list`")
    answer = session.ask("remove_canary", {"canary_id": int(number), "agent_id": session.agent})
    if not session.show(answer):
        session.out.line(f"removed\t{answer.response.get('removed_id')}")
    return answer.status


def _print(out: Output, canaries: list[dict]) -> None:
    render.table(out, _COLUMNS, [[canary.get(name, "") for name in _COLUMNS] for canary in canaries])


COMMANDS = (add, list_, run, remove)
