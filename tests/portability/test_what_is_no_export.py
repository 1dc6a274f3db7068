"""A file that is no export: one line says what it seems to be and which command takes it. Contract: import.lines."""

import gzip
import io
import json
import sqlite3
import tarfile
import zipfile

import apsw
import pytest
from house_kit import memory

from cpersona_daemon.storage import schema


def tar_of(name):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo(name))
    return out.getvalue()


def zip_of(name):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr(name, "x")
    return out.getvalue()


EXPORT = json.dumps({"_type": "header", "version": "cpersona-export/1.1"}).encode() + b"\n"
PROSE = "The harbour closes at nine, and nobody, not even the pilot, has a key.\nAsk the night watch.\n"
CASES = {
    "empty": (b"", "empty", "name a file that `cpersona export` wrote"),
    "blank": (b"\n \n", "empty", "cpersona export"),
    "array": (b'[{"content": "a"}, {"content": "b"}]', "JSON array", "jq -c '.[]' FILE | cpersona store --jsonl -"),
    "array over lines": (b'[\n  "a",\n  "b"\n]\n', "JSON array", "cpersona store --jsonl -"),
    "objects": (b'{"content": "a", "id": "1"}\n{"content": "b"}\n', "JSON", "cpersona store --jsonl FILE"),
    "strings": (b'"a"\n"b"\n', "JSON", "cpersona store --jsonl FILE"),
    "other objects": (b'{"text": "a"}\n', "JSON", "cpersona store --jsonl"),
    "one object": (b'{\n "notes": [1, 2]\n}\n', "JSON", "jq"),
    "csv": (b'id,text,when\n1,hello,today\n2,"a, b",now\n', "CSV", "cpersona store --jsonl -"),
    "semicolons": (b"id;text\n1;hello\n2;there\n", "CSV", "cpersona store --jsonl -"),
    "tsv": (b"id\ttext\n1\thello\n", "tab", "cpersona store --jsonl -"),
    "markdown": (b"# Notes\n\n- [a link](https://example.org)\n", "Markdown", "cpersona import --markdown FILE"),
    "markdown link": (
        b"[a link](https://example.org) and more\n\n## Title\n",
        "Markdown",
        "cpersona import --markdown FILE",
    ),
    "prose": (PROSE.encode(), "plain text", "cpersona store < FILE"),
    "html": (b"<!doctype html><p>x", "HTML or XML", "cpersona store < FILE"),
    "latin-1": ("Grüße\n".encode("latin-1"), "UTF-8", "iconv"),
    "utf-16": ("plain".encode("utf-16"), "UTF-16", "iconv"),
    "gzipped export": (gzip.compress(EXPORT), "compressed", "gzip -dc FILE | cpersona import -"),
    "gzipped notes": (gzip.compress(PROSE.encode()), "compressed", "gzip -dc FILE"),
    "backup": (tar_of("manifest.json"), "backup", "cpersona restore FILE"),
    "gzipped backup": (gzip.compress(tar_of("manifest.json")), "backup", "cpersona restore FILE"),
    "tar": (tar_of("notes.txt"), "tar archive", "tar -xf FILE"),
    "broken gzip": (b"\x1f\x8b\x08\x00" + b"\xff" * 40, "compressed", "gzip"),
    "xz": (b"\xfd7zXZ\0" + bytes(40), "xz", "xz -dc FILE"),
    "bzip2": (b"BZh91AY&SY", "bzip2", "bzip2 -dc FILE"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(10), "zstd", "zstd -dc FILE"),
    "zip": (zip_of("a.txt"), "zip", "unzip FILE"),
    "pdf": (b"%PDF-1.7\n", "PDF", "pdftotext FILE - | cpersona store -"),
    "binary": (bytes(range(256)) * 10, "binary", ""),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dry_run", [False, True])
def test_one_line_says_what_a_file_seems_to_be_and_what_takes_it(house, name, dry_run):
    data, seems, command = CASES[name]
    path = house.root / "other"
    path.write_bytes(data)
    answer = house.ask("import_memories", input_path=str(path), dry_run=dry_run)
    assert answer["ok"] is False and house.code == "refused", answer
    assert (
        seems in answer["error"]
        and command in answer["error"]
        and "\n" not in answer["error"]
        and "nothing was imported" in answer["error"]
    ), answer


def test_databases_are_told_apart(house):
    path = house.root / "ours.db"
    schema.migrate(apsw.Connection(str(path)), 0.0)
    ours = house.ask("import_memories", input_path=str(path))
    assert "database of cpersona" in ours["error"] and "cpersona --db FILE export" in ours["error"]
    for name, script, seems in (
        ("peer", "CREATE TABLE memories (id); CREATE TABLE schema_version (version)", "export it there"),
        ("other", "CREATE TABLE t (x)", "SQLite"),
    ):
        path = house.root / f"{name}.db"
        with sqlite3.connect(path) as conn:
            conn.executescript(script)
        before = path.read_bytes()
        answer = house.ask("import_memories", input_path=str(path))
        assert answer["ok"] is False and seems in answer["error"], answer
        assert path.read_bytes() == before and not [p for p in house.root.iterdir() if p.name.startswith(f"{name}.db-")]


def test_an_export_of_an_agent_without_rows_is_one_all_the_same(house):
    path = house.write("in.jsonl", json.loads(EXPORT))
    answer = house.ask("import_memories", input_path=path)
    assert answer["ok"] is True and answer["imported_memories"] == 0


def test_the_first_line_says_whether_a_file_is_an_export(house):
    answer = house.ask("import_memories", input_path=house.write("in.jsonl", "", memory("x"), "prose", "# a title"))
    assert answer["ok"] is True and (answer["imported_memories"], answer["rejected"]) == (1, 2)


@pytest.mark.parametrize(
    ("before", "said"), [(["{broken"], "line 1 is no record"), (["", "a", '{"_type": 7}'], "lines 1 to 3 are no")]
)
def test_records_behind_lines_of_another_kind_are_taken_by_a_command_that_is_named(house, before, said):
    answer = house.ask("import_memories", input_path=house.write("in.jsonl", *before, memory("x"), "prose"))
    assert answer["ok"] is False and house.sql("SELECT count(*) FROM memories") == [(0,)]
    assert said in answer["error"] and f"tail -n +{len(before) + 1} FILE | cpersona import -" in answer["error"], answer
    assert "errors" not in answer


def test_what_begins_otherwise_is_not_read_to_its_end_for_a_record(house):
    answer = house.ask("import_memories", input_path=house.write("in.jsonl", *["a line"] * 1500, memory("x")))
    assert answer["ok"] is False and "plain text" in answer["error"]


def test_a_large_file_without_a_line_is_no_matter(house):
    path = house.root / "large"
    with open(path, "wb") as handle:
        handle.truncate(100_000_000)
    answer = house.ask("import_memories", input_path=str(path))
    assert answer["ok"] is False and "binary" in answer["error"]
