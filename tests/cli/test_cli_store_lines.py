"""`store --jsonl`: the names that its keys may have, rows that were read, cut texts, and what a person sees.

Contract: store.lines.
"""

from __future__ import annotations

import json

import pytest

from cpersona_cli.commands import _outcomes


def outcomes(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def row(content, **more):
    return json.dumps({"content": content, **more})


def test_keys_are_called_as_the_flags_are_or_as_the_wire_calls_them(shared_cli, shared_daemon):
    lines = [
        row(
            "by flags",
            agent="keys",
            project="p",
            channel="c",
            id="k1",
            at="2026-03-01",
            lock=True,
            **{"on-conflict": "skip", "check-secrets": "warn"},
        ),
        row(
            "by the wire",
            agent_id="keys",
            project_id="p",
            msg_id="k2",
            timestamp="2026-03-01T00:00:00+00:00",
            locked=True,
        ),
    ]
    done = shared_cli(["store", "--jsonl", "-"], input="\n".join(lines))
    assert [o["result"] for o in outcomes(done)] == ["stored", "stored"], done.stdout
    rows = shared_daemon.call("list_memories", {"agent_id": "keys"})[0]["memories"]
    assert [(r["project_id"], r["channel"], r["msg_id"], r["timestamp"], r["locked"]) for r in rows] == [
        ("p", "", "k2", "2026-03-01T00:00:00+00:00", True),
        ("p", "c", "k1", "2026-03-01T00:00:00+00:00", True),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (row("x", agent="a", agent_id="b"), "differ"),
        (row("x", id="a", msg_id="b"), "differ"),
        (row("x", colour=1), "unknown key 'colour'"),
        (row("x", at="noon"), "noon"),
        (row("x", content_truncated=True), "preview"),
        (row("[Episode] x", ref="ep:3"), "episode archive"),
        ('{"_type": "memory", "content": "x"}', "cpersona import"),
        ('{"memories": [1]}', "not an object"),
        (row("x", id=7), "id is text"),
    ],
)
def test_a_line_that_cannot_be_meant_is_rejected_with_what_to_do(shared_cli, line, said):
    done = shared_cli(["store", "--jsonl", "-"], input=line)
    assert done.returncode == 1 and said in outcomes(done)[0]["reason"]


@pytest.mark.parametrize("read", [["list", "--json"], ["get", "--json"]])
def test_what_list_and_get_print_is_stored_back(shared_cli, shared_daemon, read):
    agent = f"{read[0]}s"
    for n, text in enumerate(("one", "two", "long " * 4_000)):
        shared_cli(
            ["store", "-", "--agent", agent, "--id", f"{agent}-{n}", "--source", "user", "--at", "2026-03-01"],
            input=text,
        )
    refs = [r["ref"] for r in shared_daemon.call("list_memories", {"agent_id": agent})[0]["memories"]]
    printed = shared_cli([*read[:1], *(refs if read[0] == "get" else []), "--json", "--agent", agent]).stdout
    again = outcomes(shared_cli(["store", "--jsonl", "-", "--agent", agent], input=printed))
    assert [(o["line"], o["row"], o["result"], o["ref"]) for o in again] == [
        (1, n, "skipped", ref) for n, ref in enumerate(refs, 1)
    ]
    assert not any("content_differs" in o for o in again)
    # Rows of a list bring their agent along; those of get are whose the option says.
    copied = printed.replace(f'"agent_id": "{agent}"', f'"agent_id": "{agent}-copy"')
    done = shared_cli(["store", "--jsonl", "-", "--agent", f"{agent}-copy"], input=copied)
    assert [o["result"] for o in outcomes(done)] == [
        "stored"
    ] * 3 and "3 stored, 0 skipped, 0 rejected of 3 rows; 1 of the texts is cut" in done.stderr
    wanted = ("content", "msg_id", "source", "timestamp", "metadata", "locked", "cut")
    before, after = (
        [
            {key: r.get(key) for key in wanted}
            for r in shared_daemon.call("list_memories", {"agent_id": a})[0]["memories"]
        ]
        for a in (agent, f"{agent}-copy")
    )
    assert after == before[::-1]


