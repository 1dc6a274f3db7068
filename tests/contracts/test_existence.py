"""A yes-or-no question answered by words. Contract: exists.words."""

import pytest
from contract_kit import episode, memory


def test_the_row_that_holds_the_text_itself_is_named_before_one_that_holds_its_words(reader):
    whole, words = reader.load(
        memory("the deploy branch is release", at=0), memory("a branch that nobody would deploy", at=1)
    )
    assert reader.own("exists", text="deploy branch") == {"exists": True, "ref": whole, "match": "text"}
    assert reader.own("exists", text="nobody branch") == {"exists": True, "ref": words, "match": "words"}


def test_all_words_must_stand_in_one_row(reader):
    reader.load(memory("the deploy log"), memory("the release branch"))
    assert reader.own("exists", text="deploy branch") == {"exists": False}


@pytest.mark.parametrize(
    "text", ["CVE-2024-3094", "9f8e7d6", "src/a.b/c.py", "don't", "C++", "foo_bar", "東京", "***", "Café", "cafe\u0301"]
)
def test_identifiers_signs_and_scripts_are_found(reader, text):
    reader.load(memory("CVE-2024-3094 in 9f8e7d6c5b, see src/a.b/c.py; don't use C++ for foo_bar; 東京都 *** café"))
    assert reader.own("exists", text=text)["exists"] is True


def test_it_sees_what_its_axes_see_and_no_other_agent(reader):
    reader.load(memory("walnut", project_id="p", channel="c", source={"type": "User", "id": "u9"}))
    assert reader.own("exists", text="walnut", project_id="p", channel="c", source_id="u9")["exists"] is True
    for outside in ({"project_id": "q"}, {"channel": "d"}, {"source_id": "u8"}, {"project_id": ""}):
        assert reader.own("exists", text="walnut", **outside) == {"exists": False}
    assert reader.ask("exists", agent_id="somebody-else", text="walnut") == {"exists": False}


def test_an_episode_answers_where_no_memory_does(reader):
    (ref,) = reader.load(episode("we chose walnut", keywords="furniture"))
    assert reader.own("exists", text="furniture walnut")["ref"] == ref


def test_without_the_word_index_the_text_itself_is_looked_for(reader):
    reader.load(memory("the deploy branch"))
    assert reader.own("exists", {"fts_enabled": False}, text="deploy bra") == {
        "exists": True,
        "ref": reader.own("list_memories")["memories"][0]["ref"],
        "match": "text",
    }
    assert reader.own("exists", {"fts_enabled": False}, text="branch deploy") == {"exists": False}


@pytest.mark.parametrize("text", ["", "  ", "x" * 8001, "a\0b"])
def test_a_text_that_asks_nothing_is_refused(reader, text):
    assert reader.own("exists", text=text)["ok"] is False and reader.code == "invalid_params"
