"""Turn rows into a table on a terminal and into one record a line everywhere else.

rich is imported by the functions that draw and by nothing else.

Contract: output.streams.
"""

from . import ages
from .output import Output, one_line, to_json, without_controls

TYPE_CHECKING = False  # typing itself is slow to load; who checks types takes the name for what it says
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Literal

    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    Marks = Callable[[str], Iterable[tuple[int, int]]]
    Branch = tuple[str, "Sequence[Branch]"]

ROW_FIELDS = (
    "rank",
    "ref",
    "age",
    "match",
    "signal",
    "score",
    "cosine",
    "coverage",
    "rerank",
    "rrf",
    "rsf",
    "prior",
    "confidence",
    "timestamp",
    "id",
    "source",
    "preview",
    "passage",
    "content",
    "length",
    "truncated",
)


# What the text of a row gets before other columns do, and what it gets on the narrowest terminal.
_WANTED_ROOM, _LEAST_ROOM = 24, 4
# What a narrow terminal gives up, the first first; rank, ref and the text stay.
_GIVEN_UP = (
    "neighbours",
    "reranked",
    "words",
    "similarity",
    "prior",
    "rsf",
    "rrf",
    "rerank",
    "coverage",
    "confidence",
    "match",
    "cosine",
    "signal",
    "source",
    "age",
    "stored",
    "time",
    "timestamp",
    "id",
    "locked",
    "channel",
    "project",
    "agent",
    "asked",
    "score",
    "fate",
    "rank",
)
_NUMBERS = ("rank", "age", "calls", "failed", "p50 ms", "p99 ms")


def _preview(row: dict, reason: dict) -> str:
    return row.get("content", "")


def _marked(row: dict, reason: dict) -> str:
    folded = (row.get("folded") or {}).get("count")
    return f"(+{folded} alike) {row.get('content', '')}" if folded else row.get("content", "")


def _passage(row: dict, reason: dict) -> str:
    passage = row.get("passage")
    if not passage:
        return ""
    text: str = passage.get("text") or row.get("content", "")[passage["start"] : passage["end"]]
    return text


# So far into a text its beginning and the passage of it are shown apart, the beginning in so many characters.
_FAR_IN, _OPENING = 60, 40


def on_terminal(row: dict, marks: "Marks", room: int) -> str:
    """Return the text of a recalled row for one column: a long one as its beginning and the passage that was found.

    The two have ``room`` characters, and a longer passage is shown from where ``told`` begins.
    """
    text, start = _marked(row, {}), (row.get("passage") or {}).get("start", 0)
    if start < _FAR_IN:
        return text
    return f"{' '.join(text[:_OPENING].split())} … {told(_passage(row, {}), marks, room - _OPENING)}"


def told(passage: str, marks: "Marks", room: int) -> str:
    """Return a passage from the sentence where ``room`` characters begin that hold most of the question's words."""
    import re

    if len(passage) <= room:
        return passage
    words = [(start, passage[start:end].lower()) for start, end in marks(passage)]
    starts = [0, *(found.end() for found in re.finditer(r"[.!?。！？]+[\"')\]]*\s*(?=\S)|\n+\s*(?=\S)", passage))]
    best = max(starts, key=lambda at: len({word for start, word in words if at <= start < at + room}))
    first = next((start for start, _ in words if start >= best), 0)
    return passage[max(at for at in starts if at <= first) :]


def _number_of(name: str) -> "Callable[[dict, dict], str]":
    return lambda row, reason: number(reason.get(name))


# Marks a row that holds no identifier of the question, where that names one that no row holds.
NEAR = " (near)"

# What of a row is worked out; every other field is the row's own value. Each is given the row and its match_reason.
_WORKED_OUT: "dict[str, Callable[[dict, dict], str]]" = {
    "age": lambda row, reason: ages.age(row.get("timestamp", "")),
    "match": lambda row, reason: match(row),
    "signal": lambda row, reason: reason.get("signal", "") + (NEAR if reason.get("near") else ""),
    **{name: _number_of(name) for name in ("score", "cosine", "coverage", "rerank", "rrf", "rsf", "prior")},
    "confidence": lambda row, reason: number((row.get("confidence") or {}).get("score")),
    "source": lambda row, reason: to_json(row["source"]) if row.get("source") else "",
    "preview": _marked,
    "passage": _passage,
    "content": _preview,
    "length": lambda row, reason: str(row.get("content_len", len(row.get("content", "")))),
    "truncated": lambda row, reason: "true" if row.get("content_truncated") else "false",
}


