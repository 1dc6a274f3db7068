"""Turn rows into a table on a terminal and into one record a line everywhere else.

rich is imported by the functions that draw and by nothing else.

Contract: interface.md, "Output".
"""

import time

from . import times
from .output import one_line, to_json, without_controls

ROW_FIELDS = ("rank", "ref", "age", "match", "signal", "score", "cosine", "coverage", "rrf", "rsf", "prior", "confidence",
              "timestamp", "id", "source", "preview", "content", "length", "truncated")


# Columns that the text of a row gets on the narrowest terminal.
_LEAST_ROOM = 12
_NUMBERS = ("rank", "age", "calls", "failed", "p50 ms")


def row_fields(rank, row, names):
    """Return the named fields of one recalled row as text; what a row does not have is ''."""
    reason = row.get("match_reason") or {}
    out = []
    for name in names:
        if name == "rank":
            value = rank
        elif name == "age":
            value = times.age(row.get("timestamp", ""))
        elif name == "match":
            value = match(row)
        elif name == "signal":
            value = reason.get("signal", "")
        elif name in ("score", "cosine", "coverage", "rrf", "rsf", "prior"):
            value = number(reason.get(name))
        elif name == "confidence":
            value = number((row.get("confidence") or {}).get("score"))
        elif name == "source":
            value = to_json(row["source"]) if row.get("source") else ""
        elif name in ("preview", "content"):
            value = row.get("content", "")
        elif name == "length":
            value = row.get("content_len", len(row.get("content", "")))
        elif name == "truncated":
            value = "true" if row.get("content_truncated") else "false"
        else:
            value = row.get(name, "")
        out.append(str(value))
    return out


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


def recall_table(out, ranked, whole=False):
    """Draw recalled rows: rank, ref, age, match, and as much of the text as fits one line (or all of it)."""
    names = ("rank", "ref", "age", "match", "preview")
    table(out, names, [row_fields(rank, row, names) for rank, row in ranked], whole=whole)


def table(out, names, rows, whole=False):
    """Print rows: drawn on a terminal, tab-separated without a heading elsewhere. The last column takes the room that is left."""
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
    cells = [[one_line(str(v)) for v in row[:-1]] + [without_controls(str(row[-1])) if whole else " ".join(without_controls(str(row[-1])).split())] for row in rows]
    widths = [max(cell_len(row[at]) for row in [names, *cells]) for at in range(len(names) - 1)]
    room = max(_LEAST_ROOM, out.columns() - sum(widths) - 2 * len(widths))
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(names))
    for name, width in zip(names, widths):
        drawn.add_column(name, width=width, no_wrap=True, justify="right" if name in _NUMBERS else "left")
    drawn.add_column(names[-1], width=room, no_wrap=not whole, overflow="fold" if whole else "ellipsis")
    for row in cells:
        drawn.add_row(*map(Text, row))
    console(out).print(drawn)


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
        words = [str(advisory[key]) for key in ("reason", "runbook") if advisory.get(key)]
        (out.warn if advisory.get("severity") == "fault" else out.note)("cpersona: " + "; ".join(words))
    if response.get("gate_fallback"):
        out.warn("cpersona: low confidence: every row was below the gate, these matched by words alone")
    if response.get("full_content_budget_chars"):
        out.note(f"texts beyond {response['full_content_budget_chars']} characters in all are previews; `cpersona get REF` shows one whole")


def console(out):
    """Return a rich console on stdout that respects NO_COLOR and COLUMNS."""
    from rich.console import Console

    out.flush()
    return Console(width=out.columns(), color_system="auto" if out.colours() else None, highlight=False, soft_wrap=False, markup=False, emoji=False)


def waiting(stream_is_terminal):
    """Return a progress display on stderr for a long call, or None where nobody watches."""
    return _Progress() if stream_is_terminal else None


class _Progress:
    """One line on stderr that says how far a long call has come; redrawn ten times a second at most."""

    def __init__(self):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                             console=Console(stderr=True), transient=True)
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
        self._bar.update(self._task, completed=said.get("done", 0), total=said.get("total"), description=str(said.get("stage", "working")))
