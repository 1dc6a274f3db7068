"""An answer turned into what is shown: rows with the best one first, their marks, their bars. Pure functions.

Contract: explore.order, explore.account, scores.meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..terminal import ages, explain, render

if TYPE_CHECKING:
    Spans = list[tuple[int, int]]

BELOW = 20  # rows that were not returned and are shown when they are asked for: as many texts as one request names
_SEEN = 600  # characters of a text that its line in the list can need
_PENALTIES = (("prior", "age"), ("episode_penalty", "before the last episode"))


class Row(NamedTuple):
    """One row of the list. ``rank`` counts from 1, '' for one that was not returned.

    ``told`` is the row as the answer has it, ``account`` what a trace says of it.
    """

    ref: str
    rank: str
    fate: str
    told: dict[str, Any]
    account: dict[str, Any]

    @property
    def returned(self) -> bool:
        return bool(self.rank)

    @property
    def score(self) -> float | None:
        told = (self.told.get("match_reason") or {}).get("score")
        score: float | None = self.account.get("score", told)
        return score


def rows_of(response: dict[str, Any], texts: dict[str, dict[str, Any]] | None = None) -> list[Row]:
    """Return the rows of a traced answer, best first; with ``texts`` (ref -> whole row) those not returned behind them.

    Those are the nearest ones, in the order in which the gate saw them.
    """
    accounts = {entry.get("ref"): entry for entry in (response.get("trace") or {}).get("rows", ())}
    rows = [
        Row(ref := told.get("ref") or "profile", str(rank), "returned", told, accounts.get(ref, {}))
        for rank, told in enumerate(reversed(response.get("messages", [])), 1)
    ]
    if texts is None:
        return rows
    return rows + [
        Row(ref, "", str(accounts[ref].get("fate", "?")), _whole(ref, texts[ref], accounts[ref]), accounts[ref])
        for ref in below(response)
        if ref in texts
    ]


def below(response: dict[str, Any]) -> list[str]:
    """Return the refs of the nearest rows that came into question and were not returned."""
    shown = {told.get("ref") for told in response.get("messages", ())}
    entries = (response.get("trace") or {}).get("rows", ())
    return [ref for entry in entries if ":" in (ref := entry.get("ref", "")) and ref not in shown][:BELOW]


def _whole(ref: str, found: dict[str, Any], account: dict[str, Any]) -> dict[str, Any]:
    passage = account.get("passage")
    return {**found, "ref": ref, **({"passage": passage} if passage else {})}


# A line of the list


class Columns(NamedTuple):
    """The widths of a list's columns in front of the text."""

    rank: int
    ref: int
    age: int
    score: int

    @staticmethod
    def of(rows: Iterable[Row], width: int) -> Columns:
        """Return the widths that these rows need; a list narrower than 60 has no age."""
        rows = list(rows)
        return Columns(
            max((len(row.rank) for row in rows), default=1),
            max((len(row.ref) for row in rows), default=1),
            0 if width < 60 else 4,
            6,
        )


def line(row: Row, columns: Columns, marks: render.Marks, room: int, moved: str | None = None) -> tuple[str, Spans]:
    """Return a row as one line, and the places of the question's words in it.

    ``moved`` is how the row moved against the list beside; None where there is none.
    """
    parts = [row.rank.rjust(columns.rank), row.ref.ljust(columns.ref)]
    if columns.age:
        stamp = row.told.get("timestamp") or row.told.get("created_at") or ""
        parts.append(ages.age(stamp).rjust(columns.age))
    parts.append(short(row.score).rjust(columns.score))
    if moved is not None:
        parts.append(moved.ljust(4))
    if not row.returned:
        parts.append(f"[{explain.FATES.get(row.fate, row.fate)}]")
    front = " ".join(parts) + " "
    left = max(10, room - len(front))
    text = visible(" ".join(render.on_terminal(row.told, marks, left)[:_SEEN].split()))
    return front + text, [(start + len(front), end + len(front)) for start, end in marks(text)]


def short(value: float | None) -> str:
    """Return a score in six places at most, '' when there is none."""
    return "" if value is None else f"{value:.3f}" if abs(value) < 100 else f"{value:.0f}"


