"""Show what a recall did: its limits, what each stage cut, a line of numbers for each candidate, and why a row is not
there.

Off a terminal the whole account is printed. On one it fits the width: the rows that were returned and the next few,
what they were compared with, and how many more there are. Ranks count from 1 here; on the wire from 0, as the formulas
do.
"""

from __future__ import annotations

from itertools import chain

from .output import Output, counted, one_line, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NEXT = 5  # rows below the returned ones that a terminal shows
_FIRST = ("mode", "limit", "depth", "window", "reach", "vector_floor", "pool", "size")
LISTS = {
    "vector_near": "near",
    "vector_far": "far",
    "vector_part": "part",
    "vector_passage": "passage",
    "memory_fts": "words",
    "episode_fts": "episode words",
    "memory_keyword": "substring",
}
FATES = {"gate": "below gate", "gate_fallback": "fallback", "tail": "far below best", "limit": "over limit"}
_CUT = (
    ("excluded", "excluded by their text"),
    ("below_gate", "below the gate"),
    ("autocut", "behind the largest gap"),
    ("folded", "alike to another"),
    ("tail", "too far below the best"),
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
_NUMBERS = ("score", "threshold", "cosine", "coverage", "similarity", "words", "neighbours")
_RERANKED = "reranked"  # shown where a reranker spoke
_CHANNELS = {
    "vector_near": "by meaning",
    "vector_far": "by meaning, beyond the window",
    "vector_passage": "by a passage",
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


def show(out: Output, trace: dict, whole: bool = False) -> None:
    """Print a recall's trace on stdout; ``whole`` prints all of it on a terminal too."""
    trace = dict(trace)
    if isinstance(trace.get("recall"), dict):
        # A reconstruct shows the recall behind it first.
        show(out, trace.pop("recall"), whole)
    say = out.wrapped if out.draws else out.line
    verdict, rows = trace.pop("why_not", None), trace.pop("rows", None)
    known = [f"{name} {_short(trace.pop(name))}" for name in _FIRST if name in trace]
    stages = trace.get("stages") or {}
    told = ["  ".join(known) or None, *(sentence(trace.pop(name, None)) for name, sentence in _SENTENCES.items())]
    for said in filter(None, told):
        say(said)
    for name, value in trace.items():
        _any(out, name, value, 0)
    if isinstance(rows, list) and rows:
        _candidates(out, rows, stages, whole)
    if verdict is not None:
        why_not(out, verdict)


def _candidates(out: Output, rows: list[dict], stages: dict, whole: bool) -> None:
    if out.draws and not whole:
        _draw(out, rows, stages)
    else:
        _columns(out, _row_table(rows))


def _gate(thresholds: object) -> str | None:
    if not isinstance(thresholds, dict):
        return None
    told = (
        f"{name} {_short(t.get('value'))} ({t.get('from')})" if isinstance(t, dict) else f"{name} {_short(t)}"
        for name, t in thresholds.items()
    )
    return "gate: " + "  ".join(told)


def _raised(by: object) -> str | None:
    if by is None:
        return None
    return f"the gate of the blend is raised by {_short(by)}: no row holds a name or some words of the question"


def _absent(identifiers: object) -> str | None:
    return f"no row holds {', '.join(map(_short, identifiers))}" if isinstance(identifiers, list) else None


def _reranked(rows: object) -> str | None:
    return None if rows is None else f"a reranker spoke of the best {_short(rows)} rows, which moved their scores"


def _texts_of(said: str) -> Callable[[object], str | None]:
    """Return the sentence of a list of texts that the question holds."""
    return lambda texts: f"{said}: {', '.join(map(to_json, texts))}" if isinstance(texts, list) else None


def _lists(channels: object) -> str | None:
    return "lists: " + "  ".join(map(_channel, channels)) if isinstance(channels, list) else None


def _stages(stages: object) -> str | None:
    if not isinstance(stages, dict):
        return None
    return "stages: " + "  ".join(f"{name} {_short(count)}" for name, count in stages.items())


# What the account says in a sentence of its own, in this order -> the sentence, None where there is nothing to say.
def _time(asked: object) -> str | None:
    if not isinstance(asked, dict):
        return None
    when = f" ({asked['since']} to {asked.get('until')})" if "since" in asked else ""
    return f"time: rows that tell of {asked.get('asked')!r}{when} are lifted over others, a few places at most"


def _vectors(told: object) -> str | None:
    if not isinstance(told, dict):
        return None
    if told.get("by") != "service":
        who = {"database": "the daemon itself", "nobody": "nobody"}.get(str(told.get("by")), told.get("by"))
        return f"vectors: compared by {who}, because the vector service did not: {told.get('why')}"
    own = " under a window of its own, whatever window and reach say" if told.get("window") is False else ""
    return f"vectors: ranked by the vector service{own}"


_SENTENCES = {
    "vectors": _vectors,
    "thresholds": _gate,
    "unfamiliarity": _raised,
    "quoted": _texts_of("quoted"),
    "without": _texts_of("left out"),
    "not_held": _texts_of("quoted, and held by no row"),
    "absent": _absent,
    "reranked": _reranked,
    "time": _time,
    "channels": _lists,
    "stages": _stages,
}


def why_not(out: Output, verdict: dict) -> None:
    """Print in a few lines at which stage a row was dropped, by how much, and what would bring it back."""
    say = out.wrapped if out.draws else out.line
    for line in why_not_lines(verdict):
        say(line)


def why_not_lines(verdict: dict) -> list[str]:
    """Return what ``why_not`` prints: the verdict, and a line for each list that the row is not on."""
    return [f"why not {verdict.get('ref', '?')}: {_verdict(verdict)}"] + [
        f"  {_CHANNELS.get(channel.get('channel'), channel.get('channel', '?'))}: {_missed(channel)}"
        for channel in verdict.get("channels", ())
    ]


def _verdict(verdict: dict) -> str:
    stage, text, rank = verdict.get("stage", "?"), verdict.get("text"), verdict.get("rank")
    if stage == "gate" and "threshold" in verdict:
        return (
            f"its {verdict.get('signal')} of {_short(verdict.get('score'))} is {_short(verdict.get('missed_by'))} "
            "below "
            f"the gate of {_short(verdict['threshold'])}; --deep lets weaker matches pass"
        )
    if stage == "limit" and rank is not None and text is None:
        limit = verdict.get("limit")
        return f"it passed and stands at rank {rank + 1}, beyond the limit of {limit}; -n {rank + 1} shows it"
    if stage == "returned":
        return "it was returned" + (f", at rank {rank + 1}" if rank is not None else "")
    words = {
        "retrieval": "it came into question neither by meaning nor by words",
        "exclusion": "it was left out",
        "weighing": "it did not count as a match",
        "autocut": "it was cut",
        "folded": "it was folded",
        "tail": "it passed and was left out",
        "scope": "it was not looked at",
    }
    return words.get(stage, "it passed, but not into the answer" if stage == "limit" else stage) + (
        f": {text}" if text else ""
    )


def _missed(channel: dict) -> str:
    reason = channel.get("reason") or ""
    if reason == "floor":
        return f"its cosine of {_short(channel.get('cosine'))} is below the floor of {_short(channel.get('floor'))}"
    if reason == "depth":
        rank = channel.get("rank", 0) + 1
        return f"it stands at rank {rank} of that list, of which {channel.get('depth')} rows are taken"
    if reason == "window":
        return (
            f"it is older than the {max(channel.get('window') or 0, channel.get('reach') or 0)} rows that are compared"
        )
    return _REASONS.get(reason, reason or "not found")


def _channel(channel: dict) -> str:
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


def _draw(out: Output, rows: list[dict], stages: dict) -> None:
    """Draw the rows that were returned and the next few, and say how many more there are."""
    from . import render

    returned = [row for row in rows if row.get("fate") == "returned"]
    others = [row for row in rows if row.get("fate") != "returned"]
    ranked = [*((str(rank), row) for rank, row in enumerate(returned, 1)), *(("", row) for row in others[:NEXT])]
    more = (_RERANKED,) if _RERANKED in dict.fromkeys(chain(*rows)) else ()
    render.table(out, (*_DRAWN[:-1], *more, _DRAWN[-1]), [_drawn(rank, row, more) for rank, row in ranked], whole=True)
    if len(others) > NEXT:
        counts = ", ".join(f"{stages[name]} {said}" for name, said in _CUT if stages.get(name))
        left = len(others) - NEXT
        out.wrapped(
            f"and {left} more {'row' if left == 1 else 'rows'} ({counts} in all); --explain=all shows every one, "
            "with its part on each list"
        )


def _drawn(rank: str, row: dict, more: tuple[str, ...]) -> list[str]:
    """Return the cells of one candidate, with ``more`` numbers than every one has."""
    from . import render

    found = ", ".join(
        f"{LISTS.get(place.get('channel'), place.get('channel'))} {place.get('rank', 0) + 1}"
        for place in row.get("lists", ())
    )
    if isinstance(moved := row.get("time"), dict):
        found += f"; up {moved.get('places')} for {moved.get('asked')!r}"
    fate = str(row.get("fate"))
    numbers = [render.number(row.get(name)) for name in (*_NUMBERS, *more)]
    said = f"{FATES.get(fate, fate)} (+{row['alike']} alike)" if "alike" in row else FATES.get(fate, fate)
    return [rank, str(row.get("ref")), said, *numbers, found]


def _row_table(rows: list[dict]) -> list[list[str]]:
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


def _place(place: dict) -> str:
    rank = place.get("rank")
    return " ".join(
        (
            _short(rank + 1 if isinstance(rank, int) else rank),
            _short(place.get("score")),
            _short(place.get("contribution")),
        )
    )


def _columns(out: Output, table: list[list[str]]) -> None:
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    for row in table:
        out.line("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def _any(out: Output, name: str, value: object, depth: int) -> None:
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


def _short(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4g}"
    return one_line(value if isinstance(value, str) else to_json(value))
