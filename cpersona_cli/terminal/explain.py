"""Show what a recall did: its limits, what each stage cut, a line of numbers for each candidate, and why a row is not there.

Off a terminal the whole account is printed. On one it fits the width: the rows that were returned and the next few, what
they were compared with, and how many more there are. Ranks count from 1 here; on the wire from 0, as the formulas do.
"""

from .output import counted, one_line, to_json

NEXT = 5  # rows below the returned ones that a terminal shows
_FIRST = ("mode", "limit", "depth", "window", "reach", "vector_floor", "pool")
_SHORT = {
    "vector_near": "near",
    "vector_far": "far",
    "vector_part": "part",
    "memory_fts": "words",
    "episode_fts": "episode words",
    "memory_keyword": "substring",
}
_FATES = {"gate": "below gate", "gate_fallback": "fallback", "limit": "over limit"}
_CUT = (
    ("excluded", "excluded by their text"),
    ("below_gate", "below the gate"),
    ("autocut", "behind the largest gap"),
    ("over_limit", "beyond the limit"),
)
_DRAWN = (
    "rank",
    "ref",
    "fate",
    "score",
    "asked",
    "cosine",
    "coverage",
    "similarity",
    "words",
    "neighbours",
    "found as",
)
_CHANNELS = {
    "vector_near": "by meaning",
    "vector_far": "by meaning, beyond the window",
    "memory_fts": "by words",
    "episode_fts": "by words",
    "memory_keyword": "by the whole text",
}
_REASONS = {
    "no_query_vector": "the question has no vector",
    "no_usable_vector": "the row has no vector of the present model",
    "disabled": "the word index is switched off",
    "no_word_in_common": "it has no word of the question",
}


def show(out, trace, whole=False):
    """Print a recall's trace on stdout; ``whole`` prints all of it on a terminal too."""
    trace = dict(trace)
    if isinstance(trace.get("recall"), dict):
        # A reconstruct shows the recall behind it first.
        show(out, trace.pop("recall"), whole)
    fits = out.draws and not whole
    say = out.wrapped if out.draws else out.line
    verdict = trace.pop("why_not", None)
    known = [f"{name} {_short(trace.pop(name))}" for name in _FIRST if name in trace]
    if known:
        say("  ".join(known))
    thresholds, unfamiliar = trace.pop("thresholds", None), trace.pop("unfamiliarity", None)
    if isinstance(thresholds, dict):
        say(
            "gate: "
            + "  ".join(
                f"{name} {_short(t.get('value'))} ({t.get('from')})" if isinstance(t, dict) else f"{name} {_short(t)}"
                for name, t in thresholds.items()
            )
        )
    if unfamiliar is not None:
        say(
            f"the gate of the blend is raised {_short(unfamiliar)}-fold: no row holds a name or some words of the question"
        )
    channels = trace.pop("channels", None)
    if isinstance(channels, list):
        say("lists: " + "  ".join(_channel(channel) for channel in channels))
    stages = trace.pop("stages", None)
    if isinstance(stages, dict):
        say("stages: " + "  ".join(f"{name} {_short(count)}" for name, count in stages.items()))
    rows = trace.pop("rows", None)
    for name, value in trace.items():
        _any(out, name, value, 0)
    if isinstance(rows, list) and rows:
        if fits:
            _draw(out, rows, stages or {})
        else:
            _columns(out, _row_table(rows))
    if verdict is not None:
        why_not(out, verdict)


def why_not(out, verdict):
    """Print in a few lines at which stage a row was dropped, by how much, and what would bring it back."""
    say = out.wrapped if out.draws else out.line
    say(f"why not {verdict.get('ref', '?')}: {_verdict(verdict)}")
    for channel in verdict.get("channels", ()):
        say(f"  {_CHANNELS.get(channel.get('channel'), channel.get('channel', '?'))}: {_missed(channel)}")


