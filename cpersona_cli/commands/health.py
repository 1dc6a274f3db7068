"""`health`, `reindex`, `pause`, `resume`: keep a store well, and keep out of it.

Contract: contracts.md §2 (pause), §13 (check_health).
"""

from .. import exits
from ..declare.spec import PLAIN, WRITES, command, option
from ..terminal import render, times
from ..terminal.output import to_json

_MARKS = ("severity", "check", "fixable")


@command(
    "health",
    option("--fix", "Repair what can be repaired.", kind="flag", default=False),
    option("--deep", "Read the whole database too; slower.", kind="flag", default=False),
    option("--check", "Only this check; may be repeated.", metavar="NAME", many=True),
    option("--of", "Only this agent's rows.", metavar="AGENT", values="agents"),
    common=(*WRITES, *PLAIN),
)
def health(session, fix, deep, check, of):
    """Check the store and print its verdict: healthy, degraded or unhealthy.

    Looks at the database, its log and the room left for it, the word and vector indexes against the rows, vectors that are missing, foreign
    or damaged, permissions, duplicates, echoes of recalls, stamps, associations, embedder, calibration, canaries and
    queued writes. Each issue is one line: severity (critical, warn, info), check, what was found. Exit 7 when a critical
    problem is left. `doctor` looks at the installation.

    The checks are sqlite_integrity, schema, wal, disk, lexical_index, vector_index, missing_vectors, foreign_vectors,
    damaged_vectors, contents, permissions, duplicates, contamination, timestamps, associations, embedder, calibration,
    canaries and spool. contents compares every text with what was stored, with --deep.

    Example:
      cpersona health
      cpersona health --fix
      cpersona health --deep --check vector_index --check lexical_index
    """
    params = {}
    for name, value in (("fix", fix), ("deep", deep)):
        if value:
            params[name] = True
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


def _found(issue):
    """Return what an issue says besides its severity and check: its message, then whatever else it carries."""
    rest = {key: value for key, value in issue.items() if key not in _MARKS}
    words = [str(rest.pop(key)) for key in ("message", "detail") if key in rest]
    words += [
        f"{key}={value if isinstance(value, (str, int, float)) else to_json(value)}" for key, value in rest.items()
    ]
    return "; ".join(words)


def _listed(fixed):
    if isinstance(fixed, dict):
        return [f"{key}={value}" for key, value in fixed.items()]
    if isinstance(fixed, (list, tuple)):
        return [item if isinstance(item, str) else to_json(item) for item in fixed]
    return [] if not fixed else [str(fixed)]


@command("reindex", common=PLAIN)
def reindex(session):
    """Rebuild the word and vector indexes, and embed every row that has no vector of the present model.

    Other commands keep working meanwhile.

    Example:
      cpersona reindex
    """
    from ..wire.interrupts import watch

    def early(reached):
        far = (
            f"at least {reached['done']:,} of {reached['total']:,} rows stand in the word index anew"
            if "done" in reached
            else "how far it came is not known"
        )
        return f"{far}; the old indexes serve until it is run again"

    answer = watch(session, "reindex", {}, early)
    if not session.show(answer):
        session.out.records(_rebuilt(answer.response))
    return answer.status


def _rebuilt(response):
    """Return what a reindex did as (what, how many) pairs."""
    for name in ("memories", "episodes"):
        yield f"{name} in the word index", response.get(name)
    for name, count in (response.get("vectors") or {}).items():
        yield f"{name} with a vector", count
    yield "listed for embedding", response.get("listed_for_embedding")
    yield "waiting for embedding", response.get("waiting_for_embedding")


@command(
    "pause",
    option("--for", "How long: 30m, 2h; at most a day, 30m without it.", metavar="AGE", name="length"),
    option("--status", "Say whether a pause is on, change nothing.", kind="flag", default=False),
    common=(*WRITES, *PLAIN),
)
def pause(session, length, status):
    """Keep nothing for a while: writes answer as usual but leave the store as it is. Reads work.

    The pause lives in the daemon's memory: it ends by itself, with `resume`, or when the daemon leaves. It holds for
    whoever writes without a session; with --session for the writes alone that name the same session.

    Example:
      cpersona pause --for 1h
      cpersona pause --session trial && cpersona store "kept nowhere" --session trial
    """
    if status:
        if length is not None:
            raise exits.Usage("pause: --status changes nothing and --for begins a pause; give one of them")
        answer = session.ask("persistence_status", {})
        if not session.show(answer):
            left = answer.response.get("ttl_remaining_seconds")
            if answer.response.get("paused"):
                session.out.line("paused" if left is None else f"paused\t{left:g} s left")
            else:
                session.out.line("keeping")
        return answer.status
    asked = round(times.seconds("30m" if length is None else length))
    answer = session.ask("pause_persistence", {"ttl_seconds": asked})
    if not session.show(answer):
        session.out.line(f"paused\tuntil {answer.response.get('expires_at')}")
    granted = answer.response.get("ttl_seconds", asked)
    if granted != asked:
        session.out.warn(f"cpersona: a pause lasts from a second to a day; this one lasts {granted:g} s")
    return answer.status


@command("resume", common=(*WRITES, *PLAIN))
def resume(session):
    """End a pause; with --session that session's.

    Example:
      cpersona resume
    """
    answer = session.ask("resume_persistence", {})
    if not session.show(answer):
        session.out.line("keeping")
        if not answer.response.get("was_active"):
            session.out.note("no pause was on")
    return answer.status


COMMANDS = (health, reindex, pause, resume)
