"""One spelling for a text that is indexed, a text that is read and a question: its words, and nothing else. Pure
functions.

A word is a run of letters, marks and digits of any script, in lower case, without accents and the vowel signs that a
writer may leave out, digits as 0 to 9; an emoji is a word of its own. Text of scripts without spaces between words
(Chinese, Japanese, Korean, Thai, Khmer, ...) is a run, set apart from what it is glued to.

What comes out holds words and blanks only, and the tokenizer of the index (unicode61) takes each word as one token. It
drops marks and emoji, and knows no letters of later years: such characters are written as letters of private use.
"""

from __future__ import annotations

import re
import unicodedata

# Han with its iteration marks, kana with the long-vowel mark, bopomofo, jamo and hangul syllables.
CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U000323af"
)
# Thai, Lao, Myanmar, Khmer, Tai, Lanna, Balinese, Javanese, Cham, Yi, cuneiform, hieroglyphs, Tangut, Nüshu: letters
# and marks, neither digits nor punctuation.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecd\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u109a-\u109d"
    "\u1780-\u17d3\u17d7\u17dc-\u17dd"
    "\u1950-\u19c9\u1a20-\u1a7c\u1b00-\u1b4b\ua980-\ua9c0\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa00-\uaa4d\uaa60-\uaa76"
    "\uaa7a-\uaaad\uaab0-\uaadd"
    "\ua000-\ua48c\U00012000-\U0001246e\U00012480-\U0001254f\U00013000-\U0001342f\U00017000-\U00018d08"
    "\U0001b170-\U0001b2fb"
)
RUN = re.compile(f"[{CJK}{_UNSPACED}]+")
_BETWEEN_RUNS = re.compile(f"([{CJK}{_UNSPACED}]+)")

# Letters that no decomposition leads back to the plain one which many write instead.
_PLAIN = {"ı": "i", "ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "æ": "ae", "œ": "oe", "þ": "th"}
# The classes of marks that are left out: overlays, nukta, Hebrew points, Arabic and Syriac vowels, everything attached
# to or set around a letter. Voicing of kana, viramas and vowel signs of other scripts belong to their words.
_LEFT_OUT = frozenset((1, 7, *range(10, 37), *range(200, 241)))
# Vowel signs and letters that the tokenizer takes for the end of a word.
_UNKNOWN_TO_INDEX = frozenset((*range(0x19B0, 0x19CA), 0x1CF2, 0x1CF3))


def _is_left_out(char: str) -> bool:
    return unicodedata.category(char) == "Me" or unicodedata.combining(char) in _LEFT_OUT


def _marks_of_runs() -> list[str]:
    """Return the characters of runs that the tokenizer takes for the end of a word: marks, and those it does not
    know.
    """
    codes = (
        code
        for low, high in re.findall("(.)-(.)", _UNSPACED)
        if low < "\U00010000"
        for code in range(ord(low), ord(high) + 1)
    )
    return [chr(code) for code in codes if unicodedata.category(chr(code))[0] == "M" or code in _UNKNOWN_TO_INDEX]


# What writers set in other ways, or without spaces, or only see as a space.
_LOOSE = {
    "’": "'",
    "‘": "'",
    "ʼ": "'",
    "՚": "'",
    "\u2010": "-",
    "\u2013": "-",
    "\u2212": "-",
    "\u05be": "-",
    "—": " ",
    "―": " ",
    "→": " ",
    "•": " ",
    "·": " ",
    "\u200b": " ",
    "\u0f0b": " ",
    "\u0f0c": " ",
    "\u1361": " ",
    "\u16eb": " ",
    "\u16ec": " ",
    "\0": " ",
}
# Joiners, soft hyphens and other characters without a shape; marks of emphasis and question inside Armenian words; the
# stroke that stretches Arabic ones; variation selectors.
_SHAPELESS = (
    "\u00ad\u034f\u0600-\u0605\u061c\u0640\u180b-\u180f\u200c-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\u055b-\u055f\U000e0001-\U000e01ef"
)
_ANY_LOOSE = re.compile(
    f"[{''.join(map(re.escape, _LOOSE))}{_SHAPELESS}{''.join(filter(_is_left_out, _marks_of_runs()))}]"
)  # looked at one by one only where a text holds any

_FIRST_EMOJI, _SHAPES = 0x2100, range(0x2500, 0x25FF + 1)  # box drawing, blocks and bullets are no words
_PICTURES = range(0x1F000, 0x1FAFF + 1)  # one without a category is an emoji of a later Unicode
_BRAILLE = range(0x2800, 0x28FF + 1)
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}


