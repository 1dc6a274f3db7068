"""Which texts say nearly the same: the same words but for numbers, days and months. Pure functions.

A word that differs may be what matters (whose phone, which rack), so none may. Short texts are never alike, and neither
are two or three notes of what was and what is.

Contract: alike.folded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping
from typing import TypeVar

from ...shared.periods import DAYS, MONTHS
from ...text.months import ABBREVIATED

Key = TypeVar("Key", bound=Hashable)

LEAST_ROWS = 4  # fewer that are alike stay apart
LEAST_WORDS = 4  # different words, numbers aside
_READ = 2_000  # characters of a text that are compared
_EDGE, _LOOKED_AT = 16, 48  # characters at the beginning or end, of which texts that are alike share one

_NO_DIGITS = str.maketrans("", "", "0123456789")
_WORD = re.compile(r"[^\W_]+")
_HASH = re.compile(r"\b(?=[a-f]*[0-9])[0-9a-f]{7,}\b")
_DAYS = frozenset((*DAYS, *MONTHS, *ABBREVIATED, *"mon tue wed thu fri sat sun sept am pm".split()))


def groups(texts: Mapping[Key, str]) -> list[list[Key]]:
    """Return the keys of texts that are alike, in the order of ``texts``, as groups of LEAST_ROWS at least.

    Only texts that begin or end alike, numbers aside, are compared: most of what a recall finds shares neither, and is
    told from the rest by little work.
    """
    at_edges: dict[str, list[Key]] = defaultdict(list)
    for key, text in texts.items():
        at_edges[text[:_LOOKED_AT].translate(_NO_DIGITS)[:_EDGE]].append(key)
        at_edges["\0" + text[-_LOOKED_AT:].translate(_NO_DIGITS)[-_EDGE:]].append(key)
    suspects = {key for keys in at_edges.values() if len(keys) >= LEAST_ROWS for key in keys}
    found: dict[frozenset[str], list[Key]] = defaultdict(list)
    for key, text in texts.items():
        if key in suspects:
            found[masked(text)].append(key)
    return [keys for words, keys in found.items() if len(words) >= LEAST_WORDS and len(keys) >= LEAST_ROWS]


def masked(text: str) -> frozenset[str]:
    """Return the different words of a text without their digits, and without hashes, days and months."""
    return frozenset(_WORD.findall(_HASH.sub("", text[:_READ].lower()).translate(_NO_DIGITS))) - _DAYS