def field(row: dict, name: str) -> str:
    """Return one field of a recalled row as text; what the row does not have is ''.

    ``rank`` is the caller's to put into the row.
    """
    worked_out = _WORKED_OUT.get(name)
    return str(row.get(name, "")) if worked_out is None else worked_out(row, row.get("match_reason") or {})


def match(row: dict) -> str:
    """Return how a row matched in a few words: its signal and score, and its cosine beside another signal."""
    reason = row.get("match_reason")
    if not reason:
        return ""
    said = f"{reason.get('signal')}{NEAR if reason.get('near') else ''} {number(reason.get('score'))}"
    if reason.get("signal") != "cosine" and reason.get("cosine") is not None:
        said += f", cosine {number(reason['cosine'])}"
    return said


def number(value: object) -> str:
    """Return a score to four places, or '' when there is none."""
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def table(
    out: "Output",
    names: "Sequence[str]",
    rows: "Sequence[Sequence[object]]",
    whole: bool = False,
    lines: int = 1,
    marks: "Marks | None" = None,
) -> None:
    """Print rows: drawn on a terminal, tab-separated without a heading elsewhere.

    The last column takes the room that is left.

    There a text gets so many ``lines``, or with ``whole`` as many as it needs; ``marks(text)`` gives the (start, end)
    places of it that stand out.
    """
    if not out.draws:
        for row in rows:
            out.record(row)
    elif rows:
        names, cells = _cells(names, rows, whole)
        names, widths, cells = _narrowed(names, cells, out.columns())
        _draw(out, names, widths, cells, None if whole else lines, marks)


def _cells(
    names: "Sequence[str]", rows: "Sequence[Sequence[object]]", whole: bool
) -> tuple[list[str], list[list[str]]]:
    """Return the columns that some row fills, and their texts: each on one line, but the last one's where it is shown
    whole.
    """
    # A column that no row fills (nobody uses channels, nothing is locked) only takes room from the text.
    last = len(names) - 1
    filled = [at for at in range(last) if any(row[at] != "" for row in rows)]

    def text(row: "Sequence[object]") -> str:
        shown = without_controls(str(row[last]))
        return shown if whole else " ".join(shown.split())

    return [names[at] for at in (*filled, last)], [
        [*(one_line(str(row[at])) for at in filled), text(row)] for row in rows
    ]


def _narrowed(names: list[str], cells: list[list[str]], columns: int) -> tuple[list[str], list[int], list[list[str]]]:
    """Leave out columns until the text has the room that it wants; return the names, the widths of all but the text,
    the cells.
    """
    from rich.cells import cell_len

    *widths, wanted = (max(cell_len(row[at]) for row in [names, *cells]) for at in range(len(names)))
    for name in _GIVEN_UP:
        if len(widths) == 1 or _room(widths, columns) >= min(_WANTED_ROOM, wanted):
            break
        if name in names[:-1]:
            at = names.index(name)
            names, widths = names[:at] + names[at + 1 :], widths[:at] + widths[at + 1 :]
            cells = [row[:at] + row[at + 1 :] for row in cells]
    return names, widths, cells


def _room(widths: list[int], columns: int) -> int:
    """Return what is left for the text beside columns of these widths."""
    return columns - sum(widths) - 2 * len(widths)


def _draw(
    out: "Output", names: list[str], widths: list[int], cells: list[list[str]], lines: int | None, marks: "Marks | None"
) -> None:
    from rich.table import Table
    from rich.text import Text

    room = max(_LEAST_ROOM, _room(widths, out.columns()))
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(names))
    printer = console(out)
    for name, width in zip(names, widths):
        drawn.add_column(name, width=width, no_wrap=True, justify=_side(name))
    drawn.add_column(names[-1], max_width=room, justify=_side(names[-1]), overflow="fold")
    for *before, text in cells:
        drawn.add_row(*map(Text, before), _fitted(printer, text, room, lines, marks))
    printer.print(drawn)


def _side(name: str) -> 'Literal["left", "right"]':
    return "right" if name in _NUMBERS else "left"


