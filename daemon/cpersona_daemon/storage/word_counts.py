"""In how many of an agent's newest rows each term of a question stands, which says what the term weighs.

Contract: coverage.share, lexical.cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from ..model.kinds import Kind
from ..text.terms import Term, quoted
from . import former
from .frequencies import COMMON_ROWS, Frequencies, Own


@dataclass(frozen=True, slots=True)
class Counted:
    """In how many of an agent's newest ``rows`` each term of a question stands. ``all``: the agent has no others."""

    rows: int
    terms: tuple[int, ...]
    all: bool = True


def counted(
    conn: apsw.Connection,
    agent_id: str,
    kinds: Sequence[Kind],
    terms: Sequence[Term],
    *,
    common_rows: int = COMMON_ROWS,
) -> Counted:
    """Count the terms of a question in the agent's newest rows of ``kinds``; what others store is none of it."""
    tables = [(table, Own(table, agent_id)) for table in (Frequencies(conn, kind, common_rows) for kind in kinds)]
    found = tuple(sum(own.of(_asked(table, term)) for table, own in tables) for term in terms)
    return Counted(
        sum(own.rows for _, own in tables), found, all(own.all for _, own in tables) and not former.present(conn)
    )


def _asked(table: Frequencies, term: Term) -> str:
    """Return the term with its other forms, less a beginning that is dear to look for in a large table."""
    forms = [term.token]
    if term.prefix and (not table.matter or table.of_prefix(term.prefix) <= table.limit):
        forms.append(quoted(term.prefix) + "*")
    if term.phrase:
        forms.append(term.phrase)
    forms += [quoted(other.words) for other in term.others]
    return " OR ".join(forms)
