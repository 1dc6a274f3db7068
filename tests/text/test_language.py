"""Whether a question counts as English. Contract: blend.language."""

import pytest

from cpersona_daemon.text.language import is_english


@pytest.mark.parametrize(
    "text",
    [
        "where did we put the keys of the cellar",
        "When did Inés meet Jürgen?",
        "what does Brandt & Söhne pay",
        "did Jon and Gina move",
        "MIT license die casting",
        "OPS-1427",
        "9d3fe55",
        "42",
        "",
        "🎈",
        "rotate webhook secret",
        "Los Angeles hotels",
        "Van Houten order",
        "meeting 10:00 IST or CET",
        "backup of the NAS on acme.com",
        "jest tests in co-op mode",
        "comment on invoice PR",
        "Les Paul guitar",
        "Des Moines hotels",
        "tai chi class",
        "Smith et al 2019",
        "Lake Como trip",
        "con artist film",
        "Una's birthday",
        "Mies van der Rohe",
        "de la Cruz case",
        "sudo su on the db host",
        "what is the recipe of la tarte aux pommes",
        "is it in or on",
    ],
)
def test_sentences_names_keywords_and_identifiers_count_as_english(text):
    assert is_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "wo liegt der Schlüssel vom Keller",
        "Wie heißt der neue Hausmeister in der Schule?",
        "wer hat die Telefonnummer von der Schule",
        "où se trouve la clé de la cave",
        "Qui a gagné le match hier soir",
        "¿dónde está la llave?",
        "cuándo vuelve Ana de la playa",
        "dove si trova la chiave della cantina",
        "quando chega a encomenda para o João",
        "waar ligt de sleutel van het huis",
        "kiedy jest spotkanie dla klienta",
        "toplantı ne zaman ve nerede",
        "les notes et la date",
        "Wo ist " + "x" * 2000 + " the of and which what",
        "Tôi để chìa khóa ở đâu 鍵はどこにあるのですか教えてください今すぐにお願いします",
        "猫の予防接種はいつですか",
        "会议记录放在哪里",
        "열쇠는 어디에 있나요",
        "где лежит ключ от подвала",
        "أين المفتاح",
        "API の鍵はどこにありますか",
    ],
)
def test_a_sentence_of_another_language_does_not(text):
    assert not is_english(text)
