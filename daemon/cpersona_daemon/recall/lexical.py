"""The text side of the lexical channel: what is handed to FTS5 for indexing, and what a query asks for. Pure functions.

Contract: contracts.md §3 "episode_fts, memory_fts".
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from .stopwords import ENGLISH

TERM_LIMIT = 64  # distinct terms of one query; a pasted page stays answerable
PREFIX_LENGTH = 6  # an identifier of this length also asks for everything it starts
IDENTIFIER_LENGTH = 128  # longer pieces (blobs, data URLs) are known by their first characters
_TOKENS_KEPT = 8_192  # what most rows hold comes again: a word with its comma, a date, a name
SHORT_WORD = 3  # below it the bare word of C++ or 5% says nothing, and only the whole piece is asked for

# Han with its iteration marks, kana with the long-vowel mark, bopomofo, jamo and hangul syllables.
_CJK = "\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U000323af"
CJK_RUN = re.compile(f"[{_CJK}]+")
# A short number set into CJK text (56回, 第12版) counts something; alone it names nothing and stands in half the rows.
_COUNT = re.compile(f"(?<=[{_CJK}])[0-9]{{1,3}}(?![^\\s{_CJK}])|(?<![^\\s{_CJK}])[0-9]{{1,3}}(?=[{_CJK}])")
# Dashes and ellipses that writers set without spaces stand between words, never inside a name.
_LOOSE = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "\u2013": "-", "—": " ", "―": " ", "→": " ", "•": " ", "·": " ", "\0": " "})
_ANY_LOOSE = re.compile("[" + "".join(map(chr, _LOOSE)) + "]")  # translating a long text costs more than all the rest; few hold one

_QUOTES = "\"'`()[]{}<>*,;:!?“”„‚«»‹›、。「」『』【】《》〈〉〔〕¿¡"
LEADING, TRAILING = _QUOTES, _QUOTES + "."

# A dot of an identifier must not end its token, so punctuation becomes a private-use letter, which unicode61 keeps.
# Vowels and s become such letters too: the porter stemmer then finds no ending to cut, and the stored token keeps
# every character that a prefix may ask for.
_PRIVATE = 0xE000
_TOKEN = str.maketrans({c: chr(_PRIVATE + ord(c)) for c in map(chr, range(33, 127)) if not c.isalnum() or c in "aeiouys"})
_OTHER = chr(_PRIVATE + 0xFF)  # any punctuation beyond ASCII
_LETTER_OR_DIGIT = re.compile(r"[^\W_]+")

# Plain words joined by single hyphens (dry-run, velvet-Dienst) stand in the index as their words; asking for those as a
# phrase finds them whole, and a token of its own would only make the row look longer than it is.
_COMPOUND = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_APOSTROPHE = re.compile(r"([^\W\d_]+)'([^\W\d_]+)")
_ENDINGS = frozenset(("s", "re", "ve", "ll", "d", "m"))
_ELISIONS = frozenset(("l", "d", "j", "m", "t", "s", "n", "c", "qu", "jusqu", "lorsqu", "puisqu"))


@dataclass(frozen=True, slots=True)
class Term:
    """One thing a query asks for: a row that holds ``token``, a token that starts with ``prefix``, or ``phrase``.

    ``token``, ``phrase`` and its ``words`` are quoted FTS5 strings, ``prefix`` is bare; '' and () mean not asked for.
    ``kind`` is "word", "bigram" or "identifier"; ``text`` is what the person wrote, in lower case.
    """

    kind: str
    text: str
    token: str
    prefix: str = ""
    phrase: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """The terms of a query in the order written. ``stop_words`` were left out, ``beyond_limit`` terms were too many."""

    terms: tuple[Term, ...]
    stop_words: tuple[str, ...] = ()
    beyond_limit: int = 0


def index_text(text: str) -> str:
    """Return what FTS5 is fed for ``text``: NFKC, CJK runs as bigrams, and every identifier once more as one token."""
    body = normalise(text)
    if body.isascii():
        pieces = body.split()
    else:
        pieces = CJK_RUN.sub(" ", body).split()
        body = CJK_RUN.sub(lambda run: f" {' '.join(_bigrams(run[0]))} ", body)
    tokens = [token for raw in pieces if not raw.isalpha() and (token := _indexed_token(raw))]
    return f"{body} {' '.join(tokens)}" if tokens else body


@lru_cache(_TOKENS_KEPT)
def _indexed_token(raw: str) -> str:
    """Return the token that a piece of text, cut out between blanks, is indexed as beside its words; '' for none."""
    piece = _strip(raw)
    if not _is_identifier(piece) or _COMPOUND.fullmatch(piece):
        return ""
    token = _token(piece)
    return "" if token.isalnum() else token  # a number is its own token where it stands among the words


def parse_query(text: str, limit: int = TERM_LIMIT) -> LexicalQuery:
    """Return the terms of a question; any text is a question, none of it is FTS5 syntax.

    A short number inside CJK text is part of its piece and is not asked for by itself.

    Stop words are left out unless nothing else is there. Of more than ``limit`` distinct terms the identifiers
    and then the first of the others stay.
    """
    found: dict[str, Term] = {}
    stops: dict[str, Term] = {}
    for piece in CJK_RUN.sub(lambda run: f" {run[0]} ", _COUNT.sub(" ", normalise(text))).split():
        for term in _terms(piece):
            (stops if term.text in ENGLISH else found).setdefault(term.text, term)
    chosen = list((found or stops).values())
    kept = chosen
    if len(chosen) > limit:
        first = sorted(range(len(chosen)), key=lambda i: (chosen[i].kind != "identifier", i))[:limit]
        kept = [chosen[i] for i in sorted(first)]
    return LexicalQuery(tuple(kept), tuple(stops) if found else (), len(chosen) - len(kept))


def normalise(text: str) -> str:
    """Return the text in NFKC with one apostrophe and one dash, so that spellings that look alike are alike."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        if _ANY_LOOSE.search(text):
            text = text.translate(_LOOSE)
    return text.replace("\0", " ")


