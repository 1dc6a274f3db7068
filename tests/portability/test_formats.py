"""A format that can be imported: recognised by what a file holds, and nothing but a stream of records.

Contract: import.lines.
"""

import pytest
from house_kit import memory

from cpersona_daemon.portability.imports import run
from cpersona_daemon.portability.imports.format import Survey
from cpersona_daemon.portability.imports.records import BadRecord, Entity, MemoryRow, Mention
from cpersona_daemon.storage.memories import NewMemory


class Diary:
    """A file that begins with `diary`: a memory a line, which mentions the one entity there is."""

    def survey(self, handle, stop):
        handle.seek(0)
        lines = handle.read().split(b"\n")
        return Survey(len(lines) - 1, {(0, "entity", 1), (0, "mem", 2)}) if lines[0] == b"diary" else None

    def records(self, handle, survey, target, settings):
        handle.seek(0)
        yield 1, len(handle.readline()), Entity(1, target, "", "", "Ada", [], "", None)
        for number, line in enumerate(handle, 2):
            text = line.decode().strip()
            new = NewMemory(target, text)
            yield (
                number,
                len(line),
                MemoryRow(number, new, None, "", [], None) if text else BadRecord("it says nothing"),
            )
        yield number, 0, Mention(1, "mem", 2, "", None)


@pytest.fixture
def diaries(monkeypatch):
    monkeypatch.setattr(run, "FORMATS", (*run.FORMATS, Diary()))


def test_a_file_of_another_format_is_recognised_by_its_content_and_taken_in(house, diaries):
    path = str(house.root / "notes")
    (house.root / "notes").write_bytes(b"diary\none\n\ntwo\n")
    told = house.ask("import_memories", input_path=path, target_agent_id="a")
    assert told["ok"] and told["imported_memories"] == 2 and told["rejected"] == 1
    assert told["errors"] == ["Line 3: it says nothing"]
    assert told["associations"] == {"entities": 1, "mentions": 1, "relations": 0}
    assert house.sql("SELECT content FROM memories ORDER BY id") == [("one",), ("two",)]


def test_a_format_beside_ours_takes_nothing_of_an_export(house, diaries):
    assert house.ask("import_memories", input_path=house.write("in.jsonl", memory("one")))["imported_memories"] == 1


def test_a_file_of_no_format_is_refused_as_before(house, diaries):
    (house.root / "notes").write_bytes(b"no diary\none\n")
    told = house.ask("import_memories", input_path=str(house.root / "notes"))
    assert told["ok"] is False and "this is no export of cpersona" in told["error"]
