"""`import --markdown --prune` at a terminal: what is asked before notes are deleted. Contract: import.prune."""

import json


def test_a_person_is_asked_before_notes_are_deleted(tmp_path, shared_cli, shared_terminal):
    def stored():
        return json.loads(shared_cli(["list", "--json"]).stdout)["count"]

    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a", "b"):
        (docs / f"{name}.md").write_text(f"the words of {name}")
    shared_cli(["import", "--markdown", str(docs)])
    words = ["import", "--markdown", str(docs), "--prune"]
    (docs / "b.md").unlink()
    out, status = shared_terminal(words, typed=b"n\n", columns=200)
    assert status == 1 and "Delete 1 note of 1 file gone (b.md)? [y/N]" in out and "nothing was deleted" in out
    assert stored() == 2
    assert shared_terminal(words, typed=b"y\n")[1] == 0 and stored() == 1
    # A directory without notes may be the wrong one: that is asked whoever says yes before.
    (docs / "a.md").unlink()
    out, status = shared_terminal([*words, "--yes"], typed=b"n\n", columns=200)
    assert status == 1 and "Delete what is stored of it (1 note)?" in out and stored() == 1
    assert shared_terminal(words, typed=b"y\n")[1] == 0 and stored() == 0