def _terms(piece: str) -> list[Term]:
    if CJK_RUN.match(piece):
        if len(piece) == 1:
            return [Term("bigram", piece, quoted(piece), prefix=piece)]
        return [Term("bigram", pair, quoted(pair)) for pair in _bigrams(piece)[:-1]]
    piece = _strip(piece)
    word = piece.lower()
    if word not in ENGLISH and (parts := _APOSTROPHE.fullmatch(word)):
        # Caroline's and l'eau are about Caroline and eau; don't and O'Brien are names of their own.
        if parts[2] in _ENDINGS:
            word = piece = parts[1]
        elif parts[1] in _ELISIONS and len(parts[2]) > 1:
            word = piece = parts[2]
    if _is_identifier(piece):
        return [_identifier(piece)]
    return [Term("word", word, quoted(word))] if _LETTER_OR_DIGIT.search(word) else []


def _identifier(piece: str) -> Term:
    if _COMPOUND.fullmatch(piece):
        return Term("identifier", piece.lower(), quoted(piece))
    token = _token(piece)
    prefix = token if len(token) >= PREFIX_LENGTH else ""
    words = _LETTER_OR_DIGIT.findall(piece)
    alone = len(words) == 1 and (len(words[0]) < SHORT_WORD or token.isalnum())
    if alone or len(piece) > IDENTIFIER_LENGTH:
        return Term("identifier", piece.lower(), quoted(token), prefix)
    return Term("identifier", piece.lower(), quoted(token), prefix, quoted(piece), tuple(map(quoted, words)))


def _bigrams(run: str) -> list[str]:
    """Return the overlapping pairs of a run of CJK characters and its last character, which starts no pair.

    With the last one every character of the run starts some token, so that a single one is found as a prefix.
    """
    return [run[i : i + 2] for i in range(len(run))]


def _strip(piece: str) -> str:
    return piece.lstrip(LEADING).rstrip(TRAILING)


def _is_identifier(piece: str) -> bool:
    """Tell whether a stripped piece holds a letter or digit, and beside letters a digit or punctuation."""
    if piece.isalpha() or not _LETTER_OR_DIGIT.search(piece):
        return False
    return piece.isascii() or any(unicodedata.category(c)[0] in "NPS" for c in piece)


def _token(piece: str) -> str:
    token = piece[:IDENTIFIER_LENGTH].lower().translate(_TOKEN)
    if piece.isascii():
        return token
    return "".join(_OTHER if unicodedata.category(c)[0] in "PSZ" else c for c in token)


def quoted(text: str) -> str:
    """Return the text as one FTS5 string, in which nothing is syntax."""
    return '"' + text.replace('"', '""') + '"'