def moves(rows: Sequence[Row], beside: Sequence[Row]) -> dict[str, str]:
    """Return for each returned row of ``rows`` how it stands against the list ``beside``: '=', up, down, or new."""
    places = {row.ref: at for at, row in enumerate(r for r in beside if r.returned)}
    told = {}
    for at, row in enumerate(r for r in rows if r.returned):
        if row.ref not in places:
            told[row.ref] = "new"
        else:
            step = places[row.ref] - at
            told[row.ref] = "=" if not step else f"↑{step}" if step > 0 else f"↓{-step}"
    return told


# A row's score


class Bar(NamedTuple):
    """One number as a bar: its share of the scale, 0 to 1, where the gate stands on that, and what is said of it."""

    name: str
    value: str
    share: float
    gate: float | None = None
    note: str = ""


class Scale(NamedTuple):
    """What a whole bar is worth: for what the gate compares, and for the parts. Of all rows, so that these compare."""

    score: float
    part: float

    @staticmethod
    def of(rows: Iterable[Row]) -> Scale:
        accounts = [row.account for row in rows]
        scores = [abs(a[name]) for a in accounts for name in ("score", "threshold") if isinstance(a.get(name), float)]
        parts = [abs(value) for a in accounts for _, value in _parts(a)]
        score, part = max(scores, default=0.0) or 1.0, max(parts, default=0.0) or 1.0
        blended = any("similarity" in a for a in accounts)
        return Scale(max(score, part), max(score, part)) if blended else Scale(score, part)


def _parts(account: dict[str, Any]) -> list[tuple[str, float]]:
    """Return what a score adds up from: the parts of a blend, else what each list contributed."""
    if "similarity" in account:
        names = ("similarity", "words", "neighbours", *(("reranked",) if "reranked" in account else ()))
        return [(name, account.get(name) or 0.0) for name in names]
    return [
        (f"{explain.LISTS.get(p['channel'], p['channel'])} {p['rank'] + 1}", p["contribution"])
        for p in account.get("lists", ())
        if p.get("contribution") is not None and isinstance(p.get("rank"), int)
    ]


def bars(account: dict[str, Any], scale: Scale) -> list[Bar]:
    """Return a row's score as bars: what the gate compared, what it adds up from, and what was taken from it."""
    shown = []
    score, threshold = account.get("score"), account.get("threshold")
    if score is not None:
        gate = None if threshold is None else _share(threshold, scale.score)
        note = "" if threshold is None else f"gate asked {render.number(threshold)}"
        shown.append(
            Bar(str(account.get("signal", "score")), render.number(score), _share(score, scale.score), gate, note)
        )
    shown += [Bar(name, render.number(value), _share(value, scale.part)) for name, value in _parts(account)]
    if shown:
        shown.append(_penalty(account))
    return shown


def _penalty(account: dict[str, Any]) -> Bar:
    kept, why = 1.0, []
    for name, said in _PENALTIES:
        if isinstance(account.get(name), float) and account[name] < 1:
            kept *= account[name]
            why.append(said)
    return Bar("penalty", f"×{kept:.3f}" if why else "none", 1 - kept, None, ", ".join(why))


def _share(value: float, whole: float) -> float:
    return min(1.0, max(0.0, value / whole))


_EIGHTHS = " ▏▎▍▌▋▊▉"


def drawn(share: float, width: int, gate: float | None = None) -> str:
    """Return a bar of ``width`` cells; the gate is a line across it."""
    eighths = round(share * width * 8)
    cells = list(("█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")).ljust(width, "·"))[:width]
    if gate is not None:
        cells[min(width - 1, int(gate * width))] = "┃"
    return "".join(cells)


def bar_lines(shown: Sequence[Bar], width: int) -> list[str]:
    """Return bars as lines of ``width`` cells: the first over the whole width, the others two beside each other where
    there is room.
    """
    first, others = shown[:1], shown[1:]
    two = width >= 74
    lines = [_bar_line(bar, width) for bar in first]
    if not two:
        return lines + [_bar_line(bar, width) for bar in others]
    half = (width - 2) // 2
    cells = [_bar_line(bar, half) for bar in others]
    return lines + ["  ".join(cells[at : at + 2]) for at in range(0, len(cells), 2)]


