"""Which rows a caller does not want back because it holds their text already.

Contract: exclude.texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..text.folding import as_given

MAX_ENTRIES = 1000
PREFIX_LENGTH = 32


def matcher(entries: Iterable[str]) -> Callable[[str], bool] | None:
    """Return a test for texts to leave out, or None when there is nothing to leave out.

    A text matches when it equals an entry, starts with an entry of 32 or more characters, or is the start
    of such an entry. Case and outer blanks do not count; an empty text never matches.
    """
    wanted = {as_given(e) for e in entries} - {""}
    if not wanted:
        return None
    long = tuple(sorted(e for e in wanted if len(e) >= PREFIX_LENGTH))

    def excluded(text: str) -> bool:
        text = as_given(text)
        if not text:
            return False
        return text in wanted or text.startswith(long) or any(e.startswith(text) for e in long)

    return excluded
