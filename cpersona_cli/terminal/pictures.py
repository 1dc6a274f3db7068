"""Numbers as pictures of characters: pure functions from values to lines of at most so many columns.

Nothing is said by colour, so that a picture is the same without any. Where a locale has no UTF-8, ASCII draws it.

Contract: pictures.drawn.
"""

from __future__ import annotations

import math
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEAST_COLUMNS = 60  # a narrower terminal wraps
MOST_COLUMNS = 100  # a wider picture says no more
_BINS = 20  # of a histogram, at most
_ROUNDED = 1e-6  # of a bin: a score on an edge lies above it, however it is computed
_MOST_DIGITS = 9
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_LOW = "_.-=+*#@"  # the same where there is ASCII alone


class Scores:
    """What known and unrelated questions scored, and the gate, None where there is none; as the daemon answers it."""

    __slots__ = ("signal", "gate", "known", "unrelated", "missing")

    def __init__(self, told: Mapping) -> None:
        self.signal, self.gate = str(told.get("signal")), told.get("gate")
        self.known, self.unrelated = list(told.get("known") or ()), list(told.get("unrelated") or ())
        self.missing = (told.get("known_missing") or 0, told.get("unrelated_missing") or 0)

    @property
    def counts(self) -> tuple[int, int]:
        """How many known and how many unrelated questions were asked."""
        return len(self.known) + self.missing[0], len(self.unrelated) + self.missing[1]

    @property
    def kept(self) -> tuple[int, int]:
        """How many of each reach the gate; of all that scored where there is none."""
        least = -math.inf if self.gate is None else self.gate
        return sum(s >= least for s in self.known), sum(s >= least for s in self.unrelated)


class Bins:
    """Two histograms over the same bins. ``edges`` ascend, one more than there are bins; the gate is one of them."""

    __slots__ = ("edges", "known", "unrelated", "gate")

    def __init__(self, scores: Scores) -> None:
        values = [*scores.known, *scores.unrelated]
        gate = scores.gate
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        if gate is not None:
            low, high = min(low, gate), max(high, gate)
        step, origin = _step(high - low), gate or 0.0

        def place(value: float) -> int:
            return math.floor((value - origin) / step + _ROUNDED)

        first = place(low)
        last = max(place(high) + 1, first + 1)
        self.edges = [origin + number * step for number in range(first, last + 1)]
        self.known, self.unrelated = ([0] * (last - first) for _ in range(2))
        for counts, found in ((self.known, scores.known), (self.unrelated, scores.unrelated)):
            for value in found:
                counts[place(value) - first] += 1
        self.gate = None if gate is None else -first  # the number of the edge that it is


def _step(span: float) -> float:
    """Return the least of 1, 2 or 5 times a power of ten that cuts a span into at most _BINS."""
    if span <= 0:
        return 0.05
    power = 10.0 ** math.floor(math.log10(span / _BINS))
    return next(power * times for times in (1, 2, 5, 10) if span / (power * times) <= _BINS)


def has_utf8(environ: Mapping[str, str]) -> bool:
    """Tell whether the locale has UTF-8. C.UTF-8 in LC_CTYPE alone is what Python itself puts there for none at all."""
    ctype = environ.get("LC_CTYPE", "")
    locale = environ.get("LC_ALL") or ("" if ctype == "C.UTF-8" else ctype) or environ.get("LANG") or ""
    return "utf8" in locale.lower().replace("-", "")


def in_this_locale() -> bool:
    """Tell whether pictures may be drawn in UTF-8 here."""
    return has_utf8(os.environ)


def bar(share: float, width: int, utf8: bool) -> str:
    """Return a bar that takes a share (0 to 1) of a width; what is more than nothing shows."""
    if share <= 0:
        return ""
    if not utf8:
        return "#" * max(round(share * width), 1)
    eighths = max(round(share * width * 8), 1)
    return _EIGHTHS[8] * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def sparkline(values: Sequence[int], utf8: bool) -> str:
    """Return a character for each value, the highest for the largest, the lowest for none."""
    steps, most = _HEIGHTS if utf8 else _LOW, max(values, default=0)
    return "".join(steps[math.ceil(v * (len(steps) - 1) / most) if most else 0] for v in values)


def grouped(values: Sequence[int], most: int) -> tuple[list[int], int]:
    """Return sums of neighbours, the last whole, so that there are at most so many; and how many make one."""
    each = max(math.ceil(len(values) / max(most, 1)), 1)
    first = len(values) % each
    cuts = [0, *range(first or each, len(values) + 1, each)]
    return [sum(values[a:b]) for a, b in zip(cuts, cuts[1:])], each


def bars(rows: Sequence[tuple[str, int]], columns: int, utf8: bool, indent: str = "  ") -> list[str]:
    """Return a line for each name and count: the name, a bar and the count."""
    if not rows:
        return []
    columns, most = _width(columns), max(count for _, count in rows) or 1
    numbers = [f"{count:,}" for _, count in rows]
    right = max(map(len, numbers))
    left = min(max(len(name) for name, _ in rows), columns // 3)
    width = columns - len(indent) - left - right - 4
    return [
        f"{indent}{_cut(name, left, utf8):<{left}}  {bar(count / most, width, utf8):<{width}}  {number:>{right}}"
        for (name, count), number in zip(rows, numbers, strict=True)
    ]


def histograms(scores: Scores, columns: int, utf8: bool) -> list[str]:
    """Return two histograms side by side, low scores first, with the gate as a line between two bins."""
    columns, bins = _width(columns), Bins(scores)
    digits = _digits(bins.edges)
    labels = [f"{edge:.{digits}f}" for edge in bins.edges]
    left = max(map(len, (scores.signal, *labels)))
    most = max(*bins.known, *bins.unrelated, 1)
    number = len(str(most))
    half = (columns - left - 2) // 2
    width = half - number - 3
    known, unrelated = scores.counts
    lines = [f"{scores.signal:<{left}}  {f'known ({known})':<{half}}{f'unrelated ({unrelated})'}".rstrip()]
    for at, (one, other) in enumerate(zip(bins.known, bins.unrelated, strict=True)):
        if at == bins.gate:
            lines.append(_gate_line(scores, columns, digits, utf8))
        sides = [f"{bar(count / most, width, utf8)} {count or ''}".strip().ljust(half) for count in (one, other)]
        lines.append(f"{labels[at]:>{left}}  {''.join(sides)}".rstrip())
    if bins.gate == len(bins.known):
        lines.append(_gate_line(scores, columns, digits, utf8))
    return lines


def _gate_line(scores: Scores, columns: int, digits: int, utf8: bool) -> str:
    line = "─" if utf8 else "-"
    return f"{line * 2} gate {scores.gate:.{max(digits, 3)}f} ".ljust(columns, line)


def _digits(edges: Sequence[float]) -> int:
    """Return the fewest decimals that show every edge nearly where it is."""
    step = edges[1] - edges[0]
    digits = max(math.ceil(-math.log10(step)), 0)
    while digits < _MOST_DIGITS and any(abs(round(edge, digits) - edge) > step / 20 for edge in edges):
        digits += 1
    return digits


def _cut(text: str, width: int, utf8: bool) -> str:
    mark = "…" if utf8 else "~"
    return text if len(text) <= width else text[: width - 1] + mark


def _width(columns: int) -> int:
    return min(max(columns, LEAST_COLUMNS), MOST_COLUMNS)
