"""`cpersona recall` and `context`, with `--deep`, so that a row passes by one word of the question.

Contract: recall.order, output.streams, output.shapes.
"""

import json

import pytest


@pytest.fixture
def notes(daemon):
    """Four memories that share the word `deploy`, the third the best match for `deploy branch`."""
    texts = [
        "deploy on Fridays is forbidden",
        "the deploy log lives in /var/log/deploy.log",
        "deploy branch\nis release\t(never main)",
        "deploy keys rotate in May",
    ]
    for n, text in enumerate(texts):
        assert (
            daemon.call(
                "store", {"agent_id": "default", "content": text, "id": f"k{n}", "timestamp": "2026-03-01T00:00:00Z"}
            )[0]["result"]
            == "stored"
        )
    return texts


def records(done):
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_the_best_row_is_the_last_one_and_has_rank_1(run_cli, notes):
    done = run_cli(["recall", "deploy branch", "--deep"])
    rows = records(done)
    assert done.returncode == 0 and [row[0] for row in rows] == ["4", "3", "2", "1"]
    assert rows[-1][1] == "mem:3" and rows[-1][3] == "blend"


def test_off_a_terminal_a_row_is_one_line_of_seven_fields_without_ansi(run_cli, notes):
    done = run_cli(["recall", "deploy branch", "--deep"])
    assert all(len(row) == 7 for row in records(done))
    assert records(done)[-1][6] == "deploy branch\\nis release\\t(never main)"
    assert "\x1b" not in done.stdout and done.stderr.count("\n") == 1  # the advisory: no embedder


def test_control_characters_of_a_text_never_reach_the_output_raw(run_cli, daemon):
    daemon.call("store", {"agent_id": "default", "content": "red \x1b[31m alert\u2028next"})
    done = run_cli(["recall", "alert", "--deep"])
    assert done.stdout.count("\n") == 1 and "\\x1b[31m" in done.stdout and "\\u2028next" in done.stdout


def test_best_first_turns_the_rows_round(run_cli, notes):
    assert [row[0] for row in records(run_cli(["recall", "deploy branch", "--deep", "--best-first"]))] == [
        "1",
        "2",
        "3",
        "4",
    ]


def test_json_is_the_answer_with_its_order_beside_it(run_cli, daemon, notes):
    plain = daemon.call("recall", {"agent_id": "default", "query": "deploy branch", "deep": True})[0]
    assert json.loads(run_cli(["recall", "deploy branch", "--deep", "--json"]).stdout) == {
        **plain,
        "order": "best_last",
    }
    turned = json.loads(run_cli(["recall", "deploy branch", "--deep", "--json", "--best-first"]).stdout)
    assert turned["messages"] == plain["messages"][::-1] and turned["order"] == "best_first"


def test_fields_choose_the_columns_and_nul_keeps_the_text(run_cli, notes):
    assert (
        run_cli(["recall", "deploy branch", "--deep", "-n", "1", "--fields", "id,ref,truncated"]).stdout
        == "k2\tmem:3\tfalse\n"
    )
    assert (
        run_cli(["recall", "deploy branch", "--deep", "-n", "1", "--fields", "content", "-0"]).stdout == notes[2] + "\0"
    )


def test_top_is_the_text_of_the_best_row_alone(run_cli, notes):
    assert run_cli(["recall", "deploy branch", "--deep", "--top"]).stdout == notes[2] + "\n"


def test_max_chars_is_spent_from_the_best_row(run_cli, notes):
    done = run_cli(["recall", "deploy branch", "--deep", "--max-chars", "60"])
    assert (
        [row[1] for row in records(done)][-1] == "mem:3" and len(records(done)) < 4 and "of 4 rows out" in done.stderr
    )
    cut = json.loads(run_cli(["recall", "deploy branch", "--deep", "--max-chars", "6", "--json"]).stdout)["messages"]
    assert [(row["content"], row["content_truncated"], row["content_len"]) for row in cut] == [
        ("deploy", True, len(notes[2]))
    ]


def test_an_empty_answer_is_exit_0_unless_it_was_asked_to_fail(run_cli, notes):
    done = run_cli(["recall", "zebra", "--deep"])
    assert done.returncode == 0 and done.stdout == "" and "nothing found" in done.stderr
    assert run_cli(["recall", "zebra", "--deep", "--fail-empty"]).returncode == 3


