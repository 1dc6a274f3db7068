"""Noting of rows what the lists do not say: whether they have a vector, and whether they hold an identifier.

Contract: gate.minimum, gate.identifier.
"""

from __future__ import annotations

from .. import evidence
from ..run import Run
from ..scoring.reading import Reading
from ..types import Candidate

WHOLE = 0.999  # the coverage of a row that holds the whole question, whatever rounding left of it


def mark_vectorless(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Note which rows no vector list could have held."""
    missing = [c.rid for c in rows if c.cosine is None]
    if not missing:
        return rows
    found = evidence.cosines(run, missing)
    return [c.with_(has_vector=False) if c.cosine is None and c.rid not in found else c for c in rows]


def backfill_cosines(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Give rows found by words alone their real cosine."""
    found = evidence.cosines(run, [c.rid for c in rows if c.cosine is None])
    return [c.with_(cosine=found[c.rid]) if c.rid in found else c for c in rows]


def mark_identified(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Note which rows found by words hold an identifier of the question that few rows hold: beside the builtin embedder
    these pass. So do those that hold all of a question that has an identifier.

    Its cosines say little about a hash or a path, so that a look-up would vanish with the first calibration. Whoever
    brings an embedder of their own gets the gate of the contracts alone.
    """
    if run.declared is None or not any(term.kind == "identifier" for term in run.question.terms):
        return rows
    sought, found = evidence.sought(run), set()
    for rid, (text, instant) in run.rows.readings(c.rid for c in rows if c.lexical).items():
        held = sought.held(Reading(text, instant))
        if held.identified or held.coverage >= WHOLE:
            found.add(rid)
    return [c.with_(identified=True) if c.rid in found else c for c in rows]
