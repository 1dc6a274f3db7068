"""Whether a question is a sentence or the keywords of a search box. Pure functions of texts.

Function words tell, those of English and of the other languages that are known: keywords have none. Where a script has
no blanks between words, its length tells.

Contract: blend.keywords.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..shared.stopwords import ENGLISH
from .language import FOREIGN, OF_NAMES
from .spelling import RUN

_FUNCTION = ENGLISH | FOREIGN | OF_NAMES
_ASKING = frozenset(
    """
    who whom whose what when where which why how is are was were do does did can could should has have had will would
    wer wem wen wann wo wohin woher wie warum wieso welche welcher welches gibt
    qui que quoi quand où comment pourquoi combien quel quelle est quién qué cuándo dónde cómo cuál cuánto
    chi che cosa dove perché quale quanto quem onde como qual hoe wat waar wanneer waarom welk kto gdzie kiedy jak
    """.split()
)
_MARK = re.compile(r"[?？؟]\s*$")
_WORDS = re.compile(r"[^\W\d_]+")
KEYWORDS_MOST, PHRASE_MOST = 4, 6  # content words
RUN_MOST = 4  # characters without blanks between words
FOREIGN_KEYWORDS_MOST = 2
_LAST_LATIN = "\u024f"
_READ = 1000


def content_words(words: Iterable[str]) -> list[str]:
    """Return those of some words, in lower case, that are no function words of a known language."""
    return [word for word in words if word not in _FUNCTION]


def sentence_form(text: str) -> float:
    """Return 1 for a sentence, 0 for keywords, 0.5 for what may be either."""
    text = text[:_READ]
    if _MARK.search(text) or sum(map(len, RUN.findall(text))) > RUN_MOST:
        return 1.0
    words = [word.lower() for word in _WORDS.findall(text)]
    function = sum(word in _FUNCTION for word in words)
    return _form(words, function, len(words) - function)


def _form(words: list[str], function: int, content: int) -> float:
    if any(word[0] > _LAST_LATIN for word in words):  # its function words are not known here
        return 0.0 if content <= FOREIGN_KEYWORDS_MOST else 1.0
    if function > 1 or content > PHRASE_MOST or words[:1] and words[0] in _ASKING and content:
        return 1.0
    return 0.5 if function or content > KEYWORDS_MOST else 0.0
