"""Whether a question is in English: what the larger part of the builtin model understands.

A handful of words decides, those that hardly any sentence of a language does without. A question of names and keywords
alone counts as English: it then is compared by the whole vector and by its multilingual part, whichever is the better.

Pure functions of texts.

Contract: blend.language.
"""

from __future__ import annotations

import re

from ..shared.stopwords import ENGLISH

# Function words of the languages in Latin letters that the multilingual part was trained on, by language; less those
# that English notes hold as words, names, zones or abbreviations (die, MIT, IST, OS, NAS, .com).
_OTHERS = {
    "German": """
        das dem der des ein eine einem einen einer eines und oder nicht kein keine keinen sind waren wird werden
        wurde wurden habe haben hatte hatten ich du sie wir ihr mich mir uns euch mein meine dein unser unsere sein
        seine wie wann wer wem wen wo wohin woher warum wieso weshalb welche welchem welchen welcher welches von vom
        zum zur zu für auf bei beim nach über unter ohne gegen wegen seit noch schon auch nur sehr wenn dass weil
        aber gibt muss kann soll""",
    "French": """
        le la les une des du de pour et sont était dans sur avec que qui quoi qu dont où quand pourquoi combien quel
        quelle quelles quels il ils elles nous vous je tu notre votre leur cette pas au chez ont avons avez avait
        fait faut peut doit""",
    "Spanish": """
        el la los las una unos unas de del en con para por que qué quién quiénes cuándo cuando dónde donde cómo como
        cuánto cuánta cuántos cuántas cuál cuáles es está están fue han se sus le muy pero porque más también este
        esta estos ese esa""",
    "Italian": """
        il la gli uno una di del della dei delle dello alla nel nella dal dalla sul sulla con che cosa quando perché
        quanto quanta quanti quante quale quali è sono hanno più anche questo questa mio suo""",
    "Portuguese": """
        uma uns umas da das de para por que quem quando onde como quanto quantos qual quais é são foi está estão têm
        não mais também seu sua meu minha ao aos pela pelo""",
    "Dutch": """
        de het een van en voor niet zijn wie wat waar wanneer waarom hoeveel welke welk ik je jij hij zij wij ze
        deze dit naar bij uit aan ook nog geen heeft hebben wordt worden""",
    "Polish": """
        się nie są był była było że jak kiedy gdzie kto czy ile który która które dla przez przy mój jego jej ich""",
    "Turkish": """
        ve bir bu şu nerede nasıl kaç hangi zaman için ile mı mu mü yok olan olarak daha çok değil""",
}
# Words of English phrases and titles too (Les Paul, con artist, Lake Como): two say as much as one of the others. Those
# of names (Los Angeles, van der Rohe) say nothing by themselves.
_SHARED_IN_PHRASES = frozenset("como con des et hangi les pour una uno".split())
OF_NAMES = frozenset("da de del der di du el la las le los van von".split())
FOREIGN = frozenset(word for words in _OTHERS.values() for word in words.split()) - ENGLISH - OF_NAMES
# A word that is common in another language too says nothing for English.
_SHARED = frozenset("a am an as d do had has he i in is it m me no not on or over s so t that to was we will".split())
_PROOF = ENGLISH - _SHARED
_WORDS = re.compile(r"[^\W\d_]+")
_READ = 1000  # characters: whoever pastes a whole text has shown its language by then
_FIRST_OTHER_LETTER = 0x250  # Latin letters lie below


def is_english(text: str) -> bool:
    """Return False for a text in another script, or one with more function words of other languages than of English."""
    text = text[:_READ]
    letters = [c for c in text if c.isalpha()]
    if 2 * sum(ord(c) >= _FIRST_OTHER_LETTER for c in letters) > len(letters):
        return False
    words = [word.lower() for word in _WORDS.findall(text)]
    foreign = sum(0.5 if word in _SHARED_IN_PHRASES else 1.0 for word in words if word in FOREIGN)
    if foreign:
        foreign += 0.5 * sum(word in OF_NAMES for word in words)
    return foreign < 1 or foreign <= sum(word in _PROOF for word in words)
