"""Show what a recall did: its limits, what each stage cut, and a line of numbers for each candidate.

Contract: issue "Every contract of the seeds", Explain.
"""

from .output import one_line, to_json

_FIRST = ("mode", "limit", "depth", "window", "reach", "vector_floor", "pool")
# What `why_not` says about a stage, in words.
_STAGES = {
    "returned": "it was returned",
    "scope": "it lies outside the scope of the question",
    "exclusion": "it was excluded by its text",
    "retrieval": "no channel handed it over",
    "weighing": "it came into question and had nothing to weigh",
    "gate": "it did not pass the gate",
    "autocut": "it was cut at the largest gap",
    "limit": "it passed, but stands beyond the limit",
}


def show(out, trace):
    """Print a recall's trace as readable text on stdout; keys that are not known here are shown as they are."""
    trace = dict(trace)
    if isinstance(trace.get("recall"), dict):
        # A reconstruct shows the recall behind it first.
        show(out, trace.pop("recall"))
    verdict = trace.pop("why_not", None)
    known = [f"{name} {_short(trace.pop(name))}" for name in _FIRST if name in trace]
    if known:
        out.line("  ".join(known))
    thresholds, unfamiliar = trace.pop("thresholds", None), trace.pop("unfamiliarity", None)
    if isinstance(thresholds, dict):
        out.line("gate: " + "  ".join(f"{name} {_short(t.get('value'))} ({t.get('from')})" if isinstance(t, dict) else f"{name} {_short(t)}"
                                      for name, t in thresholds.items()))
    if unfamiliar is not None:
        out.line(f"the gate of the blend is raised {_short(unfamiliar)}-fold: no row holds a name or some words of the question")
    channels = trace.pop("channels", None)
    if isinstance(channels, list):
        out.line("lists: " + "  ".join(_channel(channel) for channel in channels))
    stages = trace.pop("stages", None)
    if isinstance(stages, dict):
        out.line("stages: " + "  ".join(f"{name} {_short(count)}" for name, count in stages.items()))
    rows = trace.pop("rows", None)
    for name, value in trace.items():
        _any(out, name, value, 0)
    if isinstance(rows, list) and rows:
        _columns(out, _row_table(rows))
    if verdict is not None:
        _verdict(out, verdict)


def _channel(channel):
    rest = {key: value for key, value in channel.items() if key not in ("channel", "rows")}
    return f"{channel.get('channel')} {channel.get('rows')} rows" + (f" {to_json(rest)}" if rest else "")


def _row_table(rows):
    """Return a heading and a line for each candidate: its place on each list, then what it adds up to and its fate."""
    channels = list(dict.fromkeys(place.get("channel") for row in rows for place in row.get("lists", ())))
    others = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in ("ref", "lists", "fate", "passes")]
    table = [["ref", *(f"{channel}: rank score part" for channel in channels), *others, "fate"]]
    for row in rows:
        places = {place.get("channel"): place for place in row.get("lists", ())}
        cells = [" ".join(_short(places[c].get(key)) for key in ("rank", "score", "contribution")) if c in places else "-" for c in channels]
        table.append([str(row.get("ref")), *cells, *(_short(row.get(key)) for key in others), str(row.get("fate", row.get("passes")))])
    return table


def _verdict(out, verdict):
    verdict = dict(verdict)
    ref, stage, channels = verdict.pop("ref", "?"), verdict.pop("stage", "?"), verdict.pop("channels", ())
    rest = "  ".join(f"{name} {_short(value)}" for name, value in verdict.items())
    out.line(f"why not {ref}: {_STAGES.get(stage, stage)}" + (f"; {rest}" if rest else ""))
    for channel in channels:
        channel = dict(channel)
        out.line(f"  {channel.pop('channel', '?')}: " + "  ".join(f"{name} {_short(value)}" for name, value in channel.items()))


def _columns(out, table):
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    for row in table:
        out.line("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def _any(out, name, value, depth):
    """Print any value under its name: a map as indented lines, a list of maps as a table, the rest on one line."""
    indent = "  " * depth
    if isinstance(value, dict):
        out.line(f"{indent}{name}")
        for key, item in value.items():
            _any(out, str(key), item, depth + 1)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        out.line(f"{indent}{name}")
        keys = list(dict.fromkeys(key for item in value for key in item))
        table = [keys, *([_short(item.get(key)) for key in keys] for item in value)]
        _columns(out, [[f"{indent}  {first}", *rest] for first, *rest in table])
    else:
        out.line(f"{indent}{name} {_short(value)}")


def _short(value):
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    return one_line(value if isinstance(value, str) else to_json(value))