def test_an_empty_answer_says_how_many_rows_came_into_question_and_what_the_nearest_missed(run_cli, notes):
    nothing = run_cli(["recall", "zebra"])
    assert nothing.stderr.endswith("\nnothing found: no row came into question\n")
    said = json.loads(run_cli(["recall", "zebra", "--json"]).stdout)
    assert (said["messages"], said["considered"], said["gated"]) == ([], 0, 0)
    strict = run_cli(["recall", "deploy", "--set", "recall_mode=cascade"])
    assert (
        strict.returncode == 0
        and strict.stdout == ""
        and "rows came into question" in strict.stderr
        and "--deep" in strict.stderr
    )


def test_absolute_shows_the_columns_that_compare_between_questions(run_cli, notes):
    rows = records(run_cli(["recall", "deploy branch", "--deep", "--absolute"]))
    assert (
        rows
        and all(len(row) == 6 and row[3] == "-" for row in rows)
        and rows[-1][4:] == ["1.0000", notes[2].replace("\n", "\\n").replace("\t", "\\t")]
    )
    assert (
        run_cli(["recall", "deploy branch", "--deep", "--absolute", "--fields", "ref,coverage"])
        .stdout.splitlines()[-1]
        .startswith("mem:3\t")
    )


def test_options_narrow_the_question(run_cli, notes):
    assert len(records(run_cli(["recall", "deploy", "--deep", "-n", "2"]))) == 2
    kept = records(run_cli(["recall", "deploy", "--deep", "--exclude", notes[0], "--exclude", notes[1]]))
    assert {row[1] for row in kept} == {"mem:3", "mem:4"}
    assert run_cli(["recall", "deploy", "--deep", "--source-id", "nobody"]).stdout == ""
    assert run_cli(["recall", "deploy", "--deep", "--agent", "other"]).stdout == ""
    assert [row[1] for row in records(run_cli(["recall", "", "--deep"]))] == ["mem:1", "mem:2", "mem:3", "mem:4"]


def test_set_changes_a_retrieval_setting_for_one_call(run_cli, notes):
    assert {row[3] for row in records(run_cli(["recall", "deploy branch", "--deep", "--set", "recall_mode=rsf"]))} == {
        "rsf"
    }
    assert {row[3] for row in records(run_cli(["recall", "deploy branch", "--deep"]))} == {"blend"}
    refused = run_cli(["recall", "deploy", "--deep", "--set", "recall_mode=magic"])
    assert refused.returncode == 1 and "rrf | rsf | cascade" in refused.stderr and refused.stderr.count("\n") == 1


def test_explain_shows_every_candidate_and_why_not_names_the_stage(run_cli, notes):
    done = run_cli(["recall", "deploy branch", "--deep", "-n", "2", "--explain"])
    assert done.returncode == 0 and "stages:" in done.stdout and "memory_fts" in done.stdout
    assert "why not mem:9" in run_cli(["recall", "deploy", "--deep", "--why-not", "mem:9"]).stdout
    answer = json.loads(run_cli(["recall", "deploy", "--deep", "--explain", "--json"]).stdout)
    assert answer["trace"]["stages"]["returned"] == 4 and "unfamiliarity" not in answer["trace"]
    assert "raised by 0.099" in run_cli(["recall", "which branch does Zanzibar deploy from?", "--explain"]).stdout


def test_a_pasted_ref_shows_that_row_and_nothing_else(run_cli, notes, daemon):
    for asked in ("mem:3", " mem:3 "):
        done = run_cli(["recall", asked])
        assert done.returncode == 0 and [(row[0], row[1], row[6]) for row in records(done)] == [
            ("1", "mem:3", "deploy branch\\nis release\\t(never main)")
        ]
        assert "`cpersona get mem:3`" in done.stderr
    assert (
        run_cli(["recall", "mem:3", "--top"]).stdout == notes[2] + "\n"
        and run_cli(["recall", "mem:3", "--fields", "id"]).stdout == "k2\n"
    )
    told = json.loads(run_cli(["recall", "mem:3", "--json"]).stdout)
    assert [(row["ref"], row["id"], row["content"]) for row in told["messages"]] == [
        ("mem:3", "k2", notes[2])
    ] and told["order"] == "best_last"
    daemon.call("archive_episode", {"agent_id": "default", "summary": "moved the queue"})
    assert records(run_cli(["recall", "ep:1"]))[0][1] == "ep:1"


