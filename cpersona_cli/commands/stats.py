"""`stats`: what a store is made of.

Contract: stats.bounded, pictures.drawn.
"""

from __future__ import annotations

from ..declare.spec import AGENT, command, option
from ..terminal import pictures
from ..terminal.output import counted
from . import _plots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..session import Session
    from ..terminal.output import Output

_AXES = (("agents", "agent"), ("projects", "project"), ("channels", "channel"), ("sources", "source"))
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_SHOWN = 8  # names of an axis that are drawn


@command(
    "stats",
    option("--days", "How many days back memories are counted, 366 at most.", kind="int", default=30, least=1),
    _plots.SVG,
    common=AGENT,
)
def stats(session: Session, days: int, svg: str | None) -> int:
    """Show what a store is made of: memories a day, by agent, project, channel and source, lengths, recalls, sizes.

    Of every agent, or with --agent of one. Days are those of UTC. Sources and lengths are those of the newest 10,000
    memories; lengths are bytes, and what is longer than 1,200 is known by its passages. Recalls since the daemon's
    start, sizes and the rate of the backlog are told of the whole store alone; rows count their own recalls where
    CPERSONA_CONFIDENCE_ENABLED is set. Off a terminal a line is a name and its numbers; --json has everything.

    Example:
      cpersona stats
      cpersona stats --agent coder --days 90
      cpersona stats --json | jq '.days[-1]'
    """
    answer = session.ask("store_stats", {"agent_id": session.options.get("agent") or "", "days": days})
    told, out = answer.response, session.out
    if svg is not None:
        _plots.write(out, svg, _svg(told))
    if not session.show(answer):
        (_draw if out.draws else _print)(out, told)
    return answer.status


def _print(out: Output, told: dict) -> None:
    """Print a record for each number; of days and names one for each."""
    for name in ("memories", "episodes", "without_vector"):
        out.record((name, told.get(name)))
    for day in told.get("days", ()):
        out.record(("day", day["day"], day["memories"]))
    for axis, name in _AXES:
        for label, count in _named(told, axis, len(told[axis]["most"])):
            out.record((name, label, count))
    for label, count in _lengths(told):
        out.record(("length", label, count))
    for name in ("looked_at", "median_bytes", "longest_bytes", "recalled", "recalls", "last_recalled_at"):
        out.record((name, told.get(name)))
    out.record(("to_embed", told["backlog"].get("pending")))
    for name, asked in (told.get("asked") or {}).items():
        out.record((f"{name}_calls", asked["calls"], f"{asked['p50_ms']:g} ms"))
    for name, size in (told.get("sizes") or {}).items():
        out.record((f"{name}_bytes", size))


def _draw(out: Output, told: dict) -> None:
    """Draw the days as a line of heights and the rest as bars."""
    utf8, columns = pictures.in_this_locale(), out.columns()
    out.line(f"{counted(told['memories'], 'memories')}, {counted(told['episodes'], 'episodes')}")
    days = [day["memories"] for day in told["days"]]
    line, each = pictures.grouped(days, min(max(columns, pictures.LEAST_COLUMNS), pictures.MOST_COLUMNS) - 4)
    unit = "a day" if each == 1 else f"every {each} days"
    span = f"{counted(len(days), 'days')} to {told['days'][-1]['day']}"
    out.line(f"\n{unit}, {span}: {max(line):,} at most, {days[-1]:,} today")
    out.line("  " + pictures.sparkline(line, utf8))
    for title, rows in _panels(told):
        out.line(f"\n{title}")
        for drawn in pictures.bars(rows, columns, utf8):
            out.line(drawn)
    out.line("")
    for name, value in (*_newest(told), *_sizes(told)):
        out.line(f"{name:<16}{value}")


def _panels(told: dict) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Yield a title with its names and counts; an axis on which all rows have the same place says nothing."""
    newest = f" of the newest {told['looked_at']:,}" if told["looked_at"] < told["memories"] else ""
    for axis, name in _AXES:
        rows = _named(told, axis, _SHOWN)
        if len(rows) > 1 or (rows and rows[0][0] != "(none)"):
            yield f"by {name}{newest if axis == 'sources' else ''}", rows
    if told["looked_at"]:
        yield f"by length in bytes{newest}", _lengths(told)


def _named(told: dict, axis: str, most: int) -> list[tuple[str, int]]:
    """Return the names of an axis with their memories, and what the others have together."""
    rows = [(one["name"] or "(none)", one["memories"]) for one in told[axis]["most"]]
    rest = sum(count for _, count in rows[most:]) + told[axis]["memories_of_others"]
    others = len(rows[most:]) + told[axis]["others"]
    return rows[:most] + ([(f"({others} others)", rest)] if others else [])


def _lengths(told: dict) -> list[tuple[str, int]]:
    """Return ranges of bytes with their memories, from the first to the last that has any."""
    ends = [one["at_most"] for one in told["lengths"]]
    labels = [f"to {end:,}" if end is not None else f"over {ends[-2]:,}" for end in ends]
    rows = [(label, one["memories"]) for label, one in zip(labels, told["lengths"], strict=True)]
    used = [at for at, (_, count) in enumerate(rows) if count]
    return rows[used[0] : used[-1] + 1] if used else []


def _newest(told: dict) -> list[tuple[str, str]]:
    found = []
    if told["looked_at"]:
        found.append(("length", f"median {told['median_bytes']:,}, longest {told['longest_bytes']:,} bytes"))
    if told["recalls"]:
        last = f", last {told['last_recalled_at']}" if told["last_recalled_at"] else ""
        found.append(("counted", f"{told['recalls']:,} recalls of {counted(told['recalled'], 'memories')}{last}"))
    if asked := told.get("asked"):
        calls = ", ".join(
            f"{name} {counted(one['calls'], 'times')} (p50 {one['p50_ms']:g} ms)" for name, one in asked.items()
        )
        found.append(("recalls", f"{calls} since the start"))
    return found


def _sizes(told: dict) -> list[tuple[str, str]]:
    backlog, sizes = told["backlog"], told.get("sizes")
    pending = f"{backlog.get('pending', 0):,} rows"
    if "eta_seconds" in backlog:
        pending += f", about {backlog['eta_seconds']:.0f} s left"
    found = [("to embed", pending)]
    if sizes is None:
        return found
    free = f", {_bytes(sizes['free'])} of it free" if sizes["free"] else ""
    return [
        *found,
        ("database", _bytes(sizes["database"]) + free),
        ("log (WAL)", _bytes(sizes["wal"])),
        ("indexes", _bytes(sizes["indexes"])),
    ]


def _bytes(size: int) -> str:
    value, unit = float(size), 0
    while value >= 1_000 and unit < len(_UNITS) - 1:
        value, unit = value / 1_000, unit + 1
    return f"{value:.3g} {_UNITS[unit]}" if value < 1_000 else f"{value:,.0f} {_UNITS[unit]}"


def _svg(told: dict) -> str:
    from ..terminal import svg

    line, each = pictures.grouped([day["memories"] for day in told["days"]], 31)
    last = [told["days"][max(len(told["days"]) - 1 - back * each, 0)]["day"] for back in range(len(line))]
    days = list(zip(reversed(last), line, strict=True))
    whose = f" of {told['agent_id']}" if told["agent_id"] else ""
    title = f"{counted(told['memories'], 'memories')}{whose}, {told['days'][-1]['day']}"
    named = "by day" if each == 1 else f"by {each} days, the last of each"
    return svg.panels(title, [(named, days), *_panels(told)])


COMMANDS = (stats,)
