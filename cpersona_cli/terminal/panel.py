"""What `daemon status` shows: sections on a terminal, one record a line everywhere else.

Contract: daemon.tells, output.streams.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import render
from .output import Output, counted, to_json
from .progress import words

Facts = list[tuple[str, object]]

_KINDS = {"mem": "memories", "ep": "episodes", "mem+": "passages", "ep+": "passages of episodes"}


def show(out: Output, response: dict, brief: bool = False) -> None:
    """Print the state of a daemon. Off a terminal every line is a name and a value; errors keep the name `error`.

    ``brief`` leaves out on a terminal what does not change, and calls and errors: the rest fits one screen.
    """
    if out.draws:
        _draw(out, {**response, "methods": {}, "last_errors": ()} if brief else response, ("places",) if brief else ())
    else:
        _print(out, response)


def _print(out: Output, response: dict) -> None:
    for _, facts in _sections(response):
        for fact in facts:
            out.record(fact)
    for name, *numbers in _methods(response):
        out.record((name, "{} calls, {} failed, p50 {} ms, p99 {} ms".format(*numbers)))
    for error in response.get("last_errors", ()):
        out.record(("error", error if isinstance(error, str) else to_json(error)))


def _draw(out: Output, response: dict, without: tuple[str, ...] = ()) -> None:
    for title, facts in _sections(response):
        if title in without:
            continue
        render.heading(out, title)
        rows = [("  " + name, "-" if value in (None, "") else value) for name, value in facts]
        render.table(out, ("", ""), rows, whole=True)
    methods = [("  " + name, *map(str, numbers)) for name, *numbers in _methods(response)]
    errors = [_error(error) for error in response.get("last_errors", ())]
    for title, names, lines in (
        ("calls", ("  method", "calls", "failed", "p50 ms", "p99 ms"), methods),
        ("last errors", ("  at", "method", "code"), errors),
    ):
        if lines:
            render.heading(out, title)
            render.table(out, names, lines)


def _error(error: object) -> tuple[object, ...]:
    if not isinstance(error, dict):
        return "", "", error
    return "  " + str(error.get("at", ""))[:19], error.get("method", ""), error.get("code", "")


def _methods(response: dict) -> Iterator[tuple[str, int | None, int | None, str, str]]:
    for name, told in (response.get("methods") or {}).items():
        yield name, told.get("count"), told.get("failed"), f"{told.get('p50_ms', 0):g}", f"{told.get('p99_ms', 0):g}"


def _sections(response: dict) -> list[tuple[str, Facts]]:
    """Return (title, [(name, value)]) pairs, what a person looks for first at the top."""
    return [
        ("daemon", _process(response)),
        ("places", [(name, response.get(name)) for name in ("db", "socket", "log")]),
        ("store", _store(response)),
    ]


def _process(response: dict) -> Facts:
    state = "running, read-only" if response.get("read_only") else "running"
    facts: Facts = [
        ("state", "leaving" if response.get("stopping") else state),
        ("pid", response.get("pid")),
        ("version", f"{response.get('version')}, protocol {response.get('protocol')}"),
        ("up", _uptime(response)),
        ("connections", response.get("connections")),
    ]
    if response.get("working"):
        facts.append(("at work", ", ".join(map(str, response["working"]))))
    return facts


def _store(response: dict) -> Facts:
    told = {name: response.get(name) or {} for name in ("rows", "vectors", "embedding", "backlog", "spool")}
    canaries = response.get("canaries") or {}
    embedding = (str(told["embedding"].get(name) or "") for name in ("mode", "state", "identity", "problem"))
    facts: Facts = [("rows", ", ".join(counted(count, name) for name, count in told["rows"].items()))]
    facts += [(f"index of {_KINDS.get(kind, kind)}", _index(status)) for kind, status in told["vectors"].items()]
    facts += [
        ("embedder", ", ".join(filter(None, embedding))),
        ("to embed", _to_embed(told["backlog"])),
        ("calibration", _calibration(response.get("calibration") or {})),
        ("canaries", f"{canaries.get('total')}, {canaries.get('lost')} lost" if canaries.get("total") else "none"),
        ("history", _history(response.get("history") or {})),
    ]
    facts += _services(response)
    if spool := told["spool"]:
        problem = f"; {spool['problem']}" if spool.get("problem") else ""
        facts.append(("queued", f"{spool.get('waiting')} waiting, {spool.get('failed')} refused{problem}"))
    return facts


def _history(kept: dict) -> str:
    """Return how much is kept of what rows were."""
    if not kept.get("entries"):
        return "nothing is kept yet" if kept.get("days") else "nothing is kept"
    return f"{kept['entries']:,} former rows, {kept['bytes']:,} bytes, since {kept['since']}"


def _services(response: dict) -> Facts:
    """Return what is said of services, as far as some are asked."""
    facts: Facts = []
    if service := response.get("vector_service"):
        facts.append(("vector service", "; ".join(filter(None, (service.get("place"), service.get("problem"))))))
    if (outbox := response.get("outbox")) is not None:
        facts.append(("outbox", _outbox(outbox)))
    if reranker := response.get("rerank"):
        facts.append(("reranker", "; ".join(filter(None, (reranker.get("place"), reranker.get("problem"))))))
    return facts


def _outbox(outbox: dict) -> str:
    """Return how much a service has yet to hear of, and why that is not there."""
    said = ["everything is being sent" if outbox.get("filling") else f"{outbox.get('pending')} waiting"]
    if outbox.get("oldest_seconds"):
        said.append(f"the oldest for {outbox['oldest_seconds']:.0f} s")
    if outbox.get("generation") is not None:
        said.append(f"level at generation {outbox['generation']}")
    if outbox.get("refused"):
        said.append(f"{outbox['refused']} refused")
    return "; ".join(filter(None, (", ".join(said), outbox.get("problem"))))


def _to_embed(backlog: dict) -> str:
    said = []
    for rows, rate, eta in (
        (counted(backlog.get("pending"), "rows"), "rows_per_second", "eta_seconds"),
        (
            "the passages of " + counted(backlog.get("passages_pending"), "rows"),
            "passages_per_second",
            "passages_eta_seconds",
        ),
    ):
        tempo = words(backlog.get(rate), backlog.get(eta))
        said.append(f"{rows} ({tempo})" if tempo else rows)
    waits = said if backlog.get("passages_pending") else said[:1]
    return ", and ".join(waits) + (f"; {backlog['problem']}" if backlog.get("problem") else "")


def _uptime(response: dict) -> str:
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


def _index(status: dict) -> str:
    where = f"by {status['engine']}" if status.get("engine") else f"{status.get('rows', 0)} vectors"
    said = f"{status.get('state')}, {where}"
    return f"{said}; {status['reason']}" if status.get("reason") else said


def _calibration(calibration: dict) -> str:
    if calibration.get("problem"):
        return calibration["problem"]
    if not calibration.get("measured"):
        return "none; the built-in numbers hold"
    return f"{counted(calibration.get('thresholds'), 'thresholds')}, {counted(calibration.get('gates'), 'gates')}" + (
        f", model {calibration['model']}" if calibration.get("model") else ""
    )
