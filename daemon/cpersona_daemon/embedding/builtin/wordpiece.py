"""Text to token ids, exactly as the uncased BERT vocabulary wants them.

The steps are those of the published tokenizer: drop control characters, set CJK characters apart,
split at white space, lower, strip accents (NFD), split at punctuation, then the greedy longest match.
Ids of a word are remembered, because a memory repeats its words.

Contract: embedding.builtin.
"""

from __future__ import annotations

import unicodedata

CLS, SEP, UNK = "[CLS]", "[SEP]", "[UNK]"
_LONGEST_WORD = 100
_REMEMBERED_WORDS = 32_768
_REMEMBERED_LENGTH = 64

_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _Clean(dict):
    """A table for ``str.translate`` that works out each character once: control, white space, CJK or itself."""

    def __missing__(self, point: int) -> str:
        char = chr(point)
        if char in "\t\n\r" or unicodedata.category(char) == "Zs":
            text = " "
        elif point in (0, 0xFFFD) or unicodedata.category(char)[0] == "C":
            text = ""
        elif any(low <= point <= high for low, high in _CJK):
            text = f" {char} "
        else:
            text = char
        self[point] = text
        return text


class _Punctuation(dict):
    """Character to whether it stands alone: every ASCII symbol, and Unicode's punctuation."""

    def __missing__(self, char: str) -> bool:
        ascii_symbol = "!" <= char <= "~" and not char.isalnum()
        self[char] = found = ascii_symbol or unicodedata.category(char)[0] == "P"
        return found


class WordPiece:
    """A tokenizer over one vocabulary. Every method may be called from several threads at once."""

    def __init__(self, vocabulary: list[str]) -> None:
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        self.cls, self.sep, self.unk = self._ids[CLS], self._ids[SEP], self._ids[UNK]
        self._clean, self._punctuation = _Clean(), _Punctuation()
        self._words: dict[str, tuple[int, ...]] = {}

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text's pieces, without the marks of beginning and end."""
        out: list[int] = []
        words = self._words
        for word in text.translate(self._clean).split():
            known = words.get(word)
            if known is None:
                known = self._word(word)
                if len(word) <= _REMEMBERED_LENGTH:
                    if len(words) >= _REMEMBERED_WORDS:
                        words = self._words = {}
                    words[word] = known
            out.extend(known)
        return out

    def _word(self, word: str) -> tuple[int, ...]:
        plain = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")
        out: list[int] = []
        start = 0
        for here, char in enumerate(plain):
            if self._punctuation[char]:
                if start < here:
                    self._pieces(plain[start:here], out)
                self._pieces(char, out)
                start = here + 1
        if start < len(plain):
            self._pieces(plain[start:], out)
        return tuple(out)

    def _pieces(self, word: str, out: list[int]) -> None:
        if len(word) > _LONGEST_WORD:
            out.append(self.unk)
            return
        found, start, get = [], 0, self._ids.get
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = get("##" + word[start:end] if start else word[:end])
                if piece is not None:
                    break
            else:
                out.append(self.unk)
                return
            found.append(piece)
            start = end
        out.extend(found)
