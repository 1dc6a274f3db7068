"""Quoted words: rows that hold them first, where nothing else is asked; and what only looks as if it left words out.

Contract: question.quoted, question.without.
"""

from __future__ import annotations

from dataclasses import replace

from ...text import operators
from ..run import Run
from ..types import Candidate


def as_stored(run: Run) -> Run:
    """Return the run with its question taken as it stands where a row holds what it seems to leave out with the very
    hyphen: that is an option of a command, and asked for.
    """
    question = run.question
    if not question.without:
        return run
    options = [term for word in question.meant.without if (term := operators.as_written(word)) is not None]
    if not any(run.rows.holds(term) for term in options):
        return run
    return replace(run, question=question.as_it_stands(run.query.text))


def quoted_first(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Return the rows that hold everything that is quoted before those that hold only its words; the profile last."""
    if not run.question.wording:
        return rows
    return sorted(rows, key=lambda c: (c.is_profile, not c.quoted))
