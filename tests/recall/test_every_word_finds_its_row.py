"""A word that stands in a row finds the row: in every script, in every mode, without an embedder and with the builtin
one.

Contract: lexical.terms, lexical.index.
"""

from __future__ import annotations

import asyncio
import unicodedata

import pytest
from words_kit import MODES, WordStore

from cpersona_daemon.life.lifecycle import close_context, open_context
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.recall import pipeline
from cpersona_daemon.recall.types import Query
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage import backlog, memories
from cpersona_daemon.storage.memories import NewMemory

# A sentence of each script. Where words are not set apart by spaces, those that a reader sees are named beside it.
SCRIPTS = {
    "Latin": "Ångström über den naïven Café Straße smørrebrød Łódź cœur",
    "Vietnamese": "Tiếng Việt được viết bằng chữ Quốc ngữ",
    "Turkish": "ağacın altında ılık IŞIK İzmir çağrı",
    "Greek": "η Αθήνα είναι όμορφη ΟΔΟΣ ὀδός",
    "Cyrillic": "Андрей чинит ёлочный принтер йогурт ЇЖАК",
    "Armenian": "ինչպե՞ս ես այսօր բարեկամ",
    "Georgian": "საქართველო არის ლამაზი ᲥᲐᲚᲐᲥᲘ",
    "Hebrew": "שָׁלוֹם עולם צה״ל בְּרֵאשִׁית",
    "Arabic": "كِتَابٌ جَدِيدٌ على الطاولة أحمد",
    "Persian": "می‌خواهم به خانه بروم ۱۲۳۴",
    "Urdu": "یہ اردو زبان کا جملہ ہے",
    "Syriac": "ܫܠܡܐ ܥܠܡܐ ܟܬܒܐ",
    "Thaana": "ދިވެހި ބަސް ލިޔުން",
    "NKo": "ߒߞߏ ߞߊ߲ ߛߓߍ",
    "Devanagari": "किताब मेज़ पर है हिन्दी ५६७८",
    "Bengali": "আমি বাংলায় গান গাই",
    "Gurmukhi": "ਪੰਜਾਬੀ ਭਾਸ਼ਾ ਲਿਖੋ",
    "Gujarati": "ગુજરાતી ભાષા સરસ છે",
    "Oriya": "ଓଡ଼ିଆ ଭାଷା ଲେଖ",
    "Tamil": "தமிழ் மொழி இனிது",
    "Telugu": "తెలుగు భాష బాగుంది",
    "Kannada": "ಕನ್ನಡ ಭಾಷೆ ಚೆನ್ನಾಗಿದೆ",
    "Malayalam": "മലയാളം ഭാഷ നല്ലത്",
    "Sinhala": "සිංහල භාෂාව ලස්සනයි",
    "Tibetan": "བོད་ཡིག་ནི་ཡག་པོ་རེད།",
    "Ethiopic": "ሰላም፡ዓለም መጽሐፍ ነው።",
    "Cherokee": "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ꮳꮃꭹ",
    "Inuktitut": "ᐃᓄᒃᑎᑐᑦ ᐅᖃᐅᓯᖅ",
    "Ogham": "ᚑᚌᚐᚋ ᚉᚏᚐᚅᚅ",
    "Runic": "ᚠᚢᚦᚨᚱᚲ ᚱᚢᚾᛟ",
    "Mongolian": "ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ",
    "Tifinagh": "ⵜⴰⵎⴰⵣⵉⵖⵜ ⴰⵡⴰⵍ",
    "Coptic": "ⲧⲙⲛⲧⲣⲙⲛⲕⲏⲙⲉ ⲡⲥⲁϫⲓ",
    "Glagolitic": "ⰳⰾⰰⰳⱁⰾⰹⱌⰰ ⰽⱀⰹⰳⰰ",
    "Adlam": "𞤀𞤣𞤤𞤢𞤥 𞤆𞤵𞤤𞤢𞤪",
    "Osage": "𐓏𐓘𐓻𐓘𐓻𐓟 𐓣𐓟",
    "Ol Chiki": "ᱥᱟᱱᱛᱟᱲᱤ ᱯᱟᱹᱨᱥᱤ",
    "Meetei Mayek": "ꯃꯩꯇꯩ ꯂꯣꯟ",
    "Cham": "ꨌꩌ ꨀꨇꩉ",
    "Chakma": "𑄌𑄋𑄴𑄟𑄳𑄦 𑄞𑄌𑄴",
    "Gothic": "𐌲𐌿𐍄𐌹𐍃𐌺 𐍂𐌰𐌶𐌳𐌰",
    "Deseret": "𐐔𐐇𐐝𐐀𐐡𐐇𐐓 𐐼𐐯𐑅𐐨𐑉𐐯𐐻",
    "Braille": "⠓⠑⠇⠇⠕ ⠺⠕⠗⠇⠙",
    "Bopomofo": "ㄅㄆㄇ ㄓㄨㄧㄣ",
    "emoji": "party 🎉 tonight ❤️ with 👩‍🚀 and 🇩🇪 👍🏽",
}
RUNS = {
    "Chinese": ("放在E4417目录里，然后重启服务器", ["E4417", "目录", "重启", "服务器", "放"]),
    "Japanese": ("東京タワーの近くでガソリンを買った", ["東京", "タワー", "ガソリン", "買"]),
    "Korean": ("고양이가사료를먹는다", ["고양이", "사료", "먹는다"]),
    "Thai": ("ภาษาไทยง่ายมากรุ่น๒๓ครับ", ["ภาษา", "ไทย", "ง่าย", "๒๓", "23"]),
    "Lao": ("ພາສາລາວງາມຫຼາຍ", ["ພາສາ", "ລາວ", "ງາມ"]),
    "Khmer": ("ភាសាខ្មែរពិរោះណាស់", ["ភាសា", "ខ្មែរ", "ណាស់"]),
    "Burmese": ("မြန်မာစကားကိုပြောတယ်", ["မြန်မာ", "စကား", "ပြော"]),
    "Javanese": ("ꦧꦱꦗꦮꦲꦤꦏ꧀", ["ꦧꦱ", "ꦗꦮ"]),
    "Balinese": ("ᬩᬲᬩᬮᬶ", ["ᬩᬲ", "ᬩᬮᬶ"]),
    "Tai Le": ("ᥖᥭᥰᥖᥬᥳᥑᥨᥒᥰ", ["ᥖᥭᥰ", "ᥑᥨᥒᥰ"]),
    "Yi": ("ꆈꌠꁱꂷꉙꌊ", ["ꆈꌠ", "ꁱꂷ"]),
}
EDGES = "".join(chr(c) for c in range(0x3000) if unicodedata.category(chr(c))[0] in "PZ")
SEPARATORS = dict.fromkeys(map(ord, "་፡"), " ")