def _verdict(verdict):
    stage, text, rank = verdict.get("stage", "?"), verdict.get("text"), verdict.get("rank")
    if stage == "gate" and "threshold" in verdict:
        said = f"its {verdict.get('signal')} of {_short(verdict.get('score'))} is {_short(verdict.get('missed_by'))} below the gate of {_short(verdict['threshold'])}"
        return said + "; --deep lets weaker matches pass"
    if stage == "limit" and rank is not None and text is None:
        return f"it passed and stands at rank {rank + 1}, beyond the limit of {verdict.get('limit')}; -n {rank + 1} shows it"
    if stage == "returned":
        return "it was returned" + (f", at rank {rank + 1}" if rank is not None else "")
    words = {
        "retrieval": "it came into question neither by meaning nor by words",
        "exclusion": "it was left out",
        "weighing": "it did not count as a match",
        "autocut": "it was cut",
        "scope": "it was not looked at",
    }
    return words.get(stage, "it passed, but not into the answer" if stage == "limit" else stage) + (
        f": {text}" if text else ""
    )


def _missed(channel):
    reason = channel.get("reason")
    if reason == "floor":
        return f"its cosine of {_short(channel.get('cosine'))} is below the floor of {_short(channel.get('floor'))}"
    if reason == "depth":
        return f"it stands at rank {channel.get('rank', 0) + 1} of that list, of which {channel.get('depth')} rows are taken"
    if reason == "window":
        return (
            f"it is older than the {max(channel.get('window') or 0, channel.get('reach') or 0)} rows that are compared"
        )
    return _REASONS.get(reason, reason or "not found")


def _channel(channel):
    said, words = f"{channel.get('channel')} {counted(channel.get('rows'), 'rows')}", channel.get("words")
    rest = {key: value for key, value in channel.items() if key not in ("channel", "rows", "words")}
    if isinstance(words, dict):
        words = dict(words)
        terms, left_out = words.pop("terms", None), words.pop("stop_words", None)
        said += f" for {', '.join(terms)}" if terms else ""
        said += f" without {', '.join(left_out)}" if left_out else ""
        rest |= words
    elif words is not None:
        rest["words"] = words
    return said + (f" {to_json(rest)}" if rest else "")


def _draw(out, rows, stages):
    """Draw the rows that were returned and the next few, and say how many more there are."""
    from . import render

    returned = [row for row in rows if row.get("fate") == "returned"]
    others = [row for row in rows if row.get("fate") != "returned"]
    cells = []
    for rank, row in [*enumerate(returned, 1), *((None, row) for row in others[:NEXT])]:
        found = ", ".join(
            f"{_SHORT.get(place.get('channel'), place.get('channel'))} {place.get('rank', 0) + 1}"
            for place in row.get("lists", ())
        )
        fate = row.get("fate")
        numbers = [
            render.number(row.get(name))
            for name in ("score", "threshold", "cosine", "coverage", "similarity", "words", "neighbours")
        ]
        cells.append(
            ["" if rank is None else str(rank), str(row.get("ref")), _FATES.get(fate, str(fate)), *numbers, found]
        )
    render.table(out, _DRAWN, cells, whole=True)
    if len(others) > NEXT:
        counts = ", ".join(f"{stages[name]} {said}" for name, said in _CUT if stages.get(name))
        left = len(others) - NEXT
        out.wrapped(
            f"and {left} more {'row' if left == 1 else 'rows'} ({counts} in all); --explain=all shows every one, with its part on each list"
        )


def _row_table(rows):
    """Return a heading and a line for each candidate: its place on each list, then what it adds up to and its fate."""
    channels = list(dict.fromkeys(place.get("channel") for row in rows for place in row.get("lists", ())))
    others = [
        key
        for key in dict.fromkeys(key for row in rows for key in row)
        if key not in ("ref", "lists", "fate", "passes")
    ]
    table = [["ref", *(f"{channel}: rank score part" for channel in channels), *others, "fate"]]
    for row in rows:
        places = {place.get("channel"): place for place in row.get("lists", ())}
        cells = [_place(places[c]) if c in places else "-" for c in channels]
        table.append(
            [
                str(row.get("ref")),
                *cells,
                *(_short(row.get(key)) for key in others),
                str(row.get("fate", row.get("passes"))),
            ]
        )
    return table


def _place(place):
    rank = place.get("rank")
    return " ".join(
        (
            _short(rank + 1 if isinstance(rank, int) else rank),
            _short(place.get("score")),
            _short(place.get("contribution")),
        )
    )


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
        return f"{value:.4g}"
    return one_line(value if isinstance(value, str) else to_json(value))