def _bar_line(bar: Bar, width: int) -> str:
    front, note = f"{bar.name[:12]:<12} {bar.value:>7} ", f" {bar.note}" if bar.note else ""
    room = width - len(front) - len(note)
    if room < 8:
        note, room = "", width - len(front)
    return (front + drawn(bar.share, max(4, room), bar.gate) + note).ljust(width)[:width]


# A row's text


def visible(text: str) -> str:
    """Return text with every control character as one visible sign, so that places in it stay what they are."""
    if text.isprintable():
        return text
    return re.sub(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]", _sign, text
    )


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


class Text(NamedTuple):
    """A whole text for a screen: the places of the question's words, and the best passage where one is known."""

    plain: str
    words: Spans
    passage: tuple[int, int] | None


def text_of(content: str, passage: dict[str, Any] | None, marks: render.Marks) -> Text:
    """Return a row's text with what of it answers."""
    plain = visible(content)
    found = None
    if passage and 0 <= passage["start"] < passage["end"] <= len(plain):
        found = (passage["start"], passage["end"])
    return Text(plain, list(marks(plain)), found)


# What is said around it


def heading(response: dict[str, Any], named: str, seconds: float) -> str:
    """Return what stands above a list: its order, how many rows of how many, and the gate."""
    trace = response.get("trace") or {}
    returned, stages = len(response.get("messages", ())), trace.get("stages") or {}
    said = [named, f"{returned} of {stages.get('considered', returned)}"]
    signal = next((row.get("signal") for row in trace.get("rows", ()) if row.get("signal")), trace.get("mode"))
    gate = ((trace.get("thresholds") or {}).get(signal) or {}).get("value")
    if gate is not None:
        said.append(f"gate {gate:.3g}")
    return " · ".join([*said, f"{seconds * 1000:.0f} ms"])


def nothing(response: dict[str, Any]) -> str:
    """Return what an answer without rows says: what is missing, or by how much the nearest row missed."""
    if absent := response.get("absent"):
        return f"no row holds {', '.join(absent)}"
    if not_held := response.get("not_held"):
        return "no row holds " + " and ".join(f'"{text}"' for text in not_held)
    missed, considered = response.get("best_missed"), response.get("considered")
    if missed and missed.get("threshold") is not None:
        near = f"{missed.get('ref')} has {missed.get('signal')} {render.number(missed.get('score'))}"
        return f"nothing passed; the nearest, {near} where {render.number(missed['threshold'])} is asked: w shows it"
    return (
        f"nothing passed of {considered} rows that came into question: w shows them" if considered else "nothing found"
    )


def about(row: Row, found: dict[str, Any] | None) -> str:
    """Return the line above a row's text: its ref, age, axes, and whether it is locked, cut or alike to others."""
    told = {**row.told, **(found or {})}
    where = [str(told[name]) for name in ("project_id", "channel") if told.get(name)]
    stamp = told.get("timestamp") or told.get("created_at") or ""
    facts = [
        row.ref,
        ages.age(stamp) and f"{ages.age(stamp)} old",
        " / ".join(where),
        "locked" if told.get("locked") else "",
        f"id {told['id']}" if told.get("id") else "",
        *_found_as(row),
    ]
    return visible(" · ".join(filter(None, facts)))


def _found_as(row: Row) -> list[str]:
    """Return what the answer says of a row beside its score."""
    reason, account = row.told.get("match_reason") or {}, row.account
    return [
        render.NEAR.strip() if reason.get("near") else "",
        "an identifier" if account.get("identifier") else "",
        f"+{account['alike']} alike" if account.get("alike") else "",
        f"as {account['folded_into']} says" if account.get("folded_into") else "",
        _lifted(account.get("time")),
    ]


def _lifted(time: object) -> str:
    return f"up {time.get('places')} for {time.get('asked')!r}" if isinstance(time, dict) else ""


def fitting(keys: Sequence[tuple[str, str, str]], width: int) -> list[tuple[str, str]]:
    """Return the keys of a footer with as many words as fit its width, and the gap behind each.

    Where not even the short words fit, the keys in front of the last one go.
    """
    for whole, gap in ((True, "  "), (False, "  "), (False, " ")):
        told = [(key, f" {name if whole else brief}{gap}") for key, name, brief in keys]
        if sum(len(key) + len(word) for key, word in told) - len(gap) <= width:
            return told
    while len(told) > 1 and sum(len(key) + len(word) for key, word in told) - 1 > width:
        del told[-2]
    return told
