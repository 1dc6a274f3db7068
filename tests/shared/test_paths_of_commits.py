"""What a commit's note says beside the message, and how both are told apart. Contract: git.paths, store.embeds."""

import pytest

from cpersona_daemon.shared import commit_notes
from cpersona_daemon.shared.commit_notes import files_line, parts
from cpersona_daemon.text.embedded import memory_text

ID = "0123456789abcdef0123456789abcdef01234567"
END = f"\n\ncommit {ID}"


@pytest.mark.parametrize(
    "content, expected",
    [
        (f"Fix it{END}", ("Fix it", "", END)),
        (f"Fix it\n\nfiles: a.py, b/c.py{END}", ("Fix it", "\n\nfiles: a.py, b/c.py", END)),
        (f"files: a.py{END}", ("", "files: a.py", END)),
        (f"commit {ID}", ("", "", f"commit {ID}")),
        (f"Fix\n\nfiles: x\n\nthat is all{END}", ("Fix\n\nfiles: x\n\nthat is all", "", END)),
        (f"Fix\n\nfiles: x\n\nfiles: a.py{END}", ("Fix\n\nfiles: x", "\n\nfiles: a.py", END)),
        ("what was \n\ncommit 9d3fe55", ("what was \n\ncommit 9d3fe55", "", "")),
        (f"Fix it\n\nfiles: a.py{END} and more", (f"Fix it\n\nfiles: a.py{END} and more", "", "")),
        ("", ("", "", "")),
    ],
)
def test_a_note_is_told_apart_into_message_paths_and_id(content, expected):
    assert parts(content) == expected
    assert "".join(parts(content)) == content


def test_what_is_embedded_of_a_note_is_its_message():
    assert memory_text(f"Fix the race\n\nfiles: src/start.py{END}") == "Fix the race"
    assert memory_text(f"commit {ID}") == f"commit {ID}"


def test_a_commit_of_fifty_files_lists_most_of_them_and_one_of_many_fewer_in_proportion():
    paths = [f"src/package_{n}/module_{n}.py" for n in range(400)]
    assert [files_line(paths[:total], total, 16_000).count("/") // 2 for total in (20, 50, 100, 400)] == [20, 31, 15, 3]


def test_a_commit_of_five_hundred_files_lists_those_that_fit_and_says_how_many_more():
    paths = [f"src/package_{n}/module_{n}.py" for n in range(500)]
    line = files_line(paths[:100], 500, 16_000)
    listed, _, more = line.removeprefix("\n\nfiles: ").rpartition(" and ")
    assert len(line) <= commit_notes.FILES_LENGTH / 10 and listed.split(", ") == paths[: listed.count(",") + 1]
    assert more == f"{500 - len(listed.split(', '))} more"


@pytest.mark.parametrize(
    "paths, room, expected",
    [
        (["a.py"], 16_000, "\n\nfiles: a.py"),
        (["two\nlines.py", "b"], 16_000, "\n\nfiles: two lines.py, b"),
        ([], 16_000, ""),
        (["deep/" * 300 + "x.py"], 16_000, ""),
        (["some/file.py"], 200, ""),
    ],
)
def test_paths_that_do_not_fit_leave_no_line(paths, room, expected):
    assert files_line(paths, len(paths), room) == expected
