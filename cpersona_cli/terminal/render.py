"""Turn rows into a table on a terminal and into one record a line everywhere else.

rich is imported by the functions that draw and by nothing else.

Contract: interface.md, "Output".
"""

import time

from . import times
from .output import one_line, to_json, without_controls

ROW_FIELDS = (
    "rank",
    "ref",
    "age",
    "match",
    "signal",
    "score",
    "cosine",
    "coverage",
    "rrf",
    "rsf",
    "prior",
    "confidence",
    "timestamp",
    "id",
    "source",
    "preview",
    "content",
    "length",
    "truncated",
)


# What the text of a row gets before other columns do, and what it gets on the narrowest terminal.
_WANTED_ROOM, _LEAST_ROOM = 24, 4
# What a narrow terminal gives up, the first first; rank, ref and the text stay.
_GIVEN_UP = (
    "neighbours",
    "words",
    "similarity",
    "prior",
    "rsf",
    "rrf",
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


def field(row, name):
    """Return one field of a recalled row as text; what the row does not have is ''. ``rank`` is the caller's to put into the row."""
    reason = row.get("match_reason") or {}
    if name == "age":
        return times.age(row.get("timestamp", ""))
    if name == "match":
        return match(row)
    if name == "signal":
        return reason.get("signal", "")
    if name in ("score", "cosine", "coverage", "rrf", "rsf", "prior"):
        return number(reason.get(name))
    if name == "confidence":
        return number((row.get("confidence") or {}).get("score"))
    if name == "source":
        return to_json(row["source"]) if row.get("source") else ""
    if name in ("preview", "content"):
        return row.get("content", "")
    if name == "length":
        return str(row.get("content_len", len(row.get("content", ""))))
    if name == "truncated":
        return "true" if row.get("content_truncated") else "false"
    return str(row.get(name, ""))


def match(row):
    """Return how a row matched in a few words: its signal and score, and its cosine beside another signal."""
    reason = row.get("match_reason")
    if not reason:
        return ""
    said = f"{reason.get('signal')} {number(reason.get('score'))}"
    if reason.get("signal") != "cosine" and reason.get("cosine") is not None:
        said += f", cosine {number(reason['cosine'])}"
    return said


def number(value):
    """Return a score to four places, or '' when there is none."""
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def table(out, names, rows, whole=False, lines=1, marks=None):
    """Print rows: drawn on a terminal, tab-separated without a heading elsewhere. The last column takes the room that is left.

    There a text gets so many ``lines``, or with ``whole`` as many as it needs; ``marks(text)`` gives the (start, end)
    places of it that stand out.
    """
    if not out.draws:
        for row in rows:
            out.record(row)
        return
    if not rows:
        return
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    # A column that no row fills (nobody uses channels, nothing is locked) only takes room from the text.
    filled = [at for at in range(len(names) - 1) if any(row[at] != "" for row in rows)] + [len(names) - 1]
    names, rows = [names[at] for at in filled], [[row[at] for at in filled] for row in rows]
    cells = [
        [one_line(str(v)) for v in row[:-1]]
        + [without_controls(str(row[-1])) if whole else " ".join(without_controls(str(row[-1])).split())]
        for row in rows
    ]
    widths = [max(cell_len(row[at]) for row in [names, *cells]) for at in range(len(names) - 1)]
    wanted = min(_WANTED_ROOM, max(cell_len(row[-1]) for row in [names, *cells]))
    for name in _GIVEN_UP:
        if out.columns() - sum(widths) - 2 * len(widths) >= wanted or len(widths) == 1:
            break
        if name in names[:-1]:
            at = names.index(name)
            names, widths, cells = (
                names[:at] + names[at + 1 :],
                widths[:at] + widths[at + 1 :],
                [row[:at] + row[at + 1 :] for row in cells],
            )
    room = max(_LEAST_ROOM, out.columns() - sum(widths) - 2 * len(widths))
    drawn, printer = (
        Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(names)),
        console(out),
    )
    for name, width in zip(names, widths):
        drawn.add_column(name, width=width, no_wrap=True, justify=_side(name))
    drawn.add_column(names[-1], max_width=room, justify=_side(names[-1]), overflow="fold")
    for *before, text in cells:
        drawn.add_row(*map(Text, before), _fitted(printer, text, room, None if whole else lines, marks))
    printer.print(drawn)


def _side(name):
    return "right" if name in _NUMBERS else "left"


def _fitted(printer, text, room, lines, marks):
    """Return a text for a column of this width, with what stands out in it, cut to so many lines (None: all of them)."""
    from rich.text import Text

    found = list(marks(text)) if marks is not None else []
    if lines is not None and found and found[0][0] > room * lines:
        # What was looked for stands further back: begin shortly before it.
        start = text.rfind(" ", 0, found[0][0] - room // 3) + 1
        text, found = "…" + text[start:], [(begin - start + 1, end - start + 1) for begin, end in found]
    drawn = Text(text)
    for begin, end in found:
        drawn.stylize("bold yellow", begin, end)
    if lines is None:
        return drawn
    shown = drawn.wrap(printer, room)
    if len(shown) > lines:
        shown = shown[:lines]
        shown[-1].rstrip()
        shown[-1].truncate(room - 1)
        shown[-1].append("…")
    return Text("\n").join(shown)


def heading(out, text):
    """Print the title of a section on a terminal."""
    from rich.text import Text

    console(out).print(Text(text, style="bold"))


def tree(out, title, branches):
    """Print a titled tree; ``branches`` are (text, [branches]) pairs. Off a terminal each line is indented by tabs."""
    if not out.draws:
        _plain_tree(out, [(title, branches)], 0)
        return
    from rich.text import Text
    from rich.tree import Tree

    drawn = Tree(Text(without_controls(title)), guide_style="dim")
    _grow(drawn, branches)
    console(out).print(drawn)


def _plain_tree(out, branches, depth):
    for text, below in branches:
        out.line("\t" * depth + one_line(text))
        _plain_tree(out, below, depth + 1)


def _grow(drawn, branches):
    from rich.text import Text

    for text, below in branches:
        _grow(drawn.add(Text(without_controls(text))), below)


def warnings(out, response):
    """Say on stderr what makes an answer weaker than it looks."""
    advisory = response.get("advisory")
    if isinstance(advisory, dict):
        for said in (advisory, *advisory.get("also", ())):
            words = [str(said[key]) for key in ("reason", "runbook") if said.get(key)]
            (out.warn if said.get("severity") == "fault" else out.note)("cpersona: " + "; ".join(words))
    if response.get("gate_fallback"):
        out.warn("cpersona: low confidence: every row was below the gate, these matched by words alone")
    if response.get("full_content_budget_chars"):
        out.note(
            f"texts beyond {response['full_content_budget_chars']} characters in all are previews; `cpersona get REF` shows one whole"
        )


def console(out):
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


def waiting(stream_is_terminal):
    """Return a progress display on stderr for a long call, or None where nobody watches."""
    return _Progress() if stream_is_terminal else None


class _Progress:
    """One line on stderr that says how far a long call has come; redrawn ten times a second at most."""

    def __init__(self):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("working", total=None)
        self._drawn = 0.0

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *_):
        self._bar.stop()

    def __call__(self, said):
        """Take one progress map of the daemon: `done`, `total` and `stage`, each if known."""
        now = time.monotonic()
        if now - self._drawn < 0.1 and said.get("done") != said.get("total"):
            return
        self._drawn = now
        self._bar.update(
            self._task,
            completed=said.get("done", 0),
            total=said.get("total"),
            description=str(said.get("stage", "working")),
        )
