"""The text side of the lexical channel: what is handed to FTS5 for indexing, and what a query asks for. Pure functions.

Contract: lexical.terms, lexical.index.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache

from ..shared.stopwords import ENGLISH
from .identifiers import NONE, Spelling, closed_up, holds_humps, humps, may_be_humped, naming, own_check, spellings
from .spelling import CJK, RUN, apart, is_emoji, normalise, spelled, written

TERM_LIMIT = 64  # distinct terms of one query; a pasted page stays answerable
PREFIX_LENGTH = 6  # an identifier of this length also asks for everything it starts
IDENTIFIER_LENGTH = 128  # longer pieces (blobs, data URLs) are known by their first characters
_TOKENS_KEPT = 8_192  # what most rows hold comes again: a word with its comma, a date, a name
SHORT_WORD = 3  # below it the bare word of C++ or 5% says nothing, and only the whole piece is asked for

# A short number set into CJK text (56回, 第12版) counts something; alone it names nothing and stands in half the rows.
_COUNT = re.compile(f"(?<=[{CJK}])[0-9]{{1,3}}(?![^\\s{CJK}])|(?<![^\\s{CJK}])[0-9]{{1,3}}(?=[{CJK}])")

_QUOTES = "\"'`()[]{}<>*,;:!?“”„‚«»‹›、。「」『』【】《》〈〉〔〕¿¡…।॥،؛؟۔։،՝։።፣፤፥፦"
LEADING, TRAILING = _QUOTES, _QUOTES + "."

# A dot of an identifier must not end its token, so punctuation becomes a private-use letter, which unicode61 keeps.
# Vowels and s become such letters too: the porter stemmer then finds no ending to cut, and the stored token keeps
# every character that a prefix may ask for.
_PRIVATE = 0xE000
_TOKEN = str.maketrans(
    {c: chr(_PRIVATE + ord(c)) for c in map(chr, range(33, 127)) if not c.isalnum() or c in "aeiouys"}
)
_OTHER = chr(_PRIVATE + 0xFF)  # any punctuation beyond ASCII
OWNER = chr(0xF8FF)  # begins the token of the agent that a row belongs to; no text is spelled with it

# Plain words joined by single hyphens (dry-run, velvet-Dienst) stand in the index as their words; asking for those as a
# phrase finds them whole, and a token of its own would only make the row look longer than it is.
_COMPOUND = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_APOSTROPHE = re.compile(r"([^\W\d_]+)'([^\W\d_]+)")
_ENDINGS = frozenset(("s", "re", "ve", "ll", "d", "m"))
_ELISIONS = frozenset(("l", "d", "j", "m", "t", "s", "n", "c", "qu", "jusqu", "lorsqu", "puisqu"))

_EMOJI = re.compile("[\U0001f1e6-\U0001f1ff]{2}|.")  # two letters of a flag are one

# What people see as words of their own in a run of letters and digits that is one token: the numbers of v2.3.1, the
# digits of E4417 and of 15ms, the letters of python3, what follows 0x. Hashes have none, and neither have runs that
# change more often.
_VERSION = re.compile(r"(?<![^\W_])([^\W\d_]+)(\d+(?:\.\d+)+)")
_SEAM = re.compile(r"[^\W\d_]\d|\d[^\W\d_]")
_GLUED = re.compile(r"0x([0-9a-f]{2,})|([^0-9]+)([0-9]+)|([0-9]+)([^0-9]+)")
_HASH = re.compile(r"[0-9a-f]{7,}")
_LETTERS_APART, _DIGITS_APART = 3, 2  # shorter ones are units and counts


@dataclass(frozen=True, slots=True)
class Term:
    """One thing a query asks for: a row that holds ``token``, a token that starts with ``prefix``, or ``phrase``.

    ``token``, ``phrase`` and its ``words`` are quoted FTS5 strings, ``prefix`` is bare; '' and () mean not asked for.
    ``kind`` is "word", "bigram", "identifier" or "emoji"; ``text`` is what the person wrote, in lower case.

    ``others`` are other spellings of an identifier, ``check`` is what the text of a row must match beside the words
    ('' for nothing), ``naming`` how sure it is that it identifies something: only where spellings were asked for.
    """

    kind: str
    text: str
    token: str
    prefix: str = ""
    phrase: str = ""
    words: tuple[str, ...] = ()
    others: tuple[Spelling, ...] = ()
    check: str = ""
    naming: int = NONE

    @property
    def forms(self) -> tuple[str, ...]:
        """The FTS5 expressions that find it: the token, what begins like it, the phrase, its other spellings."""
        own = (self.token, self.prefix and quoted(self.prefix) + "*", self.phrase)
        return tuple(form for form in (*own, *(quoted(other.words) for other in self.others)) if form)


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """The terms of a query in the order written. ``stop_words`` were left out, ``beyond_limit`` terms were too many."""

    terms: tuple[Term, ...]
    stop_words: tuple[str, ...] = ()
    beyond_limit: int = 0


def index_text(text: str) -> str:
    """Return what FTS5 is fed for ``text``: its words, runs as pairs, and after them every identifier once more as one
    token.
    """
    pieces = normalise(text)
    body = apart(pieces)
    if not body.isascii():
        body = written(RUN.sub(lambda run: " ".join(_bigrams(run[0])), body))
    return f"{body} {tokens}" if (tokens := beside(pieces)) else body


def beside(normalised: str) -> str:
    """Return what is indexed of a text beside its words, between blanks: identifiers as one token, and the words glued
    into others.
    """
    pieces = normalised if normalised.isascii() else RUN.sub(" ", normalised)
    joined = holds_humps(pieces)
    return " ".join(
        [
            tokens
            for raw in pieces.split()
            if (not raw.isalpha() or joined and may_be_humped(raw)) and (tokens := _beside(raw))
        ]
    )


@lru_cache(_TOKENS_KEPT)
def _beside(raw: str) -> str:
    """Return the tokens that a piece of text, cut out between blanks, is indexed as beside its words; '' for none."""
    if (between := _without_emoji(raw)) != raw:
        return " ".join(tokens for part in between.split() if (tokens := _beside(part)))
    piece = _strip(raw)
    words = humps(piece)
    if not _is_identifier(piece) or _COMPOUND.fullmatch(piece):
        return " ".join(words)
    token = _token(piece)
    # A number is its own token where it stands among the words.
    return " ".join(([] if token.isalnum() else [token]) + _parts(piece.lower()) + words)


def _parts(piece: str) -> list[str]:
    """Return the words that are glued to others in an identifier."""
    out: list[str] = []
    if not _SEAM.search(piece):
        return out
    for letters, numbers in _VERSION.findall(piece):
        out += spelled(letters).split() * (len(letters) >= _LETTERS_APART) + spelled(numbers).split()
    for run in spelled(_VERSION.sub(" ", piece)).split():
        if _HASH.fullmatch(run) or not (glued := _GLUED.fullmatch(run)):
            continue
        hexadecimal, before, digits, number, after = glued.groups(default="")
        out += [hexadecimal] if hexadecimal else []
        out += [letters for letters in (before, after) if len(letters) >= _LETTERS_APART]
        out += [count for count in (digits, number) if len(count) >= _DIGITS_APART]
    return out


def parse_query(text: str, limit: int = TERM_LIMIT, with_spellings: bool = False) -> LexicalQuery:
    """Return the terms of a question; any text is a question, none of it is FTS5 syntax.

    A short number inside CJK text is part of its piece and is not asked for by itself.

    Emoji are left out beside words, and English stop words unless nothing else is there. Of more than ``limit``
    distinct terms the identifiers and then the first of the others stay. ``with_spellings``: identifiers are asked for
    in their other spellings too.
    """
    found: dict[str, Term] = {}
    emoji: dict[str, Term] = {}
    stops: dict[str, Term] = {}
    pieces = _COUNT.sub(" ", normalise(text))
    for piece in RUN.sub(r" \g<0> ", closed_up(pieces) if with_spellings else pieces).split():
        for term in _terms(piece, with_spellings):
            (emoji if term.kind == "emoji" else stops if term.text in ENGLISH else found).setdefault(term.text, term)
    chosen = list((found or emoji or stops).values())
    kept = chosen
    if len(chosen) > limit:
        first = sorted(range(len(chosen)), key=lambda i: (chosen[i].kind != "identifier", i))[:limit]
        kept = [chosen[i] for i in sorted(first)]
    return LexicalQuery(tuple(kept), tuple(stops) if found or emoji else (), len(chosen) - len(kept))


def _terms(piece: str, with_spellings: bool) -> list[Term]:
    if RUN.match(piece):
        if len(piece) == 1:
            return [Term("bigram", piece, quoted(written(piece)), prefix=written(piece))]
        return [Term("bigram", pair, quoted(written(pair))) for pair in _bigrams(piece)[:-1]]
    between = _without_emoji(piece)
    terms = [term for part in between.split() for term in _worded(_strip(part), with_spellings)]
    if between != piece:
        terms += [Term("emoji", emoji, _phrase(emoji)) for emoji in _EMOJI.findall(piece) if is_emoji(emoji[0])]
    return terms


def _without_emoji(piece: str) -> str:
    return piece if piece.isascii() else "".join(" " if is_emoji(char) else char for char in piece)


def _worded(piece: str, with_spellings: bool) -> list[Term]:
    word = piece.lower()
    if word not in ENGLISH and (parts := _APOSTROPHE.fullmatch(word)):
        # Caroline's and l'eau are about Caroline and eau; don't and O'Brien are names of their own.
        if parts[2] in _ENDINGS:
            word = piece = parts[1]
        elif parts[1] in _ELISIONS and len(parts[2]) > 1:
            word = piece = parts[2]
    if _is_identifier(piece):
        return [_spelled_out(piece, _identifier(piece)) if with_spellings else _identifier(piece)]
    if with_spellings and may_be_humped(piece) and humps(piece):
        return [_spelled_out(piece, Term("identifier", word, _phrase(word)))]
    return [Term("word", word, _phrase(word))] if spelled(word).strip() else []


def _spelled_out(piece: str, term: Term) -> Term:
    named = naming(piece[:IDENTIFIER_LENGTH])
    if len(piece) > IDENTIFIER_LENGTH:
        return replace(term, naming=named)
    return replace(term, others=spellings(piece), check=own_check(piece) if named else "", naming=named)


def _identifier(piece: str) -> Term:
    if _COMPOUND.fullmatch(piece):
        return Term("identifier", piece.lower(), _phrase(piece))
    token = _token(piece)
    prefix = token if len(token) >= PREFIX_LENGTH else ""
    words = spelled(piece).split()
    alone = len(words) == 1 and (len(words[0]) < SHORT_WORD or token.isalnum())
    if alone or len(piece) > IDENTIFIER_LENGTH:
        return Term("identifier", piece.lower(), quoted(token), prefix)
    return Term("identifier", piece.lower(), quoted(token), prefix, _phrase(piece), tuple(map(quoted, words)))


def _bigrams(run: str) -> list[str]:
    """Return the overlapping pairs of a run and its last character, which starts no pair.

    With the last one every character of the run starts some token, so that a single one is found as a prefix.
    """
    return [run[i : i + 2] for i in range(len(run))]


def _strip(piece: str) -> str:
    return piece.lstrip(LEADING).rstrip(TRAILING)


def _is_identifier(piece: str) -> bool:
    """Tell whether a stripped piece holds a letter or digit, and beside letters a digit or punctuation."""
    if piece.isalpha() or not spelled(piece).strip():
        return False
    return piece.isascii() or any(unicodedata.category(c)[0] in "NPS" for c in piece)


def _token(piece: str) -> str:
    token = piece[:IDENTIFIER_LENGTH].lower().translate(_TOKEN)
    if piece.isascii():
        return token
    return "".join(_letters(c) for c in token)


def _letters(char: str) -> str:
    """Return a character of an identifier's token as the words are spelled, where it is no punctuation."""
    if char.isascii() or _PRIVATE <= ord(char) <= _PRIVATE + 0xFF:
        return char
    return _OTHER if unicodedata.category(char)[0] in "PSZ" else spelled(char).strip().translate(_TOKEN)


def _phrase(text: str) -> str:
    """Return the words of a text as one FTS5 string: in this order, one after the other."""
    return quoted(" ".join(spelled(text).split()))


def quoted(text: str) -> str:
    """Return the text as one FTS5 string, in which nothing is syntax."""
    return '"' + text.replace('"', '""') + '"'
