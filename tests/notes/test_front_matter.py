"""What stands before a Markdown text. Contract: import.matter."""

import pytest

from cpersona_cli.notes.front_matter import instant, split, tags


@pytest.mark.parametrize(
    "yaml, front",
    [
        ("a: text", {"a": "text"}),
        ("a: 'it''s'\nb: \"x: \\\"y\\\"\"", {"a": "it's", "b": 'x: "y"'}),
        ("a: true\nb: False\nc: ~\nd:\ne: yes", {"a": True, "b": False, "c": None, "d": None, "e": "yes"}),
        ("a: 42\nb: -7\nc: 007\nd: 1.10\ne: 1e3", {"a": 42, "b": -7, "c": "007", "d": "1.10", "e": "1e3"}),
        ("a: x # said\n# all\nb: x#y", {"a": "x", "b": "x#y"}),
        ("a: [x, 'y, z', 3]\nb: []\nc: [x,\n  y]", {"a": ["x", "y, z", 3], "b": [], "c": ["x", "y"]}),
        ("a:\n  - x\n  - y z\nb:\n- 1\n- two", {"a": ["x", "y z"], "b": [1, "two"]}),
        ("a: |\n  one\n    two\nb: >-\n  one\n  two\n\n  three", {"a": "one\n  two", "b": "one two\n\nthree"}),
        ("a: one\n  two", {"a": "one two"}),
        ("a: Title: the rest", {"a": "Title: the rest"}),
        ("'a b': 1\nc d: 2", {"a b": 1, "c d": 2}),
        # What it is not read as stays as its text.
        ("a:\n  b: 1\n  c: [2]", {"a": "b: 1\n  c: [2]"}),
        ("a: {b: 1}\nc: &x y\nd: !t z\ne: [[1]]", {"a": "{b: 1}", "c": "&x y", "d": "!t z", "e": "[[1]]"}),
        ("a:\n  - b: 1\n    c: 2", {"a": "- b: 1\n    c: 2"}),
        ("a: 'open", {"a": "'open"}),
    ],
)
def test_yaml_as_front_matter_is_written(yaml, front):
    assert split(f"---\n{yaml}\n---\nbody") == (front, "body")


@pytest.mark.parametrize(
    "text, front, body",
    [
        ("---\na: 1\n...\n\n\nbody", {"a": 1}, "body"),
        ("--- \na: 1\n---", {"a": 1}, ""),
        ("+++\na = 1\nb = 2024-01-02\n[c]\nd = nan\n+++\nbody", {"a": 1, "b": "2024-01-02", "c": {"d": "nan"}}, "body"),
        ("+++\nno toml\n+++\nbody", {"front_matter": "no toml"}, "body"),
        ("---\na: 1\nno end", {}, "---\na: 1\nno end"),
        ("---\n\nwords between rules\n\n---\nbody", {}, "---\n\nwords between rules\n\n---\nbody"),
        ("---\n---\nbody", {}, "body"),
        ("words\n---\na: 1\n---", {}, "words\n---\na: 1\n---"),
    ],
)
def test_where_front_matter_begins_and_ends(text, front, body):
    assert split(text) == (front, body)


@pytest.mark.parametrize(
    "front, name, at",
    [
        ({"date": "2024-03-01"}, "x.md", "2024-03-01T00:00:00+00:00"),
        ({"date": "2024-03-01 10:00:00 +0200"}, "x.md", "2024-03-01T10:00:00+02:00"),
        ({"date": "2024-03-01T10:00Z"}, "x.md", "2024-03-01T10:00:00+00:00"),
        ({"date": "some day", "created": "2024-03-02"}, "x.md", "2024-03-02T00:00:00+00:00"),
        ({"date": True, "created": ["2024-03-02"]}, "x.md", ""),
        ({}, "2024-03-03-retro.md", "2024-03-03T00:00:00+00:00"),
        ({"date": "2024-03-01"}, "2024-03-03.md", "2024-03-01T00:00:00+00:00"),
        ({}, "2024-13-03.md", ""),
        ({}, "2024-03-033.md", ""),
    ],
)
def test_when_a_note_is_from(front, name, at):
    assert instant(front, name) == at


@pytest.mark.parametrize(
    "value, found",
    [
        (["a", 1, "#b", None, ""], ["a", "1", "b"]),
        ("a, two words", ["a", "two words"]),
        ("#a b", ["a", "b"]),
        (None, []),
        ({"a": 1}, []),
    ],
)
def test_tags_are_a_list_or_words(value, found):
    assert tags({"tags": value}) == found
