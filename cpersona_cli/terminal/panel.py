"""What `daemon status` shows: sections on a terminal, one record a line everywhere else.

Contract: issue "A tool to live in" (daemon status as a readable panel and as JSON).
"""

from . import render
from .output import counted, to_json

_KINDS = {"mem": "memories", "ep": "episodes"}


def show(out, response):
    """Print the state of a daemon. Off a terminal every line is a name and a value; errors keep the name `error`."""
    sections = _sections(response)
    if not out.draws:
        for _, facts in sections:
            for fact in facts:
                out.record(fact)
        for name, *numbers in _methods(response):
            out.record((name, "{} calls, {} failed, p50 {} ms, p99 {} ms".format(*numbers)))
        for error in response.get("last_errors", ()):
            out.record(("error", error if isinstance(error, str) else to_json(error)))
        return
    for title, facts in sections:
        render.heading(out, title)
        render.table(
            out, ("", ""), [("  " + name, "-" if value in (None, "") else value) for name, value in facts], whole=True
        )
    methods = list(_methods(response))
    if methods:
        render.heading(out, "calls")
        render.table(
            out,
            ("  method", "calls", "failed", "p50 ms", "p99 ms"),
            [("  " + name, *map(str, numbers)) for name, *numbers in methods],
        )
    errors = list(response.get("last_errors", ()))
    if errors:
        render.heading(out, "last errors")
        render.table(
            out,
            ("  at", "method", "code"),
            [
                ("  " + str(e.get("at", ""))[:19], e.get("method", ""), e.get("code", ""))
                if isinstance(e, dict)
                else ("", "", e)
                for e in errors
            ],
        )


def _methods(response):
    for name, told in (response.get("methods") or {}).items():
        yield name, told.get("count"), told.get("failed"), f"{told.get('p50_ms', 0):g}", f"{told.get('p99_ms', 0):g}"


def _sections(response):
    """Return (title, [(name, value)]) pairs, what a person looks for first at the top."""
    rows, embedding, backlog, spool, calibration, canaries = (
        response.get(name) or {} for name in ("rows", "embedding", "backlog", "spool", "calibration", "canaries")
    )
    daemon = [
        (
            "state",
            "leaving" if response.get("stopping") else "running, read-only" if response.get("read_only") else "running",
        ),
        ("pid", response.get("pid")),
        ("version", f"{response.get('version')}, protocol {response.get('protocol')}"),
        ("up", _uptime(response)),
        ("connections", response.get("connections")),
    ]
    if response.get("working"):
        daemon.append(("at work", ", ".join(map(str, response["working"]))))
    places = [(name, response.get(name)) for name in ("db", "socket", "log")]
    store = [("rows", ", ".join(counted(count, name) for name, count in rows.items()))]
    store += [
        (f"index of {_KINDS.get(kind, kind)}", _index(status))
        for kind, status in (response.get("vectors") or {}).items()
    ]
    store.append(
        (
            "embedder",
            ", ".join(str(embedding[name]) for name in ("mode", "state", "identity", "problem") if embedding.get(name)),
        )
    )
    store.append(("to embed", backlog.get("pending")))
    store.append(("calibration", _calibration(calibration)))
    store.append(
        ("canaries", f"{canaries.get('total')}, {canaries.get('lost')} lost" if canaries.get("total") else "none")
    )
    if spool:
        store.append(
            (
                "queued",
                f"{spool.get('waiting')} waiting, {spool.get('failed')} refused"
                + (f"; {spool['problem']}" if spool.get("problem") else ""),
            )
        )
    return [("daemon", daemon), ("places", places), ("store", store)]


def _uptime(response):
    seconds, idle = int(response.get("uptime_seconds", 0)), response.get("idle_timeout")
    hours, rest = divmod(seconds, 3600)
    up = (
        f"{hours // 24} d {hours % 24} h"
        if hours >= 24
        else f"{hours} h {rest // 60} min"
        if hours
        else f"{rest // 60} min {rest % 60} s"
        if rest >= 60
        else f"{rest} s"
    )
    return f"{up}, leaves after {idle:g} s without work" if idle else f"{up}, stays"


def _index(status):
    said = f"{status.get('state')}, {status.get('rows', 0)} vectors"
    return f"{said}; {status['reason']}" if status.get("reason") else said


def _calibration(calibration):
    if calibration.get("problem"):
        return calibration["problem"]
    if not calibration.get("measured"):
        return "none; the built-in numbers hold"
    return f"{calibration.get('thresholds')} thresholds, {calibration.get('gates')} gates" + (
        f", model {calibration['model']}" if calibration.get("model") else ""
    )
