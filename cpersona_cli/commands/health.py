"""`health`: check the store, and repair what can be repaired.

Contract: health.checks, exit.status.
"""

from __future__ import annotations

from ..declare.spec import PLAIN, WRITES, command, option
from ..terminal import render
from ..terminal.output import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session
    from ..terminal.output import Output

_MARKS = ("severity", "check", "fixable")


@command(
    "health",
    option("--fix", "Repair what can be repaired.", kind="flag", default=False),
    option("--deep", "Read the whole database too; slower.", kind="flag", default=False),
    option("--check", "Only this check; may be repeated.", metavar="NAME", many=True),
    option("--of", "Only this agent's rows.", metavar="AGENT", values="agents"),
    common=(*WRITES, *PLAIN),
)
def health(session: Session, fix: bool, deep: bool, check: list[str], of: str | None) -> int:
    """Check the store and print its verdict: healthy, degraded or unhealthy.

    Looks at the database, its log and the room left for it, the word and vector indexes against the rows, vectors that
    are missing, foreign or damaged, permissions, duplicates, echoes of recalls, stamps, associations, embedder,
    calibration, canaries, queued writes and what a vector service has yet to hear of. Each issue is one line: severity
    (critical, warn, info), check, what was found. Exit 7 when a critical problem is left. `doctor` looks at the
    installation.

    The checks are sqlite_integrity, schema, wal, disk, lexical_index, vector_index, missing_vectors, foreign_vectors,
    damaged_vectors, contents, permissions, duplicates, contamination, timestamps, associations, embedder, calibration,
    canaries, spool and outbox. contents compares every text with what was stored, with --deep.

    Example:
      cpersona health
      cpersona health --fix
      cpersona health --deep --check vector_index --check lexical_index
    """
    params: dict[str, object] = {name: True for name, asked in (("fix", fix), ("deep", deep)) if asked}
    if check:
        params["checks"] = list(check)
    if of is not None:
        params["agent_id"] = of
    answer = session.ask("check_health", params)
    if session.show(answer):
        return answer.status
    response, out = answer.response, session.out
    out.record(("status", response.get("status")))
    out.record(("memories", response.get("total_memories")))
    _say_of_store(out, response)
    issues = response.get("issues", ())
    render.table(
        out,
        ("", "check", "found"),
        [(issue.get("severity", ""), issue.get("check", ""), _found(issue)) for issue in issues],
        whole=True,
    )
    for what in _listed(response.get("fixed")):
        out.record(("fixed", what))
    fixable = sum(bool(issue.get("fixable")) for issue in issues)
    said = [f"{len(response.get('checks_run', ()))} checks"]
    if fixable and not fix:
        said.append(f"`cpersona health --fix` repairs {fixable} of {len(issues)} findings")
    out.note("; ".join(said))
    return answer.status


def _say_of_store(out: Output, response: dict) -> None:
    """Say what the gate is, and how much is kept of what rows were, as far as that was told."""
    if kept := response.get("history"):
        out.record(("history", f"{kept['entries']:,} former rows, {kept['bytes']:,} bytes, since {kept['since']}"))
    gate = response.get("gate")
    if isinstance(gate, dict):
        measured = f", measured with {gate['measured_rows']}" if "measured_rows" in gate else ""
        out.record(
            ("gate", f"{gate.get('gate')} for {gate.get('rows')} memories and passages ({gate.get('from')}{measured})")
        )


def _found(issue: dict) -> str:
    """Return what an issue says besides its severity and check: its message, then whatever else it carries."""
    rest = {key: value for key, value in issue.items() if key not in _MARKS}
    words = [str(rest.pop(key)) for key in ("message", "detail") if key in rest]
    words += [
        f"{key}={value if isinstance(value, (str, int, float)) else to_json(value)}" for key, value in rest.items()
    ]
    return "; ".join(words)


def _listed(fixed: object) -> list[str]:
    if isinstance(fixed, dict):
        return [f"{key}={value}" for key, value in fixed.items()]
    if isinstance(fixed, (list, tuple)):
        return [item if isinstance(item, str) else to_json(item) for item in fixed]
    return [] if not fixed else [str(fixed)]


COMMANDS = (health,)
