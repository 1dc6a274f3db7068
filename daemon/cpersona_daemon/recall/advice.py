"""What a recall says to a question that holds no word."""

from __future__ import annotations

from ..embedding.values import Advice

_SHOWN = 40


def advice(text: str, found: bool) -> Advice:
    """Return what to say of a question without a letter, a digit or an emoji; ``found``: rows hold its very characters."""
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
