"""What quotes and a hyphen say in a question: words wanted as they stand, and words that no row may hold. Pure
functions.

A pasted command looks like a question that leaves words out, so that whatever may be a command line leaves out nothing.

Contract: question.quoted, question.without.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..shared.stopwords import ENGLISH
from .command_lines import is_option, is_typed_at_a_prompt
from .spelling import RUN, apart, normalise, words, written
from .terms import Term, parse_query, quoted

MOST = 8  # quoted phrases and words left out: a pasted page has more, and means none of them

# A quote opens before and closes behind what is no letter or digit: 5" and O'Brien quote nothing.
_QUOTED = re.compile(
    r'(?<!\w)"(?!\s)([^"\n]{1,400})(?<!\s)"(?!\w)|[“„‟]([^“”„‟"\n]{1,400})[”“]|«([^«»\n]{1,400})»|「([^「」\n]{1,400})」'
)
_LEFT_OUT = re.compile(r"-([^\W\d_]{3,})[,;.?!]?")
# What joins two words where a hyphen stands for half of one (Haupt -und Nebeneingang).
_JOINING = frozenset("und oder bzw wie plus och eller och ili".split())


@dataclass(frozen=True, slots=True)
class Typed:
    """A question as it was meant: ``text`` without what it leaves out, what of that is quoted, and what ``without``
    keeps rows back, each as the person wrote it. ``only_quoted``: no word stands beside the quoted ones.
    """

    text: str
    quoted: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    only_quoted: bool = False


def read(question: str) -> Typed:
    """Return what is quoted in a question, and what it leaves out."""
    found = list(_quotations(question))
    if len(found) > MOST:
        return Typed(question)
    outside = _blanked(question, [place for place, _ in found])
    left_out = _left_out(question, outside, found)
    text = _without(question, [place for place, _ in left_out])
    kept = tuple(
        dict.fromkeys(phrase for place, phrase in found if not any(_lies_in(place, out) for out, _ in left_out))
    )
    rest = _blanked(outside, [place for place, _ in left_out])
    only = bool(kept) and not re.search(r"\w", rest)
    return Typed(text, kept, tuple(dict.fromkeys(word for _, word in left_out)), only)


Place = tuple[int, int]


def _quotations(question: str) -> Iterator[tuple[Place, str]]:
    for found in _QUOTED.finditer(question):
        phrase = " ".join(next(filter(None, found.groups())).split())
        if words(phrase).strip():
            yield found.span(), phrase


def _left_out(question: str, outside: str, quotations: list[tuple[Place, str]]) -> list[tuple[Place, str]]:
    """Return the places and words of what a question leaves out; nothing where it may be a command line.

    ``outside`` is the question with its quoted phrases blanked: what they hold is no option.
    """
    quoted_from = {begin: (end, phrase) for (begin, end), phrase in quotations}
    pieces = [(found.span(), found[0]) for found in re.finditer(r"\S+", outside)]
    texts = [piece for _, piece in pieces]
    out: list[tuple[Place, str]] = []
    for at, ((begin, end), piece) in enumerate(pieces):
        word = _word_left_out(piece)
        if piece == "-" and begin + 1 in quoted_from:
            end, word = quoted_from[begin + 1]
        elif _is_of_a_command(word, texts, at):
            return []
        if word and question[:begin].strip():
            out.append(((begin, end), word))
    return out if len(out) <= MOST else []


def _is_of_a_command(word: str, pieces: list[str], at: int) -> bool:
    """Tell whether a piece speaks for a command line; ``word`` is what it seems to leave out, '' for none."""
    if word:
        return is_option(word.lower(), pieces[at - 1].lower() if at else "", pieces[0].lower(), at)
    return not _LEFT_OUT.fullmatch(pieces[at]) and is_typed_at_a_prompt(pieces[at])


def _word_left_out(piece: str) -> str:
    """Return the word of a piece like -word, '' where it is none to leave out."""
    found = _LEFT_OUT.fullmatch(piece)
    if found is None:
        return ""
    word = found[1]
    usual = word.islower() or word.istitle() or word.isupper() or not word.isascii()
    return word if usual and word.lower() not in ENGLISH and word.lower() not in _JOINING else ""


def _blanked(text: str, places: list[Place]) -> str:
    for begin, end in places:
        text = text[:begin] + " " * (end - begin) + text[end:]
    return text


def _without(text: str, places: list[Place]) -> str:
    return " ".join(_blanked(text, places).split()) if places else text


def _lies_in(place: Place, other: Place) -> bool:
    return other[0] <= place[0] and place[1] <= other[1]


def phrase(text: str) -> Term | None:
    """Return the term of words that stand next to each other in this order; None for one word, or for what the index
    cannot find as a phrase (a single character of a text without spaces).
    """
    pieces = apart(normalise(text)).split()
    tokens: list[str] = []
    for piece in pieces:
        if RUN.match(piece) and len(piece) == 1:
            return None
        tokens += [piece[at : at + 2] for at in range(len(piece) - 1)] if RUN.match(piece) else [piece]
    if len(tokens) < 2:
        return None
    tokens = [written(token) for token in tokens]
    return Term("phrase", " ".join(text.lower().split()), quoted(" ".join(tokens)), words=tuple(map(quoted, tokens)))


def term_of(text: str) -> Term | None:
    """Return the one term of a quoted or left out text; None where it has none."""
    found = phrase(text)
    if found is not None:
        return found
    return next(iter(parse_query(text).terms), None)


def as_written(word: str) -> Term | None:
    """Return the term of an option: the word with its hyphen, and nothing that its letters alone would find."""
    terms = parse_query(f"-{word}").terms
    return Term("identifier", terms[0].text, terms[0].token) if len(terms) == 1 else None
