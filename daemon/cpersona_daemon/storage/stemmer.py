"""A text as the tokens that the full-text indexes hold of it: by their own tokenizer, so that nothing else must agree
with it.

Contract: lexical.index.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

import apsw

TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])  # what the tables are made with, see migrations
_STEMS_KEPT = 20_000
_tokenizers: weakref.WeakKeyDictionary[apsw.Connection, apsw.FTS5Tokenizer] = weakref.WeakKeyDictionary()
_stems: dict[str, tuple[str, ...]] = {}


def stemmer(conn: apsw.Connection) -> Callable[[str], tuple[str, ...]]:
    """Return a function from a text to its tokens as the index holds them."""
    tokenizer = _tokenizers.get(conn)
    if tokenizer is None:
        tokenizer = _tokenizers[conn] = conn.fts5_tokenizer(*TOKENIZER)

    def stem(text: str) -> tuple[str, ...]:
        found = _stems.get(text)
        if found is None:
            found = tuple(
                str(token)
                for token in tokenizer(
                    text.encode("utf-8", "replace"),
                    apsw.FTS5_TOKENIZE_DOCUMENT,
                    None,
                    include_offsets=False,
                    include_colocated=False,
                )
            )
            if len(_stems) >= _STEMS_KEPT:
                _stems.clear()
            _stems[text] = found
        return found

    return stem
