"""--fields, --format, -0 and --max-chars, the same in every command that shows rows. Contract: output.shapes."""

import json

import pytest

from cpersona_cli import exits
from cpersona_cli.declare import catalogue
from cpersona_cli.terminal.output import Output
from cpersona_cli.terminal.shaping import Shape, shape_options

KNOWN = ("ref", "content")
# How each command that shows rows is asked for both of them here, the field of their text, and which comes first.
COMMANDS = {
    "recall": (["recall", "deploy", "--deep"], "content", None),
    "context": (["context", "deploy", "--deep"], "content", None),
    "get": (["get", "mem:1", "mem:2"], "content", "mem:1"),
    "list": (["list"], "content", "mem:2"),
    "episode list": (["episode", "list"], "summary", "ep:2"),
}


@pytest.fixture(scope="module")
def two(shared_daemon):
    for n, text in enumerate(("deploy one\nhas two lines", "deploy two\tand a tab")):
        shared_daemon.call(
            "store", {"agent_id": "default", "content": text, "id": f"k{n}", "timestamp": f"2026-03-0{n + 1}T00:00:00Z"}
        )
        shared_daemon.call("archive_episode", {"agent_id": "default", "summary": text})


def test_every_command_that_shows_rows_takes_all_five():
    taking = {
        " ".join(command.path)
        for name in catalogue.ENTRIES
        for command in catalogue.declared(name)
        if any(p.name in ("fields", "null", "max_chars", "json_fields") for p in command.parameters)
    }
    assert taking == {*COMMANDS, "git blame-note", "grep"}  # which have tests of their own
    for name in taking:
        (command,) = [c for c in catalogue.declared(name.split()[0]) if c.path == tuple(name.split())]
        assert {flag for option in shape_options(()) for flag in option.flags} <= {
            flag for p in command.parameters for flag in p.flags
        }


@pytest.mark.parametrize("name", COMMANDS)
def test_a_template_prints_each_row_by_its_fields_on_one_line_and_whole_with_nul(shared_cli, two, name):
    words, text, _ = COMMANDS[name]
    done = shared_cli([*words, "--format", f"<{{ref}}>\\t{{{{{{{text}}}}}}}"])
    rows = sorted(line for line in done.stdout.splitlines() if "<ep" in line or name != "episode list")
    memories = [row for row in rows if "<mem:" in row or name == "episode list"]
    assert done.returncode == 0 and memories, done.stderr
    assert memories[0].endswith(">\t{deploy one\\nhas two lines}") and memories[1].endswith(
        ">\t{deploy two\\tand a tab}"
    )
    whole = shared_cli([*words, "--format", f"{{{text}}}", "-0"]).stdout.split("\0")
    assert whole[-1] == "" and {"deploy one\nhas two lines", "deploy two\tand a tab"} <= set(whole)


@pytest.mark.parametrize("name", COMMANDS)
def test_fields_are_columns_and_an_empty_one_is_a_dash(shared_cli, two, name):
    words, text, first = COMMANDS[name]
    done = shared_cli([*words, "--fields", f"ref, {text}"])
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0 and all(len(row) == 2 for row in rows) and (first is None or rows[0][0] == first)
    assert shared_cli([*words, "--fields", "nothing"]).returncode == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_max_chars_cuts_the_first_row_and_leaves_the_others_out(shared_cli, two, name):
    words, text, first = COMMANDS[name]
    done = shared_cli([*words, "--max-chars", "6", "--fields", f"ref,{text}"])
    (row,) = done.stdout.splitlines()
    assert (
        row.split("\t")[1] in ("deploy", "[Episo")
        and "--max-chars left" in done.stderr
        and (first is None or row.startswith(first))
    )
    told = json.loads(shared_cli([*words, "--max-chars", "6", "--json", "-q"]).stdout)
    (kept,) = next(told[key] for key in ("messages", "items", "memories", "episodes") if key in told)
    assert kept[f"{text}_truncated"] is True and kept[f"{text}_len"] > 6 and told.get("count", 1) == 1
    assert shared_cli([*words, "--max-chars", "0"]).returncode == 2


def test_what_the_rows_of_a_list_have_can_be_chosen(shared_cli, two):
    done = shared_cli(["list", "-n", "1", "--fields", "ref,id,agent,locked,timestamp,length,truncated"])
    assert done.stdout == "mem:2\tk1\tdefault\t-\t2026-03-02T00:00:00Z\t20\tfalse\n"
    assert shared_cli(["get", "mem:1", "--raw", "--fields", "ref"]).returncode == 2
    assert shared_cli(["recall", "two", "--deep", "--top", "--fields", "rank,truncated"]).stdout == "1\tfalse\n"


def filled(template, null=False, **row):
    out = Output()
    shape = Shape(KNOWN, out, format=template, null=null)
    written = []
    out.write = written.append
    shape.print(out, [row], lambda row, name: row[name], KNOWN)
    return "".join(written)


@pytest.mark.parametrize(
    "template, said",
    [
        ("{ref}", "mem:1\n"),
        ("{ ref }{content}", "mem:1a\\nb\n"),
        ("{{{ref}}}", "{mem:1}\n"),
        ("\\t\\n\\\\\\0\\r", "\t\n\\\0\r\n"),
        ("plain", "plain\n"),
        ("é{ref}", "émem:1\n"),
    ],
)
def test_a_template_means_what_it_says(template, said):
    assert filled(template, ref="mem:1", content="a\nb") == said


def test_with_nul_a_field_of_a_template_is_as_it_is():
    assert filled("{content}", null=True, ref="", content="a\nb\x1b") == "a\nb\x1b\0"


@pytest.mark.parametrize(
    "template, said",
    [
        ("", "empty"),
        ("{", "without its }"),
        ("{ref", "without its }"),
        ("ref}", "without its {"),
        ("{}", "knows no ''"),
        ("{text}", "it takes ref, content"),
        ("\\x", "does not understand"),
        ("\\", "does not understand"),
        ("{ref!r}", "knows no"),
        ("{ref.__class__}", "knows no"),
    ],
)
def test_a_template_that_means_nothing_is_a_usage_error_that_says_what_does(template, said):
    with pytest.raises(exits.Usage, match=".") as refused:
        Shape(KNOWN, Output(), format=template)
    assert said in str(refused.value) and refused.value.exit_status == 2


def test_fields_and_a_template_do_not_go_together():
    with pytest.raises(exits.Usage, match="one of them"):
        Shape(KNOWN, Output(), fields="ref", format="{ref}")
