"""A file of notes as memories, and what becomes of those that are there. Contract: import.markdown, import.ids."""

import os

import pytest

from cpersona_cli.notes.planning import plan
from cpersona_cli.notes.reading import LARGEST_FILE, Directory, Limits, NotRead, decoded, notes, read

LIMITS = Limits(16_000, 8_000)
LONG = "# Guide\n\nintro\n\n## Install\n\n" + "word " * 250 + "\n\n## Install\n\nagain"


@pytest.fixture
def directory(tmp_path):
    return Directory(str(tmp_path))


def made(directory, text, path="a.md", changed=0.0, limits=LIMITS):
    return notes(directory, path, text, changed, limits)


def test_a_short_file_is_one_memory_whose_id_is_its_path(directory):
    (note,) = made(directory, "---\ntitle: T\ntags: [x]\nkey: v\n---\n# Head\n\nwords", "sub/a.md")
    assert note["id"] == f"{directory.prefix}sub/a.md" and note["content"] == "Head\n\nwords"
    assert note["source"] == {"type": "File", "id": f"{directory.name}/sub/a.md", "name": "T"}
    digest = note["metadata"].pop("digest")
    assert note["metadata"] == {
        "path": "sub/a.md",
        "directory": directory.real,
        "tags": ["x"],
        "title": "T",
        "front_matter": {"key": "v"},
    }
    assert len(digest) == 16 and note["timestamp"] == "1970-01-01T00:00:00+00:00"


def test_sections_of_a_long_file_have_ids_of_their_own(directory):
    ids = [note["id"].removeprefix(directory.prefix) for note in made(directory, LONG)]
    assert ids == ["a.md", "a.md#Guide > Install", "a.md#Guide > Install (2)"]
    assert made(directory, LONG)[1]["metadata"]["section"] == "Guide > Install"
    assert made(directory, LONG)[1]["content"].startswith("Guide > Install\n\nword word")


@pytest.mark.parametrize(
    "path, text, title",
    [
        ("espresso-machine.md", "words", "espresso-machine"),
        ("coffee/README.md", "words", "coffee"),
        ("coffee/index.md", "---\ntitle: A  b\n---\nwords", "A b"),
        ("x.md", "# Own\nwords", "Own"),
    ],
)
def test_a_file_is_called_by_its_heading_its_title_or_its_name(directory, path, text, title):
    assert made(directory, text, path)[0]["content"] == f"{title}\n\nwords"


def test_line_ends_and_a_mark_of_the_byte_order_change_nothing(directory):
    plain = LONG.encode()
    for data in (plain.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + plain, plain.replace(b"\n", b"\r")):
        assert made(directory, decoded("a.md", data)) == made(directory, LONG)


def test_the_digest_follows_what_the_file_says_and_not_when_it_was_written(directory):
    def digest(text, **more):
        return made(directory, text, **more)[0]["metadata"]["digest"]

    assert digest("x") == digest("x", changed=1e9)
    assert len({digest(text) for text in ("x", "y", "---\ndate: 2024-01-01\n---\nx", "---\na: b\n---\nx")}) == 4


def test_two_directories_of_one_name_have_nothing_in_common(tmp_path):
    one, two = (Directory(str(tmp_path / name / "docs")) for name in "ab")
    assert one.prefix != two.prefix and one.name == two.name == "docs"
    os.symlink(tmp_path / "a", tmp_path / "link")
    (tmp_path / "a" / "docs").mkdir(parents=True)
    assert Directory(str(tmp_path / "link" / "docs")).prefix == one.prefix


def test_ids_have_room_and_say_their_file(directory):
    path = "d/" * 150 + "%#.md"
    for note in made(directory, LONG.replace("Install", "I" * 300), path):
        assert len(note["id"]) <= 256 and directory.file_of(note["id"]) == directory.file_id(path)
    assert directory.path_of(directory.file_id("a#b%.md")) == "a#b%.md"
    assert directory.file_of(f"{directory.file_id('a#b.md')}#A > B # c") == directory.file_id("a#b.md")


def test_front_matter_that_has_no_room_is_left_out_and_said(directory):
    (note,) = made(directory, f"---\ntitle: T\nbig: {'x' * 9000}\n---\nwords")
    assert "front_matter" not in note["metadata"] and note["metadata"]["metadata_cut"] is True
    assert note["metadata"]["title"] == "T"
    deep = "+++\na = " + "[" * 70 + "]" * 70 + "\n+++\nwords"
    assert made(directory, deep)[0]["metadata"]["metadata_cut"] is True


@pytest.mark.parametrize(
    "data, why", [(b"caf\xe9", "no UTF-8 (byte 3)"), (b"a\0b", "NUL"), (b"x" * (LARGEST_FILE + 1), "larger than 1 MiB")]
)
def test_what_is_no_text_says_what_it_is(tmp_path, directory, data, why):
    (tmp_path / "a.md").write_bytes(data)
    with pytest.raises(NotRead) as refused:
        read(directory, "a.md", LIMITS)
    assert why in str(refused.value)


def test_a_pipe_and_a_link_are_not_waited_for_nor_followed(tmp_path, directory):
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "a.md").write_text("words")
    os.symlink("a.md", tmp_path / "link.md")
    for name in ("pipe.md", "link.md", "gone.md"):
        with pytest.raises(NotRead):
            read(directory, name, LIMITS)
    assert read(directory, "link.md", LIMITS, follow=True)[0]["content"] == "link\n\nwords"


def kept(note, **more):
    return {"id": note["id"], "ref": "mem:1", "locked": False, "own": True, "digest": note["metadata"]["digest"]} | more


def test_what_is_to_be_done_with_what_is_there(directory):
    here = [*made(directory, LONG), *made(directory, "b", "b.md"), *made(directory, "c", "c.md")]
    gone, locked = made(directory, "x", "gone.md")[0], made(directory, "x", "locked.md")[0]
    there = [
        kept(here[0]),
        kept(here[1], digest="other"),
        kept(here[3], digest=None, locked=True, ref="mem:2"),
        kept(gone),
        kept(locked, locked=True, ref="mem:3"),
        kept(gone, id=directory.file_id("hidden/x.md")),
        kept(gone, id=directory.file_id("global.md"), own=False),
        kept(gone, id=f"{directory.prefix}a.md#Guide > Before"),
    ]
    found = plan(directory, here, there, lambda path: path.startswith("hidden/"))
    assert found.new == [here[2], here[4]] and found.changed == [here[1]] and found.same == [here[0]["id"]]
    assert found.replaced == [f"{directory.prefix}a.md#Guide > Before"] and found.gone == [gone["id"]]
    assert found.locked == ["mem:2", "mem:3"]