def test_cut_texts_are_counted_and_said(shared_cli):
    lines = [row("a" * 16_001, agent="cuts"), row("b" * 20_000, agent="cuts"), row("short", agent="cuts")]
    done = shared_cli(["store", "--jsonl", "-"], input="\n".join(lines))
    assert [o.get("cut") for o in outcomes(done)] == [
        {"kept": 16_000, "of": 16_001},
        {"kept": 16_000, "of": 20_000},
        None,
    ]
    assert (
        done.returncode == 0 and done.stderr == "3 stored, 0 skipped, 0 rejected of 3 lines; 2 of the texts are cut\n"
    )
    totals = json.loads(
        shared_cli(["store", "--jsonl", "-", "--json"], input="\n".join(lines)).stdout.splitlines()[-1]
    )["totals"]
    assert (totals["lines"], totals["skipped"], totals["cut"]) == (3, 3, 2)


@pytest.mark.parametrize(
    "command", [["store", "-"], ["update", "mem:1", "-"], ["episode", "archive", "-"], ["profile", "set", "-"]]
)
def test_a_cut_says_how_much_of_how_much_and_may_be_refused(shared_cli, command):
    ref = shared_cli(["store", "a row to be updated"]).stdout.strip()
    command = [ref if word == "mem:1" else word for word in command]
    text = " ".join(command) + " x" * 10_000
    kept = "2,000" if command[0] == "profile" else r"16,000"
    refused = shared_cli([*command, "--fail-if-cut"], input=text)
    assert (
        refused.returncode == 1
        and refused.stdout == ""
        and f"{len(text):,} characters" in refused.stderr
        and refused.stderr.count("\n") == 1
    )
    done = shared_cli(command, input=text)
    assert done.returncode == 0 and f"kept {kept} of {len(text):,} characters" in done.stderr.replace(
        "15,999", "16,000"
    ).replace("1,999", "2,000")


def test_a_row_that_is_read_whole_says_that_it_is_a_beginning(shared_cli):
    ref = shared_cli(["store", "-"], input="e" * 18_000).stdout.strip()
    done = shared_cli(["get", ref, "--raw"])
    assert (
        done.stdout == "e" * 16_000 + "\n"
        and done.stderr == f"{ref} is the beginning of a longer text: kept 16,000 of 18,000 characters\n"
    )
    assert shared_cli(["get", ref, "--raw", "-q"]).stderr == ""


def test_lines_whose_text_would_be_cut_may_be_refused(shared_cli, shared_daemon):
    done = shared_cli(
        ["store", "--jsonl", "-", "--fail-if-cut", "--agent", "whole"],
        input="\n".join((row("c" * 16_001), row("short"))),
    )
    assert (
        done.returncode == 1
        and [o["result"] for o in outcomes(done)] == ["rejected", "stored"]
        and "16,001" in outcomes(done)[0]["reason"]
    )
    assert shared_daemon.call("list_memories", {"agent_id": "whole"})[0]["count"] == 1


def test_on_a_terminal_a_file_is_a_bar_and_what_went_wrong_and_no_scroll_of_json(on_terminal, home, tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join([row(f"text {n}") for n in range(200)] + ["nope"] * 7 + [row("x", colour=1)]))
    out, status = on_terminal(["store", "--jsonl", str(path)], columns=200)
    assert status == 1 and '{"line"' not in out and "208" in out  # the bar knows how many lines there are
    assert out.count("rejected: ") == _outcomes.FAULTS_SHOWN and "line 201: rejected: not JSON" in out
    assert "8 were rejected, the first 5 are shown" in out and "200 stored, 0 skipped, 8 rejected of 208 lines" in out
    out, status = on_terminal(["store", "--jsonl", str(path), "--json"], columns=200)
    assert out.count('{"line"') == 208


def test_lines_that_are_typed_are_answered_one_by_one(on_terminal):
    out, status = on_terminal(["store", "--jsonl", "-"], columns=200, typed=b'"typed"\n"typed"\n\x04')
    assert status == 0 and "line 1: stored mem:1" in out and "line 2: skipped (duplicate content) mem:1" in out


def test_an_import_says_cut_texts(shared_cli, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(
        "\n".join(
            json.dumps({"_type": "memory", "agent_id": "imported", "content": text}) for text in ("d" * 17_000, "short")
        )
    )
    left_out = shared_cli(["import", str(path), "--fail-if-cut"])
    assert left_out.returncode == 1 and "imported_memories\t1\n" in left_out.stdout and "17,000" in left_out.stderr
    done = shared_cli(["import", str(path)])
    assert "cut\t1\n" in done.stdout and "16,000 of 17,000 characters are kept" in done.stderr