def words_of(sentence: str) -> list[str]:
    """The words of a sentence as a reader sees them."""
    return [word for piece in sentence.translate(SEPARATORS).split() if (word := piece.strip(EDGES))]


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A store with a row in every script, each twice over as the first of its own agent, among rows in other words."""
    store = WordStore(tmp_path_factory.mktemp("scripts"))
    store.rows = {}
    store.fill()
    for name, text in (SCRIPTS | {name: text for name, (text, _) in RUNS.items()}).items():
        (store.rows[name],) = store.add(text)
    yield store
    store.close()


def spellings(word: str) -> set[str]:
    """A word as others may write it: composed or not, in capitals or not."""
    return {
        word,
        unicodedata.normalize("NFC", word),
        unicodedata.normalize("NFD", word),
        word.upper(),
        word.lower(),
        word.casefold(),
    }


def without_marks(word: str) -> str:
    """A word as one writes it who leaves out accents and the vowel signs that may be left out."""
    return "".join(
        c
        for c in unicodedata.normalize("NFD", word)
        if not 0x300 <= ord(c) <= 0x36F and not 0x591 <= ord(c) <= 0x5C7 and not 0x64B <= ord(c) <= 0x655
    )


@pytest.mark.parametrize("mode", MODES)
def test_every_word_of_every_script_finds_its_row(house, mode):
    missed = [
        (name, word)
        for name, text in SCRIPTS.items()
        for word in words_of(text)
        for asked in (spellings(word) if mode == "blend" else {word})
        if house.rows[name] not in house.refs(asked, mode)
    ]
    assert not missed


@pytest.mark.parametrize("mode", MODES)
def test_every_word_inside_a_text_without_spaces_finds_its_row(house, mode):
    assert not [
        (name, word)
        for name, (_, asked) in RUNS.items()
        for word in asked
        if house.rows[name] not in house.refs(word, mode)
    ]


@pytest.mark.parametrize("name", ["Latin", "Vietnamese", "Greek", "Cyrillic", "Hebrew", "Arabic"])
def test_marks_that_a_writer_may_leave_out_may_be_left_out(house, name):
    assert not [word for word in words_of(SCRIPTS[name]) if house.rows[name] not in house.refs(without_marks(word))]


def test_marks_that_a_row_leaves_out_may_be_written(words):
    (row,) = words.add("كتاب جديد على الطاولة")
    assert words.refs("كِتَابٌ") == words.refs("جَدِيدٌ") == [row]


NAMED = [
    ("Андрей чинит принтер", "Андрей"),
    ("η Αθήνα είναι όμορφη", "αθηνα"),
    ("كِتَابٌ جَدِيدٌ", "كتاب"),
    ("ILIK su", "ılık"),
    ("Işık kapalı", "ışık"),
    ("放在E4417目录里", "E4417"),
    ("放在E4417目录里", "4417"),
    ("release party🎉tonight", "🎉"),
    ("v2.3.1 is out", "2.3.1"),
    ("v2.3.1 is out", "2.3"),
    ("see PROJ-1042 now", "1042"),
    ("用PROJ1042吧", "1042"),
    ("value 0xDEADBEEF read", "DEADBEEF"),
    ("value 0xDEADBEEF read", "0xdeadbeef"),
    ("written in python3.11", "python"),
    ("it took 15ms", "15"),
    ("uses sha256", "256"),
    ("12factor app", "factor"),
    ("co\u00adoperate", "cooperate"),
    ("ᾠδή τις", "ωδη"),
    ("م\u0640\u0640رحبا", "مرحبا"),
    ("非常に②番", "2"),
    ("col·lecció", "lecció"),
    ("snake_case_name", "case"),
    ("a/b-c.d", "c"),
    ("the naïveté", "naivete"),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("text", "asked"), NAMED)
def test_a_word_as_people_see_it_finds_its_row_first(words, text, asked, mode):
    words.fill()
    (row,) = words.add(text)
    assert words.refs(asked, mode)[:1] == [row]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("commit 9d3fe55ab01c", "55"),
        ("commit 9d3fe55ab01c", "fe"),
        ("the kitten slept", "kit"),
        ("h264 stream", "h2"),
        ("3rd of 20th", "th"),
        ("version 12.3.1", "v2.3.1"),
    ],
)
def test_a_piece_of_a_word_is_no_word(words, text, asked):
    words.add(text, "another row with k8s")
    assert words.refs(asked) == []


def test_a_text_that_stands_nearly_whole_in_a_word_finds_its_row_when_nothing_else_does(words):
    (row,) = words.add("the postgresql cluster")
    assert words.refs("postgresq") == [row]
    assert words.recall("postgresq").rows[0].match_reason["coverage"] == pytest.approx(0.9**3)


def test_an_episode_is_found_by_the_same_words(words):
    episode = words.episode("Андрей чинит принтер", "версия2.3")
    assert words.refs("андреи") == words.refs("2.3") == [episode]


def test_emoji_beside_words_are_not_asked_for(words):
    (row, other) = words.add("the harvest party", "a launch 🎉")
    assert words.refs("harvest 🎉") == [row] and words.refs("🎉") == [other] and words.refs("the 🎉") == [other]


def test_a_row_that_a_word_found_is_weighed_whatever_its_meaning(words):
    rows = words.add("the heliotrope stands by the wall", "turbine")
    result = words.recall("heliotrope turbine saddle compass meadow granite orchard violin lantern harbour")
    assert result.considered == 2 and set(words.refs("heliotrope turbine")) == set(rows)


WITH_J = (
    "Андрей Алексей Сергей Николай Дмитрий Юрий Василий Григорий Матвей Тимофей Валерий Анатолий Геннадий Евгений "
    "Аркадий Виталий"
).split()
WITHOUT_J = "Иван Олег Анна Мария Ольга Павел Роман Борис Вера Нина Игорь Лев".split()
DEEDS = (
    "чинит принтер",
    "готовит отчёт",
    "едет в отпуск",
    "пишет письмо заказчику",
    "проверяет резервные копии",
    "ведёт совещание",
)


def test_with_the_builtin_embedder_names_with_j_come_first_as_names_without_do(tmp_path):
    async def asked() -> dict[str, bool]:
        settings = load(
            {"HOME": str(tmp_path)},
            {"db_path": str(tmp_path / "t.db"), "embedding_mode": "builtin", "calibrate_on_model_change": False},
        )
        ctx = await open_context(settings, places(settings, {"HOME": str(tmp_path)}), SystemClock())
        try:
            texts = {name: f"{name} {DEEDS[n % len(DEEDS)]}" for n, name in enumerate(WITH_J + WITHOUT_J)}
            vectors, model = await ctx.embedding.embed_documents(list(texts.values()), 60.0)

            def write(tx):
                for text, vector in zip(texts.values(), vectors, strict=True):
                    row = memories.insert(tx, NewMemory("kit", text))
                    backlog.attach_vector(tx, MEMORY, row, Embedded(vector, model))

            await ctx.db.write(write)
            found = {name: await pipeline.recall(ctx, settings, Query(name, Scope("kit"), 3)) for name in texts}
            return {name: [row.text for row in result.rows[:1]] == [texts[name]] for name, result in found.items()}
        finally:
            await close_context(ctx)

    first = asyncio.run(asked())
    assert [name for name, right in first.items() if not right] == []
