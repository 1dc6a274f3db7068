"""The headings of a Markdown text and its pieces. Contract: import.markdown."""

import pytest

from cpersona_cli.notes.outline import headings, pieces

FENCED = "# One\n```sh\n# no heading\n```\n~~~~\n## nor this\n~~~\n~~~~\n## Two"
COMMENT = "# One\n<!-- a comment\n# no heading\n-->\n<pre>\n# nor this\n</pre>\n## Two"


@pytest.mark.parametrize(
    "text, found",
    [
        ("# One\n## Two ##\n#Three\n####### Seven\n#\n    # code", [(1, "One"), (2, "Two")]),
        ("One\n===\nTwo\n---\n", [(1, "One"), (2, "Two")]),
        ("Two\nlines\n---", [(2, "Two lines")]),
        (FENCED, [(1, "One"), (2, "Two")]),
        (COMMENT, [(1, "One"), (2, "Two")]),
        ("```\n# a fence without an end\n", []),
        ("```a `b` c```\n# One", [(1, "One")]),
        ("- item\n---\n> said\n---\n\n***\n---\n|a|\n---\n\n    code\n---", []),
        ("para\n- item\nlazy\n---", []),
        ("# See [the docs](http://x) {#see}\n## `code` <a name='x'></a>", [(1, "See the docs"), (2, "`code`")]),
        ("```\n```\nafter\n-----", [(2, "after")]),
        ("x" * 201 + "\n---", []),
        ("  # Indented\n\t# code", [(1, "Indented")]),
    ],
)
def test_headings_are_what_a_reader_sees_as_headings(text, found):
    assert [heading[:2] for heading in headings(text.split("\n"))] == found


def cut(text, window=40, room=1000, title="file"):
    return [(" > ".join(path), body) for path, body in pieces(text, title, window, room)]


def test_a_text_that_fits_is_one_piece_under_its_title():
    assert cut("# Guide\n\nshort\n\n## Install\napt\n") == [("Guide", "short\n\n## Install\napt")]
    assert cut("just words") == [("file", "just words")]
    assert cut("\n \n") == cut("") == []


GUIDE = """intro of some length that fits alone

## Install

words before the parts of it

### Linux

apt install

### Mac

brew install

## Use

short
"""


def test_a_longer_text_is_a_piece_a_section_under_its_headings():
    assert cut(f"# Guide\n\n{GUIDE}", window=60) == [
        ("Guide", "intro of some length that fits alone"),
        ("Guide > Install", "words before the parts of it"),
        ("Guide > Install > Linux", "apt install"),
        ("Guide > Install > Mac", "brew install"),
        ("Guide > Use", "short"),
    ]


def test_a_section_that_fits_with_all_below_it_is_one_piece():
    found = cut(f"# Guide\n\n{GUIDE}", window=100)
    assert (
        "Guide > Install",
        "words before the parts of it\n\n### Linux\n\napt install\n\n### Mac\n\nbrew install",
    ) in found
    assert len(found) == 3


def test_the_window_is_of_bytes():
    assert len(cut("# T\n\n" + "a" * 28 + "\n\n## U\nb", window=40)) == 1
    assert len(cut("# T\n\n" + "ä" * 28 + "\n\n## U\nb", window=40)) == 2


def test_a_text_without_a_heading_over_all_of_it_goes_by_its_title():
    assert [path for path, _ in cut(GUIDE, window=60)][:2] == ["file", "file > Install"]
    two = "# A\n" + "a" * 30 + "\n# B\n" + "b" * 30
    assert [path for path, _ in cut(two)] == ["file > A", "file > B"]
    assert cut("## B\nb\n# A\na\n" + "c " * 30)[0] == ("file > B", "b")


def test_what_is_longer_than_the_store_keeps_is_parted_between_paragraphs():
    text = "one paragraph\n\nand another\n\nand a third one"
    assert [body for _, body in cut(text, window=10, room=40)] == ["one paragraph\n\nand another", "and a third one"]
    parts = [body for _, body in cut("x" * 100, window=10, room=40)]
    assert "".join(parts) == "x" * 100 and max(map(len, parts)) <= 40


def test_headings_alone_are_kept_and_a_section_without_words_is_none():
    assert cut("# A\n## B\n## C\n") == [("A", "## B\n## C")]
    assert cut("# A\n" + "a" * 40 + "\n## B\n## C\nwords") == [("A", "a" * 40), ("A > C", "words")]
