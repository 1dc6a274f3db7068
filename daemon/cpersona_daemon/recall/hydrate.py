"""Reading the survivors, once and at the end, and saying of each why it came back.

Contract: answer.rows, confidence.beside, scores.meaning, passages.best, block.reserved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..model.kinds import ref_of
from ..model.signals import BESIDE
from ..storage.candidates import Facts
from ..storage.damaged import Unreadable
from ..storage.episodes import Episode
from ..storage.json_columns import load_source
from ..storage.memories import Memory
from ..text.passages import Span
from . import evidence
from .display import EPISODE_SOURCE, PROFILE_SOURCE, episode_text, episode_timestamp, left_out, profile_text
from .run import Run
from .scoring.confidence import confidence
from .stages.confidence import frame_of
from .types import Candidate, Row

BLOCK = "block"


def hydrate(run: Run, rows: Sequence[Candidate]) -> tuple[list[Row], list[dict[str, Any]]]:
    """Return the rows with their text, and beside them what names those that cannot be given out.

    A row deleted since the index saw it is neither.
    """
    rows = _with_display_cosines(run, rows)
    told = _confidences(run, rows)
    read, untrue = run.rows.records(c.rid for c in rows if not c.is_profile)
    out: list[Row] = []
    without: list[dict[str, Any]] = []
    for c in rows:
        record = run.rows.profile if c.is_profile else read.get(c.rid)
        if isinstance(record, Unreadable):
            without.append(left_out(c.rid[0], record))
        elif record is not None:
            out.append(_row(run, c, record, told(c), c.rid in untrue))
    return out, without


def _row(
    run: Run, candidate: Candidate, record: Memory | Episode | str, told: dict[str, Any] | None, changed_since: bool
) -> Row:
    """Return one row as it is displayed; ``record`` is what was read of it, the text alone of the profile."""
    common: Any = {
        "candidate": candidate,
        "ref": ref_of(candidate.rid),
        "match_reason": match_reason(candidate, near=bool(run.absent) and not candidate.identified),
        "confidence": None if candidate.reserved else told,
        "passage": candidate.passage,
        "changed_since": changed_since,
    }
    if isinstance(record, str):
        return Row(text=profile_text(record), source=dict(PROFILE_SOURCE), timestamp="", **common)
    if isinstance(record, Episode):
        stamp = episode_timestamp(record)
        common["passage"] = moved(candidate.passage, episode_text(record), record.summary)
        return Row(text=episode_text(record), source=dict(EPISODE_SOURCE), timestamp=stamp, record=record, **common)
    source = load_source(record.source)
    return Row(
        text=record.content, source=source, timestamp=record.timestamp, msg_id=record.msg_id, record=record, **common
    )


def moved(passage: Span | None, shown: str, text: str) -> Span | None:
    """Return where a passage of a text stands in what is shown of it, which ends with the text."""
    before = len(shown) - len(text)
    return None if passage is None else Span(passage.start + before, passage.end + before)


def _confidences(run: Run, rows: Sequence[Candidate]) -> Callable[[Candidate], dict[str, Any] | None]:
    """Return what answers a row's confidence; it is read together for all."""
    if not run.settings.confidence_enabled:
        return lambda c: None
    frame, facts = frame_of(run), run.rows.facts(c.rid for c in rows if not c.is_profile)
    return lambda c: confidence(frame, facts.get(c.rid, Facts(None)), c.cosine)


def _with_display_cosines(run: Run, rows: Sequence[Candidate]) -> Sequence[Candidate]:
    """Give rows found only by words their real cosine where it is shown; order and gate are decided already."""
    if not (run.settings.confidence_enabled or run.query.absolute):
        return rows
    found = evidence.cosines(run, [c.rid for c in rows if c.cosine is None and not c.is_profile])
    return [c.with_(cosine=found[c.rid], shown_only=True) if c.rid in found else c for c in rows]


def match_reason(candidate: Candidate, near: bool) -> dict[str, Any] | None:
    """Return `{signal, score, cosine?, rrf?, rsf?, near?, coverage?, rerank?, version?, time?, prior?}`, None for a
    row that no branch scored. ``near``: the question names an identifier that no row holds, and the row holds no other
    one of it. Of a row that was seated for a passage the signal alone.
    """
    if candidate.reserved:
        return {"signal": BLOCK}
    compared = candidate.signal()
    if compared is None:
        return None
    signal, score = compared
    reason: dict[str, Any] = {"signal": signal.value, "score": score}
    reason |= {other.value: value for other in BESIDE if (value := candidate.value(other)) is not None}
    if near:
        reason["near"] = True
    if candidate.coverage is not None:
        reason["coverage"] = candidate.coverage
    if candidate.rerank is not None:
        reason["rerank"] = round(candidate.rerank, 4)
    if candidate.version is not None:
        reason["version"] = candidate.version.told()
    if candidate.lifted is not None:
        reason["time"] = candidate.lifted.told()
    if candidate.prior is not None:
        reason["prior"] = round(candidate.prior, 4)
    return reason
