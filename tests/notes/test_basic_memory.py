"""What a note of basic-memory says beside its text. Contract: import.formats."""

import pytest

from cpersona_cli.notes.basic_memory import said
from cpersona_cli.notes.reading import Directory, Limits, notes


@pytest.mark.parametrize(
    "text, found",
    [
        ("- [tech] We use SQLite #db #fast (since 2024)", {"tags": ["db", "fast"], "observations": ["tech"]}),
        ("- [ ] a task #x\n- [x] done\n- [/] half\n- [00:11] said #y\n- [a link](http://x)", {}),
        ("- [tech] one\n* [idea] two\n1. [tech] three", {"observations": ["tech", "idea"]}),
        ("- implements [[Search Design]]", {"relations": [{"type": "implements", "target": "Search Design"}]}),
        ("- 'builds on' [[A]] (partly)", {"relations": [{"type": "builds on", "target": "A", "context": "partly"}]}),
        ("- some prose about [[A]]", {"relations": [{"type": "links_to", "target": "A"}]}),
        ("see [[A]] and [[B]], [[A]] again", {"relations": [{"type": "links_to", "target": t} for t in "AB"]}),
        ("- part_of [[A]] and [[B]]", {"relations": [{"type": "links_to", "target": t} for t in "AB"]}),
        ("```\n- implements [[A]]\n```\n`[[B]]` #no", {}),
        ("words", {}),
    ],
)
def test_observations_and_relations_are_read_from_lists(text, found):
    assert said(text) == found


def test_they_stand_in_the_metadata_and_stay_in_the_text(tmp_path):
    text = "---\ntitle: T\ntags: [a]\npermalink: x/t\n---\n# T\n\n- [tech] words #b #a\n- part_of [[U]]"
    (note,) = notes(Directory(str(tmp_path)), "t.md", text, 0.0, Limits(16_000, 8_000), "basic-memory")
    assert note["content"] == "T\n\n- [tech] words #b #a\n- part_of [[U]]"
    metadata = note["metadata"]
    assert metadata["tags"] == ["a", "b"] and metadata["observations"] == ["tech"]
    assert metadata["relations"] == [{"type": "part_of", "target": "U"}]
    assert metadata["front_matter"] == {"permalink": "x/t"}


def test_what_has_no_room_in_the_metadata_is_left_out_and_said(tmp_path):
    text = "\n".join(f"- part_of [[{n} {'x' * 100}]]" for n in range(100))
    made = notes(Directory(str(tmp_path)), "t.md", text, 0.0, Limits(16_000, 8_000), "basic-memory")
    assert made[0]["metadata"]["metadata_cut"] is True and "relations" not in made[0]["metadata"]
