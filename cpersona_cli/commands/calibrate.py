"""`calibrate`: measure how similar is similar enough.

Contract: calibration.sample, calibration.rollback.
"""

from __future__ import annotations

from .. import exits
from ..declare.spec import AGENT, WRITES, command, option
from ..session import Session
from ..terminal.output import Output, counted
from ..terminal.render import number
from . import _plots

# What was taken for related, by `proxy_source`.
_RELATED = {
    "temporal": ", where memories stored within minutes of each other counted as related",
    "nn_fallback": (
        ", where each memory and the one most like it counted as related, since too few were stored within minutes of "
        "each other"
    ),
}


@command(
    "calibrate",
    option(
        "--method",
        "How the threshold follows from the measured similarities; separation without it.",
        choices=("separation", "percentile", "zscore"),
    ),
    option("--sample-size", "Memories to measure, 1 to 5000; 200 without it.", kind="int", metavar="N", least=1),
    option(
        "--percentile",
        "For --method percentile: the share of unrelated pairs below the threshold.",
        kind="float",
        metavar="P",
    ),
    option("--z-factor", "For --method zscore: deviations above the mean.", kind="float", metavar="Z"),
    option(
        "--all-agents",
        "Measure the whole store and set the threshold that agents without their own use.",
        kind="flag",
        default=False,
    ),
    option(
        "--dry-run",
        "Measure and show, keep nothing; with --rollback show what it would return to.",
        kind="flag",
        default=False,
    ),
    option(
        "--rollback",
        "Return to the calibration before the last one; twice is forward again.",
        kind="flag",
        default=False,
    ),
    _plots.PLOT,
    _plots.SVG,
    common=(*WRITES, *AGENT),
)
def calibrate(
    session: Session,
    method: str | None,
    sample_size: int | None,
    percentile: float | None,
    z_factor: float | None,
    all_agents: bool,
    dry_run: bool,
    rollback: bool,
    plot: bool,
    svg: str | None,
) -> int:
    """Measure the similarities in a store and set the agent's thresholds from them.

    Prints threshold and gates before and after, what was sampled, and how many canaries and recent recalls answer
    otherwise. `threshold` moves the floor of the vector search; a gate is what a row's own signal must reach. That of
    the blend follows from the number of rows and from how well they answer questions about anything; it grows with the
    store, and is measured again in the background when that has doubled.
    Needs 10 memories with vectors.

    --plot draws two histograms: what the opening words of memories score with these memories, and what questions about
    anything find; the gate lies between them where a store can be told from noise. Off a terminal it prints numbers.

    Example:
      cpersona calibrate --dry-run
      cpersona calibrate --dry-run --plot --svg gate.svg
      cpersona calibrate --method percentile --percentile 0.99
      cpersona calibrate --rollback
    """
    agent, drawn = session.whom(all_agents), plot or svg is not None
    asked = {"method": method, "sample_size": sample_size, "percentile": percentile, "z_factor": z_factor}
    given = {name: value for name, value in asked.items() if value is not None}
    _refuse(given, rollback, drawn and (rollback or all_agents))
    switches = {"agent_id": agent, "dry_run": dry_run, "scores": drawn, "rollback": rollback}
    params = {name: value for name, value in switches.items() if value} | given
    answer = session.ask("calibrate_threshold", params, hint="" if rollback else None)
    if drawn:
        _plots.show(session.out, answer.response.get("scores") or {}, plot, svg)
    if session.show(answer):
        return answer.status
    _show_calibration(session.out, answer.response, all_agents, dry_run)
    return answer.status


def _refuse(given: dict, rollback: bool, undrawable: bool) -> None:
    """Raise Usage for options that contradict each other."""
    for name, of in (("percentile", "percentile"), ("z_factor", "zscore")):
        if name in given and given.get("method") != of:
            raise exits.Usage(f"calibrate: --{name.replace('_', '-')} goes with --method {of} alone")
    if rollback and given:
        raise exits.Usage(f"calibrate: --rollback measures nothing; leave --{next(iter(given)).replace('_', '-')} out")
    if undrawable:
        raise exits.Usage(
            "calibrate: --plot and --svg draw one agent's measurement; leave --rollback and --all-agents out"
        )


def _show_calibration(out: Output, response: dict, all_agents: bool, dry_run: bool) -> None:
    """Print before and after, one record each, and say the rest on stderr."""
    out.record(("threshold", _before_after(response.get("old_threshold"), response.get("new_threshold"))))
    gates, old = response.get("gates") or {}, response.get("old_gates") or {}
    for signal in dict.fromkeys((*gates, *old)):
        out.record((f"gate {signal}", _before_after(old.get(signal), gates.get(signal))))
    if "blend" in gates and response.get("rows"):
        out.record(("measured with", f"{response['rows']} memories; the gate grows with the store from here"))
    canaries, recent = response.get("canaries") or {}, response.get("recent_recalls") or {}
    if canaries.get("total"):
        changed = f"{canaries.get('changed')} of {canaries['total']} changed"
        out.record(("canaries", f"{changed}, {canaries.get('lost')} lost"))
    if recent.get("total"):
        out.record(("recent recalls", f"{recent.get('changed')} of {recent['total']} changed"))
    _warn(out, response, dry_run)
    out.note("; ".join(_said(response, bool(gates or all_agents), dry_run)))


def _warn(out: Output, response: dict, dry_run: bool) -> None:
    """Say which questions nothing is known of, and which canaries this calibration loses."""
    if unasked := response.get("not_embedded"):
        out.warn(
            f"cpersona: {unasked} of the questions could not be embedded, and nothing is said of them; "
            "`cpersona daemon status` shows how the embedder is"
        )
    undone = "" if dry_run else ", `cpersona calibrate --rollback` undoes this"
    for canary in (response.get("canaries") or {}).get("newly_lost", ()):
        out.warn(
            f"cpersona: canary {canary.get('id')} loses {canary.get('ref')}; "
            f"`cpersona canary list` shows its question{undone}"
        )


def _said(response: dict, gated: bool, dry_run: bool) -> list[str]:
    """Return what was done, in half sentences; ``gated``: gates were measured, or none belong to what was asked."""
    if "rolled_back" in response:
        if response["rolled_back"]:
            return ["returned to the calibration before"]
        return ["this is the calibration before; --rollback alone returns to it"]
    said = [
        (
            f"measured on {counted(response.get('sampled_embeddings'), 'memories')} "
            f"({response.get('scope')}, {response.get('method')}){_RELATED.get(response.get('proxy_source', ''), '')}"
        )
    ]
    if not gated:
        said.append("no gate could be measured; the built-in minimum stays")
    if dry_run:
        said.append("a dry run: nothing was kept")
    return said


def _before_after(old: float | None, new: float | None) -> str:
    return f"{number(old) or '-'} -> {number(new) or '-'}"


COMMANDS = (calibrate,)