def test_a_ref_that_is_no_row_or_stands_with_conditions_is_a_question(run_cli, notes, daemon):
    daemon.call("store", {"agent_id": "default", "content": "see mem:77 of the old store"})
    assert [row[1] for row in records(run_cli(["recall", "mem:77", "--deep"]))] == ["mem:5"]
    daemon.call("store", {"agent_id": "other", "content": "another agent's"})
    assert run_cli(["recall", "mem:6"]).stdout == "" and run_cli(["recall", "mem:3", "--agent", "other"]).stdout == ""
    for more in (["--source-id", "nobody"], ["--project", "x"], ["--as-of", "2020-01-01"], ["--exclude", notes[2]]):
        assert run_cli(["recall", "mem:3", *more]).stdout == "", more
    assert run_cli(["recall", "mem:x"]).stdout == "" and "rows" not in run_cli(["recall", "the row mem:3"]).stdout


def test_a_question_from_a_pipe_is_the_same_question(run_cli, notes):
    assert (
        run_cli(["recall", "-", "--deep"], input="deploy branch\n").stdout
        == run_cli(["recall", "deploy branch", "--deep"]).stdout
    )


def test_context_is_chronological_and_says_so(run_cli, notes, home):
    history = "\n".join(
        json.dumps({"role": role, "content": text, "timestamp": f"2026-0{month}-01T00:00:00Z"})
        for role, text, month in (("user", "when do we deploy?", 2), ("assistant", "soon", 4))
    )
    done = run_cli(["context", "deploy branch", "--deep", "--history", "-", "-n", "1"], input=history)
    assert [row[0] for row in records(done)] == ["user", "memory", "agent"]
    as_array = json.dumps([json.loads(line) for line in history.splitlines()])
    answer = json.loads(
        run_cli(["context", "deploy branch", "--deep", "--history", "-", "-n", "1", "--json"], input=as_array).stdout
    )
    assert answer["order"] == "chronological" and answer["messages"][1]["ref"] == "mem:3"
    bad = run_cli(["context", "deploy", "--deep", "--history", "-"], input="[1]")
    assert bad.returncode == 1 and "role" in bad.stderr


def test_rows_that_only_come_near_an_absent_identifier_say_so_and_are_as_nothing_to_fail_empty(run_cli, notes):
    done = run_cli(["recall", "why do we deploy branch release never main since OPS-4171", "--fail-empty"])
    assert done.returncode == 3 and records(done)[-1][1::2][:2] == ["mem:3", "blend (near)"]
    assert "no row holds OPS-4171; rows marked (near) only come near it" in done.stderr
    bare = run_cli(["recall", "OPS-4171"])
    assert (bare.stdout, bare.returncode) == ("", 0) and "nothing found: no row holds OPS-4171" in bare.stderr


def test_what_quotes_and_hyphens_did_is_said_and_alike_rows_are_counted(run_cli, daemon, notes):
    done = run_cli(["recall", '"branch deploy"', "--fail-empty"])
    assert done.returncode == 3 and 'no row holds "branch deploy"' in done.stderr
    done = run_cli(["recall", "deploy -branch"])
    assert "branch" not in done.stdout and "left out: rows with 'branch'" in done.stderr
    for n in range(25):
        params = {"agent_id": "default", "content": f"the nightly mirror of the wiki took {n} minutes"}
        assert daemon.call("store", params)[0]["result"] == "stored"
    done = run_cli(["recall", "nightly mirror"])
    assert records(done)[-1][-1] == "(+24 alike) the nightly mirror of the wiki took 24 minutes"
    (row,) = json.loads(run_cli(["recall", "nightly mirror", "--json"]).stdout)["messages"]
    assert row["folded"]["count"] == 24 and len(row["folded"]["refs"]) == 20 and row["ref"] not in row["folded"]["refs"]
    assert row["content"] == "the nightly mirror of the wiki took 24 minutes"