def _fitted(printer: "Console", text: str, room: int, lines: int | None, marks: "Marks | None") -> "Text":
    """Return a text for a column of this width with its marks, cut to so many lines (None: all of them)."""
    from rich.text import Text

    found = list(marks(text)) if marks is not None else []
    if lines is not None and found and found[0][0] > room * lines:
        # What was looked for stands further back: begin shortly before it.
        start = text.rfind(" ", 0, found[0][0] - room // 3) + 1
        text = "…" + text[start:]
        found = [(begin - start + 1, end - start + 1) for begin, end in found]
    drawn = Text(text)
    for begin, end in found:
        drawn.stylize("bold yellow", begin, end)
    if lines is None:
        return drawn
    wrapped = list(drawn.wrap(printer, room))
    shown = wrapped[:lines]
    if len(wrapped) > lines:
        shown[-1].rstrip()
        shown[-1].truncate(room - 1)
        shown[-1].append("…")
    return Text("\n").join(shown)


def marked_line(out: "Output", head: str, text: str, marks: "Sequence[tuple[int, int]]") -> None:
    """Print one line of a text behind its ``head``, with its marks, cut to the terminal around the first of them."""
    from rich.text import Text

    room = max(8, out.columns() - len(head))
    start = 0
    if len(text) > room and marks[0][1] > room:
        start = max(0, marks[0][0] - room // 3)
    shown, said = Text.assemble((head, "dim")), text[start : start + room]
    drawn = Text("…" if start else "")
    at = 0
    for begin, end in [(b - start, e - start) for b, e in marks if b >= start] + [(len(said), len(said))]:
        begin, end = min(begin, len(said)), min(end, len(said))
        drawn.append(one_line(said[at:begin]))
        drawn.append(one_line(said[begin:end]), style="bold yellow")
        at = end
    shown.append(drawn)
    shown.truncate(out.columns(), overflow="ellipsis")
    console(out).print(shown, no_wrap=True, overflow="ellipsis", crop=True)


def heading(out: "Output", text: str) -> None:
    """Print the title of a section on a terminal."""
    from rich.text import Text

    console(out).print(Text(text, style="bold"))


def tree(out: "Output", title: str, branches: "Sequence[Branch]") -> None:
    """Print a titled tree; ``branches`` are (text, [branches]) pairs. Off a terminal each line is indented by tabs."""
    if not out.draws:
        _plain_tree(out, [(title, branches)], 0)
        return
    from rich.text import Text
    from rich.tree import Tree

    drawn = Tree(Text(without_controls(title)), guide_style="dim")
    _grow(drawn, branches)
    console(out).print(drawn)


def _plain_tree(out: "Output", branches: "Sequence[Branch]", depth: int) -> None:
    for text, below in branches:
        out.line("\t" * depth + one_line(text))
        _plain_tree(out, below, depth + 1)


def _grow(drawn: "Tree", branches: "Sequence[Branch]") -> None:
    from rich.text import Text

    for text, below in branches:
        _grow(drawn.add(Text(without_controls(text))), below)


def warnings(out: "Output", response: dict) -> None:
    """Say on stderr what makes an answer weaker than it looks."""
    advisory = response.get("advisory")
    if isinstance(advisory, dict):
        for said in (advisory, *advisory.get("also", ())):
            words = [str(said[key]) for key in ("reason", "runbook") if said.get(key)]
            (out.warn if said.get("severity") == "fault" else out.note)("cpersona: " + "; ".join(words))
    _not_in_rows(out, response)
    changed_since(out, response.get("messages", ()))
    if response.get("gate_fallback"):
        out.warn("cpersona: low confidence: every row was below the gate, these matched by words alone")
    if response.get("full_content_budget_chars"):
        out.note(
            f"texts beyond {response['full_content_budget_chars']} characters in all are previews; `cpersona get REF` "
            "shows one whole"
        )


def changed_since(out: "Output", rows: "Sequence[dict]") -> None:
    """Say which rows are shown as they are today, where they were asked for as they were."""
    named = [row["ref"] for row in rows if row.get("changed_since")]
    if named:
        which, was = ("has", "it was") if len(named) == 1 else ("have", "they were")
        out.warn(f"cpersona: {', '.join(named)} {which} changed since then, and what {was} is not kept")


def _not_in_rows(out: "Output", response: dict) -> None:
    """Say what of a question no row holds, and what the question left out."""
    if (absent := response.get("absent")) and (rows := response.get("messages")):
        near = any((row.get("match_reason") or {}).get("near") for row in rows)
        out.note(f"no row holds {', '.join(absent)}{f'; rows marked{NEAR} only come near it' if near else ''}")
    if response.get("without"):
        out.note(f"left out: rows with {' or '.join(map(repr, response['without']))}; in quotes it is looked for")


def console(out: "Output") -> "Console":
    """Return a rich console on stdout that respects NO_COLOR and COLUMNS."""
    from rich.console import Console

    out.flush()
    return Console(
        width=out.columns(),
        color_system="auto" if out.colours() else None,
        highlight=False,
        soft_wrap=False,
        markup=False,
        emoji=False,
    )