def normalise(text: str) -> str:
    """Return the text in NFKC with one apostrophe and one dash, so that spellings that look alike are alike."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        if _ANY_LOOSE.search(text):
            # What is left out may have kept characters apart that compose.
            text = unicodedata.normalize("NFKC", _ANY_LOOSE.sub(lambda found: _LOOSE.get(found[0], ""), text))
    return text.replace("\0", " ")


def words(text: str) -> str:
    """Return the words of a text between blanks, with a blank before the first and after the last; runs stay whole."""
    return f" {text.translate(_ASCII) if text.isascii() else written(apart(normalise(text)))} "


def apart(normalised: str) -> str:
    """Return the words of a normalised text with its runs set apart, both with the marks that ``written`` replaces."""
    if normalised.isascii():
        return normalised.translate(_ASCII)
    # Characters of runs stay as they are, and are most of a text that has any.
    return " ".join(
        piece if place % 2 else spelled(piece) for place, piece in enumerate(_BETWEEN_RUNS.split(normalised))
    )


def spelled(normalised: str) -> str:
    """Return a normalised text with every character as it is matched; what belongs to no word is a blank."""
    return normalised.translate(_ASCII if normalised.isascii() else _SPELLING)


def written(spelled: str) -> str:
    """Return spelled text as the index takes it, where runs have kept their marks until they were cut into pairs."""
    return spelled if spelled.isascii() else _MARK_OF_RUN.sub(lambda found: _private(ord(found[0])), spelled)


def is_emoji(char: str) -> bool:
    """Tell whether a character is a picture that people look for as they look for a word."""
    code, category = ord(char), unicodedata.category(char)
    return (
        code >= _FIRST_EMOJI
        and category == "So"
        and code not in _SHAPES
        and code not in _BRAILLE
        or category == "Cn"
        and code in _PICTURES
    )


def _private(code: int) -> str:
    """Return the letter of private use that stands for a character; U+E000 to U+F8FF, where other meanings lie, stay
    free.
    """
    return chr((0xF0000 if code < 0x10000 else 0x100000) + (code & 0xFFFF))


def _form(code: int) -> str:
    char = chr(code)
    if code < 128:
        return _ASCII[code]
    if RUN.match(char):
        return char
    if is_emoji(char):
        return f" {_private(code)} "
    # Marks go first: folding the case would make a letter of one of them.
    plain = unicodedata.normalize("NFC", "".join(c for c in unicodedata.normalize("NFKD", char) if not _is_left_out(c)))
    folded = unicodedata.normalize("NFKD", plain.casefold())
    return "".join(
        map(_letter, unicodedata.normalize("NFC", "".join(_PLAIN.get(c, c) for c in folded if not _is_left_out(c))))
    )


def _letter(char: str) -> str:
    """Return what stands for a character without accents: itself, its digit, a letter of private use, or a blank."""
    code, category = ord(char), unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category[0] in "LN" and code < 0x10000 and code not in _UNKNOWN_TO_INDEX:
        return char
    # What has no category yet is most likely a letter of a later Unicode.
    return _private(code) if category[0] in "LNM" or category in ("Cn", "Co") or code in _BRAILLE else " "


class _Forms(dict):
    """The form of every character seen so far, by its code."""

    def __missing__(self, code: int) -> str:
        form = self[code] = _form(code)
        return form


_SPELLING = _Forms()
_MARK_OF_RUN = re.compile(f"[{''.join(_marks_of_runs())}]")
