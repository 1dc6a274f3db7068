"""What a recall says beside its rows: that some could not be compared by meaning, or that nothing was asked for.

Contract: advisory.says, recall.blank, progress.measured.
"""

from __future__ import annotations

from ..embedding.values import Advice
from ..model.scope import Scope
from ..shared.pace import seconds_left
from ..storage import vector_counts
from .run import Run

_SHOWN = 40


def advice_of(run: Run, found: bool) -> list[Advice]:
    """Return what the answer of a recall must say; ``found``: it has rows."""
    out = [wordless(run.question.text, found)] if run.question.wordless else []
    if run.vector is not None and run.settings.degraded_advisory:
        scope = run.query.scope
        unusable = vector_counts.unusable(run.conn, scope, run.vector.vector.size, run.vector.model)
        waiting = vector_counts.waiting(run.conn, scope) if unusable else 0
        said = uncompared(unusable, waiting, scope, run.embedded_per_second)
        out += [said] if said is not None else []
    return out


def wordless(text: str, found: bool) -> Advice:
    """Return what to say of a question without a letter, a digit or an emoji; ``found``: rows hold its very
    characters.
    """
    asked = text.strip()
    shown = asked if len(asked) <= _SHOWN else asked[:_SHOWN] + "…"
    reason = (
        "the question holds no word, so only rows with exactly these characters were looked for"
        if found
        else ("there is nothing to look for: the question holds no word, number or emoji")
    )
    return Advice(
        "hint",
        reason,
        f"no letter, digit or emoji in {shown!r}",
        "ask with a word or a number that stands in what you are looking for",
    )


def uncompared(unusable: int, waiting: int, scope: Scope, rate: float | None = None) -> Advice | None:
    """Return what to say of ``unusable`` rows without a usable vector, ``waiting`` of which are listed for one; None of
    none.

    Words alone find them. The counts know neither source nor age, so that under a scope narrowed by these they are
    upper bounds. ``rate`` is how many rows a second get their vector, where that was measured.
    """
    if not unusable:
        return None
    bound = "up to " if scope.source_id or scope.of_a_time else ""
    evidence = f"{bound}{unusable} rows in scope without a usable vector, {waiting} rows listed for embedding"
    if waiting >= unusable:
        what = (
            "1 row still waits for its vector and is"
            if unusable == 1
            else f"{unusable} rows still wait for their vectors and are"
        )
        return Advice(
            "hint",
            f"{bound}{what} found by words alone until then",
            evidence,
            f"ask again later{_when(waiting, rate)}; `cpersona status` shows how many are left",
        )
    what = (
        "1 row has no vector that this question can be compared with and is"
        if unusable == 1
        else (f"{unusable} rows have no vector that this question can be compared with and are")
    )
    listed = "" if not waiting else "; 1 of them waits for one" if waiting == 1 else f"; {waiting} of them wait for one"
    return Advice(
        "hint",
        f"{bound}{what} found by words alone{listed}",
        evidence,
        "`cpersona health --fix` has every such row embedded in the background",
    )


def _when(waiting: int, rate: float | None) -> str:
    """Return when so many rows have their vectors, in words behind "later"; '' where that is not known."""
    left = seconds_left(waiting, rate)
    return "" if left is None or rate is None else f": at {rate:.2g} rows a second they take {max(1, round(left))} s"
